"""`evaluate` and `attack`: what a release is good for, and what it gives away. Nothing here leaves the custodian's side."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.choices import (
    Columns,
    Layout,
    LedgerUrl,
    LocalZone,
    SpaceSpec,
    TimeFormat,
    Zone,
    open_ledger,
    read_private,
)
from murmurate.cli.show import table, working

if TYPE_CHECKING:
    from murmurate.core.score import Score

Folder = Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A release folder.")]
Against = Annotated[str, typer.Option("--against", help="The private file it was released from.")]
JsonFile = Annotated[Path | None, typer.Option("--json", help="Write the scores to this file.")]
HtmlFile = Annotated[Path | None, typer.Option("--html", help="Write the report to this file.")]
Force = Annotated[bool, typer.Option("--force", help="Compare although the release did not come from this file.")]


def evaluate(
    folder: Folder,
    against: Against,
    ledger: LedgerUrl = None,
    json: JsonFile = None,
    html: HtmlFile = None,
    public: Annotated[
        bool, typer.Option("--public", help="Leave out of the report what was computed from private data.")
    ] = False,
    metric: Annotated[list[str] | None, typer.Option("--metric", help="Only this metric; may be repeated.")] = None,
    force: Force = False,
    workers: Annotated[int, typer.Option(help="Processes to use.")] = 2,
    layout: Layout = None,
    time_zone: Zone = None,
    local_zone: LocalZone = None,
    time_format: TimeFormat = None,
    column: Columns = None,
    space: SpaceSpec = None,
) -> None:
    """Score a release against its originals; scores and report are internal."""
    from murmurate.custody.internal import Internal
    from murmurate.judging.review import review, write_json
    from murmurate.report.page import write_report
    from murmurate.spaces import parse

    with working(), open_ledger(ledger) as book:
        found = review(
            folder,
            read_private(
                against, layout=layout, time_zone=time_zone, column=column, local_zone=local_zone, time_format=time_format
            ),
            ledger=book,
            force=force,
            space=parse(space) if space else None,
        )
        result = found.evaluate(metrics=metric, workers=workers)
        internal = Internal(book, found.release.manifest.release_id).make()
        write_json(
            json or internal / "evaluation.json",
            {"release_id": found.release.manifest.release_id, "note": found.note, **result.to_json()},
        )
        page = html or internal / ("report-public.html" if public else "report.html")
        write_report(page, found, result, public=public)
    _scores(result.scores)
    _skipped(result.skipped)
    if found.note:
        typer.echo(found.note, err=True)
    typer.echo(f"Scores: {json or internal / 'evaluation.json'}\nReport: {page}")
    typer.echo(
        "The report is the public edition, made from the release alone. The scores are internal."
        if public
        else "Both are internal: they were computed from private data."
    )


def attack(
    folder: Folder,
    against: Against,
    ledger: LedgerUrl = None,
    json: JsonFile = None,
    html: HtmlFile = None,
    only: Annotated[list[str] | None, typer.Option("--attack", help="Only this attack; may be repeated.")] = None,
    force: Force = False,
    layout: Layout = None,
    time_zone: Zone = None,
    local_zone: LocalZone = None,
    time_format: TimeFormat = None,
    column: Columns = None,
    space: SpaceSpec = None,
) -> None:
    """Attack a release as an adversary would; results are internal."""
    from murmurate.custody.internal import Internal
    from murmurate.judging.review import review, write_json
    from murmurate.report.page import write_attack_report
    from murmurate.spaces import parse

    with working(), open_ledger(ledger) as book:
        found = review(
            folder,
            read_private(
                against, layout=layout, time_zone=time_zone, column=column, local_zone=local_zone, time_format=time_format
            ),
            ledger=book,
            force=force,
            space=parse(space) if space else None,
        )
        result = found.attack(attacks=only)
        internal = Internal(book, found.release.manifest.release_id).make()
        write_json(
            json or internal / "attacks.json",
            {"release_id": found.release.manifest.release_id, "note": found.note, **result.to_json()},
        )
        write_attack_report(html or internal / "attacks.html", found, result)
    _scores(result.scores)
    _skipped(result.skipped)
    typer.echo(f"Scores: {json or internal / 'attacks.json'}\nReport: {html or internal / 'attacks.html'}\nBoth are internal.")


def add_to(app: typer.Typer) -> None:
    """Put these commands on the command line."""
    app.command()(evaluate)
    app.command()(attack)


def _scores(scores: Any) -> None:
    table(("score", "value", "low", "high", "better", "chance", "unit"), [_row(score) for score in scores])


def _row(score: Score) -> tuple[str, ...]:
    return (
        score.name,
        *(_number(value) for value in (score.value, score.low, score.high)),
        score.better,
        _number(score.chance),
        score.unit,
    )


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.4g}"


def _skipped(skipped: Any) -> None:
    for name, reason in skipped.items():
        typer.echo(f"not measured: {name}: {reason}", err=True)
