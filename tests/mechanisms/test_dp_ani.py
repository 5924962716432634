"""dp_ani as published: ranges, ends, rejoined trips, and the plain word that nothing is promised."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.core.guarantee import NoGuarantee
from murmurate.errors import ParameterError
from murmurate.mechanisms.dp_ani import DPANI
from murmurate.noise import seeded
from murmurate.papers.dp_ani.ends import moved_ends
from murmurate.papers.dp_ani.ranges import adaptive_radii, fixed_radii, links_within, radii_of
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(8)


@pytest.fixture(scope="module")
def cars():
    return traffic(TOWN, people=30)


def ani(**changes):
    return DPANI(**{"epsilon": 1.0, "space": TOWN, **changes})


def test_links_are_counted_as_by_brute_force(cars):
    radii = radii_of(10.0, 300.0)
    lat, lng = cars.lat[:40], cars.lng[:40]
    found = links_within(TOWN, lat, lng, radii)
    for point in range(40):
        for k in (0, 9, len(radii) - 1):
            near = TOWN.index.links_within(float(lat[point]), float(lng[point]), radius_m=float(radii[k]))
            assert found[point, k] == len(near)


def test_the_radius_returned_is_the_one_tested():
    radii = radii_of(30.0, 100.0)
    assert radii.tolist() == [30, 40, 50, 60, 70, 80, 90, 100]
    counts = np.array([[0, 3, 9, 30, 30, 40, 40, 41], [0, 0, 0, 0, 1, 1, 2, 2]], dtype=np.int32)
    sure = adaptive_radii(counts, radii, threshold=25, epsilon=1e4, sensitivity=2.0, rng=seeded(1))
    assert sure.tolist() == [60, 100]
    assert fixed_radii(counts, radii, threshold=25).tolist() == [60, 100]
    blind = adaptive_radii(
        np.repeat(counts[:1], 4000, axis=0), radii, threshold=25, epsilon=0.1, sensitivity=2.0, rng=seeded(1)
    )
    assert np.median(blind) < 60  # its noise is wider than the threshold: the search stops too soon


def test_new_ends_are_of_the_same_class_and_within_the_range(cars):
    drives = drives_of(cars, TOWN)
    link = drives.ends[0]
    lat, lng = TOWN.centre(link)
    radius = np.full(len(link), 150.0)
    new = moved_ends(TOWN, lat, lng, link, radius, epsilon=0.5, rng=seeded(2))
    assert (TOWN.road_class[new] == TOWN.road_class[link]).all()
    for k in range(0, len(link), 9):
        assert new[k] in TOWN.index.links_within(float(lat[k]), float(lng[k]), radius_m=150.0)
    assert (new != link).mean() > 0.5


def test_trips_stay_joined_and_keep_what_lies_between(cars):
    mechanism = ani(epsilon=0.5, radius_rule="fix", max_m=200.0)
    perturbed = mechanism.perturb(cars, seeded(3))
    drives, before = perturbed.drives, drives_of(cars, TOWN)
    same_trip = drives.trip[1:] == drives.trip[:-1]
    follows = TOWN.link_to[drives.link[:-1]] == TOWN.link_from[drives.link[1:]]
    assert follows[same_trip].mean() > 0.999
    assert perturbed.moved > 0.4
    ratio = LinkFlows.of_drives(drives).length_km / LinkFlows.of_drives(before).length_km
    assert 0.9 < ratio < 1.2  # a small town: a block more is much
    for k, trip in enumerate(perturbed.trips[:20]):
        old = before.link[before.offsets[trip] : before.offsets[trip + 1]]
        new = drives.link[drives.offsets[k] : drives.offsets[k + 1]]
        if len(old) > 8:
            assert set(old[3:-3]) <= set(new)


def test_ends_move_more_the_wider_the_rule(cars):
    shares = [
        ani(epsilon=0.5, radius_rule=rule, epsilon_radius=1.0).perturb(cars, seeded(4)).moved for rule in ("adaptive", "max")
    ]
    assert shares[0] < shares[1]
    tied, held = (ani(epsilon=0.05, epsilon_radius=e).perturb(cars, seeded(4)).moved for e in (None, 1.0))
    assert tied < held


def test_nothing_is_promised_and_why():
    promise = ani().guarantee()
    assert isinstance(promise, NoGuarantee)
    assert "road_counts" in promise.why and "not perturbed" in promise.why


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"variant": "own"}, "road_counts"), ({"variant": "ours"}, "variant"), ({"radius_rule": "wide"}, "radius_rule"),
        ({"epsilon_radius": 0.0}, "epsilon_radius"), ({"sensitivity": -2.0}, "sensitivity"), ({"threshold": 0}, "threshold"),
        ({"max_m": 5.0}, "max_m"), ({"by_day": 1}, "by_day"), ({"space": "road"}, "a space is written"),
    ],
)  # fmt: skip
def test_senseless_parameters_are_refused(changes, says):
    with pytest.raises(ParameterError, match=says):
        ani(**changes)


def test_hours_of_days_apart_or_together(cars):
    apart, together = (ani(by_day=flag).apply(cars, seeded(5)) for flag in (True, False))
    assert "day" in apart.table.columns and "day" not in together.table.columns
    assert apart.by_hour.sum() == together.by_hour.sum()


def test_nobody_drives_nowhere(cars):
    assert len(ani().apply(cars.take_trips(np.arange(0)), seeded(1)).used) == 0
