"""Read arrays and schemas that a stranger may have written: bounded in size, never unpickled, every value in its range.

Compiled kernels do not check indices, so an array out of range would read foreign memory or never end. A model states the
range of each of its arrays here, and nothing is drawn from it before all of them hold.
"""

from __future__ import annotations

import json
import zipfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import IO, Any, Literal, cast
from zoneinfo import ZoneInfo

import numpy as np
from numpy.typing import NDArray

from murmurate.core.foreign import FOREIGN
from murmurate.errors import Fault, InputError

Arrays = dict[str, NDArray[Any]]
"""Arrays by name."""

EXPANDED_FLOOR_BYTES = 256 * 2**20
"""Bytes to which a small file may expand. Set by hand: with what a model is made into, it stays below 1 GB of memory."""
MAX_EXPANSION = 50
"""Factor by which a larger file may expand. Set by hand: tables of noisy counts shrink by about 2 to 10."""
MAX_JSON_BYTES = 16 * 2**20
"""Largest schema or manifest in bytes. Set by hand: real ones have a few kilobytes."""
MAX_ARRAYS = 1_000
"""Most arrays in a file. Set by hand: the largest models have about 100."""
MAX_WEIGHT = 1e12
"""Largest unnormalised weight or count in a model: products of three stay finite in single precision."""
MAX_LOG_WEIGHT = 1e3
"""Largest absolute log-weight in a model: sums stay finite, and far above what fits give."""


@dataclass(frozen=True, kw_only=True)
class Range:
    """State what an array may hold: its kind, its shape, its least and largest value."""

    low: float
    high: float
    shape: tuple[int | None, ...]
    """Length of each dimension; None allows any, but not zero."""
    kind: Literal["i", "u", "f"] = "f"
    ascending: bool = False
    """Whether values never fall."""
    some: bool = False
    """Whether their sum must be above zero, as for weights that something is drawn by."""

    def fault(self, array: NDArray[Any]) -> str | None:
        """Say what is wrong with an array; None where nothing is."""
        if array.dtype.kind != self.kind or (self.kind == "f" and array.dtype.itemsize not in (4, 8)):  # no kernel takes others
            return f"has type {array.dtype}, not {'floating-point numbers' if self.kind == 'f' else 'whole numbers'}"
        fits = len(self.shape) == array.ndim and all(
            have == want if want is not None else have > 0 for have, want in zip(array.shape, self.shape, strict=True)
        )
        if not fits:
            return f"has shape {array.shape}, not {tuple('any' if size is None else size for size in self.shape)}"
        if not array.size:
            return None
        if not np.isfinite(array).all():
            return "holds values that are not finite"
        if array.min() < self.low or array.max() > self.high:
            return f"holds values outside {self.low:g} to {self.high:g}"
        if self.ascending and (np.diff(array) < 0).any():
            return "holds values that fall where they must rise"
        return "holds no weight above zero" if self.some and not array.sum() > 0 else None


def weights(*shape: int | None, some: bool = False) -> Range:
    """Return the range of unnormalised weights or counts."""
    return Range(low=0.0, high=MAX_WEIGHT, shape=shape, some=some)


def indices(below: int, *shape: int | None) -> Range:
    """Return the range of whole numbers from 0 that index something of length `below`."""
    return Range(low=0, high=below - 1, shape=shape, kind="i")


def check(where: Path, arrays: Mapping[str, NDArray[Any]], ranges: Mapping[str, Range], *, known: Iterable[str] = ()) -> None:
    """Refuse arrays that are missing, unknown or out of their range, all in one error that names them.

    `known` names further arrays that are checked elsewhere.
    """
    faults = [Fault("is missing", file=str(where), column=name) for name in ranges if name not in arrays]
    strangers = set(arrays) - set(ranges) - set(known)
    faults += [Fault("is not an array of this model", file=str(where), column=name[:60]) for name in sorted(strangers)]
    for name, wanted in ranges.items():
        reason = wanted.fault(arrays[name]) if name in arrays else None
        if reason:
            faults.append(Fault(reason, file=str(where), column=name))
    if faults:
        raise InputError(faults, "the model is damaged; take it again from where it was published.")


