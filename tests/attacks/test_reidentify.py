"""Linking: certain without protection, chance under enough noise, one in k among k equals."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from shapely import LineString, Point

from murmurate.attacks.reidentify import _nearest_to_line, reidentify
from murmurate.attacks.tracks import rate_interval
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.metrics.comparison import NotMeasurable
from murmurate.noise import seeded
from small_town import drawn, scrambled, town


@pytest.fixture(scope="module")
def original():
    return town(n=300)


def by_name(released, original, **options):
    options = {"pairing": np.arange(released.n_trips), **options}
    return {score.name: score for score in reidentify(released, original, **options)}


def test_the_originals_themselves_are_linked(original):
    scores = by_name(original, original)
    assert scores["reidentify.timed.top1_k4"].value == 1.0
    assert scores["reidentify.places.top1_k4"].value > 0.99
    assert set(scores) == {
        f"reidentify.{how}.top{top}_k{k}" for how in ("places", "timed") for top in (1, 5) for k in (1, 2, 4)
    }


def test_unrelated_trips_are_linked_by_chance(original):
    scores = by_name(scrambled(original), original)
    for score in scores.values():
        assert score.chance == pytest.approx((5 if "top5" in score.name else 1) / 300)
        assert score.low <= score.chance + 0.02
        assert score.value < 0.05


def test_noise_makes_linking_harder_and_knowledge_easier(original):
    rates = []
    for radius in (20, 200, 2000):
        released = GeoIndistinguishability(epsilon=1.0, radius_m=radius, max_points=20).apply(original, seeded(1))
        rates.append(by_name(released, original)["reidentify.places.top1_k4"].value)
        few, many = (by_name(released, original)[f"reidentify.timed.top1_k{k}"].value for k in (1, 4))
        assert many >= few - 0.03
    assert rates[0] > rates[1] > rates[2]


def test_among_k_equals_one_in_k_is_found():
    """Twenty groups of five people who walk the same way at the same time: nothing tells them apart."""
    rows = []
    for person in range(100):
        start = datetime(2024, 5, 6, 8, tzinfo=UTC) + timedelta(minutes=person // 5)
        rows += [
            (person, person, start + timedelta(seconds=15 * k), 60 + (person // 5) / 100 + k / 1e4, 24.0) for k in range(6)
        ]
    same = Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row"))
    scores = by_name(same, same)
    # at any k the group is certain; within it the known points differ only in which they are
    assert 0.15 < scores["reidentify.timed.top1_k1"].value < 0.35
    assert scores["reidentify.timed.top5_k1"].value == pytest.approx(1.0)


def test_ties_share_the_success():
    here = Trips(pl.DataFrame({"uid": [1, 2, 3, 4], "tid": [1, 2, 3, 4], "lat": [60.0] * 4, "lng": [24.0] * 4}))
    scores = by_name(here, here)
    assert scores["reidentify.places.top1_k1"].value == pytest.approx(0.25)
    assert scores["reidentify.places.top5_k1"].value == 1.0


def test_every_score_tells_what_the_adversary_knows(original):
    for name, score in by_name(original, original, targets=50).items():
        assert score.note.startswith("The adversary knows")
        assert ("when they were there" in score.note) == ("timed" in name)
        assert "fixed seed" in score.note
        assert score.low <= score.value <= score.high
        assert score.n == 50


def test_targets_and_candidates_are_drawn_with_the_true_ones_among_them(original):
    scores = by_name(original, original, targets=20, candidates=60)
    assert scores["reidentify.timed.top1_k4"].chance == pytest.approx(1 / 60)
    assert scores["reidentify.timed.top1_k4"].value == 1.0
    assert scores == by_name(original, original, targets=20, candidates=60)


def test_trips_without_time_or_coordinates(original):
    cells = drawn(original)
    still = Trips(cells.table.drop("datetime"), cells.space)
    scores = by_name(still, still)
    assert {name.split(".")[1] for name in scores} == {"places"}


def test_only_paired_trips_are_targets(original):
    pairing = np.full(300, -1)
    pairing[:7] = np.arange(7)
    assert by_name(original, original, pairing=pairing)["reidentify.places.top1_k1"].n == 7
    for none in (None, np.full(300, -1)):
        with pytest.raises(NotMeasurable):
            reidentify(original, original, pairing=none)


@pytest.mark.parametrize(
    "bad", [{"pairing": [0]}, {"pairing": np.full(300, 300)}, {"known": ()}, {"known": (0,)}, {"targets": 0}]
)
def test_what_makes_no_sense_is_refused(original, bad):
    with pytest.raises(ParameterError):
        by_name(original, original, **bad)


def test_the_interval_of_a_rate():
    low, high = rate_interval(5, 100)
    assert (low, high) == pytest.approx((0.0215, 0.1118), abs=1e-3)
    assert rate_interval(0, 10)[0] == 0.0
    assert rate_interval(10, 10)[1] == 1.0


def test_distance_to_a_long_line_is_that_to_its_nearest_segment():
    rng = np.random.default_rng(3)
    for n in (1, 2, 17, 40):
        line = np.cumsum(rng.normal(0, 50, (n, 2)), axis=0)
        line[n // 2 :] = line[n // 2]  # segments without length
        points = rng.normal(0, 300, (30, 2))
        tracks = (line[:, 0].copy(), line[:, 1].copy(), np.array([0, n]))
        known = (points[:, 0].copy(), points[:, 1].copy(), np.array([0, 30]))
        found = _nearest_to_line(tracks, np.array([0]), known, np.arange(30)[:, None])[0, :, 0]
        path = LineString(line) if n > 1 else Point(line[0])
        np.testing.assert_allclose(found, [path.distance(Point(point)) for point in points], atol=1e-9)
