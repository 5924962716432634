"""What the door relies on, the same on SQLite and on PostgreSQL."""

from __future__ import annotations

import math
import os
import stat
from pathlib import Path

import pytest

from murmurate.core.accounting import compose
from murmurate.core.events import Gaussian, Laplace, PoissonGaussian, Pure
from murmurate.core.guarantee import DP, GeoInd, KAnonymity, NoGuarantee, PlausibleDeniability, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.errors import GuaranteeRefused, InsufficientBudget, LedgerError, ParameterError, UnknownPopulation

USER, DAY, TRIP, POINT = (Unit(name=name) for name in ("user", "user_day", "trip", "point"))
TOWN = Identity("f" * 64, tuple(f"person {k}" for k in range(50)))


@pytest.fixture
def ledger(address):
    with Ledger(address, who="ann@desk") as made:
        made.population_of(TOWN, population="town", create=True)
        yield made


def charge(ledger, guarantee, release_id, **options):
    return ledger.charge("town", guarantee, mechanism="ngram", parameters={"k": 3}, release_id=release_id, **options)


def spent(ledger, kind="dp"):
    return {line.spent.unit: line.spent.epsilon for line in ledger.spent("town") if line.spent.kind == kind}


def test_ten_tenths_fill_a_limit_of_one_and_not_a_hair_more(ledger):
    ledger.limit("town", epsilon=1.0)
    for k in range(10):
        charge(ledger, DP(epsilon=0.1, unit=USER), f"r{k}")
    with pytest.raises(InsufficientBudget) as refused:
        charge(ledger, DP(epsilon=1e-5, unit=USER), "one more")
    assert refused.value.requested.epsilon == 1e-5
    assert refused.value.remaining.epsilon == pytest.approx(0, abs=1e-12)
    assert spent(ledger)["user"] == 1.0
    assert [entry.details["release_id"] for entry in ledger.history() if entry.what == "debit"] == [f"r{k}" for k in range(10)]


def test_a_charge_slightly_over_the_limit_is_refused_whole(ledger):
    ledger.limit("town", epsilon=1.0)
    charge(ledger, DP(epsilon=0.9, unit=USER), "r0")
    before = ledger.history()
    with pytest.raises(InsufficientBudget) as refused:
        charge(ledger, DP(epsilon=0.10001, unit=USER), "r1")
    assert float(refused.value.requested) == 0.10001
    assert float(refused.value.remaining) == pytest.approx(0.1)
    assert ledger.history() == before


def test_a_promise_debits_its_own_and_every_finer_unit(ledger):
    charge(ledger, DP(epsilon=1.0, unit=USER), "user")
    charge(ledger, DP(epsilon=2.0, unit=TRIP), "trip")
    # a person without one of their trips is another person: a removal and an addition
    assert spent(ledger) == {"user": 1.0, "user_day": 2.0, "trip": 4.0, "point": 6.0}
    charge(ledger, GeoInd(epsilon_per_m=0.01, unit=DAY), "geo")
    assert spent(ledger, "geoind") == {"user_day": 0.01, "trip": 0.01, "point": 0.01}
    assert spent(ledger)["user"] == 1.0


def test_a_finer_unit_sees_gaussians_from_twice_as_far_and_samples_by_group_privacy(ledger):
    def promise(event):
        return DP(epsilon=compose([event], delta=1e-6), delta=1e-6, unit=USER, events=(event,))

    gaussian = promise(Gaussian(noise_multiplier=5.0))
    trip = next(line for line in ledger.plan("town", gaussian).lines if line.requested.unit == "trip")
    assert trip.requested.epsilon == pytest.approx(compose([Gaussian(noise_multiplier=2.5)], delta=1e-6))
    sampled = promise(PoissonGaussian(sampling=0.01, noise_multiplier=1.0, times=100))
    trip = next(line for line in ledger.plan("town", sampled).lines if line.requested.unit == "trip")
    assert trip.requested.epsilon == pytest.approx(2 * sampled.epsilon)
    assert trip.requested.delta == pytest.approx((1 + math.exp(sampled.epsilon)) * 1e-6)


def test_a_point_may_move_a_trip_to_another_day_so_that_two_days_are_replaced(ledger):
    def point_of(guarantee):
        return next(line.requested for line in ledger.plan("town", guarantee).lines if line.requested.unit == "point")

    assert point_of(DP(epsilon=0.5, unit=DAY)).epsilon == 2.0
    assert point_of(DP(epsilon=0.5, unit=USER)).epsilon == 1.0
    rough = point_of(DP(epsilon=0.5, delta=1e-6, unit=DAY))
    assert rough.epsilon == pytest.approx(2.0)
    assert rough.delta == pytest.approx(sum(math.exp(0.5 * k) for k in range(4)) * 1e-6)


