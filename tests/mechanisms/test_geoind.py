"""geoind: priced per point, fails closed, leaves nothing of the true place behind."""

from __future__ import annotations

import dataclasses
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from scipy import stats

from brackets import assert_bracketed, gamma_two_law
from murmurate.asking.bounding import bound, new_key
from murmurate.core.guarantee import from_json, to_json
from murmurate.core.trips import Trips
from murmurate.errors import GuaranteeRefused, InputError, ParameterError
from murmurate.mechanisms.geoind import GeoIndistinguishability, _distinct
from murmurate.noise import secure, seeded
from murmurate.spaces import Grid, Plane
from murmurate.spaces.sphere import great_circle_m

START = datetime(2026, 3, 2, 22, 0, tzinfo=UTC)


def geoind(**changes):
    return GeoIndistinguishability(**{"epsilon": 1.0, "radius_m": 200.0, "max_points": 50, **changes})


def trips(n_users=3, trips_each=2, points_each=10, *, minutes=1, lat=60.17, **carried):
    n = n_users * trips_each * points_each
    row = np.arange(n)
    table = pl.DataFrame(
        {
            "uid": [f"u{k}" for k in row // (trips_each * points_each)],
            "tid": row // points_each,
            "datetime": [START + timedelta(minutes=minutes * int(k)) for k in row],
            "lat": lat + 0.001 * (row % 4),
            "lng": 24.94 + 0.001 * (row % 2),
        }
    )
    return Trips(table.with_columns(**carried))


def still(n_trips: int, points_each: int, lat=60.17, lng=24.94):
    """Trips that never leave one place."""
    tid = np.repeat(np.arange(n_trips), points_each)
    return Trips(pl.DataFrame({"uid": tid, "tid": tid, "lat": np.full(tid.size, lat), "lng": np.full(tid.size, lng)}))


# -- the promise ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("changes", "per_metre"),
    [
        ({}, 0.25),
        ({"max_points": 1}, 0.005),
        ({"unit": "point"}, 0.005),
        ({"unit": "user", "max_points": 1000, "max_trips": 20}, 5.0),
        ({"unit": "user_day", "epsilon": 0.1}, 0.025),
        ({"memo": True}, 0.25),
        ({"space": Plane(60.17, 24.94)}, 0.25),
    ],
)
def test_a_unit_costs_all_its_points(changes, per_metre):
    guarantee = geoind(**changes).guarantee()
    assert guarantee.epsilon_per_m == pytest.approx(per_metre)
    assert guarantee.unit.name == changes.get("unit", "trip")
    assert guarantee.unit.max_points == (None if changes.get("unit") == "point" else geoind(**changes).max_points)
    assert guarantee.unit.max_trips == changes.get("max_trips")
    assert from_json(to_json(guarantee)) == guarantee


def test_the_metric_is_named():
    assert "microdegree" in geoind().guarantee().metric
    assert "plane:60.17,24.94" in geoind(space=Plane(60.17, 24.94)).guarantee().metric


def test_the_statement_says_what_costs_and_what_is_open():
    text = " ".join(geoind().statement())
    for words in (
        "n points of one trace cost n times",
        "epsilon 50 at 200 m",
        "Exact times are not",
        "number of points is not",
        "order",
    ):
        assert words in text
    assert "m trips" in text
    assert "with n points is n times as large" in " ".join(geoind(unit="point").statement())
    memo = " ".join(geoind(memo=True, unit="user").statement())
    assert "pattern of returns is not protected" in memo
    assert "belong to one person" in memo
    assert "averaged" in text
    assert any("pattern of returns" in line for line in geoind(memo=True).guarantee().assumptions)
    assert not any("pattern of returns" in line for line in geoind().guarantee().assumptions)


