"""Draw where the points are: shares of visits per cell on one colour scale, and where a release shows more or fewer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Floats, Integers, Places
from murmurate.metrics.comparison import Side
from murmurate.report.breaks import Breaks, shared_breaks
from murmurate.report.view import View, lines
from murmurate.spaces.grid import Grid

CLASSES = 7
"""Colour classes of the density maps, as many as the style sheet has ordered colours."""
COLOURED = 0.9
"""Share of all change that coloured cells hold at least; the rest stays blank. Set by hand."""
MAX_CELLS_ACROSS = 64
"""Most cells along the longer side of a panel; finer ones cannot be distinguished and are drawn together. Set by hand."""


@dataclass(frozen=True)
class Patch:
    """Hold all cells of one class."""

    number: int
    d: str
    label: str


def display_grid(grid: Places) -> Places:
    """Return the places themselves, or a grid of whole multiples of its cells that can still be seen."""
    if not isinstance(grid, Grid):
        return grid
    times = -(-max(grid.rows, grid.columns) // MAX_CELLS_ACROSS)
    return grid if times == 1 else Grid(grid.south, grid.west, grid.north, grid.east, grid.cell_m * times)


def visit_shares(side: Side) -> Floats:
    """Return per cent of the points inside the box that lie in each cell."""
    inside = side.cell[side.cell >= 0]
    count = np.bincount(inside, minlength=side.grid.n_cells).astype(np.float64)
    return 100 * count / max(1, len(inside))


def density_breaks(shares: Sequence[Floats]) -> Breaks:
    """Return one scale for all panels."""
    return shared_breaks(max(float(share.max(initial=0.0)) for share in shares), CLASSES)


def density_patches(view: View, grid: Places, share: Floats, breaks: Breaks) -> list[Patch]:
    """Draw the visited cells, class by class."""
    visited = np.flatnonzero(share > 0)
    number = breaks.classes(share[visited])
    labels = breaks.labels("% of points")
    skipped = CLASSES - breaks.n  # the greatest class always has the strongest colour
    return [
        Patch(k + skipped + 1, outlines(view, grid, visited[number == k]), labels[k])
        for k in range(breaks.n)
        if (number == k).any()
    ]


def change_breaks(changes: Sequence[Floats]) -> Breaks:
    """Return three sizes of change for all panels, from round numbers.

    The least is small enough that the coloured cells hold most of all change; the greatest is by the median panel's greatest,
    so that no bad release hides the rest.
    """
    greatest = float(np.median([np.abs(change).max(initial=0.0) for change in changes]))
    size = np.sort(np.concatenate([np.abs(change) for change in changes]))[::-1]
    if not greatest > 0:
        return Breaks(())
    held = np.cumsum(size) / size.sum()
    least = min(greatest, float(size[np.searchsorted(held, COLOURED)]))
    power = int(np.floor(np.log10(least)))
    series = [float(f"{digit}e{k}") for k in range(power - 1, int(np.floor(np.log10(greatest))) + 1) for digit in (1, 2, 5)]
    first = max(edge for edge in series if edge <= least)
    steps = [edge for edge in series if first <= edge <= greatest]
    return Breaks(tuple(dict.fromkeys((steps[0], steps[len(steps) // 2], steps[-1]))))


def change_patches(view: View, grid: Places, change: Floats, breaks: Breaks) -> list[Patch]:
    """Draw cells that hold a larger (positive numbers) or a smaller share than in the originals; small changes stay blank."""
    size = breaks.classes(np.abs(change))
    labels = breaks.labels("percentage points")
    skipped = 4 - breaks.n  # the greatest change always has the strongest colour
    found = []
    for k in range(1, breaks.n):
        for sign, word in ((-1, "fewer"), (1, "more")):
            cells = np.flatnonzero((size == k) & (np.sign(change) == sign))
            if len(cells):
                found.append(
                    Patch(sign * (k + skipped), outlines(view, grid, cells), f"{word} than in the originals by {labels[k]}")
                )
    return found


def outlines(view: View, grid: Places, cells: Integers) -> str:
    """Draw cells or other places as one path."""
    if not isinstance(grid, Grid):
        import shapely

        rings = shapely.get_rings(shapely.get_parts(grid.boundary(cells)))
        xy = shapely.get_coordinates(rings)
        offsets = np.concatenate([[0], np.cumsum(shapely.get_num_coordinates(rings))]).astype(np.int64)
        return lines(*view.project(xy[:, 1], xy[:, 0]), offsets, closed=True)
    south, west, north, east = grid.bounds(cells)
    left, top = view.project(north, west)
    right, bottom = view.project(south, east)
    return "".join(
        f"M{x} {y}h{across}v{down}h-{across}z"
        for x, y, across, down in zip(
            left.tolist(), top.tolist(), (right - left).tolist(), (bottom - top).tolist(), strict=True
        )
    )
