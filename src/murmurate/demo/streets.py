"""Draw the streets: rings and arterials first, then a fabric of local streets district by district."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.demo.draws import NETWORK, bells, uniforms
from murmurate.demo.plan import Plan

ARTERIALS = 9
"""Main roads that lead out of the centre. Set by hand."""
BANK_M = 24.0
"""Least distance of a crossing from water, in metres. Set by hand."""
RING_SHARE, INNER_SHARE = 0.60, 0.21
"""Radii of the motorway ring and of the old town's ring as shares of half the city's width. Set by hand."""


@dataclass(frozen=True, eq=False)
class Drawing:
    """Undirected streets between points in metres; `road_class` 0 where a street's class is not yet decided."""

    x: Floats
    y: Floats
    one: Integers
    other: Integers
    road_class: NDArray[np.int8]


@dataclass(frozen=True, eq=False)
class _Curve:
    points: Floats
    road_class: NDArray[np.int8]
    """Class of the piece that follows each point."""
    closed: bool


def draw_streets(plan: Plan, *, seed: int) -> Drawing:
    """Draw points and street pieces of the whole city, all connected."""
    curves = _curves(plan, seed)
    main = np.vstack([curve.points for curve in curves])
    main, merged = _merge_near(main, near_m=1.0)
    one, other, klass = _along(curves, merged)
    # Where a main road ran along the water its points are gone; the rest of it there is no bridge and no road.
    reach = np.hypot(*(main[one] - main[other]).T)
    crosses = plan.east_bank(*main[one].T) != plan.east_bank(*main[other].T)
    real = crosses | (reach < 300)
    one, other, klass = one[real], other[real], klass[real]
    local = _fabric(plan, main, seed)
    points = np.vstack([main, local])
    x, y = (np.ascontiguousarray(np.rint(10 * column) / 10) for column in points.T)
    a, b = _near_pairs(x, y, 420.0)
    keep = ~_wet(plan, x, y, a, b) & ~_crossing(x, y, a, b, one, other)
    keep &= ~plan.in_park((x[a] + x[b]) / 2, (y[a] + y[b]) / 2)
    known = set(zip(np.minimum(one, other).tolist(), np.maximum(one, other).tolist(), strict=True))
    keep &= np.array([(i, j) not in known for i, j in zip(a.tolist(), b.tolist(), strict=True)])
    a, b = a[keep], b[keep]
    # A motorway is left at junctions only, and some blocks are larger than others.
    motorway = np.zeros(len(x), dtype=bool)
    motorway[one[klass == 1]] = motorway[other[klass == 1]] = True
    chance = uniforms(seed, NETWORK, 30, len(a))
    wanted = chance > np.where(motorway[a] | motorway[b], 0.85, 0.09)
    one, other, klass = _connected(len(x), (one, other, klass), (a, b), wanted)
    return _largest_part(Drawing(x, y, one, other, klass))


