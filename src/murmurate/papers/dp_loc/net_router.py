"""Paths from a trained network: many walks at once, or one reverse tree for every destination and hour."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.dp_loc.routes import Arrays
from murmurate.mechanisms.dp_loc.settings import Route
from murmurate.papers.dp_loc.networks import PublishedNet, RelativeNet
from murmurate.papers.dp_loc.walks import walk_many
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.sequences import CellTrips
from murmurate.synthesis.shortest import (
    Box,
    Costs,
    Singles,
    StepCosts,
    Window,
    cheapest_paths,
    close_outside,
    grouped,
    in_order,
)
from murmurate.synthesis.sizes import Sizes

TRIES = 4
"""Walks drawn for each trip, of which the one nearest to the wanted size is kept. Set by hand."""


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
            return grouped_paths(sources, destinations, hours, self.around, self.costs())
        tables = {"inside": inside(self.around), **self.params}
        sizes = np.full(len(sources), -1)
        return walk_many(
            sources, destinations, hours, sizes, logits=published_logits, net=self.net, tables=tables, around=self.around,
            generator=generator, tries=TRIES,
        )  # fmt: skip

    def costs(self) -> Callable[[int, int], StepCosts]:
        """Return the costs of a destination and hour: the hidden layer is a sum of parts computed once."""
        params, width, around = self.params, self.net.embedding, self.around
        from_cell = np.ascontiguousarray((params["place.w"] @ params["hidden.w"][:width] + params["hidden.b"]).T)
        to = params["place.w"] @ params["hidden.w"][width : 2 * width]
        out = np.ascontiguousarray(np.vstack([params["out.w"], params["out.b"]]).T)
        rows = [np.empty(n * around.n_cells, dtype=np.float32) for n in (out.shape[1], around.n_offsets, around.n_offsets)]

        def of(destination: int, hour: int) -> StepCosts:
            added = to[destination] + np.float32(hour / self.hours) * params["hidden.w"][-1]

            def costs(window: Window) -> Costs:
                hidden, logits, scratch = (one[: len(one) // around.n_cells * window.n_cells] for one in rows)
                hidden = hidden.reshape(-1, window.n_cells)
                _add_and_cut(from_cell, added, window.box, around.columns, hidden)
                logits = np.matmul(out, hidden, out=logits.reshape(-1, window.n_cells))
                close_outside(logits, window, around)
                return with_totals(logits, scratch.reshape(logits.shape))

            return costs

        return of

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
            return grouped_paths(sources, destinations, hours, self.around, self.costs())
        tables = {"weights": self._log_weights, "zone": self.zone, "relative": self.around.relative, **self.params}
        wanted = self.sizes.sample(sources, destinations, hours, generator)
        return walk_many(
            sources, destinations, hours, wanted, logits=relative_logits, net=self.net, tables=tables, around=self.around,
            generator=generator, tries=TRIES,
        )  # fmt: skip

    def costs(self) -> Callable[[int, int], StepCosts]:
        params, zone, around = self.params, self.zone, self.around

        def of(destination: int, hour: int) -> StepCosts:
            def costs(window: Window) -> Costs:
                cells = window.cells
                way = around.relative_of(cells, np.full(len(cells), destination))
                to = params["to.w"][zone[destination]] + params["hour.w"][hour]
                hidden = params["from.w"][zone[cells]] + params["way.w"][way] + to
                logits = np.maximum(hidden, 0.0) @ params["out.w"] + params["out.b"] + params["direct.w"][way]
                logits = np.ascontiguousarray((logits + self._log_weights[cells]).T)
                return with_totals(logits, np.empty_like(logits))

            return costs

        return of

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
    """Return logits of the offsets of each walker; whoever is at the destination stops there."""
    import jax.numpy as jnp

    arrived = (cell == destination)[:, None] & (jnp.arange(around.n_offsets) == around.stop)
    wanted = jnp.where(arrived, 1e9, net.logits(tables, cell, destination, hour))
    return jnp.where(tables["inside"][cell] | arrived, wanted, -jnp.inf)


def relative_logits(  # noqa: PLR0917
    net: RelativeNet, around: Neighbourhood, tables: Any, cell: Any, destination: Any, hour: Any
) -> Any:
    """Return calibrated logits of the offsets of each walker; stopping is a class of its own, open at the destination only."""
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


def with_totals(logits: Singles, scratch: Singles) -> Costs:
    """Return costs with the logarithm of each column's sum of exponentials (infinite: no step possible) and the largest."""
    top = logits.max(axis=0)
    top[~np.isfinite(top)] = 0.0
    np.exp(np.subtract(logits, top, out=scratch), out=scratch)
    sums = scratch.sum(axis=0)
    with np.errstate(divide="ignore"):
        return logits, np.where(sums > 0, top + np.log(sums), np.float32(np.inf)), top


@njit(cache=True)
def _add_and_cut(base: Singles, added: Singles, box: Box, columns: int, out: Singles) -> None:
    """Write max(base + added, 0) for the cells of a window, one row a neuron, and a last row of ones for the bias."""
    south, west, high, wide = box
    for k in range(len(added)):
        for i in range(high):
            start = (south + i) * columns + west
            given, made = base[k, start : start + wide], out[k, i * wide : (i + 1) * wide]
            for j in range(wide):
                value = given[j] + added[k]
                made[j] = value if value > 0 else np.float32(0.0)
    out[len(added)] = 1.0


def grouped_paths(
    sources: Integers, destinations: Integers, hours: Integers, around: Neighbourhood, costs: Callable[[int, int], StepCosts]
) -> CellTrips:
    """Most probable paths, one table of costs and one reverse tree for every (destination, hour)."""
    order, groups = grouped(destinations * (int(hours.max(initial=0)) + 1) + hours)
    found = []
    for group in groups:
        destination, hour = int(destinations[group[0]]), int(hours[group[0]])
        found.append(cheapest_paths(costs(destination, hour), sources[group], destination, around))
    return in_order(found, order, hours)
