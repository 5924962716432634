"""`audit` and `dossier`: evidence for whoever answers for a release."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.choices import LedgerUrl, Settings, SpaceSpec, open_ledger, read_options, takes
from murmurate.cli.show import table, working

if TYPE_CHECKING:
    from murmurate.core.ledger import Ledger


def audit(
    mechanism: Annotated[str, typer.Argument(metavar="MECHANISM", help="A mechanism; see murmurate list mechanisms.")],
    settings: Settings = None,
    space: SpaceSpec = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the results to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write a page to this file.")] = None,
    deep: Annotated[
        bool,
        typer.Option(
            "--deep",
            help="Every unit, several epsilons, many releases; takes hours. Interrupt it as you like: --json keeps what was "
            "found, and the same command goes on.",
        ),
    ] = False,
    runs: Annotated[int | None, typer.Option("--runs", help="Outputs drawn for each of two neighbouring inputs.")] = None,
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
        built = mechanisms.build(mechanism, given)
        if deep:
            _deep(built, city, json, runs, html)
            return
        found = run(built, runs=runs, city=city)
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
        typer.echo("A planted fault was not caught: draw more outputs with --runs, or audit an epsilon nearer to 1.", err=True)


def _deep(built: Any, city: Any, kept: Path | None, runs: int | None, html: Path | None) -> None:
    """Run the deep form, and print what was found when it ends or is interrupted."""
    from murmurate.errors import ParameterError
    from murmurate.judging.audit_deep import deep_audit, rows_of

    if runs is not None or html is not None:
        raise ParameterError("--deep sets its own --runs and writes --json only.")
    found: list[Any] = []
    ended, interrupted = "All audits are done.", False
    try:
        found.extend(deep_audit(built, kept=kept, city=city))
    except KeyboardInterrupt:
        interrupted = True
        ended = "Interrupted. " + (f"The same command goes on from {kept}." if kept else "With --json FILE it could go on.")
    table(("unit", "epsilon", "releases", "meter", "black box", "faults missed"), rows_of(found))
    typer.echo(f"{len(found):,} audits. {ended}")
    broken = [one for one in found if any(score["value"] > score["high"] for score in one["scores"])]
    if broken:
        typer.echo("The promise does not hold: a value lies above its claim.", err=True)
        raise typer.Exit(4)
    if interrupted:
        raise typer.Exit(130)


def _is_charged(book: Ledger, release_id: str) -> bool:
    """Return whether a ledger has the charge of a release; damage to the ledger is raised."""
    from murmurate.errors import LedgerDamaged, LedgerError

    try:
        book.debit(release_id)
    except LedgerDamaged:
        raise
    except LedgerError:
        return False
    return True


@takes(read=read_options)
def dossier(
    folder: Annotated[Path, typer.Argument(metavar="RELEASE_DIR", help="A release folder.")],
    out: Annotated[Path, typer.Option("--out", help="The new folder; it gets public/ and internal/.")],
    ledger: LedgerUrl = None,
    against: Annotated[str | None, typer.Option("--against", help="The private file, to measure the attacks.")] = None,
    approved_by: Annotated[
        list[str] | None, typer.Option("--approved-by", help="Who approves, as NAME or 'NAME, ROLE'; may be repeated.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Attack although the release did not come from this file.")] = False,
    *,
    read: dict[str, Any],
) -> None:
    """Write the sign-off pack of a release: a public and an internal edition."""
    from murmurate.custody.internal import Internal
    from murmurate.custody.sources import open_again
    from murmurate.judging.dossier import Approval, gather
    from murmurate.releases.folder import check_free
    from murmurate.releases.manifest import read_manifest
    from murmurate.report.dossier import write_dossier

    check_free(out)
    approvals = [Approval(who.strip(), role.strip()) for who, _, role in (one.partition(",") for one in approved_by or [])]
    with working(), open_ledger(ledger) as book:
        manifest, private = read_manifest(folder), None
        release_id = manifest.model_of or manifest.release_id
        if against is not None:
            private = open_again(against, manifest, Internal(book, release_id), read=read, force=force)
        charged = ledger is not None or _is_charged(book, release_id)  # a ledger that was named must know the release
        if not charged:
            typer.echo(
                f"Notice: {book.url} has no charge of this release, so no budget is shown. Name its ledger with --ledger.",
                err=True,
            )
        found = gather(folder, ledger=book if charged else None, against=private, approvals=approvals, force=force)
        public, internal = write_dossier(found, out)
    typer.echo(f"Public edition:   {public}\nInternal edition: {internal}\nNothing of the internal edition may leave.")
