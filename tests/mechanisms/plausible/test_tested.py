"""own-tested: the terms of the randomised test, its cost, and an audit of one attempt."""

from __future__ import annotations

import math

import numpy as np
import pytest

from murmurate.attacks.audit import audit
from murmurate.core.guarantee import DP
from murmurate.errors import ParameterError
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.patterns import KINDS, kinds_of, label_days
from murmurate.mechanisms.plausible.tested import GAMMA, MODEL_SHARE, REPLACED, release_tested, terms
from murmurate.noise import laplace_integers, seeded
from plausible_days import GRID, made_days, trips_of


def settings(**changes):
    return Plausible(**{"space": GRID, "variant": "own-tested", "n_out": 2, "epsilon": 8.0, "delta": 1e-3, **changes})


@pytest.mark.parametrize(("epsilon", "delta", "attempts"), [(1.0, 1e-5, 1), (1.0, 1e-5, 30), (8.0, 1e-3, 5), (0.1, 1e-9, 100)])
def test_terms_keep_within_the_budget(epsilon, delta, attempts):
    asked = terms(epsilon, delta, attempts)
    cost = asked.epsilon_noise + math.log1p(GAMMA / asked.t)
    assert attempts * cost <= epsilon * (1 - MODEL_SHARE) * (1 + 1e-12)
    below = math.exp(-asked.epsilon_noise * (asked.k - asked.t)) / (1 + math.exp(-asked.epsilon_noise))
    assert attempts * below <= delta * (1 + 1e-12)
    assert asked.k > asked.t > 0


def test_more_attempts_need_more_people():
    needed = [terms(1.0, 1e-5, attempts).k for attempts in (1, 10, 100)]
    assert needed == sorted(needed)
    assert needed[1] > 5 * needed[0]


def test_two_probabilities_never_share_a_bucket():
    assert (1 - REPLACED + REPLACED / KINDS) / (REPLACED / KINDS) > GAMMA**2


def test_the_promise():
    guarantee = settings(n_out=7).guarantee()
    assert isinstance(guarantee, DP)
    assert (guarantee.epsilon, guarantee.delta, guarantee.unit.name) == (8.0, 1e-3, "user")
    assert str(terms(8.0, 1e-3, 7).k) in " ".join(guarantee.assumptions)
    assert "7 attempts" in " ".join(settings(n_out=7).statement())
    with pytest.raises(ParameterError, match="delta"):
        settings(delta=0.0)


def test_with_enough_people_days_pass_and_with_few_none():
    many = trips_of(made_days(600, 1))
    out = settings(n_out=20, epsilon=40.0).apply(many, seeded(1))
    assert 5 <= out.n_trips <= 20
    few = trips_of(made_days(20, 1))
    assert settings(n_out=20, epsilon=1.0).apply(few, seeded(1)).n_trips == 0


def test_nobody_gives_nothing():
    days = made_days(1, 1).take(np.zeros(1, dtype=bool))
    assert release_tested(days, settings(), seeded(1)).shape == (0, 72)


def test_kinds_are_by_moves_and_time_at_the_main_place():
    still = np.zeros((1, 72), dtype=np.int32)
    busy = np.arange(72, dtype=np.int32)[None] % 9
    kinds = kinds_of(label_days(np.concatenate([still, busy]))[0])
    assert kinds[0] == 2
    assert kinds[1] == KINDS - 3


def attempt(counts, asked, *, noise_scale):
    """One attempt on people of these kinds: the kind that leaves, or -1; the model's part is common and left out."""

    def outputs(neighbour, n, rng):
        count = counts[neighbour]
        people = int(count.sum())
        kept = np.repeat(np.arange(KINDS), count)[rng.integers(0, people, n)]
        made = np.where(rng.uniforms(n) < REPLACED, rng.integers(0, KINDS, n), kept)
        bucket = np.where(made == kept, count[made], people - count[made])
        passed = laplace_integers(bucket, scale=noise_scale / asked.epsilon_noise, rng=rng) >= asked.k
        passed &= rng.uniforms(n) >= 1 / GAMMA
        return np.where(passed, made, -1)

    return outputs


def test_audit_of_an_attempt_and_of_a_broken_one():
    asked = terms(6.0, 1e-3, 1)
    rare = asked.k - 1
    counts = [np.array([25, rare, *[0] * (KINDS - 2)]), np.array([25, rare + 1, *[0] * (KINDS - 2)])]
    found = audit(attempt(counts, asked, noise_scale=1.0), n=100_000, rng=seeded(1), delta=asked.delta)
    assert found.value <= asked.epsilon
    # without noise, whether the rare kind leaves tells whether one more person is there
    broken = audit(attempt(counts, asked, noise_scale=0.02), n=100_000, rng=seeded(1), delta=asked.delta)
    assert broken.value > found.value
    assert broken.value > 1.5
