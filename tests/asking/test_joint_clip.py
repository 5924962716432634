"""The joint clip: whatever the rows of a unit, its cost over all tables and rounds stays within the promise."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from math import fsum
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import engine, mechanisms, noise
from murmurate.asking import Answer, Budget, Contributions, Round, Table, clipping
from murmurate.asking.meter import counted, spent_share
from murmurate.asking.rounds import Asking, facts_of
from murmurate.asking.table import once
from murmurate.asking.units import EDGES, TripsPerUnit, count_units, units_table
from murmurate.core.guarantee import DP, Unit
from murmurate.core.trips import Trips
from murmurate.errors import ContractBroken, ParameterError
from murmurate.mechanisms.flock import Flock
from murmurate.spaces.grid import Grid
from toy_rounds import tree

CELLS = 400
GRID = Grid(60.0, 24.0, 60.2, 24.4, 1000)


# -- a mechanism with joint tables in two rounds -----------------------------------------------------------------------


def first_cells(part):
    return part.unit, part.trips.cell[part.trips.offsets[:-1]]


def count_first(prepared):
    unit, cell = prepared
    return {"n": once(unit, np.zeros_like(cell)), "cells": once(unit, cell)}


def count_second(cut, prepared):
    unit, cell = prepared
    return {"halves": once(unit, (cell >= cut).astype(np.int64)), "pairs": once(unit, (cell * 7 + unit * 0) % 100)}


@dataclass(frozen=True, kw_only=True)
class Joint:
    """Asks for joint tables in two rounds, of which the second follows from noisy answers."""

    name: ClassVar[str] = "joint"
    epsilon: float = 1.0
    delta: float = 1e-6
    clip: float = 3.0
    unit: str = "user"

    def budget(self):
        return Budget(epsilon=self.epsilon, delta=self.delta)

    def guarantee(self):
        return DP(epsilon=self.epsilon, delta=self.delta, unit=Unit(name=self.unit), events=self.budget().events)

    def ask(self, answers, facts):
        def table(name, n_bins, share):
            return Table(name=name, n_bins=n_bins, share=share, limit=self.clip, joint=True)

        if not answers:
            tables = table("n", 1, 0.1), table("cells", CELLS, 0.4)
            return Round(tables=tables, prepare=first_cells, contribute=count_first)
        if "pairs" not in answers:
            cut = int(np.argmax(answers["cells"].noisy))
            tables = table("halves", 2, 0.2), table("pairs", 100, 0.3)
            return Round(tables=tables, prepare=first_cells, contribute=partial(count_second, cut))
        return None

    def model(self, answers, facts, rng):
        return {name: answer.noisy for name, answer in answers.items()}


def people(**cells):
    """Trips by person; each of them begins in one of the cells given."""
    rows = [(who, f"{who}-{k}", cell) for who, starts in cells.items() for k, start in enumerate(starts) for cell in (start, 0)]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "cell"], orient="row"))


CROWD = {f"u{k}": [k, (3 * k) % CELLS, 5, 5] for k in range(20)}
CANARIES = {
    "one trip": [7],
    "identical trips": [7] * 40,
    "trips in different bins": list(range(CELLS)),
    "5,000 trips": [(k * k) % CELLS for k in range(5000)],
}


def used(mechanism, canary):
    return fsum(spent_share(mechanism, people(**CROWD, canary=canary), people(**CROWD), noise.seeded(3)).values())


@pytest.mark.parametrize("clip", [0.7, 3.0, 1000.0])
@pytest.mark.parametrize("canary", CANARIES)
def test_no_unit_costs_more_than_the_promise(canary, clip):
    share = used(Joint(clip=clip), CANARIES[canary])
    assert 0 < share <= 1
    if clip < 10 and len(CANARIES[canary]) > 20:
        assert share > 0.98, "a heavy unit uses the whole promise, so that the clip takes no more than it must"


def unclipped(tables, merged):
    return np.ones(max(int(unit.max(initial=-1)) + 1 for unit, _, _ in merged.values()))


def rounds_forgotten(tables, merged):
    """A planted fault: each round takes the whole budget of a unit, as if no other round had spent any of it."""
    return genuine(tables, merged) / np.sqrt(fsum(table.share for table in tables))


def others_weighed(tables, merged):
    """A planted fault: all units of a part get the weight of the heaviest."""
    found = genuine(tables, merged)
    return np.full_like(found, found.min(initial=1.0))


genuine = clipping._joint_weights


@pytest.mark.parametrize("fault", [unclipped, rounds_forgotten, others_weighed])
def test_planted_faults_are_noticed(fault, monkeypatch):
    assert used(Joint(), CANARIES["identical trips"]) <= 1
    monkeypatch.setattr(clipping, "_joint_weights", fault)
    assert used(Joint(), CANARIES["identical trips"]) > 1


@pytest.mark.parametrize(("parts", "workers"), [(1, 1), (2, 1), (8, 1), (8, 2)])
def test_the_same_integers_from_any_number_of_parts_and_workers(parts, workers):
    private = people(**CROWD, canary=CANARIES["5,000 trips"])

    def sums(points, workers):
        with engine.engine(workers) as running:
            asking = Asking(Joint(), private, noise.seeded(1), engine=running, key=b"k" * 16, part_points=points)
            answers = {"cells": Answer(np.arange(CELLS, dtype=float), 1.0), "n": Answer(np.ones(1), 1.0)}
            asked = [Joint().ask(known, facts_of(private)) for known in ({}, answers)]
            return [asking.exact(one, "l2") for one in asked]

    for whole, found in zip(sums(10**7, 1), sums(private.n_points // parts + 1, workers), strict=True):
        for name, (bins, values) in whole.items():
            assert np.array_equal(bins, found[name][0]) and np.array_equal(values, found[name][1])


def test_one_weight_scales_all_joint_tables_and_no_other():
    rows = {name: once(np.zeros(16, dtype=np.int64), np.arange(16) % n) for name, n in (("one", 1), ("many", 16), ("alone", 1))}
    joint = [Table(name=name, n_bins=n, share=0.25, limit=2.0, joint=True) for name, n in (("one", 1), ("many", 16))]
    alone = Table(name="alone", n_bins=1, share=0.5, limit=100.0)
    sums = clipping.round_sums([*joint, alone], rows, "l2")
    one, many = sums["one"][1] / 4096, sums["many"][1] / 4096
    assert one[0] / 16 == pytest.approx(many[0], rel=1e-2)
    assert fsum(0.25 * float((part**2).sum()) / 4 for part in (one, many)) <= 0.5
    assert sums["alone"][1][0] == 16 * 4096


def test_random_units_stay_within_the_sum_of_the_shares():
    generator = np.random.default_rng(5)
    for _ in range(100):
        tables = [
            Table(
                name=f"t{k}",
                n_bins=7,
                share=float(generator.uniform(0.01, 0.3)),
                limit=float(generator.uniform(0.5, 9)),
                joint=True,
            )
            for k in range(3)
        ]
        rows = {
            table.name: Contributions(
                np.zeros(30, dtype=np.int64), generator.integers(0, 7, 30), generator.integers(-(2**20), 2**20, 30)
            )
            for table in tables
        }
        sums = clipping.round_sums(tables, rows, "l2")
        cost = fsum(t.share * float(((sums[t.name][1] / (t.limit * t.steps)) ** 2).sum()) for t in tables)
        assert cost <= fsum(t.share for t in tables)


def test_joint_tables_need_gaussian_noise_and_are_no_trees():
    table = Table(name="t", n_bins=2, share=0.5, joint=True)
    with pytest.raises(ContractBroken, match="Gaussian"):
        Budget(epsilon=1.0).check((table,))
    with pytest.raises(ContractBroken, match="Gaussian"):
        clipping.round_sums([table], {"t": once(np.zeros(1, dtype=np.int64), np.zeros(1, dtype=np.int64))}, "l1")
    with pytest.raises(ContractBroken, match="tree"):
        replace(tree("one", [0.2]), joint=True)


# -- trips per unit ----------------------------------------------------------------------------------------------------


def test_quantiles_of_trips_per_unit():
    unit = np.repeat(np.arange(300), np.arange(300) % 100 + 1)
    rows = count_units(unit)
    exact = clipping.dense(clipping.clipped_sums(units_table(), rows, "l2"), len(EDGES)) / 4096
    found = TripsPerUnit(Answer(exact, 1.0))
    assert found.quantile(0.5) == 64 and found.quantile(1.0) == 128
    assert found.trips(128) == pytest.approx(len(unit), rel=0.1)
    assert found.trips(16) == pytest.approx(3 * np.arange(1, 17).sum(), rel=0.1)


def test_noise_in_the_bins_of_busy_units_moves_no_quantile_far():
    few = np.zeros(len(EDGES))
    few[3] = 100.0
    for seed in range(200):
        noisy = few + np.random.default_rng(seed).normal(0, 8.0, len(EDGES))
        assert TripsPerUnit(Answer(noisy, 8.0)).quantile(0.9) <= 32
    assert TripsPerUnit(Answer(np.full(len(EDGES), -5.0), 1.0)).clip() == 1.0


def test_few_units_are_found_among_neighbouring_bins_where_none_is_clear_alone():
    """200 taxis with 10,000 to 40,000 links each: no bin stands out, the five together do."""
    spread_out = np.zeros(len(EDGES))
    spread_out[26:31] = 40.0
    medians = []
    for seed in range(40):
        noisy = spread_out + np.random.default_rng(seed).normal(0, 20.0, len(EDGES))
        medians.append(TripsPerUnit(Answer(noisy, 20.0)).quantile(0.5))
    near = [EDGES[24] <= median <= EDGES[-1] for median in medians]
    assert np.mean(near) >= 0.95


# -- flock -------------------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def city() -> Any:
    return mm.demo.city(people=40, days=4, seed=3, interval_s=60)


def table_of(trips: Trips) -> pl.DataFrame:
    return trips.table.select(pl.col("uid").cast(pl.String), pl.col("tid").cast(pl.Int64), "datetime", "lat", "lng")


def straight(starts: list[tuple[float, float]], *, at: datetime, minutes: int = 0) -> pl.DataFrame:
    """Trips of one person of ten minutes each, eastwards; `minutes` apart."""
    rows = [
        ("canary", 10**7 + k, at + timedelta(minutes=minutes * k + step), lat, lng + 0.001 * step)
        for k, (lat, lng) in enumerate(starts)
        for step in range(10)
    ]
    return pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row").with_columns(
        pl.col("datetime").cast(pl.Datetime("us", "UTC"))
    )


def flock_canaries(grid: Grid) -> dict[str, pl.DataFrame]:
    generator = np.random.default_rng(1)
    middle = (grid.south + grid.north) / 2, (grid.west + grid.east) / 2
    corners = np.linspace(grid.south, grid.north, 20), np.linspace(grid.west, grid.east, 20)
    everywhere = [(float(lat), float(lng)) for lat in corners[0] for lng in corners[1]]
    thousands = list(
        zip(generator.uniform(grid.south, grid.north, 5000), generator.uniform(grid.west, grid.east, 5000), strict=True)
    )
    noon, night = datetime(2024, 1, 9, 12, tzinfo=UTC), datetime(2024, 1, 9, 23, 55, tzinfo=UTC)
    return {
        "identical trips": straight([middle] * 60, at=noon),
        "trips in different bins": straight(everywhere, at=noon),
        "5,000 trips": straight(thousands, at=noon),
        # outside the box before midnight, in it from the next day on
        "over midnight and the edge of the box": straight([(middle[0], grid.west - 0.006)] * 40, at=night),
    }


@pytest.mark.parametrize("clip", [None, 2.0])
@pytest.mark.parametrize("unit", ["user_day", "user"])
@pytest.mark.parametrize(
    "canary", ["identical trips", "trips in different bins", "5,000 trips", "over midnight and the edge of the box"]
)
def test_flock_keeps_its_promise_to_people_without_a_bound_on_trips(canary, unit, clip, city):
    grid = city.spaces()["grid"]
    mechanism = Flock(epsilon=60.0, delta=1e-6, unit=unit, space=grid, clip=clip)
    table = table_of(city.trips)
    more = pl.concat([table, flock_canaries(grid)[canary].with_columns(pl.col("datetime").cast(table.schema["datetime"]))])
    both = [Trips(one, time_zone=city.trips.time_zone) for one in (more, table)]
    share = fsum(spent_share(mechanism, *both, noise.seeded(7)).values())
    assert 0.5 < share <= 1


@pytest.mark.parametrize("name", ["dp_loc", "road_counts"])
@pytest.mark.parametrize("unit", ["user_day", "user"])
@pytest.mark.parametrize("canary", ["identical trips", "trips in different bins", "5,000 trips"])
def test_other_mechanisms_keep_their_promise_to_people(name, canary, unit, city):
    spaces = city.spaces()
    mechanism = replace(mechanisms.example(name, spaces), unit=unit, epsilon=60.0, delta=1e-6)
    table = table_of(city.trips)
    more = flock_canaries(spaces["grid"])[canary].with_columns(pl.col("datetime").cast(table.schema["datetime"]))
    both = [Trips(one, time_zone=city.trips.time_zone) for one in (pl.concat([table, more]), table)]
    assert 0.9 < fsum(spent_share(mechanism, *both, noise.seeded(7)).values()) <= 1


def sly_canaries(grid: Grid, others: list[int]) -> dict[str, pl.DataFrame]:
    """Days of one person where clocks change by half an hour; each would cost more under a careless rule."""
    middle = (grid.south + grid.north) / 2, (grid.west + grid.east) / 2
    other = middle[0] + 0.02, middle[1] + 0.02
    noon, change = datetime(2024, 1, 9, 0, tzinfo=UTC), datetime(2024, 4, 6, 13, 40, tzinfo=UTC)
    same = straight([middle] * 40, at=noon)
    names = dict(zip(same["tid"].unique(maintain_order=True).to_list(), others, strict=False))
    return {
        "two bins by turns": straight([middle, other] * 30, at=noon, minutes=7),
        "no length": straight([middle] * 40, at=noon).with_columns(lng=pl.lit(middle[1])),
        "names of other people's trips": same.with_columns(pl.col("tid").replace(names)),
        "clocks change": straight([middle, other] * 30, at=change, minutes=2),
        "all but one outside": straight([(grid.south - 1, grid.west - 1)] * 40 + [middle], at=noon),
    }


@pytest.mark.parametrize("name", ["flock", "dp_loc", "road_counts", "od_counts"])
def test_sly_days_keep_the_promise_in_other_time_zones(name, city):
    spaces = city.spaces()
    mechanism = replace(mechanisms.example(name, spaces), unit="user_day", epsilon=60.0, delta=1e-6)
    table, used = table_of(city.trips), {}
    for canary, rows in sly_canaries(spaces["grid"], table["tid"].unique().sort().to_list()).items():
        more = pl.concat([table, rows.with_columns(pl.col("datetime").cast(table.schema["datetime"]))])
        both = [Trips(one, time_zone="Australia/Lord_Howe") for one in (more, table)]
        used[canary] = fsum(spent_share(mechanism, *both, noise.seeded(7)).values())
    assert max(used.values()) <= 1, used
    assert max(used.values()) > 0.8, used


def test_a_trip_that_enters_the_box_after_midnight_stays_with_its_day(city):
    """It counts with the unit of the day it began on, so a person's two days are two units of a trip each."""
    grid = city.spaces()["grid"]
    south, west = grid.south + 0.01, grid.west
    late = straight([(south, west - 0.006)], at=datetime(2024, 1, 9, 22, 55, tzinfo=UTC))  # 23:55 in the city's time zone
    next_day = straight([(south, west + 0.001)], at=datetime(2024, 1, 10, 12, tzinfo=UTC)).with_columns(
        tid=pl.lit(5, dtype=pl.Int64)
    )
    private = Trips(pl.concat([late, next_day]), time_zone="Europe/Berlin")
    mechanism = Flock(epsilon=60.0, delta=1e-6, unit="user_day", space=grid)
    asked = mechanism.ask({}, facts_of(private))
    bins, sums = Asking(mechanism, private, noise.seeded(1), key=b"k" * 16).exact(asked, "l2")["units"]
    assert bins.tolist() == [0] and sums.tolist() == [2 * 4096]


