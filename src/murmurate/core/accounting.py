"""Compose privacy guarantees: what several noisy steps on the same people cost together, never rounded down.

Closed forms are used where they are exact (sums of pure steps, Gaussians among themselves); mixtures go through
privacy loss distributions of dp_accounting with pessimistic discretisation, and through Renyi divergences where such a
distribution would need too fine or too wide a grid. The smallest of several upper bounds is an upper bound.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal

from murmurate.core.events import Approximate, Event, Gaussian, Laplace, PoissonGaussian, Pure, for_several
from murmurate.core.parameters import one_of, positive, share, whole
from murmurate.errors import ParameterError

SAFE = 1e-9
"""Relative margin added to numerically computed values, far above their floating-point error. Set by hand."""

GRID_STEP, GRID_FINEST = 1e-4, 5e-6
"""Widest and finest grid of a privacy loss distribution, in units of privacy loss. Set by hand: finer grids cost time."""
GRID_POINTS = 1_000_000
"""Most points of a privacy loss distribution, which bounds memory and time. Set by hand."""

SMALLEST_PLD_DELTA = 1e-12
"""Smallest delta computed from a PLD: below it, the rounding error of its Fourier transforms is not negligible."""

LATTICE_MARGIN = 1.005
"""Factor on delta of any sum with a Gaussian: the noise drawn is discrete, and from a standard deviation of twenty lattice
steps on, its delta exceeds the continuous one's by less than 0.4 % (12 % at four steps: use a finer lattice)."""


@dataclass(frozen=True)
class Account:
    """Holds every step taken on the same people, grouped by kind, so that it can be a cache key."""

    pure: tuple[tuple[float, int], ...] = ()
    """(epsilon, times)"""
    approximate: tuple[tuple[float, float, int], ...] = ()
    """(epsilon, delta, times)"""
    gaussian_mu: float = 0.0
    """Gaussians compose exactly into one: mu^2 = sum of times / noise_multiplier^2."""
    sampled: tuple[tuple[float, float, int], ...] = ()
    """(sampling, noise_multiplier, times)"""

    @property
    def n_steps(self) -> int:
        return sum(int(item[-1]) for item in (*self.pure, *self.approximate, *self.sampled)) + int(self.gaussian_mu > 0)

    @property
    def margin(self) -> float:
        return LATTICE_MARGIN if self.gaussian_mu or self.sampled else 1.0

    @property
    def summed_epsilon(self) -> float:
        """Plain sum over the steps that have an epsilon of their own."""
        terms = [epsilon * times for epsilon, times in self.pure]
        return math.fsum([*terms, *(epsilon * times for epsilon, _, times in self.approximate)])

    @property
    def summed_delta(self) -> float:
        return math.fsum(delta * times for _, delta, times in self.approximate)


def gather(events: Iterable[Event]) -> Account:
    """Group the steps into one account; their order does not matter.

    Laplace steps count as the worst epsilon-DP step of their epsilon. The continuous Laplace distribution would cost
    slightly less, but the noise drawn is discrete, and at a sensitivity of one lattice step the discrete one is
    exactly that worst step.
    """
    pure: Counter[float] = Counter()
    approximate: Counter[tuple[float, float]] = Counter()
    sampled: Counter[tuple[float, float]] = Counter()
    inverse_variances: list[float] = []
    for event in events:
        if isinstance(event, Pure):
            pure[event.epsilon] += event.times
        elif isinstance(event, Laplace):
            pure[1.0 / event.noise_multiplier] += event.times
        elif isinstance(event, Approximate):
            approximate[event.epsilon, event.delta] += event.times
        elif isinstance(event, Gaussian) or (isinstance(event, PoissonGaussian) and event.sampling == 1):
            inverse_variances.append(event.times / event.noise_multiplier**2)
        elif isinstance(event, PoissonGaussian):
            sampled[event.sampling, event.noise_multiplier] += event.times
        else:
            raise ParameterError(f"no accountant knows the event {event!r}; nothing may be charged for it.")
    return Account(
        pure=tuple(sorted(pure.items())),
        approximate=tuple((*key, times) for key, times in sorted(approximate.items())),
        gaussian_mu=math.sqrt(math.fsum(sorted(inverse_variances))),
        sampled=tuple((*key, times) for key, times in sorted(sampled.items())),
    )


def compose(events: Iterable[Event], *, delta: float) -> float:
    """Return the smallest epsilon known to hold, with this `delta`, for all `events` together; infinity where none does.

    >>> compose([Pure(epsilon=0.5), Pure(epsilon=0.25)], delta=0.0)
    0.75
    >>> round(compose([Gaussian(noise_multiplier=4.0, times=16)], delta=1e-5), 3)
    4.378
    """
    share("delta", delta, closed=True)
    return _epsilon(gather(events), float(delta))


