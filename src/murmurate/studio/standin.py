"""Read the table of the public stand-in: every product, unit and stop, rehearsed ahead on the built-in city.

`scripts/studio_standin.py` makes it. No private file is read for it.
"""

from __future__ import annotations

import gzip
import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.build import Street, build

PATH = Path(__file__).parent / "standin.json.gz"
"""The table."""


@cache
def table() -> dict[str, Any]:
    """Return the whole table; read once."""
    found: dict[str, Any] = json.loads(gzip.decompress(PATH.read_bytes()))
    return found


def board(mechanism: str, unit: str) -> dict[str, Any] | None:
    """Return what was rehearsed of a mechanism for a unit; None where it was not."""
    found: dict[str, Any] | None = table()["boards"].get(f"{mechanism}/{unit}")
    return found


@cache
def network() -> RoadNetwork:
    """Return one street: enough road to ask a mechanism what it promises."""
    street = Street(1, 2, np.array([45.0, 45.001]), np.array([-30.0, -30.001]), True, True, "primary")
    return build([street], source="stand-in")
