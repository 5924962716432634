"""`study`: mechanisms x parameters x repeats x metrics, compared on private or public data. Internal."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from murmurate.cli.choices import LedgerUrl, open_ledger
from murmurate.cli.show import working


def study(
    spec: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What to compare; see docs/studies.md.")],
    out: Annotated[Path, typer.Option("--out", help="The folder of results; an unfinished study goes on where it was.")],
    workers: Annotated[int, typer.Option(help="Processes to use.")] = 2,
    ledger: LedgerUrl = None,
) -> None:
    """Run every mechanism with every setting and regress what each costs; nothing is charged, nothing of it leaves."""
    from murmurate.judging.study import study as run
    from murmurate.report.study import write_study_report

    with working():
        if ledger is None:
            result = run(spec, out=out, workers=workers)
        else:
            with open_ledger(ledger) as book:
                result = run(spec, out=out, workers=workers, ledger=book)
        write_study_report(result, out / "report.html")
    typer.echo(f"Results: {out} ({result.table.height:,} values; {result.reused:,} cells were there already)")
    for word, found in (("skipped", result.skipped), ("failed", result.failed)):
        for name, reason in found.items():
            typer.echo(f"{word}: {name}: {reason}", err=True)
    typer.echo(f"Report:  {out / 'report.html'}\nBoth are internal: they were computed without a charge.")
    if result.failed:
        raise typer.Exit(2)


def add_to(app: typer.Typer) -> None:
    """Put this command on the command line."""
    app.command()(study)
