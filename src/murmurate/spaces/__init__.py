"""Public geography: planes, grids, hexagons, zones, stops, road networks."""

from __future__ import annotations

from typing import Any

from murmurate.core.parameters import one_of
from murmurate.core.space import Space
from murmurate.errors import InputError, ParameterError
from murmurate.spaces.grid import Grid
from murmurate.spaces.plane import Plane

__all__ = ["Grid", "Plane", "parse", "parse_specs"]

FORMS = {
    "plane": "plane:LAT,LNG",
    "grid": "grid:SOUTH,WEST,NORTH,EAST:CELL_M",
    "hex": "hex:RESOLUTION@SOUTH,WEST,NORTH,EAST",
    "zones": "zones:FILE",
    "stops": "stops:FILE",
    "road": "road:FILE",
}
"""Forms of `--space` by kind, as error messages show them."""


def parse(spec: str) -> Space:
    """Return the space that a `spec`, as of `--space`, describes; the inverse of `Space.spec`.

    >>> parse("grid:60.1,24.8,60.3,25.2:250").n_cells
    7921
    >>> parse("plane:60.17,24.94")
    Plane(lat=60.17, lng=24.94, step_m=0.1)
    """
    kind, found, rest = spec.strip().partition(":")
    if not found:
        raise ParameterError(f"a space is written {', '.join(FORMS.values())}; got {spec!r}.")
    one_of("space", kind, FORMS)
    if kind == "road":
        return _roads(rest)
    if kind in ("zones", "stops"):
        return _places(kind, rest)
    if kind == "hex":
        return _hexes(spec, rest)
    parts = [_numbers(spec, kind, part) for part in rest.split(":")]
    sizes = [len(part) for part in parts]
    if kind == "grid" and sizes == [4, 1]:
        (south, west, north, east), (cell_m,) = parts
        return Grid(south, west, north, east, cell_m)
    if kind == "plane" and sizes in ([2], [2, 1]):
        return Plane(*parts[0], *(parts[1] if len(parts) > 1 else []))
    raise ParameterError(f"expected {FORMS[kind]}; got {spec!r}.")


def parse_specs(mechanism: Any) -> None:
    """Replace specs by the spaces they describe in the fields `space` and `roads` of a frozen mechanism under construction."""
    for name in ("space", "roads"):
        value = getattr(mechanism, name, None)
        if isinstance(value, str):
            object.__setattr__(mechanism, name, parse(value))


def _roads(words: str) -> Space:
    """Read the network of a file; `NAME#HASH`, as specs have it, must be that very network."""
    from pathlib import Path

    from murmurate.spaces.road.network import HASH_DIGITS, UNSAVED
    from murmurate.spaces.road.read import read_roads

    name, hashed, digits = words.rpartition("#")
    if not hashed or len(digits) != HASH_DIGITS or Path(words).is_file():
        return read_roads(words)
    if not Path(name).is_file():
        which = "a road network built in memory" if name == UNSAVED else f"the road network of the file {name}"
        raise InputError(
            f"{which} (content hash {digits}) is needed, and it is not in this folder; a spec names a file without its folder.",
            "put that file here, or give the network itself: space=... in Python, --space road:FILE on the command line.",
        )
    found = read_roads(name)
    if found.fingerprint[:HASH_DIGITS] != digits:
        raise ParameterError(
            f"{name} is another network than the one meant: its content hash is {found.fingerprint[:HASH_DIGITS]}, not "
            f"{digits}. Give the file the release was made with."
        )
    return found


def _hexes(spec: str, words: str) -> Space:
    from murmurate.spaces.hexes import Hexes

    resolution, found, box = words.partition("@")
    sides = _numbers(spec, "hex", box) if found else []
    if len(sides) != 4 or not resolution.strip().isdigit():
        raise ParameterError(f"expected {FORMS['hex']}; got {spec!r}.")
    return Hexes(int(resolution), *sides)


def _places(kind: str, words: str) -> Space:
    """Read zones or stops of a file; `NAME#HASH`, as specs have it, must be those very places."""
    from pathlib import Path

    from murmurate.spaces.stops import Stops
    from murmurate.spaces.zones import HASH_DIGITS, Zones

    name, hashed, digits = words.rpartition("#")
    if not hashed or len(digits) != HASH_DIGITS or Path(words).is_file():
        name, digits = words, ""
    found = (Zones if kind == "zones" else Stops).read(name)
    if digits and found.fingerprint[:HASH_DIGITS] != digits:
        raise ParameterError(
            f"{name} holds other {kind} than those meant: its content hash is {found.fingerprint[:HASH_DIGITS]}, not {digits}. "
            "Give the file the release was made with."
        )
    return found


def _numbers(spec: str, kind: str, text: str) -> list[float]:
    try:
        return [float(number) for number in text.split(",")]
    except ValueError:
        raise ParameterError(f"expected {FORMS[kind]} with plain numbers; got {spec!r}.") from None
