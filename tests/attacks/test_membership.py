"""Membership: members of an open release are found, nobody of a private one, and absence tells a known seed's cells."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.attacks.membership import absence, auc, shadow_membership
from murmurate.errors import ParameterError
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.statistics import measured
from murmurate.noise import seeded
from plausible_days import GRID, made_days


def by_name(found):
    return {score.name: score.value for score in found}


@pytest.fixture(scope="module")
def population():
    return made_days(60, 2, seed=6)


def private_release(days, run):
    noisy = measured(days, GRID, epsilon=1.0, rng=seeded(1000 + run))
    model = DayModel.fit(noisy, GRID, steps=72, time_zone="UTC", rng=seeded(run))
    return model.places(10 * len(days.people), seeded(run))


def test_members_of_an_open_release_are_found(population):
    found = by_name(shadow_membership(lambda days, run: days.place, population))
    assert found["membership.shadow_auc"] > 0.9
    assert found["membership.nearest_auc"] > 0.9


def test_nobody_is_found_in_a_private_one(population):
    found = by_name(shadow_membership(private_release, population, shadows=8, targets=4))
    assert abs(found["membership.shadow_auc"] - 0.5) < 0.12
    assert abs(found["membership.cells_auc"] - 0.5) < 0.1


def test_auc_by_hand():
    assert auc(np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, False, True, True])) == 1.0
    assert auc(np.array([1.0, 1.0, 1.0, 1.0]), np.array([False, True, True, False])) == 0.5
    assert auc(np.array([3.0, 1.0, 2.0]), np.array([False, True, True])) == 0.0


def test_absence_names_the_cells_of_a_known_seed():
    rng = np.random.default_rng(0)
    true = np.stack([np.repeat(rng.permutation(40)[:4], 18) for _ in range(20)]).astype(np.int32)

    def precision(fakes_each):
        fakes = np.empty((20, fakes_each, 72), dtype=np.int32)
        for seed in range(20):
            left = np.setdiff1d(np.arange(40), true[seed])
            fakes[seed] = left[rng.integers(0, len(left), (fakes_each, 12))].repeat(6, axis=1)
        found = {score.name: score for score in absence(true, fakes)}
        return found["membership.absence_precision"]

    few, many = precision(5), precision(60)
    assert few.value < many.value
    assert many.value > 0.9
    assert many.chance == pytest.approx(0.1, abs=0.02)


def test_too_few_people_are_refused():
    with pytest.raises(ParameterError, match="at least 4 people"):
        shadow_membership(private_release, made_days(3, 1))
    with pytest.raises(ParameterError, match="targets"):
        shadow_membership(private_release, made_days(8, 1), shadows=4, targets=3)
