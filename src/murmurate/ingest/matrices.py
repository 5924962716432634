"""Read public matrices of flows in OMX files, as travel models write them."""

from __future__ import annotations

from pathlib import Path

import numpy as np

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
    try:
        with h5py.File(path, "r") as content:
            data = content.get("data", {})
            found = {key: data[key].shape for key in data if isinstance(data[key], h5py.Dataset)}
            name = name or (next(iter(found)) if len(found) == 1 else "day" if "day" in found else "")
            if name not in found:
                listed = ", ".join(f"{key} {_sides(shape)}" for key, shape in found.items()) or "none"
                raise InputError(f"{path}: which matrix is meant? It holds: {listed}.", f"write {path}#NAME.")
            if found[name] != (n_places, n_places):
                raise InputError(
                    f"{path}: the matrix {name} is {_sides(found[name])}; these places need {n_places:,} x {n_places:,}.",
                    "give a matrix with a row and a column for each place, in the order of places.geojson.",
                )
            matrix = np.asarray(data[name][:], dtype=np.float64)
    except (OSError, TypeError, ValueError) as error:
        raise InputError(f"{path}: cannot be read as OMX (HDF5): {error}.", "give a file that openmatrix opens.") from None
    wrong = int((~(matrix >= 0) | ~np.isfinite(matrix)).sum())
    if wrong or not matrix.any():
        what = f"{wrong:,} values are negative or no numbers" if wrong else "all values are 0"
        raise InputError(f"{path}: of the matrix {name}, {what}.", "give numbers of trips, at least one above 0.")
    return matrix


def _sides(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{side:,}" for side in shape)
