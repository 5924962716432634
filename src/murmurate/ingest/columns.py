"""Recognise the columns of a file by their names, in any case and spelling, with overrides."""

from __future__ import annotations

import re
import shlex
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError
from murmurate.ingest.faults import written_like

NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "uid": (
        ("uid",),
        ("user_id", "user", "taxi_id"),
        (
            "person_id",
            "person",
            "driver_id",
            "driver",
            "rider_id",
            "customer_id",
            "individual_id",
            "agent_id",
            "participant_id",
        ),
        ("vehicle_id", "vehicle", "veh_id", "cab_id", "cab", "taxi", "bike_id", "device_id", "device", "medallion", "imei"),
    ),
    "tid": (
        ("tid",),
        ("trip_id", "traj_id", "trajectory_id"),
        ("trip", "ride_id", "rental_id", "journey_id", "track_id", "trip_no", "trip_number"),
    ),
    "datetime": (
        ("datetime",),
        ("timestamp", "tracked_at", "time", "date_time"),
        ("gps_time", "gps_datetime", "gps_timestamp", "recorded_at", "event_time", "time_stamp", "utc_time", "local_time"),
        ("checkin_time", "created_at", "unix_time", "epoch", "date"),
        ("t",),
    ),
    "weekday": (("weekday",), ("day_of_week",)),
    "hour": (("hour",), ("hour_of_day",)),
    "lat": (("lat",), ("latitude",), ("gps_lat", "gps_latitude", "lat_wgs84", "y_lat"), ("y",), ("point_y", "y_coord")),
    "lng": (
        ("lng",),
        ("lon", "longitude", "long"),
        ("gps_lon", "gps_lng", "gps_longitude", "lon_wgs84", "x_lon"),
        ("x",),
        ("point_x", "x_coord"),
    ),
    "geometry": (("geometry", "geom"),),
    "cell": (("cell",), ("cell_id",)),
    "link": (("link",), ("link_id",)),
}
"""Names of each canonical column by tier: an earlier tier wins over later ones, two names of one tier are ambiguous."""

FILE_NAME, ROW_NUMBER = "FILE", "ROW"
"""Words for uid and tid in overrides: the file's name without its ending, and a number of its own for every row."""


MAX_NAME = 200
"""Letters beyond which a name is compared as it is: taking out brackets takes time with the square of their number."""


@lru_cache(maxsize=1 << 14)  # every name is compared with every canonical column, several times a file
def plain(name: str) -> str:
    """Return a name as it is compared: letters and digits alone, in lower case, without what stands in brackets.

    >>> plain("Trip ID"), plain("tripID"), plain("GPS-Latitude (deg)")
    ('tripid', 'tripid', 'gpslatitude')
    """
    if len(name) > MAX_NAME:
        return name
    without = re.sub(r"[\[(].*?[\])]", "", name)
    folded = unicodedata.normalize("NFKD", without).casefold()
    return "".join(letter for letter in folded if letter.isalnum())


_TIERS = {canonical: [{plain(name) for name in tier} for tier in tiers] for canonical, tiers in NAMES.items()}
"""NAMES as they are compared."""


def named_as(name: str, canonical: str) -> bool:
    """Return whether a name is one of a canonical column's."""
    return any(plain(name) in tier for tier in _TIERS[canonical])


