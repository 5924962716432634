"""own-tested: the randomised deniability test (Bindschaedler, Shokri and Gunter 2017), derived anew for add or remove.

A seed is drawn from the people, a day is drawn given the seed, and it leaves only if enough people, counted with noise, could
have been its seed about as well. Half of epsilon makes the private model that days are drawn from; each attempt costs the same
part of the other half. What a seed decides is only the *kind* of the day, kept or replaced at random, so that the probability
of a day given each person is known exactly up to a factor common to all.

The claim for one attempt. Let p_s(y) be the probability of day y given seed s, and let a bucket be the people whose p(y) lies
within a factor gamma of one another. The attempt releases y if a public coin (heads with probability 1 - 1/gamma) allows it and
m + Z >= k, m the size of the seed's bucket and Z discrete Laplace noise of scale 1/eps0. Adding a person changes one count by
one (a factor e^eps0), adds at most gamma/m of the bucket's mass (1 + gamma/t where m >= t), and changes the share of every seed
by n/(n + 1), which is at least 1/(1 + gamma/t) where n >= t/gamma. A bucket below t passes with probability at most
delta = e^(-eps0 (k - t)) / (1 + e^-eps0). A rejection is visible: it changes by at most 1/(n + 1), which the coin's own 1/gamma
covers while n + 1 >= t; below that nothing passes but with probability delta. So (eps0 + ln(1 + gamma/t), delta), each attempt.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from murmurate.core.mechanism import Rng
from murmurate.core.space import Integers
from murmurate.errors import ParameterError
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.patterns import KINDS, Labels, kinds_of, label_days
from murmurate.mechanisms.plausible.statistics import measured
from murmurate.noise import laplace_integers
from murmurate.profiles.days import DailyTraces

if TYPE_CHECKING:
    from murmurate.mechanisms.plausible import Plausible

MODEL_SHARE = 0.5
"""Fraction of epsilon that is spent on the private model that days are drawn from."""

GAMMA = 4.0
"""Largest ratio between the probabilities of a day given two people of one bucket, without unit; set by hand."""

REPLACED = 0.3
"""Chance that the kind of the seed's day is replaced by any kind. A kind kept is then 29 times likelier than another one, more
than gamma squared, so that the two never share a bucket."""

_DRAWS = 4096
"""Days drawn from the model at a time when days of given kinds are sought."""

_MOST_DRAWS = 20
"""Times that many days are drawn before a kind counts as absent from the model, which bounds the time."""


@dataclass(frozen=True)
class Terms:
    """Holds what each attempt costs and how many people it needs."""

    epsilon: float
    delta: float
    epsilon_noise: float
    t: int
    k: int


def terms(epsilon: float, delta: float, attempts: int) -> Terms:
    """Return the least k that keeps `attempts` attempts and the model within (epsilon, delta), by plain addition.

    >>> terms(2.0, 1e-5, 1).k
    27
    """
    each, rare = epsilon * (1 - MODEL_SHARE) / attempts, delta / attempts
    best: Terms | None = None
    for part in np.linspace(0.3, 0.98, 69):
        noise_epsilon = each * float(part)
        t = math.ceil(GAMMA / math.expm1(each - noise_epsilon))
        spare = max(0.0, -math.log(rare * (1 + math.exp(-noise_epsilon))) / noise_epsilon)
        k = t + math.ceil(spare)
        if best is None or k < best.k:
            best = Terms(each, rare, noise_epsilon, t, k)
    if best is None or best.k > 10**9:
        raise ParameterError(f"no test fits {attempts:,} attempts into epsilon {epsilon:g} and delta {delta:g}.")
    return best


def release_tested(days: DailyTraces, settings: Plausible, rng: Rng) -> NDArray[np.int32]:
    """Return the days of `n_out` attempts that passed; there may be none."""
    needed = terms(settings.epsilon, settings.delta, settings.n_out)
    model_epsilon = settings.epsilon * MODEL_SHARE
    noisy = measured(days, settings.space, epsilon=model_epsilon, rng=rng)
    model = DayModel.fit(noisy, settings.space, steps=days.steps, time_zone="UTC", rng=rng)
    own_kind = kinds_of(label_days(days.nth_days(0).place)[0])
    count = np.bincount(own_kind, minlength=KINDS)
    people, n = len(own_kind), settings.n_out
    if people == 0:
        return np.zeros((0, days.steps), dtype=np.int32)
    kept = own_kind[rng.integers(0, people, n)]
    made_kind = np.where(rng.uniforms(n) < REPLACED, rng.integers(0, KINDS, n), kept)
    # two values of p(y), a factor above gamma apart: the people of the day's kind, and all the others
    bucket = np.where(made_kind == kept, count[made_kind], people - count[made_kind])
    passed = laplace_integers(bucket.astype(np.int64), scale=1 / needed.epsilon_noise, rng=rng) >= needed.k
    passed &= rng.uniforms(n) >= 1 / GAMMA
    generator = rng.generator()
    # attempts that failed draw nothing: they must not use up what those that passed may get
    label, n_labels, drawn = _of_kinds(model, made_kind[passed], generator)
    if not drawn.any():
        return np.zeros((0, days.steps), dtype=np.int32)
    return model.map.place(label[drawn], n_labels[drawn], generator)


def _of_kinds(model: DayModel, wanted: Integers, generator: np.random.Generator) -> tuple[Labels, Integers, NDArray[np.bool_]]:
    """Draw a pattern of each wanted kind from the model; False where the model hardly has the kind, whoever the seed is."""
    label = np.zeros((len(wanted), model.rhythm.steps), dtype=np.int16)
    n_labels = np.ones(len(wanted), dtype=np.int64)
    found = np.zeros(len(wanted), dtype=bool)
    for _ in range(_MOST_DRAWS):
        if found.all():
            break
        some, sizes = model.rhythm.draw(_DRAWS, generator)
        kind = kinds_of(some)
        for k in np.unique(wanted[~found]):
            missing, there = np.flatnonzero(~found & (wanted == k)), np.flatnonzero(kind == k)
            size = min(len(missing), len(there))
            label[missing[:size]], n_labels[missing[:size]] = some[there[:size]], sizes[there[:size]]
            found[missing[:size]] = True
    return label, n_labels, found
