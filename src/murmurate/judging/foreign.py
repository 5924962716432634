"""Read releases that another tool made: any table of trips, or of links with counts, without a manifest."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from murmurate.core.expansion import read_table
from murmurate.core.foreign import FOREIGN
from murmurate.core.space import Space
from murmurate.errors import InputError
from murmurate.spaces.road import RoadNetwork

NOTHING_PROMISED = (
    "This table came without a manifest: nothing is promised, and no budget was charged. What follows are attacks and scores "
    "only; a table that resists them may still give people away."
)
"""What every page and file about a foreign release says first."""


def read_foreign(path: str | Path, *, space: Space | None = None, **options: Any) -> Any:
    """Return trips, or the flows of links where the table has `link`, `hour` and `count` and `space` is its road network."""
    from murmurate.ingest.read import read
    from murmurate.spaces.flows import LinkFlows

    file = Path(path)
    if file.is_dir() and (file / "manifest.json").is_file():
        raise InputError(f"{file} is a release folder with a manifest.", "name it without --release.")
    if file.suffix == ".parquet" and file.is_file() and {"link", "hour", "count"} <= _columns(file):
        if not isinstance(space, RoadNetwork):
            raise InputError(f"{file} counts links; their places are not in it.", "give the network with --space road:FILE.")
        return LinkFlows(network=space, table=read_table(file))
    return read(path, space=space, **options)


def _columns(file: Path) -> set[str]:
    try:
        return set(pq.read_schema(file).names)
    except FOREIGN:
        return set()
