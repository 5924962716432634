"""own-seeded: other people's rhythms on new places; close to real days, and without any promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.exact import exact_sums
from murmurate.mechanisms.plausible.patterns import jittered, label_days
from murmurate.mechanisms.plausible.placing import calibrated
from murmurate.mechanisms.plausible.rhythm import FixedDays
from murmurate.mechanisms.plausible.statistics import UNIT
from murmurate.profiles.days import DailyTraces

if TYPE_CHECKING:
    from murmurate.mechanisms.plausible import Plausible

Places = NDArray[np.int32]

MOST_SHIFT = 2
"""Largest number of steps by which each change of place may move."""


def recombine(days: DailyTraces, settings: Plausible, rng: Rng) -> Places:
    """Make `n_out` days: each has the rhythm of one private day, jittered, on cells that day never visited."""
    if settings.n_out > days.n_days:
        raise InputError(
            f"own-seeded makes at most one day from each private day: {settings.n_out:,} were asked for, and {days.n_days:,} "
            f"days have {settings.min_coverage:.0%} coverage.",
            "lower n_out, relax min_coverage, or use variant own, which draws any number.",
        )
    generator = rng.generator()
    chosen = generator.permutation(days.n_days)[: settings.n_out]
    seeds = days.place[chosen]
    label, _, n_labels = label_days(jittered(seeds, MOST_SHIFT, generator))
    exact = exact_sums(days, settings.space)
    cells = exact["cells"] / UNIT
    half = len(cells) // 2
    main, other = cells[:half] + 1e-9, cells[half:] + 1e-9
    jumps = exact["jumps"] / UNIT + 1e-6
    rhythm = FixedDays(label, n_labels)
    chart = calibrated(settings.space, rhythm, main / main.sum(), other / other.sum(), jumps / jumps.sum(), generator=generator)
    return chart.place(label, n_labels, generator, shunned=seeds)
