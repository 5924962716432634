"""Compute public holidays by rule, for the few calendars whose rules are short enough to state and check.

US         federal holidays since 1971, moved to Friday or Monday as observed
FI, PT, HU national public holidays since 1990; Portugal without the four suspended from 2013 to 2015
CN_fixed   only the fixed dates (1 January, 1 May, 1 to 3 October): festivals of the lunar calendar are not computed

Days that a government swaps for one year (bridge days, makeup Saturdays) are in no rule: give dates instead.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import date, timedelta

from murmurate.core.parameters import one_of

MONDAY, THURSDAY, SATURDAY, SUNDAY = 0, 3, 5, 6
"""Weekdays as `date.weekday` numbers them."""


def holidays_between(calendar: str, first: date, last: date) -> frozenset[date]:
    """Return the holidays of a named calendar from `first` to `last`, both included.

    >>> sorted(holidays_between("US", date(2008, 5, 1), date(2008, 7, 31)))
    [datetime.date(2008, 5, 26), datetime.date(2008, 7, 4)]
    """
    one_of("calendar", calendar, CALENDARS)
    # One year more: New Year's Day on a Saturday is observed on the last day of the year before.
    years = range(first.year, min(last.year + 2, date.max.year))
    return frozenset(day for year in years for day in CALENDARS[calendar](year) if first <= day <= last)


def _united_states(year: int) -> Iterator[date]:
    fixed = [(1, 1), (7, 4), (11, 11), (12, 25)] + ([(6, 19)] if year >= 2021 else [])
    for month, day in fixed:
        yield _observed(date(year, month, day))
    if year >= 1986:
        yield _nth(year, 1, MONDAY, 3)
    yield _nth(year, 2, MONDAY, 3)
    yield _nth(year, 6, MONDAY, 1) - timedelta(weeks=1)  # the last Monday of May
    yield _nth(year, 9, MONDAY, 1)
    yield _nth(year, 10, MONDAY, 2)
    yield _nth(year, 11, THURSDAY, 4)


def _finland(year: int) -> Iterator[date]:
    yield from _fixed(year, (1, 1), (1, 6), (5, 1), (12, 6), (12, 25), (12, 26))
    yield from _after_easter(year, -2, 0, 1, 39, 49)
    yield _on_or_after(date(year, 6, 20), SATURDAY)  # Midsummer Day
    yield _on_or_after(date(year, 10, 31), SATURDAY)  # All Saints' Day


def _portugal(year: int) -> Iterator[date]:
    yield from _fixed(year, (1, 1), (4, 25), (5, 1), (6, 10), (8, 15), (12, 8), (12, 25))
    yield from _after_easter(year, -2, 0)
    if not 2013 <= year <= 2015:
        yield from _fixed(year, (10, 5), (11, 1), (12, 1))
        yield from _after_easter(year, 60)


def _hungary(year: int) -> Iterator[date]:
    yield from _fixed(year, (1, 1), (3, 15), (5, 1), (8, 20), (10, 23), (12, 25), (12, 26))
    yield from _after_easter(year, 0, 1, 49, 50)
    if year >= 1999:
        yield date(year, 11, 1)
    if year >= 2017:
        yield from _after_easter(year, -2)


def _china_fixed(year: int) -> Iterator[date]:
    yield from _fixed(year, (1, 1), (5, 1), (10, 1), (10, 2), (10, 3))


CALENDARS: dict[str, Callable[[int], Iterator[date]]] = {
    "US": _united_states,
    "FI": _finland,
    "PT": _portugal,
    "HU": _hungary,
    "CN_fixed": _china_fixed,
}
"""Calendars by the name a user types."""


def easter(year: int) -> date:
    """Return Easter Sunday of the Gregorian calendar (the anonymous algorithm of 1876).

    >>> easter(2024)
    datetime.date(2024, 3, 31)
    """
    golden, century, of_century = year % 19, year // 100, year % 100
    leaps, rest = divmod(century, 4)
    shift = (century - (century + 8) // 25 + 1) // 3
    moon = (19 * golden + century - leaps - shift + 15) % 30
    weekday = (32 + 2 * rest + 2 * (of_century // 4) - moon - of_century % 4) % 7
    late = (golden + 11 * moon + 22 * weekday) // 451
    month, day = divmod(moon + weekday - 7 * late + 114, 31)
    return date(year, month, day + 1)


def _fixed(year: int, *days: tuple[int, int]) -> list[date]:
    return [date(year, month, day) for month, day in days]


def _after_easter(year: int, *days: int) -> list[date]:
    return [easter(year) + timedelta(days=day) for day in days]


def _nth(year: int, month: int, weekday: int, n: int) -> date:
    return _on_or_after(date(year, month, 1), weekday) + timedelta(weeks=n - 1)


def _on_or_after(day: date, weekday: int) -> date:
    return day + timedelta(days=(weekday - day.weekday()) % 7)


def _observed(day: date) -> date:
    return day + timedelta(days={SATURDAY: -1, SUNDAY: 1}.get(day.weekday(), 0))
