"""Define the options that several commands share."""

from __future__ import annotations

import functools
import inspect
import os
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.errors import ParameterError

if TYPE_CHECKING:
    from murmurate.core.ledger import Ledger

Settings = Annotated[list[str] | None, typer.Option("--set", help="A parameter, name=value; may be repeated.")]
LedgerUrl = Annotated[
    str | None,
    typer.Option("--ledger", help="A file or a PostgreSQL URL; default: a file in your state folder; `demo`: in memory."),
]
SpaceSpec = Annotated[
    str | None,
    typer.Option(
        "--space",
        help="plane:LAT,LNG, grid:SOUTH,WEST,NORTH,EAST:CELL_M, hex:RESOLUTION@BOX, zones:FILE, stops:FILE or road:FILE.",
    ),
]
Layout = Annotated[
    str | None, typer.Option("--layout", help="A known data set or format: porto, divvy, tlc, mds, ...; see docs/reading.md.")
]
Zone = Annotated[str | None, typer.Option("--time-zone", help="Time zone of times that carry none, such as Europe/Helsinki.")]
LocalZone = Annotated[
    str | None, typer.Option("--local-zone", help="Time zone in which hours and days are counted; default: --time-zone.")
]
TimeFormat = Annotated[
    str | None, typer.Option("--time-format", help="How times are written, such as '%d/%m/%Y %H:%M'; default: ISO 8601.")
]
TimeUnit = Annotated[
    str | None, typer.Option("--time-unit", help="Unit of times that are numbers: s, ms, us or ns since 1970, or excel.")
]
Encoding = Annotated[str | None, typer.Option("--encoding", help="Encoding of text that is not UTF-8, such as latin-1.")]
Columns = Annotated[
    list[str] | None,
    typer.Option(
        "--column",
        help="canonical=name-in-file or number from 1; uid=FILE: each file is a person, uid=ROW: each row; may be repeated.",
    ),
]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse duplicates, two places at one time and one-point trips.")]
SplitGap = Annotated[
    str | None, typer.Option("--split-gap", help="Raw streams: begin a new trip after a pause longer than this, such as 5min.")
]
SplitStay = Annotated[
    str | None,
    typer.Option("--split-stay", help="Begin a new trip where somebody stays within 100 m this long, such as 10min."),
]
MaxSpeed = Annotated[
    float | None, typer.Option("--max-speed", help="Leave out points reached at this many km/h or more, such as 200.")
]
Occupied = Annotated[
    str | None, typer.Option("--occupied", help="Column that is 1 with a passenger: each occupied run is a trip.")
]
Override = Annotated[
    bool, typer.Option("--override-overlap", help="Treat people with the uids of another population as other people; recorded.")
]
People = Annotated[
    str | None,
    typer.Option("--people", help="Namespace of the uids in this file, where other files use the same uids for other people."),
]
SignedBy = Annotated[list[str] | None, typer.Option("--signed-by", help="Who signs the release, recorded; may be repeated.")]
Resume = Annotated[
    str | None,
    typer.Option("--resume", help="Resume a run that was interrupted after its charge; takes the release id of the charge."),
]
Workers = Annotated[int | None, typer.Option("--workers", min=1, help="Processes to use; short for --engine processes:N.")]
EngineWord = Annotated[
    str | None,
    typer.Option(
        "--engine", help="Where the work runs: serial, processes:N, dask-local:N or dask://tls://HOST:PORT; docs/scale.md."
    ),
]
Work = Annotated[
    str | None,
    typer.Option(
        "--work",
        help="Where private work files lie: a folder, s3://BUCKET/PATH, or none (no copy of rows); default: beside the ledger.",
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable values.")]


def choose_engine(engine: str | None, workers: int | None, otherwise: int = 1) -> str:
    """Return the word of the engine that --engine or --workers names."""
    if engine is not None and workers is not None:
        raise ParameterError("--workers N is short for --engine processes:N; give one of them.")
    return engine or f"processes:{workers or otherwise}"


def use_processors(engine: str) -> None:
    """Let polars and Arrow, which read this when first imported, use as many threads as the engine has processes here."""
    number = engine.rpartition(":")[2]
    workers = int(number) if number.isdigit() and "//" not in engine else 1
    for name in ("POLARS_MAX_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, str(max(workers, 1)))


def open_ledger(url: str | None) -> Ledger:
    """Open the ledger at a file or URL; by default the one in the state folder."""
    from murmurate.core.ledger import Ledger

    return Ledger.in_memory() if url == "demo" else Ledger(url)


def read_options(
    *,
    layout: Layout = None,
    time_zone: Zone = None,
    local_zone: LocalZone = None,
    time_format: TimeFormat = None,
    time_unit: TimeUnit = None,
    column: Columns = None,
    encoding: Encoding = None,
    strict: Strict = False,
) -> dict[str, Any]:
    """Return the options of `murmurate.read` that the reading flags give."""
    columns = dict(pair.split("=", 1) for pair in column or [] if "=" in pair)
    if len(columns) != len(column or []):
        raise ParameterError(f"--column takes canonical=name-in-file; got {', '.join(column or [])}.")
    given = {
        "layout": layout,
        "time_zone": time_zone,
        "local_zone": local_zone,
        "time_format": time_format,
        "time_unit": time_unit,
        "encoding": encoding,
        "columns": columns or None,
        "strict": strict or None,
    }
    return {name: value for name, value in given.items() if value is not None}


def clean_options(
    *,
    split_gap: SplitGap = None,
    split_stay: SplitStay = None,
    max_speed: MaxSpeed = None,
    occupied: Occupied = None,
) -> dict[str, Any]:
    """Return the settings of cleaning that the flags give."""
    given = {
        "max_speed_kmh": max_speed,
        "occupied": occupied,
        "split_gap_s": None if split_gap is None else seconds("--split-gap", split_gap),
        "split_stay_s": None if split_stay is None else seconds("--split-stay", split_stay),
    }
    return {name: value for name, value in given.items() if value is not None}


def seconds(flag: str, text: str) -> float:
    """Read a length of time as people write it.

    >>> seconds("--split-gap", "5min"), seconds("--split-gap", "300")
    (300.0, 300.0)
    """
    found = re.fullmatch(r"\s*([0-9]+(?:\.[0-9]+)?)\s*(s|sec|min|m|h)?\s*", text)
    if found is None:
        raise ParameterError(f"{flag} takes seconds, or a time such as 5min or 1h; got {text!r}.")
    return float(found[1]) * {"m": 60, "h": 3600}.get((found[2] or "s")[0], 1)


def takes(**makers: Callable[..., Any]) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Replace parameters of a command by the options of the functions that make them, so that commands share options."""

    def wrap(command: Callable[..., Any]) -> Callable[..., Any]:
        parameters: list[inspect.Parameter] = []
        for parameter in _parameters(command):
            parameters += _parameters(makers[parameter.name]) if parameter.name in makers else [parameter]

        @functools.wraps(command)
        def run(**given: Any) -> Any:
            for name, make in makers.items():
                given[name] = make(**{part.name: given.pop(part.name) for part in _parameters(make)})
            return command(**given)

        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {parameter.name: parameter.annotation for parameter in parameters}
        return run

    return wrap


def _parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Return the parameters as keyword-only ones, which may stand in any order."""
    found = inspect.signature(function, eval_str=True).parameters.values()
    return [parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY) for parameter in found]
