"""Choose which tables flock measures in each round, how fine they are, and the share of the budget of each.

The rules use public parameters and earlier noisy counts, never the data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import ceil, log, sqrt
from typing import Any

import numpy as np

from murmurate.asking import Budget, Norm, Round, Table
from murmurate.asking.table import Answers
from murmurate.asking.units import SHARE as UNITS_SHARE
from murmurate.asking.units import TripsPerUnit, units_table
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.mechanisms.flock.counting import (
    SPEED_TABLES,
    TRACK_TABLES,
    ZONE_TABLES,
    CountTracks,
    CountZones,
    count_trips,
    count_unit_sizes,
)
from murmurate.mechanisms.flock.estimates import estimate_cells, interpolate_density, separate_ends
from murmurate.mechanisms.flock.mask import Mask
from murmurate.mechanisms.flock.prediction import RARITY_POWER, Prediction, predict_visits
from murmurate.mechanisms.flock.roads import Links, ReadLinks, groups_of
from murmurate.mechanisms.flock.shares import COUNT_SHARE, shares
from murmurate.mechanisms.flock.tables import Zones, table_bins, zone_table_bins
from murmurate.mechanisms.flock.tracks import Frame, ReadTracks, ReadUnits
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.route_table import prepare as prepare_routes
from murmurate.synthesis.ends import depth_of
from murmurate.synthesis.moves import reach_of
from murmurate.synthesis.zones import zones_of_equal_mass

REFERENCE_SHARE = 0.2
"""Share of the budget of the notional table whose noise standard deviation is the unit of the thresholds below. Chosen by
hand."""

JOINT_COUNT_SHARES = {"units": UNITS_SHARE, "n": 0.01, "n_tracks": 0.005, "n_zones": 0.005}
"""Shares of the numbers of units and trips where units above the trip are clipped jointly: trips per unit, trips, and the
weighted trips of either round. They take the place of COUNT_SHARE; the other tables are scaled down. Chosen by hand."""

COUNTED_QUANTILE = 0.9
"""Where units are clipped jointly, each adds up to this quantile of the trips per unit to the number of trips. Chosen by hand:
higher ones add noise, lower ones leave trips out."""

MIN_TRIPS_SDS = 3.0
"""Smallest noisy number of trips that is released, in standard deviations of that number. Chosen by hand, so that tables have
some bins clear of their noise."""

MIN_MEAN_COUNT_SDS = 2.5
"""Smallest mean count of a coarse cell, in noise standard deviations of a table with REFERENCE_SHARE. Coarse cells are made as
small as this allows. Chosen by hand."""

DETAIL_COUNT_SDS = {"l1": (2.0, 6.0), "l2": (0.4, 1.6)}
"""Mean count of a grid cell, in the same standard deviations, at which detail begins to grow and at which it reaches 1; in
between it grows with the logarithm. Smaller under Gaussian noise, where a small share costs less. Chosen on half of the San
Francisco taxis and on the built-in city."""

VISITED_CELLS = 9.0
"""Typical number of coarse cells of a trip. Under Gaussian noise a trip adds 1 / sqrt(cells) to each of them, under Laplace
noise 1 / cells, so that counts stand sqrt(cells) times clearer of Gaussian noise. From general knowledge of city trips."""

TYPICAL_SPEED_KMH = 25.0
"""Typical speed of trips in cities, in km/h, from general knowledge; it only sets how often a step crosses a corner of a
cell."""

PAIR_REFINEMENT = 4.0
"""Origin-destination zones may be this many times finer than single-zone tables, because their log-weights are shrunk per bin.
It falls to 1 as detail grows to 1. Chosen by hand."""

CANDIDATES_PER_TRIP = 3
"""Candidates drawn for each trip that is kept. Chosen by hand."""

UNTIMED_REACH_CELLS = 7
"""Coarse cells a step may cross where trips have no times. Chosen by hand; 100 km/h give the same on cells of 250 m and slots
of a minute."""
UNTIMED_STRIDE_CELLS = 0.5
"""Coarse cells between two points of a trip where trips have no times. Chosen by hand."""
LINKS_SHARE = 0.08
"""Share of the budget for the use of links, on roads; the other tables are scaled down. Lowered from 12 % after comparing both
on the built-in city and San Francisco."""


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
    max_trips: int | None
    joint: bool
    """Whether a unit is clipped over all tables of a round together."""
    clip: float | None
    """Norm of what a unit adds to joint tables; None takes it from the noisy numbers of trips per unit."""
    answers: Answers
    mask: Mask | None = None
    """Where trips may be; None: everywhere in the box."""

    @cached_property
    def limit(self) -> float:
        """Return the largest norm of what one unit adds to tables over cells."""
        if not self.joint:
            return float(self.max_trips or 1)
        return self.clip or self.per_unit.clip()

    @cached_property
    def per_unit(self) -> TripsPerUnit:
        """Return the noisy numbers of trips per unit, where units are clipped jointly."""
        return TripsPerUnit(self.answers["units"])

    @cached_property
    def noise(self) -> NoiseLevel:
        """Return the noise of tables over cells."""
        return NoiseLevel(self.budget, self._portion, self.limit)

    @property
    def _portion(self) -> float:
        """Return the part of the budget that is left for tables over cells beside links and the counts of joint clips."""
        portion = 1.0 if self.network is None else 1 - LINKS_SHARE
        return (portion - sum(JOINT_COUNT_SHARES.values())) / (1 - COUNT_SHARE) if self.joint else portion

    @property
    def norm(self) -> Norm:
        """Return the norm in which one unit's change of a table is bounded."""
        return self.budget.norm

    def ask(self) -> Round | None:
        """Return the next round; None when all tables are measured."""
        if self.joint and "units" not in self.answers:
            return Round(tables=(units_table(),), prepare=ReadUnits(self.grid), contribute=count_unit_sizes)
        if not self.joint and "n" not in self.answers:
            return Round(tables=(self._table("n", 1, COUNT_SHARE),), prepare=ReadUnits(self.grid), contribute=count_trips)
        _refuse_too_few(self.n, self.noise)
        if "ends" not in self.answers:
            return self._tracks()
        if "pairs" not in self.answers:
            return self._zones()
        return None

    @cached_property
    def n(self) -> float:
        """Return the number of trips that the first round found, at least 1."""
        if self.joint:  # from the first round alone, as the frame of all rounds follows from it
            return self.per_unit.trips(self._counted)
        return max(float(self.answers["n"].noisy[0]), 1.0)

    @property
    def _counted(self) -> int:
        """Return the trips that a unit adds to the number of trips at most, where units are clipped jointly."""
        return self.per_unit.quantile(COUNTED_QUANTILE)

    @cached_property
    def shares(self) -> dict[str, float]:
        """Return the share of the budget of each table."""
        return shares(hours=self.hours, detail=self.detail, timed=self.timed, norm=self.norm)

    @cached_property
    def detail(self) -> float:
        """Return how far the tables describe steps, from 0 (few trips for the noise) to 1."""
        return detail_of(self.grid.n_cells, self.n, self.noise)

    @cached_property
    def frame(self) -> Frame:
        """Return the frame, with coarse cells as small as the noisy number of trips allows."""
        block = block_of(self.grid, self.n, self.noise)
        reach, stride = UNTIMED_REACH_CELLS, UNTIMED_STRIDE_CELLS
        if self.timed:
            reach = reach_of(cell_m=self.grid.cell_m * block, max_speed_kmh=self.max_speed_kmh, slot_s=self.slot_s)
            stride = stride_of(self.grid.cell_m * block, self.slot_s)
        return Frame(
            grid=self.grid, block=block, reach=reach, hours=self.hours, max_cells=self.max_cells, stride=stride, mask=self.mask
        )  # fmt: skip

    @cached_property
    def link_groups(self) -> Integers | None:
        """Return [link] the group of links that are counted together; None without roads."""
        if self.network is None:
            return None
        return groups_of(self.network, self.n, self.budget.deviation(LINKS_SHARE, self.limit))

    @cached_property
    def prediction(self) -> Prediction:
        """Return the visits that ends and shapes suggest."""
        power = RARITY_POWER * (1 - self.detail)
        return predict_visits(self.end_cells(self.frame.coarse_area), self.answers, self.frame, self.norm, power)

    def end_cells(self, expected: Floats) -> Floats:
        """Estimate [grid cell] ends: coarse cells first (shrunk towards `expected`), then grid cells within them."""
        answers, frame = self.answers, self.frame
        coarse = estimate_cells(answers["ends"], frame.rows, frame.columns, expected)
        if "origins" in answers:
            coarse = sum(separate_ends(answers, frame, coarse), np.zeros(1))
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
        depth = zone_depths(self.n, self.hours, self.shares, self.noise, self.detail)
        zone = zones_of_equal_mass(
            self.end_cells(self.frame.coarse_area), rows=self.grid.rows, columns=self.grid.columns, depth=depth["fine"]
        )
        return Zones(zone, **depth, favour=self.prediction.favour)

    def refined_n(self) -> float:
        """Return the number of trips averaged by inverse variance over every table that each trip enters once."""
        if self.joint:  # the other tables are scaled to it
            return max(float(self.answers["n"].noisy[0]), 1.0)
        total = weight = 0.0
        for name in ("n", "pairs", "diameter", "origins", "destinations", "source_hour", "destination_hour"):
            if name in self.answers:
                answer = self.answers[name]
                precision = 1.0 / (answer.noisy.size * answer.deviation**2)
                total, weight = total + precision * float(answer.noisy.sum()), weight + precision
        return max(total / weight, 1.0)

    def _tracks(self) -> Round:
        """Return the second round: tables over tracks and, on roads, the use of links."""
        names = tuple(name for name in (*TRACK_TABLES, *SPEED_TABLES) if name in self.shares)
        sizes = table_bins(self.frame)
        tables = [self._table(name, sizes[name], self.shares[name]) for name in names]
        totals = ("n", "n_tracks") if self.joint else ()
        if self.joint:
            tables.append(Table(name="n", n_bins=1, share=JOINT_COUNT_SHARES["n"], limit=float(self._counted)))
            tables.append(self._weighted_trips("n_tracks"))
        prepare: Any = ReadTracks(self.frame, self.slot_s)
        links = None
        if self.network is not None and self.link_groups is not None:
            prepare_routes(self.network)  # public; once here, so that processes find the routes on disk
            prepare = ReadLinks(prepare, self.network)
            n_groups = int(self.link_groups.max()) + 1
            tables.append(Table(name="links", n_bins=n_groups, share=LINKS_SHARE, limit=self.limit, joint=self.joint))
            links = Links(self.link_groups, n_groups)
        return Round(tables=tuple(tables), prepare=prepare, contribute=CountTracks(self.frame, names, self.norm, links, totals))

    def _zones(self) -> Round:
        """Return the third round: tables over zones."""
        names = tuple(name for name in ZONE_TABLES if name in self.shares)
        zones = self.zones
        sizes = table_bins(self.frame) | zone_table_bins(self.hours, vars(zones))
        tables = [self._table(name, sizes[name], self.shares[name]) for name in names]
        count = CountZones(self.frame, zones, names, self.norm, ("n_zones",) if self.joint else ())
        if self.joint:
            tables.append(self._weighted_trips("n_zones"))
        return Round(tables=tuple(tables), prepare=ReadTracks(self.frame, self.slot_s), contribute=count)

    def _table(self, name: str, n_bins: int, share: float) -> Table:
        """Return a table over cells with its share of the whole budget."""
        return Table(name=name, n_bins=n_bins, share=share * self.noise.portion, limit=self.limit, joint=self.joint)

    def _weighted_trips(self, name: str) -> Table:
        """Return the table of the number of trips of a round, each as its unit's weight, by which the round is scaled."""
        return Table(name=name, n_bins=1, share=JOINT_COUNT_SHARES[name], limit=self.limit, joint=True)


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


