"""Semantic seeds and their randomised decoding: the sets of places a fake may be at, and a likely path through them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.profiles import Places

MERGE_MODES: Mapping[str, int] = {"none": 0, "run": 1, "boundary": 2}
"""Number of each merge mode. Past a change of class nothing persists (none), every place persists for a geometric number of
steps (run), or one place does (boundary)."""


@njit(cache=True, nogil=True)
def decode_fakes(  # noqa: PLR0917
    seeds: Places,
    classes: Integers,
    log_step: Floats,
    log_visit: Floats,
    par_c: float,
    par_l: float,
    par_m: float,
    par_v: float,
    merge: int,
    generator: np.random.Generator,
) -> Places:
    """Decode one fake for each row of seeds."""
    fakes = np.empty_like(seeds)
    steps = seeds.shape[1]
    known = np.flatnonzero(classes >= 0)
    allowed = np.zeros((steps, len(classes)), dtype=np.bool_)
    for row in range(len(seeds)):
        semantic_seed(seeds[row], classes, known, allowed, par_c, par_l, par_m, merge, generator)
        fakes[row] = _decode(allowed, known, log_step, log_visit, par_v, generator)
    return fakes


@njit(cache=True, nogil=True)
def semantic_seed(  # noqa: C901, PLR0917
    seed: Places,
    classes: Integers,
    known: Integers,
    allowed: NDArray[np.bool_],
    par_c: float,
    par_l: float,
    par_m: float,
    merge: int,
    generator: np.random.Generator,
) -> None:
    """Write which places are allowed at each step: the seed's class, thinned, without the seed's place, merged at changes."""
    steps = len(seed)
    kept = np.zeros(len(classes), dtype=np.bool_)
    for place in known:
        kept[place] = generator.random() >= par_c
    for step in range(steps):
        own = seed[step]
        any_allowed = False
        for place in known:
            allowed[step, place] = classes[place] == classes[own] and kept[place]
        if generator.random() < par_l:
            allowed[step, own] = False
        for place in known:
            any_allowed = any_allowed or allowed[step, place]
        if any_allowed:
            continue
        # thinning or the seed's own place emptied the set: the whole class without that place, then any place not the seed's
        for place in known:
            allowed[step, place] = classes[place] == classes[own] and place != own
            any_allowed = any_allowed or allowed[step, place]
        if not any_allowed:
            for place in known:
                allowed[step, place] = True
            for other in range(steps):
                allowed[step, seed[other]] = False
            for place in known:
                any_allowed = any_allowed or allowed[step, place]
            if not any_allowed:
                allowed[step, own] = True  # nowhere else to be: the intersection test will refuse the fake
    if merge == 0:
        return
    before = allowed.copy()
    for step in range(1, steps):
        if classes[seed[step]] == classes[seed[step - 1]]:
            continue
        for direction in (1, -1):
            source = step - 1 if direction == 1 else step
            lucky = -1
            if merge == 2:
                count = 0
                for place in known:
                    if before[source, place]:
                        count += 1
                        if generator.random() * count < 1.0:
                            lucky = place
            for place in known:
                if not before[source, place] or (merge == 2 and place != lucky):
                    continue
                at = source + direction
                while 0 <= at < steps and generator.random() < par_m:
                    allowed[at, place] = True
                    at += direction


@njit(cache=True, nogil=True)
def _decode(  # noqa: PLR0917
    allowed: NDArray[np.bool_],
    known: Integers,
    log_step: Floats,
    log_visit: Floats,
    par_v: float,
    generator: np.random.Generator,
) -> Places:
    """Find the likeliest path, every transition multiplied by a factor drawn between 1 and par_v."""
    steps = len(allowed)
    size = len(known)
    here = np.empty((steps, size), dtype=np.int64)
    n = np.zeros(steps, dtype=np.int64)
    for step in range(steps):
        for place in known:
            if allowed[step, place]:
                here[step, n[step]] = place
                n[step] += 1
    came = np.zeros((steps, size), dtype=np.int64)
    best = np.empty(size)
    following = np.empty(size)
    for k in range(n[0]):
        best[k] = log_visit[here[0, k]] + np.log(1.0 + generator.random() * (par_v - 1.0))
    for step in range(1, steps):
        for k in range(n[step]):
            following[k] = -np.inf
            to = here[step, k]
            for j in range(n[step - 1]):
                value = best[j] + log_step[here[step - 1, j], to]
                value += np.log(1.0 + generator.random() * (par_v - 1.0))
                if value > following[k]:
                    following[k], came[step, k] = value, j
        best[: n[step]] = following[: n[step]]
    at = int(np.argmax(best[: n[steps - 1]]))
    fake = np.empty(steps, dtype=np.int32)
    for step in range(steps - 1, -1, -1):
        fake[step] = here[step, at]
        at = came[step, at]
    return fake
