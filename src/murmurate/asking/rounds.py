"""Run the rounds of a measured mechanism: count over parts of people, clip each unit, draw each table once."""

from __future__ import annotations

import pickle
from collections.abc import Iterable, Mapping, Sequence, Sized
from contextlib import nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.asking.bounding import bound, new_key, units_of_trips
from murmurate.asking.budget import Budget
from murmurate.asking.clipping import Sums, add, round_sums
from murmurate.asking.table import Answer, Answers, Contributions, Facts, Norm, Part, Round
from murmurate.core.guarantee import DP, Unit
from murmurate.core.trips import Trips
from murmurate.core.work import WorkFolder
from murmurate.core.work_files import NO_COPY, WorkFiles
from murmurate.engine import Engine, Serial
from murmurate.engine.shared import give_back_memory, opened
from murmurate.errors import ContractBroken, GuaranteeRefused

if TYPE_CHECKING:
    from murmurate.noise import Randomness

PART_POINTS = 1_000_000
"""Points of a part of trips that are in memory: small enough that what is made of a part stays below about 200 MB."""

HELD_POINTS = 4_000_000
"""Up to this many points, what `prepare` made is kept in memory between rounds; beyond that in private files."""

COMPARED_PEOPLE = 1 << 20
"""People who are compared in every round, those with the smallest hashes where there are more (8 MB). All people of a file are
compared when it is read; this finds parts that were mixed up since, which share more than one person."""

TWO_PARTS = "a person's trips (or one trip) came in two parts, so the bounds on one person could not be kept."
"""Why parts are refused that do not hold whole people."""


@runtime_checkable
class Measured(Protocol):
    """A mechanism that reads private trips through noisy tables alone."""

    name: Any

    def budget(self) -> Budget | None:
        """Return a new budget of the whole promise; None where these parameters choose a variant that is not measured."""
        ...

    def guarantee(self) -> Any:
        """Return the promise, with the unit whose trips are bounded and clipped."""
        ...

    def ask(self, answers: Answers, facts: Facts) -> Round | None:
        """Return the next round, from public parameters and earlier answers; None when done."""
        ...

    def model(self, answers: Answers, facts: Facts, rng: Randomness) -> Any:
        """Build what the answers make: a model that can be sampled, or what leaves itself. Reads nothing private."""
        ...


@dataclass(frozen=True)
class Held:
    """A part that is in memory. Parts in files have a `load` of their own, called in the process that counts them."""

    trips: Trips

    def load(self) -> Trips:
        """Return the trips."""
        return self.trips


