"""Noise drawn ahead: of the scale it is asked for, used once, dropped where a round fails."""

from __future__ import annotations

import numpy as np
import pytest

from brackets import assert_bracketed, discrete_gaussian_law, discrete_laplace_law
from murmurate import engine, noise
from murmurate.asking import Budget, Table
from murmurate.asking.rounds import Asking
from murmurate.errors import EngineError, ParameterError
from murmurate.noise import ahead as ahead_module
from murmurate.noise.ahead import NoiseAhead, Wanted
from toy_rounds import CELLS, Toy, trips_of


@pytest.mark.parametrize(("norm", "law"), [("l1", discrete_laplace_law()), ("l2", discrete_gaussian_law())])
def test_noise_of_a_table_has_the_scale_of_its_share(norm, law):
    n = 6_000

    def sizes(scale):
        budget = Budget(epsilon=1.0, delta=0.0 if norm == "l1" else 1e-6)
        share = budget.multiplier * 100 / scale if norm == "l1" else (budget.multiplier * 100 / scale) ** 2
        table = Table(name="cells", n_bins=n, share=share, steps=100)
        counts = np.arange(n) * 100
        with budget.noise_ahead((table,), noise.secure(), threads=2) as ahead:
            answer = budget.draw(table, counts, noise.secure(), ahead=ahead)
        assert budget.spent == pytest.approx(share)
        return np.abs(answer.noisy * 100 - counts)

    assert_bracketed(sizes, law, 3_000.0)


def test_noise_is_used_once_and_two_tables_never_share_it():
    wanted = {name: Wanted("gaussian", 50, 1e6) for name in "ab"}
    zeros = np.zeros(50, dtype=np.int64)
    with NoiseAhead(wanted, noise.secure(), 2) as ahead:
        one, other = ahead.add_to("a", zeros), ahead.add_to("b", zeros)
        assert (one != other).any() and ahead.add_to("a", zeros) is None and ahead.add_to("c", zeros) is None


def test_values_that_noise_could_carry_over_the_edge_are_refused():
    with NoiseAhead({"a": Wanted("laplace", 1, 2.0)}, noise.secure()) as ahead, pytest.raises(ParameterError, match="2\\^62"):
        ahead.add_to("a", np.array([2**62]))


@pytest.fixture
def drawn(monkeypatch):
    """Names of the samplers that were called."""
    calls = []
    made = ahead_module._drawn
    monkeypatch.setattr(ahead_module, "_drawn", lambda *given: calls.append(given[0].n) or made(*given))
    return calls


def test_a_run_on_several_workers_draws_each_table_once(drawn):
    with engine.engine(2) as running:
        found = Asking(Toy(epsilon=50.0), trips_of(600), noise.secure(), engine=running).run()
    assert sorted(drawn) == [1, CELLS]
    assert found["cells"] == pytest.approx([120] * CELLS, abs=5)


def test_nothing_of_a_round_that_fails_is_answered_and_it_is_drawn_anew(drawn):
    kept = []
    with engine.engine(2) as running:
        asking = Asking(Toy(epsilon=50.0), trips_of(600), noise.secure(), engine=running, on_answers=kept.append)
        running.fold = fails
        with pytest.raises(EngineError):
            asking.run()
        assert asking.answers == {} and kept == []
        del running.fold
        assert Asking(Toy(epsilon=50.0), trips_of(600), noise.secure(), engine=running).run()["cells"] is not None
    assert sorted(drawn) in ([1, CELLS], [1, CELLS, CELLS])  # the dropped draw may not even have begun


def fails(*given):
    raise EngineError("a part of the work ended its process 3 times.", "Use fewer workers.")


def test_seeded_noise_and_one_worker_draw_in_order(drawn):
    with engine.engine(2) as running:
        Asking(Toy(), trips_of(), noise.seeded(1), engine=running).run()
    Asking(Toy(), trips_of(), noise.secure()).run()
    assert drawn == []
