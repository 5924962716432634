"""Which tables flock asks for, round by round, how fine they are and what each gets of the budget.

Rules of public parameters and noisy answers, never of the data.
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
from murmurate.synthesis.ends import depth_of
from murmurate.synthesis.moves import reach_of
from murmurate.synthesis.zones import zones_of_equal_mass

REFERENCE_SHARE = 0.2

COARSE_SHARES = {
    "n": 0.02,
    "ends": 0.23,
    "places": 0.02,
    "visits": 0.45,
    "pairs": 0.06,
    "diameter": 0.11,
    "shape": 0.11,
}
"""Shares of the budget where trips are few for the noise: routes are walked on blocks of cells."""

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
"""Shares where they are many: every cell is walked on, and steps are counted one by one."""

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

COUNT_SHARE = 0.02
"""Of the number of trips: it is asked first, because it decides which of these applies."""

SPEED_SHARES = {"pace": 0.02, "pace_hour": 0.01}
"""Shares of speeds, where trips have times; the other tables but the count leave room for them."""

MIN_TRIPS_SDS = 3.0
"""Trips that make sense of a release, in deviations of their noisy count; tables then have some bins clear of their noise."""

MIN_MEAN_COUNT_SDS = 2.5
"""Coarse cells are as small as their mean count stays this many deviations of a table with a fifth of the budget."""

MIN_STEP_TABLE_TRIPS_SDS = 3_000.0
"""Steps and sizes are counted one by one from this many deviations (of a table with a fifth of the budget) of trips on."""

MAX_SHAPE_WEIGHT_TRIPS_SDS = 10_000.0
"""Up to this many deviations of trips, trips made of counted steps are weighed by how far and how long they go as well: the
fewer trips, the more their steps err together. Beyond it a second look at noisy lengths takes more than it gives."""

TYPICAL_SPEED_KMH = 25.0
"""How fast trips in cities are known to go, anywhere: it tells corners crossed from edges crossed, nothing else."""

PAIR_REFINEMENT = 4.0
"""Pairs are told apart this much finer than tables that stand alone: log_weights are shrunk bin by bin."""

CANDIDATES_PER_TRIP = {"coarse": 3, "fine": 2}
"""Candidates drawn for each trip that is kept: fewer where moves are counted, as their law is nearer to the tables."""

UNTIMED_REACH_CELLS = 7
UNTIMED_STRIDE_CELLS = 0.5
LINKS_SHARE = 0.08
"""Share of the budget for the use of links, on roads; the other tables leave room for it."""
TRACK_TABLES = ("ends", "places", "visits", "apart", "diameter", "shape", "sizes", "sizes_hour", "towards", "steps")
"""Tables of the second round, over tracks."""
ZONE_TABLES = ("source_hour", "destination_hour", "pairs", "pairs_hour")
"""Tables of the third round, over zones that the second round's answers make."""


@dataclass(frozen=True)
class NoiseLevel:
    """How noisy a table is that gets a share of the budget: of what the roads leave, for a unit that adds up to `limit`."""

    budget: Budget
    portion: float = 1.0
    limit: float = 1.0

    def deviation(self, share: float) -> float:
        """Standard deviation of the noise of each count."""
        return self.budget.deviation(share * self.portion, self.limit)


@dataclass(frozen=True, kw_only=True, eq=False)
class Plan:
    """The rounds of a release: public parameters, and what earlier answers make of them."""

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
        return NoiseLevel(self.budget, 1.0 if self.network is None else 1 - LINKS_SHARE, self.limit)

    @property
    def norm(self) -> Norm:
        return self.budget.norm

    def ask(self) -> Round | None:
        """The next round."""
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
        """First noisy number of trips."""
        return max(float(self.answers["n"].noisy[0]), 1.0)

    @cached_property
    def shares(self) -> dict[str, float]:
        return shares(hours=self.hours, step_tables=use_step_tables(self.n, self.frame.block, self.noise), timed=self.timed)

    @cached_property
    def frame(self) -> Frame:
        """Coarse cells, as small as the noisy number of trips allows."""
        block = block_of(self.grid, self.n, self.noise)
        reach, stride = UNTIMED_REACH_CELLS, UNTIMED_STRIDE_CELLS
        if self.timed:
            reach = reach_of(cell_m=self.grid.cell_m * block, max_speed_kmh=self.max_speed_kmh, slot_s=self.slot_s)
            stride = stride_of(self.grid.cell_m * block, self.slot_s)
        return Frame(grid=self.grid, block=block, reach=reach, hours=self.hours, max_cells=self.max_cells, stride=stride)

    @cached_property
    def link_groups(self) -> Integers | None:
        """[link] group of links that are counted together; None without roads."""
        if self.network is None:
            return None
        return groups_of(self.network, self.n, self.budget.deviation(LINKS_SHARE, self.limit))

    @cached_property
    def end_cells(self) -> Floats:
        """[fine cell] estimated ends: coarse cells first (as visits lie where ends have no table), then fine cells in them."""
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
        """Zones of equal estimated ends."""
        depth = zone_depths(self.n, self.hours, self.shares, self.noise)
        zone = zones_of_equal_mass(self.end_cells, rows=self.grid.rows, columns=self.grid.columns, depth=depth["fine"])
        return Zones(zone, **depth)

    def refined_n(self) -> float:
        """The number of trips from every table that each trip enters once, by inverse variance."""
        total = weight = 0.0
        for name in ("n", "pairs", "diameter", "source_hour", "destination_hour"):
            if name in self.answers:
                answer = self.answers[name]
                precision = 1.0 / (answer.noisy.size * answer.deviation**2)
                total, weight = total + precision * float(answer.noisy.sum()), weight + precision
        return max(total / weight, 1.0)

    def _tracks(self) -> Round:
        names = tuple(name for name in (*TRACK_TABLES, "pace", "pace_hour") if name in self.shares)
        sizes = table_bins(self.frame)
        tables = [self._table(name, sizes[name], self.shares[name]) for name in names]
        prepare: Any = ReadTracks(self.frame, self.slot_s)
        links = None
        if self.network is not None and self.link_groups is not None:
            prepare = ReadLinks(prepare, self.network)
            n_groups = int(self.link_groups.max()) + 1
            tables.append(Table(name="links", n_bins=n_groups, share=LINKS_SHARE, limit=self.limit))
            links = Links(self.link_groups, n_groups)
        return Round(tables=tuple(tables), prepare=prepare, contribute=CountTracks(self.frame, names, self.norm, links))

    def _zones(self) -> Round:
        names = tuple(name for name in ZONE_TABLES if name in self.shares)
        count = CountEnds(self.frame, self.zones, names)
        tables = tuple(self._table(name, n_bins, self.shares[name]) for name, n_bins in count.sizes().items())
        return Round(tables=tables, prepare=ReadEnds(self.frame, self.slot_s), contribute=count)

    def _table(self, name: str, n_bins: int, share: float) -> Table:
        return Table(name=name, n_bins=n_bins, share=share * self.noise.portion, limit=self.limit)


