"""Planes: there and back, distances, the lattice."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.core.space import Space
from murmurate.errors import ParameterError
from murmurate.spaces import Plane, parse
from murmurate.spaces.plane import REACH_M
from murmurate.spaces.sphere import EARTH_RADIUS_M, great_circle_m

origins = st.builds(Plane, st.floats(-90, 90), st.floats(-180, 180))
kilometres = st.floats(-500, 500)


def test_plane_is_a_space():
    assert isinstance(Plane(60, 25), Space)


def test_axes_point_east_and_north():
    plane = Plane(60, 25)
    x, y = plane.to_xy([60, 60.001, 60], [25, 25, 25.001])
    assert np.allclose(x, [0, 0, EARTH_RADIUS_M * math.radians(0.001) / 2], atol=1e-3)
    assert np.allclose(y, [0, EARTH_RADIUS_M * math.radians(0.001), 0], atol=1e-3)


@given(origins, kilometres, kilometres)
def test_metres_survive_the_way_to_degrees_and_back(plane, east_km, north_km):
    x, y = plane.to_xy(*plane.from_xy(east_km * 1000, north_km * 1000))
    assert math.hypot(x - east_km * 1000, y - north_km * 1000) < 1e-5


@given(origins, st.integers(-5_000_000, 5_000_000), st.integers(-5_000_000, 5_000_000))
def test_lattice_points_are_places_of_their_own(plane, x, y):
    place = plane.pack(x, y)
    assert place >= 0
    assert [int(part) for part in plane.unpack(place)] == [x, y]
    assert plane.locate(*plane.centre(place)) == place


@given(origins, kilometres, kilometres, kilometres, kilometres)
def test_distances_are_never_shorter_than_on_the_sphere_and_little_longer(plane, x1, y1, x2, y2):
    metres = 1000 * math.hypot(x1 - x2, y1 - y2)
    on_sphere = float(great_circle_m(*plane.from_xy(x1 * 1000, y1 * 1000), *plane.from_xy(x2 * 1000, y2 * 1000)))
    far = 1000 * max(math.hypot(x1, y1), math.hypot(x2, y2)) / EARTH_RADIUS_M
    longest = far / math.sin(far) if far else 1.0
    assert on_sphere - 1e-4 <= metres <= on_sphere * longest + 1e-4


def test_snapping_is_to_the_nearest_step():
    plane = Plane(0, 0, step_m=0.1)
    x, y = plane.snap([0.04, 0.06, -12.34], [0, 0, 100.0])
    assert x.tolist() == [0, 1, -123]
    assert y.tolist() == [0, 0, 1000]
    assert plane.unsnap(x, y)[0].tolist() == pytest.approx([0, 0.1, -12.3])


def test_points_beyond_reach_have_no_place():
    plane = Plane(60, 25)
    assert plane.locate([60, -60, 10, np.nan], [25, -155, 25, 25]).tolist()[1:] == [-1, -1, -1]
    with pytest.raises(ParameterError, match="from the origin"):
        plane.snap(*plane.to_xy([60, 10], [25, 25]))
    edge = 60 - math.degrees((REACH_M - 1) / EARTH_RADIUS_M)
    assert plane.locate(edge, 25) >= 0
    with pytest.raises(ParameterError, match="leave it out"):
        plane.centre(-1)


def test_the_antimeridian_is_no_edge():
    plane = Plane(0, 179.99)
    x, _ = plane.to_xy(0, -179.99)
    assert float(x) == pytest.approx(EARTH_RADIUS_M * math.radians(0.02))
    _, lng = plane.from_xy(x, 0)
    assert float(lng) == pytest.approx(-179.99)


def test_distance_and_neighbours_count_steps():
    plane = Plane(60, 25, step_m=10)
    here, there = plane.pack(0, 0), plane.pack(3, 4)
    assert float(plane.distance(here, there)) == pytest.approx(50, abs=1e-6)
    around = plane.neighbours(int(here))
    assert len(around) == 9
    assert here in around


@pytest.mark.parametrize("words", ["plane:60.17,24.94", "plane:-33,151.2", "plane:60,25:0.5"])
def test_the_words_rebuild_the_plane(words):
    assert parse(words).spec() == words


@pytest.mark.parametrize(
    "parameters", [(91, 0), (0, 181), (float("nan"), 0), (0, float("inf")), ("60", 0), (0, 0, 0), (0, 0, -1), (0, 0, 1e-6)]
)
def test_absurd_planes_are_refused(parameters):
    with pytest.raises(ParameterError):
        Plane(*parameters)


def test_describe_names_the_origin():
    assert "60, 25" in Plane(60, 25).describe()
