"""Add discrete Laplace and Gaussian noise to integers: OpenDP's vetted samplers, or repeatable ones for tests.

A secure stream goes through OpenDP, whose samplers are exact (rational arithmetic on the operating system's own random
bits). OpenDP cannot be seeded, so a seeded stream takes the samplers of Canonne, Kamath and Steinke written out below:
the Laplace one in integers alone, the Gaussian one with its acceptance probability in double precision. That is enough
for tests and demos, and no ledger accepts a seeded release.
"""

from __future__ import annotations

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numba import njit

from murmurate.core.parameters import positive
from murmurate.core.space import Integers
from murmurate.errors import ParameterError
from murmurate.noise.stream import Randomness

MAX_SCALE = 2.0**45
"""Largest noise scale, in lattice steps. Values plus noise of this scale still fit 64 bits."""

SMOOTH_SCALE = 20.0
"""Smallest standard deviation of discrete Gaussian noise, in lattice steps, for which accountants of the continuous Gaussian
are used: from here on its delta is at most 0.4 % larger (see `core.accounting.LATTICE_MARGIN`)."""

AT_ONCE = 20_000
"""Values handed to OpenDP per call: small enough that several threads share one table. Set by hand."""
_WORDS_AT_ONCE = 1 << 16
"""Random words drawn at a time by the seeded samplers (512 KiB). Set by hand."""
_RESERVE = 4096
"""Words kept for one draw, which needs more only with a probability below 2^-1000."""


def laplace_integers(values: Integers, *, scale: float, rng: Randomness, threads: int = 1) -> Integers:
    """Add independent noise of P(z) proportional to exp(-|z|/scale).

    Guarantee: with L1 sensitivity s the result is (s/scale)-differentially private. `threads` draw in parallel.

    >>> from murmurate.noise.stream import seeded
    >>> laplace_integers(np.zeros(3, dtype=np.int64), scale=2.0, rng=seeded(1)).dtype
    dtype('int64')
    """
    values = checked(values, scale)
    if not rng.seeded:
        return _by_opendp(values, scale, "make_laplace", threads)
    numerator, denominator = _ratio(scale)
    return values + _filled(values.size, rng, 20, lambda words, out, done: _laplace(words, out, done, numerator, denominator))


def gaussian_integers(values: Integers, *, scale: float, rng: Randomness, threads: int = 1) -> Integers:
    """Add independent noise of P(z) proportional to exp(-z^2/(2 scale^2)).

    Guarantee: with L2 sensitivity s the result is (s/scale)^2/2-zCDP; accountants take scale/s as noise multiplier, so a
    scale under `SMOOTH_SCALE` steps, where the discrete distribution still differs from the continuous one, is refused.
    """
    if scale < SMOOTH_SCALE:
        raise ParameterError(
            f"Gaussian noise needs a deviation of at least {SMOOTH_SCALE:g} lattice steps; got {scale:g}. "
            "Use finer fixed point, or a smaller epsilon."
        )
    return discrete_gaussian(values, scale=scale, rng=rng, threads=threads)


def discrete_gaussian(values: Integers, *, scale: float, rng: Randomness, threads: int = 1) -> Integers:
    """Add noise as `gaussian_integers` does, at any scale: (s/scale)^2/2-zCDP, and no continuous Gaussian for accountants."""
    values = checked(values, scale)
    if not rng.seeded:
        return _by_opendp(values, scale, "make_gaussian", threads)
    return values + _filled(values.size, rng, 40, lambda words, out, done: _gaussian(words, out, done, scale))


def checked(values: Integers, scale: float) -> Integers:
    """Return a vector of integers to which noise of this scale can be added; refuse anything else."""
    positive("scale", scale, at_most=MAX_SCALE)
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ParameterError(f"noise is added to a vector of integers; got {array.dtype} with {array.ndim} dimensions.")
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) >= 2**62:
        raise ParameterError("values must stay below 2^62 so that noise cannot overflow them.")
    return array.astype(np.int64, copy=False)


