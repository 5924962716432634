"""The statistics of `own`: one person weighs at most one, exactly; noise of the stated scale."""

from __future__ import annotations

import numpy as np
import pytest

from brackets import assert_bracketed, discrete_laplace_law
from murmurate.attacks.audit import audit
from murmurate.mechanisms.plausible.patterns import MAIN, TRAITS, label_days
from murmurate.mechanisms.plausible.statistics import LIBRARY_SHARES, SHARES, UNIT, Statistics, gather, noise_scale, regions_of
from murmurate.noise import secure, seeded
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid
from plausible_days import GRID, made_days, restless_person, with_person

NOBODY = made_days(1, 1).take(np.zeros(1, dtype=bool))


def alone(place):
    return gather(with_person(NOBODY, np.asarray(place, dtype=np.int32)), GRID)


@pytest.mark.parametrize("n_days", [1, 2, 7, 300])
@pytest.mark.parametrize("kind", ["restless", "still", "commuter", "two"])
def test_one_person_weighs_at_most_one_in_every_statistic(kind, n_days):
    place = {
        "restless": restless_person(n_days),
        "still": np.full((n_days, 72), 5),
        "commuter": made_days(1, n_days, seed=3).place,
        "two": np.tile(np.arange(72) % 2 * 99, (n_days, 1)),
    }[kind]
    for name, values in alone(place).values.items():
        assert values.min() >= 0, name
        assert values.sum() <= UNIT, name
    for name in ("slots", "slots_by_age", "traits", "kinds"):  # rounding down loses less than a unit a bin
        assert alone(place).values[name].sum() >= UNIT - 64


def test_sums_over_people_are_sums():
    days = made_days(6, 3)
    parts = [gather(days.take(days.person == k), GRID) for k in range(6)]
    for name, values in gather(days, GRID).values.items():
        assert (values == sum(part.values[name] for part in parts)).all(), name


@pytest.mark.parametrize("shares", [SHARES, LIBRARY_SHARES])
def test_all_of_epsilon_is_spent_and_no_more(shares):
    assert sum(shares.values()) == 100
    exact = gather(NOBODY, GRID)
    assert set(exact.values) == set(SHARES) | set(LIBRARY_SHARES)
    noisy = exact.measured(0.7, seeded(1), shares)
    assert set(noisy.values) == set(noisy.scales) == set(shares)  # what is not paid for is not there
    assert sum(1 / scale for scale in noisy.scales.values()) == pytest.approx(0.7)


def test_a_day_worked_by_hand():
    day = np.full(72, 11)
    day[30:50] = 14  # 3 km east
    day[50:52] = 15
    found = alone([day])
    assert found.values["slots"].reshape(3, 6)[1].sum() == sum(int(k) * UNIT // 72 for k in (6, 12, 2))
    assert found.values["moves"][0] == 3 * UNIT // 10
    assert found.values["places"][0] == 3 * UNIT // 10
    assert found.values["cells"][11] == UNIT // 2  # the main place
    assert found.values["cells"][GRID.n_cells + 14] == 20 * UNIT // 44
    heading = found.values["heading"].reshape(3, 4)
    assert heading[0, 1] == heading[1, 2] == heading[2, 0] == UNIT // 10
    region, n_regions = regions_of(GRID)
    assert found.values["regions"][region[11]] == UNIT // 2
    assert len(found.values["regions"]) == 2 * n_regions


def test_labels_are_by_time_spent():
    label, cells, n = label_days(np.array([[7, 7, 3, 3, 3, 9]], dtype=np.int32))
    assert label.tolist() == [[1, 1, 0, 0, 0, 2]]
    assert cells[0, : n[0]].tolist() == [3, 7, 9]
    assert MAIN == 0


def test_traits_are_one_bin_each():
    values = alone(restless_person(1)).values["traits"]
    assert (values > 0).sum() == len(TRAITS)


def test_the_noise_is_of_the_stated_scale():
    zero = np.zeros(200_000, dtype=np.int64)

    def sizes(scale):
        # the epsilon whose noise on "moves" has this scale, in units
        epsilon = 100 * UNIT / (SHARES["moves"] * scale)
        blank = {name: np.zeros(0, dtype=np.int64) for name in SHARES} | {"moves": zero}
        return np.abs(Statistics(blank).measured(epsilon, seeded(3)).values["moves"])

    assert_bracketed(sizes, discrete_laplace_law(), 40.0)


def test_secure_noise_is_used_without_a_seed():
    exact = gather(made_days(3, 1), GRID)
    one, two = (exact.measured(1.0, secure()).values["cells"] for _ in range(2))
    assert (one != two).any()


# -- audit: neighbouring inputs ---------------------------------------------------------------------------------------


def evidence(pair, epsilon):
    """Outputs for the audit: the log likelihood ratio of all noisy statistics together, the best test there is."""

    def outputs(neighbour, n, rng):
        tiled = Statistics({name: np.tile(pair[neighbour].values[name], n) for name in SHARES})
        noisy = tiled.measured(epsilon, rng)
        total = np.zeros(n)
        for name in SHARES:
            far = [np.abs(noisy.values[name].reshape(n, -1) - part.values[name]).sum(axis=1) for part in pair]
            total += (far[0] - far[1]) / (noise_scale(name, epsilon) * UNIT)
        return total

    return outputs


SMALL = Grid(60.0, 24.0, 60.026, 24.05, 1000)
"""9 cells: an audit draws all statistics thousands of times."""


def each_day_a_person(days: DailyTraces):
    """The planted fault: days are not averaged, so somebody with many days weighs many times."""
    return gather(DailyTraces(np.arange(days.n_days), days.day, days.place, days.coverage, days.n_places), SMALL)


def test_audit_stays_below_epsilon_and_catches_a_broken_twin():
    without = made_days(4, 1, n_places=9)
    present = with_person(without, np.full((8, 72), 4))
    sound = evidence([gather(days, SMALL) for days in (without, present)], 3.0)
    assert 0.3 < audit(sound, n=8000, rng=seeded(1)).value <= 3.0
    broken = evidence([each_day_a_person(days) for days in (without, present)], 3.0)
    assert audit(broken, n=8000, rng=seeded(1)).value > 3.0
