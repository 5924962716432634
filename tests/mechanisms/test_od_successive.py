"""od_successive: what is cut from the ends, what stays inside."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.core.guarantee import NoGuarantee
from murmurate.errors import ParameterError
from murmurate.mechanisms.od_successive import ODSuccessive
from murmurate.noise import seeded
from murmurate.spaces.drives import Drives, drives_of
from murmurate.spaces.flows import LinkFlows
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(6)


def drives(*paths, hour=8, day=0) -> Drives:
    links = np.concatenate([np.array(path, dtype=np.int64) for path in paths])
    n = len(links)
    return Drives(
        network=TOWN, offsets=np.cumsum([0, *map(len, paths)]), link=links, part=np.zeros(n, np.int64),
        hour=np.full(n, hour), day=np.full(n, day), seconds=np.full(n, np.nan),
    )  # fmt: skip


def left(found: Drives) -> list[list[int]]:
    return [found.link[a:b].tolist() for a, b in zip(found.offsets[:-1], found.offsets[1:], strict=True)]


def test_rare_links_go_from_the_ends_and_stay_inside():
    cut = ODSuccessive(space=TOWN).shortened(drives([1, 2, 3, 4, 5], [2, 9, 5], [7, 8]))
    assert left(cut) == [[2, 3, 4, 5], [2, 9, 5], []]


def test_k_counts_drivers_of_that_hour():
    three = drives([1, 2, 3], [1, 2, 3], [1, 2])
    assert left(ODSuccessive(space=TOWN, k=3).shortened(three)) == [[1, 2], [1, 2], [1, 2]]
    assert left(ODSuccessive(space=TOWN, k=4).shortened(three)) == [[], [], []]


def test_days_apart_remove_more():
    trips = traffic(TOWN)
    pooled, apart = (ODSuccessive(space=TOWN, by_day=flag).apply(trips, seeded(1)) for flag in (False, True))
    whole = LinkFlows.of_drives(drives_of(trips, TOWN))
    assert apart.length_km <= pooled.length_km <= whole.length_km
    assert apart.by_hour.sum() < pooled.by_hour.sum() <= whole.by_hour.sum()


def test_nothing_is_promised_and_senseless_parameters_are_refused():
    promise = ODSuccessive(space=TOWN).guarantee()
    assert isinstance(promise, NoGuarantee) and "exact counts" in promise.why
    for changes, says in (({"k": 1}, "k must"), ({"by_day": "no"}, "by_day"), ({"space": None}, "road network")):
        with pytest.raises(ParameterError, match=says):
            ODSuccessive(**{"space": TOWN, **changes})
