"""`export`: write a release in a format that other tools open."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from murmurate.cli.choices import SpaceSpec


def export(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A release folder.")],
    format: Annotated[str, typer.Option("--format", help="omx, flowmap, gpkg, geoparquet, csv, ...; see docs/exports.md.")],
    out: Annotated[Path, typer.Option("--out", help="The file or folder to write; must not exist.")],
    space: SpaceSpec = None,
    prior: Annotated[
        str | None,
        typer.Option("--prior", help="A public OMX matrix of the same places, FILE or FILE#NAME."),
    ] = None,
) -> None:
    """Write a release in another format, with what it promises in a file beside it. Costs nothing."""
    from murmurate.exports import export as write
    from murmurate.exports import sidecar_of
    from murmurate.releases.folder import open_release
    from murmurate.spaces import parse

    release = open_release(folder, space=parse(space) if space else None)
    made = write(release, format=format, out=out, prior=prior)
    typer.echo(f"Export:  {made}\nPromise: {sidecar_of(made)}")
