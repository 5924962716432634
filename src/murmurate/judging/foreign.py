"""Read releases that another tool made, without a manifest: tables of trips, of counts of zones or pairs, or of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import polars as pl

from murmurate.core.expansion import open_text
from murmurate.core.foreign import FOREIGN, damaged
from murmurate.core.parquet import check_parquet, read_table
from murmurate.core.space import Places, Space
from murmurate.errors import Fault, InputError
from murmurate.ingest.columns import plain
from murmurate.spaces.road import RoadNetwork
from murmurate.spaces.zone_flows import FIGURE, KEYS, ZoneFlows

NOTHING_PROMISED = (
    "This table came without a manifest: nothing is promised, and no budget was charged. What follows are attacks and scores "
    "only; a table that resists them may still give people away."
)
"""What every page and file about a foreign release says first."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "origin": ("origin", "orig", "from", "o", "source", "origin_zone", "from_zone", "start_zone", "zone_from", "origin_id",
               "from_id", "origin_cell", "start_cell", "pulocationid", "pickup_zone", "i"),
    "destination": ("destination", "dest", "to", "d", "target", "destination_zone", "to_zone", "end_zone", "zone_to",
                    "destination_id", "to_id", "destination_cell", "end_cell", "dolocationid", "dropoff_zone", "j"),
    "zone": ("zone", "zone_id", "zone_name", "cell", "cell_id", "hex", "h3", "h3_index", "tile", "tile_id", "area", "area_id",
             "place", "region", "district", "locationid", "taz", "geoid", "stop", "stop_id"),
    "link": ("link", "link_id", "edge", "edge_id", "segment", "segment_id", "road_id"),
    "hour": ("hour", "hour_of_day", "h", "time_bin", "period", "time", "datetime", "timestamp", "interval"),
    "count": ("count", "counts", "n", "trips", "flow", "flows", "visits", "volume", "value", "num_trips", "n_trips", "number",
              "total", "departures", "people", "vehicles"),
}  # fmt: skip
"""Usual names of the columns of counts, compared without case, spaces and underscores; the first that is found is taken."""

PLAIN = (pl.String, pl.Binary, pl.Boolean, pl.Categorical, pl.Enum, pl.Null)
"""Types beside numbers that a column of counts may have; of `hour`, also `TIMES`."""
TIMES = (pl.Datetime, pl.Time)
"""Types from which the hour of the day is taken."""
WHAT = "a table of counts"
"""What was expected of a file that cannot be read."""
REMEDY = "give a CSV or Parquet table."
"""What to do about such a file."""
MAX_TOTAL = 2**53
"""Largest sum of all counts: the largest whole number up to which a float holds every one."""

TEXT = (".csv", ".tsv", ".txt", ".csv.gz", ".tsv.gz")
"""Endings of texts that may hold counts."""


def read_foreign(path: str | Path, *, space: Space | None = None, **options: Any) -> Any:
    """Return trips; flows where the table counts zones of `space` or pairs of them; links where it counts a network."""
    from murmurate.ingest.read import read
    from murmurate.spaces.flows import LinkFlows

    file = Path(path)
    if file.is_dir() and (file / "manifest.json").is_file():
        raise InputError(f"{file} is a release folder with a manifest.", "name it without --release.")
    found = recognise(_names(file)) if file.is_file() else {}
    what = counted_in(found)
    if what == "trips":
        return read(path, space=space, **options)
    table = _canonical(_table(file), found, file.name)
    if what == "links":
        if not isinstance(space, RoadNetwork):
            raise InputError(
                f"{file.name} counts links; their places are not in it.", "give the network with --space road:FILE."
            )
        # as for zones: noise may leave less than nothing
        table = _hours(table, file.name).with_columns(_counts(table["count"], file.name).clip(0))
        return LinkFlows(network=space, table=table)
    if not isinstance(space, Places):
        raise InputError(
            f"{file.name} counts {what}; where they are is not in it.",
            "give them with --space zones:FILE, grid:SOUTH,WEST,NORTH,EAST:CELL_M or hex:RESOLUTION@SOUTH,WEST,NORTH,EAST.",
        )
    return flows_of(table, space, file.name)


def recognise(names: Sequence[str]) -> dict[str, str]:
    """Return the columns of counts by canonical name.

    >>> recognise(["Origin Zone", "to", "Trips"])
    {'origin': 'Origin Zone', 'destination': 'to', 'count': 'Trips'}
    """
    given = {plain(name): name for name in reversed(names)}
    found = {}
    for canonical, usual in NAMES.items():
        match = next((given[plain(name)] for name in usual if plain(name) in given), None)
        if match is not None:
            found[canonical] = match
    return found


def counted_in(found: Mapping[str, str]) -> str:
    """Say what a table with these columns counts: links, pairs of zones, zones; or trips where it counts nothing."""
    if "count" not in found:
        return "trips"
    if {"origin", "destination"} <= found.keys():
        return "pairs of zones"
    if "link" in found and "hour" in found:
        return "links"
    return "zones" if "zone" in found else "trips"


