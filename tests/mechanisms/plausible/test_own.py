"""`own`: days of people who do not exist, from noisy statistics alone."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.asking.rounds import fitted
from murmurate.core.guarantee import DP
from murmurate.errors import ContractBroken, InputError, ParameterError
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.patterns import label_days
from murmurate.mechanisms.plausible.placing import expected_counts
from murmurate.mechanisms.plausible.rhythm import fit_rhythm
from murmurate.mechanisms.plausible.statistics import measured
from murmurate.noise import seeded
from plausible_days import GRID, made_days, trips_of


def plausible(**changes):
    return Plausible(**{"space": GRID, "n_out": 50, **changes})


@pytest.fixture(scope="module")
def days():
    return made_days(400, 2)


@pytest.fixture(scope="module")
def model(days):
    noisy = measured(days, GRID, epsilon=4.0, rng=seeded(2))
    return DayModel.fit(noisy, GRID, steps=72, time_zone="Europe/Helsinki", rng=seeded(2))


def test_the_promise_is_for_a_whole_person():
    guarantee = plausible(epsilon=0.5).guarantee()
    assert isinstance(guarantee, DP)
    assert (guarantee.epsilon, guarantee.delta, guarantee.unit.name) == (0.5, 0.0, "user")
    assert any("public choices" in line for line in guarantee.assumptions)
    text = " ".join(plausible(epsilon=0.5).statement())
    assert "epsilon 0.5 per person" in text
    assert "another day" in text


def test_days_of_nobody_on_a_day_that_never_was():
    private = trips_of(made_days(20, 2))
    out = fitted(plausible(), private, seeded(1)).sample(30, seeded(1))
    assert (out.n_trips, out.n_users, out.n_points) == (30, 30, 30 * 72)
    assert set(out.local_day.tolist()) == {11323}  # 2001-01-01
    assert ((out.cell >= 0) & (out.cell < GRID.n_cells)).all()
    assert (GRID.locate(out.lat, out.lng) == out.cell).all()
    assert set(out.columns) == {"uid", "tid", "datetime", "lat", "lng", "cell"}


def test_days_begin_at_local_midnight(model):
    out = model.sample(2, seeded(1))
    assert out.local_hour[0] == 0
    assert out.table["datetime"][0].hour == 22


@pytest.mark.parametrize(
    "private", [trips_of(made_days(1, 1)).take_points(np.zeros(72, dtype=bool)), trips_of(made_days(2, 1), every=40)]
)
def test_nobody_at_all_still_gives_days(private):
    """A refusal would tell that there is nobody."""
    assert fitted(plausible(), private, seeded(1)).sample(5, seeded(1)).n_trips == 5


def moves_and_places(place):
    return (place[:, 1:] != place[:, :-1]).sum(axis=1).mean(), label_days(place)[2].mean()


def test_days_look_as_measured(days):
    """The median over several draws of the noise: single draws miss the moves by more than 15 % about one time in four."""
    found, nights = [], []
    for seed in range(9):
        noisy = measured(days, GRID, epsilon=4.0, rng=seeded(seed))
        made = DayModel.fit(noisy, GRID, steps=72, time_zone="UTC", rng=seeded(seed)).places(2000, seeded(5))
        found.append(moves_and_places(made))
        nights.append((made[:, 0] == made[:, 6]).mean())
    assert np.median(found, axis=0) == pytest.approx(moves_and_places(days.place), rel=0.15)
    assert np.median(nights) > 0.9


@pytest.mark.parametrize("seed", [22, 33, 51])
def test_noise_that_is_hard_to_fit_does_not_make_days_of_moves_alone(days, seed):
    """Newton's method overshot for ever on these draws: days had 64 to 67 moves in place of two."""
    noisy = measured(days, GRID, epsilon=4.0, rng=seeded(seed))
    label, _ = fit_rhythm(noisy, steps=72, generator=np.random.default_rng(seed)).draw(400, np.random.default_rng(seed))
    assert (label[:, 1:] != label[:, :-1]).sum(axis=1).mean() == pytest.approx(moves_and_places(days.place)[0], rel=0.3)


def test_popular_places_stay_popular():
    days = made_days(600, 1)
    days.place[days.place < 30] = 4
    noisy = measured(days, GRID, epsilon=2.0, rng=seeded(2))
    made = DayModel.fit(noisy, GRID, steps=72, time_zone="UTC", rng=seeded(2)).places(500, seeded(1))
    assert np.bincount(made.ravel(), minlength=100).argmax() == 4


def test_places_of_a_day_are_different_cells(model):
    label, n_labels = model.rhythm.draw(200, np.random.default_rng(1))
    placed = model.map.place(label, n_labels, np.random.default_rng(2))
    assert (label_days(placed)[2] == n_labels).all()


