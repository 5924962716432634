"""The accountant against closed forms, brute force and other bounds; never below the truth."""

from __future__ import annotations

import math
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.core.accounting import (
    LATTICE_MARGIN,
    compose,
    delta_at,
    gaussian_delta,
    gaussian_epsilon,
    several_words,
    solve_noise_multiplier,
)
from murmurate.core.events import Approximate, Gaussian, Laplace, PoissonGaussian, Pure
from murmurate.errors import ParameterError


def normal_tail(z):
    return 0.5 * math.erfc(z / math.sqrt(2))


def test_statements_do_not_understate_what_several_days_of_a_person_cost():
    """At one delta, Gaussian noise costs a person with ten days more than ten times the epsilon of a day."""
    event = Gaussian(noise_multiplier=solve_noise_multiplier("gaussian", epsilon=1.0, delta=1e-6))
    truth = gaussian_epsilon(10 / event.noise_multiplier, 1e-6)
    assert truth > 13
    words = several_words([event], "days", delta=1e-6)
    assert "more than n times" in words
    assert float(words.split("epsilon is ")[1].split()[0]) == pytest.approx(truth, rel=0.01)
    assert "n times as large as promised." in several_words([Pure(epsilon=1.0)], "days", delta=0.0)
    unknown = [event, Approximate(epsilon=1.0, delta=1e-7)]  # no closed form for several of them, and never left out
    assert several_words(unknown, "days", delta=1e-6).endswith("is more than n times as large as promised.")


def true_gaussian_delta(mu, epsilon):
    return normal_tail(epsilon / mu - mu / 2) - math.exp(epsilon) * normal_tail(epsilon / mu + mu / 2)


def true_pure_delta(epsilon_0, times, epsilon):
    """Kairouz, Oh and Viswanath: the worst composition of pure steps is randomised response, summed outcome by outcome."""
    keep = 1 / (1 + math.exp(-epsilon_0))
    total = 0.0
    for ups in range(times + 1):
        loss = epsilon_0 * (2 * ups - times)
        mass = math.comb(times, ups) * keep**ups * (1 - keep) ** (times - ups)
        total += mass * max(0.0, -math.expm1(epsilon - loss))
    return total


@pytest.mark.parametrize("mu", [0.05, 0.3, 1.0, 2.5, 6.0])
@pytest.mark.parametrize("delta", [1e-3, 1e-5, 1e-8])
def test_gaussian_is_the_exact_curve(mu, delta):
    epsilon = compose([Gaussian(noise_multiplier=1 / mu)], delta=delta)
    assert true_gaussian_delta(mu, epsilon) == pytest.approx(delta / LATTICE_MARGIN, rel=1e-5)
    assert gaussian_delta(mu, 1.0) == pytest.approx(true_gaussian_delta(mu, 1.0), rel=1e-8, abs=1e-16)


def test_gaussian_where_delta_alone_suffices():
    assert gaussian_epsilon(1e-6, 1e-3) == 0.0


@settings(max_examples=50, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.5, 100), min_size=1, max_size=6))
def test_gaussians_compose_into_one(multipliers):
    together = compose([Gaussian(noise_multiplier=m) for m in multipliers], delta=1e-6)
    one = 1 / math.sqrt(sum(m**-2 for m in multipliers))
    assert together == pytest.approx(compose([Gaussian(noise_multiplier=one)], delta=1e-6), rel=1e-9)


@pytest.mark.parametrize(("epsilon_0", "times"), [(0.5, 1), (0.1, 10), (0.05, 100), (1.0, 5)])
@pytest.mark.parametrize("share", [0.2, 0.5, 0.9])
def test_pure_steps_are_the_optimal_composition_from_above(epsilon_0, times, share):
    epsilon = share * epsilon_0 * times
    found, truth = delta_at([Pure(epsilon=epsilon_0, times=times)], epsilon), true_pure_delta(epsilon_0, times, epsilon)
    assert found >= truth * (1 - 1e-9)
    assert found == pytest.approx(truth, rel=0.03, abs=2e-12)


def test_pure_steps_with_no_delta_are_summed():
    events = [Pure(epsilon=0.1)] * 10
    assert compose(events, delta=0.0) == 1.0
    assert compose(events, delta=1e-6) <= 1.0
    assert delta_at(events, 1.0) == 0.0
    assert compose([], delta=0.0) == 0.0
    assert compose([], delta=1e-6) == 0.0


