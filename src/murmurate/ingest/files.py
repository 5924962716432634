"""Find the files of a source, their kind and their fingerprint."""

from __future__ import annotations

import glob
import hashlib
import os
import stat
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmurate.errors import InputError, ParameterError
from murmurate.ingest.faults import Faults, explain

KINDS = {
    ".csv": "text",
    ".tsv": "text",
    ".tab": "text",
    ".txt": "text",
    ".parquet": "parquet",
    ".geoparquet": "parquet",
    ".pq": "parquet",
    ".gpx": "gpx",
    ".geojson": "geojson",
    ".json": "json",
    ".jsonl": "json",
    ".ndjson": "json",
}
"""Kind of file by suffix."""
_CONVERT = {
    ".xlsx": "Save the sheet as CSV first.",
    ".xls": "Save the sheet as CSV first.",
    ".ods": "Save the sheet as CSV first.",
    ".zip": "Unpack it first.",
    ".rar": "Unpack it first.",
    ".7z": "Unpack it first.",
    ".gpkg": "Write the layer as GeoParquet or GeoJSON first.",
    ".shp": "Write the layer as GeoParquet or GeoJSON first.",
    ".kml": "Write it as GeoJSON or GPX first.",
}
"""What to do with common files that are not read."""
COMPRESSED = (".gz", ".zst")
"""Suffixes of compressed files."""
_MAGIC = {b"\x1f\x8b": "gzip", b"\x28\xb5\x2f\xfd": "zstd"}
"""First bytes of compressed files, and pyarrow's name of the compression."""

BOMB_FLOOR_BYTES = 64 * 2**20
"""Bytes to which a compressed file may expand by any factor. Set by hand: read, they take less than 1 GB."""


@dataclass(frozen=True)
class SourceFile:
    """One file to read."""

    path: Path
    kind: str
    root: Path | None = None
    """The folder that was given, if it was one."""
    number: int | None = None
    """Its place among the files of a folder or pattern, by name from 1 on; none for a file that was named."""

    @property
    def name(self) -> str:
        """What messages call it. They end up in logs: no folder is named, nor a file of a folder, often called by a uid."""
        return self.path.name if self.number is None else f"file {self.number:,} in the order of names"

    @property
    def stem(self) -> str:
        """The name without folder and suffixes."""
        return bare_name(self.path)


def bare_name(path: str | Path) -> str:
    """Return a file's name without folder and endings."""
    return _bare(Path(path)).stem


def find(
    source: str | os.PathLike[str], faults: Faults, *, suffixes: Iterable[str] | None = None
) -> tuple[list[SourceFile], list[str]]:
    """Return the files of a path, folder or glob in the order of their names, and the names that were left out.

    With `suffixes` (a known layout) only these are read, and any file given by its own name.
    """
    wanted = tuple(suffixes) if suffixes is not None else None
    text = os.fspath(source)
    if not isinstance(text, str) or "\0" in text or not text:
        raise ParameterError(f"a source is a path, a glob or a frame; got {source!r}.")
    path = Path(text)
    try:
        if path.is_dir():
            return _in_folder(path, sorted(_walk(path)), faults, wanted)
        if not path.exists() and glob.has_magic(text):
            matches = sorted(Path(match) for match in glob.glob(text, recursive=True) if not Path(match).is_dir())
            if not matches:
                faults.add("no file matches this pattern", file=text)
            return _in_folder(None, matches, faults, wanted)
        return _one(path, faults, wanted), []
    except OSError as error:
        faults.add(explain(error), file=text)
        return [], []


def _one(path: Path, faults: Faults, wanted: tuple[str, ...] | None) -> list[SourceFile]:
    # a path where nothing is gives nothing away, and shows the mistake in it
    if not _readable(path, faults, path.name if path.exists() else str(path)):
        return []
    kind = _kind(path)
    if wanted is not None:
        return [SourceFile(path, kind or "text")]
    if kind is None:
        known = ", ".join(KINDS)
        convert = _CONVERT.get(path.suffix.lower(), "")
        faults.add(
            f"unknown kind of file: {path.suffix or 'no suffix'}",
            file=path.name,
            remedy=f"{convert} Known are {known}, and .gz and .zst of text.".strip(),
        )
        return []
    return [SourceFile(path, kind)]


