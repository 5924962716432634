"""Compute a lower bound on a mechanism's epsilon from its outputs for two neighbouring inputs.

One half of the outputs chooses the event that distinguishes the neighbours best, the other half bounds its probabilities
(Clopper and Pearson), so the bound holds whatever was chosen. A bound above the claim proves the claim wrong; a bound
below it proves nothing, but a twin with a planted fault shows that the audit would have seen that fault.

Where the claim is that all noise together is one Gaussian mechanism, the same two probabilities bound its noise multiplier from
below (Nasr et al. 2023). Far fewer outputs then show far more: the whole trade-off curve is claimed, not one point of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.asking.rounds import fitted, is_measured
from murmurate.core.mechanism import Payload, Rng
from murmurate.core.parameters import positive, share, whole
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError

Outputs = Callable[[int, int, Any], NDArray[Any]]
"""sample_outputs(neighbour, n, rng) returns one number for each of n independent runs on neighbour 0 or 1."""

_MAX_EVENTS = 400
"""Number of thresholds and single values that are tried. Set by hand: a finer search gains little and overfits the half that
chooses."""


def audit(
    sample_outputs: Outputs, *, n: int, rng: Rng, delta: float = 0.0, confidence: float = 0.999, gaussian: bool = False
) -> Score:
    """Return a lower bound on epsilon (at this delta), true with the given confidence.

    `n` outputs are drawn for each neighbour by `sample_outputs(neighbour, n, rng)`. With `gaussian`, the claim is that the
    outputs are those of a Gaussian mechanism: its noise is bounded, and the epsilon is the one such noise has at `delta`.

    >>> from murmurate.noise import laplace_integers, seeded
    >>> def count(neighbour, n, rng):
    ...     return laplace_integers(np.full(n, neighbour), scale=1.0, rng=rng)
    >>> 0.8 < audit(count, n=20_000, rng=seeded(1)).value < 1.0
    True
    """
    whole("n", n, at_least=20)
    share("delta", delta, closed=True)
    share("confidence", confidence)
    chosen_on, held_out = ([_numbers(sample_outputs(side, n // 2, rng), n // 2) for side in (0, 1)] for _ in range(2))
    bounding = _shift if gaussian else partial(_bound, delta=delta)
    event = _best_event(chosen_on, bounding, confidence)
    bound = max(0.0, -math.inf if event is None else float(bounding(*event.counts(held_out), n // 2, confidence=confidence)))
    epsilon = epsilon_of_shift(bound, delta) if gaussian else bound
    return Score(
        name="audit_epsilon",
        value=epsilon,
        low=epsilon,
        better="lower",
        chance=0.0,
        family="audit",
        n=n,
        note="The adversary knows all but which of two neighbouring inputs was used; "
        f"a lower bound with {confidence:g} confidence"
        + (f" at delta {delta:g}" if delta else "")
        + (", where the noise is Gaussian as claimed." if gaussian else "."),
    )


def epsilon_of_shift(shift: float, delta: float) -> float:
    """Return the least epsilon at `delta` of a Gaussian mechanism that moves its output by `shift` standard deviations.

    >>> round(epsilon_of_shift(1.0, 1e-5), 3), epsilon_of_shift(0.0, 1e-5)
    (4.377, 0.0)
    """
    from scipy.optimize import brentq
    from scipy.special import log_ndtr, ndtr

    def excess(epsilon: float) -> float:  # Balle and Wang 2018, theorem 8
        tail = math.exp(min(epsilon + float(log_ndtr(-epsilon / shift - shift / 2)), 0.0))
        return float(ndtr(shift / 2 - epsilon / shift)) - tail - delta

    if shift <= 0 or excess(0.0) <= 0:
        return 0.0
    return float(brentq(excess, 0.0, shift * (shift / 2 + 40.0)))


def audit_per_metre(sample_outputs: Outputs, *, distance_m: float, n: int, rng: Rng, confidence: float = 0.999) -> Score:
    """Return a lower bound on epsilon per metre, from two inputs of which no place differs by more than `distance_m`."""
    positive("distance_m", distance_m)
    found = audit(sample_outputs, n=n, rng=rng, confidence=confidence)
    per_metre = found.value / distance_m
    note = f"{found.note} The inputs lie {distance_m:g} m apart."
    return replace(found, name="audit_epsilon_per_m", value=per_metre, low=per_metre, unit="1/m", note=note)


def runs_on_traces(mechanism: Any, neighbours: tuple[Trips, Trips], statistic: Callable[[Trips], NDArray[Any]]) -> Outputs:
    """Return the outputs of a mechanism on two single trips, for `audit`.

    A mechanism that treats trips apart gets n copies of the trip at once. One that reads noisy tables is fitted n times, and
    each model draws one trip. `statistic` gives one number for each released trip.
    """
    for trace in neighbours:
        if trace.n_trips != 1:
            raise ParameterError(f"each neighbour must be one trip; got {trace.n_trips:,} trips.")

    def sample_outputs(neighbour: int, n: int, rng: Rng) -> NDArray[Any]:
        trace = neighbours[neighbour]
        if is_measured(mechanism):
            runs: Any = (fitted(mechanism, trace, rng) for _ in range(n))
            released: list[Any] = [run if isinstance(run, Payload) else run.sample(1, rng) for run in runs]
        else:
            released = [mechanism.apply(copies(trace, n), rng)]
        if not all(isinstance(part, Trips) for part in released):
            raise ParameterError(f"{mechanism.name} does not release trips, so its outputs cannot be compared trip by trip.")
        return np.concatenate([statistic(part) for part in released])

    return sample_outputs


def copies(trace: Trips, n: int) -> Trips:
    """Return the same trip of `n` different people."""
    rows = trace.n_points
    people = pl.Series("uid", np.repeat(np.arange(n, dtype=np.int64), rows))
    table = trace.table.select(pl.all().exclude("uid", "tid"))
    repeated = table[np.tile(np.arange(rows), n)]
    return Trips(repeated.with_columns(people, people.alias("tid")), trace.space, trace.time_zone)


_COMPARE = {"at least": np.greater_equal, "at most": np.less_equal, "exactly": np.equal}
"""How an output is compared with the value of each kind of event."""


@dataclass(frozen=True)
class _Event:
    """Outputs at least, at most or exactly a value; `swapped` where neighbour 1 is the likelier one."""

    kind: str
    value: float
    swapped: bool

    def counts(self, outputs: list[NDArray[np.float64]]) -> tuple[int, int]:
        """Count how often it happened under the likelier neighbour, and under the other."""
        first, second = (int(_COMPARE[self.kind](side, self.value).sum()) for side in outputs)
        return (second, first) if self.swapped else (first, second)


def _best_event(outputs: list[NDArray[np.float64]], bounding: Callable[..., Any], confidence: float) -> _Event | None:
    """Return the event with the highest bound on these outputs; none where nothing distinguishes the neighbours."""
    pooled = np.concatenate(outputs)
    values = np.unique(pooled)
    if values.size > _MAX_EVENTS:
        # evenly by rank, and the most frequent single values: an atom is an event of its own
        edges = np.unique(np.quantile(pooled, np.linspace(0, 1, _MAX_EVENTS // 2), method="nearest"))
        found, often = np.unique(pooled, return_counts=True)
        values = np.union1d(edges, found[np.argsort(often)[-_MAX_EVENTS // 2 :]])
    n = outputs[0].size
    upto = [np.searchsorted(np.sort(side), values, side="right") for side in outputs]
    below = [np.searchsorted(np.sort(side), values, side="left") for side in outputs]
    best = 0.0
    event: _Event | None = None
    for kind, counts in (
        ("at most", upto),
        ("at least", [n - part for part in below]),
        ("exactly", [high - low for high, low in zip(upto, below, strict=True)]),
    ):
        for swapped in (False, True):
            likely, unlikely = (counts[1], counts[0]) if swapped else (counts[0], counts[1])
            bounds = np.asarray(bounding(likely, unlikely, n, confidence=confidence))
            at = int(np.argmax(bounds))
            if bounds[at] > best:
                best, event = float(bounds[at]), _Event(kind, float(values[at]), swapped)
    return event


def _bound(likely: Any, unlikely: Any, n: int, *, delta: float, confidence: float) -> Any:
    """Return ln((p_low - delta)/q_high)."""
    p_low, q_high = _probabilities(likely, unlikely, n, confidence)
    excess = p_low - delta
    return np.where(excess > 0, np.log(np.maximum(excess, 1e-300) / q_high), -math.inf)


def _shift(likely: Any, unlikely: Any, n: int, *, confidence: float) -> Any:
    """Return by how many standard deviations the outputs of a Gaussian mechanism must lie apart at least."""
    from scipy.special import ndtri

    p_low, q_high = _probabilities(likely, unlikely, n, confidence)
    known = (p_low > 0) & (q_high < 1)
    return np.where(known, ndtri(np.where(known, p_low, 0.5)) - ndtri(np.where(known, q_high, 0.5)), -math.inf)


def _probabilities(likely: Any, unlikely: Any, n: int, confidence: float) -> tuple[Any, Any]:
    """Return both probabilities of an event, each bounded on one side with half of the allowed error."""
    from scipy.special import betaincinv

    error = (1 - confidence) / 2
    likely, unlikely = np.asarray(likely, dtype=np.float64), np.asarray(unlikely, dtype=np.float64)
    p_low = np.where(likely > 0, betaincinv(np.maximum(likely, 1), n - likely + 1, error), 0.0)
    q_high = np.where(unlikely < n, betaincinv(unlikely + 1, np.maximum(n - unlikely, 1), 1 - error), 1.0)
    return p_low, q_high


def _numbers(outputs: NDArray[Any], n: int) -> NDArray[np.float64]:
    numbers = np.asarray(outputs, dtype=np.float64)
    if numbers.shape != (n,) or np.isnan(numbers).any():
        raise ParameterError(f"sample_outputs must give one number for each of its {n:,} runs; got shape {numbers.shape}.")
    return numbers
