"""Paths from a trained network: many walks at once, or one reverse tree for every destination and hour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.dp_loc.networks import PublishedNet, RelativeNet
from murmurate.mechanisms.dp_loc.protocols import Arrays
from murmurate.mechanisms.dp_loc.settings import Route
from murmurate.mechanisms.dp_loc.walks import walk_many
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.shortest import in_order, tree_paths
from murmurate.synthesis.sizes import Sizes

TRIES = 4

Singles = NDArray[np.float32]


@dataclass(frozen=True, eq=False)
class PublishedRouter:
    """The published network; it never learned to stop, so a path ends when it reaches its destination."""

    params: Any
    around: Neighbourhood
    hours: int
    route: Route

    @cached_property
    def net(self) -> PublishedNet:
        return PublishedNet(self.around.n_cells, self.around.n_offsets, self.hours)

    def paths(self, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator) -> CellTrips:
        if self.route == "most_probable":
            return grouped_paths(sources, destinations, hours, self.around, self._costs())
        tables = {"inside": inside(self.around), **self.params}
        sizes = np.full(len(sources), -1)
        return walk_many(
            sources, destinations, hours, sizes, logits=published_logits, net=self.net, tables=tables, around=self.around,
            generator=generator, tries=TRIES,
        )  # fmt: skip

    def _costs(self) -> Callable[[int, int], Singles]:
        """[cell, offset] costs of a destination and hour: the hidden layer is a sum of parts computed once."""
        params, width = self.params, self.net.embedding
        from_cell = params["place.w"] @ params["hidden.w"][:width] + params["hidden.b"]
        to = params["place.w"] @ params["hidden.w"][width : 2 * width]
        outside = np.where(inside(self.around), params["out.b"], np.float32(-np.inf))
        hidden, logits, scratch = np.empty_like(from_cell), np.empty_like(outside), np.empty_like(outside)

        def costs(destination: int, hour: int) -> Singles:
            np.add(from_cell, to[destination] + np.float32(hour / self.hours) * params["hidden.w"][-1], out=hidden)
            np.maximum(hidden, 0.0, out=hidden)
            np.matmul(hidden, params["out.w"], out=logits)
            return negative_log_softmax(logits, outside, scratch)

        return costs

    def arrays(self) -> Arrays:
        return dict(self.params)

    @classmethod
    def from_arrays(cls, arrays: Arrays, around: Neighbourhood, hours: int, route: Route) -> PublishedRouter:
        return cls(dict(arrays), around, hours, route)


@dataclass(frozen=True, eq=False)
class RelativeRouter:
    """The network that sees where the destination lies, times calibrated weights of cells and steps."""

    params: Any
    visits: Floats
    steps: Floats
    zone: Integers
    sizes: Sizes
    around: Neighbourhood
    hours: int
    route: Route

    @cached_property
    def net(self) -> RelativeNet:
        return RelativeNet(int(self.zone.max()) + 1, self.around.n_relative, self.around.n_offsets, self.hours)

    @cached_property
    def _log_weights(self) -> Floats:
        """[cell, offset] logarithms of both weights; minus infinity outside the grid, and for staying."""
        cell = np.arange(self.around.n_cells)[:, None]
        row, column = np.divmod(np.arange(self.around.n_offsets), self.around.side)
        target = np.clip(
            cell + (row - self.around.reach) * self.around.columns + column - self.around.reach, 0, self.around.n_cells - 1
        )
        with np.errstate(divide="ignore"):
            weights = np.log(self.visits[target] * self.steps)
        return np.where(np.asarray(inside(self.around)), weights, -np.inf).astype(np.float32)

    def paths(self, sources: Integers, destinations: Integers, hours: Integers, generator: np.random.Generator) -> CellTrips:
        if self.route == "most_probable":
            return grouped_paths(sources, destinations, hours, self.around, self._costs())
        tables = {"weights": self._log_weights, "zone": self.zone, "relative": self.around.relative, **self.params}
        wanted = self.sizes.sample(sources, destinations, hours, generator)
        return walk_many(
            sources, destinations, hours, wanted, logits=relative_logits, net=self.net, tables=tables, around=self.around,
            generator=generator, tries=TRIES,
        )  # fmt: skip

    def _costs(self) -> Callable[[int, int], Singles]:
        params, zone, around = self.params, self.zone, self.around
        cells = np.arange(around.n_cells)
        weights = self._log_weights
        outside = np.where(np.isfinite(weights), weights, np.float32(-np.inf))

        def costs(destination: int, hour: int) -> Singles:
            way = around.relative_of(cells, np.full(around.n_cells, destination))
            hidden = (
                params["from.w"][zone] + params["way.w"][way] + (params["to.w"][zone[destination]] + params["hour.w"][hour])
            )
            logits = np.maximum(hidden, 0.0) @ params["out.w"] + params["out.b"] + params["direct.w"][way]
            return negative_log_softmax(logits, outside)

        return costs

    def arrays(self) -> Arrays:
        own = {"visits": self.visits, "steps": self.steps.astype(np.float32), "zone": self.zone, "sizes": self.sizes.table}
        return {**own, **{f"net.{name}": value for name, value in self.params.items()}}

    @classmethod
    def from_arrays(cls, arrays: Arrays, around: Neighbourhood, hours: int, route: Route) -> RelativeRouter:
        params = {name.removeprefix("net."): value for name, value in arrays.items() if name.startswith("net.")}
        sizes = Sizes(arrays["sizes"], around.columns)
        return cls(params, arrays["visits"], arrays["steps"], arrays["zone"], sizes, around, hours, route)


def published_logits(  # noqa: PLR0917
    net: PublishedNet, around: Neighbourhood, tables: Any, cell: Any, destination: Any, hour: Any
) -> Any:
    """Of the offsets of each walker; whoever is at the destination stops there."""
    import jax.numpy as jnp

    arrived = (cell == destination)[:, None] & (jnp.arange(around.n_offsets) == around.stop)
    wanted = jnp.where(arrived, 1e9, net.logits(tables, cell, destination, hour))
    return jnp.where(tables["inside"][cell] | arrived, wanted, -jnp.inf)


def relative_logits(  # noqa: PLR0917
    net: RelativeNet, around: Neighbourhood, tables: Any, cell: Any, destination: Any, hour: Any
) -> Any:
    """Of the offsets of each walker, calibrated; stopping is a class of its own, open at the destination only."""
    import jax.numpy as jnp

    rows, columns, zone = around.rows, around.columns, tables["zone"]
    down = destination // columns - cell // columns + rows - 1
    way = tables["relative"][down, destination % columns - cell % columns + columns - 1]
    made = net.logits(tables, {"from": zone[cell], "to": zone[destination], "hour": hour, "way": way})
    may_stop = (cell == destination)[:, None] & (jnp.arange(around.n_offsets) == around.stop)
    return jnp.where(may_stop, made, made + tables["weights"][cell])


def inside(around: Neighbourhood) -> Any:
    """[cell, offset] whether the offset leads to another cell of the grid."""
    row, column = np.divmod(np.arange(around.n_cells)[:, None], around.columns)
    down, right = np.divmod(np.arange(around.n_offsets), around.side)
    row, column = row + down - around.reach, column + right - around.reach
    within = (row >= 0) & (row < around.rows) & (column >= 0) & (column < around.columns)
    return within & (np.arange(around.n_offsets) != around.stop)


def negative_log_softmax(logits: Singles, weights: Singles, scratch: Singles | None = None) -> Singles:
    """Costs of steps, in place of the logits: minus the logarithm of their probability once log weights are added."""
    np.add(logits, weights, out=logits)
    top = logits.max(axis=1, keepdims=True)
    closed = np.flatnonzero(~np.isfinite(top[:, 0]))  # cells that no step leaves
    top[closed] = 0.0
    scratch = np.subtract(logits, top, out=scratch)
    np.exp(scratch, out=scratch)
    with np.errstate(divide="ignore"):
        total = top + np.log(scratch.sum(axis=1, keepdims=True))
    np.subtract(total, logits, out=logits)
    logits[closed] = np.inf
    return np.maximum(logits, 0.0, out=logits)


def grouped_paths(
    sources: Integers, destinations: Integers, hours: Integers, around: Neighbourhood, costs: Callable[[int, int], Singles]
) -> CellTrips:
    """Most probable paths, one table of costs and one reverse tree for every (destination, hour)."""
    span = int(hours.max(initial=0)) + 1
    key = destinations * span + hours
    order = np.argsort(key, kind="stable")
    starts = np.flatnonzero(np.r_[True, np.diff(key[order]) != 0]) if len(order) else np.zeros(0, dtype=np.int64)
    parts, lengths = [], []
    for low, high in pairwise([*starts.tolist(), len(order)]):
        group = order[low:high]
        destination = int(destinations[group[0]])
        cells, sizes = tree_paths(costs(destination, int(hours[group[0]])), sources[group], destination, around)
        parts.append(cells)
        lengths.append(sizes)
    return in_order(parts, lengths, order, hours)
