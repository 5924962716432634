"""Run long work in child processes, one at a time: a child can be stopped, and a page may be closed and opened meanwhile.

A child is told its order on its standard input and answers with lines of JSON. When that input ends, because the studio
ended in whatever way, the child stops by itself.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal

from murmurate.studio.drafts import Draft, write_closed

State = Literal["waiting", "running", "done", "failed", "cancelled"]

PATIENCE_S = 10.0
"""Seconds a cancelled child has for tidying up before it is killed. Set by hand."""
LONGEST_LINE = 1 << 20
"""Most bytes of one line of a child; results are files. Set by hand."""
KILLED = "The process ended without a word; perhaps memory ran out."
"""What is said of a child that was killed by somebody else."""


@dataclass(eq=False)
class Job:
    """Hold one piece of work and how far it is."""

    draft: Draft
    task: str
    order: dict[str, Any]
    state: State = "waiting"
    what: str = ""
    done: float = 0.0
    total: float | None = None
    charged: bool = False
    message: str = ""
    fault: str = ""
    """Kind of the error it ended with."""
    began: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    process: asyncio.subprocess.Process | None = None
    stopping: bool = False
    version: int = 0
    changed: asyncio.Condition = field(default_factory=asyncio.Condition)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen."""
        return self.state in ("done", "failed", "cancelled")

    def told(self) -> dict[str, Any]:
        """Return what a page shows of it."""
        names = ("task", "state", "what", "done", "total", "charged", "message", "fault", "began")
        return {name: getattr(self, name) for name in names}

    async def tell(self, **values: Any) -> None:
        """Change it, write it down, and wake who watches."""
        for name, value in values.items():
            setattr(self, name, value)
        self.version += 1
        if "state" in values:
            write_closed(self.draft.folder / f"{self.task}.job.json", json.dumps(self.told()))
        async with self.changed:
            self.changed.notify_all()


Settle = Callable[[Job], dict[str, Any]]
"""What the ledger says of a job that ended: `state`, `charged`, `message`."""


class Jobs:
    """Start, watch and stop the jobs of one studio."""

    def __init__(self, settle: Settle) -> None:
        self._settle = settle
        self._jobs: dict[tuple[str, str], Job] = {}
        self._one_at_a_time = asyncio.Lock()
        self._tasks: set[asyncio.Task[None]] = set()
        self.closing = False

    def find(self, draft: Draft, task: str) -> Job | None:
        """Return the job of a draft, also one of an earlier studio."""
        known = self._jobs.get((draft.id, task))
        if known is not None:
            return known
        path = draft.folder / f"{task}.job.json"
        if not path.is_file():
            return None
        told = json.loads(path.read_text(encoding="utf-8"))
        job = Job(draft, task, {}, **{name: value for name, value in told.items() if name != "task"})
        if not job.over:  # the studio that ran it has ended
            job.message = "The studio ended while this ran."
            for name, value in self._settle(job).items():
                setattr(job, name, value)
        self._jobs[draft.id, task] = job
        return job

    def start(self, draft: Draft, task: str, order: dict[str, Any]) -> Job:
        """Start a job, or return the one that is under way for this draft and task: a second click starts nothing."""
        known = self._jobs.get((draft.id, task))
        if known is not None and not known.over:
            return known
        job = Job(draft, task, order)
        self._jobs[draft.id, task] = job
        running = asyncio.get_running_loop().create_task(self._run(job))
        self._tasks.add(running)
        running.add_done_callback(self._tasks.discard)
        return job

    async def cancel(self, job: Job) -> None:
        """Stop a job: at once where it waits, by a signal where it runs."""
        if job.over:
            return
        job.stopping = True
        if job.state == "waiting":
            await job.tell(state="cancelled", message="Cancelled before it began.")
        elif job.process is not None:
            await _stop(job.process)

    async def watch(self, job: Job) -> AsyncIterator[dict[str, Any]]:
        """Yield what is told of a job, at once and after every change, until it is over."""
        seen = -1
        while not self.closing:
            if job.version != seen:
                seen = job.version
                yield {"id": seen, **job.told()}
                if job.over:
                    return
            async with job.changed:
                if job.version == seen and not self.closing:
                    await job.changed.wait()

    async def close(self) -> None:
        """Stop everything and wait until no child is left."""
        self.closing = True
        for job in list(self._jobs.values()):
            await self.cancel(job)
            async with job.changed:
                job.changed.notify_all()
        if self._tasks:
            await asyncio.wait(self._tasks)

    async def _run(self, job: Job) -> None:
        async with self._one_at_a_time:
            if job.over:
                return
            await job.tell(state="running", what="starting")
            temporary = job.draft.folder / "work"
            temporary.mkdir(mode=0o700, exist_ok=True)
            try:
                job.process = await asyncio.create_subprocess_exec(
                    sys.executable,
                    "-m",
                    "murmurate.studio.work",
                    stdin=asyncio.subprocess.PIPE,
                    stdout=asyncio.subprocess.PIPE,
                    stderr=None if os.environ.get("MURMURATE_DEBUG") else asyncio.subprocess.DEVNULL,
                    limit=LONGEST_LINE,
                    start_new_session=True,  # a Ctrl-C in the terminal is for the studio, which stops its children itself
                    env={**os.environ, "TMPDIR": str(temporary)},
                )
                if job.stopping:  # cancelled while the child was being started, when there was nothing to signal yet
                    await _stop(job.process)
                ended = await self._listen(job, job.process)
            finally:
                sweep(job.draft.folder)  # before anybody is told that it is over
            job.message = ended.get("message", KILLED)
            settled = {} if ended.get("state") in ("done", "failed") else self._settle(job)
            await job.tell(**{"state": "failed", "message": KILLED, **ended, **settled})

    async def _listen(self, job: Job, process: asyncio.subprocess.Process) -> dict[str, Any]:
        """Send the order, pass on what the child says, and return how it says it ended: nothing where it was killed."""
        if process.stdin is None or process.stdout is None:
            raise RuntimeError("a child was started without pipes")
        process.stdin.write(json.dumps(job.order).encode() + b"\n")  # left open: its end tells the child that we are gone
        ended: dict[str, Any] = {}
        try:
            await process.stdin.drain()
            async for line in process.stdout:
                said = json.loads(line)
                if "state" in said:
                    ended = said
                else:
                    await job.tell(**said)
        except (ConnectionError, ValueError):
            await _stop(process)
        await process.wait()
        if job.stopping and not ended:
            return {"state": "cancelled", "message": "Cancelled."}
        return ended


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Ask a child and its own children to stop; those that do not are killed."""
    if process.returncode is not None:
        return
    _signal(process, signal.SIGTERM)
    with suppress(TimeoutError):
        await asyncio.wait_for(process.wait(), PATIENCE_S)
    _signal(process, signal.SIGKILL)


def _signal(process: asyncio.subprocess.Process, number: int) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, number)


def sweep(draft: Path) -> None:
    """Delete what a child that was killed left in a draft's folder: its work folder, and a release it was still writing."""
    for path in (draft / "work", *draft.glob(".release-*")):
        shutil.rmtree(path, ignore_errors=True)
