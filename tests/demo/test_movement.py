"""What trackers record: points near the true links, at plausible speeds, with the noise, gaps and outliers asked for."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.demo import City, city
from murmurate.demo.movement import Tracker
from murmurate.demo.network import street_map
from murmurate.demo.plan import ORIGIN
from murmurate.errors import ParameterError
from murmurate.spaces.sphere import great_circle_m


@pytest.fixture(scope="module")
def clean() -> City:
    return city(people=60, days=3, noise_m=0, gap_share=0, outlier_share=0)


def _off_route_m(town: City) -> np.ndarray:
    """Metres from each point to the nearest piece of its own trip's true route."""
    streets = street_map(across_km=8.0, seed=1)
    px, py = ORIGIN.to_xy(town.trips.lat, town.trips.lng)
    x, y = streets.shape_x.reshape(-1, 3), streets.shape_y.reshape(-1, 3)
    off = np.empty(town.trips.n_points)
    for trip, route in enumerate(town.truth.trips["route"].to_list()):
        span = slice(town.trips.offsets[trip], town.trips.offsets[trip + 1])
        ax, ay = np.concatenate([x[route][:, k] for k in (0, 1)]), np.concatenate([y[route][:, k] for k in (0, 1)])
        bx, by = np.concatenate([x[route][:, k] for k in (1, 2)]), np.concatenate([y[route][:, k] for k in (1, 2)])
        dx, dy = bx - ax, by - ay
        share = ((px[span, None] - ax) * dx + (py[span, None] - ay) * dy) / (dx**2 + dy**2)
        share = np.clip(share, 0, 1)
        off[span] = np.hypot(px[span, None] - ax - share * dx, py[span, None] - ay - share * dy).min(axis=1)
    return off


def test_without_noise_every_point_lies_on_its_route(clean: City):
    assert _off_route_m(clean).max() < 0.3  # the microdegree lattice


def test_noise_has_the_size_asked_for_and_outliers_the_share(town: City):
    off = _off_route_m(town)
    assert 2.5 < np.median(off) < 5  # one-sided distance to a line, 5 m a direction
    assert np.quantile(off, 0.99) < 20
    assert 0.0004 < (off > 60).mean() < 0.002


def test_intervals_are_regular_until_the_last_point(clean: City):
    for trip in range(0, clean.trips.n_trips, 7):
        steps = np.diff(clean.trips.time_us[clean.trips.offsets[trip] : clean.trips.offsets[trip + 1]]) / 1e6
        assert (steps[:-1] == 15).all()
        assert 1 <= steps[-1] <= 15


def test_gaps_appear_when_asked_for():
    holes = city(people=30, days=2, gap_share=0.05, outlier_share=0)
    steps = np.diff(holes.trips.time_us) / 1e6
    inside = np.diff(holes.trips.point_trip) == 0
    assert (steps[inside] >= 45).mean() > 0.02
    assert np.diff(holes.trips.offsets).min() >= 2


def test_speeds_are_those_of_streets(clean: City):
    trips = clean.trips
    metres = great_circle_m(trips.lat[:-1], trips.lng[:-1], trips.lat[1:], trips.lng[1:])
    seconds = np.diff(trips.time_us) / 1e6
    inside = (np.diff(trips.point_trip) == 0) & (seconds > 10)
    kmh = metres[inside] / seconds[inside] * 3.6
    assert kmh.max() < 110
    assert 15 < np.median(kmh) < 40
    truth = clean.truth.trips
    whole = truth["length_m"].to_numpy() / (truth["arrive"] - truth["depart"]).dt.total_seconds().to_numpy() * 3.6
    assert 10 < np.quantile(whole, 0.01) < np.quantile(whole, 0.99) < 80


def test_another_interval_samples_the_same_journeys(clean: City):
    sparse = city(people=60, days=3, interval_s=60, noise_m=0, gap_share=0, outlier_share=0)
    assert sparse.truth.trips.equals(clean.truth.trips)
    ends = sparse.trips.offsets[1:] - 1, clean.trips.offsets[1:] - 1
    assert (sparse.trips.lat[ends[0]] == clean.trips.lat[ends[1]]).all()
    assert sparse.trips.n_points < clean.trips.n_points / 2.5


@pytest.mark.parametrize("wrong", [{"interval_s": 0}, {"noise_m": -1.0}, {"gap_share": 0.9}, {"outlier_share": -0.1}])
def test_impossible_trackers_are_refused(wrong: dict[str, float]):
    with pytest.raises(ParameterError):
        Tracker(**wrong)
