"""Make private work folders that only this account may open; deleted at the end, or after a crash by the next start."""

from __future__ import annotations

import errno
import hashlib
import os
import re
import secrets
import shutil
import stat
import tempfile
import weakref
from contextlib import suppress
from pathlib import Path

from murmurate.core.work_files import WorkFiles, is_address, on_network, remove_store
from murmurate.errors import MurmurateError

PREFIX = "work-"
"""How the names of work folders begin; the process number follows."""
TRIES = 5
"""Attempts to make a work folder: another process may delete a new one in the moment before it is locked."""


NOTES = "work-places"
"""Subfolder of the state folder with one note for each folder that contains work folders."""
ELSEWHERE = "elsewhere"
"""File in a work folder with the address of its files, if they are in a store."""
_STORED = re.compile(rf"[^:]+://.*/{PREFIX}[0-9a-f]{{16}}", re.DOTALL)
"""Pattern of the address of work files in a store."""


class WorkFolder:
    """A folder for private intermediate files, mode 0700, deleted when closed, collected or at exit.

    It is under `parent`, by default in the user's state folder beside the ledger, never in the system's temporary folder. The
    process that made it holds a lock on it. So the next start, on any machine that shares the disk, can recognise and delete
    folders of killed processes; the state folder records where they are. Windows cannot lock folders. There, the process
    number in the name tells whether the process still runs.

    If `parent` is the address of an object store, such as s3://bucket/work, the `files` are there and encrypted. The folder
    itself is then in the state folder and only records the address. Files are also encrypted on a network drive, and in a
    folder of another account, or one that a group or all may write to: whoever replaced a file could otherwise make a worker
    run it.
    """

    def __init__(self, parent: str | Path | None = None) -> None:
        address = str(parent) if is_address(parent) else None
        home = (Path(parent) if parent is not None and address is None else state_folder() / "work").absolute()
        made = not home.exists()
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        sweep(home)
        sweep_elsewhere()
        self.path, lock = _locked_folder(home)
        if address is None:  # files in a store are encrypted; the next release that uses a store deletes those left there
            _note(home)
        self._remove = weakref.finalize(self, _remove, self.path, lock, made)
        self.files = WorkFiles(str(self.path))
        if address is not None:
            self.files = WorkFiles(f"{address.rstrip('/')}/{PREFIX}{secrets.token_hex(8)}", secrets.token_bytes(32))
            (self.path / ELSEWHERE).write_text(self.files.where, encoding="utf-8")  # before any file is there
        elif on_network(home) or _is_open(home):
            self.files = WorkFiles(f"file://{self.path}/encrypted", secrets.token_bytes(32))
        if self.files.key is not None:
            self.files.try_out()

    def close(self) -> None:
        """Delete the folder and everything in it."""
        self._remove()


def sweep(home: Path) -> list[Path]:
    """Delete work folders of this account whose process is gone, and return them."""
    stale = []
    for path in home.glob(f"{PREFIX}*-*"):
        if not _is_own(path) or not path.name.removeprefix(PREFIX).partition("-")[0].isdigit():
            continue
        lock = _lock(path) if os.name != "nt" else None if _alive(path.name) else -1
        if lock is not None:
            if _delete(path):
                stale.append(path)
            _unlock(lock)
    return stale


def sweep_elsewhere() -> None:
    """Delete what killed processes of this account left in other folders, such as those given by `--work`."""
    for home in _noted():
        sweep(home)
        _forget(home)


def _noted() -> list[Path]:
    """Return the recorded folders; none if the state folder belongs to another account, which cleans them up itself."""
    homes = []
    with suppress(PermissionError):
        for note in (state_folder() / NOTES).glob("*"):
            with suppress(FileNotFoundError):  # dropped by another process just now
                homes.append(Path(note.read_text(encoding="utf-8")))
    return homes


