"""Do one job in a process of its own: `python -m murmurate.studio.work`, order and answers through its standard pipes."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
import traceback
from types import FrameType
from typing import IO, Any

OFTEN_S = 0.2
"""Least seconds between two reports of progress: more would only keep pages busy. Set by hand."""
MODEST = 5
"""Niceness of a child, so that pages stay quick while it works. Set by hand."""


def main() -> None:
    """Read the order, do it, and say how it ended."""
    answers = os.fdopen(os.dup(1), "w", encoding="utf-8", buffering=1)
    os.dup2(2, 1)  # whatever prints by mistake does not disturb the answers
    order = json.loads(sys.stdin.buffer.readline())
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_end_with_the_studio, daemon=True).start()
    _limit_resources()
    # asking the kernel for huge pages can stall for seconds; numpy and polars read these when first imported
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    from murmurate.core import progress
    from murmurate.errors import MurmurateError
    from murmurate.studio import tasks

    tell = _Teller(answers)
    try:
        with progress.shown_by(tell.progress):
            tasks.TASKS[order["task"]](order, tell.say)
        tell.say(state="done", message="")
    except KeyboardInterrupt:
        tell.say(state="cancelled", message="Cancelled.")
    except MurmurateError as error:
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        charged = bool(getattr(error, "charged", None))
        tell.say(state="failed", message=f"{error}{notes}", charged=charged, fault=type(error).__name__)
    except MemoryError:
        tell.say(state="failed", message="Memory ran out. Close other programs, or release on a larger machine.")
    except Exception as error:  # noqa: BLE001  a person reads a sentence, and nothing of the data stands in it
        if os.environ.get("MURMURATE_DEBUG"):
            traceback.print_exc()
        charged = bool(getattr(error, "charged", None))
        told = f"This is a fault of Murmurate's own, not of your data: {type(error).__name__}."
        tell.say(state="failed", message=told, charged=charged)


class _Teller:
    """Write answers, progress not too often."""

    def __init__(self, answers: IO[str]) -> None:
        self._answers = answers
        self._last = 0.0
        self._lock = threading.Lock()

    def say(self, **values: Any) -> None:
        """Write one answer."""
        with self._lock:
            self._answers.write(json.dumps(values) + "\n")
            self._answers.flush()

    def progress(self, what: str, done: float, total: float | None) -> None:
        """Report how far it is."""
        now = time.monotonic()
        if now - self._last >= OFTEN_S or (total is not None and done >= total):
            self._last = now
            self.say(what=what, done=float(done), total=None if total is None else float(total))


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _end_with_the_studio() -> None:
    """Stop when the studio is gone, however it went: its end of the pipe is closed then."""
    while os.read(0, 4096):
        pass
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(10)
    os._exit(1)


def _limit_resources() -> None:
    """Leave no memory image of private data behind, and let pages go first."""
    os.nice(MODEST)
    try:
        import resource
    except ImportError:  # Windows has no such limits
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    physical = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    most = physical if hard == resource.RLIM_INFINITY else min(physical, hard)
    resource.setrlimit(resource.RLIMIT_DATA, (most, hard))


if __name__ == "__main__":
    main()
