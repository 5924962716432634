"""Audit mechanisms that move each person's own points, and those that release groups of people."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
import polars as pl

from murmurate.asking.rounds import Held
from murmurate.attacks.audit import audit as lower_bound
from murmurate.attacks.audit import copies
from murmurate.core.mechanism import Rng
from murmurate.core.score import Score
from murmurate.core.space import Floats
from murmurate.core.trips import Trips
from murmurate.custody.trips_in_parts import TripsInParts
from murmurate.engine import Serial
from murmurate.errors import GuaranteeRefused, MurmurateError
from murmurate.judging import twins
from murmurate.judging.audit_parts import Tester, Twin, fork_repeats, trained


def audit_local(mechanism: Any, runs: int, rng: Rng) -> dict[str, Any]:
    """Audit a mechanism that moves each person's own points: a single point at one of two places a radius apart."""
    one = replace(mechanism, max_points=1)
    claim = one.guarantee().epsilon_per_m
    north, east = (0.0, 0.0) if getattr(one, "space", None) is None else one.space.origin_degrees()
    apart = mechanism.radius_m / 111_195.0
    places = [(north, east), (north + apart, east)]

    def made(moved: Callable[[Trips, Rng], Trips]) -> tuple[Score, ...]:
        def outputs(side: int, n: int, rng: Rng) -> Floats:
            released = moved(copies(_point(*places[side]), n), rng)
            return np.column_stack([released.lat, released.lng])

        metres = np.array([111_195.0, 111_195.0 * np.cos(np.radians(north))])
        testers: dict[str, Tester] = {
            "position": lambda out: -out[:, 0],
            "likelihood_ratio": lambda out: np.asarray(
                np.hypot(*((out - places[1]) * metres).T) - np.hypot(*((out - places[0]) * metres).T)
            ),
            "classifier": trained(outputs(0, max(runs // 4, 50), rng), outputs(1, max(runs // 4, 50), rng)),
        }
        scores = []
        for name, tester in testers.items():
            found = lower_bound(lambda side, n, rng, t=tester: t(outputs(side, n, rng)), n=runs, rng=rng)  # type: ignore[misc]
            scores.append(
                replace(
                    found,
                    name=f"audit.black_box.{name}",
                    value=found.value / mechanism.radius_m,
                    low=None,
                    high=claim,
                    unit="1/m",
                    note=f"{found.note} Two places {mechanism.radius_m:g} m apart, one point.",
                )
            )
        return tuple(scores)

    def of_two(moved: Callable[[Trips, Rng], Trips]) -> Score:
        """Return two people at one place, or a radius apart. If they share noise, the outputs reveal the distance."""

        def outputs(side: int, n: int, rng: Rng) -> Floats:
            both = copies(_point(*places[0]), 2 * n).table.with_columns(
                lat=pl.Series(np.tile([places[0][0], places[side][0]], n)), lng=pl.Series(np.tile([east, places[side][1]], n))
            )
            lat = moved(Trips(both), rng).lat.reshape(n, 2)
            return np.asarray(np.round((lat[:, 1] - lat[:, 0]) * 111_195.0))

        found = lower_bound(outputs, n=runs, rng=rng)
        note = f"{found.note} Two people, at one place or {mechanism.radius_m:g} m apart."
        value = found.value / mechanism.radius_m
        return replace(found, name="audit.black_box.two_people", value=value, low=None, high=claim, unit="1/m", note=note)

    def all_of(moved: Callable[[Trips, Rng], Trips]) -> tuple[Score, ...]:
        return (*made(moved), of_two(moved))

    def caught(moved: Callable[[Trips, Rng], Trips]) -> str:
        return "black box" if any(score.value > claim for score in all_of(moved)) else ""

    def shared(trips: Trips, rng: Rng) -> Trips:
        """Move every two people by the noise of the first."""
        released = one.apply(trips, rng)
        first = np.repeat(np.arange(0, trips.n_points, 2), 2)[: trips.n_points]
        move = [(new[first] - old[first]) for new, old in ((released.lat, trips.lat), (released.lng, trips.lng))]
        return Trips(trips.table.with_columns(lat=pl.Series(trips.lat + move[0]), lng=pl.Series(trips.lng + move[1])))

    split = TripsInParts([Held(_point(*place)) for place in places], one.apply, rng, Serial(), None)
    faults = (
        Twin("no noise", caught(lambda trips, _rng: trips)),
        Twin("half noise", caught(replace(one, epsilon=2 * one.epsilon).apply)),
        Twin("noise shared by people", caught(shared)),
        *([] if mechanism.unit == "point" else [Twin("no clip", _refused(lambda: one.apply(_point(*places[0], n=2), rng)))]),
        Twin("person split over partitions", _refused(lambda: list(split))),
        Twin("fork after draw", "sampler" if fork_repeats(twins.CopiedBlock()) else ""),
    )
    return {"scores": all_of(one.apply), "twins": faults}


def _refused(action: Callable[[], Any]) -> str:
    """Say whether what would break a bound is refused."""
    try:
        action()
    except GuaranteeRefused:
        return "refused"
    return ""


def _point(lat: float, lng: float, n: int = 1) -> Trips:
    when = [datetime(2024, 1, 8, 8, minute, tzinfo=UTC) for minute in range(n)]
    return Trips(pl.DataFrame({"uid": ["a"] * n, "tid": [1] * n, "datetime": when, "lat": [lat] * n, "lng": [lng] * n}))


def audit_groups(mechanism: Any, private: Trips, rng: Rng) -> dict[str, Any]:
    """Count, on the released trips alone, how many people move within the radius of each trip all along."""
    from murmurate.judging.company import companions

    def smallest(released: Trips) -> Score:
        least = float(companions(released, mechanism.radius_m).min() + 1) if released.n_trips else float(mechanism.k)
        return Score(
            name="audit.groups.missing_people", value=max(0.0, mechanism.k - least), better="lower", high=0.0, family="audit",
            n=released.n_trips, note="People missing from the smallest group that moves together.",
        )  # fmt: skip

    try:
        released = mechanism.apply(private, rng)
    except MurmurateError as error:
        return {"scores": (), "twins": (), "note": f"The made-up people cannot be released with these settings: {error}"}
    faults = [Twin("a group of one", "groups" if smallest(private).value > 0 else "", "originals are released as they are")]
    if mechanism.k > 2:
        fewer = smallest(replace(mechanism, k=mechanism.k - 1).apply(private, rng))
        faults.append(Twin("groups of one person fewer", "groups" if fewer.value > 0 else ""))
    return {"scores": (smallest(released),), "twins": tuple(faults)}
