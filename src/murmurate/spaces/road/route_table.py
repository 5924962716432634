"""Routes between all near nodes, found once per network and kept on disk, so that matching only looks them up."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.spaces.road.routing import Graph, graph, reset, settle
from murmurate.spaces.sphere import METRES_PER_DEGREE

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork

VERSION = 1
TILE_M = 1000.0
NO_ROUTE = np.uint32(0xFFFFFFFF)
STEPS = 65_534
"""Metres and seconds are kept in 16 bits each: 0.12 m and 0.02 s at a reach of 8 km."""
EXCESS_STEP_S = 5.0
EXCESS_STEPS = 120
REACHES_M = (8000.0, 6000.0, 4000.0, 3000.0, 2000.0, 1000.0)
MAX_PAIRS = 200_000_000
"""At five bytes a pair this is 1 GB."""
SLOWEST_M_PER_S = 4.0
"""How slow a route may be on average before its time no longer fits; slower ones are stored at the longest time."""


class RouteTable(NamedTuple):
    """For every node, tile by tile, metres, seconds and first link of the fastest route to the nodes in reach."""

    reach_m: float
    metres: float
    """Metres per step of the stored distance."""
    seconds: float
    window: int
    """Tiles in a row of the square around a node's own tile."""
    tile_row: NDArray[np.int32]
    tile_column: NDArray[np.int32]
    slot: NDArray[np.int32]
    """The place of each node within its tile."""
    base: Integers
    """Where the row of (node, tile) begins; -1 where no node of the tile is in reach."""
    cost: NDArray[np.uint32]
    """Metres in the upper 16 bits, seconds in the lower."""
    hop: NDArray[np.uint8]
    """Which out-link of the node the route begins with."""
    excess_m: Floats
    """How much longer than the straight line routes usually are (median), by 5 s of travel time."""


def cache_folder() -> Path:
    """Where prepared networks are kept: MURMURATE_CACHE, or the user's cache folder."""
    given = os.environ.get("MURMURATE_CACHE")
    if given:
        return Path(given)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "murmurate" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmurate"


def prepare(network: RoadNetwork, *, reach_m: float | None = None) -> RouteTable:
    """The route table of a network: from the cache, or made now and cached.

    Without `reach_m`, the farthest of 8 ... 1 km that stays under 1 GB is taken. A cache that cannot be written is
    no error: the table is then kept in a temporary folder until the process ends.
    """
    most = int(np.bincount(network.link_from).max())
    if most > 255:
        raise InputError(f"a node has {most} links leaving it; at most 255 can be handled, so this is hardly a road network.")
    tiles = _Tiles(network)
    if reach_m is None:
        fits = [reach for reach in REACHES_M if tiles.pairs_within(reach) <= MAX_PAIRS]
        reach_m = fits[0] if fits else REACHES_M[-1]
    folder = cache_folder() / f"routes-{VERSION}-{network.fingerprint[:32]}-{reach_m:g}"
    if _is_whole(folder):
        return _load(folder)
    shutil.rmtree(folder, ignore_errors=True)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        return _make(network, tiles, reach_m, folder)
    except OSError:
        return _make(network, tiles, reach_m, Path(tempfile.mkdtemp(prefix="murmurate-")) / folder.name)


class _Tiles:
    """Nodes by square tile."""

    def __init__(self, network: RoadNetwork) -> None:
        scale = np.cos(np.radians(network.node_lat.mean()))
        self.x = (network.node_lng - network.node_lng.min()) * scale * METRES_PER_DEGREE
        self.y = (network.node_lat - network.node_lat.min()) * METRES_PER_DEGREE
        self.row = (self.y / TILE_M).astype(np.int32)
        self.column = (self.x / TILE_M).astype(np.int32)
        key = self.row.astype(np.int64) * (int(self.column.max()) + 1) + self.column
        order = np.argsort(key, kind="stable")
        starts = np.searchsorted(key[order], key[order])
        self.slot = np.empty(network.n_nodes, dtype=np.int32)
        self.slot[order] = np.arange(network.n_nodes) - starts
        self.count = np.zeros((int(self.row.max()) + 1, int(self.column.max()) + 1), dtype=np.int32)
        np.add.at(self.count, (self.row, self.column), 1)

    def pairs_within(self, reach_m: float) -> int:
        """About how many pairs a table of this reach holds: nodes in the circle around each tile."""
        steps = int(np.ceil(reach_m / TILE_M))
        total = 0
        padded = np.pad(self.count, steps).astype(np.int64)
        for dy in range(-steps, steps + 1):
            for dx in range(-steps, steps + 1):
                if (max(0, abs(dy) - 1) ** 2 + max(0, abs(dx) - 1) ** 2) * TILE_M**2 < reach_m**2:
                    rows, columns = self.count.shape
                    near = padded[steps + dy : steps + dy + rows, steps + dx : steps + dx + columns]
                    total += int((near * self.count).sum())
        return total


