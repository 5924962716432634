"""Many walks at once over a network: every step asks the network about all walkers together."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.synthesis.moves import Neighbourhood
from murmurate.synthesis.paths import straight
from murmurate.synthesis.sequences import CellTrips

Logits = Callable[[Any, Neighbourhood, Any, Any, Any, Any], Any]

AT_ONCE = 8192
"""Walkers that the network is evaluated for together. Set by hand."""

SHAPES = (64, 512, AT_ONCE)
"""Numbers of walkers the step is compiled for; fewer are padded to the next one."""

SPARE_STEPS = 20
"""Steps a walk without a wanted size may take beyond four times the straight line. Set by hand."""


def walk_many(
    sources: Integers,
    destinations: Integers,
    hours: Integers,
    sizes: Integers,
    *,
    logits: Logits,
    net: Any,
    tables: Any,
    around: Neighbourhood,
    generator: np.random.Generator,
    tries: int,
) -> CellTrips:
    """Draw one path a triple: of several tries the one nearest to the wanted size (-1: the first that arrives).

    `logits(net, around, tables, cell, destination, hour)` is compiled once for a net and a neighbourhood; the tables
    are arguments of it, so that calibrated ones do not compile again.
    A try that is too long to be nearer than another is given up; where none arrives the straight line is taken.
    """
    import jax.numpy as jnp

    n = len(sources)
    apart = np.maximum(
        np.abs(destinations // around.columns - sources // around.columns),
        np.abs(destinations % around.columns - sources % around.columns),
    )
    direct = -(-apart // around.reach)
    most = np.where(sizes > 0, 2 * sizes + 4, 4 * direct + SPARE_STEPS)
    step = partial(_compiled_step(logits, net, around), {name: jnp.asarray(value) for name, value in tables.items()})
    best: list[Integers | None] = [None] * n
    gap = np.where(sizes > 0, most, 1)
    for _ in range(tries):
        open_ = np.flatnonzero(gap > 0)
        if len(open_) == 0:
            break
        limit = np.where(sizes[open_] > 0, np.minimum(most[open_], sizes[open_] + gap[open_] - 1), most[open_])
        walked, lengths = _walk(sources[open_], destinations[open_], hours[open_], limit, step, around, generator)
        for k in np.flatnonzero(lengths > 1):
            trip = open_[k]
            off = abs(int(lengths[k]) - int(sizes[trip])) if sizes[trip] > 0 else 0
            if best[trip] is None or off < gap[trip]:
                best[trip], gap[trip] = walked[k, : lengths[k]].astype(np.int64), off
    for trip in range(n):
        if best[trip] is None:
            line = np.empty(max(int(direct[trip]) + 1, 3), dtype=np.int64)
            length = straight(line, int(sources[trip]), int(destinations[trip]), around.columns, around.reach)
            best[trip] = line[:length]
    found = [path for path in best if path is not None]
    offsets = np.concatenate([[0], np.cumsum([len(path) for path in found])]).astype(np.int64)
    return CellTrips(np.concatenate([np.zeros(0, dtype=np.int64), *found]), offsets, hours)


def _walk(  # noqa: PLR0917
    sources: Integers,
    destinations: Integers,
    hours: Integers,
    limit: Integers,
    step: Callable[..., Any],
    around: Neighbourhood,
    generator: np.random.Generator,
) -> tuple[NDArray[np.int32], Integers]:
    """Return cells [walk, place] and how many of them; 0 where the walk did not end at its destination in time."""
    n = len(sources)
    path = np.zeros((n, int(limit.max(initial=2)) + 1), dtype=np.int32)
    path[:, 0] = sources
    lengths = np.zeros(n, dtype=np.int64)
    active = np.arange(n)
    at = 0
    while len(active):
        for first in range(0, len(active), AT_ONCE):
            part = active[first : first + AT_ONCE]
            offset = _asked(step, path[part, at], destinations[part], hours[part], generator, forbid_stop=at == 0)
            cell = path[part, at]
            down, right = np.divmod(offset, around.side)
            moved = cell + (down - around.reach) * around.columns + right - around.reach
            stopped = (offset == around.stop) | (offset < 0)
            lengths[part[offset == around.stop]] = at + 1
            path[part, at + 1] = np.where(stopped, -1, moved)
        at += 1
        active = active[(path[active, at] >= 0) & (at < limit[active])]
    return path, lengths


def _asked(
    step: Callable[..., Any],
    cell: Integers,
    destination: Integers,
    hour: Integers,
    generator: np.random.Generator,
    *,
    forbid_stop: bool,
) -> Integers:
    """Draw an offset for each walker, padded to one of a few shapes so that the compiler works once for each."""
    n = len(cell)
    size = next(size for size in SHAPES if size >= n)
    padded = [np.zeros(size, dtype=np.int32) for _ in range(3)]
    for values, given in zip(padded, (cell, destination, hour), strict=True):
        values[:n] = given
    uniform = generator.random(size, dtype=np.float32)
    return np.asarray(step(*padded, uniform, forbid_stop))[:n].astype(np.int64)


@lru_cache(maxsize=8)
def _compiled_step(logits: Logits, net: Any, around: Neighbourhood) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp

    @jax.jit
    def step(  # noqa: PLR0917
        tables: Any, cell: Any, destination: Any, hour: Any, uniform: Any, forbid_stop: Any
    ) -> Any:
        """Return the offset each walker takes; -1 where no step is possible."""
        values = logits(net, around, tables, cell, destination, hour)
        middle = values.shape[1] // 2
        values = jnp.where(forbid_stop & (jnp.arange(values.shape[1]) == middle), -jnp.inf, values)
        top = jnp.max(values, axis=1, keepdims=True)
        weights = jnp.where(jnp.isfinite(values), jnp.exp(values - jnp.where(jnp.isfinite(top), top, 0.0)), 0.0)
        cumulative = jnp.cumsum(weights, axis=1)
        taken = jnp.sum(cumulative <= uniform[:, None] * cumulative[:, -1:], axis=1)
        # rounding may put a draw on the total itself: it belongs to the last step that has a weight
        last = values.shape[1] - 1 - jnp.argmax(weights[:, ::-1] > 0, axis=1)
        return jnp.where(cumulative[:, -1] > 0, jnp.minimum(taken, last), -1)

    return step
