"""Attempts to break the asking core: overspend, split a unit, draw twice, or let one unit's rows depend on others."""

from __future__ import annotations

import pickle
from dataclasses import replace
from multiprocessing import get_context

import numpy as np
import polars as pl
import pytest

from murmurate import engine, noise
from murmurate.asking import Answer, Budget, Contributions, Part, Round, Table
from murmurate.asking.clipping import clipped_sums
from murmurate.asking.kept_answers import alone, load_answers, save_answers
from murmurate.asking.rounds import Asking, Held, fitted
from murmurate.asking.table import once
from murmurate.core.events import Gaussian
from murmurate.core.guarantee import NoGuarantee, Unit
from murmurate.core.trips import Trips
from murmurate.errors import ContractBroken, GuaranteeRefused, InputError, InsufficientBudget
from toy_rounds import CELLS, Toy, count_cells, every_trip_alone, first_cells, tree, trips_of

NOBODY = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)


# -- the budget --------------------------------------------------------------------------------------------------------


def test_a_second_tree_adds_to_the_first():
    budget = Budget(epsilon=1.0)
    budget.draw(tree("one", [0.6]), NOBODY, noise.seeded(1))
    with pytest.raises(ContractBroken, match="one root"):
        budget.draw(tree("other", [0.6]), NOBODY, noise.seeded(1))


def test_a_level_is_followed_by_one_table_only():
    budget = Budget(epsilon=1.0)
    budget.draw(tree("one", [0.4]), NOBODY, noise.seeded(1))
    budget.draw(tree("two", [0.6], after="one", parent=np.array([0])), NOBODY, noise.seeded(1))
    with pytest.raises(ContractBroken, match="followed"):
        budget.draw(tree("again", [0.6], after="one", parent=np.array([0])), NOBODY, noise.seeded(1))


def test_two_tables_of_one_round_may_not_follow_the_same_level():
    budget = Budget(epsilon=1.0)
    budget.draw(tree("one", [0.4]), NOBODY, noise.seeded(1))
    both = tuple(tree(name, [0.6], after="one", parent=np.array([0])) for name in ("two", "again"))
    with pytest.raises(ContractBroken, match="followed"):
        budget.check(both)


def test_the_levels_of_a_tree_have_one_limit():
    budget = Budget(epsilon=1.0)
    budget.draw(tree("one", [0.4]), NOBODY, noise.seeded(1))
    with pytest.raises(ContractBroken, match="limit"):
        budget.check((replace(tree("two", [0.6], after="one", parent=np.array([0])), limit=1.0),))


@pytest.mark.parametrize("bin", [-1, 3])
def test_a_node_lies_in_the_level_above(bin):
    budget = Budget(epsilon=1.0)
    budget.draw(tree("one", [0.4]), NOBODY, noise.seeded(1))
    with pytest.raises(ContractBroken, match="bins of one"):
        budget.check((tree("two", [0.6], after="one", parent=np.array([bin])),))


def test_what_was_spent_does_not_change_with_the_mechanisms_own_array():
    budget, first = Budget(epsilon=1.0), tree("one", [0.8])
    budget.draw(first, NOBODY, noise.seeded(1))
    first.row_share[:] = 0.1
    with pytest.raises(ContractBroken, match="shares add up to the budget"):
        budget.check((tree("two", [0.8], after="one", parent=np.array([0])),))


@pytest.mark.parametrize("share", [[np.nan], [np.nan, 5.0], [np.inf], [0.0], [-0.5]])
def test_shares_of_rows_are_positive_numbers(share):
    with pytest.raises(ContractBroken, match="shares"):
        replace(tree("one", [0.5] * len(share)), row_share=np.array(share))


@pytest.mark.parametrize("threshold", [np.array([1.5]), np.array([0])])
def test_present_and_absent_children_pass_the_same_threshold(threshold):
    """A threshold of 1.5 would be 1.5 for children that somebody has and 1 for those that nobody has."""
    with pytest.raises(ContractBroken, match="threshold"):
        replace(tree("one", [0.5]), threshold=threshold)