def test_a_limit_on_a_finer_unit_stops_a_coarser_promise(ledger):
    ledger.limit("town", unit="trip", epsilon=1.0)
    with pytest.raises(InsufficientBudget) as refused:
        charge(ledger, DP(epsilon=1.5, unit=USER), "r0")
    assert refused.value.requested.unit == "trip"
    assert not ledger.spent("town")[0].n_charges


def test_a_used_up_limit_is_not_passed_by_in_a_finer_unit(ledger):
    for unit in ("user", "user_day", "trip"):
        ledger.limit("town", kind="geoind", unit=unit, epsilon_per_m=0.01)
    charge(ledger, GeoInd(epsilon_per_m=0.01, unit=USER), "r0")
    before, point = ledger.history(), GeoInd(epsilon_per_m=0.5, unit=POINT)
    with pytest.raises(InsufficientBudget) as refused:
        charge(ledger, point, "r1")
    assert "limits are set for geoind per user, user_day, trip, but none per point" in str(refused.value)
    assert "murmurate ledger limit town --unit point --epsilon-per-m" in str(refused.value)
    assert (refused.value.requested.epsilon, refused.value.requested.unit) == (0.5, "point")
    assert (refused.value.remaining.epsilon, refused.value.remaining.unit) == (0.0, "point")
    plan = ledger.plan("town", point)
    assert not plan.allowed
    assert plan.remaining.epsilon == 0.0
    assert "not bounded by them" in plan.notes[0]
    assert ledger.history() == before


def test_a_limit_on_people_closes_trips_until_they_have_their_own(ledger):
    ledger.limit("town", epsilon=1.0)
    with pytest.raises(InsufficientBudget, match="per user, but none per trip: a trip-level release is not bounded by them"):
        charge(ledger, DP(epsilon=0.1, unit=TRIP), "r0")
    ledger.limit("town", unit="trip", epsilon=0.3)
    charge(ledger, DP(epsilon=0.1, unit=TRIP), "r0")
    charge(ledger, DP(epsilon=0.1, unit=USER), "r1")
    with pytest.raises(InsufficientBudget):
        charge(ledger, DP(epsilon=0.1, unit=TRIP), "r2")
    shown = {line.spent.unit: line.ceiling for line in ledger.spent("town")}
    assert "epsilon 0.3" in shown["trip"] and shown["user_day"] == "no limit of its own, so no release for this unit alone"


def test_a_coarser_unit_than_any_limited_needs_a_limit_of_its_own(ledger):
    ledger.limit("town", unit="trip", epsilon=1.0)
    with pytest.raises(InsufficientBudget, match="per trip, but none per user: nothing says what may be spent per user"):
        charge(ledger, DP(epsilon=0.5, unit=USER), "r0")


def test_a_limit_of_one_kind_leaves_the_other_kinds_open(ledger):
    ledger.limit("town", epsilon=1.0)
    listed = charge(ledger, GeoInd(epsilon_per_m=0.01, unit=POINT), "geo")
    assert "No limit is set" in listed.notes[0]
    charge(ledger, PlausibleDeniability(k=5), "pd")


def test_geo_indistinguishability_adds_per_metre(ledger):
    ledger.limit("town", kind="geoind", unit="user", epsilon_per_m=0.03)
    for k in range(3):
        charge(ledger, GeoInd(epsilon_per_m=0.01, unit=USER), f"r{k}")
    with pytest.raises(InsufficientBudget):
        charge(ledger, GeoInd(epsilon_per_m=1e-6, unit=USER), "r3")


def test_with_a_delta_the_accountant_beats_the_sum(ledger):
    ledger.limit("town", epsilon=1.0, delta=1e-6)
    step = DP(epsilon=0.02, unit=USER, events=(Laplace(noise_multiplier=50.0),))
    many = DP(epsilon=2.0, unit=USER, events=(Laplace(noise_multiplier=50.0, times=100),))
    assert ledger.plan("town", many).spent_after.epsilon < 0.98
    charge(ledger, many, "hundred")
    assert ledger.plan("town", step).allowed
    with pytest.raises(InsufficientBudget):
        charge(ledger, many, "hundred more")


def test_a_limit_without_delta_takes_no_gaussian(ledger):
    ledger.limit("town", epsilon=10.0)
    with pytest.raises(InsufficientBudget, match="delta 0"):
        charge(ledger, DP(epsilon=1.0, delta=1e-5, unit=USER, events=(Gaussian(noise_multiplier=4.0),)), "r0")


def test_a_promise_its_events_do_not_keep_is_refused(ledger):
    with pytest.raises(GuaranteeRefused, match="less than its events cost"):
        charge(ledger, DP(epsilon=0.5, unit=USER, events=(Pure(epsilon=0.3, times=2),)), "r0")
    with pytest.raises(GuaranteeRefused, match="less than its events cost"):
        ledger.plan("town", DP(epsilon=1.0, delta=1e-5, unit=USER, events=(Gaussian(noise_multiplier=3.0),)))


