"""Load the trips a study runs on: made here or read from a file, cleaned, and numbered so that repeats can be separated."""

from __future__ import annotations

import os
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.parameters import whole
from murmurate.core.space import Integers, Places, Space
from murmurate.core.trips import Identity, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.segment import drop_brief, drop_single_visits
from murmurate.judging.study.spec import DatasetSpec
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import Side
from murmurate.spaces import Plane, parse

DATA_FOLDER = "MURMURATE_DATA"
"""Environment variable that names a folder of data files."""


class Absent(InputError):
    """Raised where the file of a dataset is not here; the message is the reason a reader is shown."""


@dataclass(frozen=True, eq=False)
class Dataset:
    """Hold private (or demo) trips whose uid and tid are their positions, and the public spaces that words stand for."""

    name: str
    trips: Trips
    identity: Identity
    spaces: dict[str, Space]

    @cached_property
    def side(self) -> Side:
        """The originals as metrics read them, on the grid of the study; computed once for all repeats."""
        grid = self.spaces.get("grid")
        return compare(self.trips, self.trips, grid=grid if isinstance(grid, Places) else None).original

    def repeated(self, times: int) -> Trips:
        """Return as many copies of all trips, each of people of its own: one run over it is `times` independent runs."""
        if times == 1:
            return self.trips
        points, trips = self.trips.n_points, self.trips
        copy = np.repeat(np.arange(times, dtype=np.int64), points)
        rows = trips.table.select(pl.all().exclude("uid", "tid"))[np.tile(np.arange(points), times)]
        uid = trips.table["uid"].to_numpy()
        table = rows.with_columns(
            pl.Series("uid", np.tile(uid, times) + copy * trips.n_users),
            pl.Series("tid", np.tile(trips.point_trip, times) + copy * trips.n_trips),
        )
        return Trips(table, trips.space, trips.time_zone)

    def positions(self, released: Trips) -> tuple[Integers, Integers]:
        """Return, for each released trip that kept its tid, its repeat and its original."""
        return np.divmod(released.trip_ids.to_numpy().astype(np.int64), self.trips.n_trips)


_LOADED: dict[tuple[object, ...], Dataset] = {}
"""Datasets that this process has read, the oldest first."""
_MAX_LOADED = 4
"""Datasets kept in memory by a process. Set by hand."""


def load(spec: DatasetSpec, folder: str = ".") -> Dataset:
    """Return the dataset, read once for all cells that run in this process; `Absent` where its file is not here."""
    path = _place(spec, folder) if spec.kind == "file" else None
    seen = path.stat() if path is not None else None
    key = (repr(spec), path, seen and (seen.st_mtime_ns, seen.st_size))  # a file that was changed is read again
    if key not in _LOADED:
        while len(_LOADED) >= _MAX_LOADED:
            del _LOADED[next(iter(_LOADED))]
        _LOADED[key] = _load(spec, path)
    return _LOADED[key]


def _load(spec: DatasetSpec, path: Path | None) -> Dataset:
    spaces: dict[str, Space] = {}
    if spec.kind == "tony900":
        from murmurate.demo import tony900
        from murmurate.demo.tony900 import CAR_PARK

        trips = tony900(**spec.make)
        spaces["plane"] = CAR_PARK
    elif spec.kind == "city":
        from murmurate.demo import city

        town = city(**spec.make)
        trips, spaces = town.trips, town.spaces(250.0)
    else:
        from murmurate.ingest.read import read

        trips = read(str(path), **spec.read)
    identity = trips.identity
    trips = _cleaned(trips, spec)
    if not trips.n_trips:
        raise InputError(f"no trip of dataset {spec.name!r} is left after cleaning.", "loosen [datasets.NAME.clean].")
    if spec.centre is not None:
        spaces["plane"] = Plane(*spec.centre)
    if spec.grid is not None:
        spaces["grid"] = parse(spec.grid)
    return Dataset(spec.name, _numbered(trips), identity, spaces)


def _place(spec: DatasetSpec, folder: str) -> Path:
    name = spec.file or ""
    places = [Path(folder) / name, Path(name)]
    if os.environ.get(DATA_FOLDER):
        places.append(Path(os.environ[DATA_FOLDER]) / name)
    for path in places:
        if path.exists():
            return path.resolve()
    raise Absent(
        f"{name} is neither beside the study, nor in the current folder, nor in the folder that {DATA_FOLDER} names."
        + (f" {spec.cite}" if spec.cite else "")
    )


def _cleaned(trips: Trips, spec: DatasetSpec) -> Trips:
    wanted: dict[str, Any] = dict(spec.clean)
    if "day" in wanted:
        try:
            day = wanted["day"] if isinstance(wanted["day"], date) else date.fromisoformat(str(wanted["day"]))
        except ValueError:
            raise ParameterError(f"day must be a date such as 2014-04-24; got {wanted['day']!r}.") from None
        begun = trips.local_day[trips.offsets[:-1]]
        trips = trips.take_trips(begun == (day - date(1970, 1, 1)).days)
    if "min_points" in wanted:
        trips, _ = drop_single_visits(trips, min_visits=wanted["min_points"])
    if "min_duration_s" in wanted:
        trips, _ = drop_brief(trips, min_duration_s=wanted["min_duration_s"])
    if "sampled_trips" in wanted:
        whole("sampled_trips", wanted["sampled_trips"])
        if trips.n_trips > wanted["sampled_trips"]:
            chosen = np.random.default_rng(1).choice(trips.n_trips, size=wanted["sampled_trips"], replace=False)
            trips = trips.take_trips(chosen)
    return trips


def _numbered(trips: Trips) -> Trips:
    user = pl.Series("uid", trips.trip_user[trips.point_trip])
    return Trips(trips.table.with_columns(user, pl.Series("tid", trips.point_trip)), trips.space, trips.time_zone)