def _note(home: Path) -> None:
    """Record a folder that contains work folders. If the state folder is read-only, only its next user cleans it up."""
    note = _note_of(home)
    with suppress(OSError):
        note.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        draft = note.parent.with_name(f"{NOTES}-{secrets.token_hex(8)}")
        handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(str(home))
        draft.replace(note)


def _forget(home: Path) -> None:
    """Delete the record of a folder that no longer contains work folders."""
    if not _has_folders(home):
        _note_of(home).unlink(missing_ok=True)
        if _has_folders(home):  # somebody began to work there meanwhile
            _note(home)


def _note_of(home: Path) -> Path:
    return state_folder() / NOTES / hashlib.sha256(str(home).encode()).hexdigest()[:24]


def _has_folders(home: Path) -> bool:
    return any(True for _ in home.glob(f"{PREFIX}*-*"))


def _is_own(path: Path) -> bool:
    """Return whether this is a folder (not a link) of this account that nobody else can write to. Then its note is trusted."""
    try:
        found = path.lstat()
    except OSError:
        return False
    closed = os.name == "nt" or (found.st_uid == os.geteuid() and not found.st_mode & 0o022)
    return stat.S_ISDIR(found.st_mode) and closed


def _is_open(home: Path) -> bool:
    """Return whether an account other than root could replace files in a folder.

    That is its owner, and without a sticky bit its group or all, where they may write. Folders of projects are often open to a
    group.
    """
    if os.name == "nt":
        return False
    found = home.stat()
    return found.st_uid not in (0, os.geteuid()) or bool(found.st_mode & 0o022 and not found.st_mode & 0o1000)


def state_folder() -> Path:
    """Return the folder that holds ledgers and private work files: `MURMURATE_STATE`, else the platform's state folder."""
    given = os.environ.get("MURMURATE_STATE")
    if given:
        return Path(given)
    home = os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state"
    return Path(home) / "murmurate"


def _locked_folder(home: Path) -> tuple[Path, int]:
    """Make a folder and lock it, again where somebody swept it in between."""
    for _ in range(TRIES):
        path = Path(tempfile.mkdtemp(prefix=f"{PREFIX}{os.getpid()}-", dir=home))
        lock = -1 if os.name == "nt" else _lock(path, without=-1)
        if lock is not None and path.is_dir():
            return path, lock
        _unlock(lock)
    raise OSError(errno.EBUSY, "a private work folder was deleted by another process again and again", str(home))


def _lock(path: Path, without: int | None = None) -> int | None:
    """Lock a folder; None where another process has it or it is gone, `without` where the disk knows no locks."""
    import fcntl

    try:
        handle = os.open(path, os.O_RDONLY)
    except OSError:
        return None
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        os.close(handle)
        return None if error.errno in (errno.EWOULDBLOCK, errno.EACCES) else without
    return handle


def _unlock(lock: int | None) -> None:
    if lock is not None and lock >= 0:
        os.close(lock)


def _delete(path: Path) -> bool:
    """Delete a work folder, and first what it keeps in a store; where that cannot be, it stays for the next sweep."""
    noted = path / ELSEWHERE
    try:
        where = noted.read_text(encoding="utf-8") if noted.is_file() else ""
        if _STORED.fullmatch(where):  # nothing but a folder of work files is ever deleted
            remove_store(where)
    except (OSError, MurmurateError):
        return False
    gone = path.with_name(f"{path.name}-gone")
    with suppress(OSError):  # a worker that still writes would otherwise put a file into the folder while it is deleted
        path = path.rename(gone)
    shutil.rmtree(path, ignore_errors=True)
    return True


def _remove(path: Path, lock: int, with_parent: bool) -> None:
    _delete(path)
    _unlock(lock)
    _forget(path.parent.absolute())
    if with_parent:
        with suppress(OSError):
            path.parent.rmdir()  # where nobody else works in it


def _alive(name: str) -> bool:
    try:
        os.kill(int(name.removeprefix(PREFIX).partition("-")[0]), 0)
    except ProcessLookupError:
        return False
    except OSError:
        return True  # a process of somebody else
    return True
