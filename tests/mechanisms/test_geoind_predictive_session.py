"""Sessions: the kernel point by point, and an account that survives what a device goes through."""

from __future__ import annotations

import itertools
import json

import numpy as np
import pytest

from murmurate.errors import GuaranteeRefused, InputError, OutputError, ParameterError
from murmurate.mechanisms.geoind_predictive import PredictiveGeoIndistinguishability, Session, budgets, kernel
from murmurate.noise import Draws, seeded
from murmurate.spaces import Plane

WALK = [(60.17 + 0.001 * i, 24.94 - 0.0005 * i) for i in range(40)]


def predictive(**changes):
    return PredictiveGeoIndistinguishability(
        **{"epsilon": 1.0, "radius_m": 300.0, "max_points": 100, "interval_s": 15.0, **changes}
    )


def remaining_on_disk(path):
    return json.loads(path.read_text())["state"][budgets.REMAINING]


@pytest.mark.parametrize("changes", [{}, {"stride": 1.0}, {"space": Plane(60.17, 24.94)}, {"predictor": "linear"}])
def test_a_session_reports_what_the_kernel_does(changes):
    mechanism = predictive(**changes)
    session = mechanism.session(points=40, rng=seeded(1))
    found = [session.report(point) for point in WALK]
    x, y = mechanism._snapped(*np.array(WALK).T)
    sizes = np.array([40.0])
    grains, decisions, tests = mechanism.plan(sizes, np.array([15.0 * 30 / 3.6]))
    out = np.empty_like(x), np.empty_like(y), np.empty(40)
    whole = (np.array([0, 40]), x, y, sizes, decisions, tests, grains)
    mechanism.advance(whole, Draws(seeded(1), block=32), np.zeros(kernel.STATE), out)
    lat, lng = mechanism._degrees(out[0], out[1])
    assert found == list(zip(lat.tolist(), lng.tolist(), strict=True))
    assert session.spent == pytest.approx(float(grains[0]) / budgets.GRAINS)


def test_beyond_the_plan_the_last_report_is_repeated_for_free():
    session = predictive().session(points=10, rng=seeded(2))
    for point in WALK[:10]:
        last = session.report(point)
    spent = session.spent
    assert spent <= session.budget == 10
    assert {session.report(point) for point in WALK[10:]} == {last}
    assert session.spent == spent


def test_every_debit_is_on_the_disk_before_its_report_is_returned(tmp_path):
    path = tmp_path / "session.json"
    session = predictive(stride=1.0).session(points=40, path=path, rng=seeded(3))
    left = [remaining_on_disk(path)]
    for point in WALK:
        session.report(point)
        left.append(remaining_on_disk(path))
        assert left[-1] == session._state[budgets.REMAINING]
    assert all(after <= before for before, after in itertools.pairwise(left))
    assert left[1] < left[0]


def test_a_restored_session_goes_on_with_its_account_and_its_last_report(tmp_path):
    path = tmp_path / "session.json"
    session = predictive(predictor="last_k", last_k=2).session(points=40, path=path, rng=seeded(4))
    for point in WALK[:15]:
        session.report(point)
    again = Session.restore(path, rng=seeded(5))
    assert (again.spent, again.budget, again.points) == (session.spent, session.budget, 40)
    assert again.mechanism == session.mechanism
    assert np.array_equal(again._state, session._state)
    for point in WALK[15:]:
        again.report(point)
    assert session.spent < again.spent <= 40


def test_no_true_place_is_written(tmp_path):
    path = tmp_path / "session.json"
    session = predictive(epsilon=0.01, radius_m=1000.0).session(points=5, path=path, rng=seeded(6))
    session.report(WALK[0])
    assert "60170000" not in path.read_text()
    assert "24940000" not in path.read_text()


