"""The contract of measured mechanisms: what a unit costs, and that nobody else's rows have a say in what it contributes."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import mechanisms, noise
from murmurate.asking import clipping
from murmurate.asking.meter import counted, spent_share
from murmurate.asking.rounds import is_measured
from murmurate.asking.table import Part
from murmurate.core.trips import Trips
from murmurate.mechanisms.od_counts.counting import Weighing

UNITS = {
    "flock": ("trip", "user_day", "user"),
    "dp_loc": ("trip", "user_day", "user"),
    "ngram": ("trip", "user_day", "user"),
    "road_counts": ("trip", "user_day", "user"),
    "od_counts": ("trip", "user_day", "user"),
    "plausible": ("user",),
}
"""Every measured mechanism, and the units it can promise for."""

JOINT = ("flock",)
"""Mechanisms that clip a unit over all tables of a round together, where the unit is not the trip and delta is above 0."""

CASES = [(name, unit) for name, units in UNITS.items() for unit in units]
CASES += [(f"{name} joint", unit) for name in JOINT for unit in UNITS[name] if unit != "trip"]
MAX_TRIPS = {"trip": None, "user_day": 3, "user": 6}
EPSILON = 60.0
"""So that the few trips of a test pass the rules that refuse data too small for their noise; a share of it is measured."""


@pytest.fixture(scope="module")
def city() -> Any:
    return mm.demo.city(people=40, days=4, seed=3, interval_s=60)


def promised(name: str, unit: str, city: Any, **more: Any) -> Any:
    """A measured mechanism with its demo settings, for a unit."""
    name, _, joint = name.partition(" ")
    made = mechanisms.example(name, city.spaces())
    options: dict[str, Any] = {"epsilon": EPSILON, **more}
    if joint:
        options |= {"unit": unit, "delta": 1e-6}
    elif name in ("road_counts", "dp_loc"):
        options |= {"unit": unit}
    elif name != "plausible":
        options |= {"unit": unit, "max_trips": MAX_TRIPS[unit]} | ({"delta": 0.0} if name == "flock" else {})
    return replace(made, **options)


def table_of(city: Any) -> pl.DataFrame:
    return city.trips.table.select(pl.col("uid").cast(pl.String), pl.col("tid").cast(pl.Int64), "datetime", "lat", "lng")


def trips_of(table: pl.DataFrame, city: Any) -> Trips:
    return Trips(table, time_zone=city.trips.time_zone)


def renamed(table: pl.DataFrame, uid: str, *, stamp: datetime | None = None, copies: int = 1, **columns: Any) -> pl.DataFrame:
    """Somebody's trips under another name, `copies` times, from another time on, or elsewhere."""
    if stamp is not None:
        table = table.with_columns(pl.col("datetime") + (stamp - table["datetime"].min()))
    parts = [table.with_columns(uid=pl.lit(uid), tid=pl.col("tid") + 10**7 * (k + 1), **columns) for k in range(copies)]
    return pl.concat(parts)


def canaries(city: Any) -> dict[str, pl.DataFrame]:
    """People whose presence is what the promise is about."""
    table = table_of(city)
    first = table.filter(pl.col("uid") == table["uid"][0])
    one = first.filter(pl.col("tid") == first["tid"][0])
    midnight = datetime(2024, 1, 8, 23, 55, tzinfo=UTC)
    return {
        "a lone trip": renamed(one, "canary"),
        "1,000 trips of one person": renamed(one, "canary", copies=1000),
        "all their trips": renamed(first, "canary"),
        "a trip out of the box": renamed(one, "canary", lat=pl.col("lat") + 5.0),
        "a duplicated trip": renamed(one, "canary", copies=2),
        "a trip of 1900": renamed(one, "canary", stamp=datetime(1900, 1, 1, tzinfo=UTC)),
        "a trip of 2200": renamed(one, "canary", stamp=datetime(2200, 1, 1, tzinfo=UTC)),
        "a trip over midnight and the edge of the box": renamed(
            one, "canary", stamp=midnight, lng=pl.col("lng") + 0.3 * pl.int_range(pl.len()) / pl.len()
        ),
    }


def worst_share(mechanism: Any, city: Any, canary: pl.DataFrame, unit: str) -> float:
    """Share of the promise that adding the canary uses; per trip, only its first trip is added."""
    table = table_of(city)
    if unit == "trip":
        canary = canary.filter(pl.col("tid") == canary["tid"][0])
    if unit == "user_day":
        zone = canary["datetime"].dt.convert_time_zone(city.trips.time_zone).dt.date()
        start = canary.with_columns(day=zone).group_by("tid").agg(pl.col("day").min())
        canary = canary.join(start.filter(pl.col("day") == start["day"].min()), on="tid").drop("day")
    private = trips_of(pl.concat([table, canary]), city)
    return sum(spent_share(mechanism, private, trips_of(table, city), noise.seeded(7)).values())


CANARIES = (
    "a lone trip", "1,000 trips of one person", "all their trips", "a trip out of the box", "a duplicated trip",
    "a trip of 1900", "a trip of 2200", "a trip over midnight and the edge of the box",
)  # fmt: skip


def test_every_measured_mechanism_is_listed(city):
    spaces = city.spaces()
    found = {name for name in mechanisms.NAMES if is_measured(mechanisms.example(name, spaces))}
    assert found == set(UNITS)


@pytest.mark.parametrize(("name", "unit"), CASES)
@pytest.mark.parametrize("canary", CANARIES)
def test_no_unit_costs_more_than_the_promise(name, unit, canary, city):
    mechanism = promised(name, unit, city)
    share = worst_share(mechanism, city, canaries(city)[canary], unit)
    assert share <= 1
    if canary in ("a lone trip", "all their trips") and unit != "user":
        assert share > 0, "a canary that adds nothing measures nothing"


