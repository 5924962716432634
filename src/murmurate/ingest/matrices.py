"""Read public matrices of flows in OMX files, as travel models write them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from murmurate.core.expansion import MAX_EXPANSION, TABLE_FLOOR_BYTES
from murmurate.core.foreign import damaged
from murmurate.core.space import Floats
from murmurate.errors import InputError, MissingPart


def read_omx(file: str | Path, n_places: int) -> Floats:
    """Read the matrix [origin, destination] of a file; `FILE#NAME` names one of several.

    A matrix needs a row and a column for each of `n_places` places, in their order, and no negative or missing values.
    """
    try:
        import h5py
    except ImportError:
        raise MissingPart("OMX files need h5py: pip install 'murmurate[geo]'.") from None
    path, _, name = (str(file), "", "") if Path(file).is_file() else str(file).rpartition("#")
    if not Path(path).is_file():
        raise InputError(f"{file}: there is no such file.")
    with damaged(path, "OMX (HDF5)", "give a file that openmatrix opens."), h5py.File(path, "r") as content:
        data = _group(content, h5py)
        found = {key: data[key].shape for key in data if _inside(data, key, h5py)}
        name = name or (next(iter(found)) if len(found) == 1 else "day" if "day" in found else "")
        if name not in found:
            listed = ", ".join(f"{key} {_sides(shape)}" for key, shape in found.items()) or "none"
            raise InputError(f"{path}: which matrix is meant? It holds: {listed}.", f"write {path}#NAME.")
        if found[name] != (n_places, n_places):
            raise InputError(
                f"{path}: the matrix {name} is {_sides(found[name])}; these places need {n_places:,} x {n_places:,}.",
                "give a matrix with a row and a column for each place, in the order of places.geojson.",
            )
        if data[name].dtype.kind not in "iuf":
            raise InputError(f"{path}: the matrix {name} holds no numbers.", "give numbers of trips.")
        if 8 * n_places**2 > max(TABLE_FLOOR_BYTES, MAX_EXPANSION * Path(path).stat().st_size):
            raise InputError(
                f"{path}: the matrix {name} expands to more than {MAX_EXPANSION} times the file: refused as a decompression "
                "bomb.",
                "write it without compression if it is right.",
            )
        matrix = np.asarray(data[name][:], dtype=np.float64)
    wrong = int((~(matrix >= 0) | ~np.isfinite(matrix)).sum())
    if wrong or not matrix.any():
        what = f"{wrong:,} values are negative or no numbers" if wrong else "all values are 0"
        raise InputError(f"{path}: of the matrix {name}, {what}.", "give numbers of trips, at least one above 0.")
    return matrix


def _group(content: Any, h5py: Any) -> Any:
    """Return the group of matrices, which lies in this very file."""
    link = content.get("data", getlink=True) if "data" in content else None
    return content["data"] if isinstance(link, h5py.HardLink) and isinstance(content["data"], h5py.Group) else {}


def _inside(data: Any, key: str, h5py: Any) -> bool:
    """Return whether a matrix lies in this very file: HDF5 may name other files of the reader's, which would leave with it."""
    if not isinstance(data.get(key, getlink=True), h5py.HardLink) or not isinstance(data[key], h5py.Dataset):
        return False
    return not data[key].is_virtual and not data[key].external


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{side:,}" for side in shape)