def _by_opendp(values: Integers, scale: float, make: str, threads: int) -> Integers:
    # not the prelude, which also loads scikit-learn where that is installed
    from opendp import domains, measurements, metrics
    from opendp.mod import enable_features

    enable_features("contrib")
    metric = metrics.l1_distance(T="i64") if make == "make_laplace" else metrics.l2_distance(T="f64")
    measurement = getattr(measurements, make)(domains.vector_domain(domains.atom_domain(T="i64")), metric, scale=float(scale))

    def noised(first: int) -> Integers:
        return np.asarray(measurement(values[first : first + AT_ONCE]), dtype=np.int64)

    with ThreadPoolExecutor(threads) as pool:  # each draw is independent, and OpenDP works outside Python's lock
        parts = list(pool.map(noised, range(0, values.size, AT_ONCE)))
    return np.concatenate(parts) if parts else np.empty(0, dtype=np.int64)


# -- seeded samplers --------------------------------------------------------------------------------------------


def _ratio(scale: float) -> tuple[int, int]:
    """Return the scale as an exact fraction of 64-bit integers; a scale too small for one is rounded up to the next 2^-62."""
    numerator, denominator = float(scale).as_integer_ratio()
    return (numerator, denominator) if denominator <= 2**62 else (math.ceil(scale * 2**62), 2**62)


def _filled(n: int, rng: Randomness, words_each: int, kernel):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    out = np.empty(n, dtype=np.int64)
    done = 0
    while done < n:
        words = rng.words(min(_WORDS_AT_ONCE, (n - done) * words_each) + _RESERVE)
        done = kernel(words, out, done)
    return out


@njit(cache=True, nogil=True)
def _next(words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    word = words[cursor[0] % words.size]
    cursor[0] += 1
    return word


@njit(cache=True, nogil=True)
def _below(bound, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Draw uniformly from 0 .. bound - 1, without modulo bias."""
    size = np.uint64(bound)
    unfair = (~size + np.uint64(1)) % size  # 2^64 mod size
    word = _next(words, cursor)
    while word < unfair:
        word = _next(words, cursor)
    return np.int64(word % size)


@njit(cache=True, nogil=True)
def _flip(numerator, denominator, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return True with probability exp(-numerator/denominator), for a fraction within [0, 1]."""
    k = 1
    while _below(denominator, words, cursor) < numerator and (k == 1 or _below(k, words, cursor) == 0):
        k += 1
    return k % 2 == 1


@njit(cache=True, nogil=True)
def _one_laplace(numerator, denominator, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Draw one number with scale numerator/denominator."""
    while True:
        part = _below(numerator, words, cursor)
        if not _flip(part, numerator, words, cursor):
            continue
        turns = 0
        while _flip(1, 1, words, cursor):
            turns += 1
        size = (part + numerator * turns) // denominator
        negative = _next(words, cursor) & np.uint64(1)
        if negative and size == 0:
            continue  # zero would come twice
        return -size if negative else size


@njit(cache=True, nogil=True)
def _laplace(words, out, done, numerator, denominator):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    cursor = np.zeros(1, dtype=np.int64)
    while done < out.size and cursor[0] <= words.size - _RESERVE:
        out[done] = _one_laplace(numerator, denominator, words, cursor)
        done += 1
    return done


@njit(cache=True, nogil=True)
def _gaussian(words, out, done, scale):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    cursor = np.zeros(1, dtype=np.int64)
    whole_scale = np.int64(math.floor(scale)) + 1
    while done < out.size and cursor[0] <= words.size - _RESERVE:
        proposal = _one_laplace(whole_scale, 1, words, cursor)
        off = abs(proposal) - scale * scale / whole_scale
        chance = math.exp(-0.5 * (off / scale) ** 2)
        if (np.float64(_next(words, cursor) >> np.uint64(12)) + 0.5) * 2.0**-52 < chance:
            out[done] = proposal
            done += 1
    return done
