"""Add up results of parts: each part exactly once, on the workers where results are large, and never in two places."""

from __future__ import annotations

import pickle
import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING, Any, TypeVar

from murmurate.core import progress
from murmurate.core.work_files import WorkFiles
from murmurate.errors import EngineError

if TYPE_CHECKING:
    from murmurate.engine.protocol import Engine

Item = TypeVar("Item")
Result = TypeVar("Result")

FAN_IN = 8
"""Results that are added at once. Set by hand: sums of eight tables are hardly larger than one of them."""
BATCHES_PER_WORKER = 32
"""Batches of parts for each worker, where there are more parts: enough that no worker waits long for the last one."""
LARGE_BYTES = 4 << 20
"""A result above this size stays in a private file and is added by a worker, not by the process that waits for it."""


@dataclass(frozen=True)
class Counted:
    """A sum over some parts."""

    parts: int
    """Set of the parts in it: bit k stands for part k."""
    value: Any


@dataclass(frozen=True)
class Left:
    """A large sum that a worker left in a private file."""

    parts: int
    files: WorkFiles
    name: str


def fold(
    engine: Engine,
    function: Callable[[Item], Result],
    parts: Iterable[Item],
    add: Callable[[Sequence[Result]], Result],
    describe: str | None = None,
) -> Result | None:
    """Apply a function to every part and add up the results; None without parts.

    `add` takes results in any order and grouping, so it must be associative and commutative. A part that is missing from the
    sum or in it twice ends the work with an `EngineError`.
    """
    n_parts = 0

    def numbered() -> Iterator[tuple[int, Item]]:
        nonlocal n_parts
        for item in parts:
            yield n_parts, item
            n_parts += 1

    size = -(-len(parts) // (BATCHES_PER_WORKER * engine.workers)) if isinstance(parts, Sized) else 1
    files = engine.files()
    results = engine.map(partial(_count, function, add, files), _batches(numbered(), max(1, size)))
    small: list[Counted] = []
    large: list[Left] = []
    for found in progress.track(results, describe) if describe else results:
        if isinstance(found, Left):
            large.append(found)
        else:
            small.append(found)
        if len(small) > FAN_IN:
            small = [joined(add, small)]
    while len(large) > 1:
        level = list(engine.map(partial(_add_files, add, files), _batches(iter(large), FAN_IN)))
        for left in large:  # only now: a killed worker's files are added again
            left.files.remove([left.name])
        large = [found for found in level if isinstance(found, Left)]
        small += [found for found in level if isinstance(found, Counted)]
    if large:
        small.append(_opened(large[0]))
    if not small:
        return None
    whole = joined(add, small)
    if whole.parts != (1 << n_parts) - 1:
        raise EngineError(
            f"{n_parts - whole.parts.bit_count():,} of {n_parts:,} parts of the work are missing.", "Run it again."
        )
    result: Result = whole.value
    return result


def joined(add: Callable[[Sequence[Any]], Any], counted: Sequence[Counted]) -> Counted:
    """Add sums over different parts; refuse a part that is in two of them."""
    parts = 0
    for one in counted:
        if parts & one.parts:
            raise EngineError("a part of the work was counted twice; nothing was drawn from it.", "Run it again.")
        parts |= one.parts
    return Counted(parts, counted[0].value if len(counted) == 1 else add([one.value for one in counted]))


def _count(function: Any, add: Any, files: WorkFiles | None, batch: list[tuple[int, Any]]) -> Counted | Left:
    """Count a batch of parts in the process of a worker."""
    counted: list[Counted] = []
    for number, item in batch:
        counted.append(Counted(1 << number, function(item)))
        if len(counted) > FAN_IN:
            counted = [joined(add, counted)]
    return _kept(joined(add, counted), files)


def _add_files(add: Any, files: WorkFiles | None, batch: list[Left]) -> Counted | Left:
    """Add sums that lie in files; the files stay, since this may have to run again."""
    total = _opened(batch[0])
    for left in batch[1:]:
        total = joined(add, [total, _opened(left)])
    return _kept(total, files)


def _kept(counted: Counted, files: WorkFiles | None) -> Counted | Left:
    """Leave a large sum in a file of its own."""
    if files is None:
        return counted
    content = pickle.dumps(counted, protocol=pickle.HIGHEST_PROTOCOL)
    if len(content) < LARGE_BYTES:
        return counted
    name = f"sums-{secrets.token_hex(8)}"
    files.put(name, content)
    return Left(counted.parts, files, name)


def _opened(left: Left) -> Counted:
    counted: Counted = pickle.loads(left.files.get(left.name))  # noqa: S301  of this very run
    return counted


def _batches(items: Iterator[Any], size: int) -> Iterator[list[Any]]:
    while batch := list(islice(items, size)):
        yield batch
