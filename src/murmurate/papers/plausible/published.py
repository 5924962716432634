"""as_published: fakes decoded from semantic seeds and filtered by three tests (Bindschaedler and Shokri 2016)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.papers.plausible.decoding import MERGE_MODES, decode_fakes
from murmurate.papers.plausible.places import ChosenPlaces, most_visited
from murmurate.profiles import Places
from murmurate.profiles.aggregate import Aggregate
from murmurate.profiles.classes import Level, LocationGraph, location_graph, usage_classes
from murmurate.profiles.days import DailyTraces
from murmurate.profiles.mobility import Profiles, joined, profiles_of_rows
from murmurate.profiles.similarity import geographic, geographic_emd, semantic_visits

if TYPE_CHECKING:
    from murmurate.mechanisms.plausible import Plausible

PERIODS = 4
"""Periods of a day over which profiles are compared, of six hours each, as in the paper."""

BATCH = 256
"""Fakes decoded and tested at a time; set by hand."""

MOST_ATTEMPTS = 40
"""Attempts for each wanted fake before giving up; set by hand, which bounds the time."""


@dataclass(frozen=True, eq=False)
class Learned:
    """Holds what is learned from the seeds, and the alternatives that can stand in for them."""

    seeds: Places
    seed_person: Integers
    """Who the seeds are, for measurements inside; -1 for seeds added later."""
    alternatives: Places
    profiles: Profiles
    """Of the seeds."""
    alternative_profiles: Profiles
    graph: LocationGraph
    classes: Integers
    """[place]: usage class, -1 for a place no seed visits."""
    aggregate: Aggregate
    chosen: ChosenPlaces
    """What the numbers of places mean: cells of the grid."""


@dataclass(frozen=True, eq=False)
class Pool:
    """Holds fakes that passed, and counts for the custodian; the last three never leave."""

    place: Places
    log_likelihood: Floats
    seed: Integers
    passed: dict[str, float]
    """Share of all attempts that passed each test."""
    attempts: int


def publish(days: DailyTraces, settings: Plausible, rng: Rng) -> Places:
    """Make `n_out` fakes that passed every test, in random order, as cells of the grid."""
    learned = learn(days, settings, rng)
    pool = fill_pool(learned, settings, rng)
    return learned.chosen.cells[pool.place[rng.generator().permutation(len(pool.place))]]


def learn(days: DailyTraces, settings: Plausible, rng: Rng) -> Learned:
    """Draw seeds and alternatives, one day of each person, and learn classes and the aggregate model from the seeds."""
    generator = rng.generator()
    people = days.people
    n_seeds = max(2, round(len(people) * settings.seed_share))
    if len(people) < 2 + settings.k or len(people) - n_seeds < settings.k:
        raise InputError(
            f"as_published needs at least 2 seeds and {settings.k} alternatives; {len(people)} people have a day with "
            f"{settings.min_coverage:.0%} coverage, of whom {max(0, len(people) - n_seeds)} would be alternatives.",
            "relax min_coverage, lower k or seed_share, or bring more people.",
        )
    days, places = most_visited(days, settings.space, settings.places)
    first = np.searchsorted(days.person, people)
    count = np.diff(np.r_[first, days.n_days])
    chosen = first + (generator.random(len(people)) * count).astype(np.int64)
    order = generator.permutation(len(people))
    seeds, alternatives = days.place[chosen[order[:n_seeds]]], days.place[chosen[order[n_seeds:]]]
    profiles, others = (_profiles(part, days.n_places) for part in (seeds, alternatives))
    graph = location_graph(profiles, level=_level(settings))
    return Learned(
        seeds=seeds,
        seed_person=people[order[:n_seeds]],
        alternatives=alternatives,
        profiles=profiles,
        alternative_profiles=others,
        graph=graph,
        classes=_classes(graph, days.n_places, settings.classes),
        aggregate=Aggregate.of(seeds, places, days.n_places, smoothing=settings.smoothing),
        chosen=places,
    )


def with_more_seeds(learned: Learned, more: Places, settings: Plausible) -> Learned:
    """Add a few seeds (over the chosen places), comparing only pairs with somebody new."""
    n_places = learned.profiles.n_places
    profiles = joined(learned.profiles, _profiles(more, n_places))
    graph = learned.graph.merged(location_graph(profiles, level=_level(settings), first=learned.profiles.n_people))
    return replace(
        learned,
        seeds=np.concatenate([learned.seeds, more]),
        seed_person=np.r_[learned.seed_person, np.full(len(more), -1)],
        profiles=profiles,
        graph=graph,
        classes=_classes(graph, n_places, settings.classes),
        aggregate=learned.aggregate.with_more(more),
    )


def fill_pool(learned: Learned, settings: Plausible, rng: Rng) -> Pool:
    """Decode and test until `n_out` fakes passed; refused, with counts by test, where they do not."""
    n_seeds = len(learned.seeds)
    if settings.n_out > n_seeds * settings.most_per_seed:
        raise InputError(
            f"{settings.n_out:,} fakes were asked for, but {n_seeds} seeds give at most {settings.most_per_seed} each, "
            f"{n_seeds * settings.most_per_seed:,} in all.",
            "lower n_out or raise most_per_seed; many fakes of one seed tell its cells by their absence.",
        )
    generator = rng.generator()
    made = np.zeros(n_seeds, dtype=np.int64)
    kept: list[Places] = []
    of_seed: list[Integers] = []
    totals = np.zeros(4)
    attempts = 0
    while made.sum() < settings.n_out:
        if attempts >= MOST_ATTEMPTS * max(settings.n_out, BATCH):
            raise InputError(_why_none(totals, attempts, int(made.sum()), settings), _what_to_relax(totals, settings))
        open_seeds = np.flatnonzero(made < settings.most_per_seed)
        seed = open_seeds[generator.integers(0, len(open_seeds), BATCH)]
        fakes = decode_fakes(
            learned.seeds[seed], learned.classes, np.log(learned.aggregate.steps), learned.aggregate.log_visits(),
            settings.par_c, settings.par_l, settings.par_m, settings.par_v, MERGE_MODES[settings.merge], generator,
        )  # fmt: skip
        passes = tests(fakes, seed, learned, settings)
        good = np.logical_and.reduce(list(passes.values()))
        totals += [part.sum() for part in (*passes.values(), good)]
        attempts += BATCH
        for row in np.flatnonzero(good):
            if made[seed[row]] < settings.most_per_seed and made.sum() < settings.n_out:
                made[seed[row]] += 1
                kept.append(fakes[row])
                of_seed.append(seed[row])
    place = np.array(kept, dtype=np.int32)
    shares = dict(zip((*passes, "all"), (totals / attempts).tolist(), strict=True))
    return Pool(place, learned.aggregate.log_likelihood(place), np.array(of_seed), shares, attempts)


def tests(fakes: Places, seed: Integers, learned: Learned, settings: Plausible) -> dict[str, NDArray[np.bool_]]:
    """Say which fakes pass each of the three tests."""
    profiles = _profiles(fakes, learned.profiles.n_places)
    rows = np.arange(len(fakes))
    if settings.distance == "emd":
        every = np.arange(learned.chosen.n_places)
        metres = learned.chosen.distance(every[:, None], every)
        alike = geographic_emd(profiles, learned.profiles, np.column_stack([rows, seed]), metres)
    else:
        alike = geographic(profiles, learned.profiles)[rows, seed]
    common = np.array([len(np.intersect1d(fake, learned.seeds[s])) for fake, s in zip(fakes, seed, strict=True)])
    to_seed = semantic_visits(learned.profiles, profiles)[seed, rows]
    to_others = semantic_visits(learned.alternative_profiles, profiles)
    deniers = (np.abs(to_others - to_seed[None, :]) <= settings.delta_d).sum(axis=0)
    return {
        "similarity": alike <= settings.delta_s,
        "intersection": common <= settings.delta_i,
        "deniability": deniers >= settings.k,
    }


def _level(settings: Plausible) -> Level:
    """Return what the mapping of places compares."""
    return "moves" if settings.graph == "moves" else "visits"


def _profiles(place: Places, n_places: int) -> Profiles:
    """Return one profile for each row."""
    return profiles_of_rows(place, np.arange(len(place) + 1), n_places, periods=PERIODS)


def _classes(graph: LocationGraph, n_places: int, n_classes: int) -> Integers:
    """Return the usage class of every place, -1 for one no seed visits."""
    classes = np.full(n_places, -1, dtype=np.int64)
    classes[graph.place] = usage_classes(graph, n_classes=n_classes)
    return classes


def _why_none(totals: Floats, attempts: int, made: int, settings: Plausible) -> str:
    shares = dict(zip(("similarity", "intersection", "deniability"), totals / attempts, strict=False))
    each = ", ".join(f"{name} {value:.1%}" for name, value in shares.items())
    return f"only {made:,} of {settings.n_out:,} fakes passed all tests in {attempts:,} attempts; by test: {each}."


def _what_to_relax(totals: Floats, settings: Plausible) -> str:
    hardest = int(np.argmin(totals[:3]))
    return (
        f"raise delta_s (now {settings.delta_s:g}).",
        f"raise delta_i (now {settings.delta_i}), or take fewer classes so that each has more places.",
        f"raise delta_d (now {settings.delta_d:g}), lower k (now {settings.k}), or bring more alternatives.",
    )[hardest]
