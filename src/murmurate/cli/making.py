"""`release`, `fit`, `sample`, `verify`, `list`: making releases and checking them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.recipe import Recipe, parse_settings, parse_value, read_recipe, to_toml
from murmurate.cli.show import as_json, table, working
from murmurate.errors import ParameterError

if TYPE_CHECKING:
    from murmurate.core.guarantee import Guarantee
    from murmurate.core.ledger import Ledger
    from murmurate.core.release import Release
    from murmurate.noise import Randomness

Source = Annotated[str | None, typer.Option("--in", help="The file, folder or pattern to read.")]
Out = Annotated[Path | None, typer.Option("--out", help="The folder to make; it must not exist.")]
Settings = Annotated[list[str] | None, typer.Option("--set", help="A parameter, name=value; may be repeated.")]
LedgerUrl = Annotated[str | None, typer.Option("--ledger", help="A file or a PostgreSQL URL; default: a file in your state folder.")]
SpaceSpec = Annotated[str | None, typer.Option("--space", help="plane:LAT,LNG, grid:SOUTH,WEST,NORTH,EAST:CELL_M or road:FILE.")]
Population = Annotated[str | None, typer.Option("--population", help="Whose budget is charged.")]
Limit = Annotated[str | None, typer.Option("--limit", help="The limit of a new population: a number (same kind and unit as the "
                                           "release), or kind:unit:value[:delta].")]
Layout = Annotated[str | None, typer.Option("--layout", help="A known layout: cabspotting, porto, geolife, tdrive, gowalla, brightkite.")]
Zone = Annotated[str | None, typer.Option("--time-zone", help="The zone of times that carry none, such as Europe/Helsinki.")]
Columns = Annotated[list[str] | None, typer.Option("--column", help="canonical=name-in-file; may be repeated.")]
Strict = Annotated[bool, typer.Option("--strict", help="Refuse duplicates, two places at one time and one-point trips.")]
Accept = Annotated[bool, typer.Option("--accept-no-guarantee", help="Release although nothing is promised; recorded.")]
Override = Annotated[bool, typer.Option("--override-overlap", help="A population of its own although its people overlap another's; recorded.")]
Json = Annotated[bool, typer.Option("--json", help="Print machine-readable values.")]


def release(
    what: Annotated[str, typer.Argument(metavar="MECHANISM|RECIPE.toml", help="A mechanism's name, or a recipe file.")],
    source: Source = None,
    out: Out = None,
    settings: Settings = None,
    ledger: LedgerUrl = None,
    space: SpaceSpec = None,
    population: Population = None,
    limit: Limit = None,
    link: Annotated[str, typer.Option(help="Which trips share a pseudonym: none, day or user.")] = "none",
    keep_ids: Annotated[bool, typer.Option("--keep-ids", help="Keep uid and tid: for studies inside only.")] = False,
    accept_no_guarantee: Accept = False,
    override_overlap: Override = False,
    layout: Layout = None,
    time_zone: Zone = None,
    column: Columns = None,
    strict: Strict = False,
    workers: Annotated[int, typer.Option(help="Processes to use.")] = 1,
    explain: Annotated[bool, typer.Option("--explain", help="Show every default, the promise and the price; spend nothing.")] = False,
    json: Json = False,
) -> None:
    """Charge the ledger, run a mechanism, and write a release folder."""
    recipe = _recipe(what, source, out, settings, ledger, space, population, limit, link, keep_ids, accept_no_guarantee,
                     layout, time_zone, column, strict)
    mechanism, seed = _mechanism(recipe)
    if explain:
        _explain(recipe, mechanism, json)
        return
    from murmurate import door
    from murmurate.core.release import check_free

    target = Path(_given("--out", recipe.out))
    check_free(target)
    with working():
        private = _private(recipe, mechanism)
        with _ledger(recipe) as book:
            name = _population(book, private, recipe, mechanism.guarantee(), override_overlap)
            made = door.release(mechanism, private, ledger=book, out=target, population=name, link=recipe.link,
                                keep_ids=recipe.keep_ids, accept_no_guarantee=recipe.accept_no_guarantee,
                                rng=_rng(seed), workers=workers)
            _announce(made, book, name, json)


def fit(
    what: Annotated[str, typer.Argument(metavar="MECHANISM|RECIPE.toml")],
    source: Source = None,
    out: Out = None,
    settings: Settings = None,
    ledger: LedgerUrl = None,
    space: SpaceSpec = None,
    population: Population = None,
    limit: Limit = None,
    accept_no_guarantee: Accept = False,
    override_overlap: Override = False,
    layout: Layout = None,
    time_zone: Zone = None,
    column: Columns = None,
    strict: Strict = False,
    json: Json = False,
) -> None:
    """Charge the ledger once and write a model that can be sampled any number of times."""
    recipe = _recipe(what, source, out, settings, ledger, space, population, limit, "none", False, accept_no_guarantee,
                     layout, time_zone, column, strict)
    mechanism, seed = _mechanism(recipe)
    from murmurate import door
    from murmurate.core.release import check_free

    target = Path(_given("--out", recipe.out))
    check_free(target)
    with working():
        private = _private(recipe, mechanism)
        with _ledger(recipe) as book:
            name = _population(book, private, recipe, mechanism.guarantee(), override_overlap)
            made = door.fit(mechanism, private, ledger=book, out=target, population=name,
                            accept_no_guarantee=recipe.accept_no_guarantee, rng=_rng(seed))
            _announce(made, book, name, json)


def sample(
    model: Annotated[Path, typer.Argument(help="A folder that `fit` made.")],
    out: Annotated[Path, typer.Option("--out", help="The folder to make; it must not exist.")],
    settings: Settings = None,
    json: Json = False,
) -> None:
    """Draw trips from a fitted model: free, under the model's own guarantee."""
    from murmurate import door

    values = parse_settings(settings or [])
    seed = values.pop("seed", None)
    n_out = values.pop("n_out", None)
    if values or n_out is None:
        raise ParameterError(f"sample takes --set n_out=N (and seed for demos); got {', '.join(values) or 'no n_out'}.")
    with working():
        made = door.sample(model, n_out=n_out, out=out, rng=_rng(seed))
    _announce(made, None, None, json)