def flows_of(table: pl.DataFrame, places: Places, file: str = "the table") -> ZoneFlows:
    """Return counts of zones or of pairs of zones, by hour where there is one, as flows; totals over the day are added up."""
    table = _hours(table, file) if "hour" in table.columns else table.with_columns(hour=None)
    whole = table["hour"].null_count() == table.height
    pairs = "origin" in table.columns
    ends = ["origin", "destination"] if pairs else ["zone"]
    table = table.with_columns(_numbers(table[name], places, file).alias(name) for name in ends)
    table = table.with_columns(trips=_counts(table["count"], file))
    tables: dict[str, Any] = {name: pl.DataFrame(schema={**keys, **FIGURE}) for name, keys in KEYS.items()}
    rows = []
    for time, keys in (("hour", [*ends, "hour"]), ("day", ends)):
        if time == "hour" and whole:
            continue
        # negative counts, as noise leaves them, are as good as none; an Int64 column holds whole trips
        counted = table.group_by(keys).agg(pl.col("trips").sum().round().clip(0).cast(pl.Int64))
        counted = counted.with_columns(time=pl.lit(time), period=pl.col("hour") if time == "hour" else pl.lit(0))
        rows.append(counted.with_columns(area=pl.lit("zone")))
    name = "od" if pairs else "zones"
    sides = rows if pairs else [row.rename({"zone": "place"}).with_columns(direction=pl.lit("departures")) for row in rows]
    missing = [pl.lit(None, dtype=pl.Float64).alias(column) for column in ("se", "low", "high")]
    schema = {**KEYS[name], **FIGURE}
    tables[name] = pl.concat(
        [side.with_columns(missing).select(pl.col(k).cast(v) for k, v in schema.items()) for side in sides]
    )
    return ZoneFlows(places=places, **tables)


def _canonical(table: pl.DataFrame, found: Mapping[str, str], file: str) -> pl.DataFrame:
    """Return the table with the columns of counts by their canonical names, each a number or text (or a time, for hours)."""
    absent = [name for name in found.values() if name not in table.columns]
    if absent:  # a name with the separator in it
        raise InputError(f"{file}: its first line does not name its columns ({', '.join(absent)} not found).")
    table = table.drop(name for name in found if name in table.columns and found[name] != name)  # another spelling is taken
    table = table.rename({name: canonical for canonical, name in found.items()})
    wrong = [
        Fault(f"is of type {kind}; numbers or texts are expected", file=file, column=found[name])
        for name, kind in table.schema.items()
        if name in found and not (kind.is_numeric() or kind in PLAIN or (name == "hour" and kind in TIMES))
    ]
    if wrong:
        raise InputError(wrong)
    with damaged(file, WHAT, REMEDY):
        return table.with_columns(pl.col(pl.Binary).cast(pl.String, strict=False))


def _counts(values: pl.Series, file: str) -> pl.Series:
    """Return counts as numbers; their sum is small enough to be whole."""
    counts = values.cast(pl.Float64, strict=False)
    wrong = counts.is_null() | ~counts.is_finite()
    if wrong.any():
        raise InputError([Fault(f"{int(wrong.sum()):,} values are no numbers", row=int(wrong.arg_max() or 0), column="count")])
    if float(counts.abs().sum()) > MAX_TOTAL:
        raise InputError(f"{file}: its counts add up to more than {MAX_TOTAL:,}.", "give counts of trips.")
    return counts


def _numbers(values: pl.Series, places: Places, file: str) -> pl.Series:
    """Return the number of each place, which a table names as `names()` does or numbers from 0 on."""
    names = places.names()
    text = values.cast(pl.String).str.strip_chars()
    number = text.replace_strict(names, list(range(len(names))), default=None, return_dtype=pl.Int64)
    if number.null_count():  # numbers of places, from 0 on
        plain_numbers = text.cast(pl.Int64, strict=False)
        if plain_numbers.is_between(0, len(names) - 1).fill_null(False).all():
            number = plain_numbers
    if number.null_count():
        shown = ", ".join(repr(one) for one in names[:3])
        raise InputError(
            [Fault(f"{number.null_count():,} values name no place", file=file, column=values.name)],
            f"name places as --space does ({shown}, ...) or by their number from 0 to {len(names) - 1:,}.",
        )
    return number


def _hours(table: pl.DataFrame, file: str) -> pl.DataFrame:
    """Return the table with whole hours of the day; times of day and timestamps are cut down to their hour."""
    hour = table["hour"]
    if hour.dtype.is_temporal():
        hour = hour.dt.hour()
    elif hour.dtype == pl.String:
        within = hour.str.extract(r"(?:^|[T ])(\d{1,2})(?::\d{2}|$)", 1)
        hour = within.cast(pl.Int64, strict=False)
    hour = hour.cast(pl.Int64, strict=False).alias("hour")
    if hour.null_count() or not hour.is_between(0, 23).all():
        raise InputError(
            f"{file}: its hours are no numbers from 0 to 23 and no times.", "count by hour of the day, local time."
        )
    return table.with_columns(hour)


def _names(file: Path) -> list[str]:
    """Return the names of the columns; nothing for a format that holds trips alone."""
    if file.name.lower().endswith(TEXT):
        with open_text(file) as stream:
            head = stream.readline(65_536).decode("utf-8-sig", errors="replace").strip("\r\n")
        return [name.strip('" ') for name in head.split(_separator(head))]
    if file.suffix != ".parquet":
        return []
    try:
        with check_parquet(file).open() as table:
            return list(table.schema_arrow.names)
    except FOREIGN:
        return []


def _table(file: Path) -> pl.DataFrame:
    if file.suffix == ".parquet":
        return read_table(file)
    with damaged(file.name, WHAT, REMEDY):
        with open_text(file) as stream:
            content = stream.read()
        head = content[:65_536].decode("utf-8-sig", errors="replace").splitlines()[0]
        return pl.read_csv(content, separator=_separator(head), infer_schema_length=None)


def _separator(head: str) -> str:
    return max(",;\t|", key=head.count)
