"""Noise of the variants with networks: one Gaussian budget, split over the tables and the training of both models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from math import sqrt

from murmurate.asking import Budget
from murmurate.core.accounting import compose, solve_noise_multiplier
from murmurate.core.events import Event, Gaussian, PoissonGaussian
from murmurate.mechanisms.dp_loc.settings import Settings, Training
from murmurate.mechanisms.dp_loc.tables import END_SHARES, MOVE_SHARES, shares_of

CALIBRATED_SHARES = {"visits": 0.10, "steps": 0.20, "sizes_by_ring": 0.05, "sizes_by_hour": 0.05}
"""Shares of the budget of the moves, where a network learns them and tables only calibrate it."""

COUNT_SHARE = END_SHARES["n"]
"""Share of the budget of the ends for the number of trips, which every variant needs."""


@dataclass(frozen=True, kw_only=True)
class NetworkBudget:
    """Noise multipliers of both trainings, and the events an accountant composes to check all noise together."""

    ends_noise_multiplier: float | None
    """Of the VAE's training, where there is one."""
    moves_noise_multiplier: float | None
    events: tuple[Event, ...]


def table_shares(settings: Settings, ends_share: float) -> Mapping[str, float]:
    """Return the share of the whole budget of each table; what they leave goes to the networks."""
    ends = END_SHARES if settings.initialiser == "counts" else {"n": COUNT_SHARE}
    moves = MOVE_SHARES if settings.next_cell == "counts" else CALIBRATED_SHARES if settings.relative else {}
    return shares_of(ends_share, ends=ends, moves=moves)


@lru_cache(maxsize=64)
def budget_of(*, epsilon: float, delta: float, ends_share: float, settings: Settings) -> NetworkBudget:
    """Split by shares in the exact Gaussian sense (inverse variances add); training is solved by PLD on top."""
    whole = Budget(epsilon=epsilon, delta=delta).multiplier
    events: list[Event] = [
        Gaussian(noise_multiplier=whole / sqrt(part)) for part in table_shares(settings, ends_share).values()
    ]
    trained: list[tuple[Training, float]] = []
    if settings.initialiser == "vae":
        trained.append((settings.ends_training, ends_share * (1 - COUNT_SHARE)))
    if settings.next_cell == "net":
        trained.append((settings.moves_training, 1.0))
    multipliers: list[float] = []
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
    return NetworkBudget(
        ends_noise_multiplier=multipliers[0] if settings.initialiser == "vae" else None,
        moves_noise_multiplier=multipliers[-1] if settings.next_cell == "net" else None,
        events=tuple(events),
    )