def delta_at(events: Iterable[Event], epsilon: float) -> float:
    """Return the smallest delta known to hold, with this `epsilon`, for all `events` together.

    >>> delta_at([Pure(epsilon=0.5), Pure(epsilon=0.25)], 0.75)
    0.0
    """
    if math.isnan(epsilon) or epsilon < 0:
        raise ParameterError(f"epsilon must be a number of at least 0; got {epsilon!r}.")
    return _delta(gather(events), float(epsilon))


def several_words(events: Iterable[Event], parts: str, *, delta: float) -> str:
    """Say what a promise per trip or day leaves to somebody with several of these `parts`; for statements.

    Only pure epsilons grow in proportion. At the same delta the epsilon of Gaussian noise grows faster.

    >>> several_words([Pure(epsilon=1.0)], "trips", delta=0.0)
    'The privacy loss of somebody with n trips is n times as large as promised.'
    """
    if delta == 0:
        return f"The privacy loss of somebody with n {parts} is n times as large as promised."
    more = f"The privacy loss of somebody with n {parts} is more than n times as large as promised"
    farther = [for_several(event, SEVERAL) for event in events]
    known = [event for event in farther if event is not None]
    if len(known) < len(farther):  # without the others the number would be too small
        return f"{more}."
    return f"{more}: with {SEVERAL} of them, epsilon is {compose(known, delta=delta):.3g} at the same delta."


SEVERAL = 10
"""Trips or days of one person for which statements say what a promise per trip or day is worth. Set by hand."""


def gaussian_delta(mu: float, epsilon: float) -> float:
    """Return the delta of Gaussian noise of standard deviation 1 / mu at unit sensitivity (Balle and Wang 2018, theorem 8)."""
    from scipy.special import log_ndtr

    inside = float(log_ndtr(mu / 2 - epsilon / mu))
    outside = epsilon + float(log_ndtr(-mu / 2 - epsilon / mu))
    return max(0.0, math.exp(inside) * -math.expm1(min(0.0, outside - inside)))


def gaussian_epsilon(mu: float, delta: float) -> float:
    """Return an upper bound of the epsilon of Gaussian noise of standard deviation 1 / mu at unit sensitivity."""
    if gaussian_delta(mu, 0.0) <= delta:
        return 0.0
    return _smallest(lambda epsilon: gaussian_delta(mu, epsilon) <= delta, start=mu) * (1 + SAFE)


NoiseKind = Literal["gaussian", "laplace"]


def solve_noise_multiplier(
    kind: NoiseKind,
    *,
    epsilon: float,
    delta: float,
    sampling: float = 1.0,
    steps: int = 1,
    other_events: Iterable[Event] = (),
) -> float:
    """Find the least noise multiplier (scale over sensitivity) that keeps within the budget, at most 1 in 10,000 too large.

    `steps` steps of noise of this `kind`, each on a Poisson sample with probability `sampling`, are composed with
    `other_events` and stay within (`epsilon`, `delta`).

    >>> round(solve_noise_multiplier("laplace", epsilon=2.0, delta=0.0, steps=4), 6)
    2.0
    """
    one_of("kind", kind, ("gaussian", "laplace"))
    positive("epsilon", epsilon)
    share("delta", delta, closed=True)
    whole("steps", steps)
    if kind == "laplace" and sampling != 1:
        raise ParameterError("sampling is accounted for Gaussian noise only; use sampling=1 with laplace.")
    if kind == "gaussian" and delta == 0:
        raise ParameterError("Gaussian noise needs a delta above 0; use laplace for delta=0.")
    others = tuple(other_events)

    def fits(noise_multiplier: float) -> bool:
        step: Event
        if kind == "laplace":
            step = Laplace(noise_multiplier=noise_multiplier, times=steps)
        else:
            step = PoissonGaussian(sampling=sampling, noise_multiplier=noise_multiplier, times=steps)
        return compose((*others, step), delta=delta) <= epsilon

    if others and compose(others, delta=delta) >= epsilon:
        raise ParameterError(
            f"the other events alone cost epsilon {compose(others, delta=delta):.6g} of {epsilon:g}; nothing is left to "
            "draw noise with. Give a larger epsilon or spend less on them."
        )
    if kind == "laplace" and delta == 0:  # exact, where bisection would leave a ten-thousandth unused
        exact = steps / (epsilon - gather(others).summed_epsilon)
        return exact if fits(exact) else exact * (1 + SAFE)
    return _smallest(fits, start=1.0, precision=1e-4)


# -- bounds --------------------------------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _epsilon(account: Account, delta: float) -> float:
    bounds = [_epsilon_by_sum(account, delta)]
    if delta > 0 and (account.n_steps > 1 or account.sampled):
        bounds.append(_epsilon_by_pld(account, delta))
    if account.sampled and delta > 0 and not math.isfinite(min(bounds)):
        bounds.append(_epsilon_by_rdp(account, delta))
    return min(bounds)


