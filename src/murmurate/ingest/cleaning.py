"""Clean private points as a recipe says: what is left out and where trips begin, by public settings, person by person."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.parameters import closest, positive, whole
from murmurate.core.trips import Identity, Trips
from murmurate.engine import Engine, Serial
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.clean import drop_fast
from murmurate.ingest.people import PeopleInParts
from murmurate.ingest.pipeline import Removed, Step, pipeline
from murmurate.ingest.segment import drop_single_visits, occupied_runs, split_gaps, split_stays
from murmurate.ingest.stream import Part, Partitions

BY_PLACE = ("max_speed_kmh", "split_stay_s")
"""Settings whose steps look at places: which points are left out, and where trips end, then tells of them exactly."""


@dataclass(frozen=True, kw_only=True)
class Cleaning:
    """Hold the settings of `[clean]` and of `--split-gap` and its companions; all of them are public.

    The steps run in the order of the fields. Each treats every person alone, so cleaning adds nothing to what one person
    contributes. Cleaned trips are numbered from 0 for each person.

    >>> Cleaning.of({"split_gap_s": 300}).words()
    ['Trips were split at pauses over 300 s.', 'Trips of fewer than 2 points were left out.']
    """

    max_speed_kmh: float | None = None
    """Leave out points reached at this speed or faster from the last point kept."""
    occupied: str | None = None
    """Column that is 1 with a passenger: only such points are kept, and each unbroken run is a trip."""
    split_gap_s: float | None = None
    """Start a new trip after a longer pause."""
    split_stay_s: float | None = None
    """Start a new trip where somebody stays this long within `stay_m`."""
    stay_m: float = 100.0
    """Radius of a stay in metres."""
    min_points: int = 2
    """Leave out trips of fewer points."""

    def __post_init__(self) -> None:
        for name in ("max_speed_kmh", "split_gap_s", "split_stay_s"):
            if getattr(self, name) is not None:
                positive(name, getattr(self, name))
        positive("stay_m", self.stay_m, at_most=100_000)
        whole("min_points", self.min_points)
        if self.occupied is not None and (not isinstance(self.occupied, str) or not self.occupied.strip()):
            raise ParameterError(f"occupied names the column that is 1 with a passenger; got {self.occupied!r}.")

    @classmethod
    def of(cls, settings: Mapping[str, Any]) -> Cleaning | None:
        """Return the cleaning that plain settings describe; None where there are none."""
        known = [item.name for item in fields(cls)]
        unknown = [name for name in settings if name not in known]
        if unknown:
            raise ParameterError(
                f"cleaning has no setting {', '.join(unknown)}; it has {', '.join(known)}.{closest(unknown[0], known)}"
            )
        return cls(**settings) if settings else None

    def settings(self) -> dict[str, Any]:
        """Return what is set, as a recipe and a manifest hold it."""
        return {item.name: getattr(self, item.name) for item in fields(self) if getattr(self, item.name) is not None}

    def steps(self) -> list[Step]:
        """Return the steps in order."""
        steps: list[Step] = []
        if self.max_speed_kmh is not None:
            steps.append(partial(drop_fast, max_speed_kmh=self.max_speed_kmh))
        if self.occupied is not None:
            steps.append(partial(occupied_runs, column=self.occupied))
        if self.split_gap_s is not None:
            steps.append(partial(split_gaps, max_gap_s=self.split_gap_s))
        if self.split_stay_s is not None:
            steps.append(partial(split_stays, min_stay_s=self.split_stay_s, stay_m=self.stay_m))
        steps.append(partial(drop_single_visits, min_visits=self.min_points))
        return steps

    def words(self) -> list[str]:
        """Say in sentences what was done, from the settings alone."""
        said = []
        if self.max_speed_kmh is not None:
            said.append(f"Points reached at {self.max_speed_kmh:g} km/h or more were left out.")
        if self.occupied is not None:
            said.append("Only points with a passenger were kept; each unbroken run of them is a trip.")
        if self.split_gap_s is not None:
            said.append(f"Trips were split at pauses over {self.split_gap_s:g} s.")
        if self.split_stay_s is not None:
            said.append(f"Trips were split at stays of {self.split_stay_s:g} s or more within {self.stay_m:g} m.")
        return [*said, f"Trips of fewer than {self.min_points} points were left out."]

    def apply(self, trips: Trips) -> tuple[Trips, tuple[Removed, ...]]:
        """Return cleaned trips of the same file, which note these settings, and the private counts of what was removed."""
        if not trips.has_time:
            raise InputError(
                "cleaning needs the time of every point; these data have none.", "Leave out [clean] and the --split options."
            )
        prepared = pipeline(trips, self.steps())
        known = trips.identity.made_with
        made_with = {**known, "clean": {**known.get("clean", {}), **self.settings()}}
        return _renumbered(prepared.trips, replace(trips.identity, made_with=made_with)), prepared.removed

    def open(self, private: Trips | Partitions) -> Trips | CleanedPartitions:
        """Return the private trips cleaned, in memory or part by part."""
        return self.apply(private)[0] if isinstance(private, Trips) else CleanedPartitions(private, self)


def _renumbered(trips: Trips, source: Identity) -> Trips:
    """Name each person's trips 0, 1, ... whether or not a step split them: names follow from that person's rows alone."""
    number = np.arange(trips.n_trips) - np.repeat(trips.user_offsets[:-1], np.diff(trips.user_offsets))
    names = pl.Series("tid", np.repeat(number, np.diff(trips.offsets)), dtype=pl.Int64)
    table = trips.table.with_columns(names)
    return Trips._trusted(
        table, space=trips.space, time_zone=trips.time_zone, offsets=trips.offsets, user_offsets=trips.user_offsets
    ).with_source(source)


@dataclass(frozen=True)
class CleanedPart:
    """A part that is cleaned when it is loaded, in the process that counts it."""

    part: Part
    cleaning: Cleaning

    def load(self) -> Trips:
        """Return the cleaned trips of the part."""
        return self.cleaning.apply(self.part.load())[0]


def _count_points(part: CleanedPart) -> int:
    return part.load().n_points


class CleanedPartitions:
    """Parts of whole people, cleaned as they are read."""

    def __init__(self, parts: Partitions, cleaning: Cleaning, engine: Engine | None = None) -> None:
        self._parts, self.cleaning = parts, cleaning
        self.identity, self.space, self.time_zone = parts.identity, parts.space, parts.time_zone
        self.n_points = sum((engine or Serial()).map(_count_points, self.sources()))

    def carries(self) -> frozenset[str]:
        """Return the kinds of content that are there, as `Trips.carries` does."""
        return self._parts.carries()

    def __iter__(self) -> Iterator[Trips]:
        for source in self.sources():
            yield source.load()

    def sources(self) -> Iterator[CleanedPart]:
        """Yield where each part lies; a source can be sent to the process that reads it."""
        for part in self._parts.sources():
            yield CleanedPart(part, self.cleaning)

    def close(self) -> None:
        """Free the memory and delete the files in the work folder."""
        self._parts.close()

    def __enter__(self) -> CleanedPartitions:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def described(identity: Identity, read: Mapping[str, Any], clean: Mapping[str, Any], people: str | None = None) -> Identity:
    """Return the identity of a file with a note of how it was read and cleaned.

    `people` is a namespace: people of two files that only number them alike are then others to the ledger.
    """
    made_with: dict[str, Any] = {"read": dict(read), "clean": dict(clean)}
    if people is None:
        return replace(identity, made_with=made_with)
    if not people.strip() or not people.isprintable():
        raise ParameterError(f"--people names the numbering of the people in this file, such as taxi-2024; got {people!r}.")
    uids = identity.uids
    prefix = f"{people}/"
    named = uids.within(prefix) if isinstance(uids, PeopleInParts) else tuple(prefix + uid for uid in uids)
    return replace(identity, uids=named, made_with={**made_with, "people": people})
