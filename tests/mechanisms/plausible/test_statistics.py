"""The statistics of `own`: one person weighs at most one, exactly; noise of the stated scale."""

from __future__ import annotations

import numpy as np
import pytest

from asked import exact_sums as asked_sums
from asked import privacy_used
from murmurate.asking import Budget, Table
from murmurate.attacks.audit import audit
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.library import BUILT_IN
from murmurate.mechanisms.plausible.patterns import MAIN, TRAITS, label_days
from murmurate.mechanisms.plausible.statistics import (
    LIBRARY_SHARES,
    SHARES,
    UNIT,
    contributions,
    exact_sums,
    laplace_scale,
    measured,
    regions_of,
    tables_of,
)
from murmurate.noise import secure, seeded
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid
from plausible_days import GRID, made_days, restless_person, trips_of, with_person

NOBODY = made_days(1, 1).take(np.zeros(1, dtype=bool))


def alone(place):
    return exact_sums(with_person(NOBODY, np.asarray(place, dtype=np.int32)), GRID)


@pytest.mark.parametrize("n_days", [1, 2, 7, 300])
@pytest.mark.parametrize("kind", ["restless", "still", "commuter", "two"])
def test_one_person_weighs_at_most_one_in_every_statistic(kind, n_days):
    place = {
        "restless": restless_person(n_days),
        "still": np.full((n_days, 72), 5),
        "commuter": made_days(1, n_days, seed=3).place,
        "two": np.tile(np.arange(72) % 2 * 99, (n_days, 1)),
    }[kind]
    for name, values in alone(place).items():
        assert values.min() >= 0, name
        assert values.sum() <= UNIT, name
    for name in ("slots", "slots_by_age", "traits", "kinds"):  # rounding down loses less than a unit a bin
        assert alone(place)[name].sum() >= UNIT - 64


def test_sums_over_people_are_sums():
    days = made_days(6, 3)
    parts = [exact_sums(days.take(days.person == k), GRID) for k in range(6)]
    for name, values in exact_sums(days, GRID).items():
        assert (values == sum(part[name] for part in parts)).all(), name


def test_what_a_person_adds_follows_from_their_own_days():
    days = with_person(made_days(6, 3), restless_person(4))
    together = contributions(days, GRID)
    for person in range(7):
        alone = contributions(days.take(days.person == person), GRID)
        for name, rows in together.items():
            mine = rows.unit == person
            assert (alone[name].unit == person).all(), name
            assert (rows.bin[mine] == alone[name].bin).all() and (rows.weight[mine] == alone[name].weight).all(), name


