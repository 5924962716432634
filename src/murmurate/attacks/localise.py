"""Find the true place among fakes, when people send both with every query.

The observer sees unordered sets of places. The naive one decodes them with an aggregate mobility model (Shokri et al. 2011);
the linked ones first join the sets into whole traces and then judge these. Every figure stands beside chance.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.attacks.localise_classifier import features, fit_choice
from murmurate.attacks.localise_hmm import Places, decode_marginals, decode_viterbi
from murmurate.attacks.localise_rhythm import library_distance, rhythm_ratio
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.plausible.patterns import Labels
from murmurate.profiles.aggregate import Aggregate

KNOWLEDGE: Mapping[str, str] = {
    "hmm_marginals": "knows the aggregate mobility of real people; takes the likeliest place at each query",
    "hmm_viterbi": "knows the aggregate mobility of real people; takes the likeliest path",
    "hmm_own_profile": "knows how this very person moved on another day; takes the likeliest place at each query",
    "most_moves": "links the sets into traces, takes the one that moves most",
    "fewest_moves": "links the sets into traces, takes the one that moves least",
    "least_likely": "links the sets into traces, takes the least likely one under the aggregate",
    "most_likely": "links the sets into traces, takes the likeliest one under the aggregate",
    "likelihood_ratio": "links; knows the aggregates of real people and of fakes, takes the trace that tells them apart best",
    "rhythm_ratio": "links; learned when real people and when fakes leave and stay, takes the trace that tells them apart best",
    "known_library": "links; holds the library that rhythms of fakes came from, takes the trace least like any of its days",
    "classifier": "links; trained on other people with their fakes to tell real traces from fakes",
    "another_day": "links; knows another day of this person, takes the trace most like it",
}
"""What each observer knows and does."""

CLAIMED = tuple(name for name in KNOWLEDGE if name not in ("another_day", "hmm_own_profile"))
"""Observers against whom a figure is claimed; nothing is claimed against one who knows another day of the person."""

_OWN_WEIGHT = 0.8
"""Weight of the moves of a person's own other day; the rest is everybody's. Set by hand."""

RELINKED = ("most_moves", "least_likely", "most_likely")
"""Simple observers of linked traces, for whom figures are quoted together."""


@dataclass(frozen=True, eq=False)
class Scene:
    """Hold people who hide among fakes: what is true, what is sent, and when."""

    true: Places
    """[person, query]"""
    sent: Places
    """[person, query, 1 + fakes], in random order."""
    query: Integers
    """Steps of the day at which a place is sent."""

    @property
    def n_fakes(self) -> int:
        return self.sent.shape[2] - 1


@dataclass(frozen=True, eq=False)
class Outcome:
    """Hold how one observer fared with every person."""

    name: str
    wrong: Floats
    """[person]: share of queries at which the place taken for true was not."""
    error_m: Floats
    """[person]: mean distance between the place taken and the true one."""
    blind_m: float
    """Mean distance of a blind guess among what was sent."""


def hide(true: Places, fakes: Places, *, every: int = 2, generator: np.random.Generator, choose: Floats | None = None) -> Scene:
    """Lay fake traces [person, fake, step] beside the true ones; a query every `every` steps (2 = 40 minutes).

    `choose` [person, step] between 0 and 1 makes queries sporadic: a step is queried where it is below 1 / every.
    """
    whole("every", every)
    people, steps = true.shape
    if fakes.ndim != 3 or fakes.shape[0] != people or fakes.shape[2] != steps:
        raise InputError(f"fakes must be [person, fake, step] like the {people} x {steps} true traces; got {fakes.shape}.")
    query = np.arange(0, steps, every)
    if choose is not None:
        query = np.flatnonzero(choose < 1 / every)
        if not len(query):
            raise ParameterError("no step is queried; choose other steps or a smaller `every`.")
    sent = np.concatenate([true[:, None, :], fakes], axis=1)[:, :, query].transpose(0, 2, 1)
    order = generator.random(sent.shape).argsort(axis=2)
    return Scene(np.ascontiguousarray(true[:, query]), np.ascontiguousarray(np.take_along_axis(sent, order, axis=2)), query)


def localise(
    scene: Scene,
    aggregate: Aggregate,
    *,
    fakes_aggregate: Aggregate | None = None,
    rhythms: tuple[Places, Places] | None = None,
    library: Labels | None = None,
    other_day: Places | None = None,
    seed: int = 0,
) -> list[Outcome]:
    """Run every observer this knowledge allows; the classifier is trained on one half of the people and judged on the other.

    `rhythms` are days [row, step] of other real people and of fakes, for observers who learn from them; `library` the public
    day patterns [row, step] that fakes were made from.
    """
    gap = int(np.median(np.diff(scene.query))) if len(scene.query) > 1 else 1
    log_step, log_visit = aggregate.log_steps(gap), aggregate.log_visits()
    guesses: dict[str, Places] = {
        "hmm_marginals": decode_marginals(scene.sent, log_step, log_visit),
        "hmm_viterbi": decode_viterbi(scene.sent, log_step, log_visit),
    }
    if other_day is not None:
        guesses["hmm_own_profile"] = _with_own_profile(scene, log_step, log_visit, other_day, gap)
    linked = link_sets(scene.sent, log_step)
    against = fakes_aggregate.log_steps(gap) if fakes_aggregate is not None else None
    known_day = None if other_day is None else np.ascontiguousarray(other_day[:, scene.query])
    picks = _simple_choices(linked, log_step, log_visit, against=against, other_day=known_day)
    ratio = None
    if rhythms is not None:
        real, fake = (np.ascontiguousarray(part[:, scene.query]) for part in rhythms)
        ratio = rhythm_ratio(linked, real, fake)
        picks["rhythm_ratio"] = ratio.argmax(axis=1)
    seen = features(linked, aggregate, log_step, against, scene.query, rhythm=ratio)
    if library is not None:
        strange = library_distance(linked, np.ascontiguousarray(library[:, scene.query]))
        picks["known_library"] = strange.argmax(axis=1)
        seen = np.concatenate([seen, strange[:, :, None]], axis=2)
    picks["classifier"] = _trained_choices(scene.true, linked, seen, seed=seed)
    people = np.arange(len(scene.true))
    for name, chosen in picks.items():
        guesses[name] = linked[people, chosen]
    return [_outcome(name, guesses[name], scene, aggregate) for name in KNOWLEDGE if name in guesses]


def scores(outcomes: list[Outcome], n_fakes: int) -> list[Score]:
    """Return the mean and median probability of error of each observer, beside the error of a blind guess."""
    chance = n_fakes / (n_fakes + 1)
    found: list[Score] = []
    for outcome in outcomes:
        note = KNOWLEDGE[outcome.name] + ("" if outcome.name in CLAIMED else "; nothing is claimed against this observer")
        spread = 1.96 * float(outcome.wrong.std()) / np.sqrt(max(1, len(outcome.wrong)))
        mean = float(outcome.wrong.mean())
        name, distance_m = f"localise.{outcome.name}", float(outcome.error_m.mean())
        first = Score(
            name=name,
            value=mean,
            low=max(0.0, mean - spread),
            high=min(1.0, mean + spread),
            better="higher",
            chance=chance,
            family="localise",
            n=len(outcome.wrong),
            note=note,
        )
        rest = replace(first, low=None, high=None)
        found += [
            first,
            replace(rest, name=f"{name}.median", value=float(np.median(outcome.wrong))),
            replace(rest, name=f"{name}.distance", value=distance_m, chance=outcome.blind_m, unit="m"),
        ]
    return found


def overhead(scene: Scene, classes: Integers | None = None) -> tuple[float, float | None]:
    """Return bandwidth (distinct places a query) and profile pollution (distinct usage classes a query)."""
    bandwidth = float(_distinct(scene.sent).mean())
    return bandwidth, None if classes is None else float(_distinct(classes[scene.sent]).mean())


def _distinct(values: NDArray[np.integer]) -> Integers:
    ordered = np.sort(values, axis=-1)
    return 1 + (ordered[..., 1:] != ordered[..., :-1]).sum(axis=-1)


def _with_own_profile(scene: Scene, log_step: Floats, log_visit: Floats, other_day: Places, gap: int) -> Places:
    """Decode each person with the moves of their own other day, mixed with the aggregate's."""
    guess = np.empty_like(scene.true)
    log_rest = log_step + np.log(1 - _OWN_WEIGHT)
    own_step = log_step.copy()
    for person, day in enumerate(other_day):
        places, at = np.unique(day, return_inverse=True)
        moves = np.zeros((len(places), len(places)))
        np.add.at(moves, (at[:-gap], at[gap:]), 1.0)
        rows = moves.sum(axis=1) > 0
        known = places[rows]
        shares = np.exp(log_rest[known])
        shares[:, places] += _OWN_WEIGHT * moves[rows] / moves[rows].sum(axis=1, keepdims=True)
        own_step[known] = np.log(shares)
        visits = (1 - _OWN_WEIGHT) * np.exp(log_visit)
        visits[places] += _OWN_WEIGHT * np.bincount(at) / len(day)
        guess[person] = decode_marginals(scene.sent[person : person + 1], own_step, np.log(visits))[0]
        own_step[known] = log_step[known]
    return guess


