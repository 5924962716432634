"""An interrupted fit goes on without drawing any noise twice, and promises what an uninterrupted one promises."""

from __future__ import annotations

import shutil

import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking import budget as drawing
from murmurate.asking.kept_answers import alone, load_answers
from murmurate.core.events import Gaussian, PoissonGaussian
from murmurate.errors import InputError
from murmurate.mechanisms.dp_loc import DPLoc, moves_counts
from murmurate.mechanisms.dp_loc import mechanism as dp_loc_mechanism
from murmurate.mechanisms.dp_loc.tables import BY_CELL, BY_ZONE, MOVE_SHARES
from murmurate.papers.dp_loc import network_budget, network_fitting
from murmurate.papers.dp_loc.network_budget import budget_of
from murmurate.papers.training import train as training
from murmurate.papers.training.stages import Stages

PRIVATE = city(40)


class Killed(Exception):
    pass


@pytest.fixture(autouse=True)
def quick_accounting(monkeypatch):
    """Any noise will do here: solving for it takes longer than these trainings."""
    budget_of.cache_clear()
    monkeypatch.setattr(network_budget, "solve_noise_multiplier", lambda *_, **__: 1.0)
    yield
    budget_of.cache_clear()


def mechanism(**options):
    return DPLoc(**{"epsilon": 8.0, "space": GRID, "variant": "as_published", "epochs": 0.02, **options})


def counted(monkeypatch, kill_at=None):
    """Tables and training steps as they are noised from now on; a kill comes before the step of that number is noised."""
    tables, steps = [], []
    gaussian, noisy_sum = noise.gaussian_integers, training.noisy_sum

    def table(values, *, scale, **options):
        tables.append(scale)
        return gaussian(values, scale=scale, **options)

    def step(sums, **options):
        if len(steps) == kill_at:
            raise Killed
        noisy = noisy_sum(sums, **options)
        steps.append({name: noisy[name] - sums[name] for name in noisy})
        return noisy

    monkeypatch.setattr(drawing, "gaussian_integers", table)
    monkeypatch.setattr(training, "noisy_sum", step)
    return tables, steps


@pytest.mark.parametrize("kill_at", [5, 17], ids=["first network", "second network"])
def test_a_killed_fit_resumes_with_fresh_noise_and_the_same_promise(monkeypatch, tmp_path, kill_at):
    asked = mechanism()
    events = asked.guarantee().events
    charged = sum(event.times for event in events if isinstance(event, PoissonGaussian))
    with monkeypatch.context() as patched:
        tables, steps = counted(patched, kill_at)
        with pytest.raises(Killed):
            asked.fit(PRIVATE, noise.secure(), checkpoint=tmp_path)
    with monkeypatch.context() as patched:
        later_tables, later_steps = counted(patched)
        model = asked.fit(PRIVATE, noise.secure(), checkpoint=tmp_path)
    assert len(tables) + len(later_tables) == sum(isinstance(event, Gaussian) for event in events)
    # the step that was killed had begun: it counts as taken, and its noise is gone
    assert len(steps) + 1 + len(later_steps) == charged
    for before in steps:
        for after in later_steps:
            if before.keys() == after.keys():
                assert all((before[name] != after[name]).any() for name in before)
    assert asked.guarantee().events == events
    assert model.sample(10, noise.seeded(1)).n_trips == 10


def test_a_finished_fit_is_read_back(monkeypatch, tmp_path):
    asked = mechanism(initialiser="counts")
    first = asked.fit(PRIVATE, noise.secure(), checkpoint=tmp_path)
    tables, steps = counted(monkeypatch)
    again = asked.fit(PRIVATE, noise.secure(), checkpoint=tmp_path)
    assert not tables
    assert not steps
    assert again.sample(20, noise.seeded(3)).table.equals(first.sample(20, noise.seeded(3)).table)


def test_half_measured_tables_are_never_measured_again(monkeypatch, tmp_path):
    asked = mechanism(variant="own", initialiser="vae", epochs=0.1)

    def kill(*_, **__):
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(network_fitting, "counted_moves", kill)
        with pytest.raises(Killed):
            asked.fit(PRIVATE, noise.secure(), checkpoint=tmp_path)
    with pytest.raises(InputError, match="cannot be drawn again"):
        asked.fit(PRIVATE, noise.secure(), checkpoint=tmp_path)


def test_a_checkpoint_of_other_parameters_is_refused(tmp_path):
    mechanism().fit(PRIVATE, noise.secure(), checkpoint=tmp_path)
    with pytest.raises(InputError, match="other parameters"):
        mechanism(epsilon=9.0).fit(PRIVATE, noise.secure(), checkpoint=tmp_path)


