"""What each unit adds to the tables: fixed-point rows that follow from the unit's own drives, each trip matched by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking import STEPS, Contributions, Part
from murmurate.asking.clipping import INSIDE
from murmurate.asking.table import once
from murmurate.asking.units import count_units
from murmurate.core.space import Integers
from murmurate.mechanisms.road_counts.protected import Zones, trimmed
from murmurate.mechanisms.road_counts.settings import BLOCK_HOURS, N_CLASSES, Bounds
from murmurate.spaces.drives import drives_of
from murmurate.spaces.road import RoadNetwork

MAX_SLOWNESS = 4.0
"""Largest travel time that is counted, in multiples of the free travel time; longer ones are cut. A link without a measured
time counts as half of it, the middle of the range, which adds nothing."""


PIECE_LINKS = 200_000
"""Driven links whose rows are made at once, in about 60 MB. Set by hand."""


@dataclass(frozen=True, eq=False)
class UnitDrives:
    """What the units of a part drove, unit after unit: eight bytes for each driven link."""

    link: NDArray[np.int32]
    hour: NDArray[np.int8]
    """Local hour at which the link was entered."""
    slowness: NDArray[np.int16]
    """Travel time over free time, from -STEPS / 2 (none) to STEPS / 2 (`MAX_SLOWNESS` or more); 0 where it is not known."""
    follows: NDArray[np.bool_]
    """Whether the next driven link follows this one, in the same part of the same trip."""
    trip_offsets: Integers
    """Trip k drove link[trip_offsets[k]:trip_offsets[k + 1]], at least one; trips that drove nothing are not here."""
    trip_unit: NDArray[np.int32]
    """[trip] position (0, 1, ...) of its unit among those that drove something, ascending."""

    @property
    def unit_offsets(self) -> Integers:
        """Unit u drove link[unit_offsets[u]:unit_offsets[u + 1]]."""
        first = np.flatnonzero(np.diff(self.trip_unit, prepend=-1))
        return self.trip_offsets[np.append(first, len(self.trip_unit))]

    def pieces(self) -> Iterator[UnitDrives]:
        """Yield the drives of some units after the others, about `PIECE_LINKS` links each; units are numbered anew in each."""
        ends, n = self.unit_offsets, len(self.unit_offsets) - 1
        first = 0
        while first < n or first == 0:
            last = min(n, max(first + 1, int(np.searchsorted(ends, ends[first] + PIECE_LINKS, side="right")) - 1))
            links = slice(int(ends[first]), int(ends[last]))
            low, high = np.searchsorted(self.trip_unit, (first, last))
            yield UnitDrives(
                link=self.link[links],
                hour=self.hour[links],
                slowness=self.slowness[links],
                follows=self.follows[links],
                trip_offsets=self.trip_offsets[low : high + 1] - links.start,
                trip_unit=self.trip_unit[low:high] - np.int32(first),
            )
            first = max(last, 1)


@dataclass(frozen=True, eq=False)
class MatchDrives:
    """Matches the trips of a part, each by itself, and cuts their ends back to where they leave a public zone."""

    network: RoadNetwork
    zones: Zones | None

    def __call__(self, part: Part) -> UnitDrives:
        """Return what the units of a part drove."""
        drives = drives_of(part.trips, self.network)
        if self.zones is not None:
            drives = trimmed(drives, self.zones)
        driven = drives.driven[np.argsort(part.unit[drives.driven], kind="stable")]
        lengths = np.diff(drives.offsets)[driven]
        offsets = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
        at = np.repeat(drives.offsets[driven] - offsets[:-1], lengths) + np.arange(offsets[-1])
        same_part = np.diff(drives.part, append=-1) == 0
        same_part[drives.offsets[1:][drives.offsets[1:] > 0] - 1] = False  # a trip's last link is followed by nothing
        return UnitDrives(
            link=drives.link[at].astype(np.int32),
            hour=drives.hour[at].astype(np.int8),
            slowness=_slowness(drives.seconds[at], self.network.time_s[drives.link[at]]),
            follows=same_part[at],
            trip_offsets=offsets,
            trip_unit=np.unique(part.unit[driven], return_inverse=True)[1].astype(np.int32),
        )


def _slowness(seconds: NDArray[np.float64], free_s: NDArray[np.float64]) -> NDArray[np.int16]:
    ratio = np.clip(seconds / free_s, 0.0, MAX_SLOWNESS)
    ratio[np.isnan(ratio)] = MAX_SLOWNESS / 2  # a NaN must never reach an integer
    return np.trunc((ratio / MAX_SLOWNESS - 0.5) * STEPS).astype(np.int16)


def count_unit_sizes(drives: UnitDrives) -> dict[str, Contributions]:
    """Let each unit add one to the number of units that drove as many links."""
    units = drives.unit_offsets
    return {"units": count_units(np.repeat(np.arange(len(units) - 1), np.diff(units)))}


@dataclass(frozen=True, eq=False)
class CountLinks:
    """Contributes to the round of links: links, blocks, day, size, speeds, paces and turns."""

    road_class: NDArray[np.int8]
    bounds: Bounds
    tables: frozenset[str]
    joint: bool
    """Whether a unit is clipped over all tables together, so that none is scaled by itself here."""
    turns: tuple[Integers, Integers]
    """(offsets, links): the links that may follow link k are links[offsets[k]:offsets[k + 1]]."""

    def __call__(self, drives: UnitDrives) -> dict[str, Contributions]:
        """Return the rows of every table of the round."""
        n, units = len(self.road_class), drives.unit_offsets
        squared, nothing = self.bounds.kind == "gaussian", np.zeros(0, dtype=np.int16)
        speeds = drives.slowness if "speeds" in self.tables else nothing
        unit, bins, count, total = _tally(units, drives.link, speeds, n)
        each = np.arange(len(units) - 1)
        rows = {
            "links": Contributions(unit, bins, count * STEPS),
            "day": _counted(units, drives.hour.astype(np.int32), 24),
            "size": Contributions(each, np.zeros_like(each), np.diff(units) * STEPS),
        }
        clip, hours = (np.inf, np.inf) if self.joint else (self.bounds.clip, self.bounds.hours)
        if "speeds" in self.tables:
            rows["speeds"] = Contributions(*_scaled(unit, bins, count, total, clip, squared, 0))
            key = (self.road_class[drives.link].astype(np.int32) - 1) * 24 + drives.hour
            found = _tally(units, key, drives.slowness, N_CLASSES * 24)
            rows["paces"] = Contributions(*_scaled(*found, hours, squared, N_CLASSES * 24))
        if "blocks" in self.tables:
            key = (drives.hour // BLOCK_HOURS).astype(np.int32) * np.int32(n) + drives.link
            rows["blocks"] = _counted(units, key, n * (24 // BLOCK_HOURS))
        if "turns" in self.tables:
            rows["turns"] = _counted(units, _turns(drives.link, drives.follows, *self.turns), len(self.turns[1]))
        return rows


@dataclass(frozen=True, eq=False)
class CountZones:
    """Contributes to the round of zones: links driven by zone, heading and hour; trips by zone of origin and destination."""

    group: Integers
    """[link] zone and heading."""
    n_groups: int
    zone: Integers
    """[link] zone."""
    n_zones: int
    od: bool

    def __call__(self, drives: UnitDrives) -> dict[str, Contributions]:
        """Return the rows of every table of the round."""
        key = self.group.astype(np.int32)[drives.link] * np.int32(24) + drives.hour
        rows = {"hours": _counted(drives.unit_offsets, key, self.n_groups * 24)}
        if self.od:
            first, last = drives.link[drives.trip_offsets[:-1]], drives.link[drives.trip_offsets[1:] - 1]
            rows["od"] = once(drives.trip_unit.astype(np.int64), self.zone[first] * self.n_zones + self.zone[last])
        return rows


def _counted(units: Integers, key: NDArray[np.int32], n_bins: int) -> Contributions:
    unit, bins, count, _ = _tally(units, key, np.zeros(0, dtype=np.int16), n_bins)
    return Contributions(unit, bins, count * STEPS)


@njit(cache=True, nogil=True)
def _tally(
    units: Integers, key: NDArray[np.int32], value: NDArray[np.int16], n_bins: int
) -> tuple[Integers, Integers, Integers, Integers]:
    """Count each unit's rows by bin, and add up their values where there are some; sorted by unit and bin, bins of -1 left out.

    Counts stand in an array with room for every bin, of which only those that a unit has are written and cleared again.
    """
    n, valued = len(key), len(value) > 0
    counts, totals = np.zeros(n_bins, np.int64), np.zeros(n_bins if valued else 0, np.int64)
    unit, bins, count = np.empty(n, np.int64), np.empty(n, np.int64), np.empty(n, np.int64)
    total = np.empty(n if valued else 0, np.int64)
    size = 0
    for u in range(len(units) - 1):
        first = size
        for k in range(units[u], units[u + 1]):
            at = key[k]
            if at < 0:
                continue
            if counts[at] == 0:
                bins[size] = at
                size += 1
            counts[at] += 1
            if valued:
                totals[at] += value[k]
        _sort(bins, first, size)
        for k in range(first, size):
            at = bins[k]
            unit[k], count[k], counts[at] = u, counts[at], 0
            if valued:
                total[k], totals[at] = totals[at], 0
    return unit[:size], bins[:size], count[:size], total[: size if valued else 0]


@njit(cache=True, nogil=True)
def _sort(values: Integers, low: int, high: int) -> None:
    """Sort a stretch of values in place by Shell's method, which numba compiles faster than numpy's sort."""
    gap = high - low
    while gap > 1:
        gap = max(gap * 5 // 11, 1)
        for k in range(low + gap, high):
            value, at = values[k], k
            while at - gap >= low and values[at - gap] > value:
                values[at] = values[at - gap]
                at -= gap
            values[at] = value


@njit(cache=True, nogil=True)
def _scaled(  # noqa: PLR0917
    unit: Integers, bins: Integers, count: Integers, total: Integers, bound: float, squared: bool, sums_from: int
) -> tuple[Integers, Integers, Integers]:
    """Scale each unit's sums by the factor that brings the norm of its counts to `bound`, rounded towards zero.

    So mean slowness stays sum over count. With `sums_from` > 0 the scaled counts come as well, and the sums in bins from
    there on. Sums are at most half of the counts, bin by bin, so that their norm is at most half of the bound.
    """
    both = sums_from > 0
    n = len(unit)
    rows = 2 * n if both else n
    out_unit, out_bin, out_weight = np.empty(rows, np.int64), np.empty(rows, np.int64), np.empty(rows, np.int64)
    size, low = 0, 0
    while low < n:
        high, norm = low, 0.0
        while high < n and unit[high] == unit[low]:
            norm += float(count[high]) ** 2 if squared else float(count[high])
            high += 1
        norm = np.sqrt(norm) if squared else norm
        factor = bound / norm * INSIDE if norm > bound else 1.0
        if both:
            for k in range(low, high):
                weight = count[k] * STEPS
                out_unit[size], out_bin[size] = unit[k], bins[k]
                out_weight[size] = weight if factor == 1.0 else np.int64(weight * factor)
                size += 1
        for k in range(low, high):
            out_unit[size], out_bin[size] = unit[k], bins[k] + sums_from
            out_weight[size] = total[k] if factor == 1.0 else np.int64(total[k] * factor)
            size += 1
        low = high
    return out_unit, out_bin, out_weight


@njit(cache=True, nogil=True)
def _turns(link: NDArray[np.int32], follows: NDArray[np.bool_], first: Integers, onward: Integers) -> NDArray[np.int32]:
    """Number the turn from each driven link to the next; -1 where nothing follows or the network has no such turn."""
    turn = np.full(len(link), -1, np.int32)
    for k in range(len(link) - 1):
        if follows[k]:
            for at in range(first[link[k]], first[link[k] + 1]):
                if onward[at] == link[k + 1]:
                    turn[k] = at
                    break
    return turn
