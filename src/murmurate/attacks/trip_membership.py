"""Infer whether somebody's trips were in a release of synthetic trips, by releasing random halves of the people again."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.attacks.membership import auc
from murmurate.attacks.vectors import Vectors, middle_of, vectors
from murmurate.core import progress
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import NotMeasurable

Again = Callable[[Trips, int, int], Trips]
"""again(trips of members, number of trips wanted, run) -> a fresh release of them by the same mechanism."""

CELLS_M = (100.0, 250.0, 500.0)
"""Sides of the cells, in metres, in which released and known trips are compared."""
RUNS = 3
"""Releases of random halves; all but one teach how much each statistic counts, in turn. Set by hand."""
OVERSAMPLED = 4
"""Released trips per member: an attacker may draw from a published model as often as it likes."""
MAX_TRIPS = 6_000
"""Originals that take part, so that an attack ends in minutes. Set by hand."""
MIN_UNITS = 40
"""Fewest people or trips, half of which are members."""
KNOWLEDGE = "The adversary knows {unit}, the mechanism, and other people's trips, and asks whether {unit} was in the data"
"""What the adversary knows, for the notes."""


def membership(
    released: Trips,
    original: Trips,
    *,
    pairing: ArrayLike | None = None,
    holdout: Trips | None = None,
    again: Again | None = None,
    by_person: bool = True,
    runs: int = RUNS,
    seed: int = 0,
) -> list[Score]:
    """Measure how well members are distinguished from others: the chance that a member scores higher, .5 by guessing.

    With `again`, the mechanism releases random thirds of the originals; a second third is tested beside them, and the last is
    the adversary's own data. Without it, `holdout` are people who are known not to be in the release.
    """
    whole("runs", runs, at_least=2)
    if again is None and holdout is None:
        raise NotMeasurable("membership needs the mechanism to release again, or trips of people outside (holdout)")
    if again is None:
        return _against_holdout(released, original, holdout, by_person, seed)
    if original.n_trips > MAX_TRIPS:
        chosen = np.random.default_rng([seed, 43]).choice(original.n_trips, MAX_TRIPS, replace=False)
        original = original.take_trips(np.sort(chosen))
    middle = middle_of(original)
    known = vectors(original, middle)
    unit = known.person if by_person else np.arange(known.n)
    units = np.unique(unit)
    if len(units) < MIN_UNITS:
        raise NotMeasurable(
            f"membership needs at least {MIN_UNITS} {'people' if by_person else 'trips'}; there are {len(units)}"
        )
    shown, inside = [], []
    for run in progress.track(range(runs), "releasing halves again", runs):
        generator = np.random.default_rng([seed, 47, run])
        part = np.empty(int(units.max()) + 1, dtype=np.int64)
        part[units] = generator.permutation(len(units)) % 3
        role = part[unit]
        members = np.flatnonzero(role == 0)
        fresh = vectors(again(original.take_trips(members), OVERSAMPLED * len(members), run), middle)
        tested = np.flatnonzero(role < 2)
        evidence = evidence_of(known.take(tested), fresh, known.take(np.flatnonzero(role == 2)))
        shown.append(by_unit(evidence, unit[tested]))
        inside.append(part[np.unique(unit[tested])] == 0)
    ratio = [
        shown[run] @ learned([(shown[k], inside[k]) for k in range(runs) if k != run]) for run in range(runs)
    ]  # fmt: skip
    # scores of different runs are ranked within their run: their scales differ
    value = float(np.mean([auc(one, who) for one, who in zip(ratio, inside, strict=True)]))
    best = max(
        (
            float(np.mean([auc(one[:, k], who) for one, who in zip(shown, inside, strict=True)]))
            for k in range(shown[0].shape[1])
        ),
        key=lambda found: abs(found - 0.5),
    )
    n = sum(len(who) for who in inside)
    words = KNOWLEDGE.format(unit="a person's trips" if by_person else "a trip")
    return [
        score_of_auc("membership.auc", value, n, f"{words}; {runs} releases of random thirds, weights learned on the others."),
        score_of_auc("membership.best_statistic_auc", best, n, f"{words}; the single statistic that tells most."),
    ]


def _against_holdout(released: Trips, original: Trips, holdout: Trips | None, by_person: bool, seed: int) -> list[Score]:
    """Tell originals from the hold-out by the release alone: one half of the hold-out is tested, one is the adversary's."""
    if holdout is None or min(holdout.n_trips, original.n_trips) < MIN_UNITS:
        raise NotMeasurable(f"membership needs at least {MIN_UNITS} trips inside and outside")
    middle = middle_of(original)
    fresh, inside, outside = (vectors(trips, middle) for trips in (released, original, holdout))
    generator = np.random.default_rng([seed, 53])
    order = generator.permutation(outside.n)
    reference, tested = outside.take(np.sort(order[: outside.n // 2])), outside.take(np.sort(order[outside.n // 2 :]))
    member = inside.take(np.sort(generator.permutation(inside.n)[: tested.n]))
    sides = [
        by_unit(evidence_of(side, fresh, reference), side.person if by_person else np.arange(side.n))
        for side in (member, tested)
    ]
    who = np.repeat([True, False], [len(sides[0]), len(sides[1])])
    evidence = np.concatenate(sides)
    spread = evidence.std(axis=0) + 1e-12
    words = KNOWLEDGE.format(unit="a person's trips" if by_person else "a trip")
    note = f"{words}; the release alone, without its mechanism."
    return [score_of_auc("membership.auc", auc(((evidence - evidence.mean(axis=0)) / spread).sum(axis=1), who), len(who), note)]


def evidence_of(known: Vectors, fresh: Vectors, reference: Vectors) -> Floats:
    """Return [trip, statistic]: how much likelier each known trip is under the release than under other people's trips."""
    columns = []
    for cell_m in CELLS_M:
        columns += [
            _log_ratio(*(keys(side, cell_m) for side in (known, fresh, reference)))
            for keys in (_starts, _ends, _both_ends, _starts_by_hour, _ends_by_hour)
        ]
        columns.append(_visits(known, fresh, reference, cell_m))
    columns.append(np.log(_nearest(reference, known) + 1.0) - np.log(_nearest(fresh, known) + 1.0))
    return np.column_stack(columns)


def _starts(trips: Vectors, cell_m: float) -> Integers:
    return np.floor(trips.first / cell_m).astype(np.int64)


def _ends(trips: Vectors, cell_m: float) -> Integers:
    return np.floor(trips.last / cell_m).astype(np.int64)


def _both_ends(trips: Vectors, cell_m: float) -> Integers:
    return np.column_stack([_starts(trips, cell_m), _ends(trips, cell_m)])


def _starts_by_hour(trips: Vectors, cell_m: float) -> Integers:
    return np.column_stack([_starts(trips, cell_m), trips.hour])


def _ends_by_hour(trips: Vectors, cell_m: float) -> Integers:
    return np.column_stack([_ends(trips, cell_m), trips.hour])


def _log_ratio(known: Integers, fresh: Integers, reference: Integers) -> Floats:
    """Return the log of the rate of each known key in the release over its rate among other people."""
    keys = np.concatenate([known, fresh, reference])
    _, code = np.unique(_one_number(keys - keys.min(axis=0)), return_inverse=True)
    at, shown, others = code[: len(known)], code[len(known) : len(known) + len(fresh)], code[len(known) + len(fresh) :]
    size = int(code.max()) + 1
    rates = [np.bincount(side, minlength=size) / len(side) for side in (shown, others)]
    floor = 1.0 / len(known)  # a rate below one of the tested trips says no more
    return np.asarray(np.log(rates[0][at] + 0.1 * floor) - np.log(rates[1][at] + floor))


def _one_number(keys: Integers) -> Integers:
    """Return one number per row of whole numbers from 0, equal where rows are: sorting numbers is far faster than rows."""
    size, number = 1, np.zeros(len(keys), dtype=np.int64)
    for column in keys.T:
        wide = int(column.max()) + 1
        if size > np.iinfo(np.int64).max // wide:  # trips over continents: what is there instead of what could be
            _, number = np.unique(number, return_inverse=True)
            size = int(number.max()) + 1
        number, size = number * wide + column, size * wide
    return number


def _visits(known: Vectors, fresh: Vectors, reference: Vectors, cell_m: float) -> Floats:
    """Return the mean log ratio of the cells that each trip visits."""
    each = _log_ratio(*(np.floor(side.xy / cell_m).astype(np.int64) for side in (known, fresh, reference)))
    return np.asarray(np.add.reduceat(each, known.offsets[:-1]) / np.diff(known.offsets))


def _nearest(these: Vectors, to: Vectors) -> Floats:
    from scipy.spatial import cKDTree

    return np.asarray(cKDTree(these.route).query(to.route)[0])


def by_unit(evidence: Floats, unit: Integers) -> Floats:
    """Return the mean of each statistic over the trips of a unit."""
    _, at = np.unique(unit, return_inverse=True)
    sums = np.zeros((int(at.max()) + 1, evidence.shape[1]))
    np.add.at(sums, at.ravel(), evidence)
    return np.asarray(sums / np.bincount(at.ravel())[:, None])


def learned(runs: list[tuple[Floats, NDArray[np.bool_]]]) -> Floats:
    """Return the weights of a linear discriminant learned on other runs, shrunk so that many statistics do not overfit."""
    evidence, who = np.concatenate([run[0] for run in runs]), np.concatenate([run[1] for run in runs])
    gap = evidence[who].mean(axis=0) - evidence[~who].mean(axis=0)
    centred = np.where(who[:, None], evidence - evidence[who].mean(axis=0), evidence - evidence[~who].mean(axis=0))
    spread = np.cov(centred, rowvar=False)
    return np.asarray(np.linalg.solve(spread + 0.1 * np.diag(np.diag(spread) + 1e-9), gap))


def score_of_auc(name: str, value: float, n: int, note: str) -> Score:
    """Return the score of an area under the curve of `n` people or trips."""
    # Hanley and McNeil, at one half: the widest
    spread = 1.96 * np.sqrt((1 / 12) * (4 / n))
    return Score(
        name=name, value=value, low=max(0.0, value - spread), high=min(1.0, value + spread),
        better="closer_to_chance", chance=0.5, family="membership", n=n, note=note,
    )  # fmt: skip
