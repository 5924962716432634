"""`evaluate`, `attack` and `study`: what releases are good for and what they reveal. Nothing of it leaves."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.choices import EngineWord, LedgerUrl, SpaceSpec, Workers, choose_engine, open_ledger, read_options, takes
from murmurate.cli.show import aligned, paragraph, table, working
from murmurate.errors import ParameterError

if TYPE_CHECKING:
    from murmurate.judging.review import Review
    from murmurate.judging.scoring import Evaluation
    from murmurate.judging.verdict import Verdict


@takes(read=read_options)
def shared_options(
    folder: Annotated[Path | None, typer.Argument(metavar="[RELEASE_DIR]", help="A release folder.")] = None,
    against: Annotated[str, typer.Option("--against", help="The private file it was released from.")] = "",
    release: Annotated[
        str | None, typer.Option("--release", help="A table that another tool released, in place of a folder.")
    ] = None,
    ledger: LedgerUrl = None,
    json: Annotated[Path | None, typer.Option("--json", help="Write the scores to this file.")] = None,
    html: Annotated[Path | None, typer.Option("--html", help="Write the report to this file.")] = None,
    force: Annotated[bool, typer.Option("--force", help="Compare although the release did not come from this file.")] = False,
    space: SpaceSpec = None,
    *,
    read: dict[str, Any],
) -> dict[str, Any]:
    """Return the options that both commands share."""
    return locals()


@takes(shared=shared_options)
def evaluate(
    shared: dict[str, Any],
    public: Annotated[
        bool, typer.Option("--public", help="Leave out of the report what was computed from private data.")
    ] = False,
    metric: Annotated[list[str] | None, typer.Option("--metric", help="Only this metric; may be repeated.")] = None,
    workers: Workers = None,
    engine: EngineWord = None,
    attacks: Annotated[bool, typer.Option("--attacks/--no-attacks", help="Run the quick attacks for the verdict.")] = True,
    base: Annotated[
        Path | None, typer.Option("--base", help="Map to draw on: an OpenStreetMap extract, GeoJSON or GeoPackage.")
    ] = None,
) -> None:
    """Judge a release against its originals: a verdict, scores and a report, all internal."""
    from murmurate.judging.verdict import QUICK_ATTACKS
    from murmurate.report.base_file import read_base, refuse_elsewhere
    from murmurate.report.page import write_report

    if shared["release"] is not None:
        from murmurate.judging.review import evaluate as measure_foreign

        _judge_foreign(partial(measure_foreign, metrics=metric, workers=workers or 2), "Scores", **shared)
        return
    below = read_base(base) if base is not None else None

    def measure(found: Review) -> Evaluation:
        if below is not None and base is not None:
            refuse_elsewhere(below, found.release, base)
        return found.take_metrics(metrics=metric, workers=choose_engine(engine, workers, otherwise=2))

    def judge(found: Review, result: Evaluation) -> Verdict:
        quick = [name for name in QUICK_ATTACKS if attacks and name in found.release.kind.attacks]
        return found.verdict(result, attacked=found.run_attacks(attacks=quick) if attacks else None)

    _judge(
        measure,
        partial(write_report, public=public, base=below),
        ("evaluation.json", "report-public.html" if public else "report.html"),
        "The report is the public edition, made from the release alone. The scores are internal."
        if public
        else "Both are internal: they were computed from private data.",
        judge,
        engine=choose_engine(engine, workers, otherwise=2),
        **shared,
    )


@takes(shared=shared_options)
def attack(
    shared: dict[str, Any],
    only: Annotated[list[str] | None, typer.Option("--attack", help="Only this attack; may be repeated.")] = None,
    holdout: Annotated[
        str | None, typer.Option("--holdout", help="Trips of people who are not in the release, to compare with.")
    ] = None,
) -> None:
    """Attack a release as an adversary would; results are internal."""
    from murmurate.ingest.read import read as read_trips
    from murmurate.judging.review import attack as attack_foreign
    from murmurate.report.page import write_attack_report

    others: dict[str, Any] = {} if holdout is None else {"holdout": read_trips(holdout, **shared["read"])}
    if shared["release"] is not None:
        _judge_foreign(partial(attack_foreign, attacks=only, **others), "What an attacker can still learn", **shared)
        return
    names = ("attacks.json", "attacks.html")
    run = partial(_run_attacks, attacks=only, **others)
    _judge(run, write_attack_report, names, "Both are internal.", **shared)


def _run_attacks(found: Review, **options: Any) -> Evaluation:
    return found.run_attacks(**options)


def _judge_foreign(
    measure: Callable[..., Evaluation],
    title: str,
    *,
    folder: Path | None,
    against: str,
    release: str,
    read: dict[str, Any],
    ledger: str | None,
    json: Path | None,
    html: Path | None,
    force: bool,
    space: str | None,
) -> None:
    """Measure a table that another tool released beside its originals; no ledger knows it, and nothing is promised."""
    from murmurate.ingest.read import read as read_trips
    from murmurate.judging.foreign import NOTHING_PROMISED, read_foreign
    from murmurate.judging.review import write_json
    from murmurate.report.page import write_foreign_report
    from murmurate.spaces import parse

    if folder is not None:
        raise ParameterError("name a release folder, or a table with --release; not both.")
    if not against:
        raise ParameterError("name the private file with --against.")
    with working():
        place = parse(space) if space else None
        result = measure(read_foreign(release, space=place, **read), read_trips(against, **read))
        if json is not None:
            write_json(
                json, {"release": Path(release).name, "promised": "nothing", "note": NOTHING_PROMISED, **result.to_json()}
            )
        if html is not None:
            write_foreign_report(html, Path(release).name, title, result)
    _print_scores(result)
    typer.echo(NOTHING_PROMISED)
    for word, path in (("Scores", json), ("Report", html)):
        if path is not None:
            typer.echo(f"{word}: {path}")


def study(
    spec: Annotated[Path, typer.Argument(metavar="STUDY.toml", help="What to compare; see docs/studies.md.")],
    out: Annotated[Path, typer.Option("--out", help="The folder of results; an unfinished study continues there.")],
    workers: Workers = None,
    engine: EngineWord = None,
    ledger: LedgerUrl = None,
) -> None:
    """Compare mechanisms over many settings, with a regression of their scores. Nothing is charged; results are internal."""
    from murmurate.judging.study import study as run
    from murmurate.report.study import write_study_report

    with working(), open_ledger(ledger) if ledger else nullcontext() as book:
        result = run(spec, out=out, workers=choose_engine(engine, workers, otherwise=2), ledger=book)
        write_study_report(result, out / "report.html")
    typer.echo(f"Results: {out} ({result.table.height:,} values; {result.reused:,} finished jobs reused)")
    for word, found in (("skipped", result.skipped), ("failed", result.failed)):
        for name, reason in found.items():
            typer.echo(f"{word}: {name}: {reason}", err=True)
    typer.echo(f"Report:  {out / 'report.html'}\nBoth are internal: they were computed without a charge.")
    if result.failed:
        raise typer.Exit(2)


def _judge(
    measure: Callable[[Review], Evaluation],
    write_page: Callable[..., Path],
    names: tuple[str, str],
    closing: str,
    judge: Callable[[Review, Evaluation], Verdict] | None = None,
    *,
    engine: str = "serial",
    folder: Path | None,
    against: str,
    release: str | None,
    read: dict[str, Any],
    ledger: str | None,
    json: Path | None,
    html: Path | None,
    force: bool,
    space: str | None,
) -> None:
    """Measure a release beside its originals, write the scores and the page (by default beside the ledger), print them."""
    from murmurate.custody.internal import Internal
    from murmurate.custody.sources import open_again
    from murmurate.engine import engine as open_engine
    from murmurate.judging.in_parts import is_large, review_in_parts
    from murmurate.judging.review import review, write_json
    from murmurate.releases.manifest import read_manifest
    from murmurate.spaces import parse

    if folder is None or not against:
        missing = "a release folder (or a table with --release)" if folder is None else "the private file with --against"
        raise ParameterError(f"name {missing}.")
    with working(), open_ledger(ledger) as book:
        place = parse(space) if space else None
        manifest = read_manifest(folder)
        if is_large(folder, against):
            with open_engine(engine) as running:  # its workers have read parts; scores are better off with small ones
                found: Review = review_in_parts(folder, against, running, ledger=book, read=read, force=force, space=place)
        else:
            record = Internal(book, manifest.model_of or manifest.release_id)
            private = open_again(against, manifest, record, read=read, force=force)
            found = review(folder, private, ledger=book, force=force, space=place)
        result = measure(found)
        release_id = found.release.manifest.release_id
        internal = Internal(book, release_id).make()
        scores, page = json or internal / names[0], html or internal / names[1]
        verdict = judge(found, result) if judge is not None else None
        judged = {} if verdict is None else {"verdict": verdict.to_json()}
        write_json(scores, {"release_id": release_id, "note": found.note, **judged, **result.to_json()})
        write_page(page, found, result, **({} if verdict is None else {"verdict": verdict}))
    if verdict is not None:
        _print_verdict(verdict)
    _print_scores(result)
    if found.note:
        typer.echo(found.note, err=True)
    typer.echo(f"Scores: {scores}\nReport: {page}\n{closing}")


def _print_scores(result: Evaluation) -> None:
    """Print every score, and why others were not measured."""
    rows = [
        (
            score.name,
            *(_number(value) for value in (score.value, score.low, score.high)),
            score.better,
            _number(score.chance),
            score.unit,
        )
        for score in result.scores
    ]
    table(("score", "value", "low", "high", "better", "chance", "unit"), rows)
    for name, reason in result.skipped.items():
        typer.echo(f"not measured: {name}: {reason}", err=True)


def _print_verdict(verdict: Verdict) -> None:
    """Print the paragraph, and the scores to read first under each other with what they mean."""
    from murmurate.judging.verdict import GRADES

    paragraph(verdict.paragraph)
    typer.echo("")
    aligned([(line.label, line.value, line.beside, GRADES[line.grade]) for line in verdict.headlines])
    typer.echo("")
    for line in verdict.headlines:
        paragraph(f"{line.label}. {line.meaning}")
    paragraph(verdict.rules)
    typer.echo("\nEvery score:")


def _number(value: float | None) -> str:
    from murmurate.core.score import number

    return "" if value is None else number(value)
