"""Routes between all near nodes, computed once per network and kept on disk, so that matching only looks them up."""

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

from murmurate.core.parameters import positive
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.spaces.road.routing import Graph, compiled_workspace, costs_from, graph, reset, settle, twice
from murmurate.spaces.sphere import METRES_PER_DEGREE

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork

VERSION = 2
"""Version of the cached files; part of their folder's name, so that older ones are not read."""

NO_ROUTE = np.uint32(0xFFFFFFFF)
"""Entry of a pair of nodes without a route in reach; `STEPS` keeps it free."""

STEPS = 65_534
"""Steps of stored metres and seconds, in 16 bits each: about 0.5 m and 0.02 s at a reach of 20 minutes."""

EXCESS_STEP_S = 5.0
"""Seconds of travel time of a bin of the usual route excess; set by hand."""

EXCESS_STEPS = 120
"""Bins of the usual route excess, up to 10 minutes, the longest gap that is matched by default."""

REACHES_S = (1200.0, 900.0, 720.0, 600.0, 480.0, 360.0, 240.0, 120.0)
"""Reaches in seconds that are tried until a table is small enough, longest first; set by hand."""

MAX_PAIRS = 150_000_000
"""Most pairs of nodes of a table; at five bytes a pair this is 750 MB."""

WINDOW = 17
"""Tiles across the square around a node, set by hand; tiles are as large as this needs."""

SMALLEST_TILE_M = 500.0
"""Least side of a tile, in metres; set by hand."""


class RouteTable(NamedTuple):
    """Holds for every node, tile by tile, metres, seconds and first link of the fastest route to the nodes in reach."""

    reach_s: float
    """Largest seconds of a stored route. Since routes minimise seconds, every part of a stored route is stored as well."""
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
    """Return the folder of prepared networks: MURMURATE_CACHE, or the user's cache folder."""
    given = os.environ.get("MURMURATE_CACHE")
    if given:
        return Path(given)
    if os.name == "nt":
        return Path(os.environ.get("LOCALAPPDATA", str(Path.home()))) / "murmurate" / "cache"
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "murmurate"


def prepare(network: RoadNetwork, *, reach_s: float | None = None) -> RouteTable:
    """Return the route table of `network`: from the cache, or made now and cached.

    Without `reach_s`, the longest of 20 ... 2 minutes of driving that stays under 750 MB is taken. A cache that cannot be
    written is no error: the table is then kept in a temporary folder.
    """
    if reach_s is not None:
        positive("reach_s", reach_s)
    name = f"routes-{VERSION}-{network.fingerprint[:32]}-" + ("auto" if reach_s is None else f"{reach_s:g}")
    folder = cache_folder() / name
    if _is_whole(folder):
        return _load(folder)
    most = int(np.bincount(network.link_from).max())
    if most > 255:
        raise InputError(f"a node has {most} links leaving it; at most 255 can be handled, so this is hardly a road network.")
    reach_s = _affordable_reach_s(network) if reach_s is None else float(reach_s)
    try:
        shutil.rmtree(folder, ignore_errors=True)
        folder.parent.mkdir(parents=True, exist_ok=True)
        return _make(network, reach_s, folder)
    except OSError:
        return _make(network, reach_s, Path(tempfile.mkdtemp(prefix="murmurate-")) / folder.name)


def _affordable_reach_s(network: RoadNetwork) -> float:
    """Return the longest reach whose table is small enough, judged by searches from a few nodes."""
    sample = np.unique(np.linspace(0, network.n_nodes - 1, 40).astype(np.int64))
    seconds = np.concatenate([costs_from(network, int(node), limit=REACHES_S[0]) for node in sample])
    for reach_s in REACHES_S:
        # Tiles are kept whole, so that about a third more is stored than is reached.
        if 1.35 * (seconds <= reach_s).sum() / len(sample) * network.n_nodes <= MAX_PAIRS:
            return reach_s
    return REACHES_S[-1]


class _Tiles(NamedTuple):
    """Holds the nodes by square tile."""

    x: Floats
    """Metres east of the westernmost node."""
    y: Floats
    """Metres north of the southernmost node."""
    row: NDArray[np.int32]
    column: NDArray[np.int32]
    slot: NDArray[np.int32]
    """Position of each node within its tile."""
    n_nodes: NDArray[np.int32]
    """[row, column]: number of nodes of each tile."""


