"""Attack: every attack that the data allow, on a release whose originals are known here; beside `evaluate`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from numpy.typing import ArrayLike

from murmurate.attacks import NAMES, attack_function
from murmurate.core import progress
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.errors import Fault, InputError, ParameterError
from murmurate.judging.scoring import Evaluation
from murmurate.metrics.comparison import NotMeasurable
from murmurate.spaces.flows import LinkFlows

OF_NETWORKS = ("reconstruct",)
"""Attacks that read an aggregated network; all others read trips."""


class Attacked(Evaluation):
    """Scores of attacks beside their chance levels, and the attacks that could not be run, each with its reason."""


def attack(
    released: Trips | LinkFlows,
    original: Trips,
    *,
    pairing: ArrayLike | None = None,
    attacks: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
) -> Attacked:
    """Run attacks on a release. The result is internal: it was computed from private data.

    `pairing[k]` is the position of the original of released trip k (-1 for none). `options` gives keyword options to
    single attacks by name; `seed` fixes what is sampled.

    >>> import polars as pl
    >>> table = pl.DataFrame({"uid": [1, 1, 2, 2], "tid": [1, 1, 2, 2], "lat": [60.1, 60.11, 60.2, 60.21], "lng": [24.9] * 4})
    >>> found = attack(Trips(table), Trips(table), pairing=[0, 1], attacks=["reidentify"])
    >>> found["reidentify.places.top1_k1"].value, found["reidentify.places.top1_k1"].chance
    (1.0, 0.5)
    """
    network = isinstance(released, LinkFlows)
    chosen = (list(OF_NETWORKS) if network else list(NAMES)) if attacks is None else list(dict.fromkeys(attacks))
    functions = {name: attack_function(name) for name in chosen}  # an unknown name is refused before any work
    given = dict(options or {})
    stray = [name for name in given if name not in functions]
    if stray:
        raise ParameterError(f"options name attacks that are not run: {', '.join(stray)}; run are {', '.join(functions)}.")
    strangers = [name for name in chosen if network and name not in OF_NETWORKS]
    if strangers:
        raise ParameterError(f"{', '.join(strangers)} read trips; on a network there are {', '.join(OF_NETWORKS)}.")
    n_released = 0 if isinstance(released, LinkFlows) else released.n_trips
    sides = (("original", original.n_trips), ("released", 1 if network else n_released))
    empty = [Fault(f"the {name} side has no trip") for name, trips in sides if not trips]
    if empty:
        raise InputError(empty, "attack a release that holds trips, with the file it came from.")
    scores: list[Score] = []
    skipped: dict[str, str] = {}
    for name in progress.track(chosen, "attacks", len(chosen)):
        try:
            scores += functions[name](released, original, pairing=pairing, **{"seed": seed, **given.get(name, {})})
        except NotMeasurable as reason:
            skipped[name] = str(reason)
    return Attacked(tuple(scores), skipped, "", original.n_trips, n_released)
