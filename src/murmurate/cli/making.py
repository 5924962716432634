"""`release`, `fit`, `sample`, `verify`, `list`: making releases and checking them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.asking import EMPTY, Asked, Confirm, Yes, is_nearly_empty
from murmurate.cli.choices import (
    EngineWord,
    Json,
    LedgerUrl,
    Override,
    People,
    Resume,
    Settings,
    SignedBy,
    SpaceSpec,
    Work,
    Workers,
    choose_engine,
    clean_options,
    open_ledger,
    read_options,
    takes,
    use_processors,
)
from murmurate.cli.show import as_json, table, until_it_fits, working
from murmurate.custody.recipes import Recipe, advice, build_mechanism, gather, parse_settings, to_toml
from murmurate.errors import ParameterError

if TYPE_CHECKING:
    from murmurate.core.guarantee import Guarantee
    from murmurate.core.ledger import Ledger
    from murmurate.custody.releasing import Prepared
    from murmurate.releases.folder import Release


@takes(read=read_options, clean=clean_options)
def recipe_options(
    what: Annotated[str, typer.Argument(metavar="MECHANISM|RECIPE.toml", help="A mechanism's name, or a recipe file.")],
    source: Annotated[str | None, typer.Option("--in", help="The file, folder or pattern to read.")] = None,
    out: Annotated[Path | None, typer.Option("--out", help="The folder to make; it must not exist.")] = None,
    settings: Settings = None,
    ledger: LedgerUrl = None,
    space: SpaceSpec = None,
    mask: Annotated[
        str | None, typer.Option("--mask", help="flock: a public file of land polygons or roads; no trip is placed outside.")
    ] = None,
    population: Annotated[str | None, typer.Option("--population", help="Whose budget is charged.")] = None,
    people: People = None,
    limit: Annotated[
        str | None,
        typer.Option(
            "--limit",
            help="The limit of a new population: a number (of the release's own kind and unit), or kind:unit:value[:delta].",
        ),
    ] = None,
    accept_no_guarantee: Annotated[
        bool, typer.Option("--accept-no-guarantee", help="Release although nothing is promised; recorded.")
    ] = False,
    engine: EngineWord = None,
    work: Work = None,
    *,
    read: dict[str, Any],
    clean: dict[str, Any],
) -> Recipe:
    """Return the recipe that the options of `release` and `fit` give."""
    return gather(
        what,
        settings=[*(settings or []), *([f"mask={mask}"] if mask else [])],
        space=space,
        read=read,
        clean=clean,
        source=source,
        out=str(out) if out else None,
        ledger=ledger,
        population=population,
        people=people,
        limit=limit,
        accept_no_guarantee=accept_no_guarantee,
        engine=engine,
        work=work,
    )


@takes(recipe=recipe_options)
def release(
    recipe: Recipe,
    link: Annotated[str | None, typer.Option(help="Which trips share a pseudonym: none (default), day or user.")] = None,
    keep_ids: Annotated[bool, typer.Option("--keep-ids", help="Keep uid and tid; for internal studies only.")] = False,
    override_overlap: Override = False,
    yes: Yes = False,
    confirm: Confirm = None,
    signed_by: SignedBy = None,
    resume: Resume = None,
    format: Annotated[
        list[str] | None, typer.Option("--format", help="Beside GeoParquet: csv, geojson or gpkg; may be repeated.")
    ] = None,
    workers: Workers = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Show every default, the promise and the price; spend nothing.")
    ] = False,
    json: Json = False,
) -> None:
    """Charge the ledger, run a mechanism, and write a release folder."""
    recipe = replace(recipe, link=link or recipe.link, keep_ids=keep_ids or recipe.keep_ids, format=format or recipe.format)
    if explain:
        _explain(recipe, build_mechanism(recipe)[0], json)
    else:
        asked = Asked(yes, confirm)

        def releasing(prepared: Prepared) -> Callable[..., tuple[Release, str]]:
            return partial(prepared.release, override_overlap=override_overlap, resume=resume, signed=signed_by or ())

        _make(recipe, workers, json, asked, releasing)


@takes(recipe=recipe_options)
def fit(
    recipe: Recipe,
    override_overlap: Override = False,
    signed_by: SignedBy = None,
    resume: Resume = None,
    yes: Yes = False,
    confirm: Confirm = None,
    workers: Workers = None,
    json: Json = False,
) -> None:
    """Charge the ledger once and write a model that can be sampled any number of times."""

    def fitting(prepared: Prepared) -> Callable[..., tuple[Release, str]]:
        return partial(prepared.fit, override_overlap=override_overlap, resume=resume, signed=signed_by or ())

    _make(recipe, workers, json, Asked(yes, confirm), fitting)


def _make(
    recipe: Recipe,
    workers: int | None,
    json: bool,
    asked: Asked,
    action: Callable[[Prepared], Callable[..., tuple[Release, str]]],
) -> None:
    """Carry out a recipe, after what should be known before the charge was asked about, and announce what was made."""
    word = choose_engine(recipe.engine, workers)
    use_processors(word)
    from murmurate.engine import engine
    from murmurate.engine.shared import keep_freed_memory

    with working(f"releasing with {recipe.mechanism}"), engine(word) as running:
        from murmurate.custody.releasing import prepare  # takes a second or two, while workers start

        if running.workers == 1:  # all parts are read, counted and drawn here
            keep_freed_memory()
        prepared = prepare(recipe, running)
        confirmed = None
        if recipe.ledger != "demo":
            asked.about_findings(prepared.look())
            confirmed = asked.about_weakness(prepared.weakness())
        with open_ledger(recipe.ledger) as book:
            made, name = action(prepared)(book, ask=partial(_ask_for_limit, recipe), confirmed=confirmed)
            _announce(made, book, name, json)
            if is_nearly_empty(made, prepared.private.n_points):
                typer.echo(EMPTY, err=True)


def sample(
    model: Annotated[Path, typer.Argument(help="A folder that `fit` made.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to make; it must not exist.")],
    settings: Settings = None,
    workers: Workers = None,
    engine: EngineWord = None,
    json: Json = False,
) -> None:
    """Draw trips from a fitted model: free, under the model's own guarantee."""
    word = choose_engine(engine, workers)
    use_processors(word)
    from murmurate.custody.releasing import sample_model
    from murmurate.engine import engine as open_engine

    values = parse_settings(settings or [])
    seed = values.pop("seed", None)
    n_out = values.pop("n_out", None)
    if values or n_out is None:
        raise ParameterError(f"sample takes --set n_out=N (and seed for demos); got {', '.join(values) or 'no n_out'}.")
    with working("drawing trips"), open_engine(word) as running:
        made = sample_model(model, n_out=n_out, out=out, seed=seed, running=running)
    _announce(made, None, None, json)


