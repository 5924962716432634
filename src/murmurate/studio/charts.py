"""Draw how errors and odds move along the whole slider, with the range of the rehearsals as a band."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from murmurate.report.plots import round_step
from murmurate.studio.answers import Answer, show

LEFT, WIDTH, TOP, HEIGHT = 56, 330, 36, 170
"""Place and size of the plot in a drawing of 400 by 250."""
MOST = 2
"""Charts of errors; a third one shows the odds."""


@dataclass(frozen=True)
class Chart:
    """Hold one drawn chart: ticks, a band, lines and dots, one dot a stop."""

    title: str
    about: str
    x_ticks: tuple[tuple[float, str], ...]
    y_ticks: tuple[tuple[float, str], ...]
    band: str
    line: str
    line_class: str
    floor: tuple[float, str] | None
    dots: tuple[tuple[float, float], ...]


def charts(board: dict[str, Any], found: Sequence[Answer], parameter: str) -> list[Chart]:
    """Return the charts of a board: its first errors, and the ceiling of the odds."""
    name = "ε" if parameter == "epsilon" else parameter
    step = WIDTH / max(1, len(found) - 1)
    xs = [LEFT + k * step for k in range(len(found))]
    ticks = tuple((x, f"{answer.value:g}") for x, answer in zip(xs, found, strict=True))
    drawn = []
    for score, (words, unit) in list(board["measures"].items())[:MOST]:
        rows = [stop["scores"].get(score) for stop in board["stops"]]
        there = [(x, row) for x, row in zip(xs, rows, strict=True) if row]
        if len(there) < 2:
            continue
        floor = board["floor"].get(score)
        y_of, y_ticks = _axis(max(row[2] for _, row in there), partial(_shown, unit))
        above = [f"{x:.0f} {y_of(row[2]):.0f}" for x, row in there]
        below = [f"{x:.0f} {y_of(row[1]):.0f}" for x, row in reversed(there)]
        drawn.append(
            Chart(
                title=words[0].upper() + words[1:],
                about=f"{name}; band: lowest to highest of {board['runs']} rehearsals",
                x_ticks=ticks,
                y_ticks=y_ticks,
                band="M" + "L".join([*above, *below]) + "Z",
                line="M" + "L".join(f"{x:.0f} {y_of(row[0]):.0f}" for x, row in there),
                line_class="ln",
                floor=None if floor is None else (y_of(floor), "a second real sample"),
                dots=tuple((x, y_of(row[0])) for x, row in there),
            )
        )
    tops = [answer.ceiling for answer in found]
    if all(top is not None for top in tops):
        y_of, _ = _axis(1.0, str)
        shares = [0.0, 0.25, 0.5, 0.75, 1.0]
        drawn.append(
            Chart(
                title="Right guesses of an attacker, of 100",
                about=f"{name}; the ceiling holds for any attacker",
                x_ticks=ticks,
                y_ticks=tuple((y_of(share), f"{100 * share:.0f}") for share in shares),
                band="",
                line="M" + "L".join(f"{x:.0f} {y_of(top or 0.0):.0f}" for x, top in zip(xs, tops, strict=True)),
                line_class="lim",
                floor=(y_of(0.5), "a coin"),
                dots=tuple((x, y_of(top or 0.0)) for x, top in zip(xs, tops, strict=True)),
            )
        )
    return drawn


def _shown(unit: str, value: float) -> str:
    return show(value, unit)


def _axis(top: float, words: Callable[[float], str]) -> tuple[Callable[[float], float], tuple[tuple[float, str], ...]]:
    """Return a scale from 0 to a round number above `top`, and its ticks."""
    step = round_step(top or 1.0, 4)
    end = step * max(1, -(-(top or 1.0) // step))

    def scale(value: float) -> float:
        return TOP + HEIGHT * (1 - min(value, end) / end)

    count = round(end / step)
    return scale, tuple((scale(k * step), words(k * step)) for k in range(count + 1))
