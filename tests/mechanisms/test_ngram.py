from __future__ import annotations

import itertools

import numpy as np
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.ngram import NGram, tree
from murmurate.mechanisms.ngram.mechanism import ended
from murmurate.mechanisms.ngram.tree import grow_tree
from murmurate.mechanisms.ngram.walk import consistent_shares, walk_sequences
from murmurate.spaces.grid import Grid

END = 6


def sequences(n=3000, seed=1):
    """0 1 2 3 or 4 1 5: what follows 1 depends on what came before it."""
    generator = np.random.default_rng(seed)
    chosen = [[0, 1, 2, 3, END] if one < 0.6 else [4, 1, 5, END] for one in generator.random(n)]
    return np.concatenate(chosen), np.r_[0, np.cumsum([len(one) for one in chosen])]


def grown(epsilon, n=3000, **options):
    symbols, offsets = sequences(n)
    settings = {"n_symbols": 7, "n_max": 4, "reach": 5.0, "rng": noise.seeded(1), **options}
    return grow_tree(symbols, offsets, epsilon=epsilon, **settings)


def gram_of(found, node):
    gram = []
    while node > 0:
        gram.append(int(found.symbol[node]))
        node = int(found.parent[node])
    return tuple(reversed(gram))


def test_counts_are_those_of_the_grams():
    found = grown(1000.0)
    symbols, offsets = sequences()
    counted: dict[tuple[int, ...], int] = {}
    for low, high in itertools.pairwise(offsets):
        for start in range(low, high):
            for stop in range(start + 1, min(start + 4, high) + 1):
                gram = tuple(symbols[start:stop].tolist())
                counted[gram] = counted.get(gram, 0) + 1
    held = {gram_of(found, node): found.count[node] for node in range(1, found.n_nodes)}
    assert set(held) == set(counted)
    for gram, count in counted.items():
        assert held[gram] == pytest.approx(count, abs=3)


def test_suffixes_are_the_grams_without_their_first_symbol():
    found = grown(1000.0)
    for node in range(1, found.n_nodes):
        assert gram_of(found, int(found.suffix[node])) == gram_of(found, node)[1:]


@pytest.mark.parametrize("epsilon", [0.1, 1.0, 50.0])
def test_budgets_along_every_path_stay_within_epsilon(monkeypatch, epsilon):
    portions = {}
    children = tree._children

    def recorded(parents, symbols, frontier, portion, **options):
        portions.update(zip(frontier.tolist(), portion.tolist(), strict=True))
        return children(parents, symbols, frontier, portion, **options)

    monkeypatch.setattr(tree, "_children", recorded)
    found = grown(epsilon)
    spent = []
    for node in portions:
        total, at = 0.0, node
        while at >= 0:
            total += portions[at]
            at = int(found.parent[at])
        spent.append(total)
    assert max(spent) <= epsilon
    assert max(spent) > 0.2 * epsilon
    assert min(portions.values()) > 0


def test_noise_is_drawn_for_what_a_unit_changes(monkeypatch):
    """Scales are reach / portion, for present and for absent children alike."""
    scales = []
    monkeypatch.setattr(tree.draws, "laplace_integers", lambda values, *, scale, rng: scales.append(scale) or values)
    monkeypatch.setattr(
        tree, "laplace_survivors",
        lambda n, *, scale, threshold, rng: scales.append(scale) or (np.zeros(0, np.int64), np.zeros(0, np.int64)),
    )  # fmt: skip
    grown(2.0, n_max=1)
    assert scales == pytest.approx([5.0 / 2.0, 5.0 / 2.0])


def test_absent_children_appear_at_the_rate_of_the_threshold():
    empty, offsets = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    kept = [
        grow_tree(empty, offsets, n_symbols=5000, n_max=1, epsilon=1.0, reach=20.0, rng=noise.seeded(seed)).n_nodes - 1
        for seed in range(200)
    ]
    assert 0.7 < np.mean(kept) < 1.4


def test_absent_symbols_are_never_present_ones():
    present = np.array([0, 2, 3, 7, 11, 12])
    found = tree._absent_symbols(np.zeros(4, np.int64), np.arange(4), present[:4], 8)
    assert found.tolist() == [1, 4, 5, 6]
    assert tree._absent_symbols(np.array([1, 1]), np.array([0, 5]), present, 8).tolist() == [0, 7]


def test_walks_follow_the_longest_context():
    found = grown(1000.0)
    cells, offsets = walk_sequences(found, n=4000, n_symbols=7, longest=10, generator=np.random.default_rng(1))
    walks = [tuple(cells[low:high].tolist()) for low, high in itertools.pairwise(offsets)]
    whole = [walk for walk in walks if walk[0] in (0, 4)]
    assert np.mean([walk in ((0, 1, 2, 3), (4, 1, 5)) for walk in whole]) > 0.95
    assert min(len(walk) for walk in walks) >= 2
    assert max(len(walk) for walk in walks) <= 10


def test_shares_never_pass_one():
    found = grown(0.5)
    shares = np.bincount(found.parent[1:], weights=consistent_shares(found)[1:], minlength=found.n_nodes)
    assert shares.max() <= 1 + 1e-9


def test_a_tree_of_nothing_still_walks():
    empty, offsets = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    found = grow_tree(empty, offsets, n_symbols=9, n_max=3, epsilon=0.001, reach=20.0, rng=noise.seeded(4))
    cells, bounds = walk_sequences(found, n=50, n_symbols=9, longest=6, generator=np.random.default_rng(1))
    assert np.diff(bounds).min() >= 2
    assert cells.max() < 8


def test_trips_are_cut_and_ended():
    symbols, offsets = ended(np.arange(30), np.array([0, 25, 30]), end=99, l_max=20)
    assert offsets.tolist() == [0, 20, 26]
    assert symbols[19] == symbols[25] == 99


def test_release_and_model(tmp_path):
    asked = NGram(epsilon=20.0, space=GRID, n_out=200)
    released = asked.apply(city(), noise.seeded(1))
    assert released.n_trips == 200
    assert not released.has_time
    model = asked.fit(city(), noise.seeded(1))
    model.save(tmp_path)
    assert asked.load(tmp_path).sample(50, noise.seeded(2)).table.equals(model.sample(50, noise.seeded(2)).table)
    assert model.n == pytest.approx(400, abs=60)
    (tmp_path / "arrays.npz").write_bytes(b"x")
    with pytest.raises(InputError):
        asked.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "why"),
    [({"unit": "user"}, "max_trips"), ({"l_max": 2}, "l_max"), ({"n_max": 0}, "n_max"), ({"space": "here"}, "public grid")],
)
def test_absurd_parameters_are_refused(options, why):
    with pytest.raises(ParameterError, match=why):
        NGram(**{"epsilon": 1.0, "space": GRID, **options})


def test_units_cost_more_noise_and_must_be_bounded():
    asked = NGram(epsilon=1.0, space=Grid(60.10, 24.80, 60.16, 24.92, 600), unit="user", max_trips=3)
    assert asked.guarantee().unit.max_trips == 3
    with pytest.raises(InputError, match="more than the 3"):
        asked.fit(city(), noise.seeded(1))