def test_laplace_is_counted_as_the_discrete_noise_that_is_drawn():
    """Discrete Laplace at a sensitivity of one step: its delta, by summing its probabilities, is reached and never passed."""
    scale, epsilon = 0.8, 0.6
    steps = np.arange(-400, 401)
    density = np.exp(-np.abs(steps) / scale)
    density /= density.sum()
    moved = np.exp(-np.abs(steps - 1) / scale)
    moved /= moved.sum()
    truth = float(np.maximum(density - math.exp(epsilon) * moved, 0).sum())
    found = delta_at([Laplace(noise_multiplier=scale)], epsilon)
    assert found >= truth
    assert found == pytest.approx(truth, rel=1e-3)
    continuous = 1 - math.exp((epsilon - 1 / scale) / 2)
    assert continuous < truth  # the textbook curve would have been too hopeful


def test_approximate_steps_add_their_deltas():
    events = [Approximate(epsilon=0.2, delta=1e-6)] * 3
    assert compose(events, delta=3e-6) == pytest.approx(0.6)
    assert compose(events, delta=2.9e-6) == math.inf
    assert compose(events, delta=0.0) == math.inf
    assert delta_at(events, 0.6) == pytest.approx(3e-6)


@pytest.mark.parametrize("times", [1, 100, 3000])
def test_sampled_gaussian_lies_below_renyi_and_above_no_cost(times):
    import dp_accounting

    step = PoissonGaussian(sampling=0.01, noise_multiplier=1.1, times=times)
    renyi = dp_accounting.rdp.RdpAccountant()
    renyi.compose(dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.1)), times)
    found = compose([step], delta=1e-5)
    assert 0 < found < renyi.get_epsilon(1e-5)
    assert found < compose([Gaussian(noise_multiplier=1.1, times=times)], delta=1e-5)


def test_sampled_gaussian_once_is_the_exact_mixture():
    """Remove: (1 - q) N(0, s) + q N(1, s) against N(0, s), integrated on a fine grid; add: the reverse."""
    sampling, sigma, epsilon = 0.2, 0.9, 0.3
    x = np.linspace(-12, 13, 400_001)
    gap = x[1] - x[0]
    without = np.exp(-(x**2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    with_it = (1 - sampling) * without + sampling * np.exp(-((x - 1) ** 2) / (2 * sigma**2)) / (sigma * math.sqrt(2 * math.pi))
    truth = max(
        float(np.maximum(with_it - math.exp(epsilon) * without, 0).sum() * gap),
        float(np.maximum(without - math.exp(epsilon) * with_it, 0).sum() * gap),
    )
    found = delta_at([PoissonGaussian(sampling=sampling, noise_multiplier=sigma)], epsilon)
    assert found >= truth * (1 - 1e-5)
    assert found == pytest.approx(truth * LATTICE_MARGIN, rel=1e-3)


def test_a_mixture_lies_between_its_parts_and_their_sum():
    parts = [Pure(epsilon=0.05, times=20), Gaussian(noise_multiplier=3.0), Approximate(epsilon=0.1, delta=1e-8)]
    mixed = compose(parts, delta=1e-5)
    apart = compose(parts[:1], delta=0.0) + compose(parts[1:2], delta=9e-6) + 0.1
    assert max(compose([part], delta=1e-5) for part in parts) < mixed < apart
    assert delta_at(parts, mixed) <= 1e-5 * (1 + 1e-6)


@settings(max_examples=25, deadline=None, derandomize=True)
@given(st.lists(st.floats(0.01, 0.5), min_size=1, max_size=4), st.floats(0.01, 0.5))
def test_one_more_step_never_costs_less(epsilons, another):
    before = compose([Pure(epsilon=e) for e in epsilons], delta=1e-6)
    after = compose([Pure(epsilon=e) for e in (*epsilons, another)], delta=1e-6)
    # the discretisation may differ between the two; both are bounds from above
    assert after >= before - 0.02 * sum(epsilons)
    assert after <= sum(epsilons) + another + 1e-12


@pytest.mark.parametrize(
    "events",
    [
        [Pure(epsilon=900.0), Gaussian(noise_multiplier=1.0)],
        [PoissonGaussian(sampling=0.1, noise_multiplier=0.001, times=3)],
        [Pure(epsilon=1e-7, times=1000), Gaussian(noise_multiplier=50.0)],
        [Gaussian(noise_multiplier=1e-3)],
        [Pure(epsilon=0.01, times=10_000_000)],
    ],
)
def test_absurd_amounts_stay_finite_and_quick(events):
    assert 0 < compose(events, delta=1e-6) < math.inf


@pytest.mark.parametrize("delta", [-1.0, 2.0, math.nan])
def test_senseless_deltas_are_refused(delta):
    with pytest.raises(ParameterError):
        compose([Pure(epsilon=1.0)], delta=delta)


def test_unknown_events_are_refused():
    with pytest.raises(ParameterError, match="no accountant"):
        compose(["a coin"], delta=0.0)
    with pytest.raises(ParameterError):
        delta_at([Pure(epsilon=1.0)], math.nan)


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("gaussian", {}),
        ("gaussian", {"steps": 30}),
        ("gaussian", {"steps": 200, "sampling": 0.02}),
        ("gaussian", {"other_events": (Pure(epsilon=0.4),)}),
        ("laplace", {"steps": 20}),
    ],
)
def test_solved_noise_just_fits(kind, options):
    sigma = solve_noise_multiplier(kind, epsilon=1.0, delta=1e-5, **options)
    others, steps, sampling = options.get("other_events", ()), options.get("steps", 1), options.get("sampling", 1.0)

    def cost(noise):
        if kind == "laplace":
            return compose((*others, Laplace(noise_multiplier=noise, times=steps)), delta=1e-5)
        return compose((*others, PoissonGaussian(sampling=sampling, noise_multiplier=noise, times=steps)), delta=1e-5)

    assert cost(sigma) <= 1.0
    assert cost(sigma * 0.98) > 1.0


