from __future__ import annotations

import warnings

import numpy as np
import polars as pl
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking.bounding import bound, new_key
from murmurate.core.accounting import compose
from murmurate.core.events import Gaussian
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.dp_loc import DPLoc, moves_counts
from murmurate.spaces.grid import Grid
from murmurate.synthesis.measure import ONE


def mechanism(**options):
    return DPLoc(**{"epsilon": 2.0, "space": GRID, **options})


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


@pytest.mark.usefixtures("few_simulated")
@pytest.mark.parametrize(
    "options",
    [{"unit": "trip"}, {"unit": "user_day", "max_trips": 2}, {"unit": "user", "max_trips": 3}],
    ids=["trip", "user_day", "user"],
)
def test_every_table_is_noised_for_what_one_unit_changes(monkeypatch, options):
    """Neighbouring inputs through the whole fit: each measured table moves by no more than its event says."""
    asked = mechanism(**options)
    most = options.get("max_trips", 1)
    private = city(60, users=60)
    if options["unit"] != "trip":
        days = pl.col("datetime").dt.truncate("1d") if options["unit"] == "user_day" else pl.lit(0)
        first = private.table.group_by("uid", days.alias("d"), maintain_order=True).agg(
            pl.col("tid").unique(maintain_order=True).head(most)
        )
        keep = first.explode("tid").select("uid", "tid")
        private = Trips(private.table.join(keep, on=["uid", "tid"], how="semi"), time_zone="UTC")
        private = Trips(private.table.with_columns(uid=(pl.col("tid") // most).cast(pl.String)), time_zone="UTC")
    gone = private.table["uid"][0]
    removed = Trips(private.table.filter(pl.col("uid") != gone), time_zone="UTC")
    if options["unit"] == "trip":
        tid = private.table["tid"][0]
        removed = Trips(private.table.filter((pl.col("uid") != gone) | (pl.col("tid") != tid)), time_zone="UTC")

    def measured(trips):
        calls = []

        def record(values, *, scale, rng):
            calls.append((values.copy(), scale))
            return (np.arange(len(values)) % 7 + 1) * ONE * 20  # the same answers whatever the data, so zones agree

        monkeypatch.setattr(noise, "gaussian_integers", record)
        asked.fit(trips, noise.seeded(1))
        return calls

    with_unit, without = measured(private), measured(removed)
    multipliers = sorted(event.noise_multiplier for event in asked.guarantee().events if isinstance(event, Gaussian))
    assert sorted(scale / (ONE * most) for _, scale in with_unit) == pytest.approx(multipliers)
    moved = 0
    for (one, scale), (other, _) in zip(with_unit, without, strict=True):
        change = np.linalg.norm((one - other).astype(float))
        assert change <= ONE * most * (1 + 1e-12)
        moved += change > 0
        assert change / scale <= 1 / min(multipliers)
    assert moved >= 8  # the test would notice if nothing were measured


def test_the_manifest_side_never_looks_at_data():
    promise = mechanism(unit="user", max_trips=4).guarantee()
    assert promise.unit.max_trips == 4
    assert all("400" not in sentence for sentence in mechanism().statement())


# -- trips -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("route", ["sampled", "most_probable"])
def test_released_trips_are_whole_and_near_the_truth(route):
    released = mechanism(epsilon=20.0, n_out=500, route=route).apply(city(), noise.seeded(2))
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
def test_without_n_out_the_number_is_noisy():
    sizes = {mechanism(epsilon=1.0).apply(city(60), noise.seeded(seed)).n_trips for seed in range(3)}
    assert len(sizes) > 1
    assert sizes != {60}


@pytest.mark.usefixtures("few_simulated")
def test_a_model_is_saved_loaded_and_sampled_again(tmp_path):
    asked = mechanism()
    model = asked.fit(city(), noise.seeded(3))
    model.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrays.npz", "schema.json"]
    again = asked.load(tmp_path)
    one, other = model.sample(200, noise.seeded(5)), again.sample(200, noise.seeded(5))
    assert one.table.equals(other.table)
    parts = [part.n_trips for part in again.batches(250, noise.seeded(5), at_once=100)]
    assert parts == [100, 100, 50]


@pytest.mark.usefixtures("few_simulated")
def test_a_changed_model_is_refused(tmp_path):
    mechanism().fit(city(50), noise.seeded(3)).save(tmp_path)
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
    one = mechanism(n_out=50).apply(city(100), noise.seeded(9))
    assert one.table.equals(mechanism(n_out=50).apply(city(100), noise.seeded(9)).table)


def test_fewer_hours_a_day():
    released = mechanism(hours=4, n_out=100, epsilon=20.0).apply(city(), noise.seeded(1))
    assert set(released.table["hour"].unique()) <= {0, 6, 12, 18}


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"space": Grid(60.0, 24.0, 61.0, 25.0, 50)}, "larger cells"),
        ({"space": None}, "public grid"),
        ({"space": Grid(60.0, 24.0, 60.001, 24.001, 500)}, "two cells"),
        ({"unit": "user"}, "max_trips"),
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


def test_trips_outside_the_box_leave_noise_alone_as_the_custodian_is_told():
    outside = mechanism(space=Grid(10.0, 10.0, 10.02, 10.02, 600))
    with pytest.warns(UserWarning, match="nothing to learn"):
        model = outside.fit(city(20), noise.seeded(1))
    assert model.sample(5, noise.seeded(2)).n_trips == 5, "whether anything leaves must not tell that somebody was there"


@pytest.mark.usefixtures("few_simulated")
def test_a_large_delta_warns_the_custodian_only():
    with pytest.warns(UserWarning, match="custodian only"):
        mechanism(delta=0.01).fit(city(100), noise.seeded(1))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mechanism().fit(city(100), noise.seeded(1))
    assert "units:" not in " ".join(mechanism(delta=0.01).statement())


@pytest.mark.usefixtures("few_simulated")
def test_unbounded_units_are_refused_and_bounded_ones_read():
    lone = Trips(city(100).table.with_columns(uid=pl.lit("one")), time_zone="UTC")
    asked = mechanism(unit="user", max_trips=5, n_out=20)
    with pytest.raises(InputError, match="more than the 5 trips"):
        asked.fit(lone, noise.seeded(1))
    bounded = bound(lone, asked.guarantee().unit, new_key(noise.seeded(1)))
    assert asked.apply(bounded, noise.seeded(1)).n_trips == 20
