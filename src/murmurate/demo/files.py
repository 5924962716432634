"""Write the demo data as files: what a custodian would hold, and the truth in a folder of its own."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from murmurate.core import progress
from murmurate.demo.city import FIRST_DAY, City, city_partitions
from murmurate.demo.plan import CITY_NAME, TIME_ZONE
from murmurate.demo.tony900 import tony900
from murmurate.errors import OutputError


def write_city(
    folder: str | Path,
    *,
    people: int = 200,
    days: int = 14,
    seed: int = 1,
    interval_s: int = 15,
    noise_m: float = 5.0,
    gap_share: float = 0.004,
    outlier_share: float = 0.001,
    across_km: float = 8.0,
    people_per_partition: int = 500,
) -> Path:
    """Write the city as a stream: trips, network, places, daily traces, `truth/`; memory stays that of one partition.

    The options are those of `city_partitions`. Returns the new folder.
    """
    options = {
        "people": people,
        "days": days,
        "seed": seed,
        "interval_s": interval_s,
        "noise_m": noise_m,
        "gap_share": gap_share,
        "outlier_share": outlier_share,
        "across_km": across_km,
    }
    parts = city_partitions(**options, people_per_partition=people_per_partition)  # type: ignore[arg-type]
    return _whole_folder(Path(folder), lambda part: _write_parts(part, parts, options))


def write_tony900(folder: str | Path, *, skaters: int = 1000, seed: int = 1) -> Path:
    """Write Tony-900 with this many `skaters` as `trips.parquet`; returns the new folder."""
    trips = tony900(skaters=skaters, seed=seed)
    about = {"name": "Tony-900", "skaters": skaters, "seed": seed, "space": trips.space.spec() if trips.space else None}

    def fill(part: Path) -> None:
        trips.table.write_parquet(part / "trips.parquet")
        _write_json(part / "about.json", about)

    return _whole_folder(Path(folder), fill)


def _write_parts(folder: Path, parts: Iterator[City], options: dict[str, Any]) -> None:
    import pyarrow.parquet as pq

    from murmurate.spaces.road.storage import save

    (folder / "truth").mkdir()
    writers: dict[str, pq.ParquetWriter] = {}
    with ExitStack() as stack:
        done = 0
        for number, town in enumerate(parts):
            if number == 0:
                save(town.network, folder / "network.npz")
                town.daily.places.write_parquet(folder / "places.parquet")
                town.truth.places.write_parquet(folder / "truth" / "places.parquet")
                _write_json(folder / "about.json", _about(town, options))
            tables = {"trips": town.trips.table, "daily": town.daily.table()}
            tables |= {"truth/trips": town.truth.trips, "truth/people": town.truth.people}
            for name, table in tables.items():
                rows = table.to_arrow()
                if number == 0:
                    writer = pq.ParquetWriter(folder / f"{name}.parquet", rows.schema, compression="zstd")
                    writers[name] = stack.enter_context(writer)
                writers[name].write_table(rows)  # one row group a partition
            done += len(town.daily.uid)
            progress.report("people of the city", done, options["people"])


def _about(town: City, options: dict[str, Any]) -> dict[str, Any]:
    return {
        "name": CITY_NAME,
        "note": "A city that does not exist, with people who do not exist. Everything here is public.",
        "time_zone": TIME_ZONE,
        "first_day": FIRST_DAY.date().isoformat(),
        "box": dict(zip(("south", "west", "north", "east"), town.box, strict=True)),
        "space": town.grid().spec(),
        **options,
    }


def _write_json(path: Path, values: dict[str, Any]) -> None:
    path.write_text(json.dumps(values, indent=2) + "\n", encoding="utf-8")


def _whole_folder(folder: Path, fill: Callable[[Path], None]) -> Path:
    """Fill a folder that appears when everything in it is written, or not at all."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise OutputError(f"{folder}: exists already and is not an empty folder; give a new name, or remove it first.")
    part = folder.with_name(f"{folder.name}.part")
    try:
        part.mkdir(parents=True, exist_ok=False)
    except FileExistsError:
        raise OutputError(f"{part}: is left from a run that did not finish; remove it first.") from None
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror or error}).") from None
    try:
        fill(part)
        if folder.exists():
            folder.rmdir()
        part.rename(folder)
    except OSError as error:
        raise OutputError(f"{folder}: cannot be written ({error.strerror or error}).") from None
    finally:
        if part.exists():
            shutil.rmtree(part)
    return folder
