"""dp_ani: differentially private adaptive noise injection, as published; see `road_counts` for the sound alternative."""

from murmurate.mechanisms.dp_ani.mechanism import DPANI

__all__ = ["DPANI"]
