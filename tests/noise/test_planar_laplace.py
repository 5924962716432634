"""Planar Laplace noise on an integer lattice: law, lattice probabilities, edges."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import integrate, stats

from brackets import assert_bracketed, gamma_two_law
from murmurate.errors import ParameterError
from murmurate.noise import planar_laplace, secure, seeded
from murmurate.noise.directions import _SPARE, _accepted

MOST_UNLIKELY = 1e-6


def noise_at_zero(n: int, epsilon: float, rng):
    zeros = np.zeros(n, dtype=np.int64)
    return planar_laplace(zeros, zeros, epsilon_per_step=epsilon, rng=rng)


@pytest.mark.parametrize("rng", [seeded(1), secure()])
def test_radius_is_bracketed(rng):
    assert_bracketed(lambda scale: np.hypot(*noise_at_zero(30_000, 1 / scale, rng)), gamma_two_law(), 5000.0)


def test_radius_and_direction_have_their_laws_and_do_not_depend_on_each_other():
    x, y = noise_at_zero(200_000, 1e-4, seeded(2))
    radius, angle = np.hypot(x, y), np.arctan2(y, x)
    assert stats.kstest(radius, stats.gamma(2, scale=1e4).cdf).pvalue > MOST_UNLIKELY
    assert stats.kstest(angle, stats.uniform(-np.pi, 2 * np.pi).cdf).pvalue > MOST_UNLIKELY
    far = radius > np.median(radius)
    assert stats.ks_2samp(angle[far], angle[~far]).pvalue > MOST_UNLIKELY
    assert abs(np.corrcoef(np.cos(angle), radius)[0, 1]) < 6 / np.sqrt(radius.size)


def cell_probability(i: int, j: int, epsilon: float) -> float:
    density = epsilon**2 / (2 * np.pi)
    value, _ = integrate.dblquad(
        lambda y, x: density * np.exp(-epsilon * np.hypot(x, y)), i - 0.5, i + 0.5, j - 0.5, j + 0.5, epsabs=1e-9
    )
    return value


def test_lattice_probabilities_are_integrals_over_cells_and_keep_the_ratio():
    epsilon, n = 0.7, 400_000
    x, y = noise_at_zero(n, epsilon, seeded(3))
    share = {(i, j): np.mean((x == i) & (y == j)) for i in range(-3, 4) for j in range(-2, 3)}
    for (i, j), found in share.items():
        expected = cell_probability(i, j, epsilon)
        assert abs(found - expected) < 6 * np.sqrt(expected / n)
    # an output at (i, j) from (0, 0) against the same output from (1, 0)
    for i in range(-2, 4):
        for j in range(-2, 3):
            ratio = np.log(share[i, j] / share[i - 1, j])
            assert abs(ratio) < epsilon + 6 * np.sqrt(1 / (n * share[i, j]) + 1 / (n * share[i - 1, j]))


def test_noise_is_added_and_the_input_stays():
    x, y = np.array([10**12, -(10**12), 5]), np.array([1, 2, 3])
    kept = x.copy()
    out_x, out_y = planar_laplace(x, y, epsilon_per_step=1000.0, rng=secure())
    assert out_x.tolist() == x.tolist() == kept.tolist()
    assert out_y.tolist() == [1, 2, 3]


def test_same_seed_same_noise_and_nothing_for_nothing():
    first, again = (noise_at_zero(20_000, 0.01, seeded(7)) for _ in range(2))
    assert np.array_equal(first, again)
    assert [part.size for part in noise_at_zero(0, 0.01, secure())] == [0, 0]
    assert [part.size for part in noise_at_zero(1, 0.01, secure())] == [1, 1]


@pytest.mark.parametrize("epsilon", [0, -1.0, float("nan"), float("inf"), 1e-12])
def test_senseless_epsilons_are_refused(epsilon):
    with pytest.raises(ParameterError, match="epsilon_per_step"):
        noise_at_zero(3, epsilon, seeded(1))


def test_vectors_of_different_length_are_refused():
    with pytest.raises(ParameterError, match="one length"):
        planar_laplace(np.zeros(3, dtype=np.int64), np.zeros(2, dtype=np.int64), epsilon_per_step=1.0, rng=seeded(1))


def test_coordinates_that_noise_could_overflow_are_refused():
    with pytest.raises(ParameterError, match="overflow"):
        planar_laplace(np.array([2**62]), np.array([0]), epsilon_per_step=1.0, rng=seeded(1))


def attempts(third_words: list[int]):
    """Words of attempts that all fall into the disc, with these third words, and what is accepted of them."""
    rows = [[2**61, 2**60, third, 2**63] for third in third_words]
    words = np.array([word for row in rows for word in row] + [7] * _SPARE, dtype=np.uint64)
    buffers = np.empty((5, len(rows) + 1))
    return _accepted(words, *buffers), buffers


def test_a_small_fraction_is_refined_by_a_spare_word():
    kept, (_, _, _, fraction, _) = attempts([2**63, 1, 2**44])
    assert kept == 3
    assert fraction[0] == pytest.approx(0.5)
    assert fraction[1] == (1 + 7.5 * 2.0**-64) * 2.0**-64
    assert fraction[2] == pytest.approx(2.0**-20)


def test_a_block_ends_where_its_spare_words_do():
    kept, _ = attempts([1] * (_SPARE + 3))
    assert kept == _SPARE


def test_points_outside_the_disc_and_at_its_centre_are_dropped():
    corner, centre = [2**63 - 1, 2**63 - 1, 2**63, 0], [0, 0, 2**63, 0]
    words = np.array([*corner, *centre] + [7] * _SPARE, dtype=np.uint64)
    assert _accepted(words, *np.empty((5, 3))) == 0
