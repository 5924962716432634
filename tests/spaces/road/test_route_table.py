"""Routes found once: the same as routing finds, kept on disk, made again when damaged."""

import os

import numpy as np
import pytest

from murmurate.errors import InputError
from murmurate.spaces.road import RoadNetwork, prepare
from murmurate.spaces.road.route_table import REACHES_S, cache_folder, look_up
from murmurate.spaces.road.routing import costs_from
from road_town import grid_town


def spread_town(seed=4, n=60):
    """Random streets over 5 km, so that routes cross several tiles."""
    rng = np.random.default_rng(seed)
    start, end = rng.integers(0, n, 300), rng.integers(0, n, 300)
    keep = start != end
    return RoadNetwork.from_arrays(
        node_lat=rng.uniform(60, 60.045, n),
        node_lng=rng.uniform(24, 24.09, n),
        link_from=start[keep],
        link_to=end[keep],
        road_class=rng.integers(1, 6, keep.sum()),
    )


@pytest.mark.parametrize("reach_s", [200.0, 600.0, 1200.0])
def test_it_holds_the_fastest_routes_in_reach(reach_s):
    network = spread_town()
    table = prepare(network, reach_s=reach_s)
    offsets, links = network.out_links
    found = 0
    for u in range(network.n_nodes):
        seconds = costs_from(network, u)
        for v in range(network.n_nodes):
            at = look_up(table, u, v)
            assert (at >= 0) == (seconds[v] <= reach_s)
            if at < 0:
                continue
            node, path = u, []
            while node != v:
                path.append(links[offsets[node] + table.hop[look_up(table, node, v)]])
                node = network.link_to[path[-1]]
                assert len(path) <= network.n_nodes
            assert network.time_s[path].sum() == pytest.approx(seconds[v])
            assert (table.cost[at] & 0xFFFF) * table.seconds == pytest.approx(seconds[v], abs=table.seconds)
            assert (table.cost[at] >> 16) * table.metres == pytest.approx(network.length_m[path].sum(), abs=table.metres)
            found += 1
    assert found > network.n_nodes * 2


def test_a_node_reaches_itself(town):
    table = prepare(town)
    assert table.cost[look_up(table, 7, 7)] == 0


def test_it_is_made_once_and_read_again(town, own_cache):
    assert cache_folder() == own_cache
    prepare(town)
    folder = next(own_cache.glob(f"routes-*-{town.fingerprint[:32]}-auto"))
    before = (folder / "cost.u32").stat().st_mtime_ns
    table = prepare(town)
    assert (folder / "cost.u32").stat().st_mtime_ns == before
    assert table.reach_s == REACHES_S[0]


def test_other_speeds_are_another_network(town):
    slow = RoadNetwork.from_arrays(
        node_lat=town.node_lat,
        node_lng=town.node_lng,
        link_from=town.link_from,
        link_to=town.link_to,
        road_class=town.road_class,
        speed_kmh=town.speed_kmh / 2,
    )
    one, two = prepare(town), prepare(slow)
    fast, slower = (float(table.cost[look_up(table, 0, 35)] & 0xFFFF) * table.seconds for table in (one, two))
    assert slower == pytest.approx(2 * fast, rel=1e-3)


def test_a_damaged_cache_is_made_again(monkeypatch, tmp_path):
    monkeypatch.setenv("MURMURATE_CACHE", str(tmp_path))
    town = grid_town(4)
    whole = np.array(prepare(town).cost)
    folder = next(tmp_path.iterdir())
    (folder / "cost.u32").write_bytes(b"123")
    np.testing.assert_array_equal(prepare(town).cost, whole)
    (folder / "about.json").write_text("{")
    np.testing.assert_array_equal(prepare(town).cost, whole)


def test_a_cache_that_cannot_be_written_is_no_error(monkeypatch, tmp_path):
    blocked = tmp_path / "file"
    blocked.write_text("a file where a folder should be")
    monkeypatch.setenv("MURMURATE_CACHE", str(blocked / "cache"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    table = prepare(grid_town(3))
    assert look_up(table, 0, 8) >= 0


def test_the_users_cache_folder(monkeypatch, tmp_path):
    monkeypatch.delenv("MURMURATE_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if os.name != "nt":
        assert cache_folder() == tmp_path / "murmurate"


def test_a_star_is_no_road_network():
    n = 300
    star = RoadNetwork.from_arrays(
        node_lat=np.linspace(0, 0.01, n),
        node_lng=np.linspace(0, 0.02, n),
        link_from=np.zeros(n - 1, dtype=int),
        link_to=np.arange(1, n),
        road_class=np.full(n - 1, 5),
    )
    with pytest.raises(InputError, match="299 links leaving it"):
        prepare(star)


def test_the_usual_excess_grows_with_travel_time(town):
    excess = prepare(town).excess_m
    assert (np.diff(excess) >= 0).all()
    assert 20 < excess[-1] < 400  # corners of a 500 m grid