def min_trips(noise: NoiseLevel) -> float:
    """Return the smallest noisy number of trips that is released."""
    return MIN_TRIPS_SDS * noise.deviation(COUNT_SHARE)


def count_sds(n_cells: int, n: float, noise: NoiseLevel) -> float:
    """Return the mean count of a cell, in noise standard deviations of a table with REFERENCE_SHARE."""
    clearer = sqrt(VISITED_CELLS) if noise.budget.norm == "l2" else 1.0
    return max(n, 1.0) * clearer / (noise.deviation(REFERENCE_SHARE) * n_cells)


def block_of(grid: Grid, n: float, noise: NoiseLevel) -> int:
    """Return the grid cells along a side of a coarse cell: fewer with more trips or less noise."""
    side = sqrt(MIN_MEAN_COUNT_SDS / count_sds(grid.n_cells, n, noise))
    return int(np.clip(round(side), 1, max(1, ceil(min(grid.rows, grid.columns) / 2))))


def detail_of(n_cells: int, n: float, noise: NoiseLevel) -> float:
    """Return how far steps and numbers of cells are described by tables of their own, from 0 to 1."""
    low, high = DETAIL_COUNT_SDS[noise.budget.norm]
    return float(np.clip(log(count_sds(n_cells, n, noise) / low) / log(high / low), 0.0, 1.0))


def stride_of(frame_m: float, slot_s: float) -> float:
    """Return the coarse cells between two points of a typical trip."""
    return TYPICAL_SPEED_KMH / 3.6 * slot_s / frame_m


def zone_depths(n: float, hours: int, part: dict[str, float], noise: NoiseLevel, detail: float) -> dict[str, int]:
    """Return the number of halvings of the box for the zones of each table."""

    def halved(name: str, trips: float, ends: int) -> int:
        """Return the halvings for one table; 0 where it is not measured."""
        return depth_of(trips, noise.deviation(part[name]), ends) if name in part else 0

    pairs, by_hour = halved("pairs", n * PAIR_REFINEMENT ** (1 - detail), 2), halved("source_hour", n / hours, 1)
    pairs_hour = halved("pairs_hour", n / hours, 2)
    fine = max(pairs, by_hour)
    by_hour = by_hour if "source_hour" in part else fine
    if "pairs_hour" in part:  # the joint distribution needs zones that all its tables distinguish
        fine, pairs = by_hour, min(pairs, by_hour)
        pairs_hour = min(pairs_hour, pairs)
    return {"fine": fine, "by_hour": by_hour, "pairs": pairs, "pairs_hour": pairs_hour}
