"""flock counts private trips in parts, on several processes, which changes nothing but memory and time."""

from __future__ import annotations

import numpy as np
import pytest

from diagonal_city import GRID, city
from murmurate import engine, noise
from murmurate.asking.rounds import Asking, facts_of, fitted
from murmurate.asking.samples import Samples
from murmurate.mechanisms.flock import Flock

ASKED = Flock(epsilon=5.0, space=GRID)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("part_points", [40, 500, 10**6])
def test_tables_are_the_same_from_any_parts(workers, part_points):
    private = city(120, users=30)
    answers: dict = {}
    with engine.engine(workers) as running:
        for _ in range(3):
            asked = ASKED.ask(answers, facts_of(private))
            whole = Asking(ASKED, private, noise.seeded(1), key=b"k").exact(asked, "l1")
            apart = Asking(ASKED, private, noise.seeded(1), key=b"k", engine=running, part_points=part_points)
            for name, (bins, sums) in apart.exact(asked, "l1").items():
                assert np.array_equal(bins, whole[name][0]) and np.array_equal(sums, whole[name][1]), name
            budget = ASKED.budget()
            full = {one.name: np.zeros(one.n_bins, dtype=np.int64) for one in asked.tables}
            for one in asked.tables:
                full[one.name][whole[one.name][0]] = whole[one.name][1]
                answers[one.name] = budget.draw(one, full[one.name], noise.seeded(4))
        assert ASKED.ask(answers, facts_of(private)) is None


@pytest.mark.parametrize("workers", [1, 2])
def test_trips_are_drawn_in_parts_of_their_own_streams(workers, monkeypatch):
    model = fitted(ASKED, city(120), noise.seeded(3))
    object.__setattr__(model, "sample_trips", 40)
    with engine.engine(workers) as running:
        drawn = list(Samples(model, 100, noise.seeded(5), running))
    assert [part.n_trips for part in drawn] == [40, 40, 20]
    names = np.concatenate([part.trip_ids.to_numpy() for part in drawn])
    assert sorted(names.tolist()) == list(range(100))
    first = drawn[0].lat.tolist()
    assert first == next(iter(Samples(model, 100, noise.seeded(5), engine.Serial()))).lat.tolist()
