"""Attack releases that are not paired with originals: copies, and the three tests of European guidance on anonymity.

Singling out, linkability and inference follow Opinion 05/2014 of the Article 29 Working Party, in the form that Giomi et al.
(2023) gave them for synthetic tables: an attack counts for what it reaches beyond a control that has nothing to do with the
person.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from murmurate.attacks.tracks import rate_interval
from murmurate.attacks.vectors import Vectors, middle_of, vectors
from murmurate.core.parameters import positive, whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import NotMeasurable

TARGETS = 2_000
"""Originals that are attacked, drawn at random where there are more. Set by hand: intervals of about two per cent."""
COPY_M = 25.0
"""Mean distance, in metres, below which a released trip counts as a copy. Set by hand: within the error of a phone's place."""
FOUND_M = 300.0
"""Distance, in metres, at which a guessed destination counts as right. Set by hand: a few blocks."""
HOUR_M = 1_000.0
"""Metres that an hour of difference counts for when trips are compared. Set by hand."""
CELL_M = 250.0
"""Side of the cells in which predicates are stated, in metres."""
MIN_TRIPS = 10
"""Fewest trips on each side from which rates are told."""


def copying(
    released: Trips, original: Trips, *, pairing: ArrayLike | None = None, holdout: Trips | None = None, seed: int = 0,
    copy_m: float = COPY_M,
) -> list[Score]:  # fmt: skip
    """Measure how many released trips follow an original throughout, beside how many originals follow another person's.

    With `holdout`, people who are not in the release, also the share of released trips that lie nearer to an original than to
    them: above one half, the release is nearer to its own people than to others.
    """
    positive("copy_m", copy_m)
    shown, known = _both(released, original, seed)
    near = _nearest(known.route, shown.route) / np.sqrt(shown.route.shape[1] / 2)
    own = _nearest_of_others(known)
    chance = float((own <= copy_m).mean()) if len(own) else None
    scores = [
        _rate(
            "copying.copies",
            float((near <= copy_m).sum()),
            len(near),
            chance,
            f"The adversary knows all originals: released trips within {copy_m:g} m of one throughout; by chance, originals "
            "within that of another person's.",
        )
    ]
    if holdout is not None:
        others = vectors(holdout, middle_of(original))
        n = min(known.n, others.n)
        if n < MIN_TRIPS:
            raise NotMeasurable(f"the hold-out has {others.n} trips, too few to compare with")
        generator = np.random.default_rng([seed, 31])
        sides = [side.route[generator.choice(side.n, n, replace=False)] for side in (known, others)]
        closer = _nearest(sides[0], shown.route) < _nearest(sides[1], shown.route)
        note = "The adversary has as many people inside as outside: released trips nearer to somebody inside."
        scores.append(_rate("copying.nearer_to_members", float(closer.sum()), len(closer), 0.5, note))
    return scores


def singling_out(released: Trips, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0) -> list[Score]:
    """Measure how often a description that is unique in the release fits exactly one person of the originals.

    A description is the cells of both ends and the hour of a released trip. The control pairs starts of some released trips
    with ends of others.
    """
    shown, known = _both(released, original, seed, all_originals=True)
    described = _described(shown)
    names, count = np.unique(described, axis=0, return_counts=True)
    unique = names[count == 1]
    if len(unique) < MIN_TRIPS:
        raise NotMeasurable("hardly any released trip is unique by the cells of its ends and its hour")
    generator = np.random.default_rng([seed, 37])
    unique = unique[generator.permutation(len(unique))[:TARGETS]]
    control = unique.copy()
    control[:, 2:4] = control[generator.permutation(len(control)), 2:4]
    hits, by_chance = (_fits_one_person(side, known) for side in (unique, control))
    note = (
        f"The adversary has the release only: descriptions (cells of {CELL_M:g} m of both ends, hour) unique in it that fit "
        "exactly one person; by chance, starts and ends of different released trips."
    )
    return [_rate("singling_out.success", hits, len(unique), by_chance / len(control), note)]


def linkability(released: Trips, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0) -> list[Score]:
    """Measure how often the start and the end of an original lead to the same released trip, beside shuffled ends."""
    shown, known = _both(released, original, seed)
    starts = _at(shown.first, shown.hour)
    start_tree, end_tree = _tree(starts), _tree(shown.last)
    by_start = start_tree.query(_at(known.first, known.hour), k=min(LINKS, shown.n))[1].reshape(known.n, -1)
    by_end = end_tree.query(known.last, k=min(LINKS, shown.n))[1].reshape(known.n, -1)
    shuffled = by_end[np.random.default_rng([seed, 41]).permutation(known.n)]
    hits, chance = (float(_meet(by_start, ends).sum()) for ends in (by_end, shuffled))
    note = (
        f"The adversary knows the start and hour of a trip from one source and an end from another: the {LINKS} nearest "
        "released trips to each have one in common; by chance, ends of other originals."
    )
    return [_rate("linkability.success", hits, known.n, chance / known.n, note)]


