"""Attack releases of counts: flows between zones, totals of zones by hour, links of a road network by hour.

Counts hold no trips, so an adversary compares what somebody would have added with what the release shows there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.attacks.membership import auc
from murmurate.attacks.tracks import rate_interval
from murmurate.attacks.trip_membership import MAX_TRIPS, MIN_UNITS, RUNS, by_unit, learned, score_of_auc
from murmurate.core import progress
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import NotMeasurable
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.zone_trips import ZoneTrips

REPEATED = 4
"""Releases of the same people that an adversary averages in the second score. Set by hand: half the noise of one."""
MIN_CELLS = 10
"""Fewest cells of a table from which rates are told."""
NOTHING_SHOWN = " Nothing was published where they travelled, so all look alike; more people or a larger epsilon may show more."
"""Said where members and others cannot be compared at all, which is no sign of a strong promise."""
LONE = 1.5
"""Counts above 0 and below this are read as one trip."""
Again = Callable[[Trips, int, int], Any]
"""again(trips of members, number wanted, run) -> a fresh release of them by the same mechanism."""


@dataclass(frozen=True, eq=False)
class Rows:
    """What trips add to the tables of a release: rows of (trip, cell), one list for each table."""

    trip: list[Integers]
    cell: list[Integers]
    size: list[int]
    """Cells of each table."""

    def counts(self, trips: Integers, n_trips: int) -> list[Floats]:
        """Return what these trips add up to, by table."""
        chosen = np.zeros(n_trips, dtype=bool)
        chosen[trips] = True
        return [
            np.bincount(cell[chosen[trip]], minlength=size).astype(np.float64)
            for trip, cell, size in zip(self.trip, self.cell, self.size, strict=True)
        ]


def rows_of(released: Any, original: Trips) -> Rows:
    """Return what each original trip adds to the tables of a release of this kind."""
    if not (original.has_time and original.has_coordinates):
        raise NotMeasurable("the originals lack times or coordinates")
    if isinstance(released, LinkFlows):
        from murmurate.spaces.drives import drives_of

        drives = drives_of(original, released.network)
        return Rows([drives.trip], [drives.hour * released.network.n_links + drives.link], [24 * released.network.n_links])
    found, n = ZoneTrips.of(original, released.places), released.places.n_cells
    cells = [found.origin * n + found.destination, found.departure * n + found.origin, found.arrival * n + found.destination]
    return Rows([found.trip] * 3, cells, [n * n, 24 * n, 24 * n])


def tables_of(released: Any) -> list[Floats]:
    """Return the counts of a release, by table; 0 where nothing is published."""
    if isinstance(released, LinkFlows):
        return [released.by_hour.ravel()]
    return [
        released.matrix(complete=False).ravel(),
        *(np.nan_to_num(released.totals(side)).T.ravel() for side in ("departures", "arrivals")),
    ]


# -- membership ------------------------------------------------------------------------------------------------------------


def membership(
    released: Any,
    original: Trips,
    *,
    pairing: ArrayLike | None = None,
    holdout: Trips | None = None,
    again: Again | None = None,
    by_person: bool = True,
    runs: int = RUNS,
    repeated: int = REPEATED,
    seed: int = 0,
) -> list[Score]:
    """Measure how well members are distinguished from others by the counts where they travelled.

    With `again`, the mechanism counts random thirds of the originals; a second third is tested beside them and the last is the
    adversary's own. The second score averages `repeated` such releases. Without it, `holdout` are people outside.
    """
    whole("runs", runs, at_least=2)
    whole("repeated", repeated)
    unit_words = "a person's trips" if by_person else "a trip"
    words = f"The adversary knows {unit_words} and other people's, and compares the counts there"
    if again is None and holdout is None:
        raise NotMeasurable("membership needs the mechanism to release again, or trips of people outside (holdout)")
    if again is None:
        value, n = _against_holdout(released, original, holdout, by_person, seed)
        return [score_of_auc("membership.auc", value, n, f"{words}; without the mechanism.")]
    if original.n_trips > MAX_TRIPS:
        chosen = np.random.default_rng([seed, 61]).choice(original.n_trips, MAX_TRIPS, replace=False)
        original = original.take_trips(np.sort(chosen))
    unit = np.asarray(original.trip_user, np.int64) if by_person else np.arange(original.n_trips)
    units = np.unique(unit)
    if len(units) < MIN_UNITS:
        raise NotMeasurable(
            f"membership needs at least {MIN_UNITS} {'people' if by_person else 'trips'}; there are {len(units)}"
        )
    rows = rows_of(released, original)
    every: dict[int, list[tuple[Floats, NDArray[np.bool_]]]] = {times: [] for times in sorted({1, repeated})}
    for run in progress.track(range(runs), "counting thirds again", runs):
        part = np.empty(int(units.max()) + 1, dtype=np.int64)
        part[units] = np.random.default_rng([seed, 67, run]).permutation(len(units)) % 3
        members = np.flatnonzero(part[unit] == 0)
        fresh = [tables_of(again(original.take_trips(members), len(members), run + runs * k)) for k in range(repeated)]
        tested = np.flatnonzero(part[unit] < 2)
        others = rows.counts(np.flatnonzero(part[unit] == 2), original.n_trips)
        for times, found in every.items():
            mean = [np.mean(tables, axis=0) for tables in zip(*fresh[:times], strict=True)]
            shown = by_unit(evidence_of(rows, mean, others, original.n_trips)[tested], unit[tested])
            found.append((shown, part[np.unique(unit[tested])] == 0))
    scores = []
    for times, found in every.items():
        ratio = [found[run][0] @ learned([found[k] for k in range(runs) if k != run]) for run in range(runs)]
        value = float(np.mean([auc(one, who) for one, (_, who) in zip(ratio, found, strict=True)]))
        name = "membership.auc" if times == 1 else f"membership.auc_of_{times}_releases"
        more = "" if times == 1 else f" The mean of {times} releases of the same people, each of which would be charged."
        if all(np.ptp(one, axis=0).max() == 0 for one, _ in found):
            more += NOTHING_SHOWN
        note = f"{words}; {runs} releases of random thirds, weights learned on the others.{more}"
        scores.append(score_of_auc(name, value, sum(len(who) for _, who in found), note))
    return scores


def _against_holdout(released: Any, original: Trips, holdout: Any, by_person: bool, seed: int) -> tuple[float, int]:
    """Tell originals from the hold-out by the release alone: one half of the hold-out is tested, one is the adversary's."""
    if min(holdout.n_trips, original.n_trips) < MIN_UNITS:
        raise NotMeasurable(f"membership needs at least {MIN_UNITS} trips inside and outside")
    generator = np.random.default_rng([seed, 71])
    outside = rows_of(released, holdout)
    order = generator.permutation(holdout.n_trips)
    reference = outside.counts(order[: holdout.n_trips // 2], holdout.n_trips)
    shown, sides = tables_of(released), []
    for rows, trips, chosen in (
        (rows_of(released, original), original, generator.permutation(original.n_trips)[: len(order) - len(order) // 2]),
        (outside, holdout, order[holdout.n_trips // 2 :]),
    ):
        unit = np.asarray(trips.trip_user, np.int64) if by_person else np.arange(trips.n_trips)
        sides.append(by_unit(evidence_of(rows, shown, reference, trips.n_trips)[chosen], unit[chosen]))
    who = np.repeat([True, False], [len(side) for side in sides])
    evidence = np.concatenate(sides)
    total = ((evidence - evidence.mean(axis=0)) / (evidence.std(axis=0) + 1e-12)).sum(axis=1)
    return auc(total, who), len(who)


def evidence_of(rows: Rows, shown: list[Floats], others: list[Floats], n_trips: int) -> Floats:
    """Return [trip, statistic]: by how much the release exceeds other people's counts in the trip's cells; two a table."""
    columns = []
    for trip, cell, here, there in zip(rows.trip, rows.cell, shown, others, strict=True):
        scale = max(here.sum(), 0.0) / max(there.sum(), 1.0)
        expected = scale * there
        far = (here - expected)[cell]
        each = [far / np.sqrt(expected[cell] + 1.0), np.log1p(np.maximum(here[cell], 0)) - np.log1p(expected[cell])]
        size = np.maximum(np.bincount(trip, minlength=n_trips), 1)
        columns += [np.bincount(trip, weights=values, minlength=n_trips) / size for values in each]
    return np.column_stack(columns)


# -- the European tests, and what counts reveal of single trips -------------------------------------------------------------


def singling_out(released: Any, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0) -> list[Score]:
    """Measure how often a cell that is released with a count of one was used by exactly one person of a random half.

    The chance level takes cells that one trip of the other half used.
    """
    rows, tables = rows_of(released, original), tables_of(released)
    generator = np.random.default_rng([seed, 73])
    person = np.asarray(original.trip_user, np.int64)
    half = generator.permutation(int(person.max()) + 1)[person] % 2 == 0
    trip, cell, shown = rows.trip[0], rows.cell[0], tables[0]
    lone = np.flatnonzero((shown > 0) & (shown < LONE))
    if len(lone) < MIN_CELLS:
        raise NotMeasurable("hardly any cell is released with a count of one")
    used = np.unique(np.column_stack([cell[half[trip]], person[trip[half[trip]]]]), axis=0)
    people = np.bincount(used[:, 0], minlength=rows.size[0])
    by_others = np.bincount(cell[~half[trip]], minlength=rows.size[0])
    control = np.flatnonzero(by_others == 1)
    chance = float((people[control] == 1).mean()) if len(control) >= MIN_CELLS else None
    note = (
        "The adversary has the release only: cells (a pair of zones, or a link in an hour) with a count of one that "
        "exactly one person of a random half used; by chance, cells that one trip of the other half used."
    )
    return [_rate("singling_out.success", int((people[lone] == 1).sum()), len(lone), chance, note)]


def lone_pairs(released: Any, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0) -> list[Score]:
    """Measure how many pairs of zones that one person alone travelled are listed, beside pairs that nobody did."""
    if isinstance(released, LinkFlows):
        raise NotMeasurable("a network has no pairs of zones; reconstruct attacks its links")
    rows, n = rows_of(released, original), released.places.n_cells
    person = np.asarray(original.trip_user, np.int64)
    used = np.unique(np.column_stack([rows.cell[0], person[rows.trip[0]]]), axis=0)
    people = np.bincount(used[:, 0], minlength=n * n)
    listed = np.zeros(n * n, dtype=bool)
    pairs = released.pairs()
    listed[pairs["origin"].to_numpy() * n + pairs["destination"].to_numpy()] = True
    alone = np.flatnonzero(people == 1)
    if len(alone) < MIN_CELLS:
        raise NotMeasurable("hardly any pair of zones was travelled by one person alone")
    counts = rows.counts(np.arange(original.n_trips), original.n_trips)[0].reshape(n, n)
    weight = np.outer(counts.sum(axis=1), counts.sum(axis=0)).ravel() * (people == 0)
    chance = float((weight * listed).sum() / weight.sum()) if weight.sum() else None
    note = (
        "The adversary looks for trips that nobody else made: pairs of zones of one person that are listed; by chance, pairs "
        "that nobody travelled, drawn by how busy their ends are."
    )
    return [_rate("reconstruct.lone_pairs", int(listed[alone].sum()), len(alone), chance, note)]


def inference(released: Any, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0) -> list[Score]:
    """Measure how often the destination of a trip is the busiest one of its origin in the release.

    The chance level takes the busiest one among other people's trips.
    """
    if isinstance(released, LinkFlows):
        raise NotMeasurable("a network has no origins and destinations")
    found, n = ZoneTrips.of(original, released.places), released.places.n_cells
    flow = released.matrix(complete=False)
    if len(found.trip) < MIN_CELLS or not flow.any():
        raise NotMeasurable("there are hardly any trips, or no pair of zones is listed")
    person = np.asarray(original.trip_user, np.int64)[found.trip]
    right = (flow[found.origin].argmax(axis=1) == found.destination) & (flow[found.origin].max(axis=1) > 0)
    true = np.zeros((n, n))
    np.add.at(true, (found.origin, found.destination), 1.0)
    by_others = np.zeros(len(person), dtype=bool)
    for one in np.unique(person):
        mine = np.flatnonzero(person == one)
        rest = true[found.origin[mine]].copy()
        for origin, destination in zip(found.origin[mine], found.destination[mine], strict=True):
            rest[found.origin[mine] == origin, destination] -= 1
        by_others[mine] = (rest.argmax(axis=1) == found.destination[mine]) & (rest.max(axis=1) > 0)
    chance = float(by_others.mean()) if len(np.unique(person)) > 1 else None
    note = (
        "The adversary knows the zone where somebody set out and guesses the busiest destination from there; by chance, by "
        "the trips of other people."
    )
    return [_rate("inference.destination", int(right.sum()), len(right), chance, note)]


def _rate(name: str, hits: int, n: int, chance: float | None, note: str) -> Score:
    low, high = rate_interval(float(hits), n)
    return Score(
        name=name, value=hits / n, low=low, high=high, better="closer_to_chance", chance=chance,
        family=name.partition(".")[0], n=n, note=note,
    )  # fmt: skip
