"""Advice: which geo-indistinguishable mechanism is best for a radius, an epsilon and a sampling, from public numbers alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from murmurate.core.parameters import positive
from murmurate.mechanisms.geoind_anchors import AnchoredGeoIndistinguishability

MIN_SCALE_STEPS = 0.03
"""Noise scale over the step of the trace below which smoothing is not advised: it changes less than 1 % on the demo city."""

RECEIVER_M = 10.0
"""Noise scale in metres below which smoothing is not advised: receivers err as much, and smoothing would cut corners."""


@dataclass(frozen=True, kw_only=True)
class Advice:
    """A mechanism by name, the settings to give it, and why."""

    mechanism: str
    settings: Mapping[str, Any] = field(default_factory=dict)
    stride: float
    """Points from draw to draw that the recommended mechanism takes."""
    why: str

    def words(self) -> str:
        """Return the advice as `ledger plan` and `--explain` print it."""
        extra = "".join(f" --set {name}={_word(value)}" for name, value in self.settings.items())
        return f"Best for these numbers: {self.mechanism}{extra}. {self.why}"


def advise(
    *,
    radius_m: float,
    epsilon: float,
    interval_s: float,
    speed_kmh: float = 30.0,
    online: bool = False,
    mostly_still: bool = False,
) -> Advice:
    """Recommend a mechanism; the promise and the charge are the same for all of them.

    `radius_m` and `epsilon` are the price of one point, `interval_s` the seconds between points, `speed_kmh` how fast people
    move. `online` says that each report must leave before the next point is known; `mostly_still`, that people rest over nine
    tenths of the time.

    >>> advise(radius_m=300, epsilon=0.5, interval_s=15).mechanism
    'geoind_anchors'
    >>> advise(radius_m=25, epsilon=1, interval_s=60).words()[:48]
    'Best for these numbers: geoind --set smooth=true'
    """
    positive("interval_s", interval_s, at_most=1e7)
    anchors = AnchoredGeoIndistinguishability(
        epsilon=epsilon, radius_m=radius_m, speed_kmh=speed_kmh, interval_s=float(interval_s)
    )
    step_m = interval_s * speed_kmh / 3.6
    stride = float(anchors.strides(np.array([step_m]))[0])
    numbers = f"The noise scale of one point is {anchors.scale_m:,.4g} m, a step of the trace {step_m:,.4g} m"
    if stride == 1:
        smooth = not online and anchors.scale_m >= max(RECEIVER_M, MIN_SCALE_STEPS * step_m)
        gain = "; smoothing what comes out is free." if smooth else "."
        return Advice(
            mechanism="geoind",
            settings={"smooth": True} if smooth else {},
            stride=stride,
            why=f"{numbers}: no point says much about the next, so each is worth drawing{gain}",
        )
    pace = f"{numbers}: drawing about every {stride:.2g} points with the budget of all of them is more accurate"
    if online or mostly_still:
        return Advice(
            mechanism="geoind_predictive",
            settings={"interval_s": interval_s} | ({} if online else {"smooth": True}),
            stride=stride,
            why=f"{pace}, and a test saves a draw where nobody has moved.",
        )
    return Advice(
        mechanism="geoind_anchors",
        stride=stride,
        why=f"{pace}, and the points between are filled in for free.",
    )


def _word(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