def test_filters_are_listed_and_never_summed(ledger):
    ledger.limit("town", epsilon=0.1)
    listed = charge(ledger, PlausibleDeniability(k=5), "pd")
    charge(ledger, KAnonymity(k=5, radius_m=100.0), "ka")
    assert "never summed" in listed.notes[0]
    assert all(line.n_charges == 0 for line in ledger.spent("town"))
    assert [entry.details["guarantee"]["kind"] for entry in ledger.history("town") if entry.what == "debit"] == [
        "plausible_deniability",
        "k_anonymity",
    ]


def test_no_guarantee_needs_acceptance_and_is_recorded(ledger):
    nothing = NoGuarantee(why="exact points")
    with pytest.raises(GuaranteeRefused, match="accept-no-guarantee"):
        charge(ledger, nothing, "r0")
    charge(ledger, nothing, "r0", accept_no_guarantee=True)
    assert ledger.debit("r0").accepted_no_guarantee
    assert ledger.debit("r0").guarantee == nothing


def test_a_real_ledger_refuses_seeded_noise(ledger):
    assert ledger.purpose == "real"
    with pytest.raises(GuaranteeRefused, match="seeded"):
        charge(ledger, DP(epsilon=0.1, unit=USER), "r0", seeded=True)
    assert not [entry for entry in ledger.history() if entry.what == "debit"]


def test_a_demo_ledger_takes_it_and_says_so():
    with Ledger.in_memory() as demo:
        demo.population_of(TOWN, population="town", create=True)
        assert demo.purpose == "demo"
        assert charge(demo, DP(epsilon=0.1, unit=USER), "r0", seeded=True).seeded
        folder = demo.internal_folder
        assert folder.is_dir()
        assert demo.verify().n_debits == 1
    assert not folder.exists()


def test_one_release_is_charged_once(ledger):
    charge(ledger, DP(epsilon=0.1, unit=USER), "r0")
    with pytest.raises(LedgerError, match="charged already"):
        charge(ledger, DP(epsilon=0.1, unit=USER), "r0")
    assert spent(ledger)["user"] == 0.1


def test_a_debit_stands_before_and_after_its_release_is_finished(ledger, address):
    made = charge(ledger, DP(epsilon=0.1, unit=USER), "r0")
    assert made.manifest_hash is None
    ledger.finish("r0", "a" * 64)
    with Ledger(address) as other:
        found = other.debit("r0")
        assert (found.manifest_hash, found.digest, found.who) == ("a" * 64, made.digest, "ann@desk")
    with pytest.raises(LedgerError, match="finished already"):
        ledger.finish("r0", "b" * 64)
    with pytest.raises(LedgerError, match="no release r9"):
        ledger.finish("r9", "b" * 64)


def test_a_plan_tells_and_does_not_spend(ledger):
    ledger.limit("town", epsilon=1.0)
    charge(ledger, DP(epsilon=0.25, unit=USER), "r0")
    before = ledger.history()
    plan = ledger.plan("town", DP(epsilon=0.5, unit=USER))
    assert (plan.requested.epsilon, plan.spent_before.epsilon, plan.spent_after.epsilon) == (0.5, 0.25, 0.75)
    assert plan.remaining.epsilon == 0.75
    assert plan.allowed
    assert not ledger.plan("town", DP(epsilon=0.76, unit=USER)).allowed
    free = ledger.plan(None, DP(epsilon=5.0, unit=USER))
    assert free.allowed
    assert free.remaining is None
    assert ledger.history() == before


def test_limits_go_up_and_down_and_every_change_is_kept(ledger):
    ledger.limit("town", epsilon=1.0)
    charge(ledger, DP(epsilon=0.8, unit=USER), "r0")
    ledger.limit("town", epsilon=0.5)
    with pytest.raises(InsufficientBudget) as refused:
        charge(ledger, DP(epsilon=0.01, unit=USER), "r1")
    assert refused.value.remaining.epsilon == 0.0
    ledger.limit("town", epsilon=2.0)
    charge(ledger, DP(epsilon=0.01, unit=USER), "r1")
    assert [limit.amount.epsilon for limit in ledger.limits("town")] == [2.0]
    assert [e.details["epsilon"] for e in ledger.history() if e.what == "limit"] == [1.0, 0.5, 2.0]
    ledger.limit("town", epsilon=0)
    with pytest.raises(InsufficientBudget):
        charge(ledger, DP(epsilon=1e-9, unit=USER), "r2")


