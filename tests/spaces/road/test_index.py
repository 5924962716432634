"""The nearest links against brute force."""

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.errors import InputError, ParameterError
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.index import LinkIndex
from murmurate.spaces.road.write import link_lines
from murmurate.spaces.sphere import METRES_PER_DEGREE


def by_hand(network, lat, lng):
    """Metres from every point to every link, on the index's own plane."""
    index = network.index
    lines = shapely.transform(link_lines(network), lambda xy: np.column_stack(index.to_xy(xy[:, 1], xy[:, 0])))
    x, y = index.to_xy(lat, lng)
    return shapely.distance(shapely.points(x, y)[:, None], lines[None, :])


@st.composite
def curly_networks(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n_links = draw(st.integers(1, 15))
    sizes = rng.integers(2, 6, n_links)
    offsets = np.concatenate(([0], np.cumsum(sizes)))
    spread = draw(st.sampled_from([0.0005, 0.005, 0.05]))
    lat, lng = 48 + rng.normal(0, spread, offsets[-1]), 2 + rng.normal(0, spread, offsets[-1])
    ends = np.column_stack([offsets[:-1], offsets[1:] - 1]).ravel()
    return RoadNetwork.from_arrays(
        node_lat=lat[ends],
        node_lng=lng[ends],
        link_from=np.arange(0, 2 * n_links, 2),
        link_to=np.arange(1, 2 * n_links, 2),
        road_class=np.full(n_links, 5),
        shape_offsets=offsets,
        shape_lat=lat,
        shape_lng=lng,
    )


@settings(deadline=None, max_examples=60)
@given(
    curly_networks(),
    st.integers(0, 2**32 - 1),
    st.sampled_from([20.0, 60.0, 700.0, 9000.0]),
    st.sampled_from([7.0, 60.0, 500.0]),
)
def test_the_nearest_links_are_found(network, seed, radius_m, bucket_m):
    rng = np.random.default_rng(seed)
    pick = rng.integers(0, len(network.shape_lat), 12)
    lat = network.shape_lat[pick] + rng.normal(0, radius_m / METRES_PER_DEGREE, 12)
    lng = network.shape_lng[pick] + rng.normal(0, radius_m / METRES_PER_DEGREE, 12)
    expected = by_hand(network, lat, lng)
    index = LinkIndex.build(network, bucket_m=bucket_m)
    links, offsets_m, away = index.within(lat, lng, radius_m=radius_m, k=4)
    for p in range(12):
        near = np.sort(expected[p][expected[p] <= radius_m])[:4]
        found = links[p] >= 0
        np.testing.assert_allclose(away[p][found], near, atol=1e-6)
        np.testing.assert_allclose(expected[p, links[p][found]], near, atol=1e-6)
        assert (offsets_m[p][found] <= network.length_m[links[p][found]] + 1e-6).all()
        assert (offsets_m[p][found] >= 0).all()
        everything = index.links_within(lat[p], lng[p], radius_m=radius_m)
        clear = np.abs(expected[p] - radius_m) > 1e-6
        assert set(everything[clear[everything]]) == set(np.flatnonzero((expected[p] <= radius_m) & clear))


def test_both_directions_of_a_street_are_told(town):
    links, offsets_m, away = town.index.within([0.0], [0.0003], radius_m=20, k=6)
    assert (links[0] >= 0).sum() == 2
    assert links[0, 1] == town.twin[links[0, 0]]
    assert offsets_m[0, 0] + offsets_m[0, 1] == pytest.approx(town.length_m[links[0, 0]])
    assert away[0, :2] == pytest.approx([0, 0], abs=1e-6)


def test_an_odd_number_of_links_cuts_the_farthest(town):
    links, _, away = town.index.within([0.00001], [0.0001], radius_m=200, k=3)
    assert (links[0] >= 0).all()
    assert (np.diff(away[0]) >= 0).all()


def test_points_that_are_none_are_nowhere(town):
    links, offset, away = town.index.nearest([np.nan, 50.0, 0.0], [0.0, 0.0, 0.0], radius_m=60)
    assert links.tolist()[:2] == [-1, -1]
    assert links[2] >= 0
    assert np.isnan(offset[:2]).all()
    assert np.isnan(away[:2]).all()


def test_bad_questions_are_refused(town):
    with pytest.raises(ParameterError, match="radius_m"):
        town.index.nearest([0.0], [0.0], radius_m=0)
    with pytest.raises(ParameterError, match="k must be"):
        town.index.within([0.0], [0.0], radius_m=10, k=0)
    with pytest.raises(InputError, match="pair up"):
        town.index.nearest([0.0, 1.0], [0.0], radius_m=10)