def _outcome(name: str, guess: Places, scene: Scene, aggregate: Aggregate) -> Outcome:
    wrong = (guess != scene.true).mean(axis=1)
    distance = aggregate.distance_m(guess.ravel(), scene.true.ravel()).reshape(guess.shape).mean(axis=1)
    sent = aggregate.distance_m(scene.sent.ravel(), np.repeat(scene.true.ravel(), scene.sent.shape[2]))
    return Outcome(name, wrong, distance, float(sent.mean()))


def link_sets(sent: Places, log_step: Floats) -> Places:
    """Return [person, trace, query]: consecutive sets joined by the assignment of the highest likelihood."""
    from scipy.optimize import linear_sum_assignment

    people, queries, size = sent.shape
    linked = np.empty((people, size, queries), dtype=np.int32)
    for person in range(people):
        linked[person, :, 0] = sent[person, 0]
        for query in range(1, queries):
            now, following = linked[person, :, query - 1], sent[person, query]
            _, to = linear_sum_assignment(log_step[now[:, None], following[None, :]], maximize=True)
            linked[person, :, query] = following[to]
    return linked


def _simple_choices(
    linked: Places,
    log_step: Floats,
    log_visit: Floats,
    *,
    against: Floats | None = None,
    other_day: Places | None = None,
) -> dict[str, Integers]:
    """Return the trace each simple observer picks, for every person."""
    moves = (linked[:, :, 1:] != linked[:, :, :-1]).sum(axis=2)
    likely = log_visit[linked[:, :, 0]] + log_step[linked[:, :, :-1], linked[:, :, 1:]].sum(axis=2)
    picks = {
        "most_moves": moves.argmax(axis=1),
        "fewest_moves": moves.argmin(axis=1),
        "least_likely": likely.argmin(axis=1),
        "most_likely": likely.argmax(axis=1),
    }
    if against is not None:
        ratio = (log_step - against)[linked[:, :, :-1], linked[:, :, 1:]].sum(axis=2)
        picks["likelihood_ratio"] = ratio.argmax(axis=1)
    if other_day is not None:
        picks["another_day"] = _alike(linked, other_day).argmax(axis=1)
    return picks


@njit(cache=True)
def _alike(linked: Places, other_day: Places) -> Floats:
    """Count queries at which a trace is where the other day was, plus half of those at any place of the other day."""
    people, size, queries = linked.shape
    score = np.zeros((people, size))
    for person in range(people):
        for trace in range(size):
            for query in range(queries):
                place = linked[person, trace, query]
                if place == other_day[person, query]:
                    score[person, trace] += 1.0
                for again in range(queries):
                    if other_day[person, again] == place:
                        score[person, trace] += 0.5
                        break
    return score


def _trained_choices(true: Places, linked: Places, seen: Floats, *, seed: int) -> Integers:
    """Return the trace that a classifier trained on the other half of the people takes for real, by its features `seen`."""
    truly = (linked == true[:, None, :]).mean(axis=2).argmax(axis=1)
    half = np.random.default_rng(seed).permutation(len(linked)) % 2
    picked = np.zeros(len(linked), dtype=np.int64)
    for side in (0, 1):
        train, test = half != side, half == side
        if train.any() and test.any():
            picked[test] = fit_choice(seen[train], truly[train])(seen[test]).argmax(axis=1)
    return picked
