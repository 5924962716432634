"""Any sequence of limits and charges: what the history shows, added up here by other means, never passes a limit."""

from __future__ import annotations

import math
from fractions import Fraction

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from murmurate.core.accounting import LATTICE_MARGIN, compose
from murmurate.core.events import Gaussian
from murmurate.core.guarantee import DP, GeoInd, Unit
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Identity
from murmurate.errors import InsufficientBudget

UNITS = ("user", "user_day", "trip", "point")
DELTA = 1e-5

unit = st.sampled_from(UNITS)
amount = st.one_of(st.sampled_from([0.1, 0.2, 0.3, 0.7, 1 / 3, 1e-9]), st.floats(1e-6, 1.5))
step = st.one_of(
    st.tuples(st.just("limit"), st.sampled_from(["dp", "geoind"]), unit, amount),
    st.tuples(st.just("pure"), st.just("dp"), unit, amount),
    st.tuples(st.just("geoind"), st.just("geoind"), unit, amount),
    st.tuples(st.just("approximate"), st.just("dp"), unit, amount),
)


def take(ledger, number, action):
    what, kind, unit_name, value = action
    if what == "limit":
        ledger.limit("town", kind=kind, unit=unit_name, **{"epsilon" if kind == "dp" else "epsilon_per_m": value})
        return True
    promise = {
        "pure": lambda: DP(epsilon=value, unit=Unit(name=unit_name)),
        "approximate": lambda: DP(epsilon=value, delta=DELTA, unit=Unit(name=unit_name)),
        "geoind": lambda: GeoInd(epsilon_per_m=value, unit=Unit(name=unit_name)),
    }[what]()
    try:
        ledger.charge("town", promise, mechanism="m", parameters={}, release_id=str(number))
    except InsufficientBudget:
        return False
    return True


def breaks(sums, deltas, limits):
    """The accounts whose exact sum passes its limit by more than the stated tolerance."""
    slack = Fraction(1) + Fraction(1, 10**12) + Fraction(1, 10**15)
    return [
        account
        for account, limit in limits.items()
        if sums.get(account, 0) > Fraction(limit) * slack or deltas.get(account, 0) > 0
    ]


def passes_limits_by(limits, kind, unit_name):
    """Whether something of this kind is limited, but not this unit."""
    return (kind, unit_name) not in limits and any(limited == kind for limited, _ in limits)


def replay(history):
    """Walk the history alone: after each debit, every limit then in force must hold for the accounts it touched."""
    limits, sums, deltas = {}, {}, {}
    for entry in history:
        if entry.what == "limit":
            limits[entry.details["kind"], entry.details["unit"]] = entry.details["epsilon"]
        elif entry.what == "debit":
            promise = entry.details["guarantee"]
            touched = [(promise["kind"], name) for name in UNITS[UNITS.index(promise["unit"]["name"]) :]]
            assert not passes_limits_by(limits, *touched[0])
            for account in touched:
                sums[account] = sums.get(account, 0) + Fraction(promise.get("epsilon") or promise["epsilon_per_m"])
                deltas[account] = deltas.get(account, 0) + promise.get("delta", 0)
            assert not [account for account in breaks(sums, deltas, limits) if account in touched]
    return limits, sums, deltas


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow], derandomize=True)
@given(st.lists(step, max_size=25))
def test_no_sequence_passes_a_limit_and_no_fitting_charge_is_refused(actions):
    with Ledger.in_memory() as ledger:
        ledger.population_of(Identity("one", ("a",)), population="town", create=True)
        for number, action in enumerate(actions):
            limits, sums, deltas = replay(ledger.history())
            if take(ledger, number, action):
                continue
            what, kind, unit_name, value = action
            for name in UNITS[UNITS.index(unit_name) :]:
                sums[kind, name] = sums.get((kind, name), 0) + Fraction(value) * (1 + Fraction(1, 10**13))
                deltas[kind, name] = deltas.get((kind, name), 0) + (DELTA if what == "approximate" else 0)
            assert (
                passes_limits_by(limits, kind, unit_name)
                or {account: limit for account, limit in limits.items() if sums.get(account, 0) > Fraction(limit)}
                or breaks(sums, deltas, limits)
            )
        replay(ledger.history())
        assert ledger.verify().n_lines == len(ledger.history())


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.lists(st.floats(1.0, 60.0), min_size=1, max_size=20), st.floats(0.2, 6.0))
def test_gaussian_charges_stay_within_their_curve(multipliers, epsilon):
    """Independent of the accountant: the normal distribution's own tail, by the error function."""
    with Ledger.in_memory() as ledger:
        ledger.population_of(Identity("one", ("a",)), population="town", create=True)
        ledger.limit("town", epsilon=epsilon, delta=DELTA)
        variances = []
        for number, multiplier in enumerate(multipliers):
            events = (Gaussian(noise_multiplier=multiplier),)
            stated = max(1e-9, compose(events, delta=DELTA))
            promise = DP(epsilon=stated, delta=DELTA, unit=Unit(name="user"), events=events)
            would_be = math.sqrt(sum(variances) + multiplier**-2)
            delta = 0.5 * math.erfc((epsilon / would_be - would_be / 2) / math.sqrt(2)) - math.exp(epsilon) * 0.5 * math.erfc(
                (epsilon / would_be + would_be / 2) / math.sqrt(2)
            )
            try:
                ledger.charge("town", promise, mechanism="m", parameters={}, release_id=str(number))
            except InsufficientBudget:
                assert delta > DELTA / LATTICE_MARGIN * (1 - 1e-6)
            else:
                variances.append(multiplier**-2)
                assert delta <= DELTA * (1 + 1e-6)
