"""Assign trips to the bins of flock's tables, in the same way for private trips (to count) and synthetic ones."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

import numpy as np

from murmurate.asking import STEPS, Contributions, Norm
from murmurate.asking.clipping import spread
from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tracks import End, Frame, Tracks
from murmurate.synthesis.moves import grams, move_bins
from murmurate.synthesis.sizes import n_rings_of, rings

N_DIAMETERS = 18
"""Bins of diameter, from FIRST_DIAMETER_M to 39 km and more. Chosen by hand."""
FIRST_DIAMETER_M = 60.0
"""Upper edge of the first bin of diameter, in metres. Chosen by hand."""
DIAMETER_GROWTH = 1.5
"""Ratio of the upper edges of two consecutive bins of diameter. Chosen by hand."""
APART_RATIO_EDGES = (0.15, 0.4, 0.7, 0.9)
"""Bin edges of the distance between the ends divided by the diameter. Chosen by hand."""
LENGTH_RATIO_EDGES = (1.03, 1.15, 1.4, 2.0, 3.5)
"""Bin edges of the length divided by the diameter; finer near 1. Chosen by hand."""
DIAMETERS_PER_SHAPE_ROW = 2
"""Bins of diameter that share a row of the shape table, so that a row has more trips. Chosen by hand."""
N_SPEEDS = 12
"""Bins of speed: the first below FIRST_SPEED_KMH, each later one SPEED_GROWTH times as wide, up to 77 km/h and more. Chosen by
hand."""
DIAMETERS_PER_SPEED_ROW = 3
"""Bins of diameter that share a row of the speed table, so that a row has more trips. Chosen by hand."""
N_SPEED_ROWS = N_DIAMETERS // DIAMETERS_PER_SPEED_ROW
"""Rows of the speed table; follows from the two numbers above."""
N_SHAPES = -(-N_DIAMETERS // DIAMETERS_PER_SHAPE_ROW) * (len(APART_RATIO_EDGES) + 1) * (len(LENGTH_RATIO_EDGES) + 1)
"""Bins of the shape table: rows of diameter, times bins of both ratios."""


@dataclass(frozen=True, eq=False)
class Zones:
    """Zones of equal noisy mass of the grid cells, and the number of halvings used by each table."""

    zone: Integers
    """[grid cell] zone at the finest depth."""
    fine: int
    """Halvings of the finest zones."""
    by_hour: int
    """Halvings for the tables of either end by hour."""
    pairs: int
    """Halvings for the table of pairs."""
    pairs_hour: int
    """Halvings for the table of pairs by hour."""
    favour: Floats
    """[coarse cell] weight of a visit among the visits of a trip: more for cells that few trips are expected to visit."""

    def at(self, cell: Integers, depth: int) -> Integers:
        """Return the zone of each grid cell at a depth."""
        return self.zone[cell] >> (self.fine - depth)


@dataclass(frozen=True, eq=False)
class TripContributions:
    """Contribution of each trip to the bins of one table, in fixed-point steps: norm at most one count a trip."""

    trip: Integers
    bin: Integers
    weight: Integers
    n_bins: int

    def table(self) -> Integers:
        """Return the sum over trips, in fixed-point steps."""
        fixed = np.zeros(self.n_bins, dtype=np.int64)
        np.add.at(fixed, self.bin, self.weight)
        return fixed

    def contributions(self, unit: Integers) -> Contributions:
        """Return the same rows by unit; `unit` names the unit of each trip."""
        return Contributions(unit[self.trip], self.bin, self.weight)


def one_bin_each(bins: Integers, n_bins: int) -> TripContributions:
    """Let each trip add one count to one bin."""
    return TripContributions(np.arange(len(bins), dtype=np.int64), bins, np.full(len(bins), STEPS, dtype=np.int64), n_bins)


def divide_among_bins(
    bins: Integers, trip: Integers, n_bins: int, norm: Norm, favour: Floats | None = None
) -> TripContributions:
    """Divide one count of each trip among its distinct bins, in proportion to `favour` [bin]; `trip` is ascending."""
    owner, place, weight = spread(bins, trip, STEPS, norm == "l2", favour)
    return TripContributions(owner, place, weight, n_bins)


def trip_contributions(
    names: Iterable[str], tracks: Tracks, frame: Frame, zones: Zones | None, norm: Norm
) -> dict[str, TripContributions]:
    """Return the contributions of trips to the named tables; tables over zones need the zones."""
    wanted = set(names)
    found: dict[str, TripContributions] = {}
    once = _single_bins(tracks, frame, zones, wanted)
    for name, (bins, n_bins) in once.items():
        found[name] = one_bin_each(bins, n_bins)
    for name, (owner, bins, n_bins) in _divided_bins(tracks, frame, wanted).items():
        favour = zones.favour if zones is not None and name == "visits" else None
        found[name] = divide_among_bins(bins, owner, n_bins, norm, favour)
    return found


def _single_bins(tracks: Tracks, frame: Frame, zones: Zones | None, wanted: set[str]) -> Mapping[str, tuple[Integers, int]]:
    """Return bins and table sizes of the tables that a trip enters once."""
    hour, hours = tracks.walks.hours, frame.hours
    bins: dict[str, tuple[Integers, int]] = {}
    if "diameter" in wanted:
        bins["diameter"] = (diameter_bin(tracks.diameter_m) * 2 + tracks.repeats, N_DIAMETERS * 2)
    if "shape" in wanted:
        bins["shape"] = (shape_bin(tracks, frame.grid.cell_m), N_SHAPES)
    size = np.minimum(tracks.walks.sizes, frame.max_cells) - 1
    if "sizes" in wanted:
        ring = rings(tracks.walks.sources, tracks.walks.destinations, frame.columns)
        bins["sizes"] = (ring * frame.max_cells + size, n_rings_of(frame.rows, frame.columns) * frame.max_cells)
    if "sizes_hour" in wanted:
        bins["sizes_hour"] = (hour * frame.max_cells + size, hours * frame.max_cells)
    return bins | end_bins(End(tracks.source, tracks.destination, hour), frame, zones, wanted)


def end_bins(trips: End, frame: Frame, zones: Zones | None, wanted: set[str]) -> dict[str, tuple[Integers, int]]:
    """Return bins and table sizes of the tables over the ends alone."""
    hour, hours = trips.hour, frame.hours
    bins: dict[str, tuple[Integers, int]] = {}
    ends = trips.source, trips.destination
    for name, end in zip(("origins", "destinations"), ends, strict=True):
        if name in wanted:
            bins[name] = (frame.coarse_of(end), frame.n_coarse)
    if zones is None:
        return bins
    for name, end in zip(("source_hour", "destination_hour"), ends, strict=True):
        if name in wanted:
            bins[name] = (zones.at(end, zones.by_hour) * hours + hour, 2**zones.by_hour * hours)
    if "pairs" in wanted:
        source, destination = (zones.at(end, zones.pairs) for end in ends)
        bins["pairs"] = ((source << zones.pairs) + destination, 4**zones.pairs)
    if "pairs_hour" in wanted:
        source, destination = (zones.at(end, zones.pairs_hour) for end in ends)
        pair = (source << zones.pairs_hour) + destination
        bins["pairs_hour"] = (pair * hours + hour, 4**zones.pairs_hour * hours)
    return bins


def _divided_bins(tracks: Tracks, frame: Frame, wanted: set[str]) -> Mapping[str, tuple[Integers, Integers, int]]:
    """Return trip, bin and table size of the tables over which a trip divides its count."""
    walks = tracks.walks
    trip = np.arange(tracks.n, dtype=np.int64)
    bins: dict[str, tuple[Integers, Integers, int]] = {}
    both, owner = np.column_stack([tracks.source, tracks.destination]).ravel(), np.repeat(trip, 2)
    if "ends" in wanted:
        bins["ends"] = (owner, frame.coarse_of(both), frame.n_coarse)
    if "places" in wanted:
        bins["places"] = (owner, both, frame.grid.n_cells)
    if "visits" in wanted:
        bins["visits"] = (walks.trip_of_cell, walks.cells, frame.n_coarse)
    if {"towards", "steps"} & wanted:
        found = grams(walks, frame.around)
        moves = move_bins(found, frame.around)
        bins |= {name: (found.trip, *moves[name]) for name in ("towards", "steps") if name in wanted}
    return bins


def table_bins(frame: Frame) -> dict[str, int]:
    """Return the number of bins of every table over tracks."""
    sizes = n_rings_of(frame.rows, frame.columns) * frame.max_cells
    around = frame.around
    return {
        "ends": frame.n_coarse, "origins": frame.n_coarse, "destinations": frame.n_coarse, "visits": frame.n_coarse,
        "places": frame.grid.n_cells,
        "diameter": N_DIAMETERS * 2, "shape": N_SHAPES, "sizes": sizes, "sizes_hour": frame.hours * frame.max_cells,
        "towards": around.n_relative * around.n_offsets, "steps": around.n_cells * around.n_offsets,
        "pace": N_SPEED_ROWS * N_SPEEDS, "pace_hour": frame.hours * N_SPEEDS,
    }  # fmt: skip


def zone_table_bins(hours: int, depths: Mapping[str, int]) -> dict[str, int]:
    """Return the number of bins of every table over zones, given the halvings of each."""
    ends = 2 ** depths["by_hour"] * hours
    pairs, pairs_hour = 4 ** depths["pairs"], 4 ** depths["pairs_hour"] * hours
    return {"source_hour": ends, "destination_hour": ends, "pairs": pairs, "pairs_hour": pairs_hour}


def diameter_bin(diameter_m: Floats) -> Integers:
    """Return the bin of each diameter."""
    growing = np.ceil(np.log(np.maximum(diameter_m, FIRST_DIAMETER_M) / FIRST_DIAMETER_M) / np.log(DIAMETER_GROWTH)).astype(
        np.int64
    )
    return np.minimum(growing, N_DIAMETERS - 1)


def shape_bin(tracks: Tracks, cell_m: float) -> Integers:
    """Return one bin for the diameter, the distance of the ends over it and the length over it."""
    diameter = np.maximum(tracks.diameter_m, 1.0)
    apart = np.searchsorted(APART_RATIO_EDGES, tracks.apart_cells * cell_m / diameter)
    length = np.searchsorted(LENGTH_RATIO_EDGES, tracks.length_m / diameter)
    row = diameter_bin(tracks.diameter_m) // DIAMETERS_PER_SHAPE_ROW
    return np.asarray((row * (len(APART_RATIO_EDGES) + 1) + apart) * (len(LENGTH_RATIO_EDGES) + 1) + length)
