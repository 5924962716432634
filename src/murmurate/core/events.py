"""Describe noisy steps as values, which accountants compose; unknown steps are refused."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from typing import Any

from murmurate.core.parameters import positive, share, whole
from murmurate.errors import ParameterError


class _Checked:
    """Checks every field of an event when it is made."""

    def __post_init__(self) -> None:
        for name, value in vars(self).items():
            if name == "times":
                whole(name, value)
            elif name == "delta" or (name == "sampling" and value != 1):
                share(name, value)
            else:
                positive(name, value)


@dataclass(frozen=True, kw_only=True)
class Pure(_Checked):
    """Any epsilon-differentially private step, repeated `times` times."""

    epsilon: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Approximate(_Checked):
    """Any (epsilon, delta)-differentially private step."""

    epsilon: float
    delta: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Laplace(_Checked):
    """Laplace (or discrete Laplace) noise; `noise_multiplier` is scale over L1 sensitivity."""

    noise_multiplier: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class Gaussian(_Checked):
    """Gaussian (or discrete Gaussian) noise; `noise_multiplier` is standard deviation over L2 sensitivity."""

    noise_multiplier: float
    times: int = 1


@dataclass(frozen=True, kw_only=True)
class PoissonGaussian(_Checked):
    """Gaussian noise on true Poisson samples taken with probability `sampling`; DP-SGD is `times` steps of it."""

    sampling: float
    noise_multiplier: float
    times: int = 1


Event = Pure | Approximate | Laplace | Gaussian | PoissonGaussian

_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Pure, Approximate, Laplace, Gaussian, PoissonGaussian)}
"""Event classes by the name under which manifests and ledgers store them."""


def for_several(event: Event, n: int) -> Event | None:
    """Return the step as it holds for `n` units together, at n times the sensitivity; None where no closed form is known.

    >>> for_several(Gaussian(noise_multiplier=4.0), 2)
    Gaussian(noise_multiplier=2.0, times=1)
    """
    if isinstance(event, Pure):
        return replace(event, epsilon=n * event.epsilon)
    if isinstance(event, (Laplace, Gaussian)):
        return replace(event, noise_multiplier=event.noise_multiplier / n)
    return None


def event_to_json(event: Event) -> dict[str, Any]:
    """Return plain values, as in `{"event": "Laplace", ...}`."""
    return {"event": type(event).__name__, **asdict(event)}


def event_from_json(values: dict[str, Any]) -> Event:
    """Return the event that `event_to_json` wrote; unknown events are refused, never skipped."""
    fields = dict(values)
    kind = _KINDS.get(fields.pop("event", ""))
    if kind is None:
        raise ParameterError(f"unknown privacy event {values.get('event')!r}; known: {', '.join(_KINDS)}.")
    return kind(**fields)
