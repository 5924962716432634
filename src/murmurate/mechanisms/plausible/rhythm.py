"""The rhythm of days: a Markov chain over roles from noisy statistics, reweighted so that whole days have measured traits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.asking.table import Answers
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.mechanisms.plausible.patterns import (
    AGES,
    BLOCKS,
    OTHER,
    ROLES,
    TRAIT_OFFSETS,
    TRAITS,
    Labels,
    age_class,
    label_days,
    role,
    traits_of_days,
)
from murmurate.mechanisms.plausible.statistics import MOVES_READ, PLACES_READ, TO_ROLES, laplace_scale

PRIORS: Mapping[str, tuple[float, ...]] = {
    "slots": (.135, .13, .085, .08, .10, .125, .025, .025, .055, .06, .035, .02, .006, .012, .026, .027, .032, .022),
    "leaving_by_block": (
        .004, .03, .045, .025, .03, .02, .003, .01, .025, .03, .04, .015, .01, .025, .055, .055, .08, .048,
    ),
    "slots_by_age": (.025, .045, .585, .02, .035, .165, .055, .03, .04),
    "leaving_by_age": (.006, .01, .138, .012, .018, .093, .17, .06, .043),
    "heading": (1e-6, .05, .085, .01, .045, 1e-6, .065, .01, .1, .07, .09, .025),
}  # fmt: skip
"""What a person is expected to add before anything is measured: a day mostly at one place, a second one at noon, short stops.

Chosen by hand from common knowledge of days, not from any private data; measured values replace them as far as noise allows.
"""

PRIOR_SPREAD = 0.8
"""How far, relatively, a population may lie from the priors: the standard deviation that shrinking assumes."""

MOVES_PRIOR, PLACES_PRIOR = 5.0, 4.2
"""Moves and different places of a day before anything is measured; set by hand."""

LEVEL_SPREAD = 0.25
"""`PRIOR_SPREAD` of these two, of which less is unknown."""

LEAST_HAZARD, MOST_HAZARD = 1e-4, 0.95
"""Least and largest probability of leaving a place after a step, so that every day can be drawn and none is all moves."""

LEVEL_ROUNDS = 4
"""Times departures and new places are corrected until days have the measured means; set by hand."""

PRIOR_DAYS = 15.0
"""How many observed days the chain's own traits count for against the measured ones."""

CANDIDATES = 4096
"""Days drawn from the chain at a time when sampling."""

TRIAL_ROUNDS = 20
"""Rounds of candidates after which a model that keeps hardly any of them is refused."""

LEAST_KEPT = 1e-4
"""Least share of candidates that a sound model keeps; the ceiling is the quantile `STEEPEST_TILT`, so a fit keeps 0.1 %."""

FITTED_ON = 6000
"""Days drawn from the chain to fit the tilt."""

NEWTON_STEPS = 30
"""Most steps of Newton's method when the tilt is fitted; it usually needs fewer."""

HALVINGS = 12
"""How often a step of Newton's method is halved before the tilt counts as fitted. Set by hand: 1 / 4096 of a step."""

MOST_CHANGE = 2.0
"""Largest factor by which one round corrects departures, so that a poor estimate of one round cannot run away."""

STEEPEST_TILT = 0.999
"""Candidates with a weight beyond this quantile count as if they had it, which bounds the time sampling takes."""


@dataclass(frozen=True, eq=False)
class Rhythm:
    """Everything a day's pattern is drawn from; a function of noisy statistics and public priors only."""

    steps: int
    start: Floats
    """[role] at the first step."""
    hazard: Floats
    """[role, age class, block] of leaving after a step."""
    heading: Floats
    """[role, where to]."""
    tilt: Floats
    """Log weight of each trait of a day."""
    ceiling: float
    """Largest log weight that is distinguished; larger ones count as if they were equal to it."""

    def draw(self, n: int, generator: np.random.Generator) -> tuple[Labels, Integers]:
        """Draw `n` day patterns: labels by time spent, and how many labels each has."""
        parts: list[tuple[Labels, Integers]] = []
        found = 0
        while found < n:
            label, n_labels, weight = self.candidates(CANDIDATES, generator)
            keep = np.log(generator.random(CANDIDATES)) < weight - self.ceiling
            parts.append((label[keep], n_labels[keep]))
            found += int(keep.sum())
            if len(parts) >= TRIAL_ROUNDS and found < LEAST_KEPT * CANDIDATES * len(parts):
                raise InputError("hardly any day drawn from this model is likely under its own weights: it is damaged.")
        return np.concatenate([part[0] for part in parts])[:n], np.concatenate([part[1] for part in parts])[:n]

    def candidates(self, n: int, generator: np.random.Generator) -> tuple[Labels, Integers, Floats]:
        """Draw `n` days of the chain before tilting, with their log weights."""
        # labels are given anew, by the time really spent: a drawn day may differ from what its roles were meant for
        label, _, n_labels = label_days(_walk(n, self.steps, self.start, self.hazard, self.heading, generator))
        return label, n_labels, self.tilt[traits_of_days(label, n_labels)].sum(axis=1)