def verify(
    folder: Annotated[Path, typer.Argument(help="A release folder.")],
    ledger: LedgerUrl = None,
    json: Json = False,
) -> None:
    """Check hashes, manifest and guarantee of a release, and its debit where a ledger is given."""
    from murmurate.door import verify as check

    book = _open_ledger(ledger) if ledger else None
    findings = check(folder, ledger=book)
    if json:
        as_json({"release": str(folder), "checks": findings})
    else:
        for name, found in findings.items():
            typer.echo(f"{name}: {found}")


def list_names(
    what: Annotated[str, typer.Argument(metavar="mechanisms|metrics|attacks")],
    json: Json = False,
) -> None:
    """What there is to choose from."""
    from murmurate.listing import names

    rows = names(what)
    if json:
        as_json([{"name": name, "about": about} for name, about in rows])
    else:
        table(("name", "what it is"), rows)


def add_to(app: typer.Typer) -> None:
    """Put these commands on the command line."""
    for command in (release, fit, sample, verify):
        app.command()(command)
    app.command("list")(list_names)


def _recipe(what: str, source: str | None, out: Path | None, settings: list[str] | None, ledger: str | None, space: str | None,
            population: str | None, limit: str | None, link: str, keep_ids: bool, accept: bool, layout: str | None,
            time_zone: str | None, column: list[str] | None, strict: bool) -> Recipe:
    """The recipe file or the mechanism, with what the flags say put over it."""
    base = read_recipe(Path(what)) if what.endswith(".toml") else Recipe(mechanism=what)
    parameters = {**base.parameters, **parse_settings(settings or []), **({"space": space} if space else {})}
    columns = dict(pair.split("=", 1) for pair in column or [] if "=" in pair)
    if len(columns) != len(column or []):
        raise ParameterError(f"--column takes canonical=name-in-file; got {', '.join(column or [])}.")
    given = {"layout": layout, "time_zone": time_zone, "columns": columns or None, "strict": strict or None}
    return Recipe(
        mechanism=base.mechanism, source=source or base.source, out=str(out) if out else base.out, ledger=ledger or base.ledger,
        population=population or base.population, limit=limit or base.limit, link=base.link if link == "none" else link,
        keep_ids=keep_ids or base.keep_ids, accept_no_guarantee=accept or base.accept_no_guarantee, parameters=parameters,
        read={**base.read, **{name: value for name, value in given.items() if value is not None}})


def _mechanism(recipe: Recipe) -> tuple[Any, int | None]:
    """The mechanism, and the seed of a test or demo (which is no parameter of any mechanism)."""
    from murmurate.mechanisms import build

    parameters = dict(recipe.parameters)
    seed = parameters.pop("seed", None)
    return build(recipe.mechanism, parameters), seed


