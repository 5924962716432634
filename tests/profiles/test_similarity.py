"""Similarities equal brute force on small cases; identical is 1; a relabelled copy is semantically the same."""

from __future__ import annotations

from itertools import permutations

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from murmurate.errors import InputError
from murmurate.profiles.mapping import STARTS, assign, gains, search
from murmurate.profiles.mobility import joined, profiles_of, profiles_of_rows
from murmurate.profiles.similarity import geographic, geographic_emd, semantic_visits, transport_cost
from plausible_days import made_days

PERIODS = 3
PLACES = 5


def tables(row):
    """Dense visits [period, place], and moves: weight [place, period, next period] and rows of probabilities."""
    steps = len(row)
    period = np.arange(steps) * PERIODS // steps
    visits = np.zeros((PERIODS, PLACES))
    np.add.at(visits, (period, row), 1)
    share = visits.sum(axis=1) / steps
    visits /= visits.sum(axis=1, keepdims=True)
    moves = np.zeros((PLACES, PERIODS, PERIODS, PLACES))
    np.add.at(moves, (row[:-1], period[:-1], period[1:], row[1:]), 1)
    weight = moves.sum(axis=3)
    rows = np.divide(moves, weight[..., None], out=np.zeros_like(moves), where=weight[..., None] > 0)
    return visits, share, weight / weight.sum(), rows


