"""Made-up people for audits: a small town inside any public space, and canaries whose presence a promise must hide."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.guarantee import UnitName
from murmurate.core.space import Places, Space
from murmurate.core.trips import Trips
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

PEOPLE, DAYS, SEED, INTERVAL_S = 120, 4, 3, 60
"""People, days, seed and seconds between points of the made-up town. Set by hand: it counts in seconds, and has
units enough for demo settings per person and day."""
CROWDED = 1000
"""Trips of the canary that has far more than a unit may add."""
COMPANY = 100
"""People who do what the canary does where tables hide small counts. Set by hand: above the thresholds of demo settings."""
RETURNS = 20
"""Legs of the canary that goes between two places again and again: twice what most mechanisms read of a day."""
MAX_OUTSIDE = 0.5
"""Share of the town's points that may lie in none of the given places; above, the town is moved to where the places are."""
WALK_LINKS = 15
"""Links of a made-up drive on a road network that is given."""
CANARY = "canary"
"""Name of the person who is added."""


def town() -> Any:
    """Return the built-in city in small: trips of people who do not exist, and its spaces."""
    from murmurate import demo

    return demo.city(people=PEOPLE, days=DAYS, seed=SEED, interval_s=INTERVAL_S)


def people_in(space: Space | None, city: Any) -> Trips:
    """Return the trips of the town, laid over a given public space where that lies elsewhere."""
    trips: Trips = city.trips
    table = trips.table.select(pl.col("uid").cast(pl.String), pl.col("tid").cast(pl.Int64), "datetime", "lat", "lng")
    if isinstance(space, Grid):
        table = _stretched(table, (space.south, space.north), (space.west, space.east))
    elif isinstance(space, RoadNetwork):
        table = table if space.fingerprint == city.network.fingerprint else _drives(space)
    elif isinstance(space, Places) and (space.locate(table["lat"], table["lng"]) < 0).mean() > MAX_OUTSIDE:
        south, west, north, east = space.box
        table = _inside(_stretched(table, (south, north), (west, east)), space)
    return Trips(table, time_zone=trips.time_zone)


def _stretched(table: pl.DataFrame, lat: tuple[float, float], lng: tuple[float, float]) -> pl.DataFrame:
    """Lay all points over a box, a little inside its edges."""

    def laid(name: str, low: float, high: float) -> pl.Expr:
        share = (pl.col(name) - pl.col(name).min()) / (pl.col(name).max() - pl.col(name).min())
        return (low + (high - low) * (0.02 + 0.96 * share)).alias(name)

    return table.with_columns(laid("lat", *lat), laid("lng", *lng))


def _inside(table: pl.DataFrame, places: Places) -> pl.DataFrame:
    """Move points that lie in no place to the middle of the nearest one: zones may leave most of their box free."""
    from scipy.spatial import KDTree

    outside = places.locate(table["lat"], table["lng"]) < 0
    middle = np.stack(places.centre(np.arange(places.n_cells)), axis=1)
    points = table.select("lat", "lng").to_numpy().copy()
    points[outside] = middle[KDTree(middle).query(points[outside])[1]]
    return table.with_columns(lat=points[:, 0], lng=points[:, 1])


def _drives(network: RoadNetwork) -> pl.DataFrame:
    """Drive along random links of a network, ten drives of each of 40 people."""
    generator = np.random.default_rng(SEED)
    offsets, links = network.out_links
    lat, lng = network.midpoint
    rows = []
    for trip in range(10 * PEOPLE):
        link = int(generator.integers(network.n_links))
        start = datetime(2024, 1, 8 + trip % DAYS, 6 + trip % 14, int(generator.integers(60)), tzinfo=UTC)
        for step in range(WALK_LINKS):
            rows.append((f"p{trip % PEOPLE}", trip, start.timestamp() + 20 * step, float(lat[link]), float(lng[link])))
            node = int(network.link_to[link])
            choice = links[offsets[node] : offsets[node + 1]]
            if not len(choice):
                break
            link = int(choice[generator.integers(len(choice))])
    table = pl.DataFrame(rows, schema=["uid", "tid", "s", "lat", "lng"], orient="row")
    when = (pl.col("s") * 1e6).cast(pl.Int64).cast(pl.Datetime("us", "UTC")).alias("datetime")
    return table.select("uid", "tid", when, "lat", "lng")


