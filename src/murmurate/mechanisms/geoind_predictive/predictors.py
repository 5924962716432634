"""Predictors: where a person probably is, from earlier reports alone, which is why a prediction is free."""

from __future__ import annotations

from typing import NamedTuple

from numba import njit

from murmurate.core.parameters import one_of, whole


class Predictor(NamedTuple):
    """A predictor as the kernel takes it."""

    window: int
    """Reports it looks back on."""
    rule: int
    """Which rule of `weight` it uses."""


MOST = 16
"""Reports a state has room for: longer memories would only make each step slower. Set by hand."""

PARROT, LINEAR, LAST_K = 0, 1, 2
"""Numbers of the rules of `weight`."""

NAMES = {"parrot": PARROT, "linear": LINEAR, "last_k": LAST_K}
"""Rules by the word a user gives for `predictor`."""


def predictor(name: str, *, last_k: int) -> Predictor:
    """Return the predictor of this name: the last report, the line through the last two, or the mean of the last few."""
    one_of("predictor", name, NAMES)
    whole("last_k", last_k, at_most=MOST)
    return Predictor({"parrot": 1, "linear": 2, "last_k": last_k}[name], NAMES[name])


@njit(cache=True, nogil=True, error_model="numpy")
def weight(rule, k, reports, now, last, before):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN201, PLR0917
    """Return the weight of the k-th report back (0: the latest) when predicting point number `now`; weights add up to 1.

    `reports` are there; the latest two stand at the points `last` and `before`.
    """
    if rule == LAST_K:
        return 1.0 / reports
    if rule == LINEAR and reports > 1:
        ahead = (now - last) / max(last - before, 1.0)
        return 1.0 + ahead if k == 0 else -ahead
    return 1.0 if k == 0 else 0.0
