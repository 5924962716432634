from __future__ import annotations

import itertools

import numpy as np
import pytest

from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking import Budget, Facts, budget
from murmurate.asking.clipping import clipped_sums
from murmurate.asking.rounds import Asking, fitted
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.ngram import NGram
from murmurate.mechanisms.ngram.counting import CountLevel, Sequences, ended
from murmurate.mechanisms.ngram.tree import Growth
from murmurate.mechanisms.ngram.walk import consistent_shares, walk_sequences
from murmurate.spaces.grid import Grid

FACTS = Facts(carries=frozenset({"time", "coordinates"}))
END = 6


def sequences(n=3000, seed=1):
    """0 1 2 3 or 4 1 5: what follows 1 depends on what came before it."""
    generator = np.random.default_rng(seed)
    chosen = [[0, 1, 2, 3, END] if one < 0.6 else [4, 1, 5, END] for one in generator.random(n)]
    return np.concatenate(chosen), np.r_[0, np.cumsum([len(one) for one in chosen])]


def grown_from(symbols, offsets, *, rng=None, levels=None, **growth):
    """A tree of these sequences, each its own unit; the tables of its levels are added to `levels`."""
    rng, growth, spending = rng or noise.seeded(1), Growth(**growth), Budget(epsilon=growth["epsilon"])
    found = Sequences(symbols, offsets, np.arange(len(offsets) - 1))
    answers = {}
    while (tree := growth.grow(answers)).next_table is not None:
        table = tree.next_table
        sums = clipped_sums(table, CountLevel.of(tree, len(answers))(found)[table.name], "l1")
        answers[table.name] = spending.draw(table, sums, rng)
        if levels is not None:
            levels.append(table)
    return tree.finished()


