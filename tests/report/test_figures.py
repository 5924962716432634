"""Maps and charts draw what the numbers say, on common scales, in hand-worked cases."""

from __future__ import annotations

import re

import numpy as np
import polars as pl
import pytest

from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import Side
from murmurate.report.breaks import Breaks, shared_breaks
from murmurate.report.charts import BOTTOM, HEIGHT, LEFT, TOP, distributions, score_by_hour
from murmurate.report.density import (
    CLASSES,
    change_breaks,
    change_patches,
    density_breaks,
    density_patches,
    display_grid,
    visit_shares,
)
from murmurate.report.flow_map import flow_arcs, flow_breaks, strongest_flows, zone_grid
from murmurate.report.ground import BaseMap, ground
from murmurate.report.maps import SHOWN, _choose, atlas, grid_around
from murmurate.report.view import LONGER_SIDE, View, lines
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork

GRID = Grid(60.0, 24.0, 60.04, 24.08, 500.0)
VIEW = View.of(GRID)


def trips_of(*lines_of_points):
    rows = [(k, lat, lng) for k, line in enumerate(lines_of_points) for lat, lng in line]
    return Trips(pl.DataFrame(rows, schema=["tid", "lat", "lng"], orient="row").with_columns(uid=pl.col("tid")))


def centre(cell):
    lat, lng = GRID.centre(np.array([cell]))
    return float(lat[0]), float(lng[0])


def test_a_view_is_upright_and_keeps_proportions():
    x, y = VIEW.project(np.array([60.04, 60.0]), np.array([24.0, 24.08]))
    assert (x.tolist(), y.tolist()) == ([0, VIEW.width], [0, VIEW.height])
    metres = GRID.columns * 500, GRID.rows * 500
    assert max(VIEW.size) == LONGER_SIDE
    assert VIEW.width / VIEW.height == pytest.approx(metres[0] / metres[1], rel=0.05)


def test_strays_are_kept_near_the_window():
    x, y = VIEW.project(np.array([-90.0]), np.array([180.0]))
    assert x[0] < 10 * LONGER_SIDE and y[0] < 10 * LONGER_SIDE


def test_the_scale_bar_is_as_long_as_it_says():
    units, text = VIEW.scale_bar()
    metres_across = 0.08 * 111_195 * np.cos(np.radians(60.02))
    assert text == "1 km" and units == pytest.approx(VIEW.width * 1000 / metres_across, abs=2)


def test_lines_leave_out_what_does_not_move():
    assert lines(np.array([5, 5]), np.array([5, 5]), np.array([0, 2])) == ""
    assert lines(np.array([0, 1, 9, 9]), np.array([0, 0, 9, 8]), np.array([0, 2, 4])) == "M0 0l1 0M9 9l0 -1"


@pytest.mark.parametrize("greatest", [0.0003, 0.99, 1.0, 1.01, 47.0, 100.0])
def test_breaks_are_round_and_end_below_the_greatest(greatest):
    breaks = shared_breaks(greatest, 7)
    assert breaks.n == 7 and breaks.edges[-1] < greatest <= 2.5 * breaks.edges[-1]
    assert all(f"{edge:.0e}"[0] in "125" for edge in breaks.edges)
    assert breaks.classes(np.array([greatest, 0.0])).tolist() == [6, 0]


def test_nothing_to_show_makes_no_breaks():
    assert shared_breaks(0.0, 7) == Breaks(()) and Breaks(()).labels("%") == ["any, in %"]


def test_density_counts_points_per_cell_and_shares_one_scale():
    a, b = centre(0), centre(GRID.n_cells - 1)
    one, other = trips_of([a, a, a, b]), trips_of([b, b])
    shares = [visit_shares(Side(trips, GRID)) for trips in (one, other)]
    assert (shares[0][0], shares[0][-1], shares[1][-1]) == (75.0, 25.0, 100.0)
    breaks = density_breaks(shares)
    patches = [density_patches(VIEW, GRID, share, breaks) for share in shares]
    assert [patch.number for patch in patches[1]] == [CLASSES]
    strongest = max(patch.number for patch in patches[0])
    assert strongest == CLASSES  # 75 and 100 % both lie above 50 %
    assert [patch.d.count("M") for patch in patches[0]] == [1, 1]
    south_west = next(patch for patch in patches[0] if patch.number == CLASSES)
    left, top = map(int, re.match(r"M(-?\d+) (-?\d+)", south_west.d).groups())
    assert left == 0 and top > VIEW.height / 2


def test_change_tells_more_from_fewer():
    change = np.zeros(GRID.n_cells)
    change[3], change[7] = 2.0, -2.0
    patches = change_patches(VIEW, GRID, change, change_breaks([change]))
    assert sorted(patch.number for patch in patches) == [-3, 3]
    assert {patch.number: patch.label.split()[0] for patch in patches} == {-3: "fewer", 3: "more"}


