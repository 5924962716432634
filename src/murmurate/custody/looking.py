"""Check private trips before the charge, and find why a release would be empty or nearly empty.

All of it is private and for the custodian's eyes: it is asked about before the charge and written into no release.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from murmurate.asking.bounding import units_of_trips
from murmurate.core.guarantee import DP, GeoInd, Guarantee
from murmurate.core.space import Integers
from murmurate.core.trips import Trips
from murmurate.custody.reading import Private
from murmurate.engine import Engine, Serial
from murmurate.engine.shared import opened
from murmurate.errors import InputError
from murmurate.spaces.plane import Plane
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.swapped import why_swapped

FEW_INSIDE = 0.5
"""Share of trips inside the space below which the custodian is asked. Set by hand."""
MOST_LEFT_OUT = 0.5
"""Share of trips that bounds leave out from which on the custodian is asked. Set by hand."""
RAW_STREAM_S = 6 * 3600.0
"""Median seconds of a trip from which on it is a raw stream rather than a trip. Set by hand."""
SAMPLE_POINTS = 20_000
"""Points of a part that are compared with a road network, whose nearest links take time to find. Set by hand."""
MEANINGLESS_EPSILON = 10.0
"""Total for the protected unit above which a promise means nothing: a factor of e^10 = 22,000."""
WEAK_WORDS = "publish with weak protection"
"""What a person types to publish nevertheless."""


@dataclass(frozen=True)
class Finding:
    """Something to know before the charge; `fatal` where a release would be empty or refused for certain."""

    words: str
    remedy: str
    fatal: bool = False


@dataclass
class _Seen:
    """Hold what was counted in some parts."""

    trips: int = 0
    inside: int = 0
    swapped: int = 0
    sampled: int = 0
    left_out: int = 0
    raw: int = 0
    units: int = 0
    beyond: int = 0
    why_swapped: str | None = None


def findings(mechanism: Any, private: Private, engine: Engine | None = None) -> list[Finding]:
    """Return what the custodian should know before the charge; nothing where all is well. An `engine` looks at the parts."""
    guarantee = mechanism.guarantee()
    space = getattr(mechanism, "space", None)
    if hasattr(private, "sources"):
        running = engine or Serial()
        with running:
            shared = running.share((guarantee, space))
            seen = _added(list(running.map(_count_source, ((shared, source) for source in private.sources()))))
    else:
        seen = _added([_count(part, guarantee, space) for part in ([private] if isinstance(private, Trips) else private)])
    found = list(_place_findings(space, seen))
    if any(finding.fatal for finding in found):
        return found
    fewest = fewest_trips(mechanism, seen.trips / max(seen.units, 1))
    inside = round(seen.trips * seen.inside / seen.sampled) if seen.sampled else seen.inside  # on roads some points are seen
    if fewest is not None and inside < fewest:
        found.append(
            Finding(
                f"{inside:,} trips lie in the space, and below about {fewest:,.0f} this mechanism releases nothing: the "
                "budget would be spent on an empty release",
                f"Give more data{_or_finer(guarantee.unit.name)}.",
            )
        )
    stays = "" if isinstance(guarantee, GeoInd) else " --split-stay 10min --max-speed 200"  # these look at places
    if seen.trips and seen.raw > seen.trips / 2 and not private.identity.made_with.get("clean"):
        found.append(
            Finding(
                "most trips last for hours: this looks like a raw stream that was never split into trips",
                f"Add --split-gap 5min{stays}, or let `murmurate start FILE` write a recipe.",
            )
        )
    if seen.left_out > MOST_LEFT_OUT * max(seen.trips, 1):
        found.append(
            Finding(
                f"max_trips leaves out {seen.left_out / seen.trips:.0%} of the trips",
                "Give a larger max_trips (more noise) or a finer unit, or continue if this is intended.",
            )
        )
    return found


def _or_finer(unit: str) -> str:
    """Say what helps beside more data: a larger epsilon, or units that need less, with what to type."""
    finer = {"user": ("user_day", "trip"), "user_day": ("trip",)}.get(unit, ())
    words = " or ".join(f"--set unit={name}" for name in finer)
    return (
        f", a larger epsilon, or a unit that protects less: {words}, with a --limit of that unit"
        if finer
        else " or a larger epsilon"
    )


def _added(counted: Sequence[_Seen]) -> _Seen:
    """Add up what was counted in parts; of several reasons the first part's is told."""
    numbers = [one.name for one in fields(_Seen) if one.name != "why_swapped"]
    sums = {name: sum(getattr(seen, name) for seen in counted) for name in numbers}
    return _Seen(**sums, why_swapped=next((seen.why_swapped for seen in counted if seen.why_swapped), None))


def _count_source(item: tuple[Any, Any]) -> _Seen:
    """Count a part in the process of a worker."""
    shared, source = item
    return _count(source.load(), *opened(shared))


