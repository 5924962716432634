"""`audit` and `dossier`: evidence for whoever answers for a release."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from murmurate.cli.choices import Settings, SpaceSpec
from murmurate.cli.show import table, working


def audit(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help="A mechanism; see murmurate list mechanisms.")],
    settings: Settings = None,
    space: SpaceSpec = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the results to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to this file.")] = None,
    deep: Annotated[bool, typer.Option("--deep", help="Draw a hundred times as many outputs; takes hours.")] = False,
    runs: Annotated[int | None, typer.Option("--runs", help="Outputs drawn of each neighbour.")] = None,
) -> None:
    """Audit a mechanism on made-up people: exact meter, black-box tests, sampler tests, planted faults."""
    from murmurate import mechanisms
    from murmurate.core.score import number
    from murmurate.custody.recipes import parse_settings
    from murmurate.judging.audit import audit as run
    from murmurate.judging.audit_data import town
    from murmurate.judging.review import write_json
    from murmurate.report.page import write_audit_report

    kind = mechanisms.mechanism_class(mechanism)
    with working():
        city = town()
        base = dict(kind.example)
        if base.get("space") in city.spaces():
            base["space"] = city.spaces()[base["space"]]
        given = {**base, **parse_settings(settings or []), **({"space": space} if space else {})}
        found = run(mechanisms.build(mechanism, given), deep=deep, runs=runs, city=city)
    if json is not None:
        write_json(json, found.to_json())
        json.chmod(0o644)  # nothing in it is private
    if html is not None:
        write_audit_report(html, found)
    rows = [(score.name, number(score.value, score.unit), number(score.high, score.unit)) for score in found.scores]
    table(("test", "found", "must not pass"), rows)
    table(("planted fault", "caught by"), [(twin.fault, twin.caught_by or "not caught") for twin in found.twins])
    if found.note:
        typer.echo(found.note)
    for word, path in (("Results", json), ("Page", html)):
        if path is not None:
            typer.echo(f"{word}: {path}")
    if found.broken:
        typer.echo("The promise does not hold: a value lies above its claim.", err=True)
        raise typer.Exit(4)
    if not found.passed:
        typer.echo("A planted fault was not caught: draw more outputs with --runs, or audit a smaller epsilon.", err=True)
