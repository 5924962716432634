"""Make private work folders that only this account may open, removed when done and swept after a crash."""

from __future__ import annotations

import os
import shutil
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

PREFIX = "work-"
"""How the names of work folders begin; the process number follows."""


class WorkFolder:
    """A folder for private intermediate files, mode 0700, deleted when closed, collected or at exit.

    It lies under `parent`, by default in the user's state folder beside the ledger, never in the system's temporary folder.
    Its name carries the number of the process that made it, so that the next start can delete those of killed processes.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        home = Path(parent) if parent is not None else state_folder() / "work"
        made = not home.exists()
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        sweep(home)
        self.path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=home))
        self._remove = weakref.finalize(self, _remove, self.path, made)

    def close(self) -> None:
        """Delete the folder and everything in it."""
        self._remove()


def sweep(home: Path) -> list[Path]:
    """Delete work folders whose process is gone, and return them."""
    stale = [path for path in home.glob(f"{PREFIX}*-*") if path.is_dir() and not _alive(path.name)]
    for path in stale:
        shutil.rmtree(path, ignore_errors=True)
    return stale


def state_folder() -> Path:
    """Return the folder that holds ledgers and private work files: `MURMURATE_STATE`, else the platform's state folder."""
    given = os.environ.get("MURMURATE_STATE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "murmurate"


def _remove(path: Path, with_parent: bool) -> None:
    shutil.rmtree(path, ignore_errors=True)
    if with_parent:
        with suppress(OSError):
            path.parent.rmdir()  # where nobody else works in it


def _alive(name: str) -> bool:
    number = name.removeprefix(PREFIX).partition("-")[0]
    if not number.isdigit():
        return True  # not one of ours
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of somebody else
    return True
