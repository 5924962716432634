"""Integer noise: exactly the right law, from secure and from seeded streams, and the law of OpenDP's samplers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from brackets import assert_bracketed, discrete_gaussian_law, discrete_laplace_law
from murmurate.errors import ParameterError
from murmurate.noise import gaussian_integers, laplace_integers, secure, seeded
from murmurate.noise.discrete import SMOOTH_SCALE, _accepted, _finished, _is_below, discrete_gaussian

SAMPLERS = {
    "laplace": (laplace_integers, discrete_laplace_law()),
    "gaussian": (discrete_gaussian, discrete_gaussian_law()),
}


def zeros(n: int):
    return np.zeros(n, dtype=np.int64)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("scale", [0.6, 1.0, 12.34, 5000.0])
def test_seeded_noise_is_bracketed(name, scale):
    add, law = SAMPLERS[name]
    rng = seeded(1)
    assert_bracketed(lambda wanted: np.abs(add(zeros(40_000), scale=wanted, rng=rng)), law, scale)


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("scale", [0.8, 12.34])
def test_secure_noise_is_bracketed(name, scale):
    add, law = SAMPLERS[name]
    rng = secure()
    assert_bracketed(lambda wanted: np.abs(add(zeros(6_000), scale=wanted, rng=rng)), law, scale)


@pytest.mark.parametrize(
    ("name", "rng", "n"), [(n, r, s) for n in SAMPLERS for r, s in ((seeded(2), 200_000), (secure(), 200_000))]
)
def test_each_value_has_its_probability(name, rng, n):
    scale = 2.7
    z = np.arange(-12, 13)
    weight = np.exp(-np.abs(z) / scale) if name == "laplace" else np.exp(-0.5 * (z / scale) ** 2)
    wide = np.arange(-200, 201)
    total = (np.exp(-np.abs(wide) / scale) if name == "laplace" else np.exp(-0.5 * (wide / scale) ** 2)).sum()
    draws = SAMPLERS[name][0](zeros(n), scale=scale, rng=rng)
    for value, expected in zip(z, weight / total, strict=True):
        assert abs((draws == value).mean() - expected) < 6 * np.sqrt(expected / n) + 1 / n


@pytest.mark.parametrize("scale", [0.3, 1.0, 21.3, 5000.7])
@pytest.mark.parametrize("digits", [1, 3, 64])
def test_proposals_are_kept_with_their_probability_however_many_digits_are_compared_at_once(scale, digits):
    """With few digits most words agree with them, so that the exact comparison in Python decides."""
    n, t, rng = 4_000 if digits < 64 else 40_000, int(scale) + 1, seeded(5)
    for size in {0, 1, t, int(2.2 * scale) + 2}:
        kept = _accepted(np.full(n, size), scale, rng, digits).mean()
        expected = float(np.exp(-((size - scale * scale / t) ** 2) / (2 * scale * scale)))
        assert abs(kept - expected) < 6 * np.sqrt(expected * (1 - expected) / n) + 2 / n


def test_coins_whose_digits_agree_are_finished_with_the_rest_of_their_digits():
    """Given that a uniform number begins with the digits 01 of 3/8 = .011, it lies below with probability a half."""
    rng, n = seeded(6), 20_000
    assert abs(np.mean([_is_below(3, 8, rng) for _ in range(n)]) - 3 / 8) < 6 / np.sqrt(4 * n)
    assert not any(_is_below(0, 8, rng) for _ in range(100))
    # below: goes on to the second turn, in which exp's series 1 - x + x^2/2 - ... remains; not below: kept at once
    rest = (1 - np.exp(-3 / 8)) / (3 / 8)
    expected = 1 / 2 + (1 - rest) / 2
    assert abs(np.mean([_finished(1, 3, 8, 2, rng) for _ in range(n)]) - expected) < 6 / np.sqrt(4 * n)


@pytest.mark.parametrize(("name", "make"), [("laplace", "make_laplace"), ("gaussian", "make_gaussian")])
def test_draws_cannot_be_told_from_those_of_opendp(name, make):
    import opendp.prelude as dp

    dp.enable_features("contrib")
    metric = dp.l1_distance(T="i64") if name == "laplace" else dp.l2_distance(T="f64")
    n, scale = 20_000, 3.7
    its = np.asarray(getattr(dp.m, make)(dp.vector_domain(dp.atom_domain(T="i64")), metric, scale=scale)(zeros(n)))
    ours = SAMPLERS[name][0](zeros(n), scale=scale, rng=secure())
    edges = [-np.inf, *np.arange(-8, 9) + 0.5, np.inf]
    table = np.stack([np.histogram(draws, edges)[0] for draws in (its, ours)])
    assert stats.chi2_contingency(table).pvalue > 1e-9


@pytest.mark.parametrize("name", SAMPLERS)
def test_noise_is_added_to_the_values_and_they_stay(name):
    values = np.array([-(2**40), 0, 7, 2**40])
    kept = values.copy()
    for rng in (seeded(1), secure()):
        noisy = SAMPLERS[name][0](values, scale=3.0, rng=rng)
        assert noisy.dtype == np.int64
        assert np.abs(noisy - values).max() < 3.0 * 60
    assert np.array_equal(values, kept)


@pytest.mark.parametrize("name", SAMPLERS)
def test_same_seed_same_noise_and_nothing_for_nothing(name):
    add = SAMPLERS[name][0]
    assert np.array_equal(add(zeros(5000), scale=4.0, rng=seeded(3)), add(zeros(5000), scale=4.0, rng=seeded(3)))
    assert add(zeros(0), scale=4.0, rng=seeded(3)).size == 0
    assert add(zeros(0), scale=4.0, rng=secure()).size == 0


def test_secure_noise_does_not_repeat():
    assert not np.array_equal(
        laplace_integers(zeros(50), scale=9.0, rng=secure()), laplace_integers(zeros(50), scale=9.0, rng=secure())
    )


def test_tiny_scales_are_rounded_up_never_down():
    draws = laplace_integers(zeros(2000), scale=1e-12, rng=seeded(4))
    assert np.all(draws == 0)
    wide = laplace_integers(zeros(2000), scale=2.0**45, rng=seeded(4))
    assert stats.kstest(np.abs(wide) / 2.0**45, "expon").pvalue > 1e-6


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("scale", [0, -1.0, float("nan"), float("inf"), 2.0**46, "3", True])
def test_senseless_scales_are_refused(name, scale):
    with pytest.raises(ParameterError, match="scale"):
        SAMPLERS[name][0](zeros(2), scale=scale, rng=seeded(1))


@pytest.mark.parametrize("values", [np.zeros(3), np.zeros((2, 2), dtype=np.int64), np.array([2**62])])
def test_values_that_are_not_safe_integers_are_refused(values):
    with pytest.raises(ParameterError):
        laplace_integers(values, scale=1.0, rng=seeded(1))


def test_gaussian_noise_too_coarse_for_its_accountant_is_refused():
    assert gaussian_integers(zeros(3), scale=SMOOTH_SCALE, rng=seeded(1)).size == 3
    with pytest.raises(ParameterError, match="lattice steps"):
        gaussian_integers(zeros(3), scale=SMOOTH_SCALE * 0.99, rng=seeded(1))
