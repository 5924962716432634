"""Noise one draw at a time: the laws of the bulk samplers, and a test that is exact at its edges."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numba import njit

from brackets import assert_bracketed, gamma_two_law
from murmurate.attacks.audit import audit
from murmurate.errors import ParameterError
from murmurate.noise import Draws, secure, seeded, within
from murmurate.noise.steps import passes, sines, step_on_plane, step_on_sphere
from murmurate.spaces.sphere import great_circle_m

N = 20_000


def chance(t: float) -> float:
    return math.exp(-t) / 2 if t > 0 else 1 - math.exp(t) / 2


@pytest.mark.parametrize("t", [-6.0, -1.0, 0.0, 0.5, 2.0, 5.0])
def test_a_test_passes_with_the_laplace_tail(t):
    answers = within(np.full(100_000, 300.0 + 50 * t), limit=300.0, scale=50.0, rng=secure())
    p = chance(t)
    assert abs(answers.mean() - p) < 6 * math.sqrt(p * (1 - p) / answers.size)


def test_words_decide_exactly():
    """Both answers keep a probability of e^-20/2, however far the distance; the word below or above that edge decides."""
    edge = math.exp(-20) / 2 * 2.0**64
    for t in (20.0, 1e3, math.inf):
        assert passes(np.uint64(int(edge * 0.999999)), t)
        assert not passes(np.uint64(int(edge * 1.000001)), t)
        assert not passes(np.uint64(int(edge * 0.999999)), -t)
        assert passes(np.uint64(int(edge * 1.000001)), -t)
    assert passes(np.uint64(2**63), 0.0) and not passes(np.uint64(2**63 - 2**12), 0.0)


def test_senseless_tests_are_refused():
    for bad in ({"scale": 0.0, "limit": 1.0}, {"scale": 1.0, "limit": math.nan}):
        with pytest.raises(ParameterError):
            within(np.ones(2), rng=seeded(1), **bad)
    with pytest.raises(ParameterError):
        within(np.array([math.nan]), limit=1.0, scale=1.0, rng=seeded(1))


def answers_at(scale):
    return lambda neighbour, n, rng: within(np.full(n, 100.0 + 100.0 * neighbour), limit=80.0, scale=scale, rng=rng)


def test_the_audit_accepts_the_test_and_catches_one_with_too_little_noise():
    claimed = 1.0  # 100 m apart at scale 100 m
    assert 0.5 < audit(answers_at(100.0), n=100_000, rng=seeded(1)).value <= claimed
    assert audit(answers_at(60.0), n=100_000, rng=seeded(1)).value > claimed


@njit
def sphere_steps(draws, used, place, scale_m, out_lng, out_lat):
    u, v, radius, other = draws
    done = 0
    while done < out_lng.size and used[1] < u.size:
        k = used[1]
        used[1] += 1
        kept, x, y = step_on_sphere(place, scale_m, u[k], v[k], radius[k], other[k])
        if kept:
            out_lng[done], out_lat[done] = x, y
            done += 1
    return done


def many_sphere_steps(n, lng, lat, scale_m, rng):
    draws, out = Draws(rng), []
    sin_lat, cos_lat = sines(np.array([lat]))[:, 0]
    while sum(len(part) for part in out) < n:
        draws.ready()
        found = np.empty((2, len(draws.u)), dtype=np.int64)
        done = sphere_steps(
            (draws.u, draws.v, draws.radius, draws.other), draws.used, (lng, lat, sin_lat, cos_lat), scale_m, *found
        )
        out.append(found[:, :done].T)
    return np.concatenate(out)[:n].T / 1e6


@pytest.mark.parametrize(("lat", "scale_m"), [(60.17, 200.0), (-33.9, 5_000.0), (85.0, 500.0), (0.0, 20_000.0)])
def test_steps_on_the_sphere_have_the_radius_of_laplace_noise(lat, scale_m):
    def sizes(scale):
        lng_found, lat_found = many_sphere_steps(N, 24_940_000, int(lat * 1e6), scale, secure())
        return great_circle_m(lat, 24.94, lat_found, lng_found)

    assert_bracketed(sizes, gamma_two_law(), scale_m)


def test_steps_wrap_around_the_date_line_and_stop_at_the_poles():
    lng, lat = many_sphere_steps(2_000, 180_000_000, 89_999_000, 50_000.0, seeded(2))
    assert lng.min() >= -180 and lng.max() < 180 and np.abs(lat).max() <= 90
    assert great_circle_m(89.999, 180.0, lat, lng).mean() == pytest.approx(100_000, rel=0.1)


def test_steps_on_the_plane_have_the_radius_of_laplace_noise():
    def sizes(scale):
        draws, out = Draws(secure()), []
        while len(out) < N:
            draws.ready()
            out += [step_on_plane(7, -9, scale, *one) for one in zip(draws.u, draws.v, draws.radius, strict=True)]
            draws.used[1] = len(draws.u)
        x, y = np.array(out[:N]).T
        return np.hypot(x - 7, y + 9)

    assert_bracketed(sizes, gamma_two_law(), 2_000.0)


def test_blocks_are_refilled_only_where_they_are_used_up():
    draws = Draws(seeded(3), block=16)
    draws.ready()
    words, directions = draws.words.copy(), draws.u.copy()
    draws.used[0] = len(words)
    draws.ready()
    assert not np.array_equal(draws.words, words)
    assert np.array_equal(draws.u, directions)
    draws.used[1] = len(directions)
    draws.ready()
    assert not np.array_equal(draws.u[: len(directions)], directions[: len(draws.u)])
    assert np.allclose(np.hypot(draws.u, draws.v), 1.0)
