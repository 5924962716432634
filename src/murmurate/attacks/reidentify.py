"""Link a released trace to its original among all, knowing k true points of each."""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import ArrayLike, NDArray

from murmurate.attacks.tracks import Tracks, pairs, rate_interval
from murmurate.core.parameters import positive, whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError

KNOWN = (1, 2, 4)
"""Numbers of known points; four identify most people in published studies (de Montjoye et al. 2013)."""
TOP = (1, 5)
"""Ranks within which the true original counts as found."""
TARGETS = 500
"""Released traces that are attacked, drawn where there are more. Set by hand."""
CANDIDATES = 5_000
"""Originals that they are ranked among, drawn where there are more. Set by hand."""
ASIDE_KMH = 30.0
"""Where a released trace is not under way at a known time, each second costs as far as the trace itself goes in one (noise
makes it fast, and then time is the better evidence), and at least as far as this speed."""
RUN = 16
"""Segments of a trace that share a box: most runs lie farther from a known point than another one and are skipped whole."""


def reidentify(
    released: Trips,
    original: Trips,
    *,
    pairing: ArrayLike | None,
    known: tuple[int, ...] = KNOWN,
    targets: int = TARGETS,
    candidates: int = CANDIDATES,
    aside_kmh: float = ASIDE_KMH,
    seed: int = 0,
) -> list[Score]:
    """Measure the share of released traces whose original is ranked first, or among the first five, by k known true points.

    The adversary knows k random points of every candidate, without (`places`) or with (`timed`) their times, and ranks
    the candidates by the sum of distances from those points to the released trace; for Laplace noise the timed sum is the
    negative log-likelihood, up to constants. Ties share the success. Targets and candidates are drawn by a fixed seed where
    there are more.
    """
    if not known:
        raise ParameterError("known must list how many true points are known, such as (1, 2, 4).")
    for k in known:
        whole("known", k)
    whole("targets", targets)
    whole("candidates", candidates)
    positive("aside_kmh", aside_kmh)
    both = pairs(released, original, pairing)
    generator = np.random.default_rng([seed, 17])
    aim = _some(len(both.known), targets, generator)
    target, truth = both.known[aim], both.source[aim]
    among = np.unique(truth)
    others = np.setdiff1d(np.arange(original.n_trips), among)
    if len(others):
        among = np.sort(np.concatenate([among, others[_some(len(others), max(0, candidates - len(among)), generator)]]))
    points = _known_points(original.offsets, among, max(known), generator)
    n = len(among)
    drawn = len(target) < len(both.known) or n < original.n_trips
    clock = released.has_time and original.has_time
    scores: list[Score] = []
    for word in ("places", "timed") if clock else ("places",):
        if word == "timed":
            when = (released.time_us / 1e6, original.time_us / 1e6)
            far = _timed(both.released, target, both.original, points, when, aside_kmh / 3.6)
        else:
            far = _nearest_to_line(both.released, target, both.original, points)
        for k in known:
            rank = _ranks(far[:, :, :k].sum(axis=2), np.searchsorted(among, truth))
            scores += [_score(f"{word}.top{top}_k{k}", rank, top, _knowledge(word, k, n, drawn), n) for top in TOP]
    return scores


def _score(part: str, rank: Floats, top: int, note: str, n: int) -> Score:
    success = float(_within(rank, top).sum())
    low, high = rate_interval(success, len(rank))
    return Score(
        name=f"reidentify.{part}",
        value=success / len(rank),
        low=low,
        high=high,
        better="closer_to_chance",
        chance=min(1.0, top / n),
        family="reidentify",
        n=len(rank),
        note=note,
    )


def _knowledge(word: str, k: int, n: int, drawn: bool) -> str:
    points = f"{k} true point{'s' if k > 1 else ''} of each of {n:,} candidates"
    with_time = " and when they were there" if word == "timed" else ""
    return f"The adversary knows {points}{with_time}" + ("; targets and candidates drawn by a fixed seed." if drawn else ".")


def _some(n: int, most: int, generator: np.random.Generator) -> Integers:
    return np.arange(n) if n <= most else np.sort(generator.choice(n, size=most, replace=False))


def _known_points(offsets: Integers, among: Integers, most: int, generator: np.random.Generator) -> Integers:
    """Draw [candidate, k]: rows of known points in random order; a trip with fewer points repeats them."""
    first, size = offsets[among], offsets[among + 1] - offsets[among]
    rows = np.empty((len(among), most), dtype=np.int64)
    for k, (start, n) in enumerate(zip(first, size, strict=True)):
        rows[k] = start + np.resize(generator.permutation(n)[:most], most)
    return rows


