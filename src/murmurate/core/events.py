"""What a mechanism did with noise, as values: accountants interpret them, and refuse what they do not know."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

from murmurate.core.parameters import positive, share, whole
from murmurate.errors import ParameterError


@dataclass(frozen=True, kw_only=True)
class Pure:
    """Any epsilon-differentially private step, `times` over."""

    epsilon: float
    times: int = 1

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        whole("times", self.times)


@dataclass(frozen=True, kw_only=True)
class Approximate:
    """Any (epsilon, delta)-differentially private step."""

    epsilon: float
    delta: float
    times: int = 1

    def __post_init__(self) -> None:
        positive("epsilon", self.epsilon)
        share("delta", self.delta)
        whole("times", self.times)


@dataclass(frozen=True, kw_only=True)
class Laplace:
    """Laplace (or discrete Laplace) noise; `noise_multiplier` is scale over L1 sensitivity."""

    noise_multiplier: float
    times: int = 1

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)
        whole("times", self.times)


@dataclass(frozen=True, kw_only=True)
class Gaussian:
    """Gaussian (or discrete Gaussian) noise; `noise_multiplier` is standard deviation over L2 sensitivity."""

    noise_multiplier: float
    times: int = 1

    def __post_init__(self) -> None:
        positive("noise_multiplier", self.noise_multiplier)
        whole("times", self.times)


@dataclass(frozen=True, kw_only=True)
class PoissonGaussian:
    """Gaussian noise on true Poisson samples taken with probability `sampling`; DP-SGD is `times` steps of it."""

    sampling: float
    noise_multiplier: float
    times: int = 1

    def __post_init__(self) -> None:
        if self.sampling != 1:
            share("sampling", self.sampling)
        positive("noise_multiplier", self.noise_multiplier)
        whole("times", self.times)


Event = Pure | Approximate | Laplace | Gaussian | PoissonGaussian

_KINDS: dict[str, type[Event]] = {kind.__name__: kind for kind in (Pure, Approximate, Laplace, Gaussian, PoissonGaussian)}


def event_to_json(event: Event) -> dict[str, Any]:
    """`{"event": "Laplace", ...}`."""
    return {"event": type(event).__name__, **asdict(event)}


def event_from_json(values: dict[str, Any]) -> Event:
    """The inverse of `event_to_json`; unknown events are refused, never skipped."""
    fields = dict(values)
    kind = _KINDS.get(fields.pop("event", ""))
    if kind is None:
        raise ParameterError(f"unknown privacy event {values.get('event')!r}; known: {', '.join(_KINDS)}.")
    return kind(**fields)
