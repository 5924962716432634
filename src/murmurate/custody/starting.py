"""Prepare a first release of a file: open it, clean it by stated rules, and offer what may be declared public.

Everything here is private and for the custodian. What goes on from here to `advise` are answers, boxes that are public anyway
or rounded outward, and rough numbers, each of them declared public by a person.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from murmurate.core.space import Floats
from murmurate.core.trips import Trips
from murmurate.custody.sources import open_private
from murmurate.errors import InputError
from murmurate.ingest.cleaning import Cleaning
from murmurate.ingest.columns import ROW_NUMBER, named_as, option, plain
from murmurate.ingest.counts import ReadReport
from murmurate.spaces.gazetteer import Box, cities_around, looks_swapped, outward
from murmurate.spaces.swapped import why_swapped

SPLIT_GAP_S = 300.0
"""Pause that ends a trip in a stream with points about a minute apart or closer."""
SLOW_GAP_S = 1800.0
"""The same in a stream with points farther apart."""
VISITS_GAP_S = 21_600.0
"""The same where points are hours apart, as in check-ins: a night's pause ends a day's outing."""
FAST_S, SLOW_S = 75.0, 900.0
"""Median seconds between points up to which a stream is fast, and from which on it holds visits."""
SPLIT_STAY_S = 600.0
"""Stay that ends a trip in a fast stream without a sign of passengers."""
MAX_SPEED_KMH = 200.0
"""Speed in km/h that no road vehicle keeps up: points reached faster are mistakes of the receiver."""
LONG_TRIP_S = 3 * 3600.0
"""Median seconds of a trip from which on it is taken for a raw stream."""
OUTLIERS = 0.005
"""Share of points left out on each side of the extent, so that a few mistakes do not stretch the box."""
WIDE_DEG = 2.0
"""Side of an extent in degrees from which on a city that holds half of the points is offered first."""
SAMPLE_POINTS = 200_000
"""Points that boxes are judged by. Set by hand."""
_OCCUPIED = {"occupied", "occupancy", "passenger", "haspassenger", "hired", "status"}
"""Names of a column of 0 and 1 that says whether a taxi has a passenger."""


@dataclass(frozen=True)
class Offer:
    """A box that may be declared public, with the words that say where it comes from."""

    label: str
    box: Box
    declared: str
    """The sentence that goes into the release: how the data took part in the choice."""
    share: float = 1.0
    """Share of the points inside; private."""


@dataclass(frozen=True)
class Look:
    """Hold what a first look at a file found. Private."""

    source: str
    trips: Trips
    read: Mapping[str, Any]
    """Options that open the file."""
    clean: Mapping[str, Any]
    """Settings that clean it."""
    notes: tuple[str, ...]
    """What was found, and what is done about it."""
    report: ReadReport = field(default_factory=ReadReport)

    @property
    def protect(self) -> str:
        """Return whom to protect: person-days where there are times, else people; trips where nobody is named."""
        uid = self.read.get("columns", {}).get("uid", "")
        if uid == ROW_NUMBER or named_as(uid, "tid"):
            return "trip"
        return "user_day" if self.trips.has_time else "user"

    def rough(self) -> dict[str, int]:
        """Return numbers of people, trips and days, rounded down so far that they tell the size of the file and no more."""
        counts = {"people": self.trips.n_users, "trips": self.trips.n_trips}
        if self.trips.has_time:
            counts["days"] = len(np.unique(self.trips.first_local_day))
        return {name: rounded_down(count) for name, count in counts.items()}

    def offers(self) -> list[Offer]:
        """Return the boxes to choose from; the first is what is taken where nobody chooses."""
        if not self.trips.has_coordinates:
            return []
        lat, lng = _sample(self.trips)
        inner = [float(np.quantile(values, share)) for share in (OUTLIERS, 1 - OUTLIERS) for values in (lat, lng)]
        box = outward(inner)
        words = ", ".join(f"{value:g}" for value in box)
        extent = Offer(
            f"the extent of the data, rounded outward to tenths of a degree ({words})",
            box,
            f"The box {words} is the extent of the data without outliers, rounded outward to tenths of a degree: it tells "
            "roughly where the data lie.",
        )
        cities = [
            Offer(
                f"{city.name}, {city.country} ({', '.join(f'{value:g}' for value in city.box)})",
                city.box,
                f"The box is that of {city.name}, which was offered because many points of the data lie there.",
                share,
            )
            for city, share in cities_around(lat, lng)[:3]
        ]
        wide = max(box[2] - box[0], box[3] - box[1]) > WIDE_DEG
        return [*cities, extent] if wide and cities else [extent, *cities]


def rounded_down(count: int) -> int:
    """Return the number rounded down to 1, 3, 10, 30, 100, ...

    >>> [rounded_down(count) for count in (1, 8, 29, 30, 1234, 98_000)]
    [1, 3, 10, 30, 1000, 30000]
    """
    power = 10 ** int(math.log10(max(count, 1)))
    return 3 * power if count >= 3 * power else power


def look(source: str, *, read: Mapping[str, Any], clean: Mapping[str, Any]) -> Look:
    """Open a file and clean it by stated rules; options of reading that its faults make certain are added."""
    notes: list[str] = []
    trips, options, report = _opened(source, dict(read), notes)
    if trips.has_time and "time_zone" not in options and "local_zone" not in options:
        notes.append("Times state their zone, and hours and days are counted in UTC: name yours with --local-zone.")
    settings = dict(clean) or _mending(trips, report, notes)
    cleaning = Cleaning.of(settings)
    if cleaning:
        before = trips
        trips, removed = cleaning.apply(trips)
        notes.append(f"Cleaning makes {trips.n_trips:,} trips of {before.n_trips:,}: " + " ".join(cleaning.words()))
        notes += [f"  {one.points:,} points left out: {one.why}" for one in removed if one.points > 0]
    if trips.n_trips == 0:
        raise InputError("nothing is left after cleaning.", "Give other --split-gap, --split-stay or --max-speed.")
    return Look(source, trips, options, settings, tuple(notes), report)


def _opened(source: str, options: dict[str, Any], notes: list[str]) -> tuple[Trips, dict[str, Any], ReadReport]:
    """Open a file. Columns without a header, and swapped places, are recognised by values unless the caller named them."""
    named = set(options.get("columns", {}))
    report = ReadReport()
    try:
        trips = open_private(source, read=options, report=report)
    except InputError as error:
        if not error.suggested or named & set(error.suggested):
            raise
        columns = {**error.suggested, **options.get("columns", {})}
        notes.append(f"The columns were recognised by their values: {option(**columns)}. Check this before you publish.")
        return _opened(source, options | {"columns": columns}, notes)
    if trips.has_coordinates and not named & {"lat", "lng", "geometry"} and looks_swapped(*_sample(trips)):
        swapped = {"lat": report.columns.get("lng", "lng"), "lng": report.columns.get("lat", "lat")}
        notes.append(f"Latitude and longitude were swapped: as they are, no known city is there. {option(**swapped)}")
        return _opened(source, options | {"columns": {**options.get("columns", {}), **swapped}}, notes)
    if not named & {"lat", "lng", "geometry"} and (why := why_swapped(trips)):
        exchanged = option(lat=report.columns.get("lng", "lng"), lng=report.columns.get("lat", "lat"))
        notes.append(f"Latitude and longitude look swapped: {why}. If so, say {exchanged}")
    return trips, options, report


def _mending(trips: Trips, report: ReadReport, notes: list[str]) -> dict[str, Any]:
    """Return the cleaning that a raw stream needs; nothing where the file holds trips."""
    if not trips.has_time or not trips.has_coordinates:
        return {}
    lasts_s = (trips.time_us[trips.offsets[1:] - 1] - trips.time_us[trips.offsets[:-1]]) / 1e6
    if "tid" in report.columns and np.median(lasts_s) < LONG_TRIP_S:
        return {}
    pauses_s = np.diff(trips.time_us)[np.diff(trips.point_trip) == 0] / 1e6
    if not len(pauses_s):
        return {}
    typical_s = float(np.median(pauses_s))
    if "tid" not in report.columns and np.median(lasts_s) < SPLIT_GAP_S:
        return {}
    notes.append("This is a raw stream: it names no trips, or trips that last for hours. It is split into trips.")
    if typical_s >= SLOW_S:
        return {"split_gap_s": VISITS_GAP_S}
    occupied = next((name for name in trips.columns if _says_occupied(trips, name)), None)
    settings: dict[str, Any] = {
        "max_speed_kmh": MAX_SPEED_KMH,
        "split_gap_s": SPLIT_GAP_S if typical_s <= FAST_S else SLOW_GAP_S,
    }
    return settings | ({"occupied": occupied} if occupied else {"split_stay_s": SPLIT_STAY_S})


def _says_occupied(trips: Trips, name: str) -> bool:
    """Return whether a column holds 0 and 1 alone, under a name that says so or without one."""
    known = plain(name) in _OCCUPIED or name.isdigit()
    return known and set(trips.table[name].cast(str).unique().to_list()) in ({"0", "1"}, {"true", "false"})


def _sample(trips: Trips) -> tuple[Floats, Floats]:
    step = max(1, trips.n_points // SAMPLE_POINTS)
    return trips.lat[::step], trips.lng[::step]
