"""ZoneFlows: trips between places and totals of places, by hour, part of day and day, as a release of flows holds them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl

from murmurate.core.expansion import as_schema
from murmurate.core.parquet import read_table
from murmurate.core.saved import read_object
from murmurate.core.space import Floats, Integers, Places
from murmurate.errors import Fault, InputError
from murmurate.spaces.places import PLACES, write_places

HOURS = 24
"""Hours of a day, local time."""

PARTS = {"night": (0, 6), "morning": (6, 10), "midday": (10, 16), "evening": (16, 20), "late": (20, 24)}
"""Parts of the day: first hour, and the hour they end before."""

PART_OF_HOUR = np.repeat(np.arange(len(PARTS)), [end - first for first, end in PARTS.values()])
"""[hour] the part of the day it belongs to."""

LENGTHS_KM = np.array([0.5, 1, 2, 3, 5, 7.5, 10, 15, 20, 30, 50, 100])
"""Upper edges of the classes of trip length, in kilometres; the last class has none."""

MINUTES = np.array([2, 5, 10, 15, 20, 30, 45, 60, 90, 120, 180])
"""Upper edges of the classes of trip duration, in minutes; the last class has none."""

ZONES, OD, CLASSES, ABOUT = "zones.parquet", "od.parquet", "classes.parquet", "flows.json"
"""Files of a release of flows."""

FIGURE = {"trips": pl.Int64, "se": pl.Float64, "low": pl.Float64, "high": pl.Float64}
"""Columns of every figure: the count, its standard error, and its interval; all empty where it is not published."""

KEYS: dict[str, dict[str, Any]] = {
    "zones": {"direction": pl.String, "area": pl.String, "place": pl.Int64, "time": pl.String, "period": pl.Int64},
    "od": {"area": pl.String, "origin": pl.Int64, "destination": pl.Int64, "time": pl.String, "period": pl.Int64},
    "classes": {"of": pl.String, "number": pl.Int64, "label": pl.String},
}
"""Columns that say what a figure counts, by table. `area` is zone, district or city; `time` is hour, part or day."""

REST = -1
"""Stands for all places that are not listed with this origin or destination; such rows make sums agree."""


@dataclass(frozen=True, eq=False, kw_only=True)
class ZoneFlows:
    """Holds figures of places, of pairs of places and of classes of trips, all sums of one table of whole numbers.

    `zones` has departures and arrivals of every zone, district and the city, by hour, part of day and day. `od` has the listed
    pairs and rows with place -1 for the rest. `classes` has lengths, durations and a declared column.
    """

    kind: ClassVar[str] = "flows"
    places: Places
    zones: pl.DataFrame
    od: pl.DataFrame
    classes: pl.DataFrame
    about: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name, keys in KEYS.items():
            what = f"the table {name} of a release of flows"
            object.__setattr__(self, name, as_schema(getattr(self, name), {**keys, **FIGURE}, what))
        self._check_places()

    def _check_places(self) -> None:
        """Refuse places and periods that do not exist: figures are looked up by them."""
        n_places = {"zone": self.places.n_cells, "district": int(self.district.max()) + 1, "city": 1}
        for name, columns in (("zones", ("place",)), ("od", ("origin", "destination"))):
            table = getattr(self, name)
            least = 0 if name == "zones" else REST
            most = pl.col("area").replace_strict(n_places, default=0, return_dtype=pl.Int64)
            periods = pl.col("time").replace_strict(N_PERIODS, default=0, return_dtype=pl.Int64)
            fits = pl.all_horizontal(
                (pl.col("period") >= 0) & (pl.col("period") < periods),
                *((pl.col(column) >= least) & (pl.col(column) < most) for column in columns),
            )
            bad = int((~table.select(fits.fill_null(False)).to_series()).sum())
            if bad:
                raise InputError(f"the table {name} of a release of flows is damaged: {bad:,} rows name no place or period.")

    @property
    def table(self) -> pl.DataFrame:
        """Return the main table: pairs of places."""
        return self.od

    @cached_property
    def district(self) -> Integers:
        """Return the district of every zone."""
        return self.places.districts()

    def totals(self, direction: str, *, area: str = "zone", time: str = "hour") -> Floats:
        """Return [place, period] departures or arrivals; NaN where a figure is not published."""
        n_places = {"zone": self.places.n_cells, "district": int(self.district.max()) + 1, "city": 1}[area]
        chosen = self.zones.filter(direction=direction, area=area, time=time)
        out = np.full((n_places, N_PERIODS[time]), np.nan)
        out[chosen["place"].to_numpy(), chosen["period"].to_numpy()] = (
            chosen["trips"].cast(pl.Float64).fill_null(np.nan).to_numpy()
        )
        return out

    def pairs(self, *, area: str = "zone", time: str = "day") -> pl.DataFrame:
        """Return the listed pairs that are published, the rest left out, busiest first."""
        listed = self.od.filter(pl.col("area") == area, pl.col("time") == time, pl.col("trips").is_not_null())
        return listed.filter(pl.col("origin") != REST, pl.col("destination") != REST).sort(
            ["trips", "origin", "destination", "period"], descending=[True, False, False, False]
        )

    def matrix(self, *, time: str = "day", period: int = 0, complete: bool = True, prior: Floats | None = None) -> Floats:
        """Return [origin, destination] trips between zones.

        Listed pairs hold what was published. With `complete`, the rest of every origin is shared among the pairs that are not
        listed, in proportion to the rest of every destination; without it, they are 0. A public matrix of the same places
        as `prior` says how such pairs compare: it is fitted to the rest of origins, destinations and districts.
        """
        chosen = self.od.filter(pl.col("area") == "zone", pl.col("time") == time, pl.col("period") == period)
        chosen = chosen.filter(pl.col("trips").is_not_null())
        listed = chosen.filter(pl.col("origin") != REST, pl.col("destination") != REST)
        n = self.places.n_cells
        out = np.zeros((n, n))
        origin, destination = listed["origin"].to_numpy(), listed["destination"].to_numpy()
        out[origin, destination] = listed["trips"].to_numpy()
        if complete:
            unlisted = np.ones((n, n))
            unlisted[origin, destination] = 0.0
            free = unlisted if prior is None else unlisted * prior
            free = np.where(free.sum(axis=1, keepdims=True) > 0, free, unlisted)  # the prior knows nothing of such an origin
            districts = self._rest_of_districts(time, period)
            if prior is not None and districts is not None:  # what the prior says of districts was measured better
                member = np.eye(int(self.district.max()) + 1)[self.district]
                blocks = member @ (member.T @ free @ member) @ member.T
                districts = np.divide(districts, blocks, out=np.ones_like(blocks), where=blocks > 0)
            out += _shared(free, _rest(chosen, "origin", n), self._rest_of_destinations(n), districts)
        return out

    def _rest_of_destinations(self, n: int) -> Floats:
        """Return how many trips of unlisted pairs every destination gets, all hours together: hours of arrival differ."""
        day = self.od.filter(pl.col("area") == "zone", pl.col("time") == "day", pl.col("trips").is_not_null())
        return _rest(day, "destination", n)

    def _rest_of_districts(self, time: str, period: int) -> Floats | None:
        """Return [zone, zone] how much more or less than the ends alone say the unlisted pairs of their districts have."""
        m = int(self.district.max()) + 1
        chosen = self.od.filter(pl.col("time") == time, pl.col("period") == period, pl.col("trips").is_not_null())
        chosen = chosen.filter(pl.col("origin") != REST, pl.col("destination") != REST)
        whole = chosen.filter(pl.col("area") == "district")
        if whole.height < m * m:
            return None
        flow = np.zeros((m, m))
        flow[whole["origin"].to_numpy(), whole["destination"].to_numpy()] = whole["trips"].to_numpy()
        found = chosen.filter(pl.col("area") == "zone")
        ends = self.district[found["origin"].to_numpy()], self.district[found["destination"].to_numpy()]
        np.subtract.at(flow, ends, found["trips"].to_numpy())
        return np.asarray(np.maximum(flow, 0.0)[np.ix_(self.district, self.district)])

    # -- sums ------------------------------------------------------------------------------------------------------

    def disagreements(self) -> list[str]:
        """Return every sum of published figures that does not agree; an empty list is a consistent release."""
        faults = [f"{name}: a count is negative" for name in KEYS if (getattr(self, name)["trips"] < 0).any()]
        for direction in ("departures", "arrivals"):
            faults += self._sums_of(direction)
        city, arrived = (self.totals(direction, area="city", time="day")[0, 0] for direction in ("departures", "arrivals"))
        if not np.isfinite([city, arrived]).all():
            return faults
        if city != arrived:
            faults.append("departures and arrivals of the city differ")
        for (name,), part in self.classes.group_by("of", maintain_order=True):
            if not part["trips"].null_count() and part["trips"].sum() != city:
                faults.append(f"{name} do not add up to the city")
        for area in ("zone", "district"):
            for time in N_PERIODS:
                faults += self._sums_of_pairs(area, time)
        return faults

    def _sums_of(self, direction: str) -> list[str]:
        faults = []
        for time in N_PERIODS:
            zone, district, city = (self.totals(direction, area=area, time=time) for area in ("zone", "district", "city"))
            summed = np.zeros_like(district)
            np.add.at(summed, self.district, zone)  # NaN where a zone is not published: nothing to compare there
            for words, one, other in (("zones", summed, district), ("districts", district.sum(axis=0), city[0])):
                if (np.isfinite(one) & np.isfinite(other) & (one != other)).any():
                    faults.append(f"{direction} of {words} by {time} do not add up")
        for area in ("zone", "district", "city"):
            hour, part, day = (self.totals(direction, area=area, time=time) for time in ("hour", "part", "day"))
            merged = np.column_stack([hour[:, k == PART_OF_HOUR].sum(axis=1) for k in range(len(PARTS))])
            for words, one, other in (("hours", merged, part), ("parts", part.sum(axis=1), day[:, 0])):
                if (np.isfinite(one) & np.isfinite(other) & (one != other)).any():
                    faults.append(f"{direction} of each {area}: {words} do not add up")
        return faults

    def _sums_of_pairs(self, area: str, time: str) -> list[str]:
        rows = self.od.filter(pl.col("area") == area, pl.col("time") == time, pl.col("origin") != REST)
        total = self.totals("departures", area=area, time=time)
        summed, known = np.zeros_like(total), np.zeros(total.shape, dtype=bool)
        at = rows["origin"].to_numpy(), rows["period"].to_numpy()
        np.add.at(summed, at, rows["trips"].fill_null(0).to_numpy())
        rest = rows.filter(pl.col("destination") == REST, pl.col("trips").is_not_null())
        known[rest["origin"].to_numpy(), rest["period"].to_numpy()] = True
        bad = known & np.isfinite(total) & (summed != total)
        return [f"pairs of each {area} by {time} do not add up to its departures"] if bad.any() else []

    # -- files -----------------------------------------------------------------------------------------------------

    def write(self, folder: Path) -> None:
        """Write the tables, flows.json and the places with their outlines."""
        for name, file in (("zones", ZONES), ("od", OD), ("classes", CLASSES)):
            getattr(self, name).write_parquet(folder / file)
        (folder / ABOUT).write_text(json.dumps(dict(self.about), indent=2, sort_keys=True) + "\n", encoding="utf-8")
        write_places(self.places, folder / PLACES)

    @classmethod
    def read(cls, folder: str | Path, places: Places) -> ZoneFlows:
        """Read back what `write` wrote."""
        path = Path(folder)
        missing = [name for name in (ZONES, OD, CLASSES) if not (path / name).is_file()]
        if missing:
            raise InputError([Fault("is missing", file=str(path / name)) for name in missing], "give a release of flows.")
        about = read_object(path / ABOUT, "a release of flows") if (path / ABOUT).is_file() else {}
        tables = {name: read_table(path / file) for name, file in (("zones", ZONES), ("od", OD), ("classes", CLASSES))}
        return cls(places=places, about=about, **tables)


N_PERIODS = {"hour": HOURS, "part": len(PARTS), "day": 1}
"""Number of periods of each level of time."""


def _rest(chosen: pl.DataFrame, side: str, n: int) -> Floats:
    other = "destination" if side == "origin" else "origin"
    rows = chosen.filter(pl.col(other) == REST, pl.col(side) != REST)
    out = np.zeros(n)
    out[rows[side].to_numpy()] = rows["trips"].to_numpy()
    return out


def _shared(free: Floats, origins: Floats, destinations: Floats, districts: Floats | None) -> Floats:
    """Share the rest of origins among free pairs by the rest of destinations and of districts; rows keep their sums."""
    total = float(origins.sum())
    if total <= 0:
        return np.zeros_like(free)
    weight = free * destinations[None, :]
    if districts is not None:
        weight *= districts
    rows = weight.sum(axis=1)
    weight[rows <= 0] = free[rows <= 0]  # nothing is known of where these went
    rows = np.maximum(weight.sum(axis=1), 1e-300)
    for _ in range(20):
        columns = (weight * (origins / rows)[:, None]).sum(axis=0)
        wanted = destinations * total / max(float(destinations.sum()), 1e-300)
        scale = np.divide(wanted, columns, out=np.ones_like(columns), where=columns > 0)
        weight *= scale[None, :]
        rows = np.maximum(weight.sum(axis=1), 1e-300)
    return np.asarray(weight * (origins / rows)[:, None])
