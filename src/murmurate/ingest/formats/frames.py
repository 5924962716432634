"""Read tables in memory: polars, pandas, pyarrow, geopandas, MovingPandas, trackintel."""

from __future__ import annotations

from collections import Counter
from typing import Any

import polars as pl
import pyarrow as pa

from murmurate.errors import ParameterError
from murmurate.ingest.faults import Place
from murmurate.ingest.formats.geometry import is_degrees
from murmurate.ingest.formats.parquet import as_polars
from murmurate.ingest.points import Batch


def batch_of(source: Any) -> Batch:
    """Return the rows of a frame as a batch."""
    if isinstance(source, pl.DataFrame):
        return Batch(source, Place())
    if isinstance(source, pl.LazyFrame):
        return Batch(source.collect(), Place())
    if isinstance(source, (pa.Table, pa.RecordBatch)):
        table = pa.Table.from_batches([source]) if isinstance(source, pa.RecordBatch) else source
        return Batch(as_polars(table), Place())
    if _is_a(source, "movingpandas", "TrajectoryCollection"):
        return _trajectories(source.trajectories)
    if _is_a(source, "movingpandas", "Trajectory"):
        return _trajectories([source])
    if _is_a(source, "pandas", "DataFrame"):
        geometry = source.geometry.name if _is_a(source, "geopandas", "GeoDataFrame") and _has_geometry(source) else None
        return _pandas(source, geometry)
    raise ParameterError(
        "a source is a path, a glob, or a frame of polars, pandas, pyarrow, geopandas, MovingPandas or trackintel; "
        f"got {type(source).__name__}."
    )


def _is_a(source: Any, package: str, name: str) -> bool:
    """Return whether this is an instance, without importing the package."""
    return any(kind.__module__.split(".")[0] == package and kind.__name__ == name for kind in type(source).__mro__)


def _has_geometry(source: Any) -> bool:
    return getattr(source, "_geometry_column_name", None) in source.columns


def _trajectories(trajectories: list[Any]) -> Batch:
    """Read MovingPandas: each trajectory is a trip of its object where one is named, else of itself."""
    if not trajectories:
        return Batch(pl.DataFrame(schema={"uid": pl.String, "lat": pl.Float64, "lng": pl.Float64}), Place())
    parts = []
    for trajectory in trajectories:
        part = _pandas(trajectory.df, trajectory.get_geom_col())
        person = trajectory.id if trajectory.obj_id is None else trajectory.obj_id
        parts.append(part.frame.with_columns(pl.lit(str(person)).alias("uid"), pl.lit(str(trajectory.id)).alias("tid")))
    return Batch(pl.concat(parts, how="diagonal_relaxed"), Place(), part.crs)


def _pandas(source: Any, geometry: str | None) -> Batch:
    frame = source
    crs: object = None
    places: list[pl.Series] = []
    if geometry is not None:
        shapes = frame[geometry]
        crs = None if shapes.crs is None or is_degrees(shapes.crs) else shapes.crs
        places.append(pl.Series(geometry, list(shapes.to_wkb()), dtype=pl.Binary))
        frame = frame.drop(columns=geometry)
    index = frame.index
    if _is_a(index, "pandas", "DatetimeIndex"):
        frame = frame.rename_axis(_free(index.name or "datetime", frame.columns)).reset_index()
    elif index.names != [None] and all(name is not None and name not in frame.columns for name in index.names):
        frame = frame.reset_index()
    columns = [_series(str(name), frame.iloc[:, position]) for position, name in enumerate(frame.columns)]
    repeated = [name for name, count in Counter(column.name for column in columns).items() if count > 1]
    if repeated:
        raise ParameterError(f"the frame has more than one column called {repeated[0]!r}.")
    return Batch(pl.DataFrame([*columns, *places]), Place(), crs)


def _free(name: str, taken: Any) -> str:
    while name in taken:
        name = f"index_{name}"
    return name


def _series(name: str, column: Any) -> pl.Series:
    try:
        array = pa.Array.from_pandas(column)
    except (pa.ArrowException, ValueError, TypeError):  # objects of several kinds: their text, so that faults can be named
        array = pa.array(
            [None if missing else str(value) for value, missing in zip(column, column.isna(), strict=True)], pa.string()
        )
    return as_polars(pa.table({name: array}))[name]
