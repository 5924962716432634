"""Visited cells: slots, filled gaps, merged repeats, hours; and a published table, exactly."""

import json
from datetime import UTC, datetime, timedelta
from functools import partial

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.discretise import (
    fill_gaps,
    locate,
    main_hour,
    merge_repeats,
    slots,
    to_cells,
    trip_hour,
    visit_hours,
    visited_cells,
)
from murmurate.ingest.pipeline import pipeline
from murmurate.ingest.segment import drop_single_visits
from murmurate.spaces import Grid, Plane

START = datetime(2024, 5, 1, 8, tzinfo=UTC)
GRID = Grid(0, 0, 0.1, 0.1, 1000)  # 12 x 12 cells of 0.009 degrees


def trips_in(seconds: list[float], cells: list[int], *, time_zone: str = "UTC", **columns: object) -> Trips:
    """One trip with points in the middle of these cells (-1: outside)."""
    lat, lng = GRID.centre(np.maximum(cells, 0))
    times = pl.Series([START + timedelta(seconds=s) for s in seconds], dtype=pl.Datetime("us", "UTC"))
    table = {"uid": "a", "tid": 1, "datetime": times, "lat": np.where(np.array(cells) < 0, -1.0, lat), "lng": lng, **columns}
    return Trips(pl.DataFrame(table), time_zone=time_zone)


def minutes(trips: Trips) -> list[float]:
    return [(time - START).total_seconds() / 60 for time in trips.table["datetime"]]


def test_the_most_frequent_cell_of_a_minute_wins():
    slotted, removed = slots(trips_in([0, 10, 20, 59, 60, 119], [5, 6, 6, 7, 8, 8]), grid=GRID)
    assert slotted.cell.tolist() == [6, 8]
    assert minutes(slotted) == [0, 1]
    assert slotted.space == GRID
    assert (removed.points, removed.trips) == (4, 0)


def test_a_tie_goes_to_the_first_seen():
    assert slots(trips_in([0, 1, 2, 3], [9, 4, 4, 9]), grid=GRID)[0].cell.tolist() == [9]
    assert slots(trips_in([0, 1], [4, 9]), grid=GRID)[0].cell.tolist() == [4]


def test_points_outside_never_win():
    private = trips_in([0, 1, 2, 70, 140], [-1, -1, 3, -1, 5])
    assert slots(private, grid=GRID)[0].cell.tolist() == [3, 5]
    assert locate(private, grid=GRID)[0].cell.tolist() == [3, 5]
    assert slots(trips_in([0], [-1]), grid=GRID)[1].trips == 1


def test_gaps_under_five_minutes_are_filled_on_the_straight_line():
    # Row 0 column 0 to row 3 column 8 in four minutes: truncated to whole rows and columns.
    filled, removed = fill_gaps(slots(trips_in([0, 240], [0, 3 * 12 + 8]), grid=GRID)[0])
    assert [divmod(cell, 12) for cell in filled.cell.tolist()] == [(0, 0), (0, 2), (1, 4), (2, 6), (3, 8)]
    assert minutes(filled) == [0, 1, 2, 3, 4]
    assert removed.points == -3
    backwards, _ = fill_gaps(slots(trips_in([0, 180], [3 * 12 + 8, 0]), grid=GRID)[0])
    assert [divmod(cell, 12) for cell in backwards.cell.tolist()] == [(3, 8), (2, 5), (1, 2), (0, 0)]


def test_gaps_of_five_minutes_stay_and_trips_are_not_joined():
    five = slots(trips_in([0, 300], [0, 40]), grid=GRID)[0]
    assert fill_gaps(five)[0].cell.tolist() == [0, 40]
    assert len(fill_gaps(five, under_s=301)[0].cell) == 6
    two = slots(trips_in([0, 180], [0, 40], tid=[1, 2]), grid=GRID)[0]
    assert fill_gaps(two)[0].cell.tolist() == [0, 40]


def test_repeats_keep_the_first_time():
    merged, removed = merge_repeats(slots(trips_in([0, 60, 120, 180, 240], [1, 1, 2, 1, 1]), grid=GRID)[0])
    assert merged.cell.tolist() == [1, 2, 1]
    assert minutes(merged) == [0, 2, 3]
    assert removed.points == 2
    apart = slots(trips_in([0, 60], [1, 1], tid=[1, 2]), grid=GRID)[0]
    assert merge_repeats(apart)[1].points == 0