def _rng(seed: int | None) -> Randomness | None:
    from murmurate import noise

    return None if seed is None else noise.seeded(seed)


def _private(recipe: Recipe, mechanism: Any) -> Any:
    from murmurate.ingest.read import read
    from murmurate.ingest.stream import scan, worth_streaming

    source = _given("--in", recipe.source)
    if mechanism.local and worth_streaming(source, **recipe.read):
        return scan(source, **recipe.read)
    return read(source, **recipe.read)


def _ledger(recipe: Recipe) -> Ledger:
    return _open_ledger(recipe.ledger)


def _open_ledger(url: str | None) -> Ledger:
    from murmurate.core.ledger import Ledger

    return Ledger.in_memory() if url == "demo" else Ledger(url)


def _population(book: Ledger, private: Any, recipe: Recipe, guarantee: Guarantee, override: bool) -> str:
    """The population of this file; a new one gets its limit here, before anything is charged."""
    known = book.find_population(private.identity)
    name = book.population_of(private.identity, population=recipe.population, create=True, override_overlap=override)
    if recipe.limit is not None:
        book.limit(name, **_limit(recipe.limit, guarantee))
    elif known is None and not book.limits(name) and guarantee.kind in ("dp", "geoind") and book.purpose == "real":
        if recipe.ledger is not None:
            typer.echo(f"Notice: the new population {name!r} has no limit; set one with `murmurate ledger limit {name} ...`.", err=True)
        else:
            import sys

            if not sys.stdin.isatty():
                raise ParameterError(f"{name!r} is a new population and has no limit yet: say how much may ever be spent with --limit, "
                                     "or name a --ledger whose limits you keep yourself.")
            answer = typer.prompt(f"{name!r} is new. How much may ever be spent on it ({guarantee.kind}, {guarantee.unit.name})?")
            book.limit(name, **_limit(answer, guarantee))
    return name


def _limit(text: str, guarantee: Guarantee) -> dict[str, Any]:
    parts = text.split(":")
    kind, unit, numbers = (guarantee.kind, guarantee.unit.name, parts) if len(parts) <= 2 and _is_number(parts[0]) else (
        parts[0], parts[1] if len(parts) > 1 else "", parts[2:])
    if not numbers or not all(_is_number(number) for number in numbers) or len(numbers) > 2:
        raise ParameterError(f"--limit takes a number, number:delta or kind:unit:value[:delta]; got {text!r}.")
    if kind == "geoind":
        return {"kind": kind, "unit": unit, "epsilon_per_m": float(numbers[0])}
    delta = float(numbers[1]) if len(numbers) > 1 else getattr(guarantee, "delta", 0.0)
    return {"kind": kind, "unit": unit, "epsilon": float(numbers[0]), "delta": delta}


def _is_number(text: str) -> bool:
    return isinstance(parse_value(text), (int, float))


def _given(flag: str, value: str | None) -> str:
    if not value:
        raise ParameterError(f"{flag} is missing.")
    return value


def _explain(recipe: Recipe, mechanism: Any, json: bool) -> None:
    from murmurate.core.guarantee import to_json
    from murmurate.core.parameters import public_parameters

    parameters, guarantee = public_parameters(mechanism), mechanism.guarantee()
    if json:
        as_json({"mechanism": recipe.mechanism, "parameters": parameters, "guarantee": to_json(guarantee),
                 "words": guarantee.words(), "expected_error": mechanism.expected_error()})
        return
    typer.echo(to_toml(recipe, parameters))
    typer.echo(f"# Promise: {guarantee.words()}\n# Expected error: {mechanism.expected_error()}\n# Nothing was spent.")


def _announce(made: Release, book: Ledger | None, name: str | None, json: bool) -> None:
    manifest = made.manifest
    if json:
        as_json({"out": str(made.folder), "release_id": manifest.release_id, "mechanism": manifest.mechanism,
                 "population": name, "ledger": book.url if book else None, "manifest": manifest.to_json()})
        return
    typer.echo(f"Released: {made.folder}  (release {manifest.release_id})")
    typer.echo(f"Promise:  {manifest.guarantee.words()}")
    if book and name:
        typer.echo(f"Ledger:   {book.url}, population {name!r}")
        for line in book.spent_words(name):
            typer.echo(f"          {line}")