class Greedy(Toy):
    def budget(self):
        return Budget(epsilon=2 * self.epsilon, delta=self.delta)


class Careless(Toy):
    def guarantee(self):
        return NoGuarantee(why="none", unit=Unit(name="trip"))


class Undercharged(Toy):
    """The ledger composes events, so these would charge a hundredth of what the budget spends."""

    def guarantee(self):
        return replace(super().guarantee(), events=(Gaussian(noise_multiplier=100.0),))


@pytest.mark.parametrize("mechanism", [Greedy(), Careless(), Undercharged(delta=1e-6)])
def test_noise_is_as_wide_as_what_was_charged(mechanism):
    with pytest.raises(ContractBroken, match="promise"):
        fitted(mechanism, trips_of(), noise.seeded(1))


# -- units and their rows ----------------------------------------------------------------------------------------------


class ByTrip(Toy):
    def ask(self, answers, facts):
        asked = super().ask(answers, facts)
        return asked and replace(asked, prepare=every_trip_alone)


@pytest.mark.parametrize("workers", [1, 2])
def test_units_that_are_not_in_the_part_are_refused(workers):
    with engine.engine(workers) as running, pytest.raises(ContractBroken, match="units of its part"):
        fitted(ByTrip(unit="user", max_trips=5), trips_of(), noise.seeded(1), engine=running)


ROWS = (np.array([0, 0, 1]), np.array([0, 1, 2]), np.array([1, 1, 1]))


@pytest.mark.parametrize("which", [0, 1, 2])
@pytest.mark.parametrize("change", [lambda rows: rows[:2], lambda rows: np.append(rows, 0), lambda rows: rows[None]])
def test_rows_of_other_lengths_are_refused(which, change):
    """Kernels check no bounds: a short array would be read beyond its end, a long one cut."""
    rows = [change(part) if k == which else part for k, part in enumerate(ROWS)]
    with pytest.raises(ContractBroken, match="rows of"):
        clipped_sums(Table(name="t", n_bins=3, share=1.0), Contributions(*rows), "l1")


@pytest.mark.parametrize("which", [0, 1, 2])
def test_fractions_are_refused_and_not_cut(which):
    rows = [part + 0.5 if k == which else part for k, part in enumerate(ROWS)]
    with pytest.raises(ContractBroken, match="integers"):
        clipped_sums(Table(name="t", n_bins=3, share=1.0), Contributions(*rows), "l1")


def test_weights_that_overflow_stay_within_the_limit():
    table = Table(name="t", n_bins=3, share=1.0)
    huge = Contributions(np.zeros(4, dtype=np.int64), np.array([0, 0, 1, 1]), np.full(4, 2**62))
    for norm in ("l1", "l2"):
        assert np.abs(clipped_sums(table, huge, norm)[1]).sum() <= table.steps * table.limit * np.sqrt(2)


class InSources:
    """Parts by `sources`, as files too large for memory give them; every part holds the same people."""

    time_zone = "UTC"

    def carries(self):
        return trips_of().carries()

    def sources(self):
        yield Held(trips_of())
        yield Held(trips_of())


@pytest.mark.parametrize("workers", [1, 2])
def test_a_person_in_two_sources_is_refused(workers):
    with engine.engine(workers) as running, pytest.raises(GuaranteeRefused, match="two parts"):
        fitted(Toy(), InSources(), noise.seeded(1), engine=running)


def test_days_of_a_unit_do_not_run_into_each_other():
    """A unit is (person, day), also where others' days lie far apart or before 1970."""
    from murmurate.asking.bounding import units_of_trips

    rows = [("a", 1, "1901-01-01"), ("a", 2, "1901-01-02"), ("b", 3, "1901-01-01"), ("b", 4, "2200-01-01")]
    frame = pl.DataFrame(rows, schema=["uid", "tid", "datetime"], orient="row").with_columns(
        pl.col("datetime").str.to_datetime(time_zone="UTC"), cell=pl.lit(0)
    )
    assert units_of_trips(Trips(frame), Unit(name="user_day")).tolist() == [0, 1, 2, 3]


