"""Membership by counts: exact counts give people away, counts under wide noise do not, and their mean over releases may."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.attacks.counts import membership
from murmurate.judging.foreign import flows_of
from murmurate.metrics.comparison import NotMeasurable
from murmurate.spaces import parse
from murmurate.spaces.zone_trips import ZoneTrips

TRIPS = mm.demo.city(people=90, days=3, seed=5, interval_s=60).trips
GRID = parse("grid:44.961,-30.055,45.039,-29.945:1000")


def counting(deviation: float):
    """Return a mechanism that counts pairs of zones with rounded noise of this deviation."""

    def again(members, n, run):
        found = ZoneTrips.of(members, GRID)
        count = np.bincount(found.origin * GRID.n_cells + found.destination, minlength=GRID.n_cells**2).astype(float)
        count += np.random.default_rng(run).normal(0, deviation, len(count)) if deviation else 0.0
        cell = np.flatnonzero(np.rint(count) > 0)
        table = {"origin": cell // GRID.n_cells, "destination": cell % GRID.n_cells, "count": count[cell]}
        return flows_of(pl.DataFrame(table), GRID)

    return again


def aucs(deviation: float, **options):
    again = counting(deviation)
    return {one.name: one for one in membership(again(TRIPS, 0, 0), TRIPS, again=again, by_person=False, **options)}


def test_exact_counts_tell_members_and_noisy_ones_do_not():
    exact, noisy = aucs(0.0, repeated=1), aucs(20.0, repeated=1)
    assert exact.keys() == {"membership.auc"}
    assert exact["membership.auc"].value > 0.65
    assert abs(noisy["membership.auc"].value - 0.5) < 0.06


def test_the_mean_of_several_releases_tells_more():
    found = aucs(1.5, repeated=8)
    assert found["membership.auc_of_8_releases"].value > found["membership.auc"].value + 0.02


def test_few_people_are_not_measured():
    few = TRIPS.take_trips(np.arange(20))
    with pytest.raises(NotMeasurable, match="at least 40"):
        membership(counting(0.0)(few, 0, 0), few, again=counting(0.0), by_person=False)


def test_counts_that_show_nothing_are_not_taken_for_a_strong_promise():
    def nothing(members, n, run):
        return flows_of(pl.DataFrame({"origin": [0], "destination": [0], "count": [0.0]}), GRID)

    (silent,) = membership(nothing(TRIPS, 0, 0), TRIPS, again=nothing, by_person=False, repeated=1)
    assert silent.value == 0.5
    assert "Nothing was published where they travelled" in silent.note
    assert "Nothing was published" not in aucs(0.0, repeated=1)["membership.auc"].note
