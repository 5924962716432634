"""The bracket: noise of the claimed scale passes, noise of 0.7 or 1.3 times the scale does not."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

SIGMAS = 6.0
"""A right sampler fails by chance about twice in 10^9 runs, so a test with operating-system randomness does not flake."""


@dataclass(frozen=True)
class Law:
    """Mean and standard deviation of the size of one draw, as functions of the scale."""

    mean: Callable[[float], float]
    deviation: Callable[[float], float]


def off_by_sigmas(sizes: NDArray[np.floating], law: Law, scale: float) -> float:
    """How many standard errors the mean size of the draws lies from what the scale promises."""
    sizes = np.asarray(sizes, dtype=np.float64)
    return (sizes.mean() - law.mean(scale)) / (law.deviation(scale) / math.sqrt(sizes.size))


def accepts(sizes: NDArray[np.floating], law: Law, scale: float) -> bool:
    """Whether the draws could be of this scale."""
    return abs(off_by_sigmas(sizes, law, scale)) < SIGMAS


def assert_bracketed(draw_sizes: Callable[[float], NDArray[np.floating]], law: Law, scale: float) -> None:
    """Accept the true scale; reject draws made too small or too large, and a claim made too small or too large."""
    sizes = draw_sizes(scale)
    assert accepts(sizes, law, scale), f"scale {scale:g} is off by {off_by_sigmas(sizes, law, scale):.1f} standard errors"
    for factor in (0.7, 1.3):
        assert not accepts(sizes, law, scale * factor), f"too few draws to tell the scale from {factor} times it"
        assert not accepts(draw_sizes(scale * factor), law, scale), f"draws of {factor} times the scale pass for the scale"


def discrete_laplace_law() -> Law:
    """Sizes of P(z) ~ exp(-|z|/scale) on the integers."""

    def mean(scale: float) -> float:
        p = math.exp(-1 / scale)
        return 2 * p / (1 - p * p)

    def deviation(scale: float) -> float:
        p = math.exp(-1 / scale)
        return math.sqrt(2 * p / (1 - p) ** 2 - mean(scale) ** 2)

    return Law(mean, deviation)


def discrete_gaussian_law() -> Law:
    """Sizes of P(z) ~ exp(-z^2/(2 scale^2)) on the integers, summed out to 12 deviations."""

    def moments(scale: float) -> tuple[float, float]:
        z = np.arange(-math.ceil(12 * scale) - 12, math.ceil(12 * scale) + 13)
        p = np.exp(-0.5 * (z / scale) ** 2)
        p /= p.sum()
        return float((p * np.abs(z)).sum()), float((p * z * z).sum())

    def deviation(scale: float) -> float:
        mean, square = moments(scale)
        return math.sqrt(square - mean * mean)

    return Law(lambda scale: moments(scale)[0], deviation)


def gamma_two_law() -> Law:
    """Radii of planar Laplace noise with this scale (1/epsilon)."""
    return Law(lambda scale: 2 * scale, lambda scale: math.sqrt(2) * scale)


def half_normal_law() -> Law:
    """Sizes of normal numbers with this standard deviation."""
    return Law(lambda scale: scale * math.sqrt(2 / math.pi), lambda scale: scale * math.sqrt(1 - 2 / math.pi))
