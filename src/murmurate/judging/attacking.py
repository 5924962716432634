"""Attacking: every attack that a kind of release and its data allow, where the originals are known."""

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
from murmurate.releases.kind import Kind


class Attacked(Evaluation):
    """Scores of attacks beside their chance levels, and the attacks that could not be run, each with its reason."""


def attack_release(
    kind: Kind,
    released: Any,
    original: Trips,
    *,
    pairing: ArrayLike | None = None,
    attacks: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    seed: int = 0,
) -> Attacked:
    """Run the attacks that read this kind on what was released."""
    chosen = list(kind.attacks) if attacks is None else list(dict.fromkeys(attacks))
    functions = {name: attack_function(name) for name in chosen}  # an unknown name is refused before any work
    given = dict(options or {})
    stray = [name for name in given if name not in functions]
    if stray:
        raise ParameterError(f"options name attacks that are not run: {', '.join(stray)}; run are {', '.join(functions)}.")
    strangers = [name for name in chosen if kind.written_as not in NAMES[name].reads]
    if strangers:
        raise ParameterError(
            f"{', '.join(strangers)} read {' or '.join(NAMES[strangers[0]].reads)}; on a {kind.written_as} there are "
            f"{', '.join(kind.attacks) or 'none'}."
        )
    n_released = kind.n_trips(released)
    sides = (("original", original.n_trips), ("released", n_released if kind.identifiers else 1))
    empty = [Fault(f"the {name} side has no trip") for name, trips in sides if not trips]
    if empty:
        raise InputError(empty, "attack a release that holds trips, with the file it came from.")
    scores: list[Score] = []
    skipped: dict[str, str] = {} if chosen or not kind.no_attack else {"every attack": kind.no_attack}
    for name in progress.track(chosen, "attacks", len(chosen)):
        try:
            scores += functions[name](released, original, pairing=pairing, **{"seed": seed, **given.get(name, {})})
        except NotMeasurable as reason:
            skipped[name] = str(reason)
    return Attacked(tuple(scores), skipped, "", original.n_trips, n_released)
