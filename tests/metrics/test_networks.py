"""Network scores: perfect for the original, bad for scrambled counts, and by hand on small ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from murmurate.errors import InputError
from murmurate.metrics.networks import compare_networks, ends_moved, single_ends
from murmurate.spaces import drives as drives_module
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import match
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(6)


@pytest.fixture(scope="module")
def original():
    return LinkFlows.of_drives(drives_of(traffic(TOWN), TOWN))


def flows(counts: dict[int, float], **rest) -> LinkFlows:
    return LinkFlows(
        network=TOWN,
        table=pl.DataFrame({"link": list(counts), "hour": [8] * len(counts), "count": list(counts.values())}),
        **rest,
    )


def named(scores) -> dict[str, float]:
    return {score.name: score.value for score in scores}


def test_the_original_scores_perfectly(original):
    for score in compare_networks(original, original):
        perfect = {"lower": 0.0, "higher": 1.0, "neither": 1.0}[score.better]
        assert score.value == pytest.approx(perfect), score.name
        assert score.family == "networks"


def test_scrambled_counts_score_badly(original):
    rng = np.random.default_rng(1)
    table = original.table.with_columns(
        link=pl.Series(rng.integers(0, TOWN.n_links, original.table.height)),
        hour=pl.Series(rng.integers(0, 24, original.table.height)),
    )
    found = named(compare_networks(LinkFlows(network=TOWN, table=table), original))
    assert found["network_links.correlation"] < 0.5 and found["network_hours.profile"] > 0.5
    assert found["network_hours.correlation"] < 0.5


def test_length_lost_and_invented_by_hand():
    found = named(compare_networks(flows({1: 4.0, 2: 1.0, 3: 2.0}), flows({1: 4.0, 2: 1.0, 4: 1.0, 5: 1.0})))
    assert found["network_length.ratio"] == pytest.approx(3 / 4, rel=0.01)
    assert found["network_length.lost"] == pytest.approx(1 / 2, rel=0.01)
    assert found["network_length.invented"] == pytest.approx(1 / 3, rel=0.01)
    above = named(compare_networks(flows({1: 4.0}, about={"threshold_trips": 3.0}), flows({1: 4.0, 2: 1.0})))
    assert above["network_length.kept_above_threshold"] == 1.0


def test_wasserstein_distances_by_hand():
    found = named(compare_networks(flows({1: 3.0, 2: 3.0}), flows({1: 2.0, 2: 2.0})))
    assert found["network_counts.wasserstein"] == pytest.approx(0.5)
    four, five = (int(np.flatnonzero(TOWN.road_class == k)[0]) for k in (4, 5))
    assert named(compare_networks(flows({four: 2.0}), flows({five: 2.0})))["network_classes.wasserstein"] == pytest.approx(1.0)


def test_connectivity_counts_the_largest_part():
    near, far = int(TOWN.out_links[1][0]), TOWN.n_links - 1
    found = named(compare_networks(flows({near: 1.0, far: 1.0}), flows({near: 1.0})))
    assert found["network_connectivity.ratio"] == pytest.approx(0.5, rel=0.01)


def test_ends_that_only_turn_round_have_not_moved():
    twin = int(TOWN.twin[0])
    scores = named(ends_moved(TOWN, np.array([0, 0, 0]), np.array([0, twin, 9])))
    assert scores["network_ends.moved"] == pytest.approx(1 / 3)
    assert scores["network_ends.distance"] > 0
    assert ends_moved(TOWN, np.zeros(0, np.int64), np.zeros(0, np.int64)) == []


def test_single_ends_are_shown_by_plain_counts_and_not_by_doubled_ones(original):
    drives = drives_of(traffic(TOWN), TOWN)
    found = named(single_ends(original, drives))
    assert 0 < found["network_ends.single"] < 1 and found["network_ends.single_shown"] == 1.0
    doubled = LinkFlows(network=TOWN, table=original.table.with_columns(pl.col("count") * 2))
    assert named(single_ends(doubled, drives))["network_ends.single_shown"] == 0.0


def test_other_networks_and_empty_originals_are_refused(original):
    other = LinkFlows(network=grid_town(5), table=pl.DataFrame({"link": [0], "hour": [0], "count": [1.0]}))
    with pytest.raises(InputError, match="different networks"):
        compare_networks(other, original)
    with pytest.raises(InputError, match="drives nothing"):
        compare_networks(original, flows({}))


def test_an_empty_release_is_scored(original):
    empty = LinkFlows(network=TOWN, table=original.table.head(0))
    found = named(compare_networks(empty, original))
    assert found["network_length.lost"] == 1.0 and found["network_links.correlation"] == 0.0


def test_drives_stay_with_their_trips_and_network(monkeypatch):
    trips, matched = traffic(TOWN), []
    monkeypatch.setattr(drives_module, "match", lambda *given: matched.append(given) or match(*given))
    first = drives_of(trips, TOWN)
    again = drives_of(trips, replace(TOWN))
    assert len(matched) == 1 and again.link is first.link
    slower = replace(TOWN, speed_kmh=TOWN.speed_kmh / 2)
    assert drives_of(trips, slower).network is slower and len(matched) == 2
    drives_of(traffic(TOWN), slower)
    assert len(matched) == 3