def _ranks(far: Floats, truth: Integers) -> NDArray[np.float64]:
    """Return [target, 2]: candidates strictly nearer than the true one, and as near (itself included)."""
    own = far[np.arange(len(truth)), truth][:, None]
    # sums of equal distances may differ in the last digit; a thousandth of a millimetre is a tie
    nearer = (far < own - 1e-6).sum(axis=1)
    return np.column_stack([nearer, (far <= own + 1e-6).sum(axis=1) - nearer]).astype(np.float64)


def _within(rank: NDArray[np.float64], top: int) -> Floats:
    """Return the chance that the true one is among the first `top` when ties are broken at random."""
    return np.asarray(np.clip((top - rank[:, 0]) / rank[:, 1], 0.0, 1.0))


@njit(cache=True, nogil=True)
def _nearest_to_line(released: Tracks, target: Integers, original: Tracks, points: Integers) -> Floats:
    """Return [target, candidate, k]: metres from each known point to the polyline of the released trace."""
    x, y, offsets = released
    known_x, known_y, _ = original
    result = np.empty((len(target), points.shape[0], points.shape[1]))
    for t in range(len(target)):
        first, last = offsets[target[t]], offsets[target[t] + 1]
        boxes = _boxes(x[first:last], y[first:last])
        for c in range(points.shape[0]):
            for k in range(points.shape[1]):
                row = points[c, k]
                result[t, c, k] = _to_line(known_x[row], known_y[row], x[first:last], y[first:last], boxes)
    return result


@njit(cache=True, nogil=True)
def _boxes(x: Floats, y: Floats) -> Floats:
    """Return [run, 4]: least and greatest x and y of each run of `RUN` segments of a polyline."""
    boxes = np.empty((max(1, (len(x) + RUN - 2) // RUN), 4))
    for b in range(len(boxes)):
        some_x, some_y = x[b * RUN : (b + 1) * RUN + 1], y[b * RUN : (b + 1) * RUN + 1]
        boxes[b] = some_x.min(), some_x.max(), some_y.min(), some_y.max()
    return boxes


@njit(cache=True, nogil=True)
def _to_line(px: float, py: float, x: Floats, y: Floats, boxes: Floats) -> float:
    """Return metres from a point to a polyline; runs of segments whose box is farther away than the best so far are skipped."""
    best = np.inf  # squared
    for b in range(len(boxes)):
        best = min(best, (px - x[b * RUN]) ** 2 + (py - y[b * RUN]) ** 2)
    for b in range(len(boxes)):
        dx = max(0.0, boxes[b, 0] - px, px - boxes[b, 1])
        dy = max(0.0, boxes[b, 2] - py, py - boxes[b, 3])
        if dx * dx + dy * dy >= best:
            continue
        for at in range(b * RUN, min((b + 1) * RUN, len(x) - 1)):
            ax, ay, ex, ey = px - x[at], py - y[at], x[at + 1] - x[at], y[at + 1] - y[at]
            square = ex * ex + ey * ey
            if square > 0:
                along = min(1.0, max(0.0, (ax * ex + ay * ey) / square))
                best = min(best, (ax - along * ex) ** 2 + (ay - along * ey) ** 2)
    return np.sqrt(best)


@njit(cache=True, nogil=True)
def _timed(  # noqa: PLR0917
    released: Tracks, target: Integers, original: Tracks, points: Integers, when: tuple[Floats, Floats], aside_m_per_s: float
) -> Floats:
    """Return [target, candidate, k]: metres from each known point to where the released trace is at that time."""
    x, y, offsets = released
    known_x, known_y, _ = original
    time, known_time = when
    result = np.empty((len(target), points.shape[0], points.shape[1]))
    for t in range(len(target)):
        first, last = offsets[target[t]], offsets[target[t] + 1]
        length = 0.0
        for i in range(first + 1, last):
            length += np.hypot(x[i] - x[i - 1], y[i] - y[i - 1])
        lasts = time[last - 1] - time[first]
        aside = max(aside_m_per_s, length / lasts) if lasts > 0 else aside_m_per_s
        for c in range(points.shape[0]):
            for k in range(points.shape[1]):
                row = points[c, k]
                moment = known_time[row]
                at_x, at_y, late = x[first], y[first], time[first] - moment
                if moment >= time[last - 1]:
                    at_x, at_y, late = x[last - 1], y[last - 1], moment - time[last - 1]
                elif moment > time[first]:
                    i = first + np.searchsorted(time[first:last], moment, side="right") - 1
                    part = (moment - time[i]) / (time[i + 1] - time[i])
                    at_x, at_y, late = x[i] + part * (x[i + 1] - x[i]), y[i] + part * (y[i + 1] - y[i]), 0.0
                result[t, c, k] = np.hypot(known_x[row] - at_x, known_y[row] - at_y) + late * aside
    return result