def grown(epsilon, n=3000, **options):
    return grown_from(*sequences(n), **{"n_symbols": 7, "n_max": 4, "limit": 5.0, "epsilon": epsilon, **options})


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
def test_shares_along_every_path_stay_within_the_budget(epsilon):
    levels = []
    grown(epsilon, levels=levels)
    assert min(table.row_share.min() for table in levels) > 0
    spent = levels[0].row_share
    most = [spent.max()]
    for above, table in itertools.pairwise(levels):
        spent = table.row_share + spent[table.parent // above.n_columns]
        most.append(spent.max())
    assert max(most) <= 1 + 1e-12
    assert max(most) > 0.2


def test_noise_is_drawn_for_what_a_unit_changes(monkeypatch):
    """Scales are limit / (epsilon * share), for present and for absent children alike."""
    scales = []
    monkeypatch.setattr(budget, "laplace_integers", lambda values, *, scale, rng: scales.append(scale) or values)
    monkeypatch.setattr(
        budget, "laplace_survivors",
        lambda n, *, scale, threshold, rng: scales.append(scale) or (np.zeros(0, np.int64), np.zeros(0, np.int64)),
    )  # fmt: skip
    grown(2.0, n_max=1)
    assert scales == pytest.approx([5.0 / 2.0, 5.0 / 2.0])


def test_absent_children_appear_at_the_rate_of_the_threshold():
    empty, offsets = np.zeros(0, dtype=np.int64), np.zeros(1, dtype=np.int64)
    options = {"n_symbols": 5000, "n_max": 1, "epsilon": 1.0, "limit": 20.0}
    kept = [grown_from(empty, offsets, rng=noise.seeded(seed), **options).n_nodes - 1 for seed in range(200)]
    assert 0.7 < np.mean(kept) < 1.4


def test_absent_children_are_never_present_ones():
    from murmurate.asking import TreeTable

    present = np.array([0, 2, 3, 7, 11, 12])
    table = TreeTable(
        name="t", n_bins=16, share=0.5, n_columns=8, row_share=np.full(2, 0.5), threshold=np.ones(2, dtype=np.int64), steps=1
    )
    seen = [Budget._absent(table, np.arange(2), present, (1.0, 1), noise.seeded(seed))[0].tolist() for seed in range(40)]
    assert set(itertools.chain(*seen)) == set(range(16)) - set(present.tolist())
    assert all(len(set(one)) == len(one) for one in seen)


# -- what units contribute ---------------------------------------------------------------------------------------------


def rounds_of(asked, answers):
    """Every round of a run, asked again from its answers."""
    names = list(answers)
    for level in range(len(names)):
        yield asked.ask({name: answers[name] for name in names[:level]}, FACTS)


def ran(asked, private):
    """Answers of a run."""
    asking = Asking(asked, private, noise.seeded(3))
    asking.run()
    return asking.answers


@pytest.mark.parametrize("options", [{}, {"unit": "user", "max_trips": 4}])
def test_sums_do_not_depend_on_parts(options):
    asked, private = NGram(epsilon=40.0, space=GRID, **options), city(300)
    answers = ran(asked, private)
    assert len(answers) >= 2
    for asked_round in rounds_of(asked, answers):
        (table,) = asked_round.tables
        found = []
        for n_parts in (1, 3, 8):
            points = -(-private.n_points // n_parts)
            assert len(list(private.partitions(points))) >= n_parts
            sums = Asking(asked, private, noise.seeded(1), key=b"k" * 16, part_points=points).exact(asked_round, "l1")
            found.append([one.tolist() for one in sums[table.name]])
        assert found[0] == found[1] == found[2]
        assert len(found[0][0]) > 0


@pytest.mark.parametrize("options", [{}, {"unit": "user", "max_trips": 4}, {"unit": "user_day", "max_trips": 2}])
def test_one_unit_changes_all_levels_together_by_no_more_than_the_budget(options):
    asked, private = NGram(epsilon=40.0, space=GRID, **options), city(300)
    answers = ran(asked, private)
    gone = {"trip": private.trip_ids[5], "user": private.user_ids[3], "user_day": private.user_ids[3]}[asked.unit]
    first_of = private.table.gather(private.offsets[:-1])
    keep = first_of["tid" if asked.unit == "trip" else "uid"].to_numpy() != gone
    if asked.unit == "user_day":
        keep |= private.first_local_day != private.first_local_day[~keep].min()
    without = private.take_trips(keep)
    changed = 0.0
    for asked_round in rounds_of(asked, answers):
        (table,) = asked_round.tables
        one, other = (
            dict(zip(*Asking(asked, side, noise.seeded(1), key=b"k" * 16).exact(asked_round, "l1")[table.name], strict=True))
            for side in (private, without)
        )
        for place in one.keys() | other.keys():
            share = table.row_share[place // table.n_columns]
            changed += abs(one.get(place, 0) - other.get(place, 0)) * share / table.limit
    assert 0 < changed <= 1


# -- walks and models --------------------------------------------------------------------------------------------------


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
    found = grown_from(empty, offsets, n_symbols=9, n_max=3, epsilon=0.001, limit=20.0, rng=noise.seeded(4))
    cells, bounds = walk_sequences(found, n=50, n_symbols=9, longest=6, generator=np.random.default_rng(1))
    assert np.diff(bounds).min() >= 2
    assert cells.max() < 8


def test_trips_are_cut_and_ended():
    symbols, offsets = ended(np.arange(30), np.array([0, 25, 30]), end=99, l_max=20)
    assert offsets.tolist() == [0, 20, 26]
    assert symbols[19] == symbols[25] == 99


def test_release_and_model(tmp_path):
    asked = NGram(epsilon=20.0, space=GRID, n_out=200)
    model = fitted(asked, city(), noise.seeded(1))
    released = model.sample(200, noise.seeded(1))
    assert released.n_trips == 200
    assert not released.has_time
    model.save(tmp_path)
    assert asked.load(tmp_path).sample(50, noise.seeded(2)).table.equals(model.sample(50, noise.seeded(2)).table)
    assert model.n == pytest.approx(400, abs=60)
    (tmp_path / "arrays.npz").write_bytes(b"x")
    with pytest.raises(InputError):
        asked.load(tmp_path)


@pytest.mark.parametrize(
    ("options", "why"),
    [
        ({"unit": "user"}, "max_trips"),
        ({"l_max": 2}, "l_max"),
        ({"n_max": 0}, "n_max"),
        ({"space": "here"}, "a space is written"),
    ],
)
def test_absurd_parameters_are_refused(options, why):
    with pytest.raises(ParameterError, match=why):
        NGram(**{"epsilon": 1.0, "space": GRID, **options})


def test_units_cost_more_noise():
    asked = NGram(epsilon=1.0, space=Grid(60.10, 24.80, 60.16, 24.92, 600), unit="user", max_trips=3)
    assert asked.guarantee().unit.max_trips == 3
    (table,) = asked.ask({}, FACTS).tables
    assert table.limit == 3 * asked.l_max
