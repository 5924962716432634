"""Recognise the columns of a file by their names, in any case, with overrides."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from murmurate.core.parameters import closest
from murmurate.errors import ParameterError

NAMES: dict[str, tuple[tuple[str, ...], ...]] = {
    "uid": (("uid",), ("user_id", "userid", "user", "taxi_id")),
    "tid": (("tid",), ("trip_id", "tripid", "traj_id", "trajectory_id")),
    "datetime": (("datetime",), ("timestamp", "tracked_at", "time", "date_time"), ("t",)),
    "weekday": (("weekday",), ("day_of_week",)),
    "hour": (("hour",), ("hour_of_day",)),
    "lat": (("lat",), ("latitude",), ("y",)),
    "lng": (("lng",), ("lon", "longitude", "long"), ("x",)),
    "geometry": (("geometry", "geom"),),
    "cell": (("cell",), ("cell_id",)),
    "link": (("link",), ("link_id",)),
}
"""Names of each canonical column by tier: an earlier tier wins over later ones, two names of one tier are ambiguous."""


def check_overrides(overrides: Mapping[str, str | None] | None) -> dict[str, str | None]:
    """Return the overrides as a dict; unknown canonical names are refused."""
    given = dict(overrides or {})
    for name, column in given.items():
        if name not in NAMES:
            raise ParameterError(f"columns maps {', '.join(NAMES)} to names in the file; got {name!r}.{closest(name, NAMES)}")
        if column is not None and not isinstance(column, str):
            raise ParameterError(f"columns[{name!r}] must be a column name, or None to leave it out; got {column!r}.")
    return given


def recognise(names: Sequence[str], overrides: Mapping[str, str | None]) -> tuple[dict[str, str], list[str]]:
    """Return canonical name -> name in the file, and everything that is missing or ambiguous.

    >>> recognise(["user_id", "Timestamp", "latitude", "lon"], {})[0]
    {'uid': 'user_id', 'datetime': 'Timestamp', 'lat': 'latitude', 'lng': 'lon'}
    """
    problems: list[str] = []
    found: dict[str, str] = {}
    repeated = sorted({name for name in names if list(names).count(name) > 1}) if len(set(names)) < len(names) else []
    if repeated:
        problems.append(f"ambiguous: more than one column is called {', '.join(map(repr, repeated))}")
    for canonical, tiers in NAMES.items():
        if canonical in overrides:
            _take_override(canonical, overrides[canonical], names, found, problems)
            continue
        for tier in tiers:
            candidates = [name for name in dict.fromkeys(names) if name.strip().lower() in tier]
            if len(candidates) > 1:
                shown = ", ".join(map(repr, candidates))
                problems.append(f"ambiguous: {canonical} could be {shown}; say which with columns={{{canonical!r}: ...}}")
            if candidates:
                found[canonical] = candidates[0]
                break
    _settle_overlaps(found, overrides)
    missing = _missing(found)
    if missing:
        shown = ", ".join(map(repr, names[:30])) or "none"
        problems.append(f"missing: {'; '.join(missing)}. Found the columns {shown}")
    return found, problems


def _take_override(
    canonical: str, wanted: str | None, names: Sequence[str], found: dict[str, str], problems: list[str]
) -> None:
    if wanted is None:
        return
    exact = [name for name in names if name == wanted] or [name for name in names if name.lower() == wanted.lower()]
    if len(set(exact)) == 1:
        found[canonical] = exact[0]
    else:
        problems.append(f"missing: the column {wanted!r} given for {canonical}.{closest(wanted, names)}")


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
        hint = ""
        if "tid" in found:
            hint = f" (if each trip is a person of its own, say columns={{'uid': {found['tid']!r}}})"
        missing.append(f"who moved (uid, user_id, user, taxi_id){hint}")
    if not ({"geometry", "cell", "link"} & set(found)):
        places = {"lat": "latitude, y, or a geometry", "lng": "lon, longitude, x, or a geometry"}
        missing += [f"{name} ({words})" for name, words in places.items() if name not in found]
    elif "geometry" not in found and ("lat" in found) != ("lng" in found):
        missing.append("lng, beside lat" if "lat" in found else "lat, beside lng")
    return missing
