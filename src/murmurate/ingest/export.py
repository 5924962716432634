"""Export trips in the conventions of other tools."""

from __future__ import annotations

import errno
import importlib
import os
import tempfile
import warnings
from pathlib import Path
from typing import Any

import polars as pl

from murmurate.core.trips import Trips
from murmurate.errors import InputError, MissingPart, OutputError

FORMULA = r"^[\t\r\n]|^\s*[=+\-@\u{FF1D}\u{FF0B}\u{FF0D}\u{FF20}]"
"""Pattern of text that a spreadsheet would run as a formula; some take the wide signs of East Asian keyboards as well."""


def to_pandas(trips: Trips) -> Any:
    """Return a pandas frame with the canonical columns; times are UTC."""
    pd = _need("pandas")
    columns = {}
    for series in trips.table:
        values = series.cast(pl.String) if isinstance(series.dtype, (pl.Categorical, pl.Enum)) else series
        if isinstance(values.dtype, pl.Datetime):
            zone = values.dtype.time_zone
            stamps = pd.Series(values.dt.replace_time_zone(None).to_numpy())
            columns[series.name] = stamps.dt.tz_localize("UTC").dt.tz_convert(zone) if zone else stamps
        else:
            columns[series.name] = pd.Series(values.to_list() if values.dtype == pl.String else values.to_numpy())
    return pd.DataFrame(columns)


def to_skmob(trips: Trips) -> Any:
    """Return a pandas frame as scikit-mobility's TrajDataFrame takes it: uid, tid, datetime (local, without zone), lat, lng."""
    _need_columns(trips, "datetime", "lat", "lng")
    frame = to_pandas(trips)
    frame["datetime"] = frame["datetime"].dt.tz_convert(trips.time_zone).dt.tz_localize(None)
    first = ["uid", "tid", "datetime", "lat", "lng"]
    return frame[first + [name for name in frame.columns if name not in first]]


def to_trackintel(trips: Trips) -> Any:
    """Return positionfixes as trackintel has them: user_id, tracked_at, geom in EPSG:4326; the trip stays as trip_id."""
    names = {"uid": "user_id", "tid": "trip_id", "datetime": "tracked_at"}
    _need_columns(trips, "datetime")
    fixes = to_geopandas(trips).rename(columns=names).rename_geometry("geom")
    fixes.index.name = "id"
    return fixes


def to_movingpandas(trips: Trips) -> Any:
    """Return a MovingPandas TrajectoryCollection; a trajectory is a trip, its object the person."""
    movingpandas = _need("movingpandas")
    _need_columns(trips, "datetime")
    points = to_geopandas(trips)
    points["traj_id"] = points["uid"].astype(str) + "/" + points["tid"].astype(str)
    points["datetime"] = points["datetime"].dt.tz_localize(None)
    return movingpandas.TrajectoryCollection(points, traj_id_col="traj_id", obj_id_col="uid", t="datetime")


def to_geopandas(trips: Trips) -> Any:
    """Return a geopandas frame of points in EPSG:4326, with the canonical columns."""
    _need_columns(trips, "lat", "lng")
    geopandas = _need("geopandas")
    frame = to_pandas(trips)
    places = geopandas.points_from_xy(frame.pop("lng"), frame.pop("lat"))
    return geopandas.GeoDataFrame(frame, geometry=places, crs="EPSG:4326")


def write_parquet(trips: Trips, path: str | Path) -> None:
    """Write one Parquet file with the canonical columns to `path`, whole or not at all."""
    _write(Path(path), trips.table.write_parquet)


def write_csv(trips: Trips, path: str | Path) -> None:
    """Write one CSV file to `path`: times in ISO 8601 UTC, and no text that a spreadsheet would run as a formula."""
    table = inert(trips.table)
    table = table.with_columns(
        series.dt.strftime("%Y-%m-%dT%H:%M:%S%.fZ") for series in table if series.dtype == pl.Datetime("us", "UTC")
    )
    _write(Path(path), table.write_csv)


def inert(table: pl.DataFrame) -> pl.DataFrame:
    """Put an apostrophe before names and texts that would be formulas; spreadsheets then show them as text.

    >>> inert(pl.DataFrame({"name": ["=1+1", "a"], "-trips": [-1, 2]})).write_csv().splitlines()
    ["name,'-trips", "'=1+1,-1", 'a,2']
    """
    texts = {n: pl.col(n).cast(pl.String) for n, kind in table.schema.items() if kind in (pl.String, pl.Categorical, pl.Enum)}
    guarded = table.with_columns(
        pl.when(text.str.contains(FORMULA)).then(pl.lit("'") + text).otherwise(text).alias(name) for name, text in texts.items()
    )
    names = pl.Series(table.columns, dtype=pl.String)
    return guarded.rename({name: f"'{name}" for name in names.filter(names.str.contains(FORMULA))})


def _write(path: Path, write: Any) -> None:
    if path.exists() or path.is_symlink():
        raise OutputError(f"{path} exists already; name a new file.")
    temporary: str | None = None
    try:
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=f".{path.name}-")
        os.close(handle)
        write(temporary)
        os.replace(temporary, path)
    except OSError as error:
        full = error.errno == errno.ENOSPC
        raise OutputError(f"{path} could not be written: {'the disk is full' if full else error.strerror or error}.") from error
    finally:
        if temporary is not None:
            Path(temporary).unlink(missing_ok=True)


def _need(package: str) -> Any:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # MovingPandas warns of its own optional parts
            return importlib.import_module(package)
    except ImportError:
        raise MissingPart(f"{package} is not installed; it comes with: pip install 'murmurate[geo]'.") from None


def _need_columns(trips: Trips, *names: str) -> None:
    missing = [name for name in names if name not in trips.columns]
    if missing:
        raise InputError(f"this convention needs {', '.join(names)}; these trips have no {', '.join(missing)}.")