def _curves(plan: Plan, seed: int) -> list[_Curve]:
    """Draw two rings and the arterials, sampled so that they meet in common points, cut where there is water."""
    drawn = uniforms(seed, NETWORK, 10, 80)
    half = plan.half_m

    def ring(share: float, at: int) -> Floats:
        turn = np.linspace(0, 2 * np.pi, 3601)
        wave = 0.05 * np.sin(2 * turn + drawn[at] * 6.28) + 0.045 * np.sin(3 * turn + drawn[at + 1] * 6.28)
        return half * share * (1 + wave + 0.02 * np.sin(7 * turn + drawn[at + 2] * 6.28))

    rings = [ring(RING_SHARE, 0), ring(INNER_SHARE, 3)]
    angles = (np.arange(ARTERIALS) + 0.15 + 0.7 * drawn[10 : 10 + ARTERIALS]) / ARTERIALS * 2 * np.pi
    curves: list[_Curve] = []
    meetings: list[list[float]] = [[], []]
    for number, angle in enumerate(_well_apart([_away_from_river(plan, float(angle), rings) for angle in angles])):
        inner_start = number % 3 != 0
        radius = np.arange(0 if not inner_start else 20, half * 1.02, 4.0)
        sway = 0.16 * np.sin(radius / half * 5 + drawn[30 + number] * 6.28) * radius / half
        theta = np.mod(angle + sway, 2 * np.pi)
        stops = []
        for which, values in enumerate(rings):
            reached = int(np.argmax(radius >= values[np.rint(theta / (2 * np.pi) * 3600).astype(int)]))
            stops.append(reached)
            meetings[which].append(float(theta[reached]))
        first = stops[1] if inner_start else 0
        last = int(np.argmax(np.append(radius > plan.edge_m(theta), True)))
        picked = _spaced(np.arange(first, max(last, stops[0] + 1)), sorted({first, *stops}), step=30)
        points = np.column_stack([radius[picked] * np.cos(theta[picked]), radius[picked] * np.sin(theta[picked])])
        klass = np.where((picked >= stops[0]) & (number % 3 == 0), 1, 2).astype(np.int8)
        curves.append(_dry(plan, _Curve(points, klass, closed=False)))
    for which, values in enumerate(rings):
        fixed = sorted({round(theta / (2 * np.pi) * 3600) % 3600 for theta in meetings[which]})
        step = max(6, int(125 / (values.mean() * 2 * np.pi / 3600)))
        picked = _spaced(np.arange(3600), fixed, step=step)
        turn = picked / 3600 * 2 * np.pi
        points = np.column_stack([values[picked] * np.cos(turn), values[picked] * np.sin(turn)])
        # Arterials meet a ring at their own sampled point; put the ring's point exactly there.
        for curve in curves:
            gap = np.hypot(points[:, None, 0] - curve.points[None, :, 0], points[:, None, 1] - curve.points[None, :, 1])
            ring_point, curve_point = np.unravel_index(np.argmin(gap), gap.shape)
            if gap[ring_point, curve_point] < 15:
                points[ring_point] = curve.points[curve_point]
        klass = np.full(len(points), 1 if which == 0 else 2, dtype=np.int8)
        curves.append(_dry(plan, _Curve(points, klass, closed=True)))
    return curves


