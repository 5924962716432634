"""`studio`: the release in a browser, on this machine alone."""

from __future__ import annotations

from typing import Annotated

import typer

from murmurate.cli.choices import LedgerUrl
from murmurate.errors import MissingPart


def studio(
    source: Annotated[
        str | None, typer.Argument(metavar="[FILE]", help="The file to begin with; it is read where it is.")
    ] = None,
    ledger: LedgerUrl = None,
    port: Annotated[int, typer.Option("--port", min=0, max=65535, help="The port; default: any free one.")] = 0,
    no_browser: Annotated[bool, typer.Option("--no-browser", help="Print the link and open nothing.")] = False,
) -> None:
    """Make a release in a browser, step by step; only this machine can reach the page."""
    try:
        from murmurate.studio.server import serve
    except ModuleNotFoundError as error:
        if error.name not in ("starlette", "uvicorn"):
            raise
        raise MissingPart("the studio needs the extra [studio]: pip install 'murmurate[studio]'.") from None
    serve(source, ledger=ledger, port=port, open_browser=not no_browser, say=typer.echo)
