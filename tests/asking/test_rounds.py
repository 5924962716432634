from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from murmurate import engine, noise
from murmurate.asking import Budget, Contributions, Facts, Round, Table
from murmurate.asking.kept_answers import load_answers, save_answers
from murmurate.asking.rounds import Asking, Held, fitted
from murmurate.asking.table import once
from murmurate.errors import ContractBroken, GuaranteeRefused
from toy_rounds import CELLS, Toy, count_cells, first_cells, tree, trips_of


def exact(private, toy, parts, workers=1, key=b"k" * 16):
    with engine.engine(workers) as running:
        asking = Asking(toy, private, noise.seeded(1), engine=running, key=key, part_points=parts)
        asked = toy.ask({}, Facts(carries=frozenset()))
        return asking.exact(asked, "l1")


@pytest.mark.parametrize("parts", [1, 7, 1000])
@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(("unit", "most"), [("trip", None), ("user", 2)])
def test_tables_do_not_depend_on_parts_or_workers(parts, workers, unit, most):
    toy = Toy(unit=unit, max_trips=most)
    whole = exact(trips_of(), toy, 10**6)
    found = exact(trips_of(), toy, parts, workers)
    assert all((one == other).all() for one, other in zip(whole["cells"], found["cells"], strict=True))


def test_answers_are_near_the_truth_and_rounds_end():
    found = fitted(Toy(epsilon=50.0), trips_of(600), noise.seeded(1))
    assert found["cells"] == pytest.approx([120] * CELLS, abs=2)
    assert found["people"] == pytest.approx([600], abs=2)


def test_a_table_asked_twice_is_refused_before_it_is_counted():
    with pytest.raises(ContractBroken, match="asked once"):
        fitted(Toy(again=True), trips_of(), noise.seeded(1))


def test_an_overspent_share_is_refused():
    with pytest.raises(ContractBroken, match="shares add up"):
        fitted(Toy(shares=(0.7, 0.4)), trips_of(), noise.seeded(1))


def test_a_round_must_answer_its_tables():
    class Silent(Toy):
        def ask(self, answers, facts):
            tables = (Table(name="other", n_bins=CELLS, share=0.5),)
            return Round(tables=tables, prepare=first_cells, contribute=count_cells)

    with pytest.raises(ContractBroken, match="answers its tables"):
        fitted(Silent(), trips_of(), noise.seeded(1))


def test_answers_kept_are_not_drawn_again(tmp_path):
    toy, private = Toy(), trips_of()
    kept: list[dict[str, Any]] = []
    first = Asking(toy, private, noise.seeded(1), on_answers=lambda answers: kept.append(dict(answers)))
    whole = first.run()
    assert [len(one) for one in kept] == [1, 2]
    save_answers(tmp_path, first.key, kept[0])
    key, answers = load_answers(tmp_path)
    assert key == first.key
    again = Asking(toy, private, noise.seeded(99), key=key, answers=answers).run()
    assert (again["cells"] == whole["cells"]).all()
    assert (again["people"] != whole["people"]).any()


def test_a_person_in_two_parts_is_refused():
    class TwoParts:
        time_zone = "UTC"

        def carries(self):
            return trips_of().carries()

        def __iter__(self):
            yield trips_of()
            yield trips_of()

    with pytest.raises(GuaranteeRefused, match="two parts"):
        fitted(Toy(), TwoParts(), noise.seeded(1))


def test_what_prepare_made_lies_in_the_private_folder_and_is_gone_afterwards(tmp_path, monkeypatch):
    monkeypatch.setattr("murmurate.asking.rounds.HELD_POINTS", 0)
    seen = []

    class Watching(Asking):
        def exact(self, asked, norm, kept=None):
            found = super().exact(asked, norm, kept)
            seen.extend(path for path in (tmp_path / "work").rglob("cells-*"))
            return found

    Watching(Toy(), trips_of(), noise.seeded(1), work_in=tmp_path / "work").run()
    assert seen and oct(seen[0].parent.stat().st_mode if seen[0].parent.exists() else 0o700)[-3:] == "700"
    assert not (tmp_path / "work").exists()


# -- the budget --------------------------------------------------------------------------------------------------------


def test_shares_of_a_tree_add_up_along_paths_only():
    budget = Budget(epsilon=1.0)
    empty = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
    budget.draw(tree("one", [0.2]), empty, noise.seeded(1))
    budget.draw(tree("two", [0.8, 0.2], after="one", parent=np.array([0, 2])), empty, noise.seeded(1))
    assert budget.spent == pytest.approx(1.0)
    budget.draw(tree("three", [0.6], after="two", parent=np.array([4])), empty, noise.seeded(1))
    with pytest.raises(ContractBroken, match="shares add up"):
        budget.draw(tree("four", [0.1], after="two", parent=np.array([0])), empty, noise.seeded(1))


def test_a_tree_takes_no_clipping_and_no_gaussian_noise():
    from murmurate.asking.clipping import clipped_sums

    rows = Contributions(np.zeros(5, dtype=np.int64), np.zeros(5, dtype=np.int64), np.ones(5, dtype=np.int64))
    with pytest.raises(ContractBroken, match="no more than its limit"):
        clipped_sums(tree("one", [0.2]), rows, "l1")
    with pytest.raises(ContractBroken, match="Laplace"):
        Budget(epsilon=1.0, delta=1e-6).check((tree("one", [0.2]),))


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_every_unit_is_clipped_to_the_limit(norm):
    from murmurate.asking.clipping import clipped_sums, dense

    generator = np.random.default_rng(1)
    table = Table(name="t", n_bins=6, share=1.0, limit=2.5)
    for _ in range(50):
        size = int(generator.integers(1, 40))
        rows = Contributions(
            np.zeros(size, dtype=np.int64), generator.integers(0, 6, size), generator.integers(-5000, 9000, size)
        )
        vector = dense(clipped_sums(table, rows, norm), 6) / table.steps
        assert np.linalg.norm(vector, 1 if norm == "l1" else 2) <= table.limit


@pytest.mark.parametrize("norm", ["l1", "l2"])
def test_a_count_that_is_divided_unevenly_is_still_one_count(norm):
    from murmurate.asking import STEPS
    from murmurate.asking.clipping import spread

    generator = np.random.default_rng(1)
    owner = np.repeat(np.arange(300), 12)
    bins = generator.integers(-1, 40, len(owner))
    favour = 10.0 ** generator.uniform(-8, 8, 40)
    found, places, weight = spread(bins, owner, STEPS, norm == "l2", favour)
    power = 2 if norm == "l2" else 1
    assert (np.bincount(found, weights=weight.astype(float) ** power) <= STEPS**power).all()
    of_first, rare = weight[found == 0], favour[places[found == 0]]
    assert of_first == pytest.approx(STEPS * rare / np.linalg.norm(rare, power), abs=1)
    even = spread(bins, owner, STEPS, norm == "l2")
    norms = np.bincount(even[0], weights=even[2].astype(float) ** power)
    assert (norms <= STEPS**power).all() and (norms > 0.98 * STEPS**power).all()
    same = spread(bins, owner, STEPS, norm == "l2", np.full(40, 3.0))
    assert np.abs(same[2] - even[2]).max() <= 1


def test_contributions_beyond_the_bins_are_refused():
    from murmurate.asking.clipping import clipped_sums

    table = Table(name="t", n_bins=3, share=1.0)
    with pytest.raises(ContractBroken, match="fits its bins"):
        clipped_sums(table, once(np.array([0]), np.array([3])), "l1")


def test_held_parts_give_their_trips_back():
    private = trips_of()
    assert Held(private).load() is private
