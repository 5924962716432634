"""A few trips as they are: the same ones on both sides where it is known which release came from which original."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.core.space import Integers
from murmurate.metrics.comparison import Side
from murmurate.report.view import View, lines

SHOWN = 36
COLOURS = 6


@dataclass(frozen=True)
class Strand:
    """The trips of one colour."""

    number: int
    d: str


def choose(released: Side, original: Side | None, pairing: Integers | None) -> tuple[Integers, Integers]:
    """Positions of released trips to draw and of originals to draw beside them; fixed, so that a page repeats."""
    draw = np.random.default_rng(0)
    if original is not None and pairing is not None and (pairing >= 0).any():
        known = np.flatnonzero(pairing >= 0)
        shown = draw.permutation(known)[:SHOWN]
        return shown, pairing[shown]
    mine = draw.permutation(released.n)[:SHOWN]
    return mine, np.zeros(0, dtype=np.int64) if original is None else draw.permutation(original.n)[:SHOWN]


def strands(view: View, side: Side, chosen: Integers) -> list[Strand]:
    """The chosen trips in as many colours as can be told apart."""
    x, y = view.project(*side.degrees)
    found = []
    for colour in range(COLOURS):
        parts = [slice(side.offsets[k], side.offsets[k + 1]) for k in chosen[colour::COLOURS]]
        d = "".join(lines(x[part], y[part], np.array([0, part.stop - part.start])) for part in parts)
        if d:
            found.append(Strand(colour + 1, d))
    return found
