from __future__ import annotations

import json
import math

import pytest

from murmurate.core.events import Gaussian, Laplace, PoissonGaussian, event_from_json
from murmurate.core.guarantee import DP, FINER, GeoInd, KAnonymity, NoGuarantee, PlausibleDeniability, Unit, from_json, to_json
from murmurate.errors import ParameterError

TRIP = Unit(name="trip", max_points=10)

EXAMPLES = [
    DP(epsilon=1.0, unit=Unit(name="user", max_trips=3)),
    DP(
        epsilon=1.0,
        delta=1e-6,
        unit=TRIP,
        events=(
            Laplace(noise_multiplier=2.0),
            Gaussian(noise_multiplier=3.0, times=2),
            PoissonGaussian(sampling=0.01, noise_multiplier=1.1, times=100),
        ),
    ),
    GeoInd(epsilon_per_m=0.05, radius_m=200.0, unit=TRIP, assumptions=("times are public",)),
    PlausibleDeniability(k=5, delta_d=0.1),
    KAnonymity(k=3, radius_m=100.0),
    NoGuarantee(why="the radius follows the private point"),
]


@pytest.mark.parametrize("guarantee", EXAMPLES, ids=lambda guarantee: guarantee.kind)
def test_survives_json(guarantee):
    assert from_json(json.loads(json.dumps(to_json(guarantee)))) == guarantee


@pytest.mark.parametrize("guarantee", EXAMPLES, ids=lambda guarantee: guarantee.kind)
def test_speaks_plainly(guarantee):
    words = guarantee.words()
    assert words.endswith(".") or guarantee.kind == "none"
    assert "nan" not in words.lower()


@pytest.mark.parametrize("epsilon", [0, -1, math.nan, math.inf, True, "1"])
def test_absurd_epsilon_is_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon"):
        DP(epsilon=epsilon, unit=TRIP)
    with pytest.raises(ParameterError, match="epsilon_per_m"):
        GeoInd(epsilon_per_m=epsilon, unit=TRIP)


@pytest.mark.parametrize("delta", [-0.1, 1.5, math.nan])
def test_absurd_delta_is_refused(delta):
    with pytest.raises(ParameterError, match="delta"):
        DP(epsilon=1, delta=delta, unit=TRIP)


def test_bounds_and_units_are_checked():
    with pytest.raises(ParameterError, match="user_day"):
        Unit(name="userday")
    with pytest.raises(ParameterError, match="max_trips"):
        Unit(name="user", max_trips=0)
    with pytest.raises(ParameterError, match="reason"):
        NoGuarantee(why=" ")


def test_unknown_kinds_are_refused_not_skipped():
    with pytest.raises(ParameterError, match="unknown guarantee"):
        from_json({"kind": "magic", "unit": {"name": "trip"}})
    with pytest.raises(ParameterError, match="unknown privacy event"):
        event_from_json({"event": "Magic"})


def test_bare_dp_is_its_own_event():
    assert DP(epsilon=2.0, unit=TRIP).events[0].epsilon == 2.0
    assert DP(epsilon=2.0, delta=1e-6, unit=TRIP).events[0].delta == 1e-6


def test_a_promise_about_people_covers_everything_finer():
    assert FINER["user"] == ("user", "user_day", "trip", "point")
    assert "user" not in FINER["trip"]