@pytest.mark.parametrize("library", ["", BUILT_IN])
@pytest.mark.parametrize("parts", [3, 8])
def test_sums_do_not_depend_on_the_number_of_parts(library, parts):
    private = trips_of(with_person(made_days(20, 2), restless_person(5)))
    mechanism = Plausible(space=GRID, library=library)
    whole, found = (asked_sums(mechanism, private, part_points=private.n_points // k) for k in (1, parts))
    assert list(whole) == list(LIBRARY_SHARES if library else SHARES)
    for name, (_, sums) in whole.items():
        assert (found[name][1] == sums).all(), name


@pytest.mark.parametrize("library", ["", BUILT_IN])
@pytest.mark.parametrize("kind", ["restless", "still", "commuter"])
def test_one_person_uses_no_more_than_epsilon(library, kind):
    mechanism = Plausible(space=GRID, library=library)
    place = {"restless": restless_person(30), "still": np.full((30, 72), 5), "commuter": made_days(1, 3, seed=3).place}[kind]
    without = made_days(5, 2)
    one, two = (asked_sums(mechanism, trips_of(days)) for days in (with_person(without, place), without))
    used = privacy_used(mechanism, one, two)
    assert used <= 1.0
    if kind == "restless":
        assert used > (0.99 if library else 0.9)  # nearly all of the budget, so a wrong bound would show


@pytest.mark.parametrize("shares", [SHARES, LIBRARY_SHARES])
def test_all_of_epsilon_is_spent_and_no_more(shares):
    assert sum(shares.values()) == 100
    assert set(exact_sums(NOBODY, GRID)) == set(SHARES) | set(LIBRARY_SHARES)
    noisy = measured(NOBODY, GRID, epsilon=0.7, rng=seeded(1), shares=shares)
    assert set(noisy) == set(shares)  # what is not paid for is not there
    assert sum(1 / laplace_scale(answer) for answer in noisy.values()) == pytest.approx(0.7)
    budget = Budget(epsilon=0.7)
    budget.check(tables_of(GRID, shares))
    with pytest.raises(Exception, match="shares add up"):
        budget.check((*tables_of(GRID, shares), Table(name="more", n_bins=1, share=0.01)))


def test_a_day_worked_by_hand():
    day = np.full(72, 11)
    day[30:50] = 14  # 3 km east
    day[50:52] = 15
    found = alone([day])
    assert found["slots"].reshape(3, 6)[1].sum() == sum(int(k) * UNIT // 72 for k in (6, 12, 2))
    assert found["moves"][0] == 3 * UNIT // 10
    assert found["places"][0] == 3 * UNIT // 10
    assert found["cells"][11] == UNIT // 2  # the main place
    assert found["cells"][GRID.n_cells + 14] == 20 * UNIT // 44
    heading = found["heading"].reshape(3, 4)
    assert heading[0, 1] == heading[1, 2] == heading[2, 0] == UNIT // 10
    region, n_regions = regions_of(GRID)
    assert found["regions"][region[11]] == UNIT // 2
    assert len(found["regions"]) == 2 * n_regions


def test_labels_are_by_time_spent():
    label, cells, n = label_days(np.array([[7, 7, 3, 3, 3, 9]], dtype=np.int32))
    assert label.tolist() == [[1, 1, 0, 0, 0, 2]]
    assert cells[0, : n[0]].tolist() == [3, 7, 9]
    assert MAIN == 0


def test_traits_are_one_bin_each():
    values = alone(restless_person(1))["traits"]
    assert (values > 0).sum() == len(TRAITS)


def test_the_noise_is_of_the_stated_scale():
    answer = measured(NOBODY, GRID, epsilon=2.0, rng=seeded(3))["cells"]
    scale = 100 / (2.0 * SHARES["cells"])
    assert laplace_scale(answer) == pytest.approx(scale)
    wide = Grid(60.0, 24.0, 61.0, 26.0, 1000)
    assert np.abs(measured(NOBODY, wide, epsilon=2.0, rng=seeded(3))["cells"].noisy).mean() == pytest.approx(scale, rel=0.03)


def test_secure_noise_is_used_without_a_seed():
    one, two = (measured(made_days(3, 1), GRID, epsilon=1.0, rng=secure())["cells"].noisy for _ in range(2))
    assert (one != two).any()


# -- audit: neighbouring inputs ---------------------------------------------------------------------------------------


def evidence(pair, epsilon):
    """Outputs for the audit: the log likelihood ratio of all noisy statistics together, the best test there is."""

    def outputs(neighbour, n, rng):
        budget, total = Budget(epsilon=epsilon), np.zeros(n)
        for table in tables_of(SMALL, SHARES):
            tiled = Table(name=table.name, n_bins=table.n_bins * n, share=table.share, steps=UNIT)
            answer = budget.draw(tiled, np.tile(pair[neighbour][table.name], n), rng)
            noisy = answer.noisy.reshape(n, -1)
            far = [np.abs(noisy - part[table.name] / UNIT).sum(axis=1) for part in pair]
            total += (far[0] - far[1]) / laplace_scale(answer)
        return total

    return outputs


SMALL = Grid(60.0, 24.0, 60.026, 24.05, 1000)
"""9 cells: an audit draws all statistics thousands of times."""


def each_day_a_person(days: DailyTraces):
    """The planted fault: days are not averaged, so somebody with many days weighs many times."""
    return exact_sums(DailyTraces(np.arange(days.n_days), days.day, days.place, days.coverage, days.n_places), SMALL)


def test_audit_stays_below_epsilon_and_catches_a_broken_twin():
    without = made_days(4, 1, n_places=9)
    present = with_person(without, np.full((8, 72), 4))
    sound = evidence([exact_sums(days, SMALL) for days in (without, present)], 3.0)
    assert 0.3 < audit(sound, n=8000, rng=seeded(1)).value <= 3.0
    broken = evidence([each_day_a_person(days) for days in (without, present)], 3.0)
    assert audit(broken, n=8000, rng=seeded(1)).value > 3.0
