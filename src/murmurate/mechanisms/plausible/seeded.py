"""own-seeded: other people's rhythms on new places; close to real days, and without any promise."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.patterns import MOST_SHIFT, jittered, label_days
from murmurate.mechanisms.plausible.placing import CALIBRATION_DAYS, calibrated
from murmurate.mechanisms.plausible.statistics import UNIT, exact_sums
from murmurate.profiles.days import DailyTraces

if TYPE_CHECKING:
    from murmurate.mechanisms.plausible import Plausible


def recombine(days: DailyTraces, settings: Plausible, rng: Rng) -> NDArray[np.int32]:
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
    some = generator.integers(0, len(label), CALIBRATION_DAYS)
    shares = main / main.sum(), other / other.sum(), jumps / jumps.sum()
    chart = calibrated(settings.space, label[some], n_labels[some], *shares, generator=generator)
    return chart.place(label, n_labels, generator, shunned=seeds)
