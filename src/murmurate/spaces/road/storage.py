"""Save and load a network as plain arrays with a schema, never as a pickle."""

from __future__ import annotations

import json
import zipfile
from itertools import pairwise
from pathlib import Path

import numpy as np
import polars as pl

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
    try:
        with file.open("rb") as stream, np.load(stream, allow_pickle=False) as archive:  # a torn file is closed, too
            arrays = {key: archive[key] for key in archive.files}
        about = json.loads(arrays.pop("about").tobytes())
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile) as error:
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
        data, offsets = arrays["name_bytes"].tobytes(), arrays["name_offsets"].tolist()
        name = pl.Series("name", [data[a:b].decode() for a, b in pairwise(offsets)], dtype=pl.String)
    return RoadNetwork.from_arrays(
        **{key: arrays[key] for key in ARRAYS},
        name=name,
        way_id=arrays.get("way_id"),
        source=about.get("source") or file.name,
        dropped=about.get("dropped", {}),
    )