def _count(part: Trips, guarantee: Guarantee, space: Any) -> _Seen:
    seen = _Seen()
    seen.trips += part.n_trips
    if part.has_time:
        lasts_s = (part.time_us[part.offsets[1:] - 1] - part.time_us[part.offsets[:-1]]) / 1e6
        seen.raw += int((lasts_s > RAW_STREAM_S).sum())
    bounds = guarantee.unit
    if bounds.name != "user_day" or part.has_time:
        sizes = np.bincount(units_of_trips(part, bounds))
        seen.units += len(sizes)
        seen.left_out += int(np.maximum(sizes - bounds.max_trips, 0).sum()) if bounds.max_trips is not None else 0
    if space is None or isinstance(space, Plane):  # no box that says where the data lie
        seen.why_swapped = seen.why_swapped or why_swapped(part)
    if space is None or not part.has_coordinates:
        seen.inside += part.n_trips
        return seen
    some = (
        np.arange(0, part.n_points, max(1, part.n_points // SAMPLE_POINTS)) if isinstance(space, RoadNetwork) else slice(None)
    )
    lat, lng, trip = part.lat[some], part.lng[some], part.point_trip[some]
    if isinstance(space, Plane):
        seen.beyond += int((space.locate(lat, lng) < 0).sum())
    seen.sampled += _distinct(trip)
    seen.inside += _distinct(trip[space.locate(lat, lng) >= 0])
    upright = np.abs(lng) <= 90
    seen.swapped += _distinct(trip[upright][space.locate(lng[upright], lat[upright]) >= 0])
    return seen


def _distinct(ascending: Integers) -> int:
    """Return how many different numbers there are among ascending ones."""
    return int(np.count_nonzero(ascending[1:] != ascending[:-1])) + min(len(ascending), 1)


def _place_findings(space: Any, seen: _Seen) -> Iterable[Finding]:
    exchange = "say --column lat=... --column lng=... the other way round"
    if seen.why_swapped:
        yield Finding(f"latitude and longitude look swapped: {seen.why_swapped}", f"If so, {exchange}.")
    if seen.beyond:
        yield Finding(
            f"{seen.beyond:,} points lie beyond the reach of the plane {space.spec()}, which would be refused after the charge",
            "Give a plane around the data (--space plane:LAT,LNG), or leave out --space: points then move on the whole globe.",
            fatal=True,
        )
        return
    if space is None or not seen.sampled or seen.inside >= FEW_INSIDE * seen.sampled:
        return
    what = f"{seen.inside:,} of {seen.sampled:,} trips that were looked at touch the space {space.spec()}"
    if seen.swapped > max(seen.inside, FEW_INSIDE * seen.sampled):
        yield Finding(
            f"{what}; with latitude and longitude exchanged {seen.swapped:,} would",
            f"Latitude and longitude are swapped: {exchange}.",
            fatal=seen.inside == 0,
        )
        return
    remedy = (
        "Give roads of the same place (--space road:FILE)."
        if isinstance(space, RoadNetwork)
        else "Give a public box around the data: `murmurate start FILE` offers some, `murmurate inspect FILE` shows the extent."
    )
    yield Finding(what, remedy, fatal=seen.inside == 0)


def fewest_trips(mechanism: Any, trips_per_unit: float) -> float | None:
    """Return below about how many trips a mechanism releases nothing, where it says so."""
    return mechanism.fewest_trips(trips_per_unit) if hasattr(mechanism, "fewest_trips") else None


def refuse_fatal(found: Iterable[Finding]) -> None:
    """Raise where a release would be empty for certain; nothing was spent."""
    fatal = [finding for finding in found if finding.fatal]
    if fatal:
        raise InputError("; ".join(finding.words for finding in fatal) + ".", fatal[0].remedy)


def told(found: Iterable[Finding]) -> str:
    """Write findings as every front end shows them, with what would mend each."""
    return "\n".join(f"- {finding.words}.\n  {finding.remedy}" for finding in found)


def weakness(mechanism: Any, private: Private, *, keep_ids: bool = False) -> str | None:
    """Say why a promise hardly protects anybody, if it does not: a meaningless total, exact times, names that are kept."""
    guarantee = mechanism.guarantee()
    unit = guarantee.unit.name
    reasons = []
    if mechanism.paired and keep_ids:
        reasons.append("every released trip keeps the uid and tid of its original, so it names its person")
    if isinstance(guarantee, DP) and guarantee.epsilon > MEANINGLESS_EPSILON:
        reasons.append(
            f"epsilon {guarantee.epsilon:g} per {unit} allows a factor of e^{guarantee.epsilon:g}, which hides nobody"
        )
    if isinstance(guarantee, GeoInd) and guarantee.radius_m:
        total = guarantee.epsilon_per_m * guarantee.radius_m
        if total > MEANINGLESS_EPSILON:
            reasons.append(
                f"the points of one {unit} together allow a factor of e^{total:.3g} at {guarantee.radius_m:g} m: each point "
                f"alone is protected, a whole {unit} is not"
            )
    if mechanism.paired and "datetime" in mechanism.emits and "time" in private.carries():
        reasons.append("the times of all points stay exact, so whoever knows when somebody travelled can often find the trip")
    return "; ".join(reasons) or None