def read_object(path: Path, what: str) -> dict[str, Any]:
    """Read a JSON object; anything else, or one that is too large or nested too deep, is refused as no `what`."""
    try:
        if path.stat().st_size > MAX_JSON_BYTES:
            raise ValueError(f"{path.name} is larger than {MAX_JSON_BYTES // 2**20} MiB")
        values = json.loads(path.read_text(encoding="utf-8"), parse_constant=_refuse_constant)
    except RecursionError:
        raise InputError(f"{path.parent} does not hold {what}: {path.name} is nested too deep.") from None
    except (OSError, ValueError) as error:
        raise InputError(f"{path.parent} does not hold {what}: {error}") from None
    if not isinstance(values, dict):
        raise InputError(f"{path.parent} does not hold {what}: {path.name} is not a JSON object.")
    return values


def _refuse_constant(text: str) -> float:
    raise ValueError(f"{text} is not a number")


def field(values: Mapping[str, Any], name: str, kind: type, where: Path, *, low: float = -1e15, high: float = 1e15) -> Any:
    """Return a field of a schema, which must have this type and, for numbers, lie in this range."""
    value = values.get(name)
    fits = isinstance(value, (int, float) if kind is float else kind) and not (isinstance(value, bool) and kind is not bool)
    if fits and kind in (int, float):
        fits = low <= cast(float, value) <= high
    if not fits:
        raise InputError(f"{where}: {name} in the schema is not what a model has; the model is damaged.")
    return value


def calendar(values: Mapping[str, Any], where: Path, *, day: bool = True) -> tuple[str, str]:
    """Return time zone and day of a schema, both of which must exist."""
    zone, date_text = field(values, "time_zone", str, where), field(values, "day", str, where) if day else "2001-01-01"
    try:
        ZoneInfo(zone)
        date.fromisoformat(date_text)
    except (ValueError, OSError) as error:  # an unknown zone is a KeyError, and may be the name of a folder
        raise InputError(f"{where}: the schema names no time zone or day that exists ({_line(error)}).") from None
    except KeyError:
        raise InputError(f"{where}: the schema names a time zone that does not exist: {zone[:60]!r}.") from None
    return zone, date_text


def read_npz(path: Path, what: str) -> Arrays:
    """Read all arrays of a `.npz`, without unpickling, after checking how far each of them expands."""
    try:
        allowed = max(EXPANDED_FLOOR_BYTES, MAX_EXPANSION * path.stat().st_size)
        with zipfile.ZipFile(path) as archive:
            members = archive.infolist()
            if len(members) > MAX_ARRAYS or sum(member.file_size for member in members) > allowed:
                raise ValueError(f"it expands to more than {allowed // 2**20} MiB or {MAX_ARRAYS:,} arrays")
            return {member.filename.removesuffix(".npy"): _array(archive.open(member), member.file_size) for member in members}
    except FOREIGN as error:  # numpy's reader of headers and the decompressors raise about anything
        raise InputError(f"{path.parent} does not hold {what}: {path.name} cannot be read ({_line(error)}).") from None


def read_npy(path: Path, what: str) -> NDArray[Any]:
    """Read the array of a `.npy`, without unpickling."""
    try:
        with path.open("rb") as file:
            return _array(file, path.stat().st_size)
    except FOREIGN as error:
        raise InputError(f"{path.parent} does not hold {what}: {path.name} cannot be read ({_line(error)}).") from None


def _array(file: IO[bytes], size: int) -> NDArray[Any]:
    """Read one array, whose header must announce exactly the bytes that follow it."""
    version = np.lib.format.read_magic(file)
    readers = {(1, 0): np.lib.format.read_array_header_1_0, (2, 0): np.lib.format.read_array_header_2_0}
    if version not in readers:
        raise ValueError(f"array format {version} is not known")
    shape, fortran, dtype = readers[version](file)
    if dtype.kind not in "biuf":
        raise ValueError(f"arrays of type {str(dtype)[:40]} are not read")
    count = 1
    for length in shape:
        count *= int(length)
    if count < 0 or file.tell() + count * dtype.itemsize != size:
        raise ValueError("the header of an array does not fit its bytes")
    data = np.frombuffer(file.read(count * dtype.itemsize), dtype=dtype)
    # kernels are compiled for the byte order of this machine
    return data.reshape(shape, order="F" if fortran else "C").astype(dtype.newbyteorder("="))


def _line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]
