"""Project a map: degrees become the whole-number units of a drawing, the same for every panel of a page."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from murmurate.core.space import Floats, Integers, Places
from murmurate.spaces.grid import Grid

LONGER_SIDE = 1000
"""Units along the longer side: one is less than a pixel on any screen, and whole numbers keep pages small."""

_MARGIN = 2 * LONGER_SIDE
"""Distance outside the window, in units, up to which a line is followed; strays beyond it are moved to there."""


BESIDE = 0.02
"""Share of the longer side that is shown around places that are not squares. Set by hand."""


@dataclass(frozen=True)
class View:
    """Hold a box of degrees drawn upright, with as many units to a metre in both directions at its middle."""

    south: float
    west: float
    north: float
    east: float

    @classmethod
    def of(cls, places: Places) -> View:
        """Return the box of all places; a little more for those that are not squares, which may reach over its edge."""
        south, west, north, east = places.box
        pad = 0.0 if isinstance(places, Grid) else BESIDE * max(north - south, east - west)
        return cls(south - pad, west - pad, north + pad, east + pad)

    @cached_property
    def size(self) -> tuple[int, int]:
        """Width and height in units."""
        across = (self.east - self.west) * float(np.cos(np.radians((self.south + self.north) / 2)))
        up = self.north - self.south
        longer = max(across, up)
        return max(1, round(LONGER_SIDE * across / longer)), max(1, round(LONGER_SIDE * up / longer))

    @property
    def width(self) -> int:
        return self.size[0]

    @property
    def height(self) -> int:
        return self.size[1]

    def project(self, lat: Floats, lng: Floats) -> tuple[Integers, Integers]:
        """Units from the left and from the top."""
        x = (np.asarray(lng) - self.west) / (self.east - self.west) * self.width
        y = (self.north - np.asarray(lat)) / (self.north - self.south) * self.height
        return (
            np.rint(np.clip(x, -_MARGIN, self.width + _MARGIN)).astype(np.int64),
            np.rint(np.clip(y, -_MARGIN, self.height + _MARGIN)).astype(np.int64),
        )

    def scale_bar(self) -> tuple[int, str]:
        """Return a round distance about a quarter of the window wide: its units, and how long it is."""
        from murmurate.spaces.sphere import great_circle_m

        middle = (self.south + self.north) / 2
        metres = float(great_circle_m(middle, self.west, middle, self.east))
        wanted = metres / 4
        step = 10.0 ** np.floor(np.log10(wanted))
        length = float(max(step * factor for factor in (1, 2, 5) if step * factor <= wanted))
        text = f"{length / 1000:g} km" if length >= 1000 else f"{length:g} m"
        return round(self.width * length / metres), text


def lines(x: Integers, y: Integers, offsets: Integers, *, closed: bool = False) -> str:
    """Write polylines as one SVG path, with steps relative and repeated vertices left out.

    >>> lines(np.array([0, 3, 3, 5]), np.array([0, 4, 4, 4]), np.array([0, 4]))
    'M0 0l3 4l2 0'
    """
    dx, dy = np.diff(x, prepend=0), np.diff(y, prepend=0)
    moved = (dx != 0) | (dy != 0)
    moved[offsets[:-1][np.diff(offsets) > 0]] = False  # a line begins where it is, whatever lies before it
    rows = np.flatnonzero(moved)
    steps = [f"l{a} {b}" for a, b in zip(dx[rows].tolist(), dy[rows].tolist(), strict=True)]
    bounds = np.searchsorted(rows, offsets).tolist()
    parts: list[str] = []
    for first, begin, end in zip(offsets[:-1].tolist(), bounds[:-1], bounds[1:], strict=True):
        if begin == end:
            continue
        parts.append(f"M{x[first]} {y[first]}")
        parts.extend(steps[begin:end])
        if closed:
            parts.append("z")
    return "".join(parts)
