"""Functions over parts that workers can import, some of which end their process."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import numpy as np

from murmurate.engine.shared import opened
from murmurate.errors import InputError


def killed_once(folder, item):
    """Ends its own process the first time it meets item 3."""
    mark = Path(folder) / "killed"
    if item == 3 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return item * item


def always_killed(item):
    os.kill(os.getpid(), signal.SIGKILL)


def shared_sum(handle, item):
    return sum(opened(handle)) + item


def counts(size, item):
    return np.bincount([item % size], minlength=size)


def counts_or_dies(folder, size, item):
    """Counts an item; the first time it meets item 5, 22, 39, ... it ends its own process."""
    mark = Path(folder) / f"killed-{item}"
    if item % 17 == 5 and not mark.exists():
        mark.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return counts(size, item)


def failing(item):
    raise InputError(f"a fault of {item}")
