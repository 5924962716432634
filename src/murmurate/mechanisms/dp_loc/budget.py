"""How (epsilon, delta) becomes noise: one Gaussian budget, split over the tables and the training of both models."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from murmurate.core.accounting import compose, solve_noise_multiplier
from murmurate.core.events import Event, Gaussian, PoissonGaussian
from murmurate.mechanisms.dp_loc.settings import Settings, Training
from murmurate.synthesis.ends import SHARES as END_SHARES

MOVE_SHARES = {"towards": 0.25, "visits": 0.20, "steps": 0.40, "sizes": 0.15}
"""Of the budget of the moves, where they are counted; sizes are two tables of half of theirs."""

CALIBRATED_SHARES = {"visits": 0.10, "steps": 0.20, "sizes": 0.10}
"""Of the budget of the moves, where a network learns them and tables only calibrate it."""

COUNT_SHARE = END_SHARES["n"]
"""Of the budget of the ends: the number of trips, which every variant needs."""


@dataclass(frozen=True, kw_only=True)
class Budget:
    """Noise scales per unit of sensitivity, and the events an accountant composes to check them."""

    ends_scale: float
    """Standard deviation that stands for the whole budget of the ends (its tables take parts of it)."""
    moves_scale: float
    ends_noise_multiplier: float | None
    """Of the VAE's training, where there is one."""
    moves_noise_multiplier: float | None
    events: tuple[Event, ...]


@lru_cache(maxsize=64)
def budget_of(*, epsilon: float, delta: float, ends_share: float, settings: Settings) -> Budget:
    """Split by `ends_share` in the exact Gaussian sense (inverse variances add); training is solved by PLD on top."""
    whole = solve_noise_multiplier("gaussian", epsilon=epsilon, delta=delta)
    ends, moves = whole / sqrt(ends_share), whole / sqrt(1 - ends_share)
    tables: list[Event] = []
    if settings.initialiser == "counts":
        tables += [Gaussian(noise_multiplier=ends / sqrt(share)) for share in END_SHARES.values()]
    else:
        tables += [Gaussian(noise_multiplier=ends / sqrt(COUNT_SHARE))]
    tables += [Gaussian(noise_multiplier=moves / sqrt(share)) for share in move_parts(settings)]
    trained: list[tuple[Training, float]] = []
    if settings.initialiser == "vae":
        trained.append((settings.ends_training, ends_share * (1 - COUNT_SHARE)))
    if settings.next_cell == "net":
        trained.append((settings.moves_training, 1.0))
    multipliers: list[float] = []
    events = list(tables)
    for index, (training, share) in enumerate(trained):
        # all but the last network may use what a Gaussian of their share would; the last one takes what is left
        last = index == len(trained) - 1
        others = events if last else []
        allowed = epsilon if last else compose([Gaussian(noise_multiplier=whole / sqrt(share))], delta=delta)
        multipliers.append(
            solve_noise_multiplier(
                "gaussian", epsilon=allowed, delta=delta, sampling=training.sampling, steps=training.steps, other_events=others
            )
        )
        events.append(PoissonGaussian(sampling=training.sampling, noise_multiplier=multipliers[-1], times=training.steps))
    return Budget(
        ends_scale=ends,
        moves_scale=moves,
        ends_noise_multiplier=multipliers[0] if settings.initialiser == "vae" else None,
        moves_noise_multiplier=multipliers[-1] if settings.next_cell == "net" else None,
        events=tuple(events),
    )


def move_parts(settings: Settings) -> list[float]:
    """The shares of the moves' budget that go to tables, the sizes' one as its two halves."""
    if settings.next_cell == "counts":
        shares = MOVE_SHARES
    elif settings.relative:
        shares = CALIBRATED_SHARES
    else:
        return []
    return [share for name, share in shares.items() if name != "sizes"] + [shares["sizes"] / 2] * 2