def test_one_bad_release_does_not_hide_the_changes_of_the_others():
    small, large = np.zeros(GRID.n_cells), np.zeros(GRID.n_cells)
    small[1], large[1] = 0.3, 90.0
    breaks = change_breaks([small, small, large])
    assert [patch.number for patch in change_patches(VIEW, GRID, small, breaks)] == [3]


def test_fine_grids_are_drawn_coarser():
    fine = Grid(60.0, 24.0, 60.04, 24.08, 10.0)
    assert max(display_grid(fine).rows, display_grid(fine).columns) <= 64 and display_grid(GRID) is GRID


def test_flows_are_counted_between_zones_with_direction():
    a, b = (60.002, 24.002), (60.038, 24.078)
    trips = trips_of([a, b], [a, b], [b, a], [a, a], [(0.0, 0.0), a])
    zones = zone_grid(GRID)
    flows = strongest_flows(Side(trips, GRID), zones)
    assert flows.share.tolist() == [50.0, 25.0, 25.0] and flows.covered == 100.0
    start, end = (int(zones.locate(*place)) for place in (a, b))
    assert (flows.origin[0], flows.destination[0]) == (start, end)
    arcs = flow_arcs(VIEW, zones, flows, flow_breaks([flows]))
    assert sum(len(arc.rings) for arc in arcs) == 1 and sum(arc.d.count("Q") for arc in arcs) == 2


def test_samples_pair_where_pairs_are_known():
    trips = trips_of(*[[centre(k), centre(k + 1)] for k in range(50)])
    side = Side(trips, GRID)
    pairing = np.roll(np.arange(50), 1)
    mine, theirs = _choose(side, side, pairing)
    assert len(mine) == SHOWN and (theirs == pairing[mine]).all()
    assert (_choose(side, side, pairing)[0] == mine).all()
    assert len(_choose(side, None, None)[1]) == 0


def test_the_ground_draws_a_street_once_and_only_inside():
    network = RoadNetwork.from_arrays(
        node_lat=[60.01, 60.02, 10.0, 10.1],
        node_lng=[24.01, 24.02, 10.0, 10.0],
        link_from=[0, 1, 2],
        link_to=[1, 0, 3],
        road_class=[1, 1, 5],
    )
    water = {"water": [(np.array([60.0, 60.01, 60.01]), np.array([24.0, 24.0, 24.01]))]}
    layers = ground(VIEW, BaseMap(network, water), GRID).layers
    assert [layer.kind for layer in layers] == ["water", "road road1"]
    assert layers[1].d.count("M") == 1 and layers[0].d.endswith("z")
    assert [layer.above for layer in layers] == [False, True]


def test_without_roads_the_cells_have_edges():
    (edges,) = ground(VIEW, None, GRID).layers
    assert edges.kind == "edge" and edges.d.count("M") == GRID.rows + GRID.columns + 2
    assert ground(VIEW, None, Grid(60.0, 24.0, 60.04, 24.08, 10.0)).layers == ()


def test_an_atlas_without_an_original_shows_no_change():
    trips = trips_of([centre(0), centre(30)], [centre(5), centre(6)])
    drawn = atlas(grid_around(trips), {"Released": trips})
    assert [panel.title for panel in drawn.density] == ["Released"] and drawn.change == () and drawn.change_legend is None


def test_a_window_around_one_place_is_still_a_window():
    grid = grid_around(trips_of([(60.0, 24.0), (60.0, 24.0)]))
    assert grid.n_cells > 1 and int(grid.locate(60.0, 24.0)) >= 0


def test_distributions_say_their_medians_and_fill_the_frame():
    short, long = trips_of([(60.0, 24.0), (60.01, 24.0)]), trips_of([(60.0, 24.0), (60.02, 24.0)])
    (chart,) = distributions({"original": Side(short, GRID), "released": Side(long, GRID)})  # no time: length alone
    assert chart.title == "Length of trips" and "original 1.11 km, released 2.22 km" in chart.words
    assert [(line.role, line.area) for line in chart.series] == [("original", True), ("released", False)]
    heights = [int(level) for level in re.findall(r"V(\d+)", chart.series[0].d)]
    assert min(heights) == TOP and max(heights) == HEIGHT - BOTTOM
    assert chart.series[0].d.startswith(f"M{LEFT} ")


def test_hours_without_a_score_leave_a_gap():
    scores = [Score(name=f"x.hour_{hour:02d}", value=float(hour)) for hour in (3, 4, 9)]
    chart = score_by_hour("X", "m", scores, "x", Score(name="x.floor", value=2.0))
    line, floor = chart.series
    assert line.d.count("M") == 2 and line.d.count("L") == 1 and floor.role == "floor"
    assert "greatest at 9:00" in chart.words
    assert score_by_hour("Y", "m", scores, "y") is None