@dataclass
class Asking:
    """Runs the rounds of one mechanism on one input.

    Exact sums exist in here only. The mechanism sees answers. `answers` may hold what an interrupted run has drawn already.
    """

    mechanism: Measured
    private: Any
    rng: Randomness
    engine: Engine = field(default_factory=Serial)
    key: bytes | None = None
    """Which trips of a crowded unit are read; a resumed run is given the key of the run it goes on with."""
    answers: dict[str, Answer] = field(default_factory=dict)
    on_answers: Any = None
    """Called with the answers after each round, so that they can be kept."""
    work_in: str | Path | None = None
    """Folder or store where what `prepare` made is kept; default: the state folder; `NO_COPY`: it is made again each round."""
    part_points: int = PART_POINTS

    def run(self) -> Any:
        """Ask until the mechanism is done; return its model."""
        budget = self.mechanism.budget()
        if budget is None:
            raise ContractBroken("a measured mechanism has a budget", f"{self.mechanism.name} has none with these settings.")
        self.check_promise(budget)
        facts = facts_of(self.private)
        self.key = self.key or new_key(self.rng)
        kept = _Kept(self)
        earlier, self.answers = dict(self.answers), {}
        try:
            while (asked := self.mechanism.ask(dict(self.answers), facts)) is not None:
                budget.check(asked.tables)
                if earlier:
                    if not earlier.keys() >= {table.name for table in asked.tables}:
                        raise ContractBroken(
                            "a table is asked once",
                            f"kept answers of {', '.join(sorted(earlier))} do not fit the round that is asked now; fit anew.",
                        )
                    for table in asked.tables:
                        self.answers[table.name] = budget.replay(table, earlier.pop(table.name))
                    continue
                self._answer(asked, budget, kept)
                if self.on_answers is not None:
                    self.on_answers(self.answers)
        finally:
            kept.close()
        give_back_memory()  # of counting; what a model is made with comes on top of what this process holds
        model = self.mechanism.model(dict(self.answers), facts, self.rng)
        give_back_memory()  # of fitting, before workers draw
        return model

    def check_promise(self, budget: Budget) -> None:
        """Refuse a budget larger than what the ledger was charged for."""
        promise = self.mechanism.guarantee()
        covered = isinstance(promise, DP) and budget.epsilon <= promise.epsilon and budget.delta <= promise.delta
        if not covered or promise.events not in (budget.events, replace(promise, events=()).events):
            raise ContractBroken("the budget is the promise", f"{self.mechanism.name} would spend more than its guarantee.")

    def _answer(self, asked: Round, budget: Budget, kept: _Kept) -> None:
        sums = self.exact(asked, budget.norm, kept)
        for table in asked.tables:
            self.answers[table.name] = budget.draw(table, sums[table.name], self.rng)

    def exact(self, asked: Round, norm: Norm, kept: _Kept | None = None) -> dict[str, Sums]:
        """Return the exact clipped sums of a round over all parts; for drawing and for the meter, never for a mechanism."""
        keep = kept or _Kept(self)
        unit = self.mechanism.guarantee().unit
        counting = self.engine.share(_Counting(asked, unit, self.key or b"", norm))
        sources = self._sources()
        items: Iterable[Any] = ((counting, source, keep.place(asked, number)) for number, source in enumerate(sources))
        if isinstance(sources, Sized):
            items = list(items)
        adding = partial(_added, {table.name: table.n_bins for table in asked.tables})
        found = self.engine.fold(_count_part, items, adding, f"counting {asked.tables[0].name}")
        nothing = np.zeros(0, dtype=np.int64)
        return found[0] if found is not None else {table.name: (nothing, nothing) for table in asked.tables}

    def _sources(self) -> Iterable[Any]:
        if hasattr(self.private, "sources"):
            return self.private.sources()
        parts = self.private.partitions(self.part_points) if isinstance(self.private, Trips) else self.private
        return (Held(part) for part in parts)


def fitted(mechanism: Any, private: Any, rng: Randomness, *, engine: Engine | None = None, **options: Any) -> Any:
    """Measure private trips and return the mechanism's model; the caller has charged the ledger, or rehearses."""
    return Asking(mechanism, private, rng, engine=engine or Serial(), **options).run()


def is_measured(mechanism: Any) -> bool:
    """Return whether a mechanism, with its parameters, reads private trips through noisy tables alone."""
    return isinstance(mechanism, Measured) and mechanism.budget() is not None


def facts_of(private: Any) -> Facts:
    """Return what is known of an input without reading a row."""
    return Facts(carries=private.carries(), time_zone=private.time_zone)


def compared(people: Sequence[NDArray[np.uint64]]) -> NDArray[np.uint64]:
    """Return the hashes of the people of several parts; refuse one who is in two of them: each would be bounded on its own."""
    together = np.concatenate(people)
    together.sort(kind="stable")  # in place, since people are many; what is sorted already is merged, which is far faster
    if (together[1:] == together[:-1]).any():
        raise GuaranteeRefused(TWO_PARTS)
    return together[:COMPARED_PEOPLE].copy()  # a view would keep all of them


@dataclass(frozen=True)
class _Counting:
    """What every part of a round needs."""

    asked: Round
    unit: Unit
    key: bytes
    norm: Norm


@dataclass(frozen=True)
class _Prepared:
    """What `prepare` made of a part, with what is checked in every round."""

    people: NDArray[np.uint64]
    """A hash of each person in the part."""
    n_units: int
    made: Any


class _Kept:
    """Where what `prepare` made of each part lies between rounds: in memory for small inputs, else in private files."""

    def __init__(self, asking: Asking) -> None:
        self._asking = asking
        self._folder: WorkFolder | None = None
        self._held: dict[str, Any] = {}

    def place(self, asked: Round, number: int) -> _Place:
        asking = self._asking
        if asked.keep is None or asking.work_in == NO_COPY:
            return None
        if isinstance(asking.engine, Serial) and isinstance(asking.private, Trips) and asking.private.n_points <= HELD_POINTS:
            return self._held.setdefault(f"{asked.keep}-{number}", {})
        self._folder = self._folder or WorkFolder(asking.work_in)
        return self._folder.files, f"{asked.keep}-{number}"

    def close(self) -> None:
        self._held.clear()
        if self._folder is not None:
            self._folder.close()


