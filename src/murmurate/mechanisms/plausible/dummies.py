"""Dummies: hide a true place among the places of people who do not exist, at every query to a location service.

A pool of synthetic days (a `plausible` release) is packed into a small file for a phone. A device picks a few of them by a
secret of its own and, whenever it queries, sends the cells where these are at that moment along with its own cell.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import struct
import zlib
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Literal
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from murmurate.core.parameters import one_of, whole
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.profiles.aggregate import Aggregate
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid

MAGIC = b"MURMDUM1"
"""First bytes of a pool file; the digit is the version of the format."""

MOST_TRACES = 1_000_000
"""Most traces of a pool, about 15 MB as a file; more is no file for a phone."""

MOST_BYTES = 256 * 2**20
"""Most bytes a pool file may unpack to, so that a crafted file cannot fill the memory."""

Selection = Literal["uniform", "likelihood"]


@dataclass(frozen=True, eq=False)
class Pool:
    """Synthetic days over the cells of a public grid."""

    place: NDArray[np.int32]
    """[trace, step]"""
    grid: Grid
    time_zone: str = "UTC"

    def __post_init__(self) -> None:
        if self.place.ndim != 2 or not 0 < len(self.place) <= MOST_TRACES or not 1 < self.place.shape[1] <= 1440:
            raise InputError(f"a pool is 1 to {MOST_TRACES:,} traces of 2 to 1,440 steps; got an array {self.place.shape}.")
        if self.place.min() < 0 or self.place.max() >= self.grid.n_cells:
            raise InputError(f"a pool's places are the cells 0 to {self.grid.n_cells - 1:,} of its grid.")

    @property
    def n_traces(self) -> int:
        return len(self.place)

    @property
    def steps(self) -> int:
        return self.place.shape[1]

    @classmethod
    def of(cls, released: Trips, *, grid: Grid | None = None) -> Pool:
        """Make the pool of a release, each trip of which must be one day with one point for each step.

        `grid` gives the cells where the trips are not on a grid themselves.
        """
        grid = grid or (released.space if isinstance(released.space, Grid) else None)
        if grid is None:
            raise ParameterError("a pool needs the grid of its cells; give grid=Grid(...).")
        size = np.diff(released.offsets)
        if not len(size) or (size != size[0]).any():
            raise InputError("a pool is made of trips with one point for each step of a day, as plausible releases them.")
        cell = released.cell if "cell" in released.columns else grid.locate(released.lat, released.lng)
        return cls(cell.reshape(len(size), -1).astype(np.int32), grid, released.time_zone)

    @cached_property
    def _packed(self) -> bytes:
        header = {"grid": self.grid.spec(), "steps": self.steps, "traces": self.n_traces, "time_zone": self.time_zone}
        text = json.dumps(header, sort_keys=True).encode()
        return MAGIC + struct.pack(">I", len(text)) + text + zlib.compress(_pack(self.place), 9)

    @property
    def digest(self) -> bytes:
        """Return the SHA-256 of the file, from which devices derive their choices."""
        return hashlib.sha256(self._packed).digest()

    def save(self, path: str | Path) -> int:
        """Write the file for phones to `path` and return its size in bytes (about 15 a trace)."""
        Path(path).write_bytes(self._packed)
        return len(self._packed)

    @classmethod
    def load(cls, path: str | Path) -> Pool:
        """Read the pool file at `path`; anything else, and anything too large, is refused."""
        try:
            data = Path(path).read_bytes()
        except OSError as error:
            raise InputError(f"{path} cannot be read: {error.strerror}.") from None
        if not data.startswith(MAGIC) or len(data) < len(MAGIC) + 4:
            raise InputError(f"{path} is not a pool of dummies: it does not begin with {MAGIC.decode()}.")
        (length,) = struct.unpack_from(">I", data, len(MAGIC))
        body = len(MAGIC) + 4 + length
        try:
            header = json.loads(data[len(MAGIC) + 4 : body])
            steps, traces, grid = int(header["steps"]), int(header["traces"]), parse(str(header["grid"]))
            ZoneInfo(str(header["time_zone"]))
            unpacker = zlib.decompressobj()
            packed = unpacker.decompress(data[body:], MOST_BYTES)
        except (ValueError, KeyError, TypeError, OSError, zlib.error) as error:
            raise InputError(f"{path} is a damaged pool of dummies: {error}.") from None
        if unpacker.unconsumed_tail or not 0 < traces <= MOST_TRACES or not 1 < steps <= 1440 or not isinstance(grid, Grid):
            raise InputError(f"{path} is too large or not over a grid; a pool has at most {MOST_TRACES:,} traces.")
        return cls(_unpack(packed, traces, steps, str(path)), grid, str(header["time_zone"]))


@dataclass(frozen=True, eq=False)
class Dummies:
    """Holds the fakes one device has chosen; the same device and pool always choose the same."""

    pool: Pool
    chosen: NDArray[np.int64]
    key: bytes
    """Of the device; decides the order in which places are sent."""

    def at(self, when: datetime, lat: float, lng: float) -> list[tuple[float, float]]:
        """Return what to send at time `when` from `lat`, `lng`: centres of cells, the true one and the fakes', shuffled.

        The true place is sent as its cell's centre too; exact coordinates among centres would give it away.
        """
        cells = self.cells_at(when, int(self.pool.grid.locate(lat, lng)))
        north, east = self.pool.grid.centre(cells)
        return list(zip(north.tolist(), east.tolist(), strict=True))

    def cells_at(self, when: datetime, true_cell: int) -> list[int]:
        """Return the k + 1 cells to send at time `when` from `true_cell`; a cell may occur twice."""
        if when.tzinfo is None:
            raise ParameterError("the time of a query needs a time zone.")
        if not 0 <= true_cell < self.pool.grid.n_cells:
            raise InputError("the true place lies outside the grid of this pool: sending it would give it away. Send nothing.")
        local = when.astimezone(ZoneInfo(self.pool.time_zone))
        minute = local.hour * 60 + local.minute
        cells = [true_cell, *self.pool.place[self.chosen, minute * self.pool.steps // 1440].tolist()]
        stamp = f"{local.date()}:{minute}".encode()
        rank = [hmac.new(self.key, b"order" + stamp + bytes([k]), hashlib.sha256).digest() for k in range(len(cells))]
        return [cells[k] for k in sorted(range(len(cells)), key=rank.__getitem__)]


def choose(pool: Pool, k: int, *, device: bytes, by: Selection = "uniform", day: str = "") -> Dummies:
    """Pick `k` fakes for a device, by a secret only it knows (at least 16 bytes).

    `by="uniform"` takes any trace; "likelihood" (as published) favours traces that are likely under the pool's own mobility,
    which stay put more than people do. Another `day` picks others: see the docs for what neither choice protects from.

    >>> grid = Grid(60.1, 24.8, 60.2, 25.0, 1000)
    >>> pool = Pool(np.arange(720, dtype=np.int32).reshape(10, 72) % grid.n_cells, grid)
    >>> chosen = choose(pool, 3, device=b"sixteen bytes or more")
    >>> len(chosen.chosen), (chosen.chosen == choose(pool, 3, device=b"sixteen bytes or more").chosen).all()
    (3, np.True_)
    """
    whole("k", k, at_most=200)
    one_of("by", by, ("uniform", "likelihood"))
    if not isinstance(device, bytes) or len(device) < 16:
        raise ParameterError("device must be a secret of at least 16 bytes: whoever guesses it can name the fakes.")
    if k > pool.n_traces:
        raise ParameterError(f"{k} fakes were asked for and the pool has {pool.n_traces}.")
    key = hmac.new(device, b"murmurate dummies" + pool.digest + day.encode(), hashlib.sha256).digest()
    words = np.frombuffer(b"".join(_stream(key, pool.n_traces)), dtype=">u8")[: pool.n_traces]
    uniform = (words.astype(np.float64) + 0.5) / 2.0**64
    if by == "uniform":
        order = np.argsort(words, kind="stable")
    else:  # the Gumbel trick: the top k of log weight + Gumbel noise is a draw without replacement
        likely = Aggregate.of(pool.place, pool.grid, pool.grid.n_cells).log_likelihood(pool.place)
        order = np.argsort(-(likely - np.log(-np.log(uniform))), kind="stable")
    return Dummies(pool, np.sort(order[:k]), key)


def _stream(key: bytes, words: int) -> list[bytes]:
    """Return enough pseudorandom bytes for this many 64-bit words."""
    return [hmac.new(key, b"choice" + struct.pack(">Q", block), hashlib.sha256).digest() for block in range(-(-words // 4))]


def _pack(place: NDArray[np.int32]) -> bytes:
    """Encode the runs of each trace: how many, then length and change of cell, in 7-bit groups."""
    out = bytearray()
    for trace in place:
        starts = np.flatnonzero(np.r_[True, trace[1:] != trace[:-1]])
        lengths = np.diff(np.r_[starts, len(trace)])
        _put(out, len(starts))
        last = 0
        for length, cell in zip(lengths.tolist(), trace[starts].tolist(), strict=True):
            _put(out, length)
            change = cell - last
            _put(out, 2 * change if change >= 0 else -2 * change - 1)
            last = cell
    return bytes(out)


def _put(out: bytearray, value: int) -> None:
    """Append a number in 7-bit groups, lowest first."""
    while value >= 128:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)


def _unpack(packed: bytes, traces: int, steps: int, path: str) -> NDArray[np.int32]:
    """Decode what `_pack` encoded."""
    place = np.empty((traces, steps), dtype=np.int32)
    at = 0

    def take() -> int:
        nonlocal at
        value, shift = 0, 0
        while True:
            byte = packed[at]
            at += 1
            value |= (byte & 127) << shift
            shift += 7
            if byte < 128:
                return value
            if shift > 35:
                raise IndexError

    try:
        for trace in range(traces):
            step, cell = 0, 0
            for _ in range(take()):
                length, change = take(), take()
                cell += change >> 1 if change % 2 == 0 else -(change + 1 >> 1)
                if not 0 < length <= steps - step or not 0 <= cell < 2**31:
                    raise IndexError
                place[trace, step : step + length] = cell
                step += length
            if step != steps:
                raise IndexError
    except IndexError:
        raise InputError(f"{path} is a damaged pool of dummies: its traces do not fill {steps} steps.") from None
    return place
