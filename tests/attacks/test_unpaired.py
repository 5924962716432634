"""Attacks without a pairing: each wins on a release that gives people away, and stays at chance on one that does not."""

from __future__ import annotations

from datetime import UTC, datetime

import numpy as np
import polars as pl
import pytest

from murmurate.attacks.trip_membership import membership
from murmurate.attacks.unpaired import copying, inference, linkability, singling_out
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import NotMeasurable
from small_town import scrambled, town


def wide_town(n: int, seed: int) -> Trips:
    """Trips all over the box, so that no two are alike."""
    rng = np.random.default_rng(seed)
    ends = np.column_stack([rng.uniform(60.0, 60.2, 2 * n), rng.uniform(24.0, 24.4, 2 * n)]).reshape(n, 2, 2)
    steps = np.linspace(0, 1, 8)[None, :, None]
    points = (ends[:, :1] * (1 - steps) + ends[:, 1:] * steps).reshape(-1, 2)
    trip = np.repeat(np.arange(n), 8)
    start = np.datetime64("2024-05-06T00:00:00", "us").astype(np.int64) + rng.integers(0, 24, n) * 3_600_000_000
    when = start[trip] + np.tile(np.arange(8), n) * 60_000_000
    time = pl.Series(when).cast(pl.Datetime("us", "UTC"))
    return Trips(pl.DataFrame({"uid": trip // 2, "tid": trip, "datetime": time, "lat": points[:, 0], "lng": points[:, 1]}))


ORIGINAL, OTHERS = wide_town(600, 1), wide_town(600, 2)


def one(scores, name):
    return next(score for score in scores if score.name == name)


def test_trips_at_one_point_are_linked_no_more_often_than_by_chance():
    """A release of cells: nearest in the order of a search tree, the same five trips met for everybody, or for nobody."""
    table = OTHERS.table.with_columns(lat=pl.lit(60.1), lng=pl.when(pl.col("tid") % 2 == 0).then(24.1).otherwise(24.2))
    last = table.with_columns(pl.lit(60.05).alias("lat")).group_by("uid", "tid", maintain_order=True).last()
    first = table.group_by("uid", "tid", maintain_order=True).first()
    cells = Trips(pl.concat([first, last.select(first.columns)]).sort("tid", "datetime"))
    found = [one(linkability(cells, ORIGINAL, seed=seed), "linkability.success").value for seed in range(8)]
    assert 0 < np.mean(found) < 0.2
    assert max(found) < 0.5


def test_copies_are_found_and_others_are_not():
    found = one(copying(ORIGINAL, ORIGINAL), "copying.copies")
    assert found.value == 1
    assert found.chance < 0.05
    assert one(copying(OTHERS, ORIGINAL), "copying.copies").value < 0.05
    nearer = one(copying(ORIGINAL, ORIGINAL, holdout=OTHERS), "copying.nearer_to_members")
    assert nearer.value > 0.9
    fair = one(copying(wide_town(900, 3), ORIGINAL, holdout=OTHERS), "copying.nearer_to_members")
    assert fair.low < 0.5 < fair.high


def commuters(n: int, seed: int) -> Trips:
    """People who go from home to work every morning, each between two places of their own."""
    rng = np.random.default_rng(seed)
    places = np.column_stack([rng.uniform(60.0, 60.2, 2 * n), rng.uniform(24.0, 24.4, 2 * n)]).reshape(n, 2, 2)
    rows = [
        (person, f"{person} {day}", datetime(2024, 5, 6 + day, 7, minute, tzinfo=UTC), *places[person, int(minute > 0)])
        for person in range(n)
        for day in range(3)
        for minute in (0, 30)
    ]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row"))


def test_home_and_work_are_guessed_from_each_other():
    people, others = commuters(60, 1), commuters(60, 2)
    for name in ("inference.home", "inference.work"):
        assert one(inference(people, people), name).value == 1
        assert one(inference(people, people), name).chance < 0.1
        assert one(inference(others, people), name).value < 0.1
    assert len(inference(wide_town(600, 3), ORIGINAL)) == 1, "nobody goes anywhere twice"


def returning(n: int, seed: int, *, whole_days: bool) -> Trips:
    """People who go to work nearby and home again: two trips a day, or one point every hour of the day."""
    rng = np.random.default_rng(seed)
    homes = np.column_stack([rng.uniform(60.0, 60.2, n), rng.uniform(24.0, 24.4, n)])
    places = np.stack([homes, homes + rng.uniform(-0.005, 0.005, (n, 2))], axis=1)
    rows = []
    for person in range(n):
        leaves, returns = int(rng.integers(1, 11)), int(rng.integers(12, 22))
        for hour in range(24) if whole_days else (leaves - 1, leaves, returns - 1, returns):
            at_work = leaves <= hour < returns
            tid = 0 if whole_days else int(hour >= returns - 1)
            rows.append((person, f"{person} {tid}", datetime(2024, 5, 6, hour, tzinfo=UTC), *places[person, int(at_work)]))
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng"], orient="row"))


def test_days_of_other_people_link_no_more_than_real_days_do():
    """Days begin and end at one home. Against single trips, days of strangers seemed to link more than chance."""
    people = returning(300, 1, whole_days=False)
    strangers = one(linkability(returning(300, 2, whole_days=True), people), "linkability.success")
    assert strangers.value < strangers.chance + 0.05


def test_real_trips_of_other_people_are_at_the_chance_level():
    """A release of other people's trips tells nothing: no attack may call it a success."""
    people = town(2000, 3)
    mine, theirs = np.flatnonzero(people.trip_user % 2 == 0), np.flatnonzero(people.trip_user % 2 == 1)
    known, release = people.take_trips(mine), people.take_trips(theirs)
    for attack in (singling_out, linkability, inference):
        for told in attack(release, known):
            assert told.value < told.chance + 0.1, told


@pytest.mark.parametrize("attack", [singling_out, linkability, inference])
def test_originals_released_as_they_are_give_people_away(attack):
    told = attack(ORIGINAL, ORIGINAL)[0]
    assert told.value > (0.4 if attack is singling_out else 0.8)  # half of a copy tells of the other half of the people
    assert told.value > 3 * told.chance
    kept = attack(OTHERS, ORIGINAL)[0]
    assert kept.value < 0.1


def released_as_they_are(members, n, run):
    return members


def released_of_nobody(members, n, run):
    return wide_town(n, 100 + run)


def test_membership_wins_on_copies_and_stays_at_chance_on_strangers():
    assert one(membership(ORIGINAL, ORIGINAL, again=released_as_they_are, by_person=False), "membership.auc").value > 0.95
    assert one(membership(ORIGINAL, ORIGINAL, again=released_as_they_are), "membership.auc").value > 0.95
    fair = one(membership(ORIGINAL, ORIGINAL, again=released_of_nobody, by_person=False), "membership.auc")
    assert abs(fair.value - 0.5) < 0.06
    assert fair.low < fair.value < fair.high


def test_membership_without_the_mechanism_needs_people_outside():
    with pytest.raises(NotMeasurable, match="holdout"):
        membership(ORIGINAL, ORIGINAL)
    assert one(membership(ORIGINAL, ORIGINAL, holdout=OTHERS), "membership.auc").value > 0.9
    fair = one(membership(wide_town(900, 5), ORIGINAL, holdout=OTHERS), "membership.auc")
    assert abs(fair.value - 0.5) < 0.1


def test_too_few_trips_are_not_measured():
    few = ORIGINAL.take_trips(np.arange(5))
    for attack in (copying, singling_out, linkability, inference):
        with pytest.raises(NotMeasurable):
            attack(few, ORIGINAL)
    with pytest.raises(NotMeasurable, match="at least 40"):
        membership(few, ORIGINAL.take_trips(np.arange(20)), again=released_as_they_are)


def test_dense_towns_are_at_chance_for_noise():
    trips = town(300)
    noise = scrambled(trips)
    assert copying(noise, trips)[0].value < 0.05
    assert inference(noise, trips)[0].value <= inference(noise, trips)[0].chance