def days(n, seed=0, steps=24):
    rng = np.random.default_rng(seed)
    return np.repeat(rng.integers(0, PLACES, (n, steps // 3)), 3, axis=1).astype(np.int32)


def profiles(place):
    return profiles_of_rows(place, np.arange(len(place) + 1), PLACES, periods=PERIODS)


def visits_of(made, person):
    return made.visit[made.place_at[person] : made.place_at[person + 1]], made.period_share[person]


def by_visits(made, u, v):
    """The best single mapping by visits: its similarity, and for each place of u the place of v."""
    gain = gains(*visits_of(made, u), visits_of(made, v)[0])
    to = assign(gain)
    matched = to >= 0
    value = gain[np.flatnonzero(matched), to[matched]].sum()
    return value, np.where(matched, made.place[made.place_at[v] + np.maximum(to, 0)], -1)


def by_moves(made, u, v):
    gain = gains(*visits_of(made, u), visits_of(made, v)[0])
    return search(made, u, v, gain, STARTS, np.random.default_rng(0))[0]


@pytest.fixture(scope="module")
def some():
    place = days(7)
    return place, profiles(place)


def test_geographic_is_eq_7(some):
    place, made = some
    found = geographic(made, made)
    for u in range(7):
        for v in range(7):
            _, _, weight, rows = tables(place[u])
            assert found[u, v] == pytest.approx((weight * np.minimum(rows, tables(place[v])[3]).sum(axis=3)).sum())


def test_semantic_by_sorting_is_the_best_mapping_of_each_period(some):
    place, made = some
    found = semantic_visits(made, made)
    for u in range(7):
        for v in range(7):
            one, share, _, _ = tables(place[u])
            two = tables(place[v])[0]
            best = sum(
                share[t] * max(np.minimum(one[t], two[t][list(order)]).sum() for order in permutations(range(PLACES)))
                for t in range(PERIODS)
            )
            assert found[u, v] == pytest.approx(best)


def test_one_mapping_for_all_periods_is_the_best_there_is(some):
    place, made = some
    for u in range(7):
        for v in range(7):
            one, share, _, _ = tables(place[u])
            two = tables(place[v])[0]
            best = max((share[:, None] * np.minimum(one, two[:, list(order)])).sum() for order in permutations(range(PLACES)))
            value, to = by_visits(made, u, v)
            assert value == pytest.approx(best)
            assert value <= semantic_visits(made, made)[u, v] + 1e-12
            used = to[to >= 0]
            assert len(set(used.tolist())) == len(used)


def brute_moves(u, v):
    _, _, weight, rows = tables(u)
    others = tables(v)[3]
    return max(
        (weight * np.minimum(rows, others[list(order)][..., list(order)]).sum(axis=3)).sum()
        for order in permutations(range(PLACES))
    )


def test_local_search_finds_the_best_mapping_of_moves(some):
    place, made = some
    reached = []
    for u in range(5):
        for v in range(5):
            best = brute_moves(place[u], place[v])
            value = by_moves(made, u, v)
            assert value <= best + 1e-12
            reached.append(value / best)
    assert np.mean(reached) > 0.99
    assert by_moves(made, 2, 2) == pytest.approx(1.0)


def test_identical_profiles_and_relabelled_copies():
    place = made_days(6, 1).place % 50
    relabelled = (place + 50).astype(np.int32)
    made = profiles_of_rows(np.concatenate([place, relabelled]), np.arange(13), 100)
    alike, semantic = geographic(made, made), semantic_visits(made, made)
    for u in range(6):
        assert alike[u, u] == pytest.approx(1)
        assert semantic[u, u] == pytest.approx(1)
        assert semantic[u, u + 6] == pytest.approx(1)
        assert alike[u, u + 6] == 0
        assert by_visits(made, u, u + 6)[0] == pytest.approx(1)
        assert by_moves(made, u, u + 6) == pytest.approx(1)
        _value, to = by_visits(made, u, u + 6)
        own = made.place[made.place_at[u] : made.place_at[u + 1]]
        assert (to == own + 50).all()


@pytest.mark.parametrize("shape", [(1, 1), (3, 7), (7, 3), (12, 12)])
def test_assignment_agrees_with_scipy(shape):
    rng = np.random.default_rng(5)
    for _ in range(20):
        gain = rng.random(shape) * (rng.random(shape) < 0.6)
        to = assign(gain)
        rows, columns = linear_sum_assignment(gain, maximize=True)
        matched = to >= 0
        assert matched.sum() == min(shape)
        assert gain[np.flatnonzero(matched), to[matched]].sum() == pytest.approx(gain[rows, columns].sum(), abs=1e-12)


def test_profiles_over_several_days_and_joined():
    days_ = made_days(5, 3)
    whole = profiles_of(days_)
    parts = [profiles_of(days_.take(days_.person < 3)), profiles_of(days_.take(days_.person >= 3))]
    both = joined(*parts)
    for name in ("place_at", "place", "visit", "period_share", "sorted_at", "sorted_visit", "row_at", "row_key", "entry"):
        assert np.array_equal(getattr(whole, name), getattr(both, name)), name
    assert whole.n_people == 5
    for u in range(5):
        rows = slice(whole.row_at[u], whole.row_at[u + 1])
        assert whole.row_weight[rows].sum() == pytest.approx(1)


def test_nobody_has_no_profile():
    with pytest.raises(InputError, match="at least one person"):
        profiles_of(made_days(2, 1).take(np.zeros(2, dtype=bool)))
    with pytest.raises(InputError, match="same places"):
        joined(profiles(days(2)), profiles_of(made_days(2, 1)))


def test_earth_mover_similarity_with_unit_distances_is_the_closed_form():
    made = profiles(days(6, seed=4))
    pairs = np.array([(u, v) for u in range(6) for v in range(6)])
    assert geographic_emd(made, made, pairs, 1.0 - np.eye(PLACES)) == pytest.approx(geographic(made, made).ravel(), abs=1e-9)


def test_earth_mover_similarity_by_hand():
    """One period. From place 0, u goes to 1 and 2 alike (1 km apart), v always to 1; elsewhere u has steps v has not."""
    place = np.array([[0, 1, 0, 2, 0], [0, 1, 0, 1, 0]], dtype=np.int32)
    made = profiles_of_rows(place, np.arange(3), 3, periods=1)
    metres = np.array([[0.0, 2000.0, 2000.0], [2000.0, 0.0, 1000.0], [2000.0, 1000.0, 0.0]])
    # half of u's steps leave 0: mean 500 m; a quarter leaves 1, as v does; a quarter leaves 2, where v never is: 2,000 m
    found = geographic_emd(made, made, np.array([[0, 1], [0, 0]]), metres)
    assert found == pytest.approx([1 - (0.5 * 500 + 0.25 * 0 + 0.25 * 2000) / 2000, 1.0])


def test_transport_is_the_cheapest_plan():
    """Two onto two by hand: crossing costs 1 + 1, staying 3 + 3."""
    half = np.array([0.5, 0.5])
    assert transport_cost(half, half, np.array([[3.0, 1.0], [1.0, 3.0]])) == pytest.approx(1.0)
    with pytest.raises(InputError, match="lie apart"):
        geographic_emd(profiles(days(2)), profiles(days(2)), np.array([[0, 1]]), np.zeros((PLACES, PLACES)))