def canaries(private: Trips) -> Mapping[str, pl.DataFrame]:
    """Return people whose presence is what the promise is about, by what is extreme about them."""
    table = private.table
    first = table.filter(pl.col("uid") == table["uid"][0])
    one = first.filter(pl.col("tid") == first["tid"][0])
    return {
        "a lone trip": _renamed(one),
        f"{CROWDED:,} trips of one person": _renamed(one, copies=CROWDED),
        "all trips of a person": _renamed(first),
        "a trip as long as all trips of a person": _renamed(_joined(first)),
        "a way there and back, again and again": _renamed(_there_and_back(one, private.time_zone)),
        "the same on six trips": _renamed(_there_and_back(one, private.time_zone), copies=6),
        "a trip out of the box": _renamed(one, lat=pl.col("lat") + (5.0 if one["lat"].max() < 80 else -5.0)),  # type: ignore[operator]
        "a duplicated trip": _renamed(one, copies=2),
        "a trip of 1900": _renamed(one, stamp=datetime(1900, 1, 1, tzinfo=UTC)),
        "a trip of 2200": _renamed(one, stamp=datetime(2200, 1, 1, tzinfo=UTC)),
        "a trip over midnight": _renamed(one, stamp=datetime(2024, 1, 8, 23, 55, tzinfo=UTC)),
    }


def more_canaries(private: Trips, n: int) -> Mapping[str, pl.DataFrame]:
    """Return `n` more people: each has the trips of somebody, a random number of times, at another time of another day."""
    generator = np.random.default_rng([SEED, n])
    table, people = private.table, private.table["uid"].unique(maintain_order=True)
    found = {}
    for k in range(n):
        theirs = table.filter(pl.col("uid") == people[int(generator.integers(len(people)))])
        copies, minutes = int(generator.integers(1, 8)), int(generator.integers(1_440 * DAYS))
        start = datetime(2024, 1, 8 + minutes // 1_440, minutes % 1_440 // 60, minutes % 60, tzinfo=UTC)
        theirs = _joined(theirs) if k % 3 == 0 else theirs
        found[f"random person {k + 1}"] = _renamed(theirs, stamp=start, copies=copies)
    return found


def company(canary: pl.DataFrame) -> pl.DataFrame:
    """Return people who do what the canary does, so that counts it adds to pass every threshold."""
    return pl.concat([
        canary.with_columns(uid=pl.lit(f"{CANARY} {k}"), tid=pl.col("tid") + 10**10 * (k + 1)) for k in range(COMPANY)
    ])  # fmt: skip


def _there_and_back(trip: pl.DataFrame, time_zone: str) -> pl.DataFrame:
    """Return a whole day between the ends of a trip, forth and back all the time, with a point every ten minutes."""
    ends = trip.sort("datetime")[[0, -1]]
    minutes = np.arange(0, 1_440, 10)
    start = ends["datetime"].dt.convert_time_zone(time_zone)[0].replace(hour=0, minute=0, second=0, microsecond=0)
    when = pl.Series([start.astimezone(UTC) + timedelta(minutes=int(k)) for k in minutes])
    return ends[(minutes * RETURNS // 1_440 % 2).astype(np.int64)].with_columns(datetime=when.cast(ends["datetime"].dtype))


def _joined(table: pl.DataFrame) -> pl.DataFrame:
    """Return somebody's trips as one trip, each beginning a minute after the one before has ended."""
    legs = table.sort("tid", "datetime").group_by("tid", maintain_order=True)
    parts, clock = [], table["datetime"].min()
    for _, leg in legs:
        moved = leg.with_columns(pl.col("datetime") + (clock - leg["datetime"].min()), tid=pl.lit(table["tid"][0], pl.Int64))  # type: ignore[operator]
        clock = moved["datetime"].max() + timedelta(minutes=1)  # type: ignore[operator]
        parts.append(moved)
    return pl.concat(parts)


def several_times(private: Trips, copies: int) -> Trips:
    """Return the trips, each of them made by so many people."""
    table = private.table
    more = [table.with_columns(pl.col("uid") + f" {k}", pl.col("tid") + 10**8 * k) for k in range(1, copies)]
    return Trips(pl.concat([table, *more]), private.space, private.time_zone)


def of_one_unit(canary: pl.DataFrame, unit: UnitName, time_zone: str) -> pl.DataFrame:
    """Cut a canary down to one unit: its first trip, its first day, or everything."""
    if unit == "trip":
        return canary.filter(pl.col("tid") == canary["tid"][0])
    if unit == "user_day":
        local = pl.col("datetime").dt.convert_time_zone(time_zone).dt.date()
        start = canary.group_by("tid").agg(day=local.min())
        first: date = start["day"].min()  # type: ignore[assignment]
        return canary.join(start.filter(pl.col("day") == first).select("tid"), on="tid", maintain_order="left")
    return canary


def together(private: Trips, more: pl.DataFrame) -> Trips:
    """Return the trips with further rows."""
    return Trips(pl.concat([private.table, more.select(private.table.columns)]), private.space, private.time_zone)


def _renamed(table: pl.DataFrame, *, stamp: datetime | None = None, copies: int = 1, **columns: Any) -> pl.DataFrame:
    """Return somebody's trips as the canary's, several times, from another time on, or elsewhere."""
    if stamp is not None:
        table = table.with_columns(pl.col("datetime") + (stamp - table["datetime"].min()))  # type: ignore[operator]
    parts = [table.with_columns(uid=pl.lit(CANARY), tid=pl.col("tid") + 10**7 * (k + 1), **columns) for k in range(copies)]
    return pl.concat(parts)
