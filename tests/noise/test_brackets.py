"""The bracket catches what it is there to catch."""

from __future__ import annotations

import numpy as np
import pytest

from brackets import accepts, assert_bracketed, discrete_gaussian_law, discrete_laplace_law, gamma_two_law

N = 20_000


def gamma_radii(factor: float):
    rng = np.random.default_rng(5)
    return lambda scale: rng.gamma(2.0, factor * scale, N)


def test_a_right_sampler_passes():
    assert_bracketed(gamma_radii(1.0), gamma_two_law(), 50.0)


@pytest.mark.parametrize("factor", [0.5, 0.7, 0.9, 1.1, 1.3, 2.0])
def test_a_wrong_scale_is_caught(factor):
    with pytest.raises(AssertionError, match="off by"):
        assert_bracketed(gamma_radii(factor), gamma_two_law(), 50.0)


def test_a_sampler_that_ignores_its_scale_is_caught():
    rng = np.random.default_rng(5)
    with pytest.raises(AssertionError, match="pass for the scale"):
        assert_bracketed(lambda scale: rng.gamma(2.0, 50.0, N), gamma_two_law(), 50.0)


def test_too_few_draws_are_noticed():
    rng = np.random.default_rng(5)
    with pytest.raises(AssertionError, match="too few draws"):
        assert_bracketed(lambda scale: rng.gamma(2.0, scale, 20), gamma_two_law(), 50.0)


@pytest.mark.parametrize("scale", [0.3, 1.0, 7.5])
def test_laws_agree_with_sums(scale):
    z = np.arange(-2000, 2001)
    p = np.exp(-np.abs(z) / scale)
    p /= p.sum()
    mean = (p * np.abs(z)).sum()
    law = discrete_laplace_law()
    assert law.mean(scale) == pytest.approx(mean)
    assert law.deviation(scale) == pytest.approx(np.sqrt((p * z * z).sum() - mean**2))


def test_gaussian_law_tends_to_the_half_normal():
    law = discrete_gaussian_law()
    assert law.mean(100.0) == pytest.approx(100 * np.sqrt(2 / np.pi), rel=1e-4)
    assert accepts(np.abs(np.rint(np.random.default_rng(1).normal(0, 100, N))), law, 100.0)
