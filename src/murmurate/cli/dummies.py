"""`dummies`: pack released days into a small file for phones, and ask what a phone would send."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from murmurate.cli.choices import Json
from murmurate.cli.show import as_json, working

app = typer.Typer(help="Hide a true place among the places of people who do not exist.", no_args_is_help=True)


@app.command()
def pool(
    release: Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A release of whole days, as plausible makes them.")],
    out: Annotated[Path, typer.Option("--out", help="The file to write; it must not exist.")],
) -> None:
    """Pack a release of days into a file for phones, about 15 bytes a day."""
    from murmurate.errors import OutputError
    from murmurate.mechanisms.plausible.dummies import Pool
    from murmurate.releases.folder import open_release

    if out.exists():
        raise OutputError(f"{out} exists already; name a new file with --out.")
    with working():
        packed = Pool.of(open_release(release, read_space=True).trips)
        try:
            size = packed.save(out)
        except OSError as error:
            raise OutputError(f"{out} cannot be written: {error.strerror}.") from None
    typer.echo(f"Written: {out}, {packed.n_traces:,} days in {size:,} bytes.")


@app.command()
def at(
    pool_file: Annotated[Path, typer.Argument(metavar="POOL", help="A file made by `dummies pool`.")],
    lat: Annotated[float, typer.Option(help="Where the device is.")],
    lng: Annotated[float, typer.Option(help="Where the device is.")],
    device: Annotated[
        Path, typer.Option(help="The file with the device's secret; if missing it is made, readable by you only.")
    ],
    k: Annotated[int, typer.Option(help="How many fakes.")] = 10,
    time: Annotated[str | None, typer.Option(help="When, with a zone, such as 2026-03-02T12:00:00Z; default: now.")] = None,
    by: Annotated[str, typer.Option(help="How fakes are chosen: uniform, or likelihood (as published).")] = "uniform",
    day: Annotated[str, typer.Option(help="Any text, such as the date; another text picks other fakes.")] = "",
    json: Json = False,
) -> None:
    """Print the places to send now: the true one and the fakes', centres of cells, in random order."""
    from datetime import UTC, datetime

    from murmurate.errors import ParameterError
    from murmurate.mechanisms.plausible.dummies import Pool, choose

    try:
        when = datetime.now(UTC) if time is None else datetime.fromisoformat(time)
    except ValueError:
        raise ParameterError(f"time must look like 2026-03-02T12:00:00Z; got {time!r}.") from None
    chosen = choose(Pool.load(pool_file), k, device=_secret(device), by=by, day=day)  # type: ignore[arg-type]
    places = chosen.at(when, lat, lng)
    if json:
        as_json({"places": [{"lat": north, "lng": east} for north, east in places]})
        return
    for north, east in places:
        typer.echo(f"{north:.6f} {east:.6f}")


def _secret(path: Path) -> bytes:
    """Read the device's secret; where there is none yet, draw it from the operating system, readable by its owner only."""
    import os
    import secrets

    from murmurate.errors import OutputError

    try:
        if not path.exists():
            with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
                file.write(secrets.token_bytes(32))
        return path.read_bytes()
    except OSError as error:
        raise OutputError(f"the device's secret {path} cannot be used: {error.strerror}.") from None
