"""Keep what the custodian needs beside the ledger about a release: where it came from, and which trip was whose.

Private. Nothing of it is ever written into a release folder, and the pairing can be deleted on its own.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, Self

import polars as pl
import pyarrow.parquet as pq

from murmurate.core.ledger import Ledger
from murmurate.core.pseudonyms import Named
from murmurate.core.trips import Identity

PAIRING = "pairing.parquet"
"""File that says which original each released trip came from."""
HALF_PAIRING = "pairing.half"
"""The same while it is written; a killed release leaves it."""
SOURCE = "source.json"
"""File that holds the fingerprint of the private file, and how it was read and cleaned."""
UNFINISHED = "unfinished"
"""Folder of what an interrupted run has drawn."""


class Private(Protocol):
    """What is noted about private trips, in memory or in parts."""

    @property
    def identity(self) -> Identity: ...

    @property
    def time_zone(self) -> str: ...

    @property
    def n_points(self) -> int: ...


class Internal:
    """Read and write the internal folder of one release."""

    def __init__(self, ledger: Ledger, release_id: str) -> None:
        self.release_id = release_id
        self.folder: Path = ledger.internal_folder / release_id

    def make(self) -> Path:
        """Make the folder, closed to everyone else."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        return self.folder

    def note_source(self, private: Private) -> None:
        """Remember the file a release comes from, how it was read and cleaned, and how many points that gave."""
        made_with = private.identity.made_with
        values = {
            "fingerprint": private.identity.fingerprint,
            "time_zone": private.time_zone,
            "n_points": private.n_points,
            "read": made_with.get("read", {}),
            "clean": made_with.get("clean", {}),
        }
        (self.make() / SOURCE).write_text(json.dumps(values, default=str) + "\n", encoding="utf-8")

    def drop(self) -> None:
        """Forget a release that was refused."""
        (self.folder / SOURCE).unlink(missing_ok=True)
        self.folder.rmdir()

    def made_from(self) -> dict[str, Any]:
        """Return what `note_source` wrote; nothing where it is not known."""
        path = self.folder / SOURCE
        return dict(json.loads(path.read_text(encoding="utf-8"))) if path.is_file() else {}

    def source(self) -> str | None:
        """Return the fingerprint of the file the release came from, where it is known."""
        return self.made_from().get("fingerprint")

    def pairing(self) -> pl.DataFrame | None:
        """Return uid, tid, original_uid, original_tid of every released trip, where that was kept."""
        path = self.folder / PAIRING
        return pl.read_parquet(path) if path.is_file() else None

    def forget_pairing(self) -> bool:
        """Delete the pairing; True where there was one."""
        path = self.folder / PAIRING
        there = path.is_file()
        path.unlink(missing_ok=True)
        (self.folder / HALF_PAIRING).unlink(missing_ok=True)
        return there

    def unfinished(self) -> Path:
        """Return where a run keeps how far it got, so that it can go on under the same charge."""
        return self.make() / UNFINISHED

    @property
    def has_unfinished(self) -> bool:
        """Whether anything is kept of a run that did not end."""
        return (self.folder / UNFINISHED).is_dir()

    def forget_unfinished(self) -> None:
        """Delete what a run kept, once it is written."""
        shutil.rmtree(self.folder / UNFINISHED, ignore_errors=True)


class PairingFile:
    """Writes the names of released trips, part by part; a context at whose end, without an error, the file is there."""

    def __init__(self, internal: Internal) -> None:
        self._path = internal.make() / PAIRING
        self._half = internal.folder / HALF_PAIRING
        self._writer: pq.ParquetWriter | None = None

    def __call__(self, named: Named) -> None:
        """Add the names of one part."""
        self.add(pl.DataFrame(vars(named)))

    def add(self, names: pl.DataFrame) -> None:
        """Add the names of one part, with those of the originals."""
        table = names.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String)).to_arrow()
        if self._writer is None:
            self._writer = pq.ParquetWriter(self._half, table.schema, compression="NONE")  # random names do not shrink
        self._writer.write_table(table)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        if self._writer is not None:
            self._writer.close()
            if kind is None:
                self._half.replace(self._path)
            else:
                self._half.unlink()
