"""The largest strongly connected part."""

import networkx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.errors import InputError
from murmurate.spaces.road import RoadNetwork, largest_connected


def network_of(pairs):
    n = max(max(pair) for pair in pairs) + 1
    return RoadNetwork.from_arrays(
        node_lat=np.arange(n) * 0.001,
        node_lng=np.arange(n) * 0.0013,
        link_from=[a for a, _ in pairs],
        link_to=[b for _, b in pairs],
        road_class=[5] * len(pairs),
    )


@settings(deadline=None, max_examples=50)
@given(
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] != pair[1]), min_size=1, max_size=30)
)
def test_every_node_reaches_every_other(pairs):
    whole = network_of(pairs)
    if not any(len(part) > 1 for part in networkx.strongly_connected_components(networkx.DiGraph(pairs))):
        with pytest.raises(InputError, match="reached from each other"):
            largest_connected(whole)
        return
    part = largest_connected(whole)
    graph = networkx.MultiDiGraph(list(zip(part.link_from.tolist(), part.link_to.tolist(), strict=True)))
    assert networkx.is_strongly_connected(graph)
    assert part.n_links + part.dropped.get("links outside the largest connected part", 0) == whole.n_links
    assert part.n_nodes + part.dropped.get("nodes outside the largest connected part", 0) == whole.n_nodes


def test_a_disconnected_island_is_dropped_and_counted():
    part = largest_connected(network_of([(0, 1), (1, 2), (2, 0), (3, 4), (4, 3), (2, 3)]))
    assert part.n_links == 3
    assert part.dropped == {"links outside the largest connected part": 3, "nodes outside the largest connected part": 2}
