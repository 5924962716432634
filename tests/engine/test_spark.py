"""What of the Spark engine runs without Spark. `benchmarks/killed_runs.py --engine local[2]` runs it whole, by hand."""

from __future__ import annotations

import pickle
import sys
from types import SimpleNamespace

import pyarrow as pa
import pytest

from engine_parts import failing
from murmurate import engine
from murmurate.core.work_files import WorkFiles
from murmurate.engine import tasks
from murmurate.engine.spark_cluster import Spark, _Runner
from murmurate.errors import EngineError, InputError, MissingPart


@pytest.mark.parametrize("word", ["local[2]", "spark://cluster.example:7077"])
def test_without_the_extra_the_message_names_it(word, monkeypatch):
    monkeypatch.setitem(sys.modules, "pyspark.errors", None)
    running = engine.engine(word)
    assert isinstance(running, Spark)
    with pytest.raises(MissingPart, match=r"murmurate\[spark\]"):
        running.start()


def test_an_executor_runs_the_tasks_of_its_numbers(tmp_path):
    names, files = [], WorkFiles(str(tmp_path))
    for number, (function, item) in enumerate([(abs, -7), (failing, "Ada Lovelace"), (abs, -3)]):
        names.append(f"task-{number}")
        files.put(names[-1], pickle.dumps(tasks.task(number, function, item, files)))
    batches = [pa.RecordBatch.from_arrays([pa.array([2, 1])], ["id"]), pa.RecordBatch.from_arrays([pa.array([0])], ["id"])]
    rows = [row for batch in _Runner(files, tuple(names))(batches) for row in batch.to_pylist()]
    outcomes = {row["number"]: pickle.loads(row["outcome"]) for row in rows}
    assert [row["number"] for row in rows] == [2, 1, 0]
    assert (outcomes[0].result(0), outcomes[2].result(2)) == (7, 3)
    with pytest.raises(InputError, match="Lovelace"):
        outcomes[1].result(1)


class StoppedSession:
    """A session that somebody stopped: it has lost its attributes."""

    class sparkContext:
        pass

    def range(self, *_, **__):
        return self.lost


@pytest.mark.parametrize("step", ["workers", "range"])
def test_a_session_that_was_stopped_is_one_message(tmp_path, monkeypatch, step):
    for name in ("py4j", "py4j.protocol", "pyspark", "pyspark.errors"):
        kinds = {
            "Py4JError": type("Py4JError", (Exception,), {}),
            "PySparkException": type("PySparkException", (Exception,), {}),
        }
        monkeypatch.setitem(sys.modules, name, SimpleNamespace(**kinds))
    if step == "range":
        monkeypatch.setattr(StoppedSession.sparkContext, "defaultParallelism", 2, raising=False)
    with Spark("local[2]") as running:
        running._session = StoppedSession()
        running.start(work_in=tmp_path)
        with pytest.raises(EngineError, match="was stopped"):
            list(running.map(abs, [1]))
