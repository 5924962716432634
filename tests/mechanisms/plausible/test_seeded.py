"""own-seeded: rhythms of private days, jittered, on cells that those days never visited."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from murmurate.errors import InputError
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.patterns import jittered
from murmurate.mechanisms.plausible.seeded import recombine
from murmurate.noise import seeded
from plausible_days import GRID, made_days


def settings(n_out):
    return Plausible(space=GRID, n_out=n_out, variant="own-seeded")


def cells_of_days(people=60):
    """Days over all cells of the grid; the last ones are nobody's."""
    return replace(made_days(people, 2, seed=2), n_places=GRID.n_cells)


def test_recombined_days_never_visit_their_originals_cells():
    days = cells_of_days()
    made = recombine(days, settings(days.n_days), seeded(4))
    chosen = seeded(4).generator().permutation(days.n_days)
    for fake, row in zip(made, chosen, strict=True):
        assert not set(fake.tolist()) & set(days.place[row].tolist())
    moves = [(part[:, 1:] != part[:, :-1]).sum(axis=1).mean() for part in (days.place, made)]
    assert moves[1] == pytest.approx(moves[0], rel=0.1)


def test_one_day_a_private_day():
    with pytest.raises(InputError, match="at most one day"):
        recombine(cells_of_days(5), settings(11), seeded(1))


def test_jitter_moves_changes_a_little_and_keeps_their_order():
    day = np.repeat(np.array([1, 2, 3, 1], dtype=np.int32), [20, 1, 30, 21])[None]
    made = np.concatenate([jittered(day, 2, np.random.default_rng(k)) for k in range(50)])
    for row in made:
        starts = np.flatnonzero(np.r_[True, row[1:] != row[:-1]])
        assert row[starts].tolist() == [1, 2, 3, 1]
        assert (np.abs(starts - [0, 20, 21, 51]) <= [0, 2, 2, 2]).all()
    assert len(np.unique(made, axis=0)) > 5
