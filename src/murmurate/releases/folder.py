"""Write release folders whole or not at all, read them back, verify them."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import polars as pl

from murmurate import __version__
from murmurate.core.foreign import damaged
from murmurate.core.guarantee import Guarantee
from murmurate.core.parquet import read_table
from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.core.views import view
from murmurate.engine import cores
from murmurate.errors import OutputError, VerifyError
from murmurate.releases import kind_of
from murmurate.releases.kind import Kind
from murmurate.releases.manifest import FILE, STATEMENT, Manifest, hash_file, read_manifest, statement_text
from murmurate.spaces.places import PLACES, write_places
from murmurate.spaces.zones import Zones

DATA = "data.parquet"
"""File of released trips, or folder of such files where there are many trips."""
HASHERS = 8
"""Most threads that hash files at a time. Set by hand: a disk hardly serves more."""


@dataclass(frozen=True)
class Release:
    """Hold what may leave: a folder of files and the manifest that describes them."""

    folder: Path
    manifest: Manifest
    space: Space | None = None

    @cached_property
    def trips(self) -> Trips:
        """The released trips, where the folder holds any."""
        path = self.folder / DATA
        if not path.exists():
            raise VerifyError(f"{self.folder} holds a release of kind {self.manifest.kind!r}, which has no trips.")
        table = read_table(path, without=("geometry",))  # the same places again, for maps
        with damaged(path, "released trips"):
            return Trips(table, self.space, self.manifest.time_zone)

    def with_trips(self, trips: Trips) -> Release:
        """Return the same release with some of its trips in place of all, for judging one that is too large for memory."""
        some = replace(self)
        vars(some)["trips"] = trips  # where the cached property keeps what it read
        return some

    @property
    def guarantee(self) -> Guarantee:
        """What it promises."""
        return self.manifest.guarantee

    @property
    def kind(self) -> Kind:
        """What it holds, and what can be done with it."""
        return kind_of(self.manifest)

    @cached_property
    def data(self) -> Any:
        """What the folder holds, as its kind reads it: `Trips`, `LinkFlows`, ..."""
        with damaged(self.folder, f"a release of kind {self.manifest.kind}"):
            return self.kind.read(self)

    def __len__(self) -> int:
        """Return how many trips it holds; 0 where it holds no single trips."""
        return self.kind.n_trips(self.data)

    def __bool__(self) -> bool:
        return True

    def head(self, n: int = 5) -> pl.DataFrame:
        """Return the first rows of its table."""
        return self.to_polars().head(n)

    def to_polars(self) -> pl.DataFrame:
        """Return its main table: points of trips, or counts of links."""
        table: pl.DataFrame = self.data.table
        return table

    def to_pandas(self) -> Any:
        """Return its main table as a pandas frame (needs the extra `geo`)."""
        return self.trips.to_pandas() if self.kind.identifiers else self.to_polars().to_pandas()

    def to_geopandas(self) -> Any:
        """Return the released points as a geopandas frame (needs the extra `geo`)."""
        return self.trips.to_geopandas()

    def plot(self, **options: Any) -> Any:
        """Draw what it holds, from the release alone; `base` is a base map (`murmurate.report.base_file.read_base`)."""
        return view("release.plot", self, **options)

    def _repr_html_(self) -> str:
        return str(view("release.html", self))

    def export(self, *, format: str, out: str | Path, prior: str | Path | None = None) -> Path:
        """Write it in another format (docs/exports.md), with what it promises in a file beside it; free."""
        from murmurate.exports import export

        return export(self, format=format, out=out, prior=prior)


@contextmanager
def new_folder(out: Path) -> Iterator[Path]:
    """Give the block a temporary folder that becomes `out` at the end; nothing remains where the block fails."""
    check_free(out)
    temporary: Path | None = None
    try:
        out.parent.mkdir(parents=True, exist_ok=True)
        temporary = Path(tempfile.mkdtemp(dir=out.parent, prefix=f".{out.name[:40]}-"))  # may be no longer than out
        yield temporary
        for path in temporary.rglob("*"):
            _settle(path)
        temporary.chmod(0o755)
        temporary.rename(out)
        _settle(out.parent)
    except OSError as error:
        raised = OutputError(_why(out, error))
        raised.charged, raised.resumable = getattr(error, "charged", None), getattr(error, "resumable", False)
        raise raised from error
    finally:
        if temporary is not None:
            shutil.rmtree(temporary, ignore_errors=True)


def check_free(out: Path) -> None:
    """Refuse an output that exists or cannot be made, before anything is spent."""
    try:
        there = _is_there(out)
        parent = next(path for path in (out.absolute(), *out.absolute().parents) if path.exists())
    except (OSError, ValueError) as error:  # a name that is too long, or holds a zero byte
        raise OutputError(f"{out} cannot be made: {getattr(error, 'strerror', None) or error}.") from None
    if there:
        raise OutputError(f"{out} exists already; releases never overwrite. Name a new folder with --out.")
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise OutputError(f"{out} cannot be made: {parent} is not a folder that may be written to.")


def _is_there(path: Path) -> bool:
    try:
        path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return False
    return True


def seal(folder: Path, manifest: Manifest, space: Space | None = None, hashes: Mapping[str, str] | None = None) -> Manifest:
    """Write outlines of zones, the statement and, last, the manifest with the hash of every other file.

    `hashes` are those of the files in the folder of trips, by name, where whoever wrote them has hashed them.
    """
    if isinstance(space, Zones) and not (folder / PLACES).is_file():
        write_places(space, folder / PLACES)
    (folder / STATEMENT).write_text(statement_text(manifest), encoding="utf-8")
    known = {f"{DATA}/{name}": digest for name, digest in (hashes or {}).items()}
    found = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*") if path.is_file()}
    known |= _hashed({name: path for name, path in found.items() if name not in known})
    sealed = replace(manifest, files={name: known[name] for name in sorted(known)})
    (folder / FILE).write_text(sealed.text(), encoding="utf-8")
    return sealed


def open_release(folder: str | Path, *, read_space: bool = False, space: Space | None = None) -> Release:
    """Open a release folder and check its hashes.

    `space` is its space; otherwise `read_space` reads it from the folder or the parameters.
    """
    path = Path(folder)
    manifest = read_manifest(path)
    problems = _problems(path, manifest)
    if problems:
        raise VerifyError(f"{path} is not the release its manifest describes:\n" + "\n".join(problems))
    if space is None and read_space:
        space = kind_of(manifest).space(path, manifest)
    return Release(path, manifest, space)


def _problems(folder: Path, manifest: Manifest) -> list[str]:
    everything = {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}
    links = [name for name, path in everything.items() if path.is_symlink()]
    if links:  # a release is whole by itself; a link would have a reader open files of the reader's own
        return [f"- {name} is a link to somewhere else" for name in links]
    found = {name: path for name, path in everything.items() if path.is_file()}
    problems = [f"- {name} is missing" for name in manifest.files if name not in found]
    problems += [f"- {name} is not in the manifest" for name in found if name not in manifest.files and name != FILE]
    hashes = _hashed({name: found[name] for name in manifest.files if name in found})
    problems += [f"- {name} was changed (its hash differs)" for name in hashes if hashes[name] != manifest.files[name]]
    same_words = manifest.murmurate == __version__  # another version may put the same promise into other words
    if STATEMENT not in manifest.files:
        problems.append(f"- {STATEMENT} is not in the manifest")
    if not problems and same_words and found[STATEMENT].read_bytes() != statement_text(manifest).encode():
        problems.append(f"- {STATEMENT} does not say what the manifest says")
    return problems


def _hashed(paths: Mapping[str, Path]) -> dict[str, str]:
    """Hash files, several at a time: hashing runs outside Python's lock."""
    with ThreadPoolExecutor(min(HASHERS, cores())) as pool:
        return dict(zip(paths, pool.map(hash_file, paths.values()), strict=True))


def _settle(path: Path) -> None:
    """Push a file or folder to the disk, so that a release that was announced is there after a power cut."""
    if path.is_dir() and os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def _why(out: Path, error: OSError) -> str:
    reasons: dict[int | None, str] = {
        errno.ENOSPC: "the disk is full",
        errno.EROFS: "the disk is read-only",
        errno.EACCES: "it may not be written to",
        errno.EEXIST: "it exists already",
        errno.ENOTEMPTY: "it exists already",
    }
    return f"{out} could not be written: {reasons.get(error.errno, str(error))}. Nothing was left there."
