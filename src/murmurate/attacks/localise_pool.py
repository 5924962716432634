"""Run `localise` with a release as the pool of fakes: everybody hides among days drawn from it."""

from __future__ import annotations

from typing import Any

import numpy as np

from murmurate.attacks.localise import Outcome, hide, scores
from murmurate.attacks.localise import localise as observe
from murmurate.attacks.localise_hmm import Places
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.library import PatternLibrary, named_library
from murmurate.mechanisms.plausible.patterns import Labels
from murmurate.metrics.comparison import NotMeasurable
from murmurate.profiles.aggregate import MOST_PLACES, Aggregate
from murmurate.profiles.days import STEPS, DailyTraces, daily_traces
from murmurate.spaces.grid import Grid

_FAKE_DAYS = 5000
"""Days of the pool from which an observer learns how fakes move. Set by hand."""


def localise(
    released: Trips,
    original: Trips,
    *,
    pairing: Any = None,
    grid: Grid | None = None,
    fakes: int = 10,
    library: str = "",
    seed: int = 0,
) -> list[Score]:
    """Find people of the originals with two full days among released days; pairing plays no part.

    `library` names the public library that the release was made with, as its manifest does, for the observer who holds it.
    """
    del pairing
    grid = grid or next((part.space for part in (released, original) if isinstance(part.space, Grid)), None)
    if grid is None or grid.n_cells > MOST_PLACES:
        raise NotMeasurable(f"localising needs a grid of at most {MOST_PLACES:,} cells")
    size = np.diff(released.offsets)
    if not len(size) or (size != STEPS).any() or not (original.has_time and original.has_coordinates):
        raise NotMeasurable(f"released trips are not whole days of {STEPS} steps, so nobody can hide among them")
    pool = grid.locate(released.lat, released.lng) if released.has_coordinates else released.cell
    days = daily_traces(original, grid, grid.n_cells)
    known = named_library(library, cell_m=grid.cell_m, steps=STEPS) if library else None
    patterns = known.label if isinstance(known, PatternLibrary) else None
    try:
        outcomes = localise_pool(
            days, pool.reshape(-1, STEPS).astype(np.int32), grid, n_fakes=fakes, library=patterns, seed=seed
        )
    except InputError as error:
        raise NotMeasurable(str(error)) from None
    return scores(outcomes, fakes)


def localise_pool(
    days: DailyTraces,
    pool: Places,
    grid: Grid,
    *,
    n_fakes: int = 10,
    every: int = 2,
    smoothing: float = 0.05,
    library: Labels | None = None,
    seed: int = 0,
) -> list[Outcome]:
    """Run every observer against everybody's second day, each half of the people in turn.

    The observers' aggregate is that of the other half, so that nobody's own other day hides in it; only the two observers
    who are said to know another day are given the first one. Fakes are drawn from the pool without replacement. `library` are
    the public day patterns the pool was made from, where it was.
    """
    whole("n_fakes", n_fakes)
    first, second = days.nth_days(0), days.nth_days(1)
    first = first.take(np.isin(first.person, second.person))
    if second.n_days < 4:
        raise InputError(f"localising needs at least 4 people with two full days; got {second.n_days}.")
    if len(pool) < n_fakes * 2:
        raise InputError(f"{n_fakes} fakes a person need a pool of at least {2 * n_fakes}; it has {len(pool)}.")
    generator = np.random.default_rng(seed)
    half = generator.permutation(second.n_days) % 2
    of_fakes = Aggregate.of(pool[:_FAKE_DAYS], grid, grid.n_cells, smoothing=smoothing)
    found: dict[str, list[Outcome]] = {}
    for side in (0, 1):
        mine = half == side
        others = days.take(~np.isin(days.person, second.person[mine]))
        fakes = _drawn(pool, int(mine.sum()), n_fakes, generator)
        scene = hide(second.place[mine], fakes, every=every, generator=generator)
        aggregate = Aggregate.of(others.place, grid, grid.n_cells, smoothing=smoothing, person=others.person)
        rhythms = others.place, pool[:_FAKE_DAYS]
        for outcome in observe(
            scene,
            aggregate,
            fakes_aggregate=of_fakes,
            rhythms=rhythms,
            library=library,
            other_day=first.place[mine],
            seed=seed,
        ):
            found.setdefault(outcome.name, []).append(outcome)
    return [
        Outcome(
            name,
            np.concatenate([part.wrong for part in parts]),
            np.concatenate([part.error_m for part in parts]),
            float(np.mean([part.blind_m for part in parts])),
        )
        for name, parts in found.items()
    ]


def _drawn(pool: Places, people: int, n_fakes: int, generator: np.random.Generator) -> Places:
    """Draw [person, fake, step]: no fake twice for one person, nor for two where the pool is large enough."""
    if len(pool) >= people * n_fakes:
        return pool[generator.permutation(len(pool))[: people * n_fakes]].reshape(people, n_fakes, -1)
    return np.stack([pool[generator.permutation(len(pool))[:n_fakes]] for _ in range(people)])
