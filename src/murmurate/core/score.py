"""Define the one result type of metrics and attacks, and how its numbers are written."""

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


def number(value: float | None, unit: str = "", *, digits: int = 3) -> str:
    """Write a number people can read, with its unit, three digits and never a power of ten; a dash where there is none.

    >>> number(1234.567, "m"), number(0.04567), number(0.0, "%"), number(float("nan"))
    ('1,235 m', '0.0457', '0 %', '–')
    >>> number(0.00000123), number(-999.7, "m"), number(12.0, "%")
    ('0.0000012', '-1,000 m', '12 %')
    """
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "infinite"
    if abs(value) >= 10**digits - 0.5:
        text = f"{value:,.0f}"
    elif abs(value) >= 0.0001 or not value:
        text = f"{value:,.{digits}g}"
    else:  # two digits behind the zeros
        text = f"{value:.{1 - math.floor(math.log10(abs(value)))}f}"
    return f"{text} {unit}".strip()
