"""Plan the days of people: where to go next and when to leave for it."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.space import Floats, Integers
from murmurate.demo.draws import DAYS, bell, choose, stream, uniform
from murmurate.demo.people import (
    AT_HOME,
    BEAT,
    CHILD_AT,
    FAVOURITES,
    HOME_AT,
    HOST,
    LENGTH_MIN,
    LIFE,
    MAIN_AT,
    NIGHTS,
    OFFICE,
    OUTGOING,
    PARENT,
    PHASE,
    PUPIL,
    REMOTE_DAY,
    ROUNDS,
    SHIFTS,
    START_MIN,
    STUDENT,
)

State = NDArray[np.uint64]

PURPOSES = ("home", "work", "school", "shop", "food", "night", "park", "leisure", "visit", "escort", "delivery")
"""Purposes of trips, as the truth names them."""
TO_HOME, TO_WORK, TO_SCHOOL, TO_SHOP, TO_FOOD, TO_NIGHT, TO_PARK, TO_LEISURE, TO_VISIT, TO_ESCORT, TO_DELIVERY = range(11)
"""Positions in `PURPOSES`."""

MAX_LINES = 24
"""Size of a diary: no day has more trips (a courier's has up to 18)."""
CUSTOMERS = 16
"""Customers of one courier. Set by hand."""

_SHOP, _FOOD, _NIGHT, _PARK, _LEISURE, _FRIEND = range(6)
"""Kinds of favourite places, in the order of `people.FAVOURITE_LABELS`."""
_PURPOSE = np.array([TO_SHOP, TO_FOOD, TO_NIGHT, TO_PARK, TO_LEISURE, TO_VISIT])
"""[kind] purpose of a trip there."""
_STAY = np.array([34.0, 65.0, 165.0, 80.0, 95.0, 130.0])
"""[kind] mean stay in minutes. Set by hand."""
_LOYALTY = np.array([0.66, 0.90, 1.0])
"""Cumulative probabilities of the first, second and third favourite. Set by hand."""
_SATURDAY = np.cumsum(np.array([0.46, 0.12, 0.0, 0.15, 0.15, 0.12]))
"""Cumulative probabilities of the kinds, for an outing on a Saturday. Set by hand."""
_SUNDAY = np.cumsum(np.array([0.05, 0.18, 0.0, 0.37, 0.13, 0.27]))
"""The same for a Sunday."""
_FREE_WEEKDAY = np.cumsum(np.array([0.48, 0.08, 0.0, 0.24, 0.10, 0.10]))
"""The same for a weekday without work."""
_EVENING = np.cumsum(np.array([0.0, 0.14, 0.44, 0.0, 0.27, 0.15]))
"""The same for an evening."""
_EVENINGS_OUT = np.array([0.12, 0.13, 0.15, 0.19, 0.40, 0.44, 0.10])
"""[weekday, 0 is Monday] probability of going out in the evening. Set by hand."""


class Diary(NamedTuple):
    """One person's intentions for one day, filled in line by line."""

    leave_min: Floats
    """Minutes since the first midnight."""
    place: Integers
    purpose: Integers
    lines: Integers
    """How many lines are written; one number."""


class Today(NamedTuple):
    """Inputs of one day's plan."""

    state: State
    row: Integers
    """The person's row, see people."""
    day: int
    start: float
    """Midnight, in minutes since the first one."""
    weekday: int
    commute_min: float
    lunch: Integers
    """Tables near the main place."""
    first_business: int
    n_places: int


@njit(cache=True)
def blank_diary() -> Diary:
    """Return an empty diary, reused for every day."""
    place, purpose = np.empty(MAX_LINES, dtype=np.int64), np.empty(MAX_LINES, dtype=np.int64)
    return Diary(np.empty(MAX_LINES), place, purpose, np.zeros(1, dtype=np.int64))


@njit(cache=True)
def today_of(seed: int, person: int, day: int, row: Integers, around: tuple[float, Integers, int, int]) -> Today:
    """Gather the inputs of a day; `around` is (minutes to the main place, tables for lunch near it, first business, places)."""
    state = stream(seed, DAYS, person, day)
    return Today(state, row, day, day * 1440.0, day % 7, around[0], around[1], around[2], around[3])


@njit(cache=True)
def plan_day(today: Today, diary: Diary) -> None:
    """Write into the diary where to go today and when to leave for it."""
    diary.lines[0] = 0
    row, state = today.row, today.state
    life = row[LIFE]
    free = uniform(state) < 0.035  # ill, or a day off
    if life == SHIFTS:
        _shift_day(today, diary, free)
    elif life == NIGHTS:
        _night_day(today, diary, free)
    elif life == HOST:
        _host_day(today, diary, free)
    elif today.weekday >= 5:
        _weekend(today, diary)
    else:
        home_at = today.start + 840
        if life == AT_HOME or free or today.weekday == row[REMOTE_DAY]:
            outings = choose(state, np.array([0.25, 0.70, 0.93, 1.0]))
            _errands(today, diary, today.start + 610 + 70 * bell(state), outings, _FREE_WEEKDAY)
        elif life == ROUNDS:
            home_at = _rounds(today, diary)
        elif life == PARENT:
            home_at = _parent(today, diary)
        else:
            home_at = _working(today, diary)
        _evening(today, diary, home_at)


@njit(cache=True)
def _go(diary: Diary, when: float, where: int, what: int) -> None:
    line = diary.lines[0]
    diary.leave_min[line], diary.place[line], diary.purpose[line] = when, where, what
    diary.lines[0] += 1


@njit(cache=True)
def _favourite(today: Today, which: int) -> int:
    return today.row[FAVOURITES + 3 * which + choose(today.state, _LOYALTY)]


@njit(cache=True)
def _stay(today: Today, which: int) -> float:
    return max(12.0, _STAY[which] * (1 + 0.35 * bell(today.state)))


@njit(cache=True)
def _working(today: Today, diary: Diary) -> float:
    """Plan a day at office, school or university: perhaps lunch elsewhere, perhaps an errand before going home."""
    row, state = today.row, today.state
    life = row[LIFE]
    what = TO_WORK if life == OFFICE else TO_SCHOOL
    begin = today.start + row[START_MIN] + (25 * bell(state) if life == STUDENT else 0.0)
    _go(diary, begin - today.commute_min - 4 + 6 * bell(state), row[MAIN_AT], what)
    end = begin + row[LENGTH_MIN] + 14 * bell(state)
    if life != PUPIL and uniform(state) < 0.24:
        out = begin + 0.45 * row[LENGTH_MIN] + 18 * bell(state)
        _go(diary, out, today.lunch[min(2, int(uniform(state) * 3.4))], TO_FOOD)
        _go(diary, out + 44 + 8 * bell(state), row[MAIN_AT], what)
    chance = uniform(state)
    errand = -1
    if life == PUPIL:
        errand = _LEISURE if chance < 0.24 else _FRIEND if chance < 0.36 else _PARK if chance < 0.44 else -1
    elif chance < 0.30:
        errand = _SHOP
    elif chance < 0.38:
        errand = _LEISURE
    if errand >= 0:
        _go(diary, end, _favourite(today, errand), _PURPOSE[errand])
        end += 10 + _stay(today, errand)
    _go(diary, end, row[HOME_AT], TO_HOME)
    return end + today.commute_min


@njit(cache=True)
def _parent(today: Today, diary: Diary) -> float:
    """Plan a school run, part-time work, a school run, and often the park or the shops with the child."""
    row, state = today.row, today.state
    _go(diary, today.start + 462 + 5 * bell(state), row[CHILD_AT], TO_ESCORT)
    out = today.start + 885
    if uniform(state) < 0.85:
        _go(diary, today.start + 478 + 4 * bell(state), row[MAIN_AT], TO_WORK)
        out = today.start + row[START_MIN] + row[LENGTH_MIN] + 10 * bell(state)
    else:
        _go(diary, today.start + 480, row[HOME_AT], TO_HOME)
    if uniform(state) < 0.3 and out < today.start + 885:
        _go(diary, out - 35, _favourite(today, _SHOP), TO_SHOP)
    end = today.start + 912 + 6 * bell(state)
    _go(diary, end - 10, row[CHILD_AT], TO_ESCORT)
    chance = uniform(state)
    if chance < 0.45:
        which = _PARK if chance < 0.22 else _SHOP
        _go(diary, end + 10, _favourite(today, which), _PURPOSE[which])
        end += 20 + _stay(today, which)
    _go(diary, end + 12, row[HOME_AT], TO_HOME)
    return end + today.commute_min


@njit(cache=True)
def _rounds(today: Today, diary: Diary) -> float:
    """Plan a courier's day: the depot, eight to thirteen of the businesses that are his customers, the depot, home."""
    row, state = today.row, today.state
    when = today.start + row[START_MIN] - today.commute_min + 5 * bell(state)
    _go(diary, when, row[MAIN_AT], TO_WORK)
    when += today.commute_min + 30
    for _ in range(8 + int(6 * uniform(state))):
        customer = stream(row[BEAT], DAYS, int(CUSTOMERS * uniform(state)), 0)
        _go(diary, when, today.first_business + int(uniform(customer) * (today.n_places - today.first_business)), TO_DELIVERY)
        when += 24 + 18 * uniform(state)
    _go(diary, when, row[MAIN_AT], TO_WORK)
    _go(diary, when + 35, row[HOME_AT], TO_HOME)
    return when + 35 + today.commute_min


@njit(cache=True)
def _shift_day(today: Today, diary: Diary, free: bool) -> None:
    """Plan early, late and night shifts in turn, with three days off in eight."""
    row, state = today.row, today.state
    turn = ((today.day + row[PHASE]) // 8) % 3
    if free or (today.day + row[PHASE]) % 8 >= 5:
        _errands(today, diary, today.start + 640 + 80 * bell(state), 2, _FREE_WEEKDAY)
        return
    begin = today.start + (360.0, 840.0, 1320.0)[turn]
    if turn > 0 and uniform(state) < 0.4:
        _errands(today, diary, begin - 260, 1, _FREE_WEEKDAY)
    _go(diary, begin - today.commute_min - 6 + 4 * bell(state), row[MAIN_AT], TO_WORK)
    end = begin + 480 + 8 * bell(state)
    if turn == 0 and uniform(state) < 0.35:
        _go(diary, end, _favourite(today, _SHOP), TO_SHOP)
        end += 45
    _go(diary, end, row[HOME_AT], TO_HOME)


@njit(cache=True)
def _night_day(today: Today, diary: Diary, free: bool) -> None:
    """Plan the day of a night worker, who goes out in the afternoon."""
    row, state = today.row, today.state
    _errands(today, diary, today.start + 900 + 40 * bell(state), 1 if uniform(state) < 0.55 else 0, _FREE_WEEKDAY)
    if free or (today.day + row[PHASE]) % 7 >= 5:
        return
    begin = today.start + row[START_MIN]
    _go(diary, begin - today.commute_min - 5 + 5 * bell(state), row[MAIN_AT], TO_WORK)
    _go(diary, begin + row[LENGTH_MIN] + 8 * bell(state), row[HOME_AT], TO_HOME)


@njit(cache=True)
def _host_day(today: Today, diary: Diary, free: bool) -> None:
    """Plan the day of a host, who works from Wednesday to Sunday."""
    row, state = today.row, today.state
    works = today.weekday >= 2 and not free
    _errands(today, diary, today.start + 780, 1 if works else 2, _FREE_WEEKDAY)
    if works:
        begin = today.start + row[START_MIN]
        late = 40.0 if today.weekday in (4, 5) else 0.0
        _go(diary, begin - today.commute_min + 6 * bell(state), row[MAIN_AT], TO_WORK)
        _go(diary, begin + row[LENGTH_MIN] + late + 15 * bell(state), row[HOME_AT], TO_HOME)


@njit(cache=True)
def _errands(today: Today, diary: Diary, when: float, outings: int, kinds: Floats) -> None:
    """Plan some outings one after the other, with or without going home in between."""
    for outing in range(outings):
        which = choose(today.state, kinds)
        _go(diary, when, _favourite(today, which), _PURPOSE[which])
        when += 12 + _stay(today, which)
        if outing == outings - 1 or uniform(today.state) < 0.55:
            _go(diary, when, today.row[HOME_AT], TO_HOME)
            when += 55 + 80 * uniform(today.state)


@njit(cache=True)
def _weekend(today: Today, diary: Diary) -> None:
    state, saturday = today.state, today.weekday == 5
    outings = choose(state, np.array([0.14, 0.52, 0.87, 1.0]) if saturday else np.array([0.28, 0.72, 0.96, 1.0]))
    first = today.start + (650 if saturday else 700) + 70 * bell(state)
    _errands(today, diary, first, outings, _SATURDAY if saturday else _SUNDAY)
    _evening(today, diary, today.start + 1020)


@njit(cache=True)
def _evening(today: Today, diary: Diary, home_at: float) -> None:
    """Plan an evening out or none: Fridays and Saturdays often, Sundays rarely, some people more than others."""
    chance = _EVENINGS_OUT[today.weekday] * today.row[OUTGOING] / 100.0
    life = today.row[LIFE]
    if life in (PUPIL, AT_HOME, PARENT):
        chance *= 0.5
    elif life == STUDENT:
        chance *= 1.5
    if uniform(today.state) >= chance:
        return
    which = choose(today.state, _EVENING)
    if life == PUPIL and which == _NIGHT:
        which = _FRIEND
    late = (50.0 if which == _NIGHT else 0.0) + (30.0 if today.weekday in (4, 5) else 0.0)
    when = max(home_at + 30, today.start + 1150 + late + 38 * bell(today.state))
    _go(diary, when, _favourite(today, which), _PURPOSE[which])
    _go(diary, when + 12 + _stay(today, which), today.row[HOME_AT], TO_HOME)