def test_the_expected_error_is_the_one_found():
    assert "400 m on average" in geoind().expected_error()
    assert "948.8 m" in geoind().expected_error()
    assert stats.gamma(2, scale=200).cdf(948.8) == pytest.approx(0.95, abs=1e-4)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"radius_m": 0.0},
        {"radius_m": 1e8},
        {"epsilon": 1e300, "radius_m": 1e-300},
        {"max_points": 0},
        {"max_points": 2.5},
        {"unit": "trips"},
        {"max_trips": 3},
        {"max_trips": 0, "unit": "user"},
        {"memo": "yes"},
        {"memo": True, "unit": "point"},
        {"space": Grid(60.1, 24.8, 60.3, 25.2, 250)},
        {"space": Plane(60.17, 24.94), "epsilon": 1e-9},
    ],
)
def test_senseless_parameters_are_refused_at_construction(changes):
    with pytest.raises(ParameterError):
        geoind(**changes)


def test_it_is_frozen():
    with pytest.raises(dataclasses.FrozenInstanceError):
        geoind().epsilon = 2.0


# -- what it does -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [None, Plane(60.0, 25.0)])
@pytest.mark.parametrize("memo", [False, True])
def test_points_move_by_the_right_noise(space, memo):
    private = still(10_000, 1)

    def distances(scale_m):
        mechanism = geoind(radius_m=scale_m, max_points=1, space=space, memo=memo)
        out = mechanism.apply(private, secure())
        return great_circle_m(60.17, 24.94, out.lat, out.lng)

    assert_bracketed(distances, gamma_two_law(), 200.0)


def test_only_places_change_and_the_input_stays():
    private = trips()
    before = private.table.clone()
    out = geoind().apply(private, seeded(1))
    assert private.table.equals(before)
    assert out.table.drop("lat", "lng").equals(before.drop("lat", "lng"))
    assert not np.any(out.lat == private.lat)
    assert out.time_zone == private.time_zone


def test_released_points_lie_on_the_lattice():
    out = geoind().apply(trips(), seeded(1))
    for values in (out.lat, out.lng):
        assert np.array_equal(values, np.rint(values * 1e6) / 1e6)
    plane = Plane(60.17, 24.94)
    out = geoind(space=plane).apply(trips(), seeded(1))
    steps = np.array(plane.to_xy(out.lat, out.lng)) / plane.step_m
    assert np.abs(steps - np.rint(steps)).max() < 1e-3


def test_points_that_snap_together_are_released_alike():
    """Below the lattice nothing of the input can be seen."""
    one, other = still(200, 1, lat=60.17), still(200, 1, lat=60.17 + 4e-7)
    assert geoind().apply(one, seeded(2)).table.equals(geoind().apply(other, seeded(2)).table)


def test_columns_that_tell_the_true_place_stay_behind():
    private = trips(cell=pl.lit(7), speed=pl.lit(3.5), address=pl.lit("Main Street 1"))
    out = geoind().apply(private, seeded(1))
    assert out.columns == ["uid", "tid", "datetime", "lat", "lng"]
    assert out.space is None


def test_same_seed_same_output_and_secure_never_the_same():
    assert geoind().apply(trips(), seeded(3)).table.equals(geoind().apply(trips(), seeded(3)).table)
    assert not geoind().apply(trips(), secure()).table.equals(geoind().apply(trips(), secure()).table)


@pytest.mark.parametrize("memo", [False, True])
def test_nothing_single_points_and_sequences_without_time(memo):
    mechanism = geoind(memo=memo)
    empty = trips().take_points(np.zeros(60, dtype=bool))
    assert mechanism.apply(empty, seeded(1)).n_points == 0
    assert mechanism.apply(still(1, 1), seeded(1)).n_points == 1
    assert mechanism.apply(still(5, 3), seeded(1)).n_trips == 5