def _in_folder(
    root: Path | None, paths: Sequence[Path], faults: Faults, wanted: tuple[str, ...] | None
) -> tuple[list[SourceFile], list[str]]:
    files, passed = [], []
    for number, path in enumerate(paths, start=1):
        kind = _kind(path)
        fits = kind is not None if wanted is None else path.name.endswith(wanted)
        if not fits:
            passed.append(str(path))
        else:
            file = SourceFile(path, kind or "text", root, number)
            if _readable(path, faults, file.name):
                files.append(file)
    if root is not None and not files and not faults:
        what = "no file of a known format" if wanted is None else f"no file ending in {' or '.join(wanted)}"
        faults.add(f"a folder with {what} in it", file=root.name)
    kinds = sorted({file.kind for file in files})
    if wanted is None and len(kinds) > 1:
        counts = ", ".join(f"{sum(file.kind == kind for file in files)} {kind}" for kind in kinds)
        faults.add(
            f"a mixture of formats ({counts})",
            file=root.name if root else None,
            remedy="Name one format with a pattern such as 'folder/*.csv'.",
        )
        return [], passed
    return files, passed


def _walk(folder: Path) -> Iterator[Path]:
    """Yield every file below a folder except hidden and flag files (`.x`, `_SUCCESS`)."""
    for parent, folders, names in os.walk(folder, onerror=_raise):
        folders[:] = sorted(name for name in folders if not name.startswith((".", "_")))
        for name in names:
            if not name.startswith((".", "_")):
                yield Path(parent) / name


def _raise(error: OSError) -> None:
    raise error


def _readable(path: Path, faults: Faults, name: str) -> bool:
    """Return whether this is a regular, readable file that is not empty; add a fault otherwise."""
    try:
        state = path.stat()
        if not stat.S_ISREG(state.st_mode):
            faults.add("not a regular file", file=name)
            return False
        if state.st_size == 0:
            faults.add("is empty (0 bytes)", file=name)
            return False
        with path.open("rb") as handle:
            handle.read(1)
    except OSError as error:
        faults.add(explain(error), file=name)
        return False
    return True


def _bare(path: Path) -> Path:
    return path.with_suffix("") if path.suffix.lower() in COMPRESSED else path


def _kind(path: Path) -> str | None:
    kind = KINDS.get(_bare(path).suffix.lower())
    return None if kind == "parquet" and path.suffix.lower() in COMPRESSED else kind


# -- bytes ---------------------------------------------------------------------------------------------------------


def is_compressed(start: bytes) -> str | None:
    """Return how a file that begins so is compressed; None where it is not."""
    return next((name for magic, name in _MAGIC.items() if start.startswith(magic)), None)


def chunks(path: Path, size: int, max_expansion: int) -> Iterator[bytes]:
    """Yield the bytes of a file, decompressed where they are gzip or zstd, `size` at a time."""
    import pyarrow as pa

    with path.open("rb") as raw:
        compression = is_compressed(raw.read(4))
        raw.seek(0)
        if compression is None:
            while chunk := raw.read(size):
                yield chunk
            return
        max_bytes = max(BOMB_FLOOR_BYTES, max_expansion * path.stat().st_size)
        total = 0
        with pa.CompressedInputStream(pa.PythonFile(raw, mode="r"), compression) as stream:
            while chunk := stream.read_buffer(size).to_pybytes():  # `read` loses its memory where the file is damaged
                total += len(chunk)
                if total > max_bytes:
                    raise InputError(
                        f"expands to more than {max_expansion} times its size: refused as a decompression bomb",
                        "Decompress it yourself if it is right, or raise max_expansion.",
                    )
                yield chunk


@dataclass(frozen=True)
class Seal:
    """Fingerprint and state of files, which may not change while they are read."""

    fingerprint: str
    states: tuple[tuple[int, int, int], ...]


def fingerprint(files: Sequence[SourceFile]) -> Seal:
    """Hash the bytes of all files; paths and names play no part."""
    states = states_of(files)
    digests = []
    for file in files:
        with file.path.open("rb") as handle:
            digests.append(hashlib.file_digest(handle, "sha256").hexdigest())
    whole = digests[0] if len(digests) == 1 else hashlib.sha256("\n".join(sorted(digests)).encode()).hexdigest()
    return Seal(whole, states)


def states_of(files: Sequence[SourceFile]) -> tuple[tuple[int, int, int], ...]:
    """Return size, time of change and inode of each file."""
    found: list[Any] = [file.path.stat() for file in files]
    return tuple((state.st_size, state.st_mtime_ns, state.st_ino) for state in found)


def refuse_changed(files: Sequence[SourceFile], seal: Seal) -> None:
    """Refuse files that changed since their fingerprint was taken."""
    if states_of(files) != seal.states:
        raise InputError("a file was changed while it was read", "Read it again when nobody writes to it.")
