"""Attack releases that are not paired with originals: copies, and the three tests of European guidance on anonymity.

Singling out, linkability and inference follow Opinion 05/2014 of the Article 29 Working Party, in the form that Giomi et al.
(2023) gave them for synthetic tables: an attack counts for what it reaches beyond a control that has nothing to do with the
person.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import polars as pl
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
DAY_US = 20 * 3_600_000_000
"""Duration, in microseconds, from which a released trip is a whole day."""
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
    """Measure how often a description that is unique in the release fits exactly one person of a random half of the people.

    A description is the cells of both ends and the hour of a released trip. The chance level describes as many real trips of
    the other half instead: what trips of other people would tell.
    """
    shown, known = _both(released, original, seed, all_originals=True)
    generator = np.random.default_rng([seed, 37])
    in_half = generator.permutation(int(known.person.max()) + 1)[known.person] % 2 == 0
    half, others = known.take(np.flatnonzero(in_half)), known.take(np.flatnonzero(~in_half))
    n = min(shown.n, others.n) or shown.n
    shares = []
    for side in (shown, others):
        unique = _unique(_described(side.take(np.sort(generator.permutation(side.n)[:n]))), generator)
        shares.append((float((_people_who_fit(unique, half) == 1).sum()), len(unique)))
    (hits, n_unique), (by_chance, n_control) = shares
    if n_unique < MIN_TRIPS:
        raise NotMeasurable("hardly any released trip is unique by the cells of its ends and its hour")
    note = (
        f"The adversary has the release only: descriptions (cells of {CELL_M:g} m of both ends, hour) unique in it that fit "
        "exactly one person of a random half of the people; by chance, descriptions of real trips of the other half."
    )
    return [_rate("singling_out.success", hits, n_unique, by_chance / n_control if n_control else None, note)]


def linkability(released: Trips, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0) -> list[Score]:
    """Measure how often the start and the end of an original lead to the same released trip.

    The chance level searches as many real trips of other people instead of the release. Where whole days are released, the
    originals are joined to days as well: most days begin and end at one home, so single trips would be a wrong control.
    """
    original = _alike(released, original)
    shown, known = _both(released, original, seed)
    everyone = vectors(original, middle_of(original))
    if len(np.unique(shown.hour)) == 1:  # an hour that all released trips share tells nothing, and would not tell real ones
        shown, known, everyone = (replace(side, hour=np.zeros_like(side.hour)) for side in (shown, known, everyone))
    generator = np.random.default_rng([seed, 41])
    n = min(shown.n, everyone.n)  # among more trips, fewer of the nearest are the same
    shown, others = (side.take(np.sort(generator.permutation(side.n)[:n])) for side in (shown, everyone))
    hits = float(_linked(known, shown, generator).sum())
    chance = None if len(np.unique(everyone.person)) < 2 else float(_linked(known, others, generator, others.person).mean())
    note = (
        f"The adversary knows the start and hour of a trip from one source and an end from another: the {LINKS} nearest "
        "released trips to each have one in common; by chance, real trips of other people."
    )
    return [_rate("linkability.success", hits, known.n, chance, note)]


def _linked(known: Vectors, among: Vectors, generator: np.random.Generator, not_of: Integers | None = None) -> Integers:
    """Return whether the nearest trips by start and by end meet; `not_of` says whose they are: own ones are left out.

    Releases of cells have many trips at one point. Which of them are the nearest is then drawn for starts and ends apart: in
    the order of a search tree, the same five would be nearest to everybody, and meet always or never.
    """
    k = min(LINKS if not_of is None else NEIGHBOURS, among.n)
    found = []
    among = replace(among, first=_apart(among.first, generator), last=_apart(among.last, generator))
    for places, target in ((_at(among.first, among.hour), _at(known.first, known.hour)), (among.last, known.last)):
        near = _tree(places).query(target, k=k)[1].reshape(known.n, -1)
        if not_of is not None:
            own = not_of[near] == known.person[:, None]
            order = np.argsort(own, axis=1, kind="stable")[:, :LINKS]
            near = np.where(np.take_along_axis(own, order, axis=1), -1, np.take_along_axis(near, order, axis=1))
        found.append(near)
    return np.asarray(((found[0][:, :, None] == found[1][:, None, :]) & (found[0] >= 0)[:, :, None]).any(axis=(1, 2)))


def _apart(places: Floats, generator: np.random.Generator) -> Floats:
    """Return places that differ, by a metre at most."""
    return places + generator.uniform(-0.7, 0.7, places.shape)


LINKS = 5
"""Released trips nearest to each half of what is known."""
NEIGHBOURS = 64
"""Nearest real trips that are looked at for those of other people. Set by hand: more than one person's trips from one place."""
MORNING = 12
"""Hour before which a trip counts as the way from home to work."""