def test_shunned_cells_are_not_visited(model):
    label, n_labels = model.rhythm.draw(50, np.random.default_rng(1))
    shunned = np.tile(np.arange(60, dtype=np.int32), (50, 1))
    assert model.map.place(label, n_labels, np.random.default_rng(2), shunned=shunned).min() >= 60


def test_moves_are_as_long_as_measured(days):
    near = days.place.copy()
    near[near != near[:, :1]] = (
        (near[:, :1] + np.zeros_like(near))[near != near[:, :1]] // 10 * 10
        + 9
        - near[:, :1].repeat(72, 1)[near != near[:, :1]] % 10
    )
    short = type(days)(days.person, days.day, near, days.coverage, days.n_places)
    lengths = []
    for part in (days, short):
        noisy = measured(part, GRID, epsilon=4.0, rng=seeded(2))
        made = DayModel.fit(noisy, GRID, steps=72, time_zone="UTC", rng=seeded(2)).places(500, seeded(1))
        moved = made[:, 1:] != made[:, :-1]
        lengths.append(GRID.distance(made[:, :-1][moved], made[:, 1:][moved]).mean())
    assert lengths[1] < lengths[0]


def test_a_model_comes_back_as_it_was(model, tmp_path):
    model.save(tmp_path)
    again = plausible().load(tmp_path)
    assert (again.places(40, seeded(3)) == model.places(40, seeded(3))).all()
    assert again.time_zone == "Europe/Helsinki"


@pytest.mark.parametrize("damage", ["no file", "not json", "format", "cells", "nan"])
def test_a_damaged_model_is_refused(model, tmp_path, damage):
    model.save(tmp_path)
    schema, arrays = tmp_path / "model.json", tmp_path / "model.npz"
    if damage == "no file":
        arrays.unlink()
    elif damage == "not json":
        schema.write_text("{")
    elif damage == "format":
        schema.write_text(schema.read_text().replace("plausible-1", "plausible-9"))
    else:
        with np.load(arrays) as stored:
            values = dict(stored)
        values["cells" if damage == "cells" else "pull"][0] = -5 if damage == "cells" else np.nan
        np.savez(arrays, **values)
    with pytest.raises(InputError):
        plausible().load(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0.0},
        {"n_out": 0},
        {"n_out": None},
        {"variant": "best"},
        {"steps": 5},
        {"min_coverage": 1.5},
        {"space": "grid"},
        {"k": 0},
        {"par_v": 0.5},
        {"par_m": 2.0},
        {"merge": "all"},
        {"smoothing": 0.0},
        {"seed_share": 1.0},
        {"classes": -1},
        {"most_per_seed": 0},
    ],
)
def test_senseless_parameters_are_refused_at_construction(changes):
    with pytest.raises(ParameterError):
        plausible(**changes)


@pytest.mark.parametrize("variant", ["own-seeded", "own-tested", "as_published"])
def test_only_own_learns_a_model_and_others_are_refused_before_the_charge(variant, tmp_path):
    assert plausible().budget() is not None
    other = plausible(variant=variant)
    assert other.budget() is None
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        with pytest.raises(ParameterError, match="learns no model with these settings"):
            mm.fit(other, trips_of(made_days(2, 1)), ledger=ledger, accept_no_guarantee=True, out=tmp_path / "out")
        assert not any(line.n_charges for name in ledger.populations() for line in ledger.spent(name))


def test_own_is_never_handed_trips():
    with pytest.raises(ContractBroken, match="noisy tables alone"):
        plausible().apply(trips_of(made_days(2, 1)), seeded(1))


def test_a_release_has_the_days_asked_for(tmp_path):
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        made = mm.release(plausible(n_out=30), trips_of(made_days(20, 2)), ledger=ledger, out=tmp_path / "out")
    assert made.trips.n_trips == 30


def test_counts_are_drawn_to_the_prior_only_where_noise_hides_them():
    truth = np.r_[200.0, np.zeros(99)]
    clear = expected_counts(truth, 1.0, np.full(100, 2.0))
    assert clear[0] == pytest.approx(200, rel=0.05)
    assert clear[1:].max() < 1.0
    drowned = expected_counts(truth * 0 + 30.0, 1000.0, np.full(100, 2.0))
    assert drowned == pytest.approx(np.full(100, 2.0), rel=0.2)


def test_same_rng_same_days():
    private = trips_of(made_days(10, 1))
    tables = [fitted(plausible(), private, seeded(4)).sample(20, seeded(4)).table for _ in range(2)]
    assert tables[0].equals(tables[1])
    assert isinstance(tables[0], pl.DataFrame)
