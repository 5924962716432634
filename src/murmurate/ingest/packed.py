"""Pack settled runs for memory or disk: 12 bytes a point where this loses nothing.

Degrees that lie on the microdegree lattice become whole microdegrees, times on a whole second become seconds since 2000;
columns that would lose anything stay as they are.
"""

from __future__ import annotations

import mmap
from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
import pyarrow as pa
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.core.trips import TIME
from murmurate.ingest.runs import Runs
from murmurate.ingest.times import counts_of

Whole = NDArray[np.int32]

_YEAR_2000_US = 946_684_800_000_000
"""2000-01-01 00:00 UTC in microseconds since 1970: seconds from there on fit 32 bits until 2068."""
_BLOCK = 2**24
"""Numbers in a block of memory (64 MiB). Set by hand."""


class Blocks:
    """Hands out stretches of large blocks of memory.

    The blocks are mapped here because numpy requests huge pages, and on a virtual machine the first access to those costs
    more than everything else done with a point.
    """

    def __init__(self) -> None:
        self._block: Whole = np.empty(0, np.int32)

    def take(self, size: int) -> Whole:
        """Return an array of this size, not cleared."""
        if size > len(self._block):
            self._block = np.frombuffer(mmap.mmap(-1, 4 * max(size, _BLOCK)), np.int32)
        taken, self._block = self._block[:size], self._block[size:]
        return taken


@dataclass(frozen=True)
class Packed:
    """Runs whose points are whole numbers where they can be."""

    uid: pl.Series
    tid: pl.Series
    lengths: Integers
    whole: dict[str, Whole]
    """Columns that became whole numbers: lat, lng in microdegrees, datetime in seconds since 2000."""
    rest: pl.DataFrame
    """Columns that did not."""

    @classmethod
    def of(cls, runs: Runs, blocks: Blocks) -> Packed:
        """Pack runs into memory from `blocks`."""
        whole: dict[str, Whole] = {}
        for name in ("datetime", "lat", "lng"):
            if name in runs.points.columns:
                column = counts_of(runs.points[name]) if name == "datetime" else runs.points[name].to_numpy()
                into = blocks.take(len(column))
                if (_seconds if name == "datetime" else _microdegrees)(column, into):
                    whole[name] = into
        rest = [series for series in runs.points if series.name not in whole]
        return cls(runs.uid, runs.tid, runs.lengths, whole, pl.DataFrame(rest))

    def runs(self) -> Runs:
        """Return the runs exactly as they were."""
        columns = list(self.rest)
        for name, values in self.whole.items():
            if name == "datetime":
                columns.append(_series(name, _instants(values), pa.timestamp("us", "UTC")))
            else:
                columns.append(_series(name, _degrees(values), pa.float64()))
        return Runs(self.uid, self.tid, self.lengths, pl.DataFrame(columns))

    def frames(self) -> tuple[pl.DataFrame, pl.DataFrame]:
        """Return names of runs, and points, for the disk."""
        names = pl.DataFrame({"uid": self.uid, "tid": self.tid, "length": self.lengths})
        packed = [_series(name, values, pa.int32()) for name, values in self.whole.items()]
        return names, pl.DataFrame([*packed, *self.rest])

    @classmethod
    def from_frames(cls, names: pl.DataFrame, points: pl.DataFrame) -> Packed:
        """Return what `frames` wrote."""
        whole = {series.name: series.to_numpy() for series in points if _is_packed(series)}
        rest = pl.DataFrame([series for series in points if not _is_packed(series)])
        return cls(names["uid"], names["tid"], names["length"].to_numpy(), whole, rest)


def _is_packed(series: pl.Series) -> bool:
    return series.name in ("datetime", "lat", "lng") and series.dtype == pl.Int32


def _series(name: str, values: NDArray[Any], kind: pa.DataType) -> pl.Series:
    """Return a column over the memory of an array."""
    array = pa.Array.from_buffers(kind, len(values), [None, pa.py_buffer(values)])
    series = pl.Series(name, array)
    return series.cast(TIME) if name == "datetime" and kind != pa.int32() and series.dtype != TIME else series


@njit(cache=True, nogil=True)
def _microdegrees(degrees: NDArray[np.float64], into: Whole) -> bool:
    """Write whole microdegrees; return whether every value comes back exactly."""
    lost = 0
    for k in range(len(degrees)):  # no early end, so that the loop runs on vectors
        nearest = np.rint(degrees[k] * 1e6)
        into[k] = np.int32(nearest)
        lost += nearest / 1e6 != degrees[k]
    return lost == 0


@njit(cache=True, nogil=True)
def _seconds(instants: Integers, into: Whole) -> bool:
    """Write seconds since 2000; return whether every value comes back exactly."""
    lost = 0
    for k in range(len(instants)):
        since = instants[k] - _YEAR_2000_US
        second = np.rint(since * 1e-6)  # exact enough to find the second; the next line checks whether it was whole
        lost += np.int64(second) * 1_000_000 != since or abs(second) > 2_147_483_647
        into[k] = np.int32(second)
    return lost == 0


@njit(cache=True, nogil=True)
def _degrees(whole: Whole) -> NDArray[np.float64]:
    degrees = np.empty(len(whole), np.float64)
    for k in range(len(whole)):
        degrees[k] = whole[k] / 1e6
    return degrees


@njit(cache=True, nogil=True)
def _instants(seconds: Whole) -> Integers:
    instants = np.empty(len(seconds), np.int64)
    for k in range(len(seconds)):
        instants[k] = np.int64(seconds[k]) * 1_000_000 + _YEAR_2000_US
    return instants
