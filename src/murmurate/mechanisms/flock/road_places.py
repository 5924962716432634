"""Where on public roads trips may begin and end: places along every link, by the fine cell they lie in."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.road.geometry import points_along

PITCH_M = 25.0
"""Metres of road that one place stands for."""
CELL_M = 250.0
MARGIN_M = 60.0
"""A point that far from a road still belongs to it, so the box ends that far outside the network."""


@dataclass(frozen=True, eq=False)
class Kerbs:
    """Places on roads; those of fine cell c are `offsets[c]:offsets[c + 1]`, and `instead` names a cell with roads for each."""

    link: Integers
    share: Floats
    """How far along its link each place lies, 0 to 1."""
    lat: Floats
    lng: Floats
    offsets: Integers
    instead: Integers

    @classmethod
    def along(cls, network: RoadNetwork, grid: Grid) -> Kerbs:
        """Every link but motorways that are not the only road in their cell, every few metres."""
        from scipy.spatial import cKDTree

        pieces = np.maximum(np.rint(network.length_m / PITCH_M), 1).astype(np.int64)
        link = np.repeat(np.arange(network.n_links), pieces)
        share = (np.arange(len(link)) - np.repeat(np.cumsum(pieces) - pieces, pieces) + 0.5) / pieces[link]
        lat, lng = points_along(network.shape_offsets, network.shape_lat, network.shape_lng, link, share)
        cell = np.maximum(grid.locate(lat, lng), 0)
        fast = network.road_class[link] == 1
        other = np.bincount(cell[~fast], minlength=grid.n_cells)
        keep = ~fast | (other[cell] == 0)
        order = np.flatnonzero(keep)[np.argsort(cell[keep], kind="stable")]
        counts = np.bincount(cell[keep], minlength=grid.n_cells)
        have = np.flatnonzero(counts)
        rows = np.column_stack(np.divmod(np.arange(grid.n_cells), grid.columns))
        instead = have[cKDTree(rows[have]).query(rows)[1]]
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.int64)
        return cls(link[order], share[order], lat[order], lng[order], offsets, np.asarray(instead, dtype=np.int64))

    def draw(self, cell: Integers, generator: np.random.Generator) -> Integers:
        """A place in each of these fine cells, or in the nearest one that has a road."""
        where = self.instead[cell]
        size = self.offsets[where + 1] - self.offsets[where]
        return np.asarray(self.offsets[where] + (generator.random(len(where)) * size).astype(np.int64))


def grid_over(network: RoadNetwork, most_cells: int) -> Grid:
    """The public grid over a network's box on which ends, visits and flows are counted."""
    south, north = float(network.shape_lat.min()), float(network.shape_lat.max())
    west, east = float(network.shape_lng.min()), float(network.shape_lng.max())
    lat_pad = MARGIN_M / 111_000
    lng_pad = lat_pad / max(np.cos(np.radians((south + north) / 2)), 0.01)
    box = (south - lat_pad, west - lng_pad, north + lat_pad, east + lng_pad)
    cell_m = CELL_M
    while (grid := Grid(*box, cell_m)).n_cells > most_cells:
        cell_m *= 2
    return grid


def walked_cells(network: RoadNetwork, frame: Frame) -> Integers:
    """The walked cell of the middle of each link."""
    return frame.walked_at(*frame.place(*network.midpoint))
