"""Summaries of fixed size: the same whatever the parts, and as far from the exact scores as they say."""

from __future__ import annotations

import pickle
import re
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import wasserstein_distance

from diagonal_city import city
from murmurate.metrics import flows as flows_module
from murmurate.metrics import measure, summed
from murmurate.metrics.adatrace import bucket_divergence
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import Comparison
from murmurate.metrics.mergeable import BIN_SHARE, Distribution, Drawn, Histogram, LabelCounts, Matched
from murmurate.metrics.summed import Plan, SummedSide, Sums


def cut(values, n, seed=0):
    """Cut values into n parts, in another order."""
    order = np.random.default_rng(seed).permutation(len(values))
    return [values[chosen] for chosen in np.array_split(order, n)]


def content(value):
    """Everything that a summary holds, to be compared bit by bit."""
    if isinstance(value, dict):
        return {name: content(part) for name, part in value.items()}
    if isinstance(value, np.ndarray):
        return value.dtype.str, value.tolist()
    return {name: content(part) for name, part in vars(value).items()} if hasattr(value, "__dict__") else value


def metres(n, seed):
    return np.random.default_rng(seed).lognormal(8, 1, n)


@pytest.mark.parametrize("n_parts", range(1, 9))
def test_bins_add_up_to_the_same_whatever_the_parts(n_parts):
    values = np.append(metres(3000, 1), [0.0, np.nan])
    whole = Histogram.of(values)
    parts = [Histogram.of(part) for part in cut(values, n_parts)]
    assert content(Histogram.add(parts)) == content(whole)
    assert content(Histogram.add([Histogram.add(parts[1:] or parts), *parts[: n_parts > 1]])) == content(whole)


def test_scores_of_bins_are_as_far_off_as_they_say():
    exact = [Distribution(metres(20_000, seed) * scale) for seed, scale in ((1, 1.0), (2, 1.02))]
    binned = [Histogram.of(side.values).distribution() for side in exact]
    for one, other in zip(exact, binned, strict=True):
        mine, theirs = (side.mean_score("mean", unit="m", family="trips") for side in (one, other))
        assert theirs.value == pytest.approx(mine.value, rel=1e-9)
        assert (theirs.low, theirs.high) == pytest.approx((mine.low, mine.high), rel=0.003)
        assert (one.n, one.range) == (other.n, other.range)
        moved = wasserstein_distance(one.values, other.values, None, other.counts)
        assert 0 < moved <= other.shift_bound() < 2e-4 * mine.value
    own, found = (wasserstein_distance(*(s.values for s in sides), *(s.counts for s in sides)) for sides in (exact, binned))
    assert abs(found - own) <= sum(side.shift_bound() for side in binned)
    assert bucket_divergence(*binned) == pytest.approx(bucket_divergence(*exact), rel=0.01)


def test_bins_do_not_grow_with_values():
    octaves = 14
    for n in (10_000, 1_000_000):
        values = np.random.default_rng(n).uniform(1, 2**octaves, n)
        assert len(Histogram.of(values).bins) <= octaves / BIN_SHARE


@pytest.mark.parametrize("n_parts", range(1, 9))
def test_labels_add_up_to_the_same_whatever_the_parts(n_parts):
    labels, always = np.random.default_rng(3).zipf(1.3, 5000) % 4001, np.arange(1, 11)
    whole = LabelCounts.of(labels, 200, always)
    parts = [LabelCounts.of(part, 200, always) for part in cut(labels, n_parts)]
    assert content(LabelCounts.add(parts)) == content(whole)
    assert content(LabelCounts.add([LabelCounts.add(parts[1:] or parts), *parts[: n_parts > 1]])) == content(whole)
    assert len(whole.labels) == 210 and whole.total == 5000
    true = np.bincount(labels, minlength=4001)
    assert (whole.counts == true[whole.labels]).all()


def test_sums_over_drawn_labels_have_the_error_they_state():
    rng = np.random.default_rng(5)
    sides = [rng.zipf(1.2, 20_000) % 5003 for _ in range(2)]
    exact = Matched.of(*map(LabelCounts.of, sides))
    truth = np.abs(np.subtract(*exact.shares))
    misses = []
    for shift in range(40):  # other names, other hashes
        both = Matched.of(*(LabelCounts.of(side + shift * 10_000, 500, np.arange(20) + shift * 10_000) for side in sides))
        terms = np.abs(np.subtract(*both.shares))
        stated = float(re.search(r"standard error (.*)", both.note(terms))[1])
        misses.append((both.sum_of(terms) - truth.sum()) / stated)
        assert both.n_labels == pytest.approx(exact.n_labels, rel=0.2)
    assert 0.6 < np.std(misses) < 1.6 and abs(np.mean(misses)) < 0.6
    assert exact.note(truth) == exact.ranked() == ""


