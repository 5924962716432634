"""Grids: ids, edges, neighbours, and everything absurd refused."""

import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.spaces import Grid, parse

BAY = Grid(37.6017, -122.5158, 37.8112, -122.3527, 250)


@st.composite
def grids(draw):
    south = draw(st.floats(-80, 79))
    west = draw(st.floats(-180, 178))
    north, east = south + draw(st.floats(0.001, 0.5)), west + draw(st.floats(0.001, 0.5))
    return Grid(south, west, north, east, draw(st.floats(200, 20_000)))


def test_grid_is_a_space():
    assert isinstance(BAY, Space)


def test_size_of_the_bay_grid():
    # 23.28 km of meridian and 14.36 km of the middle parallel, in cells of 250 m.
    assert (BAY.rows, BAY.columns, BAY.n_cells) == (94, 58, 94 * 58)


def test_ids_run_row_by_row_from_the_south_west():
    grid = Grid(0, 0, 0.03, 0.03, 1000)
    assert (grid.rows, grid.columns) == (4, 4)
    lat, lng = [0.001, 0.001, 0.012], [0.001, 0.012, 0.001]
    assert grid.locate(lat, lng).tolist() == [0, 1, 4]
    row, column = grid.row_column([0, 1, 4, 15])
    assert row.tolist() == [0, 0, 1, 3]
    assert column.tolist() == [0, 1, 0, 3]


def test_the_box_is_closed_and_the_rest_is_outside():
    corners = BAY.locate([BAY.south, BAY.south, BAY.north, BAY.north], [BAY.west, BAY.east, BAY.west, BAY.east])
    assert corners.tolist() == [0, BAY.columns - 1, (BAY.rows - 1) * BAY.columns, BAY.n_cells - 1]
    beyond = math.nextafter(BAY.north, 90)
    assert BAY.locate([beyond, np.nan, np.inf, 37.7], [-122.4, -122.4, -122.4, np.nan]).tolist() == [-1, -1, -1, -1]


@given(grids())
def test_the_centre_of_every_cell_lies_in_it(grid):
    cells = np.arange(grid.n_cells)
    assert np.array_equal(grid.locate(*grid.centre(cells)), cells)


@given(grids(), st.floats(0, 1), st.floats(0, 1))
def test_a_point_lies_within_the_bounds_of_its_cell(grid, down, along):
    lat = min(grid.south + down * (grid.north - grid.south), grid.north)
    lng = min(grid.west + along * (grid.east - grid.west), grid.east)
    south, west, north, east = grid.bounds(grid.locate(lat, lng))
    assert south - 1e-9 <= lat <= north + 1e-9
    assert west - 1e-9 <= lng <= east + 1e-9


@given(grids())
def test_the_words_rebuild_the_grid(grid):
    assert parse(grid.spec()) == grid


def test_a_box_of_whole_cells_has_no_sliver():
    step = Grid(0, 0, 1, 1, 5000).lat_step
    assert Grid(0, 0, 7 * step, 1, 5000).rows == 7


def test_distance_is_between_centres():
    assert BAY.distance(0, 0) == 0
    assert abs(float(BAY.distance(0, BAY.columns)) - 250) < 1  # one row up: sphere against ellipsoid, below 0.2 %
    assert abs(float(BAY.distance(30 * BAY.columns, 30 * BAY.columns + 1)) - 250) < 1


def test_neighbours_stop_at_the_edge():
    grid = Grid(0, 0, 0.03, 0.03, 1000)
    assert grid.neighbours(0).tolist() == [0, 1, 4, 5]
    assert grid.neighbours(5).tolist() == [0, 1, 2, 4, 5, 6, 8, 9, 10]
    assert grid.neighbours(0, reach=0).tolist() == [0]


def test_the_neighbour_table_agrees_with_a_plain_loop():
    grid = Grid(0, 0, 0.05, 0.07, 1000)
    table = grid.neighbour_table(2)
    for cell in range(grid.n_cells):
        row, column = divmod(cell, grid.columns)
        around = [
            (row + r) * grid.columns + column + c if 0 <= row + r < grid.rows and 0 <= column + c < grid.columns else -1
            for r in range(-2, 3)
            for c in range(-2, 3)
        ]
        assert table[cell].tolist() == around


def test_edges_are_those_of_the_box():
    lat, lng = BAY.edges()
    assert (len(lat), len(lng)) == (BAY.rows + 1, BAY.columns + 1)
    assert (lat[0], lat[-1], lng[0], lng[-1]) == (BAY.south, BAY.north, BAY.west, BAY.east)
    assert "5,452 cells of 250 m" in BAY.describe()


@pytest.mark.parametrize(
    ("box", "says"),
    [
        ((float("nan"), 0, 1, 1, 100), "south"),
        ((0, 0, float("inf"), 1, 100), "north"),
        ((1, 0, 0, 1, 100), "below north"),
        ((0, 0, 0, 1, 100), "below north"),
        ((0, 179, 1, -179, 100), "180th meridian"),
        ((0, 0, 91, 1, 100), "north"),
        ((0, -181, 1, 1, 100), "west"),
        (("0", 0, 1, 1, 100), "south"),
        ((0, 0, 1, 1, 0), "cell_m"),
        ((0, 0, 1, 1, -5), "cell_m"),
        ((0, 0, 1, 1, float("nan")), "cell_m"),
        ((0, 0, 1, 1, float("inf")), "cell_m"),
        ((0, 0, 1, 1, 5e-324), "metres"),
        ((0, 0, 1, 1, True), "cell_m"),
        ((0, 0, 1, 1, 1), "at most 10,000,000"),
        ((-90, -180, 90, 180, 0.1), "at most 10,000,000"),
    ],
)
def test_absurd_grids_are_refused(box, says):
    with pytest.raises(ParameterError, match=says):
        Grid(*box)


def test_cells_that_are_not_there_are_refused():
    for cell in (-1, BAY.n_cells):
        with pytest.raises(ParameterError, match="0 to 5,451"):
            BAY.centre([0, cell])
    with pytest.raises(ParameterError, match="reach"):
        BAY.neighbours(0, reach=-1)
    with pytest.raises(ParameterError, match="too large"):
        BAY.neighbour_table(200)


def test_an_extent_must_be_declared_public():
    trips = Trips(pl.DataFrame({"uid": "a", "tid": [1, 1], "lat": [60.1, 60.2], "lng": [24.9, 25.0]}))
    for answer in (False, None, 1):
        with pytest.raises(ParameterError, match="outermost"):
            Grid.from_extent(trips, 500, extent_is_public=answer)
    grid = Grid.from_extent(trips, 500, extent_is_public=True)
    assert (grid.south, grid.east) == (60.1, 25.0)
    assert (grid.locate(trips.lat, trips.lng) >= 0).all()
    one = Grid.from_extent(trips.take_points(np.array([True, False])), 500, extent_is_public=True)
    assert one.locate(60.1, 24.9) >= 0
    with pytest.raises(ParameterError, match="without a point"):
        Grid.from_extent(trips.take_points(np.array([False, False])), 500, extent_is_public=True)
