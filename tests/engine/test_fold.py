"""Every part is in the sum once: on every engine, in any number of parts, in any order, whatever was killed."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from engine_parts import counts, counts_or_dies
from murmurate import engine
from murmurate.core.work_files import WorkFiles
from murmurate.engine import fold as folding
from murmurate.engine.fold import Counted, Left, joined
from murmurate.engine.serial import Serial
from murmurate.errors import EngineError, ParameterError


def square(item):
    return item * item


def added(tables):
    return np.sum(tables, axis=0)


class Careless(Serial):
    """Gives the result of its second part twice."""

    def map(self, function, items):
        for number, found in enumerate(super().map(function, items)):
            yield found
            if number == 1:
                yield found


class Forgetful(Serial):
    """Loses the result of its second part."""

    def map(self, function, items):
        yield from (found for number, found in enumerate(super().map(function, items)) if number != 1)


def test_a_result_that_comes_twice_is_refused():
    with pytest.raises(EngineError, match="counted twice"):
        Careless().fold(square, range(5), sum)


def test_a_result_that_is_missing_is_refused():
    with pytest.raises(EngineError, match="1 of 5 parts"):
        Forgetful().fold(square, range(5), sum)


def test_sums_of_overlapping_parts_are_refused():
    with pytest.raises(EngineError, match="counted twice"):
        joined(sum, [Counted(0b011, 1), Counted(0b110, 2)])


@pytest.mark.parametrize("n", [0, 1, 8, 9, 200])
def test_any_number_of_parts(n):
    assert Serial().fold(square, range(n), sum) == (sum(k * k for k in range(n)) if n else None)
    assert Serial().fold(square, iter(range(n)), sum) == (sum(k * k for k in range(n)) if n else None)


def test_large_sums_are_added_in_files_by_the_workers(tmp_path, monkeypatch):
    """The process that waits opens one file, the last."""
    monkeypatch.setattr(folding, "LARGE_BYTES", 1000)
    monkeypatch.setattr(folding, "BATCHES_PER_WORKER", 50)
    seen: list[Left] = []
    opened = folding._opened

    class Filing(Serial):
        def files(self):
            return WorkFiles(str(tmp_path))

        def map(self, function, items):
            inside.append(1)
            yield from super().map(function, items)
            inside.pop()

    inside: list[int] = []
    monkeypatch.setattr(folding, "_opened", lambda left: (inside or seen.append(left), opened(left))[1])
    found = Filing().fold(partial(counts, 1000), range(50), added)
    assert found.tolist() == counts_of(50, 1000)
    assert len(seen) == 1
    assert len(list(tmp_path.iterdir())) == 1


def counts_of(parts, size):
    return np.bincount(np.arange(parts) % size, minlength=size).tolist()


def test_killed_workers_change_no_sum(tmp_path, monkeypatch):
    monkeypatch.setattr(folding, "BATCHES_PER_WORKER", 4)
    with engine.engine(2) as running:
        found = running.fold(partial(counts_or_dies, tmp_path, 7), range(40), added)
    assert found.tolist() == counts_of(40, 7)
    assert len(list(tmp_path.iterdir())) == 3


@pytest.mark.parametrize("word", ["", "two", "processes:0", "processes:", "dask-local:0", "dask:tcp://127.0.0.1", "spark"])
def test_unknown_engines_are_refused_with_those_that_are_known(word):
    with pytest.raises(ParameterError, match="an engine is serial"):
        engine.engine(word)


@pytest.mark.parametrize(("word", "kind"), [("serial", "Serial"), ("processes:1", "Serial"), ("processes:3", "Processes")])
def test_engines_have_words(word, kind):
    assert type(engine.engine(word)).__name__ == kind
