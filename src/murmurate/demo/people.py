"""Make the people of Sturnia: a kind of life, a home, a workplace or school, favourite places, hours and taste in routes."""

from __future__ import annotations

import numpy as np
import polars as pl
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Integers
from murmurate.demo.draws import PEOPLE, bell, choose, stream, uniform
from murmurate.demo.places import FOOD, HOME, LEISURE, NIGHT, PARK, SCHOOL, SHOP, WORK, Places

LIVES = ("office", "pupil", "student", "shifts", "nights", "home", "parent", "rounds", "host")
"""Kinds of lives, as the truth names them; their numbers follow."""
OFFICE, PUPIL, STUDENT, SHIFTS, NIGHTS, AT_HOME, PARENT, ROUNDS, HOST = range(9)
"""Positions in `LIVES`."""
SHARES = np.array([0.46, 0.12, 0.06, 0.08, 0.025, 0.14, 0.08, 0.02, 0.015])
"""Share of people with each kind of life. Set by hand; night workers, couriers on their rounds and hosts are rare."""

_HOURS = np.array([
    [518.0, 32.0, 515.0, 20.0],  # office
    [485.0, 7.0, 410.0, 45.0],  # pupil
    [585.0, 45.0, 330.0, 50.0],  # student
    [518.0, 32.0, 515.0, 20.0],  # shifts
    [1320.0, 20.0, 480.0, 15.0],  # nights
    [518.0, 32.0, 515.0, 20.0],  # home
    [530.0, 10.0, 345.0, 20.0],  # parent
    [470.0, 20.0, 500.0, 30.0],  # rounds
    [1080.0, 20.0, 490.0, 20.0],  # host
])  # fmt: skip
"""[life] mean and spread of the start of the main occupation, then of its length, in minutes. Set by hand."""

LIFE, HOME_AT, MAIN_AT, CHILD_AT, TASTE, START_MIN, LENGTH_MIN, REMOTE_DAY, PHASE, OUTGOING, BEAT = range(11)
"""Columns of a person's row."""
FAVOURITES = 11
"""First column of the favourite places: three for each of `FAVOURITE_LABELS`."""

FAVOURITE_LABELS = (SHOP, FOOD, NIGHT, PARK, LEISURE, HOME)
"""Kinds of favourite places; HOME stands for homes of friends."""
COLUMNS = FAVOURITES + 3 * len(FAVOURITE_LABELS)
"""Columns of a person's row, favourites included."""


def settle_in(places: Places, first: int, last: int, *, seed: int) -> Integers:
    """Return one row for each of the people first ... last - 1; each depends on the seed and the person's number alone."""
    return _settle_in(places.appeal, places.starts, np.cumsum(SHARES), first, last, seed)


def people_table(rows: Integers, first: int) -> pl.DataFrame:
    """Return the truth about people: uid, life, home, main_place."""
    return pl.DataFrame(
        {
            "uid": np.arange(first, first + len(rows)),
            "life": pl.Series([LIVES[k] for k in rows[:, LIFE].tolist()], dtype=pl.String),
            "home": rows[:, HOME_AT],
            "main_place": rows[:, MAIN_AT],
        }
    )


@njit(cache=True)
def _settle_in(  # noqa: PLR0917
    appeal: NDArray[np.float64], starts: Integers, shares: NDArray[np.float64], first: int, last: int, seed: int
) -> Integers:
    rows = np.zeros((last - first, COLUMNS), dtype=np.int64)
    n_homes = starts[HOME + 1]
    for position in range(last - first):
        person = first + position
        own = stream(seed, PEOPLE, person, 0)
        row = rows[position]
        household = stream(seed, PEOPLE, person // 2, 1)
        home = int(uniform(household) * n_homes)
        if person % 2 == 1 and uniform(household) > 0.6:  # some share a home with their neighbour in the list
            home = int(uniform(own) * n_homes)
        row[HOME_AT] = home
        life = choose(own, shares)
        row[LIFE] = life
        likes = appeal[home]
        main_label = WORK
        if life in (PUPIL, STUDENT):
            main_label = SCHOOL
        elif life == HOST:
            main_label = NIGHT
        row[MAIN_AT] = _one(own, likes, starts, main_label)
        row[CHILD_AT] = _one(own, likes, starts, SCHOOL)
        if life == STUDENT:  # the last school of the list is the university; some go elsewhere
            row[MAIN_AT] = starts[SCHOOL + 1] - 1 - int(uniform(own) * 1.4)
        row[TASTE] = 1 if uniform(own) < 0.4 else 0
        row[START_MIN] = int(_HOURS[life, 0] + _HOURS[life, 1] * bell(own))
        row[LENGTH_MIN] = int(_HOURS[life, 2] + _HOURS[life, 3] * bell(own))
        row[REMOTE_DAY] = int(uniform(own) * 5) if life == OFFICE and uniform(own) < 0.35 else -1
        row[PHASE] = int(uniform(own) * 21)
        row[OUTGOING] = int(60 + 80 * uniform(own))
        row[BEAT] = int(uniform(own) * 2**40)
        for number, label in enumerate(FAVOURITE_LABELS):
            for rank in range(3):
                # Friends live where people live: in the households next in the list, in any partition.
                row[FAVOURITES + 3 * number + rank] = (
                    int(uniform(stream(seed, PEOPLE, person // 2 + 1 + int(4 * uniform(own)), 1)) * n_homes)
                    if label == HOME
                    else _one(own, likes, starts, label)
                )
    return rows


@njit(cache=True)
def _one(state: NDArray[np.uint64], likes: NDArray[np.float64], starts: Integers, label: int) -> int:
    return starts[label] + choose(state, likes[starts[label] : starts[label + 1]])