def test_solved_laplace_without_delta_is_the_textbook_scale():
    assert solve_noise_multiplier("laplace", epsilon=0.5, delta=0.0, steps=3) == pytest.approx(6.0, rel=1e-8)
    left = solve_noise_multiplier("laplace", epsilon=0.5, delta=0.0, other_events=[Pure(epsilon=0.25)])
    assert left == pytest.approx(4.0, rel=1e-8)


def test_senseless_noise_questions_are_refused():
    with pytest.raises(ParameterError, match="nothing is left"):
        solve_noise_multiplier("gaussian", epsilon=1.0, delta=1e-5, other_events=[Pure(epsilon=1.0)])
    with pytest.raises(ParameterError, match="delta above 0"):
        solve_noise_multiplier("gaussian", epsilon=1.0, delta=0.0)
    with pytest.raises(ParameterError, match="sampling"):
        solve_noise_multiplier("laplace", epsilon=1.0, delta=0.0, sampling=0.5)
    with pytest.raises(ParameterError):
        solve_noise_multiplier("uniform", epsilon=1.0, delta=0.0)


def test_the_margin_covers_the_discrete_gaussian():
    """Counts draw discrete Gaussian noise; from twenty lattice steps on, the margin on delta covers the difference."""
    steps = np.arange(-4000, 4001, dtype=np.float64)
    for sigma in (20.0, 100.0):
        density = np.exp(-(steps**2) / (2 * sigma**2))
        density /= density.sum()
        for moved in (1, 7, 20):
            other = np.exp(-((steps - moved) ** 2) / (2 * sigma**2))
            other /= other.sum()
            for delta in np.geomspace(1e-9, 1e-3, 25):
                epsilon = compose([Gaussian(noise_multiplier=sigma / moved)], delta=float(delta))
                assert float(np.maximum(other - math.exp(epsilon) * density, 0).sum()) <= delta


def test_dp_accounting_is_only_loaded_when_it_is_needed():
    program = (
        "import sys; from murmurate.core.accounting import compose; from murmurate.core.events import Gaussian, Pure; "
        "compose([Pure(epsilon=1.0)] * 3, delta=0.0); compose([Gaussian(noise_multiplier=2.0)], delta=1e-5); "
        "raise SystemExit('dp_accounting' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