LINKS = 5
"""Released trips nearest to each half of what is known."""


def inference(
    released: Trips, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0, found_m: float = FOUND_M
) -> list[Score]:
    """Measure how often the destination of an original is guessed from its start and hour, beside what others' trips give.

    The guess is the end of the released trip that starts nearest. The chance level takes the original of another person that
    starts nearest instead: what real trips of other people would tell.
    """
    positive("found_m", found_m)
    shown, known = _both(released, original, seed)
    guess = shown.last[_tree(_at(shown.first, shown.hour)).query(_at(known.first, known.hour))[1]]
    hits = float((np.hypot(*(guess - known.last).T) <= found_m).sum())
    everyone = vectors(original, middle_of(original))
    chance = _guess_by_others(known, everyone, found_m)
    note = (
        f"The adversary knows where and at which hour somebody set out, and guesses where to (within {found_m:g} m) by the "
        "nearest released start; by chance, by the nearest start of another person."
    )
    return [_rate("inference.destination", hits, known.n, chance, note)]


# -- parts -----------------------------------------------------------------------------------------------------------------


def _both(released: Trips, original: Trips, seed: int, *, all_originals: bool = False) -> tuple[Vectors, Vectors]:
    """Return both sides in metres, at most `TARGETS` originals and ten times as many released trips."""
    whole("seed", seed, at_least=0)
    if min(released.n_trips, original.n_trips) < MIN_TRIPS:
        raise NotMeasurable(f"there are fewer than {MIN_TRIPS} trips on one side")
    middle = middle_of(original)
    generator = np.random.default_rng([seed, 29])
    shown, known = vectors(released, middle), vectors(original, middle)
    if shown.n > 10 * TARGETS:
        shown = shown.take(np.sort(generator.choice(shown.n, 10 * TARGETS, replace=False)))
    if known.n > TARGETS and not all_originals:
        known = known.take(np.sort(generator.choice(known.n, TARGETS, replace=False)))
    return shown, known


def _tree(points: Floats) -> Any:
    from scipy.spatial import cKDTree

    return cKDTree(points)


def _nearest(these: Floats, to: Floats) -> Floats:
    """Return for each row of `to` the distance to the nearest of `these`."""
    return np.asarray(_tree(these).query(to)[0])


def _nearest_of_others(known: Vectors) -> Floats:
    """Return for each trip the mean distance to the nearest trip of another person; nothing where there is one person."""
    if len(np.unique(known.person)) < 2:
        return np.zeros(0)
    k = min(64, known.n)
    distance, at = _tree(known.route).query(known.route, k=k)
    foreign = known.person[at] != known.person[:, None]
    found = np.where(foreign, distance, np.inf).min(axis=1) / np.sqrt(known.route.shape[1] / 2)
    return np.asarray(found[np.isfinite(found)])


def _guess_by_others(known: Vectors, everyone: Vectors, found_m: float) -> float | None:
    if len(np.unique(everyone.person)) < 2:
        return None
    k = min(64, everyone.n)
    at = _tree(_at(everyone.first, everyone.hour)).query(_at(known.first, known.hour), k=k)[1].reshape(known.n, -1)
    foreign = everyone.person[at] != known.person[:, None]
    there = foreign.any(axis=1)
    chosen = at[np.arange(known.n), foreign.argmax(axis=1)]
    right = np.hypot(*(everyone.last[chosen] - known.last).T) <= found_m
    return float((right & there).sum() / max(there.sum(), 1)) if there.any() else None


def _at(place: Floats, hour: Integers) -> Floats:
    """Return places with the hour on a circle, in metres."""
    turn = 2 * np.pi * hour / 24
    radius = HOUR_M * 24 / (2 * np.pi)
    return np.column_stack([place, radius * np.cos(turn), radius * np.sin(turn)])


def _described(trips: Vectors) -> Integers:
    cells = [np.floor(side / CELL_M).astype(np.int64) for side in (trips.first, trips.last)]
    return np.column_stack([*cells, trips.hour])


def _fits_one_person(descriptions: Integers, known: Vectors) -> float:
    """Count the descriptions that fit trips of exactly one person."""
    have = _described(known)
    rows = np.concatenate([have, descriptions])
    _, code = np.unique(rows, axis=0, return_inverse=True)
    code = code.ravel()
    pairs = np.unique(np.column_stack([code[: len(have)], known.person]), axis=0)
    people = np.bincount(pairs[:, 0], minlength=code.max() + 1)
    return float((people[code[len(have) :]] == 1).sum())


def _meet(one: Integers, other: Integers) -> Integers:
    return np.asarray((one[:, :, None] == other[:, None, :]).any(axis=(1, 2)))


def _rate(name: str, hits: float, n: int, chance: float | None, note: str) -> Score:
    low, high = rate_interval(hits, n)
    return Score(
        name=name, value=hits / n, low=low, high=high, better="closer_to_chance", chance=chance,
        family=name.partition(".")[0], n=n,
        note=note,
    )  # fmt: skip
