"""Find the first of several values that passes a noisy threshold (AboveThreshold), many rows at once."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murmurate.core.parameters import positive
from murmurate.errors import ParameterError
from murmurate.noise.stream import Randomness


def above_threshold(
    values: NDArray[np.integer], *, threshold: float, epsilon: float, sensitivity: float, rng: Randomness
) -> NDArray[np.int64]:
    """Return, for each row, the first column whose value plus noise reaches the noisy threshold; -1 where none does.

    The threshold carries Laplace noise of scale 2 s / epsilon, drawn once a row, and every test noise of 4 s / epsilon.
    Guarantee: each row's result is epsilon-differentially private where a neighbouring input changes no value by more than
    the sensitivity s. Uniforms have 52 bits, so the probability of a result is off by at most 2^-51.

    `values` holds exact counts, one row per test; the sensitivity bounds the change of any of them.

    >>> from murmurate.noise.stream import seeded
    >>> counts = np.array([[1, 5, 50], [40, 60, 80]])
    >>> above_threshold(counts, threshold=25, epsilon=1e3, sensitivity=1.0, rng=seeded(1)).tolist()
    [2, 0]
    """
    for name, value in (("epsilon", epsilon), ("sensitivity", sensitivity)):
        positive(name, value)
    table = np.asarray(values)
    if table.ndim != 2:
        raise ParameterError(f"values must be rows of counts; got {table.ndim} dimensions.")
    rows, columns = table.shape
    bar = threshold + _laplace(rng.uniforms(rows)) * (2 * sensitivity / epsilon)
    found = np.full(rows, -1, dtype=np.int64)
    going = np.arange(rows)
    for column in range(columns):
        noise = _laplace(rng.uniforms(len(going))) * (4 * sensitivity / epsilon)
        passed = table[going, column] + noise >= bar[going]
        found[going[passed]] = column
        going = going[~passed]
        if not len(going):
            break
    return found


def _laplace(uniforms: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return standard Laplace numbers; they are only ever compared, never released."""
    centred = uniforms - 0.5
    return -np.sign(centred) * np.log1p(-2 * np.abs(centred))
