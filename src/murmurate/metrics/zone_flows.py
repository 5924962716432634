"""Metrics of released flows: how far figures are from the exact counts, whether intervals hold them, whether sums agree."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import polars as pl

from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics import Pair
from murmurate.spaces.zone_flows import N_PERIODS, PART_OF_HOUR, REST, ZoneFlows
from murmurate.spaces.zone_trips import ZoneTrips

BUSY_TRIPS = 100
"""Figures of at least this many trips count in the scores of relative error: planners do not read smaller ones."""


@dataclass(frozen=True, eq=False)
class Truth(Pair):
    """Holds released flows beside the exact counts of the originals."""

    released: ZoneFlows
    original: Trips

    @cached_property
    def trips(self) -> ZoneTrips:
        """Return the original trips among the places of the release."""
        named = self.released.classes.filter(~pl.col("of").is_in(["lengths", "durations"]))
        if not named.height:
            return ZoneTrips.of(self.original, self.released.places)
        labels = named.sort("number")["label"].to_list()[:-1]
        return ZoneTrips.of(self.original, self.released.places, column=named["of"][0], categories=labels)

    @cached_property
    def zones(self) -> pl.DataFrame:
        """Return the figures of zones with the exact counts beside them."""
        district = self.released.district
        found = []
        for direction, place, hour in (
            ("departures", self.trips.origin, self.trips.departure),
            ("arrivals", self.trips.destination, self.trips.arrival),
        ):
            for area, where in (("zone", place), ("district", district[place]), ("city", np.zeros_like(place))):
                fixed = {"direction": direction, "area": area}
                found += [
                    _tally({**fixed, "time": time}, {"place": where, "period": period_of(hour, time)}) for time in N_PERIODS
                ]
        return _beside(self.released.zones, pl.concat(found), ["direction", "area", "place", "time", "period"])

    @cached_property
    def od(self) -> pl.DataFrame:
        """Return the listed pairs with the exact counts beside them."""
        district = self.released.district
        found = []
        for area, origin, destination in (
            ("zone", self.trips.origin, self.trips.destination),
            ("district", district[self.trips.origin], district[self.trips.destination]),
        ):
            for time in N_PERIODS:
                keys = {"origin": origin, "destination": destination, "period": period_of(self.trips.departure, time)}
                found.append(_tally({"area": area, "time": time}, keys))
        listed = self.released.od.filter(pl.col("origin") != REST, pl.col("destination") != REST)
        return _beside(listed, pl.concat(found), ["area", "origin", "destination", "time", "period"])

    @cached_property
    def classes(self) -> pl.DataFrame:
        """Return lengths, durations and categories with the exact counts beside them."""
        found = [_tally({"of": name}, {"number": number}) for name, number in self.trips.classes.items()]
        return _beside(self.released.classes, pl.concat(found), ["of", "number"])


def zone_totals(both: Truth) -> list[Score]:
    """Relative error of departures and arrivals of zones by hour, of busy ones; and how many of the busy ones are published."""
    rows = both.zones.filter(pl.col("area") == "zone", pl.col("time") == "hour")
    shown = rows.filter(pl.col("true") >= BUSY_TRIPS)["trips"].is_not_null().mean()
    kept = float("nan") if shown is None else float(shown)  # type: ignore[arg-type]
    scores = _errors("zone_totals", rows)
    return [*scores, Score(name="zone_totals.published", value=kept, better="higher", family="flows", unit="of busy zones")]


def zone_pairs(both: Truth) -> list[Score]:
    """Relative error of listed pairs of zones, whole days, of busy ones; and how many of the busy pairs are listed."""
    rows = both.od.filter(pl.col("area") == "zone", pl.col("time") == "day")
    true = _tally({}, {"origin": both.trips.origin, "destination": both.trips.destination}).filter(pl.col("true") >= BUSY_TRIPS)
    kept = (
        rows.filter(pl.col("trips").is_not_null(), pl.col("true") >= BUSY_TRIPS).height / true.height if true.height else np.nan
    )
    scores = _errors("zone_pairs", rows)
    return [*scores, Score(name="zone_pairs.listed", value=float(kept), better="higher", family="flows", unit="of busy pairs")]


def flow_intervals(both: Truth) -> list[Score]:
    """Share of published figures whose interval holds the exact count."""
    scores = []
    for name, table in (("zones", both.zones), ("pairs", both.od), ("classes", both.classes)):
        shown = table.filter(pl.col("trips").is_not_null())
        inside = shown.select(pl.col("true").is_between(pl.col("low"), pl.col("high")).mean()).item()
        value = float(inside) if inside is not None else float("nan")
        scores.append(Score(name=f"flow_intervals.{name}", value=value, better="higher", family="flows", unit="of figures"))
    return scores


def flow_sums(both: Truth) -> list[Score]:
    """Number of kinds of sums that do not agree; 0 for every release."""
    value = float(len(both.released.disagreements()))
    return [Score(name="flow_sums.disagreeing", value=value, better="lower", family="flows", unit="kinds of sums")]


def period_of(hour: Integers, time: str) -> Integers:
    """Return the period of each hour at a level of time."""
    return {"hour": hour, "part": PART_OF_HOUR[hour], "day": np.zeros_like(hour)}[time]


def _errors(name: str, rows: pl.DataFrame) -> list[Score]:
    busy = rows.filter(pl.col("true") >= BUSY_TRIPS, pl.col("trips").is_not_null())
    error: Floats = ((busy["trips"] - busy["true"]).abs() / busy["true"]).to_numpy()
    values = {"median": np.median(error), "p90": np.quantile(error, 0.9)} if len(error) else {"median": np.nan, "p90": np.nan}
    return [
        Score(
            name=f"{name}.relative_error_{which}", value=float(value), better="lower", family="flows", unit="of the true count"
        )
        for which, value in values.items()
    ]


def _tally(fixed: dict[str, str], keys: dict[str, Integers]) -> pl.DataFrame:
    counted = pl.DataFrame(keys).group_by(list(keys)).agg(true=pl.len().cast(pl.Int64))
    return counted.with_columns(pl.lit(value).alias(name) for name, value in fixed.items())


def _beside(figures: pl.DataFrame, true: pl.DataFrame, keys: list[str]) -> pl.DataFrame:
    return figures.join(true.select(*keys, "true"), on=keys, how="left", maintain_order="left").with_columns(
        pl.col("true").fill_null(0)
    )
