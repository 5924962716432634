"""Advice: what it recommends is best, or nearly, where it can be tried."""

from __future__ import annotations

import numpy as np
import pytest

import murmurate as mm
from murmurate.errors import ParameterError
from murmurate.mechanisms import build
from murmurate.mechanisms.advice import advise
from murmurate.metrics.hausdorff import paired
from murmurate.noise import seeded

CHOICES = (
    ("geoind", {}),
    ("geoind", {"smooth": True}),
    ("geoind_anchors", {}),
    ("geoind_predictive", {}),
    ("geoind_predictive", {"smooth": True}),
)


@pytest.mark.parametrize("interval_s", [15, 60])
@pytest.mark.parametrize(("radius_m", "epsilon"), [(5.0, 1.0), (50.0, 1.0), (100.0, 0.5), (300.0, 1.0), (1000.0, 0.5)])
def test_nothing_is_much_better_than_what_is_advised(interval_s, radius_m, epsilon):
    trips = mm.demo.city(people=25, days=5, interval_s=interval_s).trips
    track, every = (trips.lat, trips.lng, trips.offsets), np.arange(trips.n_trips)

    def mean_hausdorff(name, settings):
        mechanism = build(name, {"radius_m": radius_m, "epsilon": epsilon, "max_points": 200, **settings})
        out = mechanism.apply(trips, seeded(1))
        return float(paired(track, every, (out.lat, out.lng, out.offsets), every).mean())

    advice = advise(radius_m=radius_m, epsilon=epsilon, interval_s=interval_s)
    assert mean_hausdorff(advice.mechanism, advice.settings) <= 1.04 * min(mean_hausdorff(*choice) for choice in CHOICES)


def test_what_cannot_wait_and_who_does_not_move_is_predicted():
    for situation in ({"online": True}, {"mostly_still": True}):
        advice = advise(radius_m=300, epsilon=1, interval_s=15, **situation)
        assert advice.mechanism == "geoind_predictive"
        mechanism = build(advice.mechanism, {"radius_m": 300, "epsilon": 1, **advice.settings})
        assert mechanism.smooth == ("online" not in situation)
    assert advise(radius_m=25, epsilon=2, interval_s=60, online=True).settings == {}


def test_it_speaks_in_words_that_can_be_typed():
    words = advise(radius_m=25, epsilon=1, interval_s=60).words()
    assert words.startswith("Best for these numbers: geoind --set smooth=true. The noise scale of one point is 25 m, a step")
    assert "geoind_anchors. " in advise(radius_m=500, epsilon=0.5, interval_s=15).words()


def test_senseless_numbers_are_refused():
    for changes in ({"radius_m": 0}, {"epsilon": -1}, {"interval_s": 0}, {"speed_kmh": float("nan")}):
        with pytest.raises(ParameterError):
            advise(**{"radius_m": 300, "epsilon": 1, "interval_s": 15, **changes})