def check_overrides(overrides: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Return the overrides as a dict; unknown canonical names are refused."""
    given = dict(overrides or {})
    for name, column in given.items():
        if name not in NAMES:
            raise ParameterError(f"columns maps {', '.join(NAMES)} to names in the file; got {name!r}.{closest(name, NAMES)}")
        if column is not None and not isinstance(column, str):
            raise ParameterError(f"columns[{name!r}] must be a column name, or None to leave it out; got {column!r}.")
    return given


def option(**columns: str) -> str:
    """Return the options that name columns, as the command line and Python write them.

    >>> option(lat="breite")
    "--column lat=breite (in Python columns={'lat': 'breite'})"
    """
    # people copy this into a shell, and names of columns are a stranger's
    flags = " ".join(f"--column {name}={shlex.quote(column)}" for name, column in columns.items())
    pairs = ", ".join(f"{name!r}: {column!r}" for name, column in columns.items())
    return f"{flags} (in Python columns={{{pairs}}})"


def as_name(name: str) -> str:
    """Return the name of a column for a message, or how it is written where it looks like a value of a file without header.

    >>> as_name("Trip ID"), as_name("anna4711"), as_name("60.17")
    ("'Trip ID'", "'aaaa9999'", "'99.99'")
    """
    return written_like(name) if re.search(r"\d{3}|\d[.,:/-]\d|@", name) else repr(name)


def recognise(names: Sequence[str], overrides: Mapping[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """Return canonical name -> name in the file, and everything that is missing or ambiguous.

    >>> recognise(["User ID", "Timestamp", "latitude", "lon"], {})[0]
    {'uid': 'User ID', 'datetime': 'Timestamp', 'lat': 'latitude', 'lng': 'lon'}
    """
    problems: list[str] = []
    found: dict[str, str] = {}
    repeated = sorted({name for name in names if list(names).count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        problems.append(f"ambiguous: more than one column is called {', '.join(map(as_name, repeated))}")
    for canonical, tiers in _TIERS.items():
        if canonical in overrides:
            _take_override(canonical, overrides[canonical], names, found, problems)
            continue
        for tier in tiers:
            candidates = [name for name in dict.fromkeys(names) if plain(name) in tier]
            if len(candidates) > 1:
                shown = ", ".join(map(repr, candidates))
                problems.append(
                    f"ambiguous: {canonical} could be {shown}; say which, such as {option(**{canonical: candidates[0]})}"
                )
            if candidates:
                found[canonical] = candidates[0]
                break
    _settle_overlaps(found, overrides)
    missing = _missing(found)
    if missing:
        shown = ", ".join(map(as_name, names[:30])) or "none"
        problems.append(f"missing: {'; '.join(missing)}. Found the columns {shown}")
    return found, problems


def _take_override(
    canonical: str, wanted: str | None, names: Sequence[str], found: dict[str, str], problems: list[str]
) -> None:
    if wanted is None:
        return
    exact = [name for name in names if name == wanted] or [name for name in names if plain(name) == plain(wanted)]
    if not exact and wanted.isdigit() and 1 <= int(wanted) <= len(names):
        exact = [names[int(wanted) - 1]]
    if not exact and wanted in (FILE_NAME, ROW_NUMBER) and canonical in ("uid", "tid"):
        exact = [wanted]
    if len(set(exact)) == 1:
        found[canonical] = exact[0]
    else:
        shown = ", ".join(map(as_name, names[:30]))
        hint = closest(wanted, names)
        problems.append(f"missing: the column {wanted!r} given for {canonical}.{hint} Found the columns {shown}")


def _settle_overlaps(found: dict[str, str], overrides: Mapping[str, str | None]) -> None:
    """Drop weekday and hour beside a full time, and a geometry beside coordinates, unless the caller named both."""
    if "datetime" in found:
        for name in ("weekday", "hour"):
            if name not in overrides:
                found.pop(name, None)
    if "lat" in found and "lng" in found and "geometry" not in overrides:
        found.pop("geometry", None)
    elif "geometry" in found:
        found.pop("lat", None)
        found.pop("lng", None)


def _missing(found: Mapping[str, str]) -> list[str]:
    missing = []
    if "uid" not in found:
        if "tid" in found:
            hint = f" (if each trip is a person of its own, say {option(uid=found['tid'])})"
        else:
            hint = f" (if each file is a person, say {option(uid=FILE_NAME)}; if each row is, {option(uid=ROW_NUMBER)})"
        missing.append(f"who moved (uid, user_id, taxi_id, driver_id, vehicle_id, device_id){hint}")
    if not ({"geometry", "cell", "link"} & set(found)):
        places = {"lat": "latitude, y, or a geometry", "lng": "lon, longitude, x, or a geometry"}
        missing += [f"{name} ({words})" for name, words in places.items() if name not in found]
    elif "geometry" not in found and ("lat" in found) != ("lng" in found):
        missing.append("lng, beside lat" if "lat" in found else "lat, beside lng")
    return missing