@lru_cache(maxsize=4096)
def _delta(account: Account, epsilon: float) -> float:
    bounds = [1.0]
    remaining = epsilon - account.summed_epsilon
    if remaining >= -epsilon * 1e-12 and not account.sampled:
        gaussian = gaussian_delta(account.gaussian_mu, max(0.0, remaining)) * account.margin if account.gaussian_mu else 0.0
        bounds.append(min(1.0, account.summed_delta + gaussian))
    step = _grid_step(account)
    if account.n_steps and step is not None and bounds[-1] > SMALLEST_PLD_DELTA:
        found = float(_loss_distribution(account, step).get_delta_for_epsilon(epsilon))
        bounds.append(min(1.0, max(found * account.margin * (1 + SAFE), SMALLEST_PLD_DELTA)))
    return min(bounds)


def _epsilon_by_sum(account: Account, delta: float) -> float:
    """Add the epsilons; the delta that other steps leave over goes to the Gaussians."""
    remaining = delta - account.summed_delta
    if account.sampled or remaining < -delta * 1e-12:
        return math.inf
    if not account.gaussian_mu:
        return account.summed_epsilon
    if remaining <= 0:
        return math.inf
    return account.summed_epsilon + gaussian_epsilon(account.gaussian_mu, remaining / account.margin)


def _epsilon_by_pld(account: Account, delta: float) -> float:
    step = _grid_step(account)
    if step is None or delta < SMALLEST_PLD_DELTA:
        return math.inf
    return float(_loss_distribution(account, step).get_epsilon_for_delta(delta / account.margin)) * (1 + SAFE)


def _epsilon_by_rdp(account: Account, delta: float) -> float:
    """Bound the Gaussian steps by Renyi divergences and add the others; for losses of any width, and discrete Gaussians too."""
    import dp_accounting

    remaining = delta - account.summed_delta
    if remaining <= 0:
        return math.inf
    accountant = dp_accounting.rdp.RdpAccountant()
    if account.gaussian_mu:
        accountant.compose(dp_accounting.GaussianDpEvent(1 / account.gaussian_mu))
    for sampling, noise_multiplier, times in account.sampled:
        accountant.compose(
            dp_accounting.PoissonSampledDpEvent(sampling, dp_accounting.GaussianDpEvent(noise_multiplier)), times
        )
    return account.summed_epsilon + float(accountant.get_epsilon(remaining)) * (1 + SAFE)


def _grid_step(account: Account) -> float | None:
    """Return the width of the PLD grid, as fine as the smallest step needs and memory allows; None for too wide losses."""
    epsilons = [*(epsilon for epsilon, _ in account.pure), *(epsilon for epsilon, _, _ in account.approximate)]
    single = [1 / noise_multiplier for _, noise_multiplier, _ in account.sampled]
    # nine standard deviations of the loss hold all but 1e-18 of a Gaussian's mass
    reach = account.summed_epsilon + sum(mu * mu / 2 + 9 * mu for mu in (account.gaussian_mu, *single))
    if reach > 500:  # exp would overflow inside dp_accounting, and no such promise means anything
        return None
    finest = min([GRID_STEP, *(epsilon / 50 for epsilon in epsilons)])
    return max(finest, GRID_FINEST, reach / GRID_POINTS)


@lru_cache(maxsize=256)
def _loss_distribution(account: Account, step: float) -> Any:
    from dp_accounting.pld import common
    from dp_accounting.pld import privacy_loss_distribution as pld

    whole_account = pld.identity(value_discretization_interval=step)
    for epsilon, delta, times in (*((epsilon, 0.0, times) for epsilon, times in account.pure), *account.approximate):
        single = pld.from_privacy_parameters(common.DifferentialPrivacyParameters(epsilon, delta), step)
        whole_account = whole_account.compose(single.self_compose(times))
    if account.gaussian_mu:
        gaussian = pld.from_gaussian_mechanism(1 / account.gaussian_mu, value_discretization_interval=step)
        whole_account = whole_account.compose(gaussian)
    for sampling, noise_multiplier, times in account.sampled:
        single = pld.from_gaussian_mechanism(noise_multiplier, value_discretization_interval=step, sampling_prob=sampling)
        whole_account = whole_account.compose(single.self_compose(times))
    return whole_account


def _smallest(holds: Callable[[float], bool], *, start: float, precision: float = 1e-13) -> float:
    """Find the smallest positive number for which a monotone condition holds, from above."""
    high = start
    while not holds(high):
        high *= 2
        if high > 1e9:
            raise ParameterError("no amount of noise below 1e9 times the sensitivity keeps within this budget.")
    low = high / 2
    while low > 1e-12 and holds(low):
        high, low = low, low / 2
    while high - low > precision * high:
        middle = (low + high) / 2
        if not low < middle < high:
            break
        low, high = (low, middle) if holds(middle) else (middle, high)
    return high
