"""A fitted flock as files: arrays without pickles, and a schema that says what they must look like."""

from __future__ import annotations

import json
from dataclasses import fields
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.errors import InputError
from murmurate.mechanisms.flock.base_model import BaseLaw
from murmurate.mechanisms.flock.ends import EndsPool, Ways
from murmurate.mechanisms.flock.fitting import Fitted
from murmurate.mechanisms.flock.shapes import Pace, Shapes
from murmurate.mechanisms.flock.tables import Zones
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.synthesis.moves import MoveWeights
from murmurate.synthesis.sizes import Sizes

FORMAT = 2
KIND = "flock"
ARRAYS = "arrays.npz"
SCHEMA = "schema.json"

Arrays = dict[str, NDArray[Any]]


def write(path: Path, fitted: Fitted, *, time_zone: str, day: str) -> None:
    """Arrays and schema into the folder."""
    law, frame, zones = fitted.law, fitted.law.frame, fitted.zones
    arrays: Arrays = {
        "ends.source": law.ends.source,
        "ends.destination": law.ends.destination,
        "ends.hour": law.ends.hour,
        "ends.cumulative": law.ends.cumulative,
        "moves.towards": law.weights.towards.astype(np.float32),
        "moves.visits": law.weights.visits.astype(np.float32),
        "moves.steps": law.weights.steps.astype(np.float32),
        "visits": law.visits,
        "inside": law.inside,
        "shapes.diameter": law.shapes.diameter,
        "shapes.ratios": law.shapes.ratios,
        "repeats": law.repeats,
        "zone": zones.zone,
        **{f"pull.{name}": values for name, values in fitted.pulls.items()},
    }
    if law.ends.ways is not None:
        arrays |= {f"ways.{field.name}": getattr(law.ends.ways, field.name).astype(np.float32) for field in fields(Ways)}
    if law.sizes is not None:
        arrays["sizes"] = law.sizes.table
    if fitted.pace is not None:
        arrays["pace"] = fitted.pace.table
    np.savez_compressed(path / ARRAYS, allow_pickle=False, **arrays)
    schema = {
        "kind": KIND,
        "format": FORMAT,
        "space": frame.grid.spec(),
        "frame": {
            "block": frame.block,
            "reach": frame.reach,
            "hours": frame.hours,
            "max_cells": frame.max_cells,
            "stride": frame.stride,
        },
        "depths": {name: getattr(zones, name) for name in ("fine", "by_hour", "pairs", "pairs_hour")},
        "norm": fitted.norm,
        "n": fitted.n,
        "time_zone": time_zone,
        "day": day,
        "arrays": _described(arrays),
    }
    (path / SCHEMA).write_text(json.dumps(schema, indent=1, sort_keys=True) + "\n", encoding="utf-8")


def read(path: Path) -> tuple[Fitted, str, str]:
    """What `write` wrote, with time zone and day; nothing is unpickled and everything is checked against the schema."""
    try:
        schema = json.loads((path / SCHEMA).read_text(encoding="utf-8"))
        with np.load(path / ARRAYS, allow_pickle=False) as stored:
            arrays = {name: stored[name] for name in stored.files}
    except (OSError, ValueError, KeyError) as error:
        raise InputError(f"{path} does not hold a flock model: {error}") from None
    if schema.get("kind") != KIND or schema.get("format") != FORMAT:
        raise InputError(
            f"{path} holds a model of kind {schema.get('kind')!r} and format {schema.get('format')!r}; this reads kind "
            f"{KIND!r} and format {FORMAT}."
        )
    if _described(arrays) != schema["arrays"]:
        raise InputError(f"{path}: the arrays are not what the schema says.", "The files belong to different models.")
    grid = parse(schema["space"])
    if not isinstance(grid, Grid):
        raise InputError(f"{path}: the model's space {schema['space']!r} is not a grid.")
    frame = Frame(grid=grid, **schema["frame"])
    ways = None
    if "ways.length_m" in arrays:
        ways = Ways(*(arrays[f"ways.{field.name}"].astype(np.float64) for field in fields(Ways)))
    law = BaseLaw(
        frame=frame,
        ends=EndsPool(arrays["ends.source"], arrays["ends.destination"], arrays["ends.hour"], arrays["ends.cumulative"], ways),
        weights=MoveWeights(*(arrays[f"moves.{name}"] for name in ("towards", "visits", "steps"))),
        sizes=Sizes(arrays["sizes"], frame.columns, 1) if "sizes" in arrays else None,
        visits=arrays["visits"],
        inside=arrays["inside"],
        shapes=Shapes(arrays["shapes.diameter"], arrays["shapes.ratios"]),
        repeats=arrays["repeats"],
    )
    pulls = {name.removeprefix("pull."): values for name, values in arrays.items() if name.startswith("pull.")}
    pace = Pace(arrays["pace"]) if "pace" in arrays else None
    fitted = Fitted(law, Zones(arrays["zone"], **schema["depths"]), pulls, schema["norm"], schema["n"], pace)
    return fitted, schema["time_zone"], schema["day"]


def _described(arrays: Arrays) -> dict[str, dict[str, Any]]:
    return {name: {"shape": list(array.shape), "dtype": str(array.dtype)} for name, array in arrays.items()}
