"""own-seeded: other people's rhythms on new places; close to real days, and without any promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.patterns import label_days
from murmurate.mechanisms.plausible.placing import calibrated
from murmurate.mechanisms.plausible.rhythm import FixedDays
from murmurate.mechanisms.plausible.statistics import UNIT, gather
from murmurate.profiles.days import DailyTraces

if TYPE_CHECKING:
    from murmurate.mechanisms.plausible import Plausible

Places = NDArray[np.int32]

MOST_SHIFT = 2
"""Steps by which each change of place may move."""


def recombine(days: DailyTraces, settings: Plausible, rng: Rng) -> Places:
    """`n_out` days: each has the rhythm of one private day, jittered, on cells that day never visited."""
    if settings.n_out > days.n_days:
        raise InputError(
            f"own-seeded makes at most one day from each private day: {settings.n_out:,} were asked for, and {days.n_days:,} "
            f"days have {settings.min_coverage:.0%} coverage.",
            "lower n_out, relax min_coverage, or use variant own, which draws any number.",
        )
    generator = rng.generator()
    chosen = generator.permutation(days.n_days)[: settings.n_out]
    seeds = days.place[chosen]
    jittered = _jitter(seeds, MOST_SHIFT, generator)
    label, _, n_labels = label_days(jittered)
    exact = gather(days, settings.space)
    cells = exact.values["cells"] / UNIT
    half = len(cells) // 2
    main, other = cells[:half] + 1e-9, cells[half:] + 1e-9
    jumps = exact.values["jumps"] / UNIT + 1e-6
    rhythm = FixedDays(label, n_labels)
    chart = calibrated(settings.space, rhythm, main / main.sum(), other / other.sum(), jumps / jumps.sum(), generator=generator)
    return chart.place(label, n_labels, generator, shunned=seeds)


@njit(cache=True)
def _jitter(place: Places, most: int, generator: np.random.Generator) -> Places:
    """Each change of place up to `most` steps earlier or later; stays keep at least one step and their order."""
    out = np.empty_like(place)
    steps = place.shape[1]
    for row in range(len(place)):
        runs = 1
        for step in range(1, steps):
            runs += place[row, step] != place[row, step - 1]
        begin = 0
        left = runs
        for step in range(1, steps + 1):
            if step < steps and place[row, step] == place[row, step - 1]:
                continue
            left -= 1
            end = steps if step == steps else step + int(generator.random() * (2 * most + 1)) - most
            end = min(max(end, begin + 1), steps - left)
            out[row, begin:end] = place[row, step - 1]
            begin = end
    return out