@pytest.mark.parametrize("name", UNITS)
def test_the_page_names_every_table(name, city):
    page = (Path(__file__).parents[1] / "docs" / "asking.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith(f"| `{name}`") and ";" in line)
    mechanism = promised(name, UNITS[name][0], city, **({"od": True} if name == "road_counts" else {}))
    for one in counted(mechanism, (trips_of(table_of(city), city),), noise.seeded(7)):
        assert f"`{one.table.name}`" in row or one.table.name.startswith("level-")


CLIPPED = [(name, unit) for name, unit in CASES if name == "road_counts" or (unit != "trip" and name != "plausible")]
"""Where a unit could add more than its limit; elsewhere a trip, or a person's days, add one count by construction."""


@pytest.mark.parametrize(("name", "unit"), CLIPPED)
def test_the_promise_is_used_and_a_missing_clip_is_noticed(name, unit, city, monkeypatch):
    """The planted fault: nothing is clipped and nothing bounded, so a person of 1,000 trips passes the promise."""
    from murmurate.asking import rounds

    monkeypatch.setattr(rounds, "bound", lambda trips, unit, key: trips)
    monkeypatch.setattr(clipping, "_clip", lambda unit, bins, weight, limit, squared: (bins, weight, 0))
    monkeypatch.setattr(clipping, "_joint_weights", lambda tables, merged: np.ones(10_000))
    # od_counts scales units down itself, so that all tables describe the same weighted trips
    monkeypatch.setattr(Weighing, "weights", lambda weighing, unit, trips: np.ones(len(unit)))
    mechanism = promised(name, unit, city)
    if name == "road_counts":
        mechanism = replace(mechanism, clip=1.0, max_links=1)
    assert worst_share(mechanism, city, canaries(city)["1,000 trips of one person"], unit) > 1


# -- nobody else has a say ---------------------------------------------------------------------------------------------


def others(city: Any) -> dict[str, pl.DataFrame]:
    """People who try to change what somebody else contributes: by clocks, copies, places and names."""
    table = table_of(city)
    first = table.filter(pl.col("uid") == table["uid"][0])
    return {
        "1900": renamed(first, "other", stamp=datetime(1900, 1, 1, tzinfo=UTC)),
        "2200": renamed(first, "other", stamp=datetime(2200, 1, 1, tzinfo=UTC)),
        "duplicates": renamed(first, "other"),
        "far away": renamed(first, "other", lat=pl.col("lat") - 40.0, lng=pl.col("lng") + 90.0),
        "before in the order": renamed(first, "\x01"),
        "nobody": first.clear(),
    }


def depends_on_others(mechanism: Any, city: Any, more: pl.DataFrame) -> list[str]:
    """Tables to which one person adds something else when the others are there."""
    table = table_of(city)
    mine = table["uid"][-1]
    alone = trips_of(table.filter(pl.col("uid") == mine), city)
    rest = pl.concat([table.filter(pl.col("uid") != mine), more])
    together = trips_of(pl.concat([rest, alone.table.select(rest.columns)]), city)
    found = counted(mechanism, (together, trips_of(rest, city), alone), noise.seeded(7))
    wrong = []
    for one in found:
        _, change = clipping.add([one.sums[0], *((part[0], -part[1]) for part in one.sums[1:])], one.table.n_bins)
        if change.any():
            wrong.append(one.table.name)
    return wrong


@pytest.mark.parametrize(("name", "unit"), CASES)
@pytest.mark.parametrize("who", ["1900", "2200", "duplicates", "far away", "before in the order", "nobody"])
def test_what_a_unit_adds_follows_from_its_own_rows(name, unit, who, city):
    assert depends_on_others(promised(name, unit, city), city, others(city)[who]) == []


@dataclass(frozen=True)
class SharedClock:
    """The planted fault: every trip's hour is counted from the earliest time of the part."""

    prepare: Any

    def __call__(self, part: Part) -> Any:
        table = part.trips.table
        shifted = table.with_columns(pl.col("datetime") - (pl.col("datetime").min() - datetime(2024, 1, 1, tzinfo=UTC)))
        return self.prepare(Part(Trips(shifted, part.trips.space, part.trips.time_zone), part.unit))


def test_a_clock_shared_by_a_part_is_noticed(city):
    flock = promised("flock", "trip", city)

    class Twin:
        name, budget, guarantee = "twin", staticmethod(flock.budget), staticmethod(flock.guarantee)

        def ask(self, answers, facts):
            asked = flock.ask(answers, facts)
            return asked and replace(asked, prepare=SharedClock(asked.prepare))

        def model(self, answers, facts, rng):
            return None

    assert depends_on_others(Twin(), city, others(city)["1900"])


@pytest.mark.parametrize(("name", "unit"), CASES)
def test_tables_are_the_same_integers_from_any_number_of_parts(name, unit, city):
    from murmurate.asking.rounds import Asking, facts_of

    mechanism, private = promised(name, unit, city), trips_of(table_of(city), city)
    answers: dict[str, Any] = {}
    budget = mechanism.budget()
    while (asked := mechanism.ask(dict(answers), facts_of(private))) is not None:
        sides = [
            Asking(mechanism, private, noise.seeded(1), key=b"k" * 16, part_points=private.n_points // parts + 1).exact(
                asked, budget.norm
            )
            for parts in (1, 2, 8)
        ]
        for table in asked.tables:
            whole = sides[0][table.name]
            for side in sides[1:]:
                assert all(np.array_equal(one, other) for one, other in zip(whole, side[table.name], strict=True))
            exact = whole if hasattr(table, "threshold") else clipping.dense(whole, table.n_bins)
            answers[table.name] = budget.draw(table, exact, noise.seeded(2))
