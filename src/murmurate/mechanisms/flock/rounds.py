"""Choose which tables flock measures in each round, how fine they are, and the share of the budget of each.

The rules use public parameters and earlier noisy counts, never the data.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, sqrt
from typing import Any

import numpy as np

from murmurate.asking import Budget, Contributions, Norm, Round, Table
from murmurate.asking.table import Answers, once
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.mechanisms.flock.estimates import estimate_cells, interpolate_density
from murmurate.mechanisms.flock.roads import Links, ReadLinks, groups_of
from murmurate.mechanisms.flock.shapes import pace_bins
from murmurate.mechanisms.flock.tables import Zones, end_bins, one_bin_each, table_bins, trip_contributions
from murmurate.mechanisms.flock.tracks import End, Frame, Read, ReadEnds, ReadTracks, ReadUnits
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.route_table import prepare as prepare_routes
from murmurate.synthesis.ends import depth_of
from murmurate.synthesis.moves import reach_of
from murmurate.synthesis.zones import zones_of_equal_mass

REFERENCE_SHARE = 0.2
"""Share of the budget of the notional table whose noise standard deviation is the unit of the thresholds below. Chosen by
hand."""

COARSE_SHARES = {
    "n": 0.02,
    "ends": 0.23,
    "places": 0.02,
    "visits": 0.45,
    "pairs": 0.06,
    "diameter": 0.11,
    "shape": 0.11,
}
"""Shares of the budget where trips are few for the noise and routes are sampled on coarse cells. Visits and ends get most,
because budget moved to them from pairs and flows raised Kendall's score and F1 on Geolife (docs/mechanisms/flock.md,
variants)."""

FINE_SHARES = {
    "n": 0.02,
    "ends": 0.09,
    "visits": 0.16,
    "pairs": 0.22,
    "towards": 0.12,
    "steps": 0.22,
    "sizes": 0.09,
    "apart": 0.02,
    "diameter": 0.03,
    "shape": 0.03,
}
"""Shares where trips are many: routes are sampled on grid cells, and steps and numbers of cells have tables. Chosen by hand."""

COARSE_HOURS_SHARES = {
    "n": 0.02,
    "ends": 0.21,
    "places": 0.02,
    "source_hour": 0.04,
    "destination_hour": 0.04,
    "visits": 0.43,
    "pairs": 0.05,
    "diameter": 0.10,
    "shape": 0.09,
}
"""COARSE_SHARES where parts of the day are distinguished. Chosen by hand."""

FINE_HOURS_SHARES = {
    "n": 0.02,
    "ends": 0.05,
    "source_hour": 0.14,
    "destination_hour": 0.14,
    "pairs": 0.08,
    "pairs_hour": 0.06,
    "visits": 0.09,
    "towards": 0.11,
    "steps": 0.18,
    "sizes": 0.05,
    "sizes_hour": 0.05,
    "apart": 0.01,
    "diameter": 0.01,
    "shape": 0.01,
}
"""FINE_SHARES where parts of the day are distinguished. Chosen by hand."""

COUNT_SHARE = 0.02
"""Share of the noisy number of trips. It is measured first, because it decides which of these tables are used. Chosen by
hand."""

SPEED_SHARES = {"pace": 0.02, "pace_hour": 0.01}
"""Shares of the speed tables, where trips have times; the other tables except the count are scaled down. Chosen by hand."""

MIN_TRIPS_SDS = 3.0
"""Smallest noisy number of trips that is released, in standard deviations of that number. Chosen by hand, so that tables have
some bins clear of their noise."""

MIN_MEAN_COUNT_SDS = 2.5
"""Smallest mean count of a coarse cell, in noise standard deviations of a table with REFERENCE_SHARE. Coarse cells are made as
small as this allows. Chosen by hand."""

MIN_STEP_TABLE_TRIPS_SDS = 3_000.0
"""Smallest number of trips for tables of steps and numbers of cells, in the same standard deviations. Chosen by hand."""

MAX_SHAPE_WEIGHT_TRIPS_SDS = 10_000.0
"""Largest number of trips, in the same standard deviations, for which trips drawn with step tables are also weighted by
diameter and shape. With more trips this weighting makes patterns worse (docs/mechanisms/flock.md, weighting by shape)."""

TYPICAL_SPEED_KMH = 25.0
"""Typical speed of trips in cities, in km/h, from general knowledge; it only sets how often a step crosses a corner of a
cell."""

PAIR_REFINEMENT = 4.0
"""Origin-destination zones may be this many times finer than single-zone tables, because their log-weights are shrunk per bin.
Chosen by hand."""

CANDIDATES_PER_TRIP = {"coarse": 3, "fine": 2}
"""Candidates drawn for each trip that is kept; fewer with step tables, whose base model is nearer to the tables. Chosen by
hand."""

UNTIMED_REACH_CELLS = 7
"""Coarse cells a step may cross where trips have no times. Chosen by hand; 100 km/h give the same on cells of 250 m and slots
of a minute."""
UNTIMED_STRIDE_CELLS = 0.5
"""Coarse cells between two points of a trip where trips have no times. Chosen by hand."""
LINKS_SHARE = 0.08
"""Share of the budget for the use of links, on roads; the other tables are scaled down. Lowered from 12 % after comparing both
on the built-in city and San Francisco."""
TRACK_TABLES = ("ends", "places", "visits", "apart", "diameter", "shape", "sizes", "sizes_hour", "towards", "steps")
"""Tables of the second round, over tracks; named in the order in which they are measured."""
ZONE_TABLES = ("source_hour", "destination_hour", "pairs", "pairs_hour")
"""Tables of the third round, over zones made from the noisy tables of the second."""


@dataclass(frozen=True)
class NoiseLevel:
    """Noise of a table that gets a share of the budget, for a unit that adds up to `limit`."""

    budget: Budget
    portion: float = 1.0
    """Part of the budget that is left for tables over cells; below 1 on roads."""
    limit: float = 1.0

    def deviation(self, share: float) -> float:
        """Return the standard deviation of the noise of each count."""
        return self.budget.deviation(share * self.portion, self.limit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """Plan the rounds of a release from public parameters and earlier noisy tables."""

    grid: Grid
    network: RoadNetwork | None
    hours: int
    timed: bool
    max_cells: int
    slot_s: int
    max_speed_kmh: float
    budget: Budget
    limit: float
    answers: Answers

    @cached_property
    def noise(self) -> NoiseLevel:
        """Return the noise of tables over cells."""
        return NoiseLevel(self.budget, 1.0 if self.network is None else 1 - LINKS_SHARE, self.limit)

    @property
    def norm(self) -> Norm:
        """Return the norm in which one unit's change of a table is bounded."""
        return self.budget.norm

    def ask(self) -> Round | None:
        """Return the next round; None when all tables are measured."""
        if "n" not in self.answers:
            return Round(tables=(self._table("n", 1, COUNT_SHARE),), prepare=ReadUnits(self.grid), contribute=_count_trips)
        _refuse_too_few(self.n, self.noise)
        if "visits" not in self.answers:
            return self._tracks()
        if "pairs" not in self.answers:
            return self._zones()
        return None

    @cached_property
    def n(self) -> float:
        """Return the first noisy number of trips, at least 1."""
        return max(float(self.answers["n"].noisy[0]), 1.0)

    @cached_property
    def shares(self) -> dict[str, float]:
        """Return the share of the budget of each table."""
        return shares(hours=self.hours, step_tables=use_step_tables(self.n, self.frame.block, self.noise), timed=self.timed)

    @cached_property
    def frame(self) -> Frame:
        """Return the frame, with coarse cells as small as the noisy number of trips allows."""
        block = block_of(self.grid, self.n, self.noise)
        reach, stride = UNTIMED_REACH_CELLS, UNTIMED_STRIDE_CELLS
        if self.timed:
            reach = reach_of(cell_m=self.grid.cell_m * block, max_speed_kmh=self.max_speed_kmh, slot_s=self.slot_s)
            stride = stride_of(self.grid.cell_m * block, self.slot_s)
        return Frame(grid=self.grid, block=block, reach=reach, hours=self.hours, max_cells=self.max_cells, stride=stride)

    @cached_property
    def link_groups(self) -> Integers | None:
        """Return [link] the group of links that are counted together; None without roads."""
        if self.network is None:
            return None
        return groups_of(self.network, self.n, self.budget.deviation(LINKS_SHARE, self.limit))

    @cached_property
    def end_cells(self) -> Floats:
        """Estimate [grid cell] ends: coarse cells first (shrunk towards visits), then grid cells within them."""
        answers, frame = self.answers, self.frame
        coarse = estimate_cells(answers["visits"], frame.rows, frame.columns)
        if "ends" in answers:
            coarse = estimate_cells(answers["ends"], frame.rows, frame.columns, coarse)
        if frame.block == 1:
            return coarse
        fine = interpolate_density(coarse, frame)
        if "places" in answers:
            fine = estimate_cells(answers["places"], frame.grid.rows, frame.grid.columns, fine)
        of_fine = frame.coarse_of(np.arange(frame.grid.n_cells))
        within = np.bincount(of_fine, weights=fine, minlength=frame.n_coarse)
        return np.asarray(fine * (coarse / np.maximum(within, 1e-12))[of_fine])

    @cached_property
    def zones(self) -> Zones:
        """Return zones of equal estimated ends."""
        depth = zone_depths(self.n, self.hours, self.shares, self.noise)
        zone = zones_of_equal_mass(self.end_cells, rows=self.grid.rows, columns=self.grid.columns, depth=depth["fine"])
        return Zones(zone, **depth)

    def refined_n(self) -> float:
        """Return the number of trips averaged by inverse variance over every table that each trip enters once."""
        total = weight = 0.0
        for name in ("n", "pairs", "diameter", "source_hour", "destination_hour"):
            if name in self.answers:
                answer = self.answers[name]
                precision = 1.0 / (answer.noisy.size * answer.deviation**2)
                total, weight = total + precision * float(answer.noisy.sum()), weight + precision
        return max(total / weight, 1.0)

    def _tracks(self) -> Round:
        """Return the second round: tables over tracks and, on roads, the use of links."""
        names = tuple(name for name in (*TRACK_TABLES, "pace", "pace_hour") if name in self.shares)
        sizes = table_bins(self.frame)
        tables = [self._table(name, sizes[name], self.shares[name]) for name in names]
        prepare: Any = ReadTracks(self.frame, self.slot_s)
        links = None
        if self.network is not None and self.link_groups is not None:
            prepare_routes(self.network)  # public; once here, so that processes find the routes on disk
            prepare = ReadLinks(prepare, self.network)
            n_groups = int(self.link_groups.max()) + 1
            tables.append(Table(name="links", n_bins=n_groups, share=LINKS_SHARE, limit=self.limit))
            links = Links(self.link_groups, n_groups)
        return Round(tables=tuple(tables), prepare=prepare, contribute=CountTracks(self.frame, names, self.norm, links))

    def _zones(self) -> Round:
        """Return the third round: tables over zones."""
        names = tuple(name for name in ZONE_TABLES if name in self.shares)
        count = CountEnds(self.frame, self.zones, names)
        tables = tuple(self._table(name, n_bins, self.shares[name]) for name, n_bins in count.sizes().items())
        return Round(tables=tables, prepare=ReadEnds(self.frame, self.slot_s), contribute=count)

    def _table(self, name: str, n_bins: int, share: float) -> Table:
        """Return a table over cells with its share of the whole budget."""
        return Table(name=name, n_bins=n_bins, share=share * self.noise.portion, limit=self.limit)


