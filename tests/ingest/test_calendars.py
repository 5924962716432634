"""Calendars against published lists of single years."""

from datetime import date

import pytest

from murmurate.errors import ParameterError
from murmurate.ingest.calendars import CALENDARS, easter, holidays_between

PUBLISHED = {
    ("US", 2008): ["01-01", "01-21", "02-18", "05-26", "07-04", "09-01", "10-13", "11-11", "11-27", "12-25"],
    # New Year's Day 2022 fell on a Saturday, Independence Day and Juneteenth on weekends of their own.
    ("US", 2021): ["01-01", "01-18", "02-15", "05-31", "06-18", "07-05", "09-06", "10-11", "11-11", "11-25", "12-24", "12-31"],
    ("FI", 2024): ["01-01", "01-06", "03-29", "03-31", "04-01", "05-01", "05-09", "05-19",
                   "06-22", "11-02", "12-06", "12-25", "12-26"],
    ("PT", 2014): ["01-01", "04-18", "04-20", "04-25", "05-01", "06-10", "08-15", "12-08", "12-25"],
    ("PT", 2016): [
        "01-01", "03-25", "03-27", "04-25", "05-01", "05-26", "06-10", "08-15", "10-05", "11-01", "12-01", "12-08", "12-25"
    ],
    ("HU", 2023): ["01-01", "03-15", "04-07", "04-09", "04-10", "05-01", "05-28", "05-29",
                   "08-20", "10-23", "11-01", "12-25", "12-26"],
    ("CN_fixed", 2009): ["01-01", "05-01", "10-01", "10-02", "10-03"],
}  # fmt: skip


@pytest.mark.parametrize(("calendar", "year"), PUBLISHED)
def test_a_year_as_published(calendar, year):
    found = sorted(holidays_between(calendar, date(year, 1, 1), date(year, 12, 31)))
    assert [f"{day:%m-%d}" for day in found] == PUBLISHED[calendar, year]


@pytest.mark.parametrize("day", [date(1818, 3, 22), date(1943, 4, 25), date(2000, 4, 23), date(2019, 4, 21), date(2038, 4, 25)])
def test_easter_at_its_extremes(day):
    assert easter(day.year) == day


def test_bounds_are_included_and_unknown_names_refused():
    assert holidays_between("FI", date(2024, 12, 25), date(2024, 12, 25)) == {date(2024, 12, 25)}
    assert holidays_between("FI", date(2024, 12, 27), date(2024, 12, 31)) == frozenset()
    with pytest.raises(ParameterError, match="calendar"):
        holidays_between("us", date(2024, 1, 1), date(2024, 12, 31))


def test_the_end_of_time_is_no_error():
    for calendar in CALENDARS:
        assert isinstance(holidays_between(calendar, date(9998, 1, 1), date.max), frozenset)
