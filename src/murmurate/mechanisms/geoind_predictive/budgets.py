"""Budget rules: what a step may spend on its test and on its noise, in whole grains, so that sums are exact.

A grain is 2^-24 of epsilon. The budget of a trace is a whole number of grains, every debit is one, and a draw's noise follows
from the grains it was debited, so no rounding can ever add up to more than the budget.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from numba import njit

GRAINS = 2.0**24
"""Grains in one epsilon per point; 10^8 points still fit the whole numbers of a double."""

FIXED_RATE, FIXED_UTILITY, AS_PUBLISHED = 0, 1, 2
"""Numbers of the budget rules in the kernel."""

MANAGERS = {"fixed_rate": FIXED_RATE, "fixed_utility": FIXED_UTILITY, "skipping": FIXED_RATE}
"""Budget rules by the word a user gives for `manager`."""

PUBLISHED_TEST = 0.1
"""The study's first test budget, on top of the budget it states: absolute, or a share of epsilon."""

REMAINING, DECISIONS, TESTS, PASSES, LAST_TEST, SEEN, DUE, REPORTS, HISTORY = range(9)
"""Positions in a trace's state, which holds whole numbers in doubles: grains that remain, decisions, tests and passed tests so
far, grains of the last test, points seen, grains of a draw that is paid for and not yet made, reports, and earlier reports."""


class Rule(NamedTuple):
    """The public numbers of a budget rule, as the kernel takes them."""

    manager: int
    test_share: float
    """A test's grains for each grain of noise: eta (c_theta/c_N) (1 + 1/gamma)."""
    limit_share: float
    """The test's threshold in noise scales: l = limit_share * radius / epsilon_N."""
    running_rate: bool
    """Whether the share of passed tests so far enlarges what is spent now."""
    noise_grains: float
    """Grains of a draw for the wanted accuracy; fixed utility only."""
    least_grains: float
    """Least grains of a draw; with fewer the last report is repeated instead."""
    published_test: float
    """Grains of the study's first test."""
    epsilon_per_grain: float


@njit(cache=True, nogil=True, error_model="numpy", inline="always")
def decide(rule, points_left, decisions_left, testing, remaining, first, last_test, rate):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, PLR0917
    """Return grains for the test (0: none), for the noise (0: repeat) and the threshold of the test in noise scales."""
    if rule.manager == AS_PUBLISHED:
        if first:
            return 0.0, GRAINS, 0.0
        ratio = rule.published_test / GRAINS
        noise = math.floor(remaining / (points_left * (1.0 + ratio)))
        test = math.floor(noise * ratio)
        # l is the radius times the last test budget over this one
        return test, noise, last_test / max(test, 1.0) * noise * rule.epsilon_per_grain
    share = rule.test_share if testing else 0.0
    if rule.manager == FIXED_UTILITY:
        noise = rule.noise_grains
    elif first:
        # drawn without a test; as much is kept for each later draw
        noise = remaining / (decisions_left + (decisions_left - 1.0) * share)
    else:
        noise = remaining / (decisions_left * ((1.0 - rate) + share))
    noise = math.floor(min(noise, remaining))
    if first:  # there is nothing to repeat yet, so the first point is always drawn
        return 0.0, max(noise, 1.0), 0.0
    test = math.floor(noise * share)
    if noise + test > remaining and rule.manager == FIXED_RATE:  # a miss must be affordable before a test is paid for
        noise = math.floor(remaining / (1.0 + share))
        test = math.floor(noise * share)
    if noise < rule.least_grains or noise + test > remaining:
        return 0.0, 0.0, 0.0
    return test, noise, rule.limit_share