def _count_trips(unit: Integers) -> Mapping[str, Contributions]:
    """Let each trip add one to the number of trips."""
    return {"n": once(unit, np.zeros_like(unit))}


@dataclass(frozen=True)
class CountTracks:
    """Contributions of tracks to the tables of the second round."""

    frame: Frame
    names: tuple[str, ...]
    norm: Norm
    links: Links | None

    def __call__(self, prepared: Any) -> Mapping[str, Contributions]:
        """Return the contributions to every table."""
        read: Read = prepared if self.links is None else prepared.read
        found = trip_contributions(self.names, read.tracks, self.frame, None, self.norm)
        if read.seconds is not None:
            paces = pace_bins(read.tracks, read.seconds, self.frame.hours)
            found |= {name: one_bin_each(*paces[name]) for name in self.names if name in paces}
        rows = {name: part.contributions(read.unit) for name, part in found.items()}
        if self.links is not None:
            rows["links"] = self.links.contributions(prepared, self.norm)
        return rows


@dataclass(frozen=True, eq=False)
class CountEnds:
    """Contributions of the ends of trips to the tables over zones."""

    frame: Frame
    zones: Zones
    names: tuple[str, ...]

    def sizes(self) -> dict[str, int]:
        """Return the number of bins of each table."""
        nothing = np.zeros(0, dtype=np.int64)
        found = end_bins(End(nothing, nothing, nothing), self.frame, self.zones, set(self.names))
        return {name: found[name][1] for name in self.names}

    def __call__(self, prepared: tuple[End, Integers]) -> Mapping[str, Contributions]:
        """Return the contributions to every table."""
        ends, unit = prepared
        return {name: once(unit, bins) for name, (bins, _) in end_bins(ends, self.frame, self.zones, set(self.names)).items()}


