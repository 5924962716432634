"""Averaging: the error falls as the notes say, and a memo stops it."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from murmurate.attacks.average import average
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.metrics.comparison import NotMeasurable
from murmurate.noise import seeded

EACH = 1000


@pytest.fixture(scope="module")
def stays():
    """Sixty people who each report a thousand times from one place of their own, hundred reports a trip."""
    people = np.repeat(np.arange(60), EACH)
    trip = np.tile(np.arange(EACH) // 100, 60)
    lat = 60 + people // 10 * 0.02 + 1e-4
    lng = 24 + people % 10 * 0.04 + 1e-4
    return Trips(pl.DataFrame({"uid": people, "tid": people * 100 + trip, "lat": lat, "lng": lng}))


def by_name(released, original, **options):
    return {s.name: s for s in average(released, original, **{"pairing": np.arange(released.n_trips), **options})}


def test_the_error_falls_with_the_number_of_reports(stays):
    released = GeoIndistinguishability(epsilon=1.0, radius_m=100.0, max_points=100).apply(stays, seeded(1))
    scores = by_name(released, stays)
    for n, expected in ((1, 2.02), (10, 0.68), (100, 0.22), (1000, 0.07)):
        assert scores[f"average.error_{n}"].value == pytest.approx(expected * 100, rel=0.25), n
    assert scores["average.error_all"].value == pytest.approx(scores["average.error_1000"].value)
    assert scores["average.found_1000"].value == 1.0
    assert scores["average.found_1000"].chance == 0.0
    assert scores["average.found_1"].value < 0.5


def test_a_memo_stops_averaging(stays):
    memo = GeoIndistinguishability(epsilon=1.0, radius_m=100.0, max_points=1000, unit="user", memo=True)
    scores = by_name(memo.apply(stays, seeded(1)), stays)
    assert scores["average.error_1000"].value == pytest.approx(scores["average.error_1"].value)
    assert scores["average.error_1000"].value > 150


def test_each_score_tells_what_the_adversary_knows_and_what_chance_gives(stays):
    for score in by_name(stays, stays).values():
        assert "adversary knows which reports" in score.note
        assert score.chance is not None
        assert score.low <= score.value <= score.high
        assert score.n == 60


def test_numbers_of_reports_that_nobody_made_are_left_out(stays):
    some = stays.take_trips(np.arange(stays.n_trips) % 10 == 0)
    assert set(by_name(some, some)) == {f"average.{what}_{n}" for what in ("error", "found") for n in (1, 10, 100, "all")}


def test_where_there_is_nothing_to_average():
    table = pl.DataFrame({"uid": [1, 1], "tid": [1, 1], "lat": [60.0, 61.0], "lng": [24.0, 25.0]})
    once = Trips(table)
    with pytest.raises(NotMeasurable, match="nobody was seen twice"):
        average(once, once, pairing=[0])
    with pytest.raises(NotMeasurable, match="as many points"):
        average(Trips(table.head(1)), once, pairing=[0])
    with pytest.raises(NotMeasurable, match="not paired"):
        average(once, once, pairing=None)


@pytest.mark.parametrize("bad", [{"place_m": 0}, {"found_m": -1}, {"reports": (0,)}])
def test_what_makes_no_sense_is_refused(stays, bad):
    with pytest.raises(ParameterError):
        by_name(stays, stays, **bad)
