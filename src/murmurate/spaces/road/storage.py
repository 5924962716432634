"""Save and load a network as plain arrays with a schema, never as a pickle."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

from murmurate.core.saved import Arrays, Range, check, read_npz
from murmurate.errors import InputError, OutputError
from murmurate.spaces.road.network import ARRAYS, RoadNetwork

SCHEMA = "murmurate-road-1"
"""Name and version of the file format; others are refused."""


def save(network: RoadNetwork, path: str | Path) -> Path:
    """Write a `.npz` of arrays to `path`; the file appears whole or not at all."""
    file = Path(path)
    if file.suffix != ".npz":
        raise OutputError(
            f"{file}: networks are saved as .npz; give a name that ends so, or use write_roads for other formats."
        )
    arrays = {key: getattr(network, key) for key in ARRAYS}
    if network.name is not None:
        words = [text.encode() for text in network.name.fill_null("").to_list()]
        arrays["name_bytes"] = np.frombuffer(b"".join(words), dtype=np.uint8)
        arrays["name_offsets"] = np.concatenate(([0], np.cumsum([len(word) for word in words]))).astype(np.int64)
    if network.way_id is not None:
        arrays["way_id"] = network.way_id
    about = {
        "schema": SCHEMA,
        "source": Path(network.source).name,  # without its folder, which may be private: models leave
        "dropped": dict(network.dropped),
    }
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    part = file.with_suffix(".part.npz")
    try:
        np.savez(part, **arrays)
        part.replace(file)
    except OSError as error:
        raise OutputError(f"{file}: cannot be written ({error.strerror or error}).") from None
    return file


def load(path: str | Path) -> RoadNetwork:
    """Read the network that `save` wrote to `path`, and check it again."""
    file = Path(path)
    arrays = read_npz(file, "a network saved by Murmurate")
    try:
        about = json.loads(arrays.pop("about").tobytes())
        if not isinstance(about, dict) or not isinstance(about.get("dropped", {}), dict):
            raise TypeError("what it says about itself is not an object")
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError(f"{file}: is not a whole network saved by Murmurate ({error}).") from None
    if about.get("schema") != SCHEMA:
        raise InputError(
            f"{file}: expected schema {SCHEMA}, found {about.get('schema')!r}; read the network from its source again."
        )
    missing = [key for key in ARRAYS if key not in arrays]
    if missing:
        raise InputError(f"{file}: lacks {', '.join(missing)}.")
    name = None
    if "name_offsets" in arrays:
        name = _names(file, arrays)
    return RoadNetwork.from_arrays(
        **{key: arrays[key] for key in ARRAYS},
        name=name,
        way_id=arrays.get("way_id"),
        source=str(about.get("source") or file.name),
        dropped=about.get("dropped", {}),
    )


def _names(file: Path, arrays: Arrays) -> pl.Series:
    """Cut the names out of their bytes."""
    data, offsets = arrays.get("name_bytes", np.zeros(0, np.uint8)), arrays["name_offsets"]
    wanted = {
        "name_bytes": Range(low=0, high=255, shape=(len(data),), kind="u"),
        "name_offsets": Range(low=0, high=len(data), shape=(None,), kind="i", ascending=True),
    }
    check(file, {"name_bytes": data, "name_offsets": offsets}, wanted)
    text = data.tobytes()
    try:
        return pl.Series("name", [text[a:b].decode() for a, b in pairwise(offsets.tolist())], dtype=pl.String)
    except UnicodeDecodeError:
        raise InputError(f"{file}: its street names are not UTF-8; the file is damaged.") from None