def _refuse_too_few(n: float, noise: NoiseLevel) -> None:
    """Raise InputError if there are too few trips, by the charged count and public numbers alone."""
    needed = min_trips(noise)
    if n < needed:
        raise InputError(
            f"a noisy count found about {max(n, 0):,.0f} trips in the box, and with this budget a release shows more than its "
            f"noise from about {needed:,.0f} on.",
            f"Give about {needed / max(n, 1.0):.1f} times the epsilon, more trips, a smaller max_trips, or check the box. What "
            "the ledger was charged stays charged.",
        )


def shares(*, hours: int, step_tables: bool, timed: bool) -> dict[str, float]:
    """Return the share of the budget of each table; they add up to one."""
    if hours == 1:
        parts = FINE_SHARES if step_tables else COARSE_SHARES
    else:
        parts = FINE_HOURS_SHARES if step_tables else COARSE_HOURS_SHARES
    if not timed:
        return dict(parts)
    pace = {name: value for name, value in SPEED_SHARES.items() if name == "pace" or hours > 1}
    left = (1 - COUNT_SHARE - sum(pace.values())) / (1 - COUNT_SHARE)
    return {name: value if name == "n" else value * left for name, value in parts.items()} | pace


def min_trips(noise: NoiseLevel) -> float:
    """Return the smallest noisy number of trips that is released."""
    return MIN_TRIPS_SDS * noise.deviation(COUNT_SHARE)


