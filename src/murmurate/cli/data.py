"""`inspect` and `demo-data`: what is in a file, and public data to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from murmurate.cli.choices import EngineWord, Json, Workers, choose_engine, clean_options, read_options, takes, use_processors
from murmurate.cli.show import as_json, working


@takes(read=read_options, clean=clean_options)
def inspect(
    source: Annotated[str, typer.Argument(metavar="FILE", help="The file, folder or pattern to look at.")],
    html: Annotated[Path | None, typer.Option("--html", help="Write a private page: where, when, how many, gaps.")] = None,
    json: Json = False,
    workers: Workers = None,
    engine: EngineWord = None,
    *,
    read: dict[str, Any],
    clean: dict[str, Any],
) -> None:
    """Show what is in a file, and what is wrong with it. Nothing is spent; what it prints is private."""
    word = choose_engine(engine, workers)
    use_processors(word)
    from murmurate.ingest.inspect import inspect as look

    with working():
        found = look(source, clean=clean, engine=word, **read)
    if json:
        as_json(found.to_json())
    else:
        typer.echo(found.words(), err=not found.readable)
    if not found.readable:
        raise typer.Exit(2)
    if html is not None:
        from murmurate.report.inspection import write_inspection

        with working():
            page = write_inspection(html, found, source)
        if not json:
            typer.echo(f"Page:    {page} (private)")


def demo_data(
    what: Annotated[str, typer.Argument(metavar="city|tony900")],
    out: Annotated[Path, typer.Option("--out", help="The folder to make; it must not exist.")],
    people: Annotated[int, typer.Option(help="How many people (skaters for tony900: default 1000).")] = 200,
    days: Annotated[int, typer.Option(help="How many days (city).")] = 14,
    interval_s: Annotated[int, typer.Option(help="Seconds between points (city).")] = 15,
    seed: Annotated[int, typer.Option(help="The same seed gives the same data on any machine.")] = 1,
) -> None:
    """Write synthetic public data for trying things out: the built-in city or Tony-900."""
    from murmurate.core.parameters import one_of
    from murmurate.demo import write_city, write_tony900

    one_of("the demo data", what, ("city", "tony900"))
    with working():
        if what == "city":
            write_city(out, people=people, days=days, interval_s=interval_s, seed=seed)
        else:
            write_tony900(out, skaters=1000 if people == 200 else people, seed=seed)
    typer.echo(f"Written: {out}")