def test_drawn_rows_do_not_depend_on_parts_and_stay_few():
    rng = np.random.default_rng(4)
    group, hashed, rows = rng.integers(0, 3, 900), rng.integers(0, 2**63, 900).astype(np.uint64), rng.normal(size=(900, 4))
    whole = Drawn.of(group, hashed, rows, 50)
    parts = [Drawn.of(group[at], hashed[at], rows[at], 50) for at in cut(np.arange(900), 6)]
    assert content(Drawn.add(parts)) == content(Drawn.add(parts[::-1])) == content(whole)
    assert np.bincount(whole.group).tolist() == [50, 50, 50]
    lowest = np.sort(hashed)[:50]
    assert whole.of_group().tolist() == [rows[hashed == one][0].tolist() for one in lowest]


@pytest.fixture(scope="module")
def sides():
    return city(400, users=40), city(500, users=50, seed=7)


def test_all_sums_are_the_same_whatever_the_parts(sides, monkeypatch):
    monkeypatch.setattr(summed, "MAX_FLOWS", 30)
    plan = replace(Plan.of(compare(*sides)), frequent=np.arange(3))
    whole = content(Sums.of(sides[0], plan))
    people = sides[0].user_offsets
    for n_parts in range(2, 9):
        edges = people[np.linspace(0, len(people) - 1, n_parts + 1).astype(int)]
        parts = [Sums.of(sides[0].take_trips(np.arange(*pair)), plan) for pair in pairwise(edges)]
        assert len(parts) == n_parts
        assert content(Sums.add(parts[::-1])) == content(Sums.add([parts[0], Sums.add(parts[1:])])) == whole


def test_sums_do_not_grow_with_trips(sides, monkeypatch):
    """Trips of the same city under other names: ten times as many take as much."""
    monkeypatch.setattr(summed, "MAX_FLOWS", 30)
    monkeypatch.setattr(summed, "DRAWN_TRIPS", 5)
    plan = Plan.of(compare(*sides))
    one = Sums.of(sides[0], plan)
    again = [Sums.of(sides[0].with_columns({"uid": sides[0].table["uid"].cast(str) + f"-{k}"}), plan) for k in range(10)]
    assert len(pickle.dumps(Sums.add(again))) <= 1.02 * len(pickle.dumps(one))


def test_equal_sides_under_other_names_cost_nothing(sides, monkeypatch):
    monkeypatch.setattr(summed, "DRAWN_TRIPS", 5)
    monkeypatch.setattr(flows_module, "SAMPLED", 2)
    trips = sides[0]
    plan = Plan.of(compare(*sides))
    names = trips.with_columns({"uid": trips.table["uid"].cast(str) + "-other"})
    both = Comparison(*(SummedSide(side, plan.grid, Sums.of(side, plan)) for side in (trips, names)))
    assert both.original.ends_of().tolist() != both.released.ends_of().tolist()
    for name in ("od_emd", "od_emd_whole", "dpmobility_visits", "od_matrix", "length"):
        scores = {score.name: score.value for score in measure(name, both)}
        assert scores[name if name in scores else f"{name}.emd" if f"{name}.emd" in scores else f"{name}.jsd"] == 0


@pytest.mark.parametrize("name", ["od_matrix", "dpmobility_od"])
def test_scores_of_drawn_pairs_are_within_their_errors(sides, name, monkeypatch):
    exact = {score.name: score for score in measure(name, compare(*sides[::-1]))}
    plan = replace(Plan.of(compare(*sides[::-1])), frequent=np.zeros(0, dtype=np.int64))
    monkeypatch.setattr(summed, "MAX_FLOWS", 40)
    found = measure(name, Comparison(*(SummedSide(side, plan.grid, Sums.of(side, plan)) for side in sides)))
    stated = {score.name: re.search(r"standard error (.*)", score.note) for score in found}
    assert sum(map(bool, stated.values())) >= 2
    for score in found:
        if stated[score.name]:
            error = float(stated[score.name][1])
            assert 0 < abs(score.value - exact[score.name].value) < 4 * error