@pytest.mark.parametrize("memo", [False, True])
def test_poles_and_the_date_line(memo):
    table = pl.DataFrame({"uid": 1, "tid": 1, "lat": [90.0, -90.0, 0.0, 0.0], "lng": [10.0, 0.0, 180.0, -180.0]})
    out = geoind(memo=memo).apply(Trips(table), seeded(1))
    assert great_circle_m(table["lat"], table["lng"], out.lat, out.lng).max() < 5000
    assert (out.lat[2] == out.lat[3]) == memo  # 180 east and 180 west are one place


# -- bounds: fail closed ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "changes",
    [
        {"max_points": 9},
        {"max_points": 19, "unit": "user"},
        {"max_points": 19, "unit": "user_day"},
        {"max_trips": 1, "unit": "user"},
        {"max_points": 9, "memo": True},
    ],
)
def test_a_unit_beyond_its_bound_is_refused_and_the_door_cuts_it(changes):
    mechanism = geoind(**changes)
    private = trips()
    with pytest.raises(GuaranteeRefused, match="priced for at most"):
        mechanism.apply(private, seeded(1))
    bounded = bound(private, mechanism.guarantee().unit, new_key(seeded(1)))
    assert 0 < mechanism.apply(bounded, seeded(1)).n_points < private.n_points


def test_bounds_that_just_hold_are_let_through():
    for changes in ({"max_points": 10}, {"max_points": 20, "unit": "user"}, {"max_trips": 2, "unit": "user"}):
        assert geoind(**changes).apply(trips(), seeded(1)).n_points == 60


def test_a_unit_of_one_point_has_no_bound():
    assert geoind(unit="point", max_points=1).apply(trips(), seeded(1)).n_points == 60


def test_days_need_times():
    with pytest.raises(InputError, match="user_day needs a time"):
        geoind(unit="user_day").apply(still(2, 2), seeded(1))


def test_points_beyond_the_plane_are_refused():
    with pytest.raises(ParameterError, match="origin"):
        geoind(space=Plane(-33.9, 151.2)).apply(trips(), seeded(1))


# -- memo -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [None, Plane(60.17, 24.94)])
@pytest.mark.parametrize(("unit", "scopes"), [("trip", 6), ("user", 3), ("user_day", 4)])
def test_memo_draws_once_for_each_place_of_a_unit(unit, scopes, space):
    # six trips of 40 minutes from 22:00 on: the second of the second person begins at midnight
    private = trips(minutes=4)
    mechanism = geoind(memo=True, unit=unit, space=space)
    out = mechanism.apply(private, seeded(4))
    both = private.table.select("uid", "tid", "lat", "lng").with_columns(new_lat=out.lat, new_lng=out.lng)
    groups = both.select("lat", "lng", "new_lat", "new_lng").unique()
    places = both.select("lat", "lng").unique().height
    assert groups.height == places * _units(private, mechanism) == places * scopes
    assert both.select("new_lat", "new_lng").unique().height == groups.height


def _units(private, mechanism):
    from murmurate.asking.bounding import units_of_trips

    return len(np.unique(units_of_trips(private, mechanism.guarantee().unit)))


def test_memo_tells_places_apart_as_unique_does():
    rng = np.random.default_rng(8)
    units, x, y = (rng.integers(-high, high, 20_000) for high in (40, 9, 200_000_000))
    y = np.where(rng.random(y.size) < 0.9, y // 50_000_000, y)
    first, inverse = _distinct(units, x, y)
    rows = np.column_stack([units, x, y])
    assert np.array_equal(rows[first][inverse], rows)
    assert len(first) == len(np.unique(rows, axis=0))


def test_without_memo_returns_are_drawn_again():
    out = geoind().apply(still(1, 50), seeded(5))
    assert out.table.select("lat", "lng").unique().height == 50


def test_averaging_finds_a_place_that_memo_hides():
    private = still(1, 2000)
    errors = {}
    for memo in (False, True):
        out = geoind(memo=memo, max_points=2000).apply(private, seeded(6))
        errors[memo] = float(great_circle_m(60.17, 24.94, out.lat.mean(), out.lng.mean()))
    assert errors[False] < 40 < errors[True]
