"""Parse times written as text: local clock time, and the offset from UTC that each text states."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, datetime

import numpy as np
import polars as pl
from numpy.typing import NDArray

from murmurate.errors import ParameterError

NAIVE = 32_767
"""Offset of a time that states none: beyond any in minutes, the largest of 16 bits."""
UNREADABLE = 32_766
"""Offset of a text that is no time."""

_PLAIN = r"^[0-9]{4}-[01][0-9]-[0-3][0-9]([T ])[0-2][0-9]:[0-5][0-9]:[0-5][0-9]"
"""The usual ISO 8601 text up to its seconds: 19 characters, which polars reads without taking them apart first."""
_FRACTION = r"[.,][0-9]"
"""Pattern of the beginning of a fraction of a second."""
_CLOCK = (
    r"[Tt ]+(?<H>[0-9]{1,2}):(?<M>[0-5][0-9])(?::(?<S>[0-5][0-9])(?<f>[.,][0-9]+)?)?(?: ?(?<p>[AaPp])\.?[Mm]\.?)?(?<rest>.*)$"
)
"""Hour, minute, the half of the day where it is named, and what follows, after any of the dates below."""
ORDERS: Mapping[str, str] = {
    "ymd": r"^(?<Y>[0-9]{4})(?<s1>[-/.])(?<m>[0-9]{1,2})(?<s2>[-/.])(?<d>[0-9]{1,2})" + _CLOCK,
    "dmy": r"^(?<d>[0-9]{1,2})(?<s1>[./-])(?<m>[0-9]{1,2})(?<s2>[./-])(?<Y>[0-9]{4})" + _CLOCK,
    "mdy": r"^(?<m>[0-9]{1,2})(?<s1>[/-])(?<d>[0-9]{1,2})(?<s2>[/-])(?<Y>[0-9]{4})" + _CLOCK,
}
"""Year, month and day in the orders that are read. Only the first says by itself which is which."""

_SAMPLE = datetime(2008, 5, 17, 22, 41, tzinfo=UTC)
"""A time that a usable format must write and read back: day, month and both halves of the day differ."""


def parse(text: pl.Series, order: str = "ymd") -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Read microseconds since 1970 in local clock time, and the offset from UTC in minutes.

    Read are dates in one of `ORDERS` with `/` or `-`, one or two digits a field, then `HH:MM[:SS[.fraction]]`, and nothing,
    `Z`, `UTC`, `GMT`, `+HH`, `+HHMM` or `+HH:MM` after it. The offset is `NAIVE` where none is stated and `UNREADABLE`
    where the text is no time. Times are UTC once the offset is taken off.

    >>> clock, offset = parse(pl.Series(["1970-01-01T02:00:00+02:00", "1970-01-01 00:00", "soon"]))
    >>> clock.tolist(), offset.tolist()
    ([7200000000, 0, 0], [120, 32767, 32766])
    """
    if not len(text):
        return np.zeros(0, np.int64), np.zeros(0, np.int16)
    plain = re.match(f"{_PLAIN}({_FRACTION}+)?", text[0] or "") if order == "ymd" else None
    digits = f"{_FRACTION}{{{len(plain[2]) - 1}}}" if plain and plain[2] else ""
    if plain and text.str.contains(_PLAIN + digits).all():
        fraction = text.str.slice(19, len(plain[2])) if plain[2] else None
        wall = _read(text.str.head(19), f"%Y-%m-%d{plain[1]}%H:%M:%S")
        clock, offset = _together(wall, fraction, text.str.slice(plain.end()))
        if not (offset == UNREADABLE).any():
            return clock, offset
    parts = text.fill_null("").str.strip_chars(" ").str.extract_groups(ORDERS[order]).struct.unnest()
    two = {name: parts[name].str.zfill(2) for name in ("m", "d")} | {"H": _hours(parts["H"], parts["p"])}
    written = parts["Y"] + two["m"] + two["d"] + two["H"] + parts["M"] + parts["S"].fill_null("00")
    wall = _read(written, "%Y%m%d%H%M%S")
    return _together(wall.set((parts["s1"] != parts["s2"]).fill_null(True), None), parts["f"], parts["rest"].fill_null(""))


def _hours(hours: pl.Series, half: pl.Series) -> pl.Series:
    """Return hours as two digits of the 24-hour clock; 12 AM is midnight, and hours beyond 12 of a half are no time."""
    if half.null_count() == len(half):
        return hours.str.zfill(2)
    named, number = half.is_not_null(), hours.cast(pl.Int64, strict=False)
    shifted = number % 12 + 12 * (half.str.to_lowercase() == "p").cast(pl.Int64)
    legal = pl.select(pl.when(number.is_between(1, 12)).then(shifted)).to_series()
    return pl.select(pl.when(named).then(legal).otherwise(number)).to_series().cast(pl.String).str.zfill(2)


def parse_as(text: pl.Series, time_format: str) -> pl.Series:
    """Read texts by a format as strptime has it: in UTC where the format has an offset, else in local clock time.

    Null where a text does not follow the format.
    """
    return _read(text.str.strip_chars(" "), time_format)


def check_format(time_format: str) -> None:
    """Refuse a format without date, hour or minute, or one that would ignore the zone in a text."""
    try:
        written = pl.Series([_SAMPLE]).dt.strftime(time_format)
        back = parse_as(written, time_format).dt.replace_time_zone(None)[0]
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, TypeError):
        back = None
    if back != _SAMPLE.replace(tzinfo=None) or "%Z" in time_format:
        raise ParameterError(
            f"time_format must tell date, hour and minute, such as '%d/%m/%Y %H:%M' or '%d.%m.%Y %H:%M:%S %z'; got "
            f"{time_format!r}. Names of zones (%Z) are not read: use time_zone."
        )


def _read(text: pl.Series, time_format: str) -> pl.Series:
    # times seldom repeat, so that polars' cache of texts costs more than it saves
    return text.str.strptime(pl.Datetime("us"), time_format, strict=False, cache=False)


def _together(wall: pl.Series, fraction: pl.Series | None, rest: pl.Series) -> tuple[NDArray[np.int64], NDArray[np.int16]]:
    """Add fractions of seconds (cut off after microseconds) and parse the offsets."""
    clock = wall.to_physical()
    if fraction is not None:
        clock = clock + fraction.str.slice(1, 6).str.pad_end(6, "0").cast(pl.Int64).fill_null(0)
    zones = rest.unique()
    minutes = pl.Series([_offset(zone) for zone in zones], dtype=pl.Int16)
    if len(zones) == 1 and minutes[0] != UNREADABLE and not wall.null_count():
        return clock.to_numpy(), np.full(len(clock), minutes[0], np.int16)
    offset = rest.replace_strict(zones, minutes, return_dtype=pl.Int16)
    unreadable = wall.is_null() | (offset == UNREADABLE)
    return clock.set(unreadable, 0).to_numpy(), offset.set(unreadable, UNREADABLE).to_numpy()


def _offset(zone: str) -> int:
    """Return the minutes that the clock is ahead of UTC, from what follows the time."""
    zone = zone.strip(" ")
    if zone in ("Z", "z", "UTC", "GMT"):
        return 0
    found = re.fullmatch(r"([+-])(0[0-9]|1[0-5])(?::?([0-5][0-9]))?", zone, re.ASCII)
    if found is None:
        return UNREADABLE if zone else NAIVE
    return (1 if found[1] == "+" else -1) * (60 * int(found[2]) + int(found[3] or 0))
