"""`inspect`: what is in a file, and what is wrong with it. For the custodian's eyes."""

from __future__ import annotations

from typing import Annotated

import typer

from murmurate.cli.choices import Columns, Json, Layout, Strict, Zone, read_options
from murmurate.cli.show import as_json, working


def inspect(
    source: Annotated[str, typer.Argument(metavar="FILE", help="The file, folder or pattern to look at.")],
    layout: Layout = None,
    time_zone: Zone = None,
    column: Columns = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """What is in a file, and what is wrong with it. Nothing is spent; what it prints is private."""
    from murmurate.ingest.inspect import inspect as look

    with working():
        found = look(source, **read_options(layout=layout, time_zone=time_zone, column=column, strict=strict))
    if json:
        as_json(found.to_json())
        return
    typer.echo(found.words())


def add_to(app: typer.Typer) -> None:
    """Put this command on the command line."""
    app.command()(inspect)