def people_counted(noisy: Answers) -> float:
    """Estimate how many people there are from the statistics to which each adds one; at least one."""
    mains = noisy["regions"].noisy[: len(noisy["regions"].noisy) // 2]
    estimates = [2 * mains.sum()]
    precisions = [1 / (4 * len(mains) * laplace_scale(noisy["regions"]) ** 2)]
    for name in ("headcount", "slots", "slots_by_age", "traits", "kinds"):
        if name in noisy:
            values = noisy[name].noisy
            estimates.append(values.sum())
            precisions.append(1 / (len(values) * laplace_scale(noisy[name]) ** 2))
    return max(1.0, float(np.average(estimates, weights=precisions)))


def shrunk(noisy: Floats, prior: Floats, *, scale: float, people: float, spread: float = PRIOR_SPREAD) -> Floats:
    """Shrink noisy sums towards what the prior expects, the more so the wider the noise; never below 5 % of it."""
    expected = prior * people
    variance = (spread * expected) ** 2
    weight = variance / (variance + 2 * scale**2)
    return np.maximum(expected + weight * (noisy - expected), 0.05 * expected)


def fit_rhythm(noisy: Answers, *, steps: int, generator: np.random.Generator) -> Rhythm:
    """Estimate the chain from noisy statistics, then the tilt that brings its days to the measured traits."""
    people = people_counted(noisy)
    sums = {
        name: shrunk(noisy[name].noisy, np.array(prior), scale=laplace_scale(noisy[name]), people=people)
        for name, prior in PRIORS.items()
    }
    leaving, slots = sums["leaving_by_block"].reshape(ROLES, BLOCKS), sums["slots"].reshape(ROLES, BLOCKS)
    by_age, slots_by_age = sums["leaving_by_age"].reshape(ROLES, AGES), sums["slots_by_age"].reshape(ROLES, AGES)
    per_step = steps / MOVES_READ  # moves count in tenths of a day, slots in steps of one
    block_rate = leaving / slots / per_step
    age_rate = by_age / slots_by_age / per_step
    overall = leaving.sum(axis=1) / slots.sum(axis=1) / per_step
    hazard = age_rate[:, :, None] * block_rate[:, None, :] / overall[:, None, None]
    heading = sums["heading"].reshape(ROLES, TO_ROLES)
    chain = Rhythm(
        steps=steps,
        start=slots[:, 0] / slots[:, 0].sum(),
        hazard=np.clip(hazard, LEAST_HAZARD, MOST_HAZARD),
        heading=heading / heading.sum(axis=1, keepdims=True),
        tilt=np.zeros(TRAIT_OFFSETS[-1]),
        ceiling=0.0,
    )
    moves = _level(noisy, "moves", MOVES_PRIOR, MOVES_READ, people=people)
    places = _level(noisy, "places", PLACES_PRIOR, PLACES_READ, people=people)
    for _ in range(LEVEL_ROUNDS):
        tilted, made_moves, made_places = _tilted(chain, noisy, people=people, generator=generator)
        chain = replace(chain, tilt=tilted.tilt)  # the next round begins where this one ended
        # more or fewer departures, and more or fewer of them to places not yet seen that day
        factor = np.clip(moves / max(made_moves, 1e-9), 1 / MOST_CHANGE, MOST_CHANGE)
        chain = replace(chain, hazard=np.clip(chain.hazard * factor, LEAST_HAZARD, MOST_HAZARD))
        new = chain.heading.copy()
        made_new = max((made_places - 1) / max(made_moves, 1e-9), 1e-9)
        new[:, OTHER] *= np.clip(((places - 1) / moves) / made_new, 1 / MOST_CHANGE, MOST_CHANGE)
        chain = replace(chain, heading=new / new.sum(axis=1, keepdims=True))
    return tilted


def _level(noisy: Answers, name: str, prior: float, read: int, *, people: float) -> float:
    """Estimate the mean number of moves or places of a day."""
    scale = laplace_scale(noisy[name])
    total = shrunk(noisy[name].noisy, np.array([prior / read]), scale=scale, people=people, spread=LEVEL_SPREAD)
    return max(1.2, float(total[0]) * read / people)


def _tilted(chain: Rhythm, noisy: Answers, *, people: float, generator: np.random.Generator) -> tuple[Rhythm, float, float]:
    """Fit the tilt by maximum entropy, traits weighed by their noise; return it with the mean moves and places of its days."""
    label, n_labels, _ = chain.candidates(FITTED_ON, generator)
    traits = traits_of_days(label, n_labels)
    size = int(TRAIT_OFFSETS[-1])
    wanted = noisy["traits"].noisy * len(TRAITS) / people
    variance = PRIOR_DAYS * 2 * (laplace_scale(noisy["traits"]) * len(TRAITS) / people) ** 2 + 1e-4
    tilt = chain.tilt

    def loss(tilt: Floats) -> float:
        log_weight = tilt[traits].sum(axis=1)
        return float(np.logaddexp.reduce(log_weight) - wanted @ tilt + variance / 2 * (tilt @ tilt))

    for _ in range(NEWTON_STEPS):
        log_weight = tilt[traits].sum(axis=1)
        weight = np.exp(log_weight - log_weight.max())
        mean, together = _moments(traits, weight / weight.sum(), size)
        curvature = together - np.outer(mean, mean)
        step = np.linalg.solve(curvature + (variance + 1e-6) * np.eye(size), mean - wanted + variance * tilt)
        if np.abs(step).max() < 1e-3:
            break
        # a full step may overshoot for ever where hardly any candidate has a wanted trait; the loss is convex, so halves help
        before = loss(tilt)
        length = next((0.5**k for k in range(HALVINGS) if loss(tilt - 0.5**k * step) < before), 0.0)
        if not length:
            break
        tilt = tilt - length * step
    log_weight = tilt[traits].sum(axis=1)
    ceiling = float(np.quantile(log_weight, STEEPEST_TILT))
    weight = np.exp(np.minimum(log_weight, ceiling) - ceiling)
    moves = (label[:, 1:] != label[:, :-1]).sum(axis=1)
    means = np.average(moves, weights=weight), np.average(n_labels, weights=weight)
    return replace(chain, tilt=tilt, ceiling=ceiling), float(means[0]), float(means[1])


@njit(cache=True)
def _moments(traits: Integers, weight: Floats, size: int) -> tuple[Floats, Floats]:
    """Return how often each trait, and each two of them together, occur; a day has one bin of each histogram."""
    mean, together = np.zeros(size), np.zeros((size, size))
    for row in range(len(traits)):
        for one in traits[row]:
            mean[one] += weight[row]
            for two in traits[row]:
                together[one, two] += weight[row]
    return mean, together


@njit(cache=True)
def _pick(shares: Floats, u: float) -> int:
    """Return the entry of a distribution that a uniform number falls into."""
    total = 0.0
    for k in range(len(shares)):
        total += shares[k]
        if u < total:
            return k
    return len(shares) - 1


@njit(cache=True)
def _walk(  # noqa: PLR0917
    n: int, steps: int, start: Floats, hazard: Floats, heading: Floats, generator: np.random.Generator
) -> NDArray[np.int32]:
    """Draw [day, step] labels of the chain."""
    days = np.empty((n, steps), dtype=np.int32)
    for row in range(n):
        label = _pick(start, generator.random())
        following = 3 if label == OTHER else 2  # the next label nobody has been to
        age = 0
        for step in range(steps):
            age += 1
            days[row, step] = label
            now = role(label)
            if generator.random() >= hazard[now, age_class(age), step * BLOCKS // steps]:
                continue
            to = _pick(heading[now], generator.random())
            before = label
            if to < OTHER:
                label = to
            elif to == OTHER or following == 2 or (following == 3 and now == OTHER):
                label = following
                following += 1
            else:
                while label == before:
                    label = 2 + int(generator.random() * (following - 2))
            if label != before:
                age = 0
    return days
