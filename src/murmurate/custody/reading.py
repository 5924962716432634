"""Let a mechanism read private trips, after the charge: measured ones through noisy tables, others the trips themselves."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from murmurate import engine, noise
from murmurate.asking.bounding import bound, new_key
from murmurate.asking.kept_answers import alone, load_answers, save_answers
from murmurate.asking.rounds import Asking, Held, fitted, is_measured
from murmurate.asking.samples import Samples
from murmurate.core.guarantee import Guarantee
from murmurate.core.mechanism import Applied, Payload
from murmurate.core.trips import Identity, Trips
from murmurate.custody.internal import Internal
from murmurate.custody.trips_in_parts import TripsInParts
from murmurate.errors import GuaranteeRefused


class Partitions(Protocol):
    """Yield trips too large for memory, whole people a part, validated and fingerprinted by whoever made it."""

    identity: Identity
    time_zone: str
    n_points: int

    def carries(self) -> frozenset[str]: ...

    def __iter__(self) -> Iterator[Trips]: ...


Private = Trips | Partitions
"""Private trips, in memory or in parts."""


def read_privately(
    mechanism: Any,
    guarantee: Guarantee,
    private: Private,
    rng: noise.Randomness,
    running: engine.Engine,
    *,
    internal: Internal | None = None,
    work_in: str | Path | None = None,
    resumed: bool = False,
) -> Trips | Payload | Samples | TripsInParts:
    """Run a mechanism on private trips; return what leaves: trips, parts of trips, or another payload.

    A rehearsal has no `internal` folder and keeps nothing.
    """
    if is_measured(mechanism):
        if internal is None:
            model = fitted(mechanism, private, rng, engine=running)
        else:
            model = measured_model(mechanism, private, rng, internal, running, work_in=work_in, resumed=resumed)
        if isinstance(model, Payload):
            return model
        n_trips = mechanism.n_out or max(1, round(model.n))  # as many as a noisy count found, where no number is set
        return Samples(model, n_trips, rng, running)
    if mechanism.local and not isinstance(private, Trips):
        return _in_parts(mechanism, guarantee, private, rng, running, work_in)
    whole: Trips | Payload = mechanism.apply(bound(_whole(private), guarantee.unit, new_key(rng)), rng)
    return whole


def measured_model(  # noqa: PLR0917
    mechanism: Any,
    private: Private,
    rng: noise.Randomness,
    internal: Internal,
    running: engine.Engine,
    work_in: str | Path | None,
    resumed: bool,
) -> Any:
    """Fit a measured mechanism; noisy counts are kept as they are drawn, and a resumed fit begins with those it has."""
    with running, alone(internal.make()):
        key, answers = load_answers(internal.unfinished()) if resumed else (new_key(rng), {})
        asking = Asking(mechanism, private, rng, engine=running, key=key, answers=answers, work_in=work_in)
        asking.on_answers = partial(save_answers, internal.unfinished(), key)
        asking.on_answers(answers)  # before the first draw, so that a run killed at any point can go on
        return asking.run()


def fitted_whole(mechanism: Any, guarantee: Guarantee, private: Private, rng: noise.Randomness, internal: Internal) -> Any:
    """Fit a mechanism that must see all trips at once; it keeps how far it got beside the ledger."""
    kept = {"checkpoint": internal.unfinished()} if getattr(mechanism, "resumable", False) else {}
    return mechanism.fit(bound(_whole(private), guarantee.unit, new_key(rng)), rng, **kept)


def _in_parts(  # noqa: PLR0917
    mechanism: Applied,
    guarantee: Guarantee,
    private: Partitions,
    rng: noise.Randomness,
    running: engine.Engine,
    work_in: str | Path | None,
) -> TripsInParts:
    """Let a local mechanism read parts of whole people, each by itself."""
    work = partial(_apply, mechanism, guarantee, new_key(rng))
    sources = private.sources() if hasattr(private, "sources") else (Held(part) for part in private)
    return TripsInParts(sources, work, rng, running, private.n_points if mechanism.paired else None, work_in)


def _apply(mechanism: Applied, guarantee: Guarantee, key: bytes, part: Trips, rng: noise.Randomness) -> Trips:
    released = mechanism.apply(bound(part, guarantee.unit, key), rng)
    if not isinstance(released, Trips):
        raise GuaranteeRefused(f"{mechanism.name} says it works on each person alone but did not return trips.")
    return released


def _whole(private: Private) -> Trips:
    """Return all trips in memory, for mechanisms that must see everything at once."""
    if isinstance(private, Trips):
        return private
    return together(list(private), private.identity)


def together(parts: list[Trips], identity: Identity | None = None) -> Trips:
    """Join parts into one table."""
    if len(parts) == 1 and identity is None:
        return parts[0]
    return Trips(pl.concat([part.table for part in parts]), parts[0].space, parts[0].time_zone, identity)