@pytest.mark.parametrize(
    ("start", "lasts", "hour"),
    [
        ("17:58", 12, 17 + 1),  # the paper's example
        ("17:58", 4, 17),  # equal parts: the earlier
        ("17:58", 4.01, 18),
        ("17:10", 50, 17),
        ("16:31", 200, 17),  # the first whole hour
        ("16:00", 200, 16),
        ("23:50", 30, 0),
        ("12:00", 0, 12),
    ],
)
def test_the_hour_with_the_larger_part(start, lasts, hour):
    hours, mins = map(int, start.split(":"))
    begin = np.array([(hours * 60 + mins) * 60_000_000])
    assert main_hour(begin, np.array([int(lasts * 60_000_000)])).tolist() == [hour]


@given(st.integers(0, 10**6), st.integers(0, 300))
def test_the_hour_agrees_with_counting_minutes(start, lasts):
    counts: dict[int, int] = {}
    for minute in range(start, start + lasts + 1):
        counts[minute // 60] = counts.get(minute // 60, 0) + 1
    expected = max(counts, key=lambda hour: counts[hour]) % 24
    assert main_hour(np.array([start * 60_000_000]), np.array([(lasts + 1) * 60_000_000])).tolist() == [expected]


def test_hours_are_local():
    private = trips_in([0, 3000], [0, 1], time_zone="Asia/Kolkata")  # 13:30 to 14:20, five and a half hours on
    assert trip_hour(private)[0].table["hour"].to_list() == [13, 13]
    longer = trips_in([0, 3660], [0, 1], time_zone="Asia/Kolkata")  # 13:30 to 14:31
    assert trip_hour(longer)[0].table["hour"].to_list() == [14, 14]


def test_cells_of_a_trip_with_its_hour():
    private = trips_in([0, 30, 60, 240], [0, 0, 0, 3], time_zone="Europe/Helsinki", speed=[1, 2, 3, 4])
    cells = to_cells(private, GRID, hour=True)
    assert cells.cell.tolist() == [0, 1, 2, 3]
    assert minutes(cells) == [0, 2, 3, 4]
    assert cells.table["hour"].to_list() == [11] * 4
    assert cells.columns == ["uid", "tid", "datetime", "hour", "cell"]
    assert to_cells(private, GRID, slot_s=None).cell.tolist() == [0, 3]
    assert to_cells(trips_in([0, 60], [4, 4]), GRID).n_trips == 0
    assert to_cells(trips_in([0, 60], [4, 4]), GRID, min_visits=1).cell.tolist() == [4]


def test_sequences_without_times_have_cells_too():
    timeless = Trips(trips_in([0, 1, 2], [3, 3, 5]).table.drop("datetime"))
    assert to_cells(timeless, GRID).cell.tolist() == [3, 5]
    for step in (partial(slots, grid=GRID), trip_hour):
        with pytest.raises(InputError, match="datetime"):
            step(timeless)
    with pytest.raises(InputError, match="datetime"):
        fill_gaps(to_cells(timeless, GRID))


def test_cells_the_grid_does_not_have_are_left_out():
    cells = to_cells(trips_in([0, 60, 120], [3, 4, 5]), GRID)
    table = cells.table.with_columns(cell=pl.Series([3, GRID.n_cells, 5]))
    assert to_cells(Trips(table, GRID), GRID).cell.tolist() == [3, 5]


def many_trips(*, time=True, hour=False, cells=False, n_points=4000):
    """Random trips of one to thirty points, some outside of the box, some within one slot, some with long gaps."""
    generator = np.random.default_rng(5)
    trip = np.sort(generator.integers(0, 300, n_points))
    cell = generator.integers(-9, 40, n_points)
    lat, lng = GRID.centre(np.maximum(cell, 0))
    table = {"uid": [f"u{k % 7}" for k in trip], "tid": trip}
    if cells:
        table["cell"] = np.where(cell < -4, 10**6, cell)
    else:
        table |= {"lat": np.where(cell < 0, -1.0, lat), "lng": lng}
    if time:
        seconds = np.cumsum(generator.choice([5, 20, 60, 130, 290, 310, 4000], n_points))
        table["datetime"] = pl.Series(seconds * 1_000_000).cast(pl.Datetime("us", "UTC"))
    if hour:
        table["hour"] = generator.integers(0, 24, n_points)
    return Trips(pl.DataFrame(table), GRID if cells else None, "Europe/Helsinki")


@pytest.mark.parametrize("min_visits", [1, 2, 4])
@pytest.mark.parametrize(
    ("carries", "slot_s"),
    [
        ({}, 60),
        ({}, None),
        ({"hour": True}, 60),
        ({"time": False, "hour": True}, 60),
        ({"cells": True}, 60),
        ({"cells": True, "time": False, "hour": True}, None),
    ],
)
def test_visited_cells_as_arrays_are_those_of_the_table(carries, slot_s, min_visits):
    private = many_trips(**carries)
    table = to_cells(private, GRID, slot_s=slot_s, min_visits=min_visits, hour=True)
    arrays = visited_cells(private, GRID, slot_s=slot_s, min_visits=min_visits)
    assert table.n_trips > 50
    assert arrays.cells.tolist() == table.cell.tolist()
    assert arrays.offsets.tolist() == table.offsets.tolist()
    assert private.trip_ids.gather(arrays.trip).to_list() == table.trip_ids.to_list()
    hours = table.table["hour"].gather(table.offsets[:-1]).to_list()
    assert visit_hours(private, arrays, visit_s=slot_s or 0).tolist() == hours
    if private.has_time:
        assert arrays.start_us.tolist() == table.time_us[table.offsets[:-1]].tolist()


def test_visited_cells_of_nothing_are_none():
    empty = many_trips().take_trips(np.zeros(many_trips().n_trips, dtype=bool))
    assert visited_cells(empty, GRID).offsets.tolist() == [0]
    outside = trips_in([0, 60], [-1, -1])
    assert len(visited_cells(outside, GRID).trip) == 0
    with pytest.raises(InputError, match="datetime"):
        visit_hours(many_trips(time=False), visited_cells(many_trips(time=False), GRID))


def test_cells_need_a_grid():
    with pytest.raises(ParameterError, match="grid"):
        fill_gaps(Trips(slots(trips_in([0], [0]), grid=GRID)[0].table, Plane(0, 0)))
    with pytest.raises(ParameterError, match="slot_s"):
        slots(trips_in([0], [0]), grid=GRID, slot_s=0)
    with pytest.raises(ParameterError, match="under_s"):
        fill_gaps(slots(trips_in([0], [0]), grid=GRID)[0], under_s=10**9)


@given(
    st.lists(
        st.tuples(st.sampled_from("ab"), st.integers(0, 1), st.integers(0, 1500), st.integers(-1, 143)), min_size=1, max_size=40
    )
)
def test_cells_settle_and_counts_add_up(points):
    uid, tid, seconds, cells = zip(*points, strict=True)
    private = trips_in(list(seconds), list(cells), uid=uid, tid=tid)
    steps = [partial(slots, grid=GRID), fill_gaps, partial(trip_hour, visit_s=60), merge_repeats, drop_single_visits]
    prepared = pipeline(private, steps)
    assert sum(item.points for item in prepared.removed) == private.n_points - prepared.trips.n_points
    assert sum(item.trips for item in prepared.removed) == private.n_trips - prepared.trips.n_trips
    assert prepared.trips.table.equals(to_cells(private, GRID, hour=True).table)
    assert set(prepared.trips.table["uid"]) <= set(uid)
    assert to_cells(prepared.trips, GRID, hour=True).table.equals(prepared.trips.table)


@given(st.lists(st.integers(0, 5), min_size=1, max_size=60))
def test_the_most_frequent_cell_agrees_with_a_plain_count(cells):
    chosen = int(slots(trips_in([k / 2 for k in range(len(cells))], cells), grid=GRID)[0].cell[0])
    assert chosen == max(cells, key=lambda cell: (cells.count(cell), -cells.index(cell)))


@pytest.mark.data
@pytest.mark.parametrize("cell_m", [250, 500])
def test_the_published_taxi_table_is_reproduced_exactly(data_dir, cell_m):
    columns = {"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"}
    private = Trips(
        pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet").rename(columns), time_zone="America/Los_Angeles"
    )
    wanted = json.loads((data_dir / "dploc_table1.json").read_text())["released_code_rules_200_longest_Europe_Budapest"]
    cells = to_cells(private, Grid(37.6017, -122.5158, 37.8112, -122.3527, cell_m))
    visits = np.diff(cells.offsets)
    found = {
        "D": cells.n_trips,
        "L": len(np.unique(cells.cell)),
        "max": int(visits.max()),
        "avg": round(float(visits.mean()), 2),
        "sd": round(float(visits.std()), 2),
    }
    assert found == wanted[str(cell_m)]