def _make(network: RoadNetwork, tiles: _Tiles, reach_m: float, folder: Path) -> RouteTable:
    """Search from every node; rows go straight to disk, so that memory holds only a few hundred of them."""
    extent = max(tiles.count.shape)
    steps = min(int(np.ceil(reach_m / TILE_M)), extent)
    window = 2 * steps + 1
    metres, seconds = reach_m * 1.25 / STEPS, reach_m / SLOWEST_M_PER_S / STEPS
    base = np.full((network.n_nodes, window * window), -1, dtype=np.int64)
    part = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent if folder.parent.is_dir() else None))
    g = graph(network, by="time")
    chunk = max(1, min(network.n_nodes, 20_000_000 // max(1, network.n_nodes)))
    used = 0
    with (part / "cost.u32").open("wb") as cost_file, (part / "hop.u8").open("wb") as hop_file:
        for first in range(0, network.n_nodes, chunk):
            last = min(network.n_nodes, first + chunk)
            cost, hop = _rows(
                g, first, last, reach_m, metres, seconds, tiles.row, tiles.column, tiles.slot, tiles.count, window, base, used
            )
            used += len(cost)
            cost_file.write(cost)
            hop_file.write(hop)
    np.save(part / "base.npy", base)
    np.savez(part / "tiles.npz", row=tiles.row, column=tiles.column, slot=tiles.slot)
    about = {"reach_m": reach_m, "metres": metres, "seconds": seconds, "window": window, "pairs": used}
    (part / "about.json").write_text(json.dumps(about))
    np.save(part / "excess.npy", _usual_excess(_load(part), tiles))
    try:
        part.rename(folder)
    except OSError:  # another process was first, or the target is on another disk: both hold the same table
        if not folder.is_dir():
            return _load(part)
        shutil.rmtree(part)
    return _load(folder)


def _is_whole(folder: Path) -> bool:
    """Whether a cached table has all its files at their full size; a disk that filled up leaves others."""
    try:
        pairs = int(json.loads((folder / "about.json").read_text())["pairs"])
        sizes = (folder / "cost.u32").stat().st_size, (folder / "hop.u8").stat().st_size
    except (OSError, ValueError, KeyError):
        return False
    return sizes == (4 * pairs, pairs) and all((folder / name).is_file() for name in ("base.npy", "tiles.npz", "excess.npy"))


def _load(folder: Path) -> RouteTable:
    about: dict[str, Any] = json.loads((folder / "about.json").read_text())
    tiles = np.load(folder / "tiles.npz", allow_pickle=False)
    excess = folder / "excess.npy"
    return RouteTable(
        reach_m=float(about["reach_m"]),
        metres=float(about["metres"]),
        seconds=float(about["seconds"]),
        window=int(about["window"]),
        tile_row=tiles["row"],
        tile_column=tiles["column"],
        slot=tiles["slot"],
        base=np.load(folder / "base.npy", mmap_mode="r"),
        cost=np.memmap(folder / "cost.u32", dtype=np.uint32, mode="r"),
        hop=np.memmap(folder / "hop.u8", dtype=np.uint8, mode="r"),
        excess_m=np.load(excess, allow_pickle=False) if excess.is_file() else np.zeros(EXCESS_STEPS),
    )


@njit(cache=True, nogil=True)
def _rows(  # noqa: PLR0917
    g: Graph,
    first: int,
    last: int,
    reach_m: float,
    metres: float,
    seconds: float,
    row: NDArray[np.int32],
    column: NDArray[np.int32],
    slot: NDArray[np.int32],
    count: NDArray[np.int32],
    window: int,
    base: Integers,
    used_before: int,
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Rows of nodes first ... last - 1; `base` is filled in place."""
    n_nodes = len(g.offsets) - 1
    cost = np.full(n_nodes, np.inf)
    other = np.zeros(n_nodes)
    link_in = np.full(n_nodes, -1, dtype=np.int64)
    done = np.zeros(n_nodes, dtype=np.bool_)
    touched = np.empty(n_nodes + 1, dtype=np.int64)
    heap_cost = np.empty(4 * n_nodes + 64)
    heap_node = np.empty(4 * n_nodes + 64, dtype=np.int64)
    hop = np.zeros(n_nodes, dtype=np.int64)
    out_cost = np.empty(1024, dtype=np.uint32)
    out_hop = np.empty(1024, dtype=np.uint8)
    half = window // 2
    used = 0
    for u in range(first, last):
        n = settle(g, u, -1, np.inf, reach_m, cost, other, link_in, hop, done, touched, heap_cost, heap_node)
        for i in range(n):
            v = touched[i]
            if not done[v] or other[v] > reach_m:
                continue
            dr, dc = row[v] - row[u] + half, column[v] - column[u] + half
            if dr < 0 or dr >= window or dc < 0 or dc >= window:
                continue
            where = dr * window + dc
            if base[u, where] < 0:
                base[u, where] = used_before + used
                size = count[row[v], column[v]]
                while used + size > len(out_cost):
                    out_cost = np.append(out_cost, np.empty(len(out_cost), dtype=np.uint32))
                    out_hop = np.append(out_hop, np.empty(len(out_hop), dtype=np.uint8))
                out_cost[used : used + size] = NO_ROUTE
                out_hop[used : used + size] = 255
                used += size
            at = base[u, where] - used_before + slot[v]
            long = min(STEPS, int(other[v] / metres + 0.5))
            slow = min(STEPS, int(cost[v] / seconds + 0.5))
            out_cost[at] = np.uint32(long * 65536 + slow)
            out_hop[at] = np.uint8(hop[v])
        reset(n, cost, link_in, done, touched)
    return out_cost[:used].copy(), out_hop[:used].copy()


@njit(cache=True, nogil=True)
def look_up(table: RouteTable, start: int, end: int) -> int:
    """Where the route between two nodes is kept; -1 where there is none in reach."""
    half = table.window // 2
    down = table.tile_row[end] - table.tile_row[start] + half
    across = table.tile_column[end] - table.tile_column[start] + half
    if down < 0 or down >= table.window or across < 0 or across >= table.window:
        return -1
    base = table.base[start, down * table.window + across]
    if base < 0:
        return -1
    at = base + table.slot[end]
    return -1 if table.cost[at] == NO_ROUTE else at


def _usual_excess(table: RouteTable, tiles: _Tiles) -> Floats:
    """Median of route minus straight line by travel time; public, since it is the network's alone."""
    sources = np.unique(np.linspace(0, len(tiles.x) - 1, 200).astype(np.int64))
    step, routed, straight = _sampled_routes(table, tiles.x, tiles.y, sources)
    order = np.argsort(step, kind="stable")
    bounds = np.searchsorted(step[order], np.arange(EXCESS_STEPS + 1))
    excess = (routed - straight)[order]
    medians = np.zeros(EXCESS_STEPS)
    for k in range(EXCESS_STEPS):
        found = excess[bounds[k] : bounds[k + 1]]
        medians[k] = np.median(found) if len(found) >= 20 else 0.0
    return np.maximum.accumulate(medians)


@njit(cache=True, nogil=True)
def _sampled_routes(table: RouteTable, x: Floats, y: Floats, sources: Integers) -> tuple[Integers, Floats, Floats]:
    """Step of travel time, and metres of route and of straight line, of every route from these nodes."""
    total = len(sources) * len(x)
    step = np.empty(total, dtype=np.int64)
    routed, straight = np.empty(total), np.empty(total)
    n = 0
    for u in sources:
        for v in range(len(x)):
            at = look_up(table, u, v)
            if at < 0 or u == v:
                continue
            k = int((table.cost[at] & 0xFFFF) * table.seconds / EXCESS_STEP_S)
            if k < EXCESS_STEPS:
                step[n], routed[n] = k, (table.cost[at] >> 16) * table.metres
                straight[n] = np.sqrt((x[u] - x[v]) ** 2 + (y[u] - y[v]) ** 2)
                n += 1
    return step[:n], routed[:n], straight[:n]
