"""Make Sturnia, the built-in city: trips, network, daily traces and the truth, whole or partition by partition."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.parameters import positive, whole
from murmurate.core.space import Floats, Space
from murmurate.core.trips import Trips
from murmurate.demo.journeys import Doors, Journeys, Roads, daily_places, doors_of, roads_of, travel
from murmurate.demo.movement import Tracker, record
from murmurate.demo.network import StreetMap, street_map
from murmurate.demo.people import HOME_AT, people_table, settle_in
from murmurate.demo.places import Places, lay_out
from murmurate.demo.plan import TIME_ZONE, Plan, to_degrees
from murmurate.demo.weeks import PURPOSES
from murmurate.errors import ParameterError
from murmurate.spaces.grid import Grid
from murmurate.spaces.plane import Plane
from murmurate.spaces.road import RoadNetwork

FIRST_DAY = datetime(2025, 5, 5, tzinfo=ZoneInfo(TIME_ZONE))
"""Local midnight at which the data begin, a Monday. Set by hand."""
_FIRST_SECOND = int(FIRST_DAY.astimezone(UTC).timestamp())
"""The same in seconds since 1970."""

TRIPS_PER_PERSON = 100_000
"""Bound on one person's trips: `tid` is uid times this plus the person's own count, so it is the same in any partition."""


@dataclass(frozen=True, eq=False)
class Daily:
    """Where each person is at each of 72 steps of 20 minutes a day."""

    uid: NDArray[np.int64]
    place: NDArray[np.int32]
    """[person, day, step]: a number of `places`; while travelling, the place of departure."""
    places: pl.DataFrame
    """place, lat, lng."""

    @property
    def n_days(self) -> int:
        return self.place.shape[1]

    def table(self) -> pl.DataFrame:
        """Return one row per person-day: uid, day (0 = the first Monday), place (72 of them)."""
        people, days, steps = self.place.shape
        return pl.DataFrame(
            {
                "uid": np.repeat(self.uid, days),
                "day": np.tile(np.arange(days, dtype=np.int64), people),
                "place": pl.Series(self.place.reshape(people * days, steps), dtype=pl.Array(pl.Int32, steps)),
            }
        )


@dataclass(frozen=True, eq=False)
class Truth:
    """Holds the true routes, purposes and places, for measuring how well a release or an attack did."""

    trips: pl.DataFrame
    """uid, tid, purpose, origin, destination (places), depart, arrive, length_m, route (link numbers in order)."""
    places: pl.DataFrame
    """place, label."""
    people: pl.DataFrame
    """uid, life, home, main_place."""


@dataclass(frozen=True, eq=False)
class City:
    """People of Sturnia (all, or one partition of them) and the streets they share."""

    trips: Trips
    network: RoadNetwork
    daily: Daily
    truth: Truth
    plan: Plan
    """Coast, river and parks in metres, for drawing."""
    box: tuple[float, float, float, float]
    """Public (south, west, north, east)."""

    def grid(self, cell_m: float = 250.0) -> Grid:
        """Return a public grid over the whole city, with cells of `cell_m` metres."""
        return Grid(*self.box, cell_m)

    def spaces(self, cell_m: float = 500.0) -> dict[str, Space]:
        """Return the public spaces by name: plane, grid (with cells of `cell_m` metres), road."""
        south, west, north, east = self.box
        return {"plane": Plane((south + north) / 2, (west + east) / 2), "grid": self.grid(cell_m), "road": self.network}

    def outlines(self) -> dict[str, list[tuple[Floats, Floats]]]:
        """Return sea, river and parks as closed rings of (lat, lng), for a base map."""
        found = {"water": self.plan.water_outlines(), "park": self.plan.park_outlines()}
        return {name: [to_degrees(ring[:, 0], ring[:, 1]) for ring in rings] for name, rings in found.items()}


@dataclass(frozen=True, eq=False)
class _Town:
    """What all partitions share."""

    streets: StreetMap
    places: Places
    roads: Roads
    doors: Doors
    place_table: pl.DataFrame
    labels: pl.DataFrame


def city(
    *,
    people: int = 200,
    days: int = 14,
    seed: int = 1,
    interval_s: int = 15,
    noise_m: float = 5.0,
    gap_share: float = 0.004,
    outlier_share: float = 0.001,
    across_km: float = 8.0,
) -> City:
    """Make the whole city in memory; the same arguments give the same data on any machine.

    `people` and `days` set its size, `seed` the city and its people. Receivers record a point every `interval_s` seconds
    with errors of standard deviation `noise_m`; a recording pauses with probability `gap_share`, and a point is an outlier
    with probability `outlier_share`. The city is `across_km` wide.

    >>> town = city(people=3, days=2)
    >>> town.trips.n_users, town.trips.time_zone, town.daily.place.shape
    (3, 'Atlantic/South_Georgia', (3, 2, 72))
    """
    parts = city_partitions(
        people=people,
        days=days,
        seed=seed,
        interval_s=interval_s,
        noise_m=noise_m,
        gap_share=gap_share,
        outlier_share=outlier_share,
        across_km=across_km,
        people_per_partition=people,
    )
    return next(parts)


def city_partitions(
    *,
    people: int = 200,
    days: int = 14,
    seed: int = 1,
    interval_s: int = 15,
    noise_m: float = 5.0,
    gap_share: float = 0.004,
    outlier_share: float = 0.001,
    across_km: float = 8.0,
    people_per_partition: int = 500,
) -> Iterator[City]:
    """Yield the city `people_per_partition` people at a time, with the data of `city`, so that memory stays bounded."""
    whole("people", people, at_most=10_000_000)
    whole("days", days, at_most=1000)
    whole("seed", seed, at_least=0, at_most=2**53)
    whole("people_per_partition", people_per_partition)
    positive("across_km", across_km)
    if not 4 <= across_km <= 12:
        raise ParameterError(f"across_km must lie between 4 and 12 (400 to 4,800 crossings); got {across_km!r}.")
    tracker = Tracker(interval_s=interval_s, noise_m=noise_m, gap_share=gap_share, outlier_share=outlier_share)
    return _partitions(
        people=people, days=days, seed=seed, across_km=float(across_km), tracker=tracker, size=people_per_partition
    )


def _partitions(*, people: int, days: int, seed: int, across_km: float, tracker: Tracker, size: int) -> Iterator[City]:
    streets = street_map(across_km=across_km, seed=seed)
    places = lay_out(streets, seed=seed)
    roads, doors = roads_of(streets, seed=seed), doors_of(places)
    town = _Town(streets, places, roads, doors, places.table(), places.labels())
    for first in range(0, people, size):
        yield _live(town, first, min(first + size, people), days=days, tracker=tracker, seed=seed)


def _live(town: _Town, first: int, last: int, *, days: int, tracker: Tracker, seed: int) -> City:
    """Make the people first ... last - 1, their journeys and what their receivers recorded."""
    people = settle_in(town.places, first, last, seed=seed)
    went = travel(people, first, days, town.roads, town.doors, seed=seed)
    place = daily_places(people[:, HOME_AT].copy(), first, days, went.person, went.destination, went.arrive_s)
    uid = np.arange(first, last, dtype=np.int64)
    return City(
        trips=_trips(town, went, tracker, seed),
        network=town.streets.network,
        daily=Daily(uid, place, town.place_table),
        truth=Truth(_true_trips(town, went), town.labels, people_table(people, first)),
        plan=town.streets.plan,
        box=town.streets.box,
    )


def _trips(town: _Town, went: Journeys, tracker: Tracker, seed: int) -> Trips:
    of_trip, second, x, y = record(went, town.streets, tracker, seed=seed)
    lat, lng = to_degrees(x, y)
    tid = went.person * TRIPS_PER_PERSON + went.number
    table = pl.DataFrame(
        {"uid": went.person[of_trip], "tid": tid[of_trip], "datetime": _utc("datetime", second), "lat": lat, "lng": lng}
    )
    return Trips(table, time_zone=TIME_ZONE)


def _true_trips(town: _Town, went: Journeys) -> pl.DataFrame:
    length = np.r_[0.0, np.cumsum(town.streets.network.length_m[went.link])]
    routes = pl.DataFrame({"trip": np.repeat(np.arange(len(went.person)), np.diff(went.offsets)), "route": went.link})
    routes = routes.group_by("trip", maintain_order=True).agg("route")
    return pl.DataFrame(
        {
            "uid": went.person,
            "tid": went.person * TRIPS_PER_PERSON + went.number,
            "purpose": pl.Series(went.purpose).replace_strict(
                list(range(len(PURPOSES))), list(PURPOSES), return_dtype=pl.String
            ),
            "origin": went.origin,
            "destination": went.destination,
            "depart": _utc("depart", went.depart_s),
            "arrive": _utc("arrive", went.arrive_s),
            "length_m": np.round(length[went.offsets[1:]] - length[went.offsets[:-1]], 1),
            "route": routes["route"],
        }
    )


def _utc(name: str, local_second: NDArray[np.int64]) -> pl.Series:
    return pl.Series(name, (local_second + _FIRST_SECOND) * 1_000_000).cast(pl.Datetime("us", "UTC"))