def inference(
    released: Trips, original: Trips, *, pairing: ArrayLike | None = None, seed: int = 0, found_m: float = FOUND_M
) -> list[Score]:
    """Measure how often the destination of an original is guessed from its start and hour, and home and work from each other.

    The guess is that of the released trip nearest in what is known. The chance level takes the original of another person
    that is nearest instead: what real trips of other people would tell. Home and work are the ends of the way that a person
    goes most often before noon, at least twice.
    """
    positive("found_m", found_m)
    shown, known = _both(released, original, seed)
    everyone = vectors(original, middle_of(original))
    setting_out = [(_at(one.first, one.hour), one.last, one.person) for one in (shown, everyone, known)]
    what = "where and at which hour somebody set out, and guesses where to"
    scores = [_guessed("inference.destination", what, found_m, *setting_out)]
    early, mornings = (one.take(np.flatnonzero(one.hour < MORNING)) for one in (shown, everyone))
    habits = _habits(mornings)
    if min(early.n, habits.n) >= MIN_TRIPS:
        to_work = [(one.first, one.last, one.person) for one in (early, mornings, habits)]
        to_home = [(last, first, person) for first, last, person in to_work]
        scores += [
            _guessed("inference.home", "where somebody works, and guesses the home", found_m, *to_home),
            _guessed("inference.work", "where somebody lives, and guesses the place of work", found_m, *to_work),
        ]
    return scores


Ways = tuple[Floats, Floats, Integers]
"""What is known of trips, what is guessed of them, and whose they are."""


def _guessed(name: str, what: str, found_m: float, *sides: Ways) -> Score:
    """Guess by the released trip nearest in what is known; the chance level, by the nearest real trip of another person."""
    released, everyone, (known, truth, person) = sides
    right = np.hypot(*(released[1][_tree(released[0]).query(known)[1]] - truth).T) <= found_m
    note = f"The adversary knows {what} (within {found_m:g} m) by the nearest released trip; by chance, by another person's."
    chance = None
    if len(np.unique(everyone[2])) > 1:
        at = _tree(everyone[0]).query(known, k=min(NEIGHBOURS, len(everyone[0])))[1].reshape(len(known), -1)
        foreign = everyone[2][at] != person[:, None]
        there = foreign.any(axis=1)
        chosen = at[np.arange(len(known)), foreign.argmax(axis=1)]
        by_others = np.hypot(*(everyone[1][chosen] - truth).T) <= found_m
        chance = float((by_others & there).sum() / there.sum()) if there.any() else None
    return _rate(name, float(right.sum()), len(right), chance, note)


def _habits(mornings: Vectors) -> Vectors:
    """Return one trip a person: the way between the two places most frequent in the morning, for those who went it twice."""
    cells = np.column_stack(
        [mornings.person, *(np.floor(side / CELL_M).astype(np.int64) for side in (mornings.first, mornings.last))]
    )
    _, first, times = np.unique(cells, axis=0, return_index=True, return_counts=True)
    moved = (cells[first, 1:3] != cells[first, 3:5]).any(axis=1) & (times >= 2)
    first, times = first[moved], times[moved]
    order = np.lexsort((-times, mornings.person[first]))
    person = mornings.person[first][order]
    return mornings.take(np.sort(first[order][np.r_[True, person[1:] != person[:-1]]])) if len(person) else mornings.take(first)


def _alike(released: Trips, original: Trips) -> Trips:
    """Return the originals; where whole days are released, all trips of a person on a day as one."""
    if not (released.has_time and original.has_time and released.n_trips):
        return original
    first, last = released.offsets[:-1], released.offsets[1:] - 1
    if np.median(released.time_us[last] - released.time_us[first]) < DAY_US:
        return original
    day = pl.Series("day", original.local_day)
    joined = original.table.with_columns(tid=pl.concat_str(pl.col("uid").cast(pl.String), pl.lit(" "), day.cast(pl.String)))
    return Trips(joined, original.space, original.time_zone)


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


def _at(place: Floats, hour: Integers) -> Floats:
    """Return places with the hour on a circle, in metres."""
    turn = 2 * np.pi * hour / 24
    radius = HOUR_M * 24 / (2 * np.pi)
    return np.column_stack([place, radius * np.cos(turn), radius * np.sin(turn)])


def _described(trips: Vectors) -> Integers:
    cells = [np.floor(side / CELL_M).astype(np.int64) for side in (trips.first, trips.last)]
    return np.column_stack([*cells, trips.hour])


def _unique(descriptions: Integers, generator: np.random.Generator) -> Integers:
    """Return descriptions that occur once, at most `TARGETS`."""
    names, count = np.unique(descriptions, axis=0, return_counts=True)
    once = names[count == 1]
    return once[generator.permutation(len(once))[:TARGETS]]


def _people_who_fit(descriptions: Integers, known: Vectors) -> Integers:
    """Return how many people each description fits."""
    have = _described(known)
    _, code = np.unique(np.concatenate([have, descriptions]), axis=0, return_inverse=True)
    code = code.ravel()
    pairs = np.unique(np.column_stack([code[: len(have)], known.person]), axis=0)
    people = np.bincount(pairs[:, 0], minlength=code.max() + 1)
    return np.asarray(people[code[len(have) :]])


def _rate(name: str, hits: float, n: int, chance: float | None, note: str) -> Score:
    low, high = rate_interval(hits, n)
    return Score(
        name=name, value=hits / n, low=low, high=high, better="closer_to_chance", chance=chance,
        family=name.partition(".")[0], n=n,
        note=note,
    )  # fmt: skip