def test_a_debit_that_cannot_be_saved_reports_nothing_and_ends_the_session(tmp_path, monkeypatch):
    path = tmp_path / "session.json"
    session = predictive(stride=1.0).session(points=10, path=path, rng=seeded(7))
    session.report(WALK[0])
    before = path.read_text()

    def full(handle):
        raise OSError("No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OutputError, match="nothing was reported"):
        session.report(WALK[1])
    monkeypatch.undo()
    with pytest.raises(GuaranteeRefused, match="restore"):
        session.report(WALK[1])
    assert path.read_text() == before
    assert Session.restore(path).report(WALK[1])


def test_a_crash_after_the_draw_was_paid_keeps_the_payment(tmp_path):
    path = tmp_path / "session.json"
    session = predictive(stride=1.0).session(points=10, path=path, rng=seeded(8))
    session._state[budgets.REMAINING] -= 5 * budgets.GRAINS
    session._state[budgets.DUE] = 5 * budgets.GRAINS
    session._save()
    again = Session.restore(path)
    assert again.spent == session.spent == 5
    again.report(WALK[0])
    assert again.spent > 5


def test_two_sessions_on_one_file_are_noticed(tmp_path):
    path = tmp_path / "session.json"
    session = predictive(stride=1.0).session(points=10, path=path, rng=seeded(9))
    Session.restore(path).report(WALK[0])
    with pytest.raises(GuaranteeRefused, match="somebody else"):
        session.report(WALK[0])
    with pytest.raises(OutputError, match="restore"):
        predictive().session(points=10, path=path)


@pytest.mark.parametrize("damage", ["", "{}", "[]", '{"format": 99}', "other state", "too rich"])
def test_damaged_files_are_refused(tmp_path, damage):
    path = tmp_path / "session.json"
    predictive().session(points=10, path=path)
    saved = json.loads(path.read_text())
    if damage == "other state":
        saved["state"] = saved["state"][:-1]
    elif damage == "too rich":
        saved["state"][budgets.REMAINING] *= 2
    path.write_text(json.dumps(saved) if damage in ("other state", "too rich") else damage)
    with pytest.raises(InputError):
        Session.restore(path)
    with pytest.raises(InputError, match="no session"):
        Session.restore(tmp_path / "elsewhere.json")


def test_bad_points_and_plans_are_refused_before_anything_is_spent():
    session = predictive().session(points=10, rng=seeded(1))
    for point in ((91.0, 0.0), (0.0, 181.0), (float("nan"), 0.0)):
        with pytest.raises(InputError):
            session.report(point)
    assert session.spent == 0
    with pytest.raises(ParameterError, match="max_points"):
        predictive().session(points=101)
    with pytest.raises(ParameterError, match="interval_s"):
        predictive(interval_s=None).session(points=10)
    with pytest.raises(ParameterError, match="smooth"):
        predictive(smooth=True).session(points=10)


def test_a_refused_point_is_not_told():
    """A point with latitude and longitude exchanged is a true place all the same."""
    with pytest.raises(InputError, match="latitude comes first") as refused:
        predictive(interval_s=15.0).session(points=5).report((-122.4194, 37.7749))
    assert "37.77" not in str(refused.value)
    assert "122.4" not in str(refused.value)


def test_noise_drawn_ahead_is_never_copied(tmp_path):
    """A block drawn in advance survived fork, deep copy and pickle, so that two reports carried the same noise."""
    import copy
    import os
    import pickle

    from murmurate.noise import secure

    draws = Draws(secure(), block=32)
    draws.ready()
    before = draws.words.copy(), draws.radius.copy()
    for other in (copy.deepcopy(draws), copy.copy(draws), pickle.loads(pickle.dumps(draws))):
        other.ready()
        assert not np.isin(other.words, before[0]).any()
        assert not np.isin(other.radius, before[1]).any()
    ours, theirs = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            draws.ready()
            os.write(theirs, draws.words.tobytes())
        finally:
            os._exit(0)
    os.close(theirs)
    with os.fdopen(ours, "rb") as pipe:
        found = np.frombuffer(pipe.read(), np.uint64)
    os.waitpid(child, 0)
    assert len(found) == 32
    assert not np.isin(found, before[0]).any()


def test_a_forked_or_copied_session_draws_its_own_noise_and_shares_the_account():
    import copy
    import os

    session = PredictiveGeoIndistinguishability(epsilon=1.0, radius_m=300.0, interval_s=15.0, max_points=400).session(
        points=400
    )
    session.report((60.17, 24.94))
    reports = set()
    before = session.spent
    for _ in range(20):
        ours, theirs = os.pipe()
        child = os.fork()
        if child == 0:
            try:
                os.write(theirs, _first_word(session))
            finally:
                os._exit(0)
        os.close(theirs)
        with os.fdopen(ours, "rb") as pipe:
            reports.add(pipe.read())
        os.waitpid(child, 0)
    assert len(reports) == 20
    assert session.spent > before  # what the children spent is gone for all
    other = copy.deepcopy(session)
    before = session.spent
    for k in range(30):
        other.report((60.1 + k % 2, 24.95))
    assert session.spent == other.spent > before


def test_a_session_without_a_file_is_not_pickled(tmp_path):
    import pickle

    from murmurate.errors import GuaranteeRefused

    mechanism = PredictiveGeoIndistinguishability(epsilon=1.0, radius_m=300.0, interval_s=15.0)
    with pytest.raises(GuaranteeRefused, match="exist twice"):
        pickle.dumps(mechanism.session(points=10))
    kept = mechanism.session(points=10, path=tmp_path / "s.json")
    kept.report((60.17, 24.94))
    again = pickle.loads(pickle.dumps(kept))
    assert again.spent == kept.spent
    again.report((60.17, 24.94))
    with pytest.raises(GuaranteeRefused, match="changed by somebody else"):
        kept.report((60.17, 24.94))


def _first_word(session):
    session.report((60.17, 24.94))
    draws = session._draws
    return draws.words.tobytes() + draws.radius.tobytes()