def test_an_interrupted_measurement_goes_on_with_the_answers_it_has(monkeypatch, tmp_path):
    """Tables of a finished round are read back, and only the others are drawn."""
    asked = mechanism(variant="own", epochs=None)
    private = city(200)
    monkeypatch.setattr(moves_counts, "LEAST_SIMULATED", 50)
    monkeypatch.setattr(moves_counts, "DRAWN_ENDS", 2_000)

    def kill(*_, **__):
        raise Killed

    with mm.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        where = {"ledger": ledger, "out": tmp_path / "model", "population": "taxis"}
        with monkeypatch.context() as patched:
            tables, _ = counted(patched)
            patched.setattr(dp_loc_mechanism, "zones_of", kill)
            with pytest.raises(Killed) as stopped:
                mm.fit(asked, private, **where)
            assert len(tables) == len((*BY_CELL, *MOVE_SHARES))
        _, kept = load_answers(ledger.internal_folder / stopped.value.charged / "unfinished")
        assert set(kept) == {*BY_CELL, *MOVE_SHARES}
        with pytest.raises(InputError, match="was charged for something else: the parameters"):
            mm.fit(mechanism(variant="own", epochs=None, hours=12), private, **where, resume=stopped.value.charged)
        at_work = alone(ledger.internal_folder / stopped.value.charged)
        with at_work, pytest.raises(InputError, match="another process"):  # each would draw the next round by itself
            mm.fit(asked, private, **where, resume=stopped.value.charged)
        seen = []
        with monkeypatch.context() as patched:
            tables, _ = counted(patched)
            ends_of = dp_loc_mechanism.ends_of
            patched.setattr(
                dp_loc_mechanism, "ends_of", lambda answers, *rest: seen.append(dict(answers)) or ends_of(answers, *rest)
            )
            made = mm.fit(asked, private, **where, resume=stopped.value.charged)
            assert len(tables) == len(BY_ZONE)
        assert all((seen[0][name].noisy == answer.noisy).all() for name, answer in kept.items())
        assert made.manifest.release_id == stopped.value.charged
        assert not list((ledger.internal_folder / stopped.value.charged).glob("unfinished*"))


def test_the_door_lets_an_interrupted_fit_go_on_under_its_charge(monkeypatch, tmp_path):
    asked = mechanism()
    with mm.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        with monkeypatch.context() as patched:
            counted(patched, 5)
            with pytest.raises(Killed) as stopped:
                mm.fit(asked, PRIVATE, ledger=ledger, out=tmp_path / "model", population="taxis")
        charged = stopped.value.charged
        for other, why in (({"epochs": 0.03}, "parameters"), ({"epsilon": 9.0}, "guarantee")):
            with pytest.raises(InputError, match=why):
                mm.fit(mechanism(**other), PRIVATE, ledger=ledger, out=tmp_path / "x", population="taxis", resume=charged)
        with pytest.raises(InputError, match="seeded"):
            again = {"ledger": ledger, "out": tmp_path / "x", "population": "taxis", "resume": charged}
            mm.fit(asked, PRIVATE, **again, rng=noise.seeded(1))
        with monkeypatch.context() as patched:
            _, steps = counted(patched)
            made = mm.fit(asked, PRIVATE, ledger=ledger, out=tmp_path / "model", population="taxis", resume=charged)
        assert 0 < len(steps) < sum(e.times for e in asked.guarantee().events if isinstance(e, PoissonGaussian))
        assert made.manifest.release_id == charged
        assert [entry.what for entry in ledger.history("taxis")].count("debit") == 1
        assert not list((ledger.internal_folder / charged).glob("unfinished*"))
        with pytest.raises(InputError, match="finished"):
            mm.fit(asked, PRIVATE, ledger=ledger, out=tmp_path / "again", population="taxis", resume=charged)


def test_only_what_kept_its_noise_goes_on(monkeypatch, tmp_path):
    asked, other = mechanism(), mm.Flock(epsilon=1.0, space=GRID)
    with mm.Ledger(f"sqlite:///{tmp_path / 'ledger.db'}") as ledger:
        with monkeypatch.context() as patched:
            counted(patched, 5)
            with pytest.raises(Killed) as stopped:
                mm.fit(asked, PRIVATE, ledger=ledger, out=tmp_path / "model", population="taxis")
        with pytest.raises(InputError, match="was charged for something else"):
            mm.fit(other, PRIVATE, ledger=ledger, out=tmp_path / "model", population="taxis", resume=stopped.value.charged)
        shutil.rmtree(ledger.internal_folder / stopped.value.charged / "unfinished")
        with pytest.raises(InputError, match="nothing is kept"):
            mm.fit(asked, PRIVATE, ledger=ledger, out=tmp_path / "model", population="taxis", resume=stopped.value.charged)


def test_two_processes_never_work_at_one_fit(tmp_path):
    with Stages(tmp_path, {}), pytest.raises(InputError, match="another process"), Stages(tmp_path, {}):
        pass
    with Stages(tmp_path, {}):
        assert tmp_path.is_dir()
