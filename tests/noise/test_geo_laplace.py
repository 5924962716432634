"""Laplace noise on the sphere: exact destinations, law by great-circle distance, poles and date line."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from brackets import assert_bracketed, gamma_two_law
from murmurate.errors import ParameterError
from murmurate.noise import geo_laplace, secure, seeded
from murmurate.noise.sphere import PER_RADIAN, exact_offset, series_offset
from murmurate.spaces.sphere import EARTH_RADIUS_M, great_circle_m

MOST_UNLIKELY = 1e-6


def moved(lat_deg: float, lng_deg: float, n: int, epsilon_per_m: float, rng):
    lat, lng = np.full(n, round(lat_deg * 1e6), dtype=np.int32), np.full(n, round(lng_deg * 1e6), dtype=np.int32)
    return geo_laplace(lat, lng, epsilon_per_m=epsilon_per_m, rng=rng)


def distances_m(lat_deg, lng_deg, out):
    return great_circle_m(lat_deg, lng_deg, out[0] / 1e6, out[1] / 1e6)


def destination_in_long_doubles(phi, r, cos_azimuth, sin_azimuth):
    """The point itself, as a vector turned step by step; an independent road to the same place."""
    phi, r, cos_azimuth, sin_azimuth = (np.asarray(part, dtype=np.longdouble) for part in (phi, r, cos_azimuth, sin_azimuth))
    here = np.array([np.cos(phi), np.zeros_like(phi), np.sin(phi)])
    north = np.array([-np.sin(phi), np.zeros_like(phi), np.cos(phi)])
    east = np.array([np.zeros_like(phi), np.ones_like(phi), np.zeros_like(phi)])
    there = np.cos(r) * here + np.sin(r) * (cos_azimuth * north + sin_azimuth * east)
    lat = np.arctan2(there[2], np.sqrt(there[0] ** 2 + there[1] ** 2))
    return lat - phi, np.arctan2(there[1], there[0])


@pytest.mark.parametrize(("offset", "max_lat", "max_r"), [(series_offset, 80, 0.01), (exact_offset, 90, 3.14)])
def test_destinations_are_exact_to_a_millionth_of_a_step(offset, max_lat, max_r):
    rng = np.random.default_rng(1)
    n = 4000
    phi = np.radians(np.append(rng.uniform(-max_lat, max_lat, n), [max_lat, -max_lat, 0, max_lat]))
    r = np.append(max_r * rng.uniform(0, 1, n) ** 3, [max_r, max_r, max_r, 1e-9])
    azimuth = np.append(rng.uniform(-np.pi, np.pi, n), [0, np.pi / 2, np.pi, 1])
    ours = np.array([offset(*row) for row in zip(phi, r, np.cos(azimuth), np.sin(azimuth), strict=True)])
    theirs = destination_in_long_doubles(phi, r, np.cos(azimuth), np.sin(azimuth))
    for column in (0, 1):
        difference = np.asarray(ours[:, column] - theirs[column], dtype=np.float64)
        difference = (difference + np.pi) % (2 * np.pi) - np.pi  # half a turn east is half a turn west
        if max_lat == 90 and column == 1:
            # close to a pole longitude means little: weigh it by the length of its step
            difference = difference * np.cos(phi + np.asarray(theirs[0], dtype=np.float64))
        assert np.abs(difference).max() * PER_RADIAN < 1e-6


@pytest.mark.parametrize("rng", [seeded(1), secure()])
@pytest.mark.parametrize("lat", [0.0, 60.17, -85.0])
def test_distance_is_bracketed(rng, lat):
    def radii(scale: float):
        return distances_m(lat, 24.94, moved(lat, 24.94, 30_000, 1 / scale, rng))

    assert_bracketed(radii, gamma_two_law(), 1000.0)


@pytest.mark.parametrize("lat", [0.0, 37.77, -60.0, 79.9, 80.1, 89.99, 90.0])
def test_distance_and_azimuth_have_their_laws_at_every_latitude(lat):
    n = 100_000
    out = moved(lat, -122.4, n, 0.002, seeded(2))
    # over the curved surface a radius of kilometres differs from the plane's by 10^-7
    assert stats.kstest(distances_m(lat, -122.4, out), stats.gamma(2, scale=500).cdf).pvalue > MOST_UNLIKELY
    phi, phi2 = np.radians(lat), np.radians(out[0] / 1e6)
    turn = np.radians(out[1] / 1e6 + 122.4)
    east, north = np.cos(phi2) * np.sin(turn), np.cos(phi) * np.sin(phi2) - np.sin(phi) * np.cos(phi2) * np.cos(turn)
    assert stats.kstest(np.arctan2(east, north), stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > MOST_UNLIKELY


@pytest.mark.parametrize("epsilon_per_m", [1e-5, 1e-6, 2e-7, 5e-8, 1e-12])
def test_noise_as_wide_as_the_earth_follows_the_sphere(epsilon_per_m):
    """P(radius <= r) for the density sin(r) exp(-epsilon r) on 0 to pi, for both ways of proposing a radius."""
    epsilon = epsilon_per_m * EARTH_RADIUS_M

    def upto(r):
        return 1 - np.exp(-epsilon * r) * (np.cos(r) + epsilon * np.sin(r))

    radii = distances_m(48.0, 2.0, moved(48.0, 2.0, 60_000, epsilon_per_m, seeded(3))) / EARTH_RADIUS_M
    assert stats.kstest(radii, lambda r: upto(r) / upto(np.pi)).pvalue > MOST_UNLIKELY


def test_outputs_of_neighbouring_places_keep_the_ratio():
    """The guarantee itself, on the lattice at a high latitude: log ratios of output frequencies stay below epsilon d."""
    epsilon_per_m, n = 0.5, 400_000
    one, other = (60_000_000, 25_000_000), (60_000_004, 25_000_010)
    distance = great_circle_m(one[0] / 1e6, one[1] / 1e6, other[0] / 1e6, other[1] / 1e6)
    counts = []
    for k, (lat, lng) in enumerate((one, other)):
        out = moved(lat / 1e6, lng / 1e6, n, epsilon_per_m, seeded(10 + k))
        # blocks of 6 x 12 lattice steps, near the two places
        row, column = (out[0] - 60_000_000 + 60) // 6, (out[1] - 25_000_000 + 120) // 12
        near = (row >= 0) & (row < 20) & (column >= 0) & (column < 20)
        counts.append(np.bincount(row[near] * 20 + column[near], minlength=400))
    seen = (counts[0] > 100) & (counts[1] > 100)
    assert seen.sum() > 100
    a, b = counts[0][seen], counts[1][seen]
    error = np.sqrt(1 / a + 1 / b)
    assert np.all(np.abs(np.log(a / b)) < epsilon_per_m * distance + 6 * error)
    assert np.abs(np.log(a / b)).max() > 0.7 * epsilon_per_m * distance  # and the bound is nearly reached


def test_the_date_line_is_crossed_and_the_range_is_half_open():
    for lng in (180.0, -180.0):
        out = moved(10.0, lng, 20_000, 0.001, seeded(4))
        assert out[1].min() >= -180_000_000
        assert out[1].max() < 180_000_000
        assert 0.45 < (out[1] > 0).mean() < 0.55
        assert np.median(distances_m(10.0, 180.0, out)) < 3000
    # 180 and -180 are one place, so equal draws must give equal outputs
    assert np.array_equal(moved(10.0, 180.0, 50, 0.001, seeded(4)), moved(10.0, -180.0, 50, 0.001, seeded(4)))


def test_latitude_stays_in_range_at_the_pole():
    out = moved(90.0, 0.0, 20_000, 0.01, seeded(5))
    assert out[0].max() <= 90_000_000
    assert out[0].min() > 89_900_000
    assert stats.kstest(out[1], stats.uniform(-180e6, 360e6).cdf).pvalue > MOST_UNLIKELY


def test_large_epsilon_moves_nothing_and_types_stay():
    lat, lng = np.array([60_000_000, -33_000_000]), np.array([25_000_000, 151_000_000])
    out = geo_laplace(lat, lng, epsilon_per_m=1e6, rng=secure())
    assert out[0].tolist() == lat.tolist()
    assert out[1].tolist() == lng.tolist()
    assert out[0].dtype == out[1].dtype == np.int32


def test_same_seed_same_noise_and_nothing_for_nothing():
    assert np.array_equal(moved(1, 2, 20_000, 0.01, seeded(6)), moved(1, 2, 20_000, 0.01, seeded(6)))
    assert not np.array_equal(moved(1, 2, 20, 0.01, secure()), moved(1, 2, 20, 0.01, secure()))
    assert [part.size for part in moved(1, 2, 0, 0.01, secure())] == [0, 0]
    assert [part.size for part in moved(1, 2, 1, 0.01, secure())] == [1, 1]


@pytest.mark.parametrize("epsilon_per_m", [0, -1.0, float("nan"), float("inf")])
def test_senseless_epsilons_are_refused(epsilon_per_m):
    with pytest.raises(ParameterError, match="epsilon_per_m"):
        moved(1, 2, 3, epsilon_per_m, seeded(1))


@pytest.mark.parametrize(
    ("lat", "lng", "why"),
    [
        (np.array([90_000_001]), np.array([0]), "latitudes must lie"),
        (np.array([0]), np.array([-180_000_001]), "longitudes must lie"),
        (np.array([0.5]), np.array([0]), "vector of integers"),
        (np.array([1, 2]), np.array([0]), "as many"),
    ],
)
def test_coordinates_off_the_lattice_are_refused(lat, lng, why):
    with pytest.raises(ParameterError, match=why):
        geo_laplace(lat, lng, epsilon_per_m=1.0, rng=seeded(1))
