"""Smoothing: the same as conditioning one big Gaussian, and free options that read nothing but reports."""

from __future__ import annotations

import math

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.mechanisms.smoothing import MEMORY_S, smooth
from murmurate.noise import seeded
from murmurate.spaces.sphere import METRES_PER_DEGREE, great_circle_m


def walked(one_s, other_s, speed):
    """Covariance of the ways gone since zero: integrated velocity that forgets exponentially, by its double integral."""
    early, late = sorted((one_s / MEMORY_S, other_s / MEMORY_S))
    decay = math.exp(-early) + math.exp(-late) - math.exp(early - late) - 1.0
    return speed**2 / 2 * MEMORY_S**2 * (2 * early + decay)


def conditioned(time_s, values, scale, speed):
    """The mean of every place given the reports, with a start that nothing is known of: dense algebra."""
    n = len(time_s)
    prior = np.array([[walked(a - time_s[0], b - time_s[0], speed) for a in time_s] for b in time_s])
    seen = np.isfinite(scale)
    noise = np.diag(3 * scale[seen] ** 2)
    inverse = np.linalg.inv(prior[np.ix_(seen, seen)] + noise)
    ones = np.ones(seen.sum())
    start = ones @ inverse @ values[seen] / (ones @ inverse @ ones)
    return start * np.ones(n) + prior[:, seen] @ inverse @ (values[seen] - start)


def test_it_is_the_conditional_mean_of_the_model():
    rng = np.random.default_rng(3)
    time_s = np.cumsum(rng.choice([1.0, 15.0, 60.0, 400.0], 25))
    scale = rng.uniform(50, 800, 25)
    scale[[0, 3, 4, 11, 24]] = np.inf
    lat = 10 + rng.normal(0, 0.01, 25)
    lng = 25 + rng.normal(0, 0.01, 25)
    found_lat, found_lng = smooth(np.array([0, 25]), time_s, lat, lng, scale, speed_kmh=36.0)
    start = lat[1]  # the first report is where the local map is laid
    wanted = start + conditioned(time_s, (lat - start) * METRES_PER_DEGREE, scale, 10.0) / METRES_PER_DEGREE
    assert np.abs(found_lat - wanted).max() * METRES_PER_DEGREE < 0.2
    wanted = lng[1] + conditioned(time_s, (lng - lng[1]) * METRES_PER_DEGREE, scale, 10.0) / METRES_PER_DEGREE
    assert np.abs(found_lng - wanted).max() * METRES_PER_DEGREE < 0.2


def test_trips_do_not_touch_each_other_and_exact_reports_stay():
    time_s, lat, lng = np.tile(np.arange(5) * 15.0, 2), np.r_[np.full(5, 60.0), np.full(5, -60.0)], np.zeros(10)
    found, _ = smooth(np.array([0, 5, 10]), time_s, lat, lng, np.full(10, 100.0), speed_kmh=30.0)
    assert found == pytest.approx(lat)
    zigzag = 60 + 0.01 * (np.arange(10) % 2)
    found, _ = smooth(np.array([0, 10]), np.arange(10) * 60.0, zigzag, lng, np.full(10, 0.01), speed_kmh=30.0)
    assert found == pytest.approx(zigzag, abs=1e-6)


def test_equal_times_one_point_poles_and_the_date_line():
    found, _ = smooth(np.array([0, 1]), np.zeros(1), np.array([5.0]), np.array([6.0]), np.array([10.0]), speed_kmh=30.0)
    assert found == pytest.approx([5.0])
    lat, lng = smooth(
        np.array([0, 4]),
        np.zeros(4),
        np.full(4, 89.9999),
        np.array([179.99, -179.99, 180.0, -180.0]),
        np.full(4, 50.0),
        speed_kmh=30.0,
    )
    assert np.isfinite(lat).all() and np.isfinite(lng).all() and np.abs(lng).max() <= 180
    _, lng = smooth(
        np.array([0, 2]), np.arange(2.0), np.zeros(2), np.array([179.9999, -179.9999]), np.full(2, 50.0), speed_kmh=5.0
    )
    assert (np.abs(lng) > 179.999).all()


def test_it_helps_geoind_and_never_touches_its_promise():
    trips = mm.demo.city(people=8, days=3, interval_s=15).trips
    plain = GeoIndistinguishability(epsilon=1.0, radius_m=200.0)
    smoothed = GeoIndistinguishability(epsilon=1.0, radius_m=200.0, smooth=True)
    assert plain.guarantee() == smoothed.guarantee()
    errors = [
        float(great_circle_m(trips.lat, trips.lng, out.lat, out.lng).mean())
        for out in (mechanism.apply(trips, seeded(1)) for mechanism in (plain, smoothed))
    ]
    assert errors[1] < 0.6 * errors[0]
    assert "costs nothing and weakens nothing" in " ".join(smoothed.statement())
    assert "smoothed" not in " ".join(plain.statement())


def test_it_reads_reports_times_and_nothing_else():
    """Two private inputs with equal reports (the noise is drowned) are smoothed alike, bit by bit."""
    trips = mm.demo.city(people=3, days=2, interval_s=60).trips
    there = np.full(trips.n_points, 1e-7)
    moved = trips.with_columns({"lat": trips.lat + there})
    mechanism = GeoIndistinguishability(epsilon=1.0, radius_m=200.0, smooth=True)
    same = np.rint(trips.lat * 1e6) == np.rint(moved.lat * 1e6)
    one, other = (mechanism.apply(t.take_points(same), seeded(1)) for t in (trips, moved))
    assert one.table.equals(other.table)


def test_sequences_without_time_need_an_interval():
    sequence = Trips(pl.DataFrame({"uid": 1, "tid": 1, "lat": [60.0, 60.1], "lng": [25.0, 25.0]}))
    with pytest.raises(InputError, match="interval_s"):
        GeoIndistinguishability(epsilon=1.0, radius_m=200.0, smooth=True).apply(sequence, seeded(1))
    mechanism = GeoIndistinguishability(epsilon=1.0, radius_m=200.0, smooth=True, interval_s=60.0)
    assert mechanism.apply(sequence, seeded(1)).n_points == 2


def test_reports_move_to_the_nearest_road():
    city = mm.demo.city(people=3, days=2, interval_s=60)
    mechanism = GeoIndistinguishability(epsilon=1.0, radius_m=100.0, roads=city.network)
    out = mechanism.apply(city.trips, seeded(1))
    plain = GeoIndistinguishability(epsilon=1.0, radius_m=100.0).apply(city.trips, seeded(1))
    links, _, away_m = city.network.index.nearest(out.lat, out.lng, radius_m=1_500.0)
    near = city.network.index.nearest(plain.lat, plain.lng, radius_m=990.0)[0] >= 0
    assert (links[near] >= 0).all()
    assert away_m[near].max() < 0.2
    moved = great_circle_m(plain.lat, plain.lng, out.lat, out.lng)
    wanted = city.network.index.nearest(plain.lat, plain.lng, radius_m=990.0)[2]
    assert moved[near] == pytest.approx(wanted[near], rel=0.01, abs=0.5)
    assert mechanism.guarantee() == GeoIndistinguishability(epsilon=1.0, radius_m=100.0).guarantee()
