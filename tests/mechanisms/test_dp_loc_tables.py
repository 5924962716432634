"""What dp_loc counts, and what it makes of noisy counts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking import Answer, Budget, Facts, Part
from murmurate.asking.clipping import clipped_sums, dense
from murmurate.asking.rounds import Asking
from murmurate.mechanisms.dp_loc import DPLoc
from murmurate.mechanisms.dp_loc.ends_counts import ends_of, zones_of
from murmurate.mechanisms.dp_loc.moves_counts import sizes_of
from murmurate.mechanisms.dp_loc.tables import BY_CELL, BY_ZONE, END_SHARES, MOVE_SHARES, Read, ReadTrips, Tables, shares_of
from murmurate.spaces.grid import Grid
from murmurate.synthesis.ends import Ends
from murmurate.synthesis.moves import Neighbourhood, move_histograms
from murmurate.synthesis.sequences import CellTrips

FACTS = Facts(carries=frozenset({"time", "coordinates"}))
ROWS, COLUMNS = 12, 10


def tables_of(rows=ROWS, columns=COLUMNS, **options):
    settings = {
        "around": Neighbourhood(rows=rows, columns=columns, reach=2), "max_cells": 30, "limit": 1.0,
        "reading": ReadTrips(grid=Grid(0, 0, 1, 1, 5000), slot_s=60, hours=24), "shares": shares_of(0.5),
    }  # fmt: skip
    return Tables(**{**settings, **options})


def measured(asked, trips, budget, rng):
    rows = asked.contribute(Read(trips, np.arange(trips.n)))
    return {
        table.name: budget.draw(table, dense(clipped_sums(table, rows[table.name], budget.norm), table.n_bins), rng)
        for table in asked.tables
    }


def learned_ends(trips, epsilon, tables=None, seed=1):
    tables, budget, rng = tables or tables_of(), Budget(epsilon=epsilon, delta=1e-6), noise.seeded(seed)
    answers = measured(tables.round(BY_CELL), trips, budget, rng)
    zones = zones_of(answers, tables, budget)
    return ends_of(answers | measured(tables.round(BY_ZONE, zones), trips, budget, rng), tables, zones)


def there_and_back(n, seed=1):
    """Mornings go from the south-west to the north-east, evenings back."""
    generator = np.random.default_rng(seed)
    hour = generator.choice([8, 17], n, p=[0.6, 0.4])
    low = generator.integers(0, 4, n) * COLUMNS + generator.integers(0, 3, n)
    high = (ROWS - 1 - generator.integers(0, 3, n)) * COLUMNS + COLUMNS - 1 - generator.integers(0, 3, n)
    source, destination = np.where(hour == 8, low, high), np.where(hour == 8, high, low)
    return CellTrips(np.stack([source, destination], axis=1).ravel(), np.arange(0, 2 * n + 1, 2), hour)


# -- ends and sizes ----------------------------------------------------------------------------------------------------


def test_ends_are_learned():
    source, destination, hour = learned_ends(there_and_back(20_000), 4.0).sample(20_000, np.random.default_rng(1))
    assert np.isin(hour, [8, 17]).mean() > 0.97
    morning = (source // COLUMNS < 4) & (destination // COLUMNS >= ROWS - 3)
    assert morning[hour == 8].mean() > 0.97
    assert morning[hour == 17].mean() < 0.03
    assert (hour == 8).mean() == pytest.approx(0.6, abs=0.02)


def test_noise_alone_leaves_no_pattern():
    source, _, hour = learned_ends(there_and_back(50), 0.01).sample(5_000, np.random.default_rng(1))
    assert source.min() >= 0
    assert source.max() < ROWS * COLUMNS
    assert len(np.unique(hour)) >= 1


def test_arrays_make_the_same_ends_again():
    ends = learned_ends(there_and_back(2_000), 4.0)
    again = Ends(**ends.arrays())
    for one, other in zip(ends.sample(500, np.random.default_rng(3)), again.sample(500, np.random.default_rng(3)), strict=True):
        assert (one == other).all()


def test_no_trips_still_give_ends():
    empty = CellTrips(np.zeros(0, np.int64), np.zeros(1, np.int64), np.zeros(0, np.int64))
    source, destination, hour = learned_ends(empty, 1.0, tables_of(3, 3)).sample(100, np.random.default_rng(1))
    assert (source < 9).all()
    assert (destination < 9).all()
    assert (hour < 24).all()


def test_sizes_follow_distance_and_hour():
    generator = np.random.default_rng(1)
    n, tables = 20_000, tables_of(20, 20)
    hours = generator.choice([3, 12], n)
    far = generator.random(n) < 0.5
    sizes = np.where(far, 9, 3) + (hours == 12)
    cells = [
        np.r_[np.zeros(size - 1, np.int64) + np.arange(size - 1) % 2, 399 if far_ else 1 + size % 2]
        for size, far_ in zip(sizes, far, strict=True)
    ]
    trips = CellTrips(np.concatenate(cells), np.r_[0, np.cumsum(sizes)], hours)

    class Known:
        def sample(self, n, generator):
            drawn = generator.integers(0, trips.n, n)
            return trips.sources[drawn], trips.destinations[drawn], trips.hours[drawn]

    asked = tables.round(("sizes_by_ring", "sizes_by_hour"))
    answers = measured(asked, trips, Budget(epsilon=10.0, delta=1e-6), noise.seeded(1))
    found = sizes_of(answers, ends=Known(), n=float(n), tables=tables, generator=generator)
    for far_ in (True, False):
        for hour in (3, 12):
            chosen = (far == far_) & (hours == hour)
            drawn = found.sample(trips.sources[chosen], trips.destinations[chosen], hours[chosen], generator)
            assert drawn.mean() == pytest.approx(sizes[chosen].mean(), abs=0.35)
            assert drawn.min() >= 2


# -- what is counted ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("ends_share", [0.2, 0.5, 0.9])
def test_shares_make_a_whole(ends_share):
    assert sum(END_SHARES.values()) == pytest.approx(1.0)
    assert sum(MOVE_SHARES.values()) == pytest.approx(1.0)
    assert sum(shares_of(ends_share).values()) == pytest.approx(1.0)


def exact(asked, private, asked_round, points=10**6):
    sums = Asking(asked, private, noise.seeded(1), key=b"k" * 16, part_points=points).exact(asked_round, "l2")
    return {table.name: dense(sums[table.name], table.n_bins) for table in asked_round.tables}


def rounds_of(asked):
    """All rounds; those after the first follow fixed answers, not the private trips."""
    rounds, answers = [], {}
    while (found := asked.ask(answers, FACTS)) is not None:
        rounds.append(found)
        answers |= {table.name: Answer((np.arange(table.n_bins) % 7 + 1) * 20.0, 1.0) for table in found.tables}
        answers |= {name: Answer(np.array([400.0]), 1.0) for name in ("n", "n_cells", "n_zones") if name in answers}
        if "units" in answers:  # most have a single trip
            answers["units"] = Answer(np.where(np.arange(len(answers["units"].noisy)) < 1, 50.0, 0.0), 1.0)
    return rounds


def test_moves_are_counted_as_simulated_trips_are():
    asked = DPLoc(epsilon=1.0, space=GRID)
    private = city(60)
    trips = ReadTrips(grid=GRID, slot_s=60, hours=24)(Part(private, np.arange(60))).trips
    histograms = move_histograms(trips, asked.around())
    counted = exact(asked, private, rounds_of(asked)[0])
    for name, table in histograms.items():
        assert (counted[name] == table.ravel()).all()


UNITS = [{"unit": "trip"}, {"unit": "user_day", "max_trips": 2}, {"unit": "user", "max_trips": 3}]


@pytest.mark.parametrize("options", UNITS, ids=["trip", "user_day", "user"])
def test_one_unit_changes_all_tables_together_by_no_more_than_the_budget(options):
    asked, private = DPLoc(epsilon=2.0, space=GRID, **options), city(120, users=20)
    first_of = private.table.gather(private.offsets[:-1])
    gone = private.trip_ids[5] if asked.unit == "trip" else private.user_ids[3]
    keep = first_of["tid" if asked.unit == "trip" else "uid"].to_numpy() != gone
    if asked.unit == "user_day":
        keep |= private.first_local_day != private.first_local_day[~keep].min()
    without = private.take_trips(keep)
    spent, moved = 0.0, 0
    for asked_round in rounds_of(asked):
        one, other = exact(asked, private, asked_round), exact(asked, without, asked_round)
        for table in asked_round.tables:
            change = np.linalg.norm((one[table.name] - other[table.name]) / table.steps)
            assert change <= table.limit or table.joint
            spent += table.share * (change / table.limit) ** 2
            moved += change > 0
    assert 0.2 < spent <= 1
    assert moved >= 10  # the test would notice if nothing were counted


@pytest.mark.parametrize("options", UNITS, ids=["trip", "user_day", "user"])
def test_sums_do_not_depend_on_parts(options):
    asked, private = DPLoc(epsilon=2.0, space=GRID, **options), city(200)
    for asked_round in rounds_of(asked):
        whole = exact(asked, private, asked_round)
        for n_parts in (3, 8):
            found = exact(asked, private, asked_round, -(-private.n_points // n_parts))
            assert all((whole[name] == found[name]).all() for name in whole)


def test_persons_are_clipped_over_all_tables_of_a_round():
    asked = DPLoc(epsilon=2.0, space=GRID, unit="user")
    units, *later = rounds_of(asked)
    assert [table.name for table in units.tables] == ["units"]
    alone = {table.name for asked_round in later for table in asked_round.tables if not table.joint}
    assert alone == {"n"}
    assert sum(table.share for asked_round in rounds_of(asked) for table in asked_round.tables) == pytest.approx(1.0)
    assert not any(table.joint for one in rounds_of(replace(asked, unit="trip")) for table in one.tables)
