"""Six statistics of released days (Bindschaedler and Shokri 2016, section VIII), beside the paper's baselines.

(a) visits, (b) the 50 most visited places, (c) which places are among the most visited, (d) how people divide their time,
(e) aggregate mobility, (f) semantic similarity. All compare one day of each original person with as many released days.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from murmurate.core.score import Better, Score
from murmurate.core.space import Floats
from murmurate.metrics.comparison import Comparison, NotMeasurable
from murmurate.metrics.divergence import relative_entropy, shares, total_variation
from murmurate.profiles.aggregate import MOST_PLACES, Aggregate
from murmurate.profiles.days import STEPS
from murmurate.profiles.mobility import profiles_of_rows
from murmurate.profiles.similarity import semantic_visits

Places = NDArray[np.int32]
"""Cell of each step [day, step]."""

SETS = 10
"""Released sets drawn, each as large as the originals. Set by hand."""
TOP = (10, 20, 30, 40, 50)
"""Numbers of most visited places that are compared, as in the paper."""
SMOOTHING = 0.05
"""Share of uniform moves mixed into an aggregate. Set by hand, as for the attack `localise`."""
ALLOCATIONS = (("place1", 0, 0), ("place2", 1, 1), ("place3", 2, 2), ("top2", 0, 1), ("top3", 0, 2))
"""Places by the time spent there: one by one, and the first two and three together."""
_MAX_PEOPLE = 1000
"""Most people that are compared; beyond, they are drawn at random, since pairs grow with the square. Set by hand."""
_BASELINES = ". Beside: "
"""What separates a note from the baselines in it."""


def day_visits(comparison: Comparison) -> list[Score]:
    """Compare visits of whole days: by rank, divergence and relative error; by place, the share of most visited in common."""
    real, second, sets = day_sets(comparison)
    n = comparison.grid.n_cells
    flat = np.full(n, real.size / n)
    single = np.zeros(n)
    single[0] = real.size
    counts = np.bincount(real.ravel(), minlength=n).astype(np.float64)
    made = [np.bincount(part.ravel(), minlength=n).astype(np.float64) for part in sets]
    again = None if second is None else np.bincount(second.ravel(), minlength=n).astype(np.float64)
    found: list[Score] = []
    for name, measure in (("kl", visit_divergence), ("relative_error", visit_relative_error), ("top50_distance", top_distance)):
        values = [measure(counts, part * counts.sum() / part.sum()) for part in made]
        baselines = [("uniform", measure(counts, flat)), ("single place", measure(counts, single))]
        if again is not None:
            baselines.insert(0, ("another real day", measure(counts, again)))
        found.append(_score(f"day_visits.{name}", values, "lower", baselines, len(real)))
    for size in TOP:
        if size <= n:
            values = [top_coverage(counts, part, size) for part in made]
            baselines = [("uniform", size / n)] + (
                [] if again is None else [("another real day", top_coverage(counts, again, size))]
            )
            found.append(_score(f"day_visits.top{size}_coverage", values, "higher", baselines, len(real)))
    return found


def day_time_allocation(comparison: Comparison) -> list[Score]:
    """Compare the shares of the day that people spend at their first, second and third place, alone and together.

    The paper's figures for its second and third place are of the size that the places together give.
    """
    real, second, sets = day_sets(comparison)
    generator = comparison.generator(71)
    found = []
    for name, first, last in ALLOCATIONS:
        own = time_allocation(real, first, last)
        values = [allocation_divergence(own, time_allocation(part, first, last)) for part in sets]
        baselines = [
            ("uniform", allocation_divergence(own, _evenly(real, first, last))),
            ("random", allocation_divergence(own, np.sort(generator.random(len(own))))),
        ]
        if second is not None:
            baselines.insert(0, ("another real day", allocation_divergence(own, time_allocation(second, first, last))))
        found.append(_score(f"day_time_allocation.{name}_kl", values, "lower", baselines, len(real)))
    return found


def day_mobility(comparison: Comparison) -> list[Score]:
    """Measure the similarity of the aggregate moves (smoothed) and visits of released days to those of the originals."""
    real, second, sets = day_sets(comparison)
    grid = comparison.grid
    if grid.n_cells > MOST_PLACES:
        raise NotMeasurable(f"aggregate mobility is compared on at most {MOST_PLACES:,} cells; the grid has {grid.n_cells:,}")
    own = Aggregate.of(real, grid, grid.n_cells, smoothing=SMOOTHING)
    others = [Aggregate.of(part, grid, grid.n_cells, smoothing=SMOOTHING) for part in sets]
    again = None if second is None else Aggregate.of(second, grid, grid.n_cells, smoothing=SMOOTHING)
    found = []
    for name, measure in (("moves", move_similarity), ("visits", visit_similarity)):
        baselines = [] if again is None else [("another real day", measure(own, again))]
        values = [measure(own, part) for part in others]
        found.append(
            _score(f"day_mobility.{name}_similarity", values, "higher", baselines, len(real), f"smoothing {SMOOTHING:g}")
        )
    return found


def day_semantics(comparison: Comparison) -> list[Score]:
    """Measure whether released days are as similar to each other, up to relabelled places, as the originals are."""
    real, _, sets = day_sets(comparison)
    n = comparison.grid.n_cells
    own = pair_similarities(real, n)
    made = [pair_similarities(part, n) for part in sets]
    points = np.linspace(0.01, 0.99, 99)
    quantiles = np.quantile(own, points)
    fits = [float(np.corrcoef(quantiles, np.quantile(part, points))[0, 1]) for part in made]
    gaps = [float(np.abs(quantiles - np.quantile(part, points)).mean()) for part in made]
    means = [float(part.mean()) for part in made]
    return [
        _score("day_semantics.qq_correlation", fits, "higher", [], len(real)),
        _score("day_semantics.qq_gap", gaps, "lower", [], len(real)),
        _score("day_semantics.mean_similarity", means, "neither", [("originals", float(own.mean()))], len(real)),
    ]


# -- the statistics themselves ----------------------------------------------------------------------------------------


def visit_divergence(real: Floats, made: Floats) -> float:
    """Return the Kullback-Leibler divergence of visits sorted by popularity; an empty place counts 0.1 visits, as in the paper.

    >>> round(visit_divergence(np.array([8.0, 2.0, 0.0]), np.array([0.0, 8.0, 2.0])), 6)
    0.0
    """
    return relative_entropy(*(shares(np.sort(np.where(part > 0, part, 0.1))) for part in (real, made)))


def visit_relative_error(real: Floats, made: Floats) -> float:
    """Return the mean error of sorted visits over visits, with a floor of a thousandth of all."""
    one, two = np.sort(real), np.sort(made)
    return float((np.abs(one - two) / np.maximum(one, 0.001 * one.sum())).mean())


def top_distance(real: Floats, made: Floats, size: int = 50) -> float:
    """Return the total variation between the shares of visits of the `size` most visited places."""
    one, two = (np.sort(part)[::-1][:size] for part in (real, made))
    return total_variation(one, two)


def top_coverage(real: Floats, made: Floats, size: int) -> float:
    """Return the share of the most visited places that are among the most visited of both."""
    one, two = (set(np.argsort(-part, kind="stable")[:size].tolist()) for part in (real, made))
    return len(one & two) / size


def time_allocation(place: Places, first: int, last: int | None = None) -> Floats:
    """Return the share of the day everybody spends at their places of rank `first` (0 is the main one) to `last`, sorted."""
    end = first + 1 if last is None else last + 1
    shares = [np.sort(np.unique(day, return_counts=True)[1])[::-1][first:end].sum() / len(day) for day in place]
    return np.sort(np.array(shares))


def allocation_divergence(real: Floats, made: Floats) -> float:
    """Return the divergence of two sorted allocations, each made a distribution over people; zeros count a tenth of a step."""
    if len(made) != len(real):
        made = np.quantile(made, np.linspace(0, 1, len(real)))
    return relative_entropy(*(shares(np.maximum(part, 0.1 / STEPS)) for part in (real, made)))


def move_similarity(one: Aggregate, two: Aggregate) -> float:
    """Return the expected overlap of the next place, from places as the first population visits them."""
    return float(one.visits @ np.minimum(one.steps, two.steps).sum(axis=1))


def visit_similarity(one: Aggregate, two: Aggregate) -> float:
    """Return the overlap of the two visiting distributions, by place."""
    return float(np.minimum(shares(one.visited), shares(two.visited)).sum())


def stationary_similarity(one: Aggregate, two: Aggregate) -> float:
    """Return the overlap of the stationary distributions of both models' smoothed moves, by place.

    >>> from murmurate.profiles.aggregate import Aggregate
    >>> from murmurate.spaces.grid import Grid
    >>> days = np.array([[0, 0, 1, 1], [1, 1, 0, 0]], dtype=np.int32)
    >>> model = Aggregate.of(days, Grid(60.1, 24.8, 60.11, 24.82, 1000), 2)
    >>> round(stationary_similarity(model, model), 6)
    1.0
    """
    return float(np.minimum(_stationary(one.steps), _stationary(two.steps)).sum())


def _stationary(steps: Floats) -> Floats:
    """Return the distribution that a step leaves as it is; smoothing makes it unique."""
    n = len(steps)
    balance = np.vstack([(steps.T - np.eye(n))[:-1], np.ones(n)])  # one balance equation follows from the others
    return np.linalg.solve(balance, np.r_[np.zeros(n - 1), 1.0])


def pair_similarities(place: Places, n_places: int) -> Floats:
    """Return the semantic similarity of all ordered pairs of different days."""
    profiles = profiles_of_rows(place, np.arange(len(place) + 1), n_places)
    all_pairs = semantic_visits(profiles, profiles)
    return all_pairs[~np.eye(len(place), dtype=bool)]


def _evenly(place: Places, first: int, last: int) -> Floats:
    """Return the paper's uniform baseline: everybody spends the same time at each of the places they visit."""
    n = np.array([len(np.unique(day)) for day in place])
    return np.sort(np.clip(n - first, 0, last + 1 - first) / n)