_Place = tuple[WorkFiles, str] | dict[str, Any] | None
"""Where what `prepare` made of a part is kept: in a private file, in memory, or nowhere."""

Found = tuple[dict[str, Sums], NDArray[np.uint64]]
"""Exact clipped sums of some parts, table by table, and a hash of each of their people."""


def _added(n_bins: Mapping[str, int], found: Sequence[Found]) -> Found:
    """Add what was found in several parts; refuse a person who is in two of them."""
    people = compared([here for _, here in found])
    return {name: add([sums[name] for sums, _ in found], bins) for name, bins in n_bins.items()}, people


def _count_part(item: tuple[Any, Any, _Place]) -> Found:
    """Count one part, from kept work where there is some: its exact clipped sums, and a hash of each of its people."""
    shared, source, place = item
    counting: _Counting = opened(shared)
    prepared = _read_kept(place)
    if prepared is None:
        trips = source.load()
        part = part_of(trips, counting.unit, counting.key)
        prepared = _Prepared(
            np.sort(_hashes(trips, counting.unit, int.from_bytes(counting.key[:8], "little"))),
            int(part.unit.max(initial=-1)) + 1,
            counting.asked.prepare(part),
        )
        _keep(place, prepared)
    asked = counting.asked
    sums = [
        _piece_sums(counting, asked.contribute(piece), prepared.n_units)
        for piece in (asked.cut(prepared.made) if asked.cut else (prepared.made,))
    ]
    if len(sums) == 1:
        return sums[0], prepared.people
    return {table.name: add([one[table.name] for one in sums], table.n_bins) for table in asked.tables}, prepared.people


def _piece_sums(counting: _Counting, rows: Mapping[str, Contributions], n_units: int) -> dict[str, Sums]:
    """Check the rows of some units, and add them up, each unit clipped."""
    names = {table.name for table in counting.asked.tables}
    if set(rows) != names:
        raise ContractBroken("a round answers its tables", f"asked for {sorted(names)}, contributed to {sorted(rows)}.")
    for name, of in rows.items():
        if len(of.unit) and not 0 <= np.min(of.unit) <= np.max(of.unit) < n_units:
            raise ContractBroken(
                "the clip applies to whole units", f"rows of {name} name other units than the units of its part."
            )
    return round_sums(counting.asked.tables, rows, counting.norm)


def _hashes(trips: Trips, unit: Unit, seed: int) -> NDArray[np.uint64]:
    """Return a hash of each person; of each trip, where the unit is a trip and parts may share people."""
    if unit.name != "trip":
        return trips.user_ids.cast(pl.String).hash(seed).to_numpy()
    first = trips.offsets[:-1]
    return pl.DataFrame([trips.table[name].gather(first).cast(pl.String) for name in ("uid", "tid")]).hash_rows(seed).to_numpy()


def part_of(trips: Trips, unit: Unit, key: bytes) -> Part:
    """Bound the trips of each unit and number the units; before any cut to a box, which could change a trip's day."""
    bounded = bound(trips, unit, key)
    return Part(bounded, units_of_trips(bounded, unit))


def _read_kept(place: _Place) -> Any:
    if isinstance(place, dict):
        return place.get("prepared")
    if place is None or not place[0].has(place[1]):
        return None
    source = place[0].source(place[1])
    with source.open("rb") if isinstance(source, Path) else source as file:
        return pickle.load(file)  # noqa: S301  written by this very run, where only it may write


def _keep(place: _Place, prepared: Any) -> None:
    if isinstance(place, dict):
        place["prepared"] = prepared
    elif place is not None:
        with (
            place[0].writing(place[1]) as target,
            target.open("wb") if isinstance(target, Path) else nullcontext(target) as file,
        ):
            pickle.dump(prepared, file, protocol=pickle.HIGHEST_PROTOCOL)