def verify(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    ledger: LedgerUrl = None,
    json: Json = False,
) -> None:
    """Check hashes, manifest and guarantee of a release, and its debit in the ledger; by default your own."""
    from murmurate.judging.checking import verify as check

    book = open_ledger(ledger) if ledger else _default_ledger_of(folder)
    findings = check(folder, ledger=book)
    if json:
        as_json({"release": str(folder), "checks": findings})
    else:
        for name, found in findings.items():
            typer.echo(f"{name}: {found}")


def _default_ledger_of(folder: Path) -> Ledger | None:
    """Return the ledger in the state folder where it knows this release; None where it does not, or there is none."""
    from murmurate.core.work import state_folder
    from murmurate.errors import LedgerError
    from murmurate.releases.manifest import read_manifest

    if not (state_folder() / "ledger.sqlite").is_file():
        return None
    manifest, book = read_manifest(folder), open_ledger(None)
    try:
        book.debit(manifest.model_of or manifest.release_id)
    except LedgerError:
        return None
    return book


def list_names(
    what: Annotated[str, typer.Argument(metavar="mechanisms|metrics|attacks")],
    json: Json = False,
) -> None:
    """List what there is to choose from, with a line about each."""
    from murmurate import attacks, mechanisms, metrics
    from murmurate.core.parameters import one_of

    registries: dict[str, Any] = {"mechanisms": mechanisms.NAMES, "metrics": metrics.METRICS, "attacks": attacks.NAMES}
    one_of("what to list", what, registries)
    rows = registries[what].about()
    if json:
        as_json([{"name": name, "about": about} for name, about in rows])
    else:
        table(("name", "what it is"), rows)


def _ask_for_limit(recipe: Recipe, guarantee: Guarantee) -> dict[str, Any] | None:
    """Ask for the limit of a population that has none; scripts that name a ledger keep its limits themselves."""
    from murmurate.custody.limits import limit_words, parse_limit, refuse_unlimited

    if recipe.ledger is not None:
        return None  # the charge says that there is no limit
    if not sys.stdin.isatty():
        refuse_unlimited(guarantee)
    question = f"{limit_words(guarantee)}\nThe most that may ever be spent per {guarantee.unit.name}"
    return until_it_fits(lambda: typer.prompt(question), lambda answer: parse_limit(answer, guarantee))


def _explain(recipe: Recipe, mechanism: Any, json: bool) -> None:
    from murmurate.core.guarantee import to_json
    from murmurate.core.parameters import public_parameters

    parameters, guarantee = public_parameters(mechanism), mechanism.guarantee()
    if json:
        as_json(
            {
                "mechanism": recipe.mechanism,
                "parameters": parameters,
                "guarantee": to_json(guarantee),
                "words": guarantee.words(),
                "expected_error": mechanism.expected_error(),
            }
        )
        return
    typer.echo(to_toml(recipe, parameters))
    lines = [
        f"Promise: {guarantee.words()}",
        f"Expected error: {mechanism.expected_error()}",
        *advice(mechanism),
        "Nothing was spent.",
    ]
    typer.echo("\n".join(f"# {line}" for line in lines))


def _announce(made: Release, book: Ledger | None, name: str | None, json: bool) -> None:
    manifest = made.manifest
    if json:
        as_json(
            {
                "out": str(made.folder),
                "release_id": manifest.release_id,
                "mechanism": manifest.mechanism,
                "population": name,
                "ledger": book.url if book else None,
                "manifest": manifest.to_json(),
            }
        )
        return
    typer.echo(f"Released: {made.folder}  (release {manifest.release_id})")
    typer.echo(f"Promise:  {manifest.guarantee.words()}")
    if book:
        from murmurate.judging.checking import debited

        # its files were read and hashed a moment ago; reading them again takes a tenth of the time of a large release
        typer.echo(
            f"Verified: {debited(manifest, made.folder, book)}; the manifest has the hashes of {len(manifest.files)} files"
        )
    if book and name:
        typer.echo(f"Ledger:   {book.url}, population {name!r}")
        for account in book.spent(name):
            left = f"{account.remaining} left of {account.limit}" if account.limit else account.ceiling
            typer.echo(f"          {account.spent} spent; {left}")
