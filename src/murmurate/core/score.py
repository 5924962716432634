"""Define the one result type of metrics and attacks."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass
from typing import Any, Literal

Better = Literal["lower", "higher", "closer_to_chance", "neither"]


@dataclass(frozen=True, kw_only=True)
class Score:
    """A named value with its interval, which direction is better and, for attacks, the chance level.

    >>> Score(name="length_error", value=0.1, low=0.05, high=0.2, better="lower").to_json()["value"]
    0.1
    """

    name: str
    value: float
    low: float | None = None
    high: float | None = None
    better: Better = "neither"
    chance: float | None = None
    unit: str = ""
    family: str = ""
    n: int | None = None
    """How many trips, pairs or queries the value rests on."""
    note: str = ""
    """What a reader must know: the adversary's knowledge, a sampling rule, a missing part."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values; NaN becomes null, because JSON has none."""
        return {
            key: None if isinstance(item, float) and not math.isfinite(item) else item for key, item in asdict(self).items()
        }
