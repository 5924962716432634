"""Compare single trips: length, duration, speed, displacement of points and centroids, and cells per trip by hour."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numba import njit

from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.metrics.bootstrap import mean_score
from murmurate.metrics.comparison import Comparison, Lines, NotMeasurable, Side
from murmurate.metrics.divergence import jensen_shannon
from murmurate.spaces.sphere import great_circle_m, step_m

FAMILY = "trips"
"""Family of these scores in reports."""


def length(comparison: Comparison) -> list[Score]:
    """Compare the lengths of trips: mean on both sides, and distance of the distributions."""
    return _distributions(comparison, "length", "length_m", "m")


def duration(comparison: Comparison) -> list[Score]:
    """Compare the durations of trips: mean on both sides, and distance of the distributions."""
    return _distributions(comparison, "duration", "duration_s", "s")


def speed(comparison: Comparison) -> list[Score]:
    """Compare the speeds of trips: mean on both sides, and distance of the distributions."""
    return _distributions(comparison, "speed", "speed_kmh", "km/h")


def length_change(comparison: Comparison) -> list[Score]:
    """Measure how the length of each trip changed against its original."""
    return _changes(comparison, "length_change", lambda side: side.length_m, "m")


def duration_change(comparison: Comparison) -> list[Score]:
    """Measure how the duration of each trip changed against its original."""
    return _changes(comparison, "duration_change", lambda side: side.duration_s, "s")


def speed_change(comparison: Comparison) -> list[Score]:
    """Measure how the speed of each trip changed against its original."""
    return _changes(comparison, "speed_change", lambda side: side.speed_kmh, "km/h")


def point_displacement(comparison: Comparison) -> list[Score]:
    """Measure the least, mean and greatest distance between the points of a trip and those of its original, in their order."""
    released, original = comparison.paired
    sizes = [np.diff(side.offsets) for side in comparison.sides]
    same = sizes[0][original] == sizes[1][released]
    if not same.any():
        raise NotMeasurable("no released trip has as many points as its original, so points cannot be matched")
    # pairs that cannot be matched point by point keep their place, so that each value belongs to its trip
    distances = np.full((len(same), 3), np.nan)
    distances[same] = _point_distances(comparison.original.track, original[same], comparison.released.track, released[same])
    note = "" if same.all() else f"only the {same.mean():.1%} of trips that kept their number of points"
    return [
        score
        for k, word in enumerate(("least", "average", "greatest"))
        for score in comparison.summarise(f"point_displacement.{word}", distances[:, k], unit="m", family=FAMILY, note=note)
    ]


def centroid_displacement(comparison: Comparison) -> list[Score]:
    """Measure the distance between the mean points of a trip and of its original, and the same without consecutive repeats."""
    released, original = comparison.paired
    scores: list[Score] = []
    for name, merge in (("centroid_displacement", False), ("centroid_displacement.no_repeats", True)):
        here, there = (_centroids(*side.track, merge) for side in comparison.sides)
        metres = great_circle_m(*here[original].T, *there[released].T)
        scores += comparison.summarise(name, metres, unit="m", family=FAMILY)
    return scores


def trip_size(comparison: Comparison) -> list[Score]:
    """Measure the Jensen-Shannon divergence (base 2) of the cells per trip, hour by hour, and its mean.

    `trip_size.distance` is the mean of its square roots, which many libraries return under the same name.
    """
    sizes = [side.trip_sizes for side in comparison.sides]
    top = int(max(size.labels.max() for size in sizes)) // 24 + 1
    by_hour: list[Score] = []
    for hour in range(24):
        counts = [np.zeros(top, dtype=np.int64), np.zeros(top, dtype=np.int64)]
        for size, count in zip(sizes, counts, strict=True):
            chosen = size.labels % 24 == hour
            count[size.labels[chosen] // 24] = size.counts[chosen]
        n_trips = [int(count.sum()) for count in counts]
        if not any(n_trips):
            continue
        # trips in an hour that the other side leaves empty: nothing agrees
        value = jensen_shannon(*counts) if all(n_trips) else 1.0
        by_hour.append(Score(name=f"trip_size.hour_{hour:02d}", value=value, better="lower", family=FAMILY, n=min(n_trips)))
    values = np.array([score.value for score in by_hour])
    return [
        mean_score("trip_size", values, family=FAMILY, note="divergence, mean over the hours with trips"),
        mean_score(
            "trip_size.distance",
            np.sqrt(values),
            family=FAMILY,
            note="Jensen-Shannon distance, the square root of the divergence (scipy's jensenshannon); mean over the hours",
        ),
        *by_hour,
    ]


def _distributions(comparison: Comparison, name: str, measure: str, unit: str) -> list[Score]:
    from scipy.stats import wasserstein_distance

    original, released = (side.distribution(measure) for side in comparison.sides)
    if not original.n or not released.n:
        raise NotMeasurable(f"no trip has a {name}")
    scores = [
        values.mean_score(f"{name}.{word}", better="neither", unit=unit, family=FAMILY)
        for word, values in (("original_mean", original), ("released_mean", released))
    ]
    before, after = (score.value for score in scores)
    emd = wasserstein_distance(original.values, released.values, original.counts, released.counts)
    bound = original.shift_bound() + released.shift_bound()
    distances = {
        "mean_change": (abs(after - before), unit, ""),
        "relative_mean_change": (abs(after - before) / before if before else np.nan, "", ""),
        "emd": (float(emd), unit, f"trips counted in fine bins: off by at most {1.01 * bound:.3g} {unit}" if bound else ""),
    }
    return scores + [
        Score(name=f"{name}.{word}", value=value, better="lower", unit=word_unit, family=FAMILY, n=released.n, note=note)
        for word, (value, word_unit, note) in distances.items()
    ]


def _changes(comparison: Comparison, name: str, measure: Callable[[Side], Floats], unit: str) -> list[Score]:
    released, original = comparison.paired
    before = measure(comparison.original)[original]
    change = measure(comparison.released)[released] - before
    with np.errstate(divide="ignore", invalid="ignore"):
        relative = np.where(before > 0, change / before, np.nan)
    gone = int((~np.isfinite(relative)).sum())
    note = f"{gone:,} pairs without a {name.removesuffix('_change')} to relate to are left out" if gone else ""
    return [
        *comparison.summarise(f"{name}.relative", relative, unit="", family=FAMILY, better="neither", note=note),
        *comparison.summarise(f"{name}.relative_absolute", np.abs(relative), unit="", family=FAMILY, note=note),
        *comparison.summarise(f"{name}.relative_squared", relative**2, unit="", family=FAMILY, note=note),
        *comparison.summarise(f"{name}.absolute", np.abs(change), unit=unit, family=FAMILY),
    ]


@njit(cache=True, nogil=True)
def _point_distances(track: Lines, chosen: Integers, other: Lines, other_chosen: Integers) -> Floats:
    """Return the least, mean and greatest metres between points of equal rank; both trips of a pair have as many points."""
    lat, lng, offsets = track
    other_lat, other_lng, other_offsets = other
    result = np.empty((len(chosen), 3))
    for pair in range(len(chosen)):
        first, other_first = offsets[chosen[pair]], other_offsets[other_chosen[pair]]
        size = offsets[chosen[pair] + 1] - first
        least, total, greatest = np.inf, 0.0, 0.0
        for k in range(size):
            metres = step_m(lat[first + k], lng[first + k], other_lat[other_first + k], other_lng[other_first + k])
            least = min(least, metres)
            greatest = max(greatest, metres)
            total += metres
        result[pair] = (least, total / size, greatest)
    return result


@njit(cache=True, nogil=True)
def _centroids(lat: Floats, lng: Floats, offsets: Integers, merge: bool) -> Floats:
    """Return the mean latitude and longitude of each trip; with `merge` a point equal to the one before does not count."""
    result = np.empty((len(offsets) - 1, 2))
    for trip in range(len(offsets) - 1):
        north, east, count = 0.0, 0.0, 0
        for point in range(offsets[trip], offsets[trip + 1]):
            if merge and point > offsets[trip] and lat[point] == lat[point - 1] and lng[point] == lng[point - 1]:
                continue
            north += lat[point]
            east += lng[point]
            count += 1
        result[trip, 0], result[trip, 1] = north / count, east / count
    return result