def _tiles(network: RoadNetwork, reach_s: float) -> _Tiles:
    """Sort nodes into tiles so large that no route of this reach leaves the window around its start."""
    scale = np.cos(np.radians(network.node_lat.mean()))
    x = (network.node_lng - network.node_lng.min()) * scale * METRES_PER_DEGREE
    y = (network.node_lat - network.node_lat.min()) * METRES_PER_DEGREE
    # No route leads farther than this; cosines of the edges, because degrees of longitude shrink towards the poles.
    squeeze = float(np.cos(np.radians(np.abs(network.node_lat))).min() / scale)
    farthest_m = min(reach_s * float(network.speed_kmh.max()) / 3.6 / min(1.0, squeeze), float(max(x.max(), y.max())) + 1.0)
    tile_m = max(SMALLEST_TILE_M, farthest_m / (WINDOW // 2))
    row, column = (y / tile_m).astype(np.int32), (x / tile_m).astype(np.int32)
    key = row.astype(np.int64) * (int(column.max()) + 1) + column
    order = np.argsort(key, kind="stable")
    slot = np.empty(network.n_nodes, dtype=np.int32)
    slot[order] = np.arange(network.n_nodes) - np.searchsorted(key[order], key[order])
    count = np.zeros((int(row.max()) + 1, int(column.max()) + 1), dtype=np.int32)
    np.add.at(count, (row, column), 1)
    return _Tiles(x, y, row, column, slot, count)


def _make(network: RoadNetwork, reach_s: float, folder: Path) -> RouteTable:
    """Search from every node; rows go straight to disk, so that memory holds only a few hundred of them."""
    tiles = _tiles(network, reach_s)
    window = WINDOW + 2  # a tile more on each side: farthest_m seldom ends at the edge of a tile
    metres, seconds = float(reach_s * network.speed_kmh.max() / 3.6 / STEPS), reach_s / STEPS
    base = np.full((network.n_nodes, window * window), -1, dtype=np.int64)
    part = Path(tempfile.mkdtemp(prefix=folder.name + ".", dir=folder.parent if folder.parent.is_dir() else None))
    g = graph(network, by="time")
    chunk = max(1, min(network.n_nodes, 20_000_000 // max(1, network.n_nodes)))
    used = 0
    with (part / "cost.u32").open("wb") as cost_file, (part / "hop.u8").open("wb") as hop_file:
        for first in range(0, network.n_nodes, chunk):
            last = min(network.n_nodes, first + chunk)
            cost, hop = _rows(g, first, last, reach_s, metres, seconds, tiles, window, base, used)
            used += len(cost)
            cost_file.write(cost)
            hop_file.write(hop)
    np.save(part / "base.npy", base)
    np.savez(part / "tiles.npz", row=tiles.row, column=tiles.column, slot=tiles.slot)
    about = {"reach_s": reach_s, "metres": metres, "seconds": seconds, "window": window, "pairs": used}
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
    """Check that a cached table has all its files at their full size; a full disk leaves others."""
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
        reach_s=float(about["reach_s"]),
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
    reach_s: float,
    metres: float,
    seconds: float,
    tiles: _Tiles,
    window: int,
    base: Integers,
    used_before: int,
) -> tuple[NDArray[np.uint32], NDArray[np.uint8]]:
    """Return rows of nodes first ... last - 1; `base` is filled in place."""
    cost, other, link_in, hop, done, touched, heap_cost, heap_node = compiled_workspace(len(g.offsets) - 1)
    out_cost = np.empty(1024, dtype=np.uint32)
    out_hop = np.empty(1024, dtype=np.uint8)
    row, column, slot, n_nodes = tiles.row, tiles.column, tiles.slot, tiles.n_nodes
    half = window // 2
    used = 0
    for u in range(first, last):
        n = settle(g, u, np.int64(-1), reach_s, cost, other, link_in, hop, done, touched, heap_cost, heap_node)
        for i in range(n):
            v = touched[i]
            if not done[v]:
                continue
            dr, dc = row[v] - row[u] + half, column[v] - column[u] + half
            if dr < 0 or dr >= window or dc < 0 or dc >= window:
                continue
            where = dr * window + dc
            if base[u, where] < 0:
                base[u, where] = used_before + used
                size = n_nodes[row[v], column[v]]
                while used + size > len(out_cost):
                    out_cost = twice(out_cost)
                    out_hop = twice(out_hop)
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
    """Return the position of the route between two nodes; -1 where there is none in reach."""
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
    """Return median of route minus straight line by travel time; public, since it is the network's alone."""
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
