"""Average many noisy reports of one place to find where it is."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from murmurate.attacks.tracks import Pairs, pairs, rate_interval
from murmurate.core.parameters import positive, whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import NotMeasurable

REPORTS = (1, 10, 100, 1000)
"""Numbers of reports that are averaged, one order of magnitude apart."""
PLACE_M = 50.0
"""Side, in metres, of the square that counts as one place. Set by hand: about one building."""
FOUND_M = 100.0
"""Distance, in metres, at which a place counts as found. Set by hand: about one block."""
MAX_PLACES = 2_000
"""Places for which reports are averaged, drawn at random where there are more. Set by hand."""
MIN_PLACES = 5
"""Numbers of reports that fewer places have are left out: a mean error over them says little."""
KNOWLEDGE = "The adversary knows which reports of a person come from one place (a square of {place_m:g} m), and averages {n}."
"""What the adversary knows, for the note of a score."""


def average(
    released: Trips,
    original: Trips,
    *,
    pairing: ArrayLike | None,
    reports: tuple[int, ...] = REPORTS,
    place_m: float = PLACE_M,
    found_m: float = FOUND_M,
    seed: int = 0,
) -> list[Score]:
    """Measure how far the mean of n reports lies from a person's repeated place, and how often within `found_m`.

    A place is a square of `place_m` in which a person was seen at least n times (twice for n = 1, a single report); `all`
    averages all reports of every place seen twice or more. The chance level is what another place's reports would give.
    """
    positive("place_m", place_m)
    positive("found_m", found_m)
    for n in reports:
        whole("reports", n)
    both = pairs(released, original, pairing)
    true, noisy, group = _matched(both, original, place_m)
    order = np.argsort(group, kind="stable")
    true, noisy, group = true[order], noisy[order], group[order]
    starts = np.flatnonzero(np.r_[True, group[1:] != group[:-1]])
    sizes = np.diff(np.r_[starts, len(group)])
    if sizes.max() < 2:
        raise NotMeasurable(f"nobody was seen twice within {place_m:g} m, so there is nothing to average")
    generator = np.random.default_rng([seed, 23])
    limits = place_m, found_m
    scores: list[Score] = []
    for n in sorted(set(reports)):
        # one report is taken of the places that others are averaged for
        enough = starts[sizes >= max(n, 2)]
        if len(enough) > MAX_PLACES:
            enough = np.sort(generator.choice(enough, size=MAX_PLACES, replace=False))
        if len(enough) >= MIN_PLACES:
            rows = enough[:, None] + np.arange(n)[None, :]
            scores += _scores(true[rows].mean(axis=1), noisy[rows].mean(axis=1), str(n), limits, generator)
    often = sizes >= 2
    means = [np.add.reduceat(side, starts)[often] / sizes[often, None] for side in (true, noisy)]
    return scores + _scores(means[0], means[1], "all", limits, generator)


def _matched(both: Pairs, original: Trips, place_m: float) -> tuple[Floats, Floats, Integers]:
    """Return true and released place of every point of trips that kept their points, and the (person, place) of each."""
    sizes, released_sizes = np.diff(both.original[2]), np.diff(both.released[2])
    same = sizes[both.source] == released_sizes[both.known]
    if not same.any():
        raise NotMeasurable("no released trip has as many points as its original, so reports cannot be told by their place")
    source, known = both.source[same], both.known[same]
    count = sizes[source]
    step = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    here = np.repeat(both.original[2][source], count) + step
    there = np.repeat(both.released[2][known], count) + step
    true = np.column_stack([both.original[0][here], both.original[1][here]])
    noisy = np.column_stack([both.released[0][there], both.released[1][there]])
    square = np.floor(true / place_m).astype(np.int64)
    person = original.trip_user[np.repeat(source, count)]
    _, group = np.unique(np.column_stack([person, square]), axis=0, return_inverse=True)
    return true, noisy, group.astype(np.int64).ravel()


def _scores(true: Floats, guess: Floats, n: str, limits: tuple[float, float], generator: np.random.Generator) -> list[Score]:
    place_m, found_m = limits
    error = np.hypot(*(guess - true).T)
    places = len(error)
    note = KNOWLEDGE.format(place_m=place_m, n="one of them alone" if n == "1" else f"{n} of them")
    chance_error = chance_found = None
    if places > 1:
        # everybody is given the guess of the next one in a random ring: as good as knowing where people are, not who
        ring = generator.permutation(places)
        other = np.empty(places, dtype=np.int64)
        other[ring] = np.roll(ring, 1)
        strange = np.hypot(*(guess[other] - true).T)
        chance_error, chance_found = float(strange.mean()), float((strange <= found_m).mean())
    found = float((error <= found_m).sum())
    found_low, found_high = rate_interval(found, places)
    return [
        mean_score(f"average.error_{n}", error, better="higher", chance=chance_error, unit="m", family="average", note=note),
        Score(
            name=f"average.found_{n}",
            value=found / places,
            low=found_low,
            high=found_high,
            better="closer_to_chance",
            chance=chance_found,
            family="average",
            n=places,
            note=f"{note} Found: within {found_m:g} m.",
        ),
    ]