@pytest.mark.parametrize(
    "options",
    [
        {"epsilon": -1.0},
        {"epsilon": float("nan")},
        {"epsilon": float("inf")},
        {"epsilon": 1.0, "delta": 2.0},
        {"epsilon_per_m": 1.0},
        {},
        {"kind": "geoind", "epsilon": 1.0},
        {"kind": "geoind", "epsilon_per_m": 1.0, "delta": 1e-6},
        {"kind": "k_anonymity", "epsilon": 1.0},
        {"unit": "household", "epsilon": 1.0},
    ],
)
def test_senseless_limits_are_refused(options):
    with Ledger.in_memory() as ledger:
        ledger.population_of(TOWN, population="town", create=True)
        with pytest.raises(ParameterError):
            ledger.limit("town", **options)
        assert ledger.limits("town") == []


def test_history_says_who_when_and_what(ledger):
    ledger.log_rehearsal("town", "geoind", {"epsilon": 1.0})
    ledger.log_rehearsal(None, "geoind", {"box": (1, 2)})
    charge(ledger, DP(epsilon=0.1, unit=USER), "r0")
    entries = ledger.history()
    assert [entry.what for entry in entries] == ["created", "population", "attached", "rehearsal", "rehearsal", "debit"]
    assert {entry.who for entry in entries[1:]} == {"ann@desk"}
    assert [entry.at for entry in entries] == sorted(entry.at for entry in entries)
    assert len(ledger.history("town")) == 4
    assert spent(ledger)["user"] == 0.1


def test_parameters_that_cannot_be_written_down_spend_nothing(ledger):
    for parameters in ({"f": object()}, {"x": float("nan")}):
        with pytest.raises(ParameterError, match="plain"):
            ledger.charge("town", DP(epsilon=1.0, unit=USER), mechanism="m", parameters=parameters, release_id="r0")
    assert spent(ledger) == {}


def test_unknown_populations_are_named_with_the_nearest(ledger):
    with pytest.raises(UnknownPopulation, match="Did you mean 'town'"):
        ledger.limit("twon", epsilon=1.0)
    with pytest.raises(UnknownPopulation):
        ledger.plan("nowhere", DP(epsilon=1.0, unit=USER))


def test_the_internal_folder_is_closed_to_others(ledger):
    folder = ledger.internal_folder
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    folder.chmod(0o755)
    assert stat.S_IMODE(ledger.internal_folder.stat().st_mode) == 0o700


def test_a_backup_is_a_ledger(ledger, tmp_path):
    ledger.limit("town", epsilon=1.0)
    charge(ledger, DP(epsilon=0.4, unit=USER), "r0")
    copy = ledger.backup(tmp_path / "copy.sqlite")
    with Ledger(copy) as restored:
        assert restored.verify() == ledger.verify()
        assert restored.ledger_id == ledger.ledger_id
        assert restored.population_of(TOWN, create=False) == "town"
        with pytest.raises(InsufficientBudget):
            charge(restored, DP(epsilon=0.7, unit=USER), "r1")
    with pytest.raises(LedgerError, match="exists already"):
        ledger.backup(copy)


def test_threads_share_one_ledger(ledger):
    from concurrent.futures import ThreadPoolExecutor

    ledger.limit("town", kind="geoind", epsilon_per_m=1.0)

    def one(k: int) -> bool:
        try:
            charge(ledger, GeoInd(epsilon_per_m=0.1, unit=USER), f"r{k}")
        except InsufficientBudget:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(one, range(24))) == 10
    assert ledger.verify().n_debits == 10


def test_odd_file_names_are_only_names(tmp_path):
    for name in ("with space.sqlite", "50%?.sqlite", "#ledger", "file:x"):
        with Ledger(tmp_path / name) as ledger:
            ledger.population_of(TOWN, population="town", create=True)
            ledger.backup(tmp_path / f"{name}.copy")
            assert ledger.verify().n_lines == 3
        assert (tmp_path / name).is_file()
        with Ledger(tmp_path / f"{name}.copy") as copy:
            assert copy.populations() == ["town"]


def test_without_an_address_the_state_folder_is_used(tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "chosen"))
    with Ledger() as ledger:
        assert Path(tmp_path / "chosen" / "ledger.sqlite").is_file()
        assert stat.S_IMODE(os.stat(tmp_path / "chosen" / "ledger.sqlite").st_mode) == 0o600
        first = ledger.ledger_id
    monkeypatch.delenv("MURMURATE_STATE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "xdg"))
    with Ledger() as ledger:
        assert ledger.ledger_id != first
        assert str(tmp_path / "xdg" / "murmurate") in ledger.url


@pytest.mark.parametrize(
    "wrong",
    ["mysql://host/db", "sqlite://", "http://x", "postgresql://[", "sqlite:///x?mode=ro", ":memory:", "sqlite:///:memory:"],
)
def test_other_addresses_are_refused(wrong):
    with pytest.raises(LedgerError):
        Ledger(wrong)
