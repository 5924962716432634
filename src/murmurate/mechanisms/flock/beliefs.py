"""What noisy counts of cells are believed to be: large blocks first, over several lays of the blocks, none of which is seen."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from murmurate.asking import Answer
from murmurate.core.space import Floats
from murmurate.mechanisms.flock.tracks import Frame
from murmurate.synthesis.ends import believed_cells

GROUPS = 8
"""Of cells of similar size, each believed by its own error."""
LAYS = 8
MANY_CELLS = 10_000
"""From here on half as many lays: noise of single cells is then far above what they hold."""
LEFT = 0.35
"""Of the deviation of a noisy cell, after its neighbours have been asked."""
LAID = 0.381966
"""The golden section spreads the lays evenly, whatever their number."""


def believed(answer: Answer, rows: int, columns: int, prior: Floats | None = None) -> Floats:
    """[cell] counts from a noisy table, mean over blocks that start at different cells; `prior` says how blocks divide."""
    noisy = answer.noisy.reshape(rows, columns)
    expected = np.ones((rows, columns)) if prior is None else prior.reshape(rows, columns)
    total = max(float(answer.noisy.sum()), 1.0)
    side = 1 << (max(rows, columns) - 1).bit_length() >> 1
    lays = LAYS if noisy.size < MANY_CELLS else LAYS // 2
    mean = np.zeros((rows, columns))
    for lay in range(lays):
        south, west = int(side * lay / lays), int(side * ((lay * LAID) % 1.0))
        table = np.pad(noisy, ((south, 0), (west, 0)))
        area = np.pad(expected, ((south, 0), (west, 0)))
        found = believed_cells(
            table.ravel(), rows=rows + south, columns=columns + west, n=total, deviation=answer.deviation,
            prior=area.ravel(), groups=GROUPS,
        )  # fmt: skip
        mean += found.reshape(table.shape)[south:, west:] / lays
    return np.asarray(mean.ravel() * (total / max(float(mean.sum()), 1e-9)))


def settled(answers: Mapping[str, Answer], frame: Frame) -> dict[str, Answer]:
    """The answers, with beliefs in place of the noisy visits and ends of walked cells, and what error is left in them."""
    visits = believed(answers["visits"], frame.rows, frame.columns)
    ends = believed(answers["ends"], frame.rows, frame.columns, visits)
    return {
        **answers,
        "visits": Answer(visits, answers["visits"].deviation * LEFT),
        "ends": Answer(ends, answers["ends"].deviation * LEFT),
    }


def between_middles(walked: Floats, frame: Frame) -> Floats:
    """[fine cell] what lies there if density changes evenly from the middle of one walked cell to that of the next."""
    grid, block = frame.grid, frame.block
    rows, columns = (np.arange(size) + 0.5 for size in (frame.rows, frame.columns))
    north, east = ((np.arange(size) + 0.5) / block for size in (grid.rows, grid.columns))
    table = walked.reshape(frame.rows, frame.columns)
    along = np.stack([np.interp(east, columns, row) for row in table])
    return np.stack([np.interp(north, rows, column) for column in along.T], axis=1).ravel()
