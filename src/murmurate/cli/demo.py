"""`demo`: the whole tool on the built-in city, in a minute."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from murmurate.cli.choices import use_processors
from murmurate.cli.show import table, working

if TYPE_CHECKING:
    from murmurate.report.tour import Tour


def demo(
    out: Annotated[Path, typer.Option("--out", help="The folder to make; it must not exist.")] = Path("demo-out"),
    people: Annotated[int, typer.Option(help="How many people live in the city.")] = 150,
    days: Annotated[int, typer.Option(help="How many days are recorded.")] = 7,
    only: Annotated[list[str] | None, typer.Option("--only", help="Only this mechanism; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="The same seed gives the same city and the same releases.")] = 1,
    workers: Annotated[int, typer.Option(help="Processes to use; each compiles kernels that are not cached yet.")] = 1,
) -> None:
    """Build a synthetic city, run every mechanism on it, evaluate and attack the releases, and write one report."""
    use_processors(f"processes:{workers}")
    from murmurate.mechanisms import NAMES
    from murmurate.report.tour import tour

    with working(), _lines_without_terminal(("building the city", *(only or NAMES))):
        done = tour(out, people=people, days=days, only=only, seed=seed, workers=workers)
    _print(done)


@contextmanager
def _lines_without_terminal(shown: Sequence[str]) -> Iterator[None]:
    """Print one line for each thing that is done, where stderr is a log."""
    from murmurate.core import progress

    if sys.stderr.isatty():
        yield
        return

    def line(what: str, done: float, total: float | None) -> None:
        if done == total and what in shown:
            typer.echo(f"done: {what}", err=True)

    with progress.shown_by(line):
        yield


def _print(done: Tour) -> None:
    from murmurate.core.guarantee import short_promise
    from murmurate.report.compare import score_tables

    table(
        ("mechanism", "promise", "released"),
        [
            (
                entry.name,
                short_promise(entry.release.manifest.guarantee),
                f"{entry.trips.n_trips:,} trips" if entry.trips is not None else entry.release.manifest.kind,
            )
            for entry in done.entries
        ],
    )
    for scores in score_tables(done.entries):
        typer.echo("")
        rows = [(f"{words} ({better})", *(cell.text for cell in cells)) for words, better, cells in scores.rows]
        table(("score", *(entry.name for entry in scores.entries)), rows)
    typer.echo(f"\nLook at   {done.report}\nReleases  {done.folder / 'releases'}\nScores    {done.folder / 'scores.json'}")