def _count_trips(unit: Integers) -> Mapping[str, Contributions]:
    return {"n": once(unit, np.zeros_like(unit))}


@dataclass(frozen=True)
class CountTracks:
    """What tracks add to the tables of the second round."""

    frame: Frame
    names: tuple[str, ...]
    norm: Norm
    links: Links | None

    def __call__(self, prepared: Any) -> Mapping[str, Contributions]:
        """Rows of every table."""
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
    """What the ends of trips add to the tables over zones."""

    frame: Frame
    zones: Zones
    names: tuple[str, ...]

    def sizes(self) -> dict[str, int]:
        """Bins of each table."""
        nothing = np.zeros(0, dtype=np.int64)
        found = end_bins(End(nothing, nothing, nothing), self.frame, self.zones, set(self.names))
        return {name: found[name][1] for name in self.names}

    def __call__(self, prepared: tuple[End, Integers]) -> Mapping[str, Contributions]:
        """Rows of every table."""
        ends, unit = prepared
        return {name: once(unit, bins) for name, (bins, _) in end_bins(ends, self.frame, self.zones, set(self.names)).items()}


def _refuse_too_few(n: float, noise: NoiseLevel) -> None:
    """Refuse by the charged count and public numbers alone, so that the refusal itself reveals nothing else."""
    needed = min_trips(noise)
    if n < needed:
        raise InputError(
            f"a noisy count found about {max(n, 0):,.0f} trips in the box, and with this budget a release shows more than its "
            f"noise from about {needed:,.0f} on.",
            f"Give about {needed / max(n, 1.0):.1f} times the epsilon, more trips, a smaller max_trips, or check the box. What "
            "the ledger was charged stays charged.",
        )


def shares(*, hours: int, step_tables: bool, timed: bool) -> dict[str, float]:
    """What each table gets; they add up to one."""
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
    """How many trips a release needs to show more than its noise."""
    return MIN_TRIPS_SDS * noise.deviation(COUNT_SHARE)


def block_of(grid: Grid, n: float, noise: NoiseLevel) -> int:
    """Fine cells along a side of a coarse cell: more trips or less noise, smaller cells."""
    worth = max(n, 1.0) / (MIN_MEAN_COUNT_SDS * noise.deviation(REFERENCE_SHARE))
    return int(np.clip(round(sqrt(grid.n_cells / worth)), 1, max(1, ceil(min(grid.rows, grid.columns) / 2))))


def use_step_tables(n: float, block: int, noise: NoiseLevel) -> bool:
    """Whether steps and sizes get tables; few trips are better told by how far and how long they go."""
    return block == 1 and n > MIN_STEP_TABLE_TRIPS_SDS * noise.deviation(REFERENCE_SHARE)


def use_shape_weights(n: float, n_cells: int, noise: NoiseLevel) -> bool:
    """Whether trips of counted steps are weighed by their shapes too: where trips are few for the noise or for the cells."""
    return n < MAX_SHAPE_WEIGHT_TRIPS_SDS * noise.deviation(REFERENCE_SHARE) or n < n_cells


def stride_of(frame_m: float, slot_s: float) -> float:
    """Coarse cells between two points of a usual trip."""
    return TYPICAL_SPEED_KMH / 3.6 * slot_s / frame_m


def zone_depths(n: float, hours: int, part: dict[str, float], noise: NoiseLevel) -> dict[str, int]:
    """How often the box is halved for the zones of each table."""

    def halved(name: str, trips: float, ends: int) -> int:
        return depth_of(trips, noise.deviation(part[name]), ends) if name in part else 0

    pairs, by_hour = halved("pairs", n * PAIR_REFINEMENT, 2), halved("source_hour", n / hours, 1)
    pairs_hour = halved("pairs_hour", n / hours, 2)
    fine = max(pairs, by_hour)
    by_hour = by_hour if "source_hour" in part else fine
    if "pairs_hour" in part:  # a law over pairs and hours is made of zones that all its tables tell apart
        fine, pairs = by_hour, min(pairs, by_hour)
        pairs_hour = min(pairs_hour, pairs)
    return {"fine": fine, "by_hour": by_hour, "pairs": pairs, "pairs_hour": pairs_hour}