def block_of(grid: Grid, n: float, noise: NoiseLevel) -> int:
    """Return the grid cells along a side of a coarse cell: fewer with more trips or less noise."""
    worth = max(n, 1.0) / (MIN_MEAN_COUNT_SDS * noise.deviation(REFERENCE_SHARE))
    return int(np.clip(round(sqrt(grid.n_cells / worth)), 1, max(1, ceil(min(grid.rows, grid.columns) / 2))))


def use_step_tables(n: float, block: int, noise: NoiseLevel) -> bool:
    """Decide whether steps and numbers of cells get tables; shapes describe few trips better."""
    return block == 1 and n > MIN_STEP_TABLE_TRIPS_SDS * noise.deviation(REFERENCE_SHARE)


def use_shape_weights(n: float, n_cells: int, noise: NoiseLevel) -> bool:
    """Decide whether trips drawn with step tables are weighted by shape too: if they are few for the noise or the cells."""
    return n < MAX_SHAPE_WEIGHT_TRIPS_SDS * noise.deviation(REFERENCE_SHARE) or n < n_cells


def stride_of(frame_m: float, slot_s: float) -> float:
    """Return the coarse cells between two points of a typical trip."""
    return TYPICAL_SPEED_KMH / 3.6 * slot_s / frame_m


def zone_depths(n: float, hours: int, part: dict[str, float], noise: NoiseLevel) -> dict[str, int]:
    """Return the number of halvings of the box for the zones of each table."""

    def halved(name: str, trips: float, ends: int) -> int:
        """Return the halvings for one table; 0 where it is not measured."""
        return depth_of(trips, noise.deviation(part[name]), ends) if name in part else 0

    pairs, by_hour = halved("pairs", n * PAIR_REFINEMENT, 2), halved("source_hour", n / hours, 1)
    pairs_hour = halved("pairs_hour", n / hours, 2)
    fine = max(pairs, by_hour)
    by_hour = by_hour if "source_hour" in part else fine
    if "pairs_hour" in part:  # the joint distribution needs zones that all its tables distinguish
        fine, pairs = by_hour, min(pairs, by_hour)
        pairs_hour = min(pairs_hour, pairs)
    return {"fine": fine, "by_hour": by_hour, "pairs": pairs, "pairs_hour": pairs_hour}
