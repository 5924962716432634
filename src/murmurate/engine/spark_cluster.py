"""The engine of a Spark cluster or of Spark on this machine. Needs the extra `[spark]` and a Java runtime.

Spark runs `mapInArrow` over the numbers of parts and nothing else: no RDDs and no accumulators, which count a retried task
twice. Tasks lie in the private work folder, which every executor must be able to open; results come back as bytes.
"""

from __future__ import annotations

import os
import pickle
import secrets
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Any, TypeVar

from murmurate.core.work_files import WorkFiles
from murmurate.engine import tasks
from murmurate.engine.shared import SharingEngine
from murmurate.errors import EngineError, MissingPart

Item = TypeVar("Item")
Result = TypeVar("Result")

TASKS_PER_JOB = 16
"""Parts for each worker in one Spark job: a job costs a fraction of a second, and the parts of one wait in files."""
MAX_FAILURES = 4
"""Times that Spark runs a part: its own default on clusters."""
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1",
    "spark.task.maxFailures": str(MAX_FAILURES),
    "spark.authenticate": "true",
    "spark.network.crypto.enabled": "true",
    "spark.io.encryption.enabled": "true",
}
"""Settings of a session that this process makes: no pages, one part a batch, nothing in clear on the network or on disks."""


class Spark(SharingEngine):
    """Runs items as tasks of Spark, on a master such as `local[2]` or `spark://HOST:7077`, or in the session there is."""

    def __init__(self, master: str) -> None:
        super().__init__()
        # on this machine Spark would run a part once only; a cluster takes the number of attempts from its settings
        self._master = f"{master[:-1]},{MAX_FAILURES}]" if master.startswith("local[") else master
        self._session: Any = None
        self._own = False

    @property
    def workers(self) -> int:  # type: ignore[override]
        """Return how many parts run at a time."""
        session = self._connected()
        with _told():
            return int(session.sparkContext.defaultParallelism)

    def start(self, *modules: str, work_in: str | Path | None = None) -> None:
        """Connect to the cluster, or start Spark here."""
        self._work_in = work_in or self._work_in
        self._connected()

    def map(self, function: Callable[[Item], Result], items: Iterable[Item]) -> Iterator[Result]:
        """Apply a function to each item, in order; `TASKS_PER_JOB` items for each worker are one job."""
        session, files, workers = self._connected(), self.files(), self.workers
        rest = iter(items)
        while job := list(islice(rest, TASKS_PER_JOB * workers)):
            names = [f"task-{secrets.token_hex(8)}" for _ in job]
            for number, (item, name) in enumerate(zip(job, names, strict=True)):
                files.put(name, pickle.dumps(tasks.task(number, function, item, files), protocol=pickle.HIGHEST_PROTOCOL))
            yield from self._run(session, files, names)
            files.remove(names)

    def end(self) -> None:
        """End Spark where this process started it."""
        session, self._session = self._session, None
        if session is not None and self._own:
            with suppress(EngineError), _told():  # one that is lost need not be ended well
                session.stop()

    def _run(self, session: Any, files: WorkFiles, names: list[str]) -> Iterator[Any]:
        with _told():
            numbers = session.range(len(names), numPartitions=len(names))
            rows = numbers.mapInArrow(_Runner(files, tuple(names)), "number bigint, outcome binary").collect()
        outcomes = {int(row.number): row.outcome for row in rows}
        if len(rows) != len(outcomes) or outcomes.keys() != set(range(len(names))):
            raise EngineError("Spark returned a part of the work twice or not at all.", "Run it again.")
        for number in range(len(names)):
            outcome: tasks.Outcome = pickle.loads(outcomes[number])  # noqa: S301  from a worker of this very run
            yield outcome.result(number)

    def _connected(self) -> Any:
        if self._session is not None:
            return self._session
        try:
            from pyspark.errors import PySparkException
            from pyspark.sql import SparkSession
        except ImportError:
            raise MissingPart("this engine needs Spark: install the extra, `pip install 'murmurate[spark]'`.") from None
        existing = SparkSession.getActiveSession()
        if existing is not None:
            self._session = existing
            return existing
        os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master(self._master).appName("murmurate")
        for name, value in {**SETTINGS, "spark.local.dir": str(self._work().path / "spark")}.items():
            builder = builder.config(name, value)
        try:
            self._session = builder.getOrCreate()
        except (PySparkException, OSError, RuntimeError) as error:
            raise EngineError(
                f"Spark does not start on {self._master}: {error}",
                "Install a Java runtime (17 or newer), and check the address.",
            ) from None
        self._session.sparkContext.setLogLevel("OFF")
        self._own = True
        return self._session


@contextmanager
def _told() -> Iterator[None]:
    """Say that Spark gave up, or was stopped by somebody else; a session that was stopped has lost its attributes."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    try:
        yield
    except (PySparkException, Py4JError, AttributeError, OSError) as error:
        raise EngineError(
            f"Spark gave up a part of the work, or was stopped ({type(error).__name__}).",
            "Look after its session and its executors: they need this package, this account and the disk of the work folder.",
        ) from None


class _Runner:
    """Runs the tasks of some numbers in an executor; shows nothing of what they carry."""

    def __init__(self, files: WorkFiles, names: tuple[str, ...]) -> None:
        self._files, self._names = files, names

    def __call__(self, batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow as pa

        for batch in batches:
            for number in batch.column(0).to_pylist():
                one: tasks.Task = pickle.loads(self._files.get(self._names[number]))  # noqa: S301  from this very run
                outcome = pickle.dumps(tasks.run(one), protocol=pickle.HIGHEST_PROTOCOL)
                yield pa.RecordBatch.from_arrays([pa.array([number]), pa.array([outcome])], ["number", "outcome"])