def test_errors_of_workers_keep_their_kind_and_words():
    """An error that cannot be unpickled ends the pool, and was reported as a want of memory."""
    for error in (
        ContractBroken("clause", "what"),
        InputError("fault", "remedy"),
        InsufficientBudget("words", requested=1, remaining=0),
    ):
        again = pickle.loads(pickle.dumps(error))
        assert type(again) is type(error) and str(again) == str(error) and vars(again) == vars(error)


# -- a table is drawn once, also by a fit that goes on ------------------------------------------------------------------


def kept_first_round(toy):
    kept = []
    first = Asking(toy, trips_of(), noise.seeded(1), on_answers=lambda answers: kept.append(dict(answers)))
    first.run()
    return first.key, kept


def test_kept_answers_of_other_shares_are_refused():
    """After an update a table may have another share: its kept draw would count for less than it has spent."""
    key, kept = kept_first_round(Toy(shares=(0.8, 0.2)))
    with pytest.raises(ContractBroken, match="kept answer"):
        Asking(Toy(shares=(0.2, 0.8)), trips_of(), noise.seeded(2), key=key, answers=kept[0]).run()


def test_kept_answers_of_another_size_are_refused():
    key, kept = kept_first_round(Toy())
    short = {"cells": Answer(kept[0]["cells"].noisy[:-1], kept[0]["cells"].deviation)}
    with pytest.raises(ContractBroken, match="kept answer"):
        Asking(Toy(), trips_of(), noise.seeded(2), key=key, answers=short).run()


def test_kept_answers_that_nobody_asks_for_are_refused():
    """They were drawn and have spent their share, so going on without them would overspend."""
    key, kept = kept_first_round(Toy())
    other = {"elsewhere": kept[0]["cells"]}
    with pytest.raises(ContractBroken, match="elsewhere"):
        Asking(Toy(), trips_of(), noise.seeded(2), key=key, answers=other).run()


class Joined(Toy):
    def ask(self, answers, facts):
        tables = tuple(Table(name=name, n_bins=CELLS, share=0.5) for name in ("cells", "more"))
        return None if answers else Round(tables=tables, prepare=first_cells, contribute=count_both)


def count_both(prepared):
    return {"cells": once(*prepared), "more": once(*prepared)}


def test_a_round_of_which_some_tables_are_kept_is_refused():
    key, kept = kept_first_round(Toy())
    with pytest.raises(ContractBroken, match="cells"):
        Asking(Joined(), trips_of(), noise.seeded(2), key=key, answers=kept[0]).run()


def test_kept_answers_that_were_cut_off_are_refused(tmp_path):
    key, kept = kept_first_round(Toy())
    save_answers(tmp_path, key, kept[0])
    file = tmp_path / "answers.npz"
    file.write_bytes(file.read_bytes()[:-40])
    with pytest.raises(InputError, match="cannot be read"):
        load_answers(tmp_path)


def at_work(folder, begun, end):
    with alone(folder):
        begun.set()
        end.wait(30)


def test_two_processes_are_never_at_one_fit(tmp_path):
    context = get_context("spawn")
    begun, end = context.Event(), context.Event()
    other = context.Process(target=at_work, args=(tmp_path, begun, end))
    other.start()
    assert begun.wait(60)
    with pytest.raises(InputError, match="another process"), alone(tmp_path):
        pass
    end.set()
    other.join()
    with alone(tmp_path):
        pass


def test_a_prepared_part_that_is_none_is_not_made_again(tmp_path):
    made = []

    class Empty(Toy):
        def ask(self, answers, facts):
            asked = super().ask(answers, facts)
            return asked and replace(asked, prepare=made.append, contribute=lambda prepared: {asked.tables[0].name: nobody()})

    fitted(Empty(), trips_of(), noise.seeded(1))
    assert len(made) == 1


def nobody():
    return once(np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64))


def test_toy_parts_are_what_the_faults_above_change():
    part = Part(trips_of(4, 2), np.array([0, 0, 1, 1]))
    assert set(count_cells(first_cells(part))) == {"cells"}
