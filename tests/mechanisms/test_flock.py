from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking import STEPS, Answer, Budget
from murmurate.asking.meter import counted, spent_share
from murmurate.asking.rounds import fitted
from murmurate.attacks.audit import audit
from murmurate.core.accounting import compose
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.flock import Flock, fitting, rounds
from murmurate.spaces.grid import Grid

FINER = Grid(60.10, 24.80, 60.16, 24.92, 200)


def mechanism(**options):
    return Flock(**{"epsilon": 2.0, "space": GRID, **options})


def made(asked, private, rng):
    return mm.rehearse(asked, private, rng=rng).payload


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    """Fewer candidates: what is tested here does not hang on how many there are."""
    monkeypatch.setattr(fitting, "ENDS_POOL_TRIPS", (10_000, 10_000))
    monkeypatch.setattr(fitting, "POOL_TRIPS", (2_000, 2_000))


# -- the promise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"epsilon": 0.1}, {"delta": 1e-6}, {"delta": 1e-9, "epsilon": 3.0}])
def test_an_accountant_finds_no_more_than_was_promised(options):
    promise = mechanism(**options).guarantee()
    found = compose(promise.events, delta=promise.delta)
    assert 0.99 * promise.epsilon < found <= promise.epsilon


@pytest.mark.parametrize("hours", [1, 24])
@pytest.mark.parametrize("detail", [0.0, 0.01, 0.4, 1.0])
@pytest.mark.parametrize("timed", [False, True])
@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_shares_never_exceed_the_budget(hours, detail, timed, norm):
    parts = rounds.shares(hours=hours, detail=detail, timed=timed, norm=norm)
    assert parts["n"] == rounds.COUNT_SHARE
    assert 0.999 < sum(parts.values()) <= 1 + 1e-12


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize("space", [GRID, FINER], ids=["fine", "coarse"])
@pytest.mark.parametrize(("unit", "most"), [("trip", None), ("user", 3)])
def test_all_tables_together_cost_what_is_promised(delta, space, unit, most):
    asked = mechanism(epsilon=10.0, space=space, delta=delta, unit=unit, max_trips=most)
    private = city(400 if space is GRID else 150)
    private = Trips(private.table.with_columns(uid=(pl.col("tid") // (most or 1)).cast(pl.String)))
    without = Trips(private.table.filter(pl.col("uid") != private.table["uid"][0]))
    costs = spent_share(asked, private, without, noise.seeded(1))
    assert len(costs) >= 9
    assert (0.8 if most is None else 0.2) < sum(costs.values()) <= 1


class OneRawTable(Budget):
    """The planted fault: one table is taken without noise."""

    def draw(self, table, exact, rng):
        answer = super().draw(table, exact, rng)
        return Answer(exact / STEPS, answer.deviation) if table.name == "diameter" else answer


@pytest.mark.parametrize("broken", [False, True])
def test_audit_and_a_twin_that_reads_one_raw_table(broken):
    """An adversary who sees every noisy table and knows all trips but one; all that is published follows from these."""
    asked = mechanism(epsilon=2.0 if broken else 8.0, hours=1)
    private = city(30)
    tables = counted(
        mechanism(epsilon=30.0, hours=1), (private, private.take_trips(np.arange(1, private.n_trips))), noise.seeded(2)
    )
    exact = [{one.table.name: one.exact(side) / STEPS for one in tables} for side in (0, 1)]

    def outputs(side, n, rng):
        ratios = []
        for _ in range(n):
            budget = (OneRawTable if broken else Budget)(epsilon=asked.epsilon)
            seen = {one.table.name: budget.draw(one.table, one.exact(side), rng) for one in tables}
            if (seen["diameter"].noisy == exact[side]["diameter"]).all():
                ratios.append(1000.0 * (1 - 2 * side))
                continue
            ratios.append(
                sum(
                    float((np.abs(seen[name].noisy - exact[1][name]) - np.abs(seen[name].noisy - exact[0][name])).sum())
                    / (seen[name].deviation / 2**0.5)
                    for name in exact[0]
                )
            )
        return np.round(ratios, 3)

    bound = audit(outputs, n=400, rng=noise.seeded(3), confidence=0.95).value
    assert bound > asked.epsilon if broken else 0.5 < bound < asked.epsilon


# -- trips -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("space", [GRID, FINER], ids=["fine", "coarse"])
def test_released_trips_are_whole_and_near_the_truth(space):
    released = made(mechanism(epsilon=30.0, n_out=400, space=space), city(), noise.seeded(2))
    assert released.n_trips == 400
    assert set(released.columns) == {"uid", "tid", "datetime", "hour", "lat", "lng", "cell"}
    assert (space.locate(released.lat, released.lng) == released.cell).all()
    assert (np.diff(released.offsets) >= 2).all()
    hour = released.table["hour"].to_numpy()
    assert np.isin(hour, [8, 17]).mean() > 0.8
    assert (released.local_hour == hour).mean() > 0.9
    assert (np.diff(released.time_us)[np.diff(released.point_trip) == 0] >= 0).all()
    northward = released.lat[released.offsets[:-1]] < 60.13
    assert northward[hour[released.offsets[:-1]] == 8].mean() > 0.7
    assert northward[hour[released.offsets[:-1]] == 17].mean() < 0.3


def test_no_two_released_trips_are_the_same():
    released = made(mechanism(n_out=500), city(), noise.seeded(4))
    first = released.table.group_by("tid").agg(pl.col("lat").first(), pl.col("lng").first())
    assert first.select("lat", "lng").is_duplicated().sum() == 0


def test_without_times():
    private = Trips(city().table.drop("datetime"))
    released = made(mechanism(), private, noise.seeded(1))
    assert set(released.columns) == {"uid", "tid", "lat", "lng", "cell"}
    assert released.n_trips > 100


def test_without_n_out_the_number_is_noisy():
    sizes = {made(mechanism(epsilon=2.0), city(200), noise.seeded(seed)).n_trips for seed in range(3)}
    assert len(sizes) > 1


def test_a_model_is_saved_loaded_and_sampled_again(tmp_path):
    asked = mechanism()
    model = fitted(asked, city(), noise.seeded(3))
    model.save(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["arrays.npz", "schema.json"]
    again = asked.load(tmp_path)
    assert model.sample(200, noise.seeded(5)).n_trips == again.sample(200, noise.seeded(5)).n_trips == 200
    parts = [part.n_trips for part in again.batches(250, noise.seeded(5), at_once=100)]
    assert parts == [100, 100, 50]
    schema = (tmp_path / "schema.json").read_text()
    (tmp_path / "schema.json").write_text(schema.replace('"kind": "flock"', '"kind": "other"'))
    with pytest.raises(InputError, match="other"):
        asked.load(tmp_path)
    (tmp_path / "schema.json").write_text(schema)
    (tmp_path / "arrays.npz").write_bytes(b"nothing")
    with pytest.raises(InputError):
        asked.load(tmp_path)


def test_conditions():
    model = fitted(mechanism(epsilon=20.0), city(), noise.seeded(3))
    morning = model.sample(60, noise.seeded(5), hour=8)
    assert set(morning.table["hour"]) == {8}
    south = np.flatnonzero(GRID.row_column(np.arange(GRID.n_cells))[0] < GRID.rows // 2)
    for name, at in (("origin", 0), ("destination", -1)):
        made = model.sample(60, noise.seeded(5), **{name: south.tolist()})
        ends = made.cell[made.offsets[:-1] if at == 0 else made.offsets[1:] - 1]
        assert np.isin(ends, south).mean() > 0.95
    with pytest.raises(ParameterError, match="hour"):
        model.sample(5, noise.seeded(5), hour=24)
    with pytest.raises(ParameterError, match="no trip"):
        model.sample(5, noise.seeded(5), origin=[])


def test_same_stream_same_trips():
    one = made(mechanism(n_out=50), city(300), noise.seeded(9))
    assert one.table.equals(made(mechanism(n_out=50), city(300), noise.seeded(9)).table)


# -- bad input ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 10])
def test_too_few_trips_are_refused_by_the_charged_count(n):
    with pytest.raises(InputError, match="noisy count") as refused:
        made(mechanism(epsilon=0.5), city(n), noise.seeded(1))
    assert "times the epsilon" in str(refused.value)


def test_a_tiny_epsilon_says_what_it_would_need():
    with pytest.raises(InputError, match="from about 21,213 on"):
        made(mechanism(epsilon=0.01), city(100), noise.seeded(2))
    assert "21,213" in mechanism(epsilon=0.01).expected_error()


@pytest.mark.parametrize("delta", [0.0, 1e-6])
def test_trips_that_are_all_alike_or_in_one_cell(delta):
    alike = city(1).table
    copies = [alike.with_columns(tid=pl.lit(k, dtype=pl.Int64), uid=pl.lit(f"u{k}")) for k in range(200)]
    released = made(mechanism(n_out=100, delta=delta, epsilon=5.0), Trips(pl.concat(copies)), noise.seeded(1))
    assert released.n_trips == 100
    still = pl.concat(copies).with_columns(lat=pl.lit(60.13), lng=pl.lit(24.86))
    released = made(mechanism(n_out=100, delta=delta, epsilon=5.0), Trips(still), noise.seeded(1))
    assert released.n_trips == 100
    cell = GRID.locate(np.array([60.13]), np.array([24.86]))[0]
    assert (released.cell == cell).mean() > 0.2


def test_nothing_in_the_box_is_refused_by_the_count():
    elsewhere = Trips(city(100).table.with_columns(lat=pl.col("lat") + 1))
    with pytest.raises(InputError, match="noisy count"):
        made(mechanism(), elsewhere, noise.seeded(1))


@pytest.mark.parametrize(
    "wrong",
    [
        {"delta": 1.0}, {"delta": -1e-9}, {"unit": "point"}, {"unit": "user"}, {"max_trips": 3}, {"hours": 5},
        {"hours": True}, {"day": "someday"}, {"space": "grid"}, {"space": Grid(60.1, 24.8, 60.16, 24.92, 1e5)},
        {"slot_s": 0}, {"max_cells": 1}, {"max_speed_kmh": 0},
    ],
)  # fmt: skip
def test_bad_parameters_are_refused_at_construction(wrong):
    with pytest.raises(ParameterError):
        mechanism(**wrong)


def test_a_delta_near_one_over_the_people_is_refused_in_one_sentence():
    with pytest.raises(ParameterError, match="Give delta=1e-04 or less") as refused:
        mechanism(delta=0.01, people=1000)
    assert len(refused.value.args) == 1
    assert mechanism(delta=1e-4, people=1000).guarantee().delta == 1e-4


def test_more_trips_or_less_noise_make_finer_cells():
    grid = Grid(60.0, 24.6, 60.3, 25.2, 250)
    noise_level = rounds.NoiseLevel(Budget(epsilon=1.0))
    sizes = (500, 5_000, 50_000, 5_000_000)
    blocks = [rounds.block_of(grid, n, noise_level) for n in sizes]
    assert blocks == sorted(blocks, reverse=True) and blocks[0] > blocks[-1] == 1
    detail = [rounds.detail_of(grid.n_cells, n, noise_level) for n in sizes]
    assert detail == sorted(detail) and detail[0] == 0 and detail[-1] == 1


def test_origins_and_destinations_are_told_apart_where_the_noise_allows():
    few, many = (rounds.shares(hours=24, detail=at, timed=True, norm="l2") for at in (0.0, 1.0))
    assert "origins" not in few and "destinations" not in few
    assert many["origins"] == many["destinations"] > 0
    north = Trips(city(300).table.filter(pl.col("datetime").dt.hour().first().over("tid") == 8))  # all go northward
    tables = counted(mechanism(epsilon=50.0, delta=1e-6), (north, north), noise.seeded(4))
    exact = {one.table.name: one.exact(0) / STEPS for one in tables}
    south = np.arange(GRID.n_cells) // GRID.columns < GRID.rows / 2
    for name, half in (("origins", south), ("destinations", ~south)):
        assert exact[name][half].sum() == exact[name].sum() == north.n_trips


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_shares_change_little_by_little(norm):
    """No table appears at once with much of the budget: the share of every table follows detail without a jump."""
    for low, high in zip(np.linspace(0, 0.99, 100), np.linspace(0.01, 1, 100), strict=True):
        one, two = (rounds.shares(hours=24, detail=float(at), timed=True, norm=norm) for at in (low, high))
        assert max(abs(one.get(name, 0.0) - two.get(name, 0.0)) for name in one | two) < 0.012
