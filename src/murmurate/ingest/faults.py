"""Collect everything wrong with an input while it is read, and raise it at once."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.core.foreign import FOREIGN, shown
from murmurate.errors import Fault, InputError, MurmurateError

FIRST_ROWS = 5
"""Row numbers that a message names at most. Set by hand."""


@dataclass(frozen=True)
class Place:
    """Where the rows of a batch stand in their file; rows and lines count from 1."""

    file: str | None = None
    first_row: int = 1
    first_line: int | None = None
    """The file line of the first row, where each row is one line."""


@dataclass
class _Group:
    count: int = 0
    rows: list[int] = field(default_factory=list)
    lines: list[int] = field(default_factory=list)
    sample: str | None = None


class Faults:
    """Faults grouped by file, column and reason, each with its count and its first rows."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str | None, str | None, str], _Group] = {}
        self.remedies: list[str] = []
        self.suggested: dict[str, str] = {}
        """Columns that would probably open the file."""

    def __bool__(self) -> bool:
        return bool(self._groups)

    def __len__(self) -> int:
        return len(self._groups)

    def clear(self) -> None:
        """Forget everything, before the same input is read again from its start."""
        self._groups.clear()
        self.remedies.clear()
        self.suggested.clear()

    def add(self, reason: str, *, file: str | None = None, column: str | None = None, remedy: str | None = None) -> None:
        """Add a fault of a whole file or column."""
        self._groups.setdefault((file, column, reason), _Group())
        if remedy and remedy not in self.remedies:
            self.remedies.append(remedy)

    def add_rows(
        self,
        reason: str,
        bad: NDArray[np.bool_] | pl.Series,
        place: Place,
        *,
        column: str | None = None,
        values: pl.Series | None = None,
        remedy: str | None = None,
    ) -> None:
        """Add a fault of the rows of a batch where `bad` holds; nothing when it holds nowhere."""
        positions = np.flatnonzero(np.asarray(bad))
        rows = positions + place.first_row
        lines = positions + place.first_line if place.first_line is not None else None
        first = values[int(positions[0])] if values is not None and len(positions) else None
        sample = written_like(first) if isinstance(first, str) else None  # a number is a place
        self.add_numbered(reason, rows, file=place.file, column=column, lines=lines, sample=sample, remedy=remedy)

    def add_numbered(
        self,
        reason: str,
        rows: Sequence[int] | NDArray[np.int64],
        *,
        file: str | None,
        column: str | None = None,
        lines: Sequence[int] | NDArray[np.int64] | None = None,
        sample: str | None = None,
        remedy: str | None = None,
    ) -> None:
        """Add a fault of rows given by number."""
        if len(rows) == 0:
            return
        self.add(reason, file=file, column=column, remedy=remedy)
        group = self._groups[(file, column, reason)]
        group.count += len(rows)
        more = FIRST_ROWS - len(group.rows)
        group.rows += [int(row) for row in rows[:more]]
        if lines is not None:
            group.lines += [int(line) for line in lines[:more]]
        group.sample = group.sample or sample

    def listed(self) -> list[Fault]:
        """Return the faults in the order they were first met."""
        return [
            Fault(_worded(reason, group), file=file, row=group.rows[0] if group.rows else None, column=column)
            for (file, column, reason), group in self._groups.items()
        ]

    def raise_if_any(self) -> None:
        """Raise one InputError with everything, if there is anything."""
        if self._groups:
            raise InputError(self.listed(), " ".join(self.remedies) or None, self.suggested)


def written_like(text: str) -> str:
    """Return how a value is written, without the value: digits become 9, letters a or A. Error texts end up in logs.

    >>> written_like("12. Mai 2024 08:15")
    "'99. Aaa 9999 99:99'"
    """
    masked = "".join("9" if c.isdigit() else ("A" if c.isupper() else "a") if c.isalpha() else c for c in text[:60])
    return repr(masked)


def _worded(reason: str, group: _Group) -> str:
    if not group.rows:
        return reason
    text = f"{reason}, written like {group.sample}" if group.sample else reason
    if group.count > 1:
        more = ", ..." if group.count > len(group.rows) else ""
        text += f"; {group.count:,} rows: {', '.join(map(str, group.rows))}{more}"
    if group.lines:
        more = ", ..." if group.count > len(group.lines) else ""
        text += f" (file line {', '.join(map(str, group.lines))}{more})"
    return text


@contextmanager
def guarded(faults: Faults, file: str | None) -> Iterator[None]:
    """Turn whatever a library raises on bad bytes into a fault of this file."""
    try:
        yield
    except InputError as error:
        faults.suggested |= error.suggested
        for fault in error.faults:
            own = fault.file if fault.file and Path(fault.file).name == fault.file else file  # what others call by its path
            faults.add(fault.reason, file=own, column=fault.column, remedy=error.remedy)
    except MurmurateError:
        raise
    except FOREIGN as error:
        faults.add(explain(error), file=file)


def explain(error: BaseException) -> str:
    """Return a library's error as a reason a custodian can act on."""
    if isinstance(error, FileNotFoundError):
        return "no such file"
    if isinstance(error, PermissionError):
        return "permission denied: this account may not read it"
    if isinstance(error, IsADirectoryError):
        return "is a folder, where a file was expected"
    if isinstance(error, MemoryError):
        return "does not fit into memory; read it in parts with murmurate.ingest.scan"
    return f"cannot be read; it looks damaged or truncated ({shown(error)})"
