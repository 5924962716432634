"""Keep results on disk: every finished cell in a file of its own, written whole or not at all; one tidy table of them all."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl

from murmurate.core.parameters import plain_value
from murmurate.errors import InputError, OutputError
from murmurate.judging.study.cell import SCHEMA, Outcome
from murmurate.judging.study.grid import Cell

RESULTS = "results.parquet"
"""File of the tidy table."""
ABOUT = "about.json"
"""File that says what the study was."""
CELLS = "cells"
"""Folder of finished cells, one file each."""
INTERNAL = (
    "Internal: computed from the originals without a charge, for the custodian's eyes. None of it is a release, and none of it "
    "may leave."
)
"""Notice in every file of results."""
_PART = ".part"
"""Ending of files that are not complete."""


def open_folder(out: Path) -> Path:
    """Make the folder of cells; refuse an `out` that holds something else. Incomplete files of a killed run are deleted."""
    cells = out / CELLS
    try:
        if out.exists() and not cells.is_dir() and (not out.is_dir() or any(out.iterdir())):
            raise OutputError(
                f"{out} holds something that is not a study; name a new folder, or that of a study to go on with."
            )
        cells.mkdir(parents=True, exist_ok=True, mode=0o700)
        for part in [*cells.glob(f"*{_PART}"), *out.glob(f"*{_PART}")]:
            part.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{out} cannot be written to: {error.strerror or error}.") from error
    return cells


def keep(folder: Path, outcome: Outcome) -> None:
    """Write a finished cell; it is there whole or not at all, whenever the machine stops."""
    import pyarrow.parquet as pq

    facts = {"murmurate_cell": outcome.cell.key, "rows": str(outcome.rows.height), "skipped": json.dumps(outcome.skipped)}
    with whole_file(folder / f"{outcome.cell.key}.parquet") as temporary:
        table = outcome.rows.to_arrow().replace_schema_metadata({**facts, "murmurate": INTERNAL})
        pq.write_table(table, temporary, compression="zstd", write_page_checksum=True)


def kept(folder: Path, cell: Cell) -> Outcome | None:
    """Read back a finished cell; None where there is none, or where it is damaged and must be run again."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = folder / f"{cell.key}.parquet"
    if not path.is_file():
        return None
    try:
        table = pq.read_table(path, page_checksum_verification=True)
        facts = {name.decode(): value.decode() for name, value in (table.schema.metadata or {}).items()}
        rows = pl.DataFrame(pl.from_arrow(table))
        good = facts["murmurate_cell"] == cell.key and int(facts["rows"]) == rows.height and dict(rows.schema) == SCHEMA
        return Outcome(cell, rows, json.loads(facts["skipped"])) if good else None
    except (OSError, pa.ArrowException, KeyError, ValueError, pl.exceptions.PolarsError):
        return None


def tidy(outcomes: Sequence[Outcome], study: str) -> pl.DataFrame:
    """Return one row a value: where it was measured, with which settings, in which repeat."""
    names = list(dict.fromkeys(name for outcome in outcomes for name in outcome.cell.parameters))
    types = {name: _type([outcome.cell.parameters.get(name) for outcome in outcomes]) for name in names}
    parts = []
    for outcome in outcomes:
        cell = outcome.cell
        settings = [pl.lit(_value(cell.parameters.get(name), types[name]), dtype=types[name]).alias(name) for name in names]
        parts.append(
            outcome.rows.select(
                pl.lit(study).alias("study"),
                pl.lit(cell.dataset.name).alias("dataset"),
                pl.lit(cell.label).alias("mechanism"),
                pl.lit(cell.mechanism).alias("mechanism_name"),
                pl.lit(cell.setting, dtype=pl.Int64).alias("setting"),
                *settings,
                pl.col(list(SCHEMA)),
            )
        )
    return pl.concat(parts)


def write_results(out: Path, table: pl.DataFrame, about: Mapping[str, Any]) -> None:
    """Write the tidy table and what it is, each whole or not at all."""
    import pyarrow.parquet as pq

    with whole_file(out / RESULTS) as temporary:
        noted = table.to_arrow().replace_schema_metadata({"murmurate": INTERNAL})
        pq.write_table(noted, temporary, compression="zstd", write_page_checksum=True)
    with whole_file(out / ABOUT) as temporary:
        temporary.write_text(json.dumps({"internal": True, "note": INTERNAL, **about}, indent=2, default=str), encoding="utf-8")


def read_results(out: str | Path) -> pl.DataFrame:
    """Read the tidy table of a finished study; a damaged one is refused with what to do."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path = Path(out) / RESULTS
    if not path.is_file():
        raise InputError(f"{path} does not exist.", "run the study (again): cells that are finished are not run twice.")
    try:
        return pl.DataFrame(pl.from_arrow(pq.read_table(path, page_checksum_verification=True)))
    except (OSError, pa.ArrowException, pl.exceptions.PolarsError) as error:
        reason = str(error).splitlines()[0]
        raise InputError(
            f"{path} is damaged or only half of it was written: {reason}",
            "run the study again with the same --out: the table is made anew from the finished cells.",
        ) from None


@contextmanager
def whole_file(path: Path) -> Iterator[Path]:
    """Give the block a temporary path that becomes `path` at the end, on the disk before it has that name."""
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-", suffix=_PART)
        os.close(handle)
        temporary = Path(name)
        try:
            yield temporary
            with temporary.open("rb") as written:
                os.fsync(written.fileno())
            temporary.replace(path)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"{path} could not be written: {error.strerror or error}.") from error


def _type(values: Sequence[Any]) -> Any:
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, bool) for value in there):
        return pl.Boolean
    if there and all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in there):
        return pl.Float64
    return pl.String


def _value(value: Any, kind: Any) -> Any:
    if value is None or kind != pl.String:
        return value
    plain = plain_value(value)
    return plain if isinstance(plain, str) else json.dumps(plain)