def _away_from_river(plan: Plan, angle: float, rings: list[Floats]) -> float:
    """Find the nearest direction in which an arterial meets both rings on dry land, well off the river."""
    for tries in range(120):
        turned = angle + (0.03 * ((tries + 1) // 2)) * (1 if tries % 2 else -1)
        at = round((turned % (2 * np.pi)) / (2 * np.pi) * 3600) % 3600
        spots = [(ring[at] * np.cos(turned), ring[at] * np.sin(turned)) for ring in rings]
        if not any(bool(plan.in_water(x, y, bank_m=0.05 * plan.half_m)) for x, y in spots):
            return turned
    return angle


def _well_apart(angles: list[float]) -> list[float]:
    """Return the directions that keep their distance from their neighbours."""
    kept: list[float] = []
    for angle in angles:
        if all(abs((angle - other + np.pi) % (2 * np.pi) - np.pi) > 0.36 for other in kept):
            kept.append(angle)
    return kept


def _spaced(along: Integers, fixed: list[int], *, step: int) -> Integers:
    """Return every `step`-th position that is not near a fixed one, and the fixed ones."""
    regular = along[::step]
    far = (
        np.all(np.abs(regular[:, None] - np.array(fixed)[None, :]) > 0.55 * step, axis=1)
        if fixed
        else np.ones(len(regular), bool)
    )
    inside = [position for position in fixed if along[0] <= position <= along[-1]]
    return np.unique(np.r_[regular[far], inside]).astype(np.int64)


def _dry(plan: Plan, curve: _Curve) -> _Curve:
    """Remove the points of a curve in or at the water; a piece over the river becomes a bridge."""
    dry = ~plan.in_water(curve.points[:, 0], curve.points[:, 1], bank_m=BANK_M)
    return _Curve(curve.points[dry], curve.road_class[dry], curve.closed)


def _merge_near(points: Floats, *, near_m: float) -> tuple[Floats, Integers]:
    """Return the points without duplicates, and the new position of each old point."""
    keys = np.round(points / near_m).astype(np.int64)
    _, first, inverse = np.unique(keys, axis=0, return_index=True, return_inverse=True)
    return points[first], inverse.ravel().astype(np.int64)


def _along(curves: list[_Curve], merged: Integers) -> tuple[Integers, Integers, NDArray[np.int8]]:
    one, other, klass, start = [], [], [], 0
    for curve in curves:
        ids = merged[start : start + len(curve.points)]
        start += len(curve.points)
        following = np.roll(ids, -1) if curve.closed else ids[1:]
        one.append(ids[: len(following)])
        other.append(following)
        klass.append(curve.road_class[: len(following)])
    a, b, c = np.concatenate(one), np.concatenate(other), np.concatenate(klass)
    keep = a != b
    return a[keep], b[keep], c[keep]


def _fabric(plan: Plan, main: Floats, seed: int) -> Floats:
    """Draw crossings of local streets: a turned lattice a district, loosened, thinner towards the edge."""
    parts = []
    for number, centre in enumerate(plan.district_xy):
        spacing = plan.district_spacing_m[number]
        count = int(1.1 * plan.half_m / spacing)
        columns, rows = (grid.ravel() for grid in np.meshgrid(np.arange(-count, count + 1), np.arange(-count, count + 1)))
        u = columns * spacing * 1.15 + (0.5 * spacing * (rows % 2) if plan.district_brick[number] else 0)
        v = rows * spacing * 0.9
        loose = 0.085 * spacing * bells(seed, NETWORK, 100 + number, 2 * len(u)).reshape(2, -1)
        cos, sin = np.cos(plan.district_angle[number]), np.sin(plan.district_angle[number])
        # A long slow bend, so that even planned quarters follow the ground.
        bend = 0.35 * spacing * np.sin(u / (7 * spacing) + number)
        u, v = u + loose[0], v + bend + loose[1]
        x, y = centre[0] + u * cos - v * sin, centre[1] + u * sin + v * cos
        gap = np.hypot(x[:, None] - plan.district_xy[None, :, 0], y[:, None] - plan.district_xy[None, :, 1])
        parts.append(np.column_stack([x, y])[gap.argmin(axis=1) == number])
    points = np.vstack(parts)
    x, y = points.T
    reach = np.hypot(x, y) / plan.edge_m(np.arctan2(y, x))
    chance = uniforms(seed, NETWORK, 20, len(points))
    keep = (reach < 1) & (chance > np.clip((reach - 0.78) * 1.6, 0.02, 1))
    keep &= ~plan.in_water(x, y, bank_m=BANK_M) & ~plan.in_park(x, y)
    points = points[keep]
    return _apart(main, points, plan)


def _apart(main: Floats, points: Floats, plan: Plan) -> Floats:
    """Return the local crossings that keep their distance from main roads and from each other."""
    gap = np.hypot(points[:, None, 0] - plan.district_xy[None, :, 0], points[:, None, 1] - plan.district_xy[None, :, 1])
    need = 0.55 * plan.district_spacing_m[gap.argmin(axis=1)]
    return points[_spread(np.ascontiguousarray(main), np.ascontiguousarray(points), need)]


@njit(cache=True)
def _spread(main: Floats, points: Floats, need: Floats) -> NDArray[np.bool_]:
    keep = np.ones(len(points), dtype=np.bool_)
    for i in range(len(points)):
        for j in range(len(main)):
            if (points[i, 0] - main[j, 0]) ** 2 + (points[i, 1] - main[j, 1]) ** 2 < need[i] ** 2:
                keep[i] = False
                break
        if keep[i]:
            for j in range(i):
                if keep[j] and (points[i, 0] - points[j, 0]) ** 2 + (points[i, 1] - points[j, 1]) ** 2 < need[i] ** 2:
                    keep[i] = False
                    break
    return keep


@njit(cache=True)
def _near_pairs(x: Floats, y: Floats, max_m: float) -> tuple[Integers, Integers]:
    """Find pairs with no third point nearer to both than they are to each other (nearly): streets, never diagonals."""
    order = np.argsort(x, kind="mergesort")
    one, other = [], []
    n = len(x)
    for p in range(n):
        i = order[p]
        for q in range(p + 1, n):
            j = order[q]
            if x[j] - x[i] > max_m:
                break
            d = (x[i] - x[j]) ** 2 + (y[i] - y[j]) ** 2
            if d > max_m**2:
                continue
            free = True
            low = p
            while low > 0 and x[i] - x[order[low - 1]] < max_m:
                low -= 1
            for r in range(low, n):
                k = order[r]
                if x[k] - x[j] > max_m:
                    break
                if (
                    k not in (i, j)
                    and max((x[i] - x[k]) ** 2 + (y[i] - y[k]) ** 2, (x[j] - x[k]) ** 2 + (y[j] - y[k]) ** 2) < 0.9 * d
                ):
                    free = False
                    break
            if free:
                one.append(min(i, j))
                other.append(max(i, j))
    return np.array(one), np.array(other)


@njit(cache=True)
def _crossing(  # noqa: PLR0917
    x: Floats, y: Floats, a: Integers, b: Integers, one: Integers, other: Integers
) -> NDArray[np.bool_]:
    """Return which of the pairs (a, b) would cut through a main road."""
    cut = np.zeros(len(a), dtype=np.bool_)
    for k in range(len(a)):
        i, j = a[k], b[k]
        for m in range(len(one)):
            p, q = one[m], other[m]
            if p in (i, j) or q in (i, j):
                continue
            if max(x[p], x[q]) < min(x[i], x[j]) or min(x[p], x[q]) > max(x[i], x[j]):
                continue
            s1 = (x[q] - x[p]) * (y[i] - y[p]) - (y[q] - y[p]) * (x[i] - x[p])
            s2 = (x[q] - x[p]) * (y[j] - y[p]) - (y[q] - y[p]) * (x[j] - x[p])
            s3 = (x[j] - x[i]) * (y[p] - y[i]) - (y[j] - y[i]) * (x[p] - x[i])
            s4 = (x[j] - x[i]) * (y[q] - y[i]) - (y[j] - y[i]) * (x[q] - x[i])
            if s1 * s2 < 0 and s3 * s4 < 0:
                cut[k] = True
                break
    return cut


def _wet(plan: Plan, x: Floats, y: Floats, a: Integers, b: Integers) -> NDArray[np.bool_]:
    """Return which pairs would cross or touch water."""
    wet = plan.east_bank(x[a], y[a]) != plan.east_bank(x[b], y[b])
    for share in (0.2, 0.35, 0.5, 0.65, 0.8):
        wet |= plan.in_water(x[a] + share * (x[b] - x[a]), y[a] + share * (y[b] - y[a]))
    return wet


def _connected(
    n: int, main: tuple[Integers, Integers, NDArray[np.int8]], local: tuple[Integers, Integers], wanted: NDArray[np.bool_]
) -> tuple[Integers, Integers, NDArray[np.int8]]:
    """Join main roads, wanted local streets, and those unwanted ones without which a quarter would be cut off."""
    one, other = np.r_[main[0], local[0][wanted]], np.r_[main[1], local[1][wanted]]
    spare_one, spare_other = local[0][~wanted], local[1][~wanted]
    needed = _joining(n, one, other, spare_one, spare_other)
    one, other = np.r_[one, spare_one[needed]], np.r_[other, spare_other[needed]]
    klass = np.zeros(len(one), dtype=np.int8)
    klass[: len(main[2])] = main[2]
    return one, other, klass


def _joining(n: int, one: Integers, other: Integers, spare_one: Integers, spare_other: Integers) -> NDArray[np.bool_]:
    """Choose the spare streets, earlier ones first, that join parts of the network: those of its minimum spanning tree."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import minimum_spanning_tree

    weight = np.r_[np.full(len(one), 1e-6), np.arange(1.0, len(spare_one) + 1)]
    streets = coo_array((weight, (np.r_[one, spare_one], np.r_[other, spare_other])), shape=(n, n))
    return np.isin(weight[len(one) :], minimum_spanning_tree(streets.tocsr()).data)


def _largest_part(drawing: Drawing) -> Drawing:
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    n = len(drawing.x)
    links = coo_array((np.ones(len(drawing.one)), (drawing.one, drawing.other)), shape=(n, n))
    part = connected_components(links, directed=False)[1]
    kept = part == np.bincount(part).argmax()
    number = np.cumsum(kept) - 1
    inside = kept[drawing.one]
    return Drawing(
        drawing.x[kept], drawing.y[kept], number[drawing.one[inside]], number[drawing.other[inside]], drawing.road_class[inside]
    )
