from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking.rounds import fitted
from murmurate.core.accounting import compose
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.dp_loc import DPLoc, moves_counts
from murmurate.spaces.grid import Grid


def mechanism(**options):
    return DPLoc(**{"epsilon": 2.0, "space": GRID, **options})


def released_by(asked, private, rng):
    """What `release` would draw."""
    model = fitted(asked, private, rng)
    return model.sample(asked.n_out or max(1, round(model.n)), rng)


@pytest.fixture
def few_simulated(monkeypatch):
    """For tests that are not about how good the trips are: calibration on a few trips instead of thousands."""
    monkeypatch.setattr(moves_counts, "LEAST_SIMULATED", 50)
    monkeypatch.setattr(moves_counts, "DRAWN_ENDS", 2_000)


# -- the promise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.1}, {"delta": 1e-9}, {"ends_share": 0.2}])
def test_an_accountant_finds_no_more_than_was_promised(options):
    promise = mechanism(**options).guarantee()
    assert compose(promise.events, delta=promise.delta) <= promise.epsilon
    assert compose(promise.events, delta=promise.delta) > 0.99 * promise.epsilon


def test_the_manifest_side_never_looks_at_data():
    promise = mechanism(unit="user", max_trips=4).guarantee()
    assert promise.unit.max_trips == 4
    assert all("400" not in sentence for sentence in mechanism().statement())


# -- trips -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["sampled", "most_probable"])
def test_released_trips_are_whole_and_near_the_truth(route):
    released = released_by(mechanism(epsilon=20.0, n_out=500, route=route), city(), noise.seeded(2))
    assert released.n_trips == 500
    assert set(released.columns) == {"uid", "tid", "datetime", "hour", "lat", "lng", "cell"}
    assert (GRID.locate(released.lat, released.lng) == released.cell).all()
    assert (np.diff(released.offsets) >= 2).all()
    hour = released.table["hour"].to_numpy()
    assert np.isin(hour, [8, 17]).mean() > 0.8
    assert (released.local_hour == hour).mean() > 0.95
    row, _ = GRID.row_column(released.cell[released.offsets[:-1]])
    northward = row < GRID.rows / 2
    assert northward[hour[released.offsets[:-1]] == 8].mean() > 0.7
    assert northward[hour[released.offsets[:-1]] == 17].mean() < 0.3


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.filterwarnings("ignore:the noisy number of trips")
def test_without_n_out_the_number_is_noisy():
    sizes = {released_by(mechanism(epsilon=1.0), city(60), noise.seeded(seed)).n_trips for seed in range(3)}
    assert len(sizes) > 1
    assert sizes != {60}


@pytest.mark.usefixtures("few_simulated")
def test_a_model_is_saved_loaded_and_sampled_again(tmp_path):
    asked = mechanism()
    model = fitted(asked, city(), noise.seeded(3))
    model.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrays.npz", "schema.json"]
    again = asked.load(tmp_path)
    one, other = model.sample(200, noise.seeded(5)), again.sample(200, noise.seeded(5))
    assert one.table.equals(other.table)
    parts = [part.n_trips for part in again.batches(250, noise.seeded(5), at_once=100)]
    assert parts == [100, 100, 50]


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.filterwarnings("ignore:the noisy number of trips")
def test_a_changed_model_is_refused(tmp_path):
    fitted(mechanism(), city(50), noise.seeded(3)).save(tmp_path)
    schema = (tmp_path / "schema.json").read_text()
    (tmp_path / "schema.json").write_text(schema.replace('"format": 1', '"format": 9'))
    with pytest.raises(InputError, match="format 9"):
        mechanism().load(tmp_path)
    (tmp_path / "schema.json").write_text(schema.replace("float32", "float64"))
    with pytest.raises(InputError, match="not what the schema says"):
        mechanism().load(tmp_path)
    (tmp_path / "arrays.npz").write_bytes(b"nothing")
    with pytest.raises(InputError, match="does not hold"):
        mechanism().load(tmp_path)


@pytest.mark.usefixtures("few_simulated")
def test_same_stream_same_trips():
    one = released_by(mechanism(n_out=50), city(100), noise.seeded(9))
    assert one.table.equals(released_by(mechanism(n_out=50), city(100), noise.seeded(9)).table)


def test_fewer_hours_a_day():
    released = released_by(mechanism(hours=4, n_out=100, epsilon=20.0), city(), noise.seeded(1))
    assert set(released.table["hour"].unique()) <= {0, 6, 12, 18}


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"space": Grid(60.0, 24.0, 61.0, 25.0, 50)}, "larger cells"),
        ({"space": None}, "public grid"),
        ({"space": Grid(60.0, 24.0, 60.001, 24.001, 500)}, "two cells"),
        ({"unit": "user", "variant": "as_published"}, "max_trips"),
        ({"unit": "trip", "max_trips": 3}, "max_trips"),
        ({"unit": "point"}, "unit"),
        ({"variant": "as_publishd"}, "Did you mean 'as_published'"),
        ({"hours": 5}, "hours"),
        ({"day": "yesterday"}, "day"),
        ({"epsilon": 1e9}, "epsilon"),
        ({"delta": 0.0}, "delta"),
    ],
)
def test_absurd_parameters_are_refused_at_once(options, why):
    with pytest.raises(ParameterError, match=why):
        mechanism(**options)


def test_trips_outside_the_box_leave_noise_alone_with_a_warning():
    outside = mechanism(space=Grid(10.0, 10.0, 10.02, 10.02, 600))
    with pytest.warns(UserWarning, match="hardly anything to learn"):
        model = fitted(outside, city(20), noise.seeded(1))
    assert model.sample(5, noise.seeded(2)).n_trips == 5, "whether anything leaves must not tell that somebody was there"


@pytest.mark.usefixtures("few_simulated")
def test_a_large_delta_warns():
    with pytest.warns(UserWarning, match="delta = 0.01 is large for about"):
        fitted(mechanism(delta=0.01), city(100), noise.seeded(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted(mechanism(), city(100), noise.seeded(1))
    assert "units:" not in " ".join(mechanism(delta=0.01).statement())


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.filterwarnings("ignore:the noisy number of trips")
def test_no_more_trips_of_a_unit_are_read_than_its_bound():
    lone = Trips(city(100).table.with_columns(uid=pl.lit("one")), time_zone="UTC")
    assert fitted(mechanism(epsilon=90.0, unit="user", max_trips=5), lone, noise.seeded(1)).n < 40


def test_without_a_network_there_is_nothing_to_train():
    for call in (mechanism().fit, mechanism().apply):
        with pytest.raises(ParameterError, match="noisy tables alone"):
            call(city(10), noise.seeded(1))