# -- reading both sides -----------------------------------------------------------------------------------------------


def day_sets(comparison: Comparison) -> tuple[Places, Places | None, list[Places]]:
    """Return one day of each original person, another of those who have one, and sets of released days as large."""
    if not (comparison.original.trips.has_coordinates and comparison.released.trips.has_coordinates):
        raise NotMeasurable("days need coordinates on both sides")
    missing = comparison.missing()
    if "time" in missing:
        raise NotMeasurable(missing["time"])
    generator = comparison.generator(70)
    original, released = comparison.days
    first, second = original.nth_days(0), original.nth_days(1)
    if first.n_days < 4 or released.n_days < 4:
        raise NotMeasurable(
            f"whole days are compared, at least 4 a side; the originals have {first.n_days:,} people with one, the release "
            f"{released.n_days:,} days"
        )
    if first.n_days > _MAX_PEOPLE:
        chosen = np.sort(generator.permutation(first.n_days)[:_MAX_PEOPLE])
        second = second.take(np.isin(second.person, first.person[chosen]))
        first = first.take(chosen)
    size = min(first.n_days, released.n_days)
    sets = [released.place[generator.permutation(released.n_days)[:size]] for _ in range(SETS)]
    enough = second.n_days >= first.n_days // 2
    return first.place, second.place if enough else None, sets


def beside(score: Score) -> dict[str, float]:
    """Read the baselines of a score of days back from its note."""
    _, found, text = score.note.partition(_BASELINES)
    parts = (part.rpartition(" ") for part in text.rstrip(".").split("; ")) if found else ()
    return {what: float(value) for what, _, value in parts}


def _score(  # noqa: PLR0917
    name: str, values: list[float], better: Better, baselines: list[tuple[str, float]], n: int, more: str = ""
) -> Score:
    baseline_words = "; ".join(f"{what} {value:.4f}" for what, value in baselines)
    note = f"mean and range over {len(values)} released sets of {n} days" + (f", {more}" if more else "")
    return Score(
        name=name,
        value=min(max(float(np.mean(values)), min(values)), max(values)),  # a mean of equal values may be off by a rounding
        low=float(np.min(values)),
        high=float(np.max(values)),
        better=better,
        family="days",
        n=n,
        note=f"{note}{_BASELINES}{baseline_words}." if baseline_words else f"{note}.",
    )