@pytest.mark.parametrize("clip", [0, 0.0, -1.0, float("inf"), float("nan"), True, "wide"])
def test_a_clip_is_a_finite_number_above_zero(clip):
    with pytest.raises(ParameterError, match="clip"):
        Flock(epsilon=1.0, delta=1e-6, unit="user", space=GRID, clip=clip)


@pytest.mark.parametrize("options", [{"unit": "trip", "delta": 1e-6}, {"unit": "user", "delta": 0.0, "max_trips": 4}])
def test_a_clip_that_nothing_is_clipped_to_is_refused(options):
    with pytest.raises(ParameterError, match="clip"):
        Flock(epsilon=1.0, space=GRID, clip=2.0, **options)


def test_pure_epsilon_still_needs_a_bound_on_trips():
    with pytest.raises(ParameterError, match="max_trips"):
        Flock(epsilon=1.0, unit="user", space=GRID)


def test_flock_on_people_releases_about_as_many_trips_as_there_are(city):
    mechanism = Flock(epsilon=30.0, delta=1e-6, unit="user", space=city.spaces()["grid"])
    names = [one.table.name for one in counted(mechanism, (city.trips,), noise.seeded(1))]
    assert names[0] == "units" and {"n", "n_tracks", "n_zones"} < set(names)
    released = [mm.rehearse(mechanism, city.trips, rng=noise.seeded(seed)).payload.n_trips for seed in range(5)]
    assert np.median(released) == pytest.approx(city.trips.n_trips, rel=0.2)  # each has noise of about 11 %
