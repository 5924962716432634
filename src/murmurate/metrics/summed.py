"""Sides too large for memory: sums over all points and one value a trip, part by part, and the points of a sample of trips."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import Side

SUMMED = frozenset(
    (
        "length", "duration", "speed", "trip_size", "od_emd", "od_emd_whole", "od_matrix", "od_queries", "visits",
        "counting_queries", "range_queries", "top_places", "hot_spots", "time_of_day", "adatrace_length",
        "dpmobility_visits", "dpmobility_od",
    )
)  # fmt: skip
"""Metrics that read sums and values of trips alone, so that all trips count whatever their number."""
SAMPLE_POINTS = 2_000_000
"""Points of each side, about, that the other metrics read: whole trips, drawn at random. Set by hand."""


@dataclass(frozen=True, eq=False)
class SummedSide(Side):
    """A side whose `trips` are a sample; its sums and values of trips are those of all trips."""

    @property
    def n(self) -> int:
        """How many trips, all of them."""
        return len(self.length_m)


@dataclass(frozen=True)
class Sums:
    """Sums over a part, and the values of its trips in their order."""

    totals: dict[str, NDArray[Any]]
    values: dict[str, NDArray[Any]]


def sums_of(trips: Trips, grid: Places) -> Sums:
    """Return what metrics of `SUMMED` read of a part."""
    side = Side(trips, grid)
    totals: dict[str, NDArray[Any]] = {"visits": side.visits}
    values: dict[str, NDArray[Any]] = {"length_m": side.length_m, "ends_xy": side.ends_xy}
    values |= {"cells_per_trip": side.cells_per_trip, "ends": np.column_stack(side.ends)}
    if trips.has_time:
        totals["hours"] = side.hours
        values["duration_s"] = side.duration_s
    if trips.has_time or "hour" in trips.columns:
        values["hour"] = side.hour
    return Sums(totals, values)


def side_of(sample: Trips, grid: Places, parts: Sequence[Sums]) -> SummedSide:
    """Return a side from the sums of its parts."""
    side = SummedSide(sample, grid)
    known: dict[str, Any] = {name: np.sum([part.totals[name] for part in parts], axis=0) for name in parts[0].totals}
    known |= {name: np.concatenate([part.values[name] for part in parts]) for name in parts[0].values}
    known["ends"] = tuple(known["ends"].T)
    vars(side).update(known)  # where cached properties keep what they found
    return side


def drawn(trips: Trips, share: float) -> NDArray[np.bool_]:
    """Return which trips are in the sample: each by a hash of its names, so whatever the parts."""
    names = pl.DataFrame([trips.table[name].gather(trips.offsets[:-1]).cast(pl.String) for name in ("uid", "tid")])
    return np.asarray(names.hash_rows(1).to_numpy() / 2.0**64 < share)
