"""`murmurate ledger ...`: what was spent, by whom, and what may be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.choices import (
    EngineWord,
    Json,
    LedgerUrl,
    Override,
    People,
    Settings,
    SpaceSpec,
    choose_engine,
    open_ledger,
    read_options,
    takes,
)
from murmurate.cli.show import as_json, table

if TYPE_CHECKING:
    from murmurate.custody.costing import Cost
    from murmurate.custody.recipes import Recipe

app = typer.Typer(help="The record of what each population has spent.", no_args_is_help=True)

Name = Annotated[str, typer.Argument(metavar="POPULATION", help="The population's name.")]


@app.command()
def show(
    population: Annotated[str | None, typer.Argument(metavar="[POPULATION]", help="One population; default: all.")] = None,
    ledger: LedgerUrl = None,
    json: Json = False,
) -> None:
    """Show accounts with their limits, and the history with who and when."""
    with open_ledger(ledger) as book:
        names = [population] if population else book.populations()
        history = book.history(population)
        if json:
            as_json(
                {
                    "ledger": book.url,
                    "populations": {name: [_account(spent) for spent in book.spent(name)] for name in names},
                    "history": [vars(entry) for entry in history],
                }
            )
            return
        typer.echo(f"Ledger: {book.url}")
        for name in names:
            accounts = book.spent(name)
            typer.echo(f"\nPopulation {name!r}: {'' if accounts else 'nothing spent, no limit'}")
            for account in accounts:
                typer.echo(f"  {_account_words(account)}")
        typer.echo("")
        lines = [(entry.at[:19], entry.who, entry.population or "", entry.what, _details(entry.details)) for entry in history]
        table(("when (UTC)", "who", "population", "what", "details"), lines, title="history")


@app.command()
def limit(
    population: Name,
    epsilon: Annotated[float | None, typer.Option(help="The most that may be spent (differential privacy).")] = None,
    delta: Annotated[float | None, typer.Option(help="The delta of this epsilon.")] = None,
    epsilon_per_m: Annotated[float | None, typer.Option(help="The most per metre (geo-indistinguishability).")] = None,
    unit: Annotated[str, typer.Option(help="point, trip, user_day or user.")] = "user",
    two_people: Annotated[
        bool, typer.Option("--two-people", help="Two people must sign every release under this limit.")
    ] = False,
    why: Annotated[str, typer.Option("--why", help="The reason, for the history.")] = "",
    ledger: LedgerUrl = None,
) -> None:
    """Set what an account may spend; earlier limits stay in the history."""
    with open_ledger(ledger) as book:
        kind = "geoind" if epsilon_per_m is not None else "dp"
        amounts = {"epsilon": epsilon, "delta": delta, "epsilon_per_m": epsilon_per_m}
        set_limit = book.limit(population, kind=kind, unit=unit, two_people=two_people, why=why, **amounts)
        asks = "; two people must sign every release" if two_people else ""
        typer.echo(f"The limit of {population!r} is now {set_limit.amount}{asks}.")
        for spent in book.spent(population):
            if not spent.within:
                typer.echo(f"Notice: {spent.spent} is spent already, more than this limit; nothing more can be.", err=True)


def _machine(recipe: Recipe, mechanism: Any) -> Cost | None:
    """Return what the release of the recipe's file takes of the machine."""
    from murmurate.custody.costing import machine_cost
    from murmurate.engine import engine

    with engine(choose_engine(recipe.engine, None)) as running:
        return machine_cost(mechanism, recipe.source or "", recipe.read, running)


@app.command()
def plan(
    what: Annotated[str, typer.Argument(metavar="MECHANISM|RECIPE.toml")],
    population: Annotated[str | None, typer.Option("--population", help="Against this population's limits.")] = None,
    settings: Settings = None,
    space: SpaceSpec = None,
    source: Annotated[
        str | None, typer.Option("--in", help="A file, to estimate CPU time, memory and disk of its release.")
    ] = None,
    engine: EngineWord = None,
    ledger: LedgerUrl = None,
    json: Json = False,
) -> None:
    """Print the cost and the expected error of a release; nothing is spent."""
    from murmurate.custody.recipes import advice, build_mechanism, gather

    recipe = gather(what, settings=settings, space=space, ledger=ledger, population=population, source=source, engine=engine)
    mechanism, _ = build_mechanism(recipe)
    machine = _machine(recipe, mechanism) if recipe.source else None
    with open_ledger(recipe.ledger) as book:
        price = book.plan(recipe.population, mechanism.guarantee())
        if json:
            as_json(
                {
                    "mechanism": recipe.mechanism,
                    "requested": _amount(price.requested),
                    "spent_before": _amount(price.spent_before),
                    "spent_after": _amount(price.spent_after),
                    "remaining": _amount(price.remaining),
                    "allowed": price.allowed,
                    "expected_error": mechanism.expected_error(),
                    "notes": list(price.notes),
                    "machine": machine.to_json() if machine else None,
                }
            )
            return
        typer.echo(f"{recipe.mechanism}: asks for {price.requested or 'nothing that adds up'}")
        typer.echo(f"Promise: {mechanism.guarantee().words()}")
        typer.echo(f"Expected error: {mechanism.expected_error()}")
        for sentence in advice(mechanism):
            typer.echo(sentence)
        for line in price.lines:
            left = f"{line.after.remaining} would remain" if line.after.limit else "no limit"
            typer.echo(
                f"  {line.requested.unit}: {line.before.spent} spent, {line.after.spent} after; "
                f"{left if line.allowed else 'over the limit of ' + str(line.before.limit)}"
            )
        notes = price.notes
        if recipe.population is None and price.lines:
            bound = f" The recipe gives a new population the limit {recipe.limit}." if recipe.limit else ""
            notes = (f"No population is named, so nothing spent and no limit is counted: add --population NAME.{bound}",)
        for note in notes:
            typer.echo(f"Note: {note}")
        if recipe.source:
            typer.echo(
                f"Machine: {machine.words() if machine else 'cannot be estimated for this mechanism and these settings.'}"
            )
        typer.echo("Nothing was spent." if price.allowed else "This would be refused. Nothing was spent.")


@app.command()
@takes(read=read_options)
def attach(
    population: Name,
    source: Annotated[str, typer.Argument(metavar="FILE", help="The file with their data.")],
    create: Annotated[bool, typer.Option("--create", help="Make the population if it is new.")] = False,
    override_overlap: Override = False,
    people: People = None,
    ledger: LedgerUrl = None,
    *,
    read: dict[str, Any],
) -> None:
    """Say whose data a file holds, so that it spends their budget."""
    from murmurate.custody.sources import open_private

    private = open_private(source, read=read, people=people)
    with open_ledger(ledger) as book:
        book.attach(private.identity, population, create=create, override_overlap=override_overlap)
        typer.echo(f"{source} now belongs to population {population!r} in {book.url}.")


@app.command()
def backup(path: Annotated[Path, typer.Argument(help="The file to write.")], ledger: LedgerUrl = None) -> None:
    """Write a consistent copy in one SQLite file, itself a ledger."""
    with open_ledger(ledger) as book:
        typer.echo(f"{book.url} was copied to {book.backup(path)}.")


@app.command()
def check(ledger: LedgerUrl = None) -> None:
    """Check every line of the ledger for damage and editing."""
    with open_ledger(ledger) as book:
        found = book.verify()
        typer.echo(f"{book.url}: {found.n_lines} lines and {found.n_debits} debits hold; chain ends in {found.digest[:16]}.")


@app.command()
def forget(
    release: Annotated[str, typer.Argument(help="A release folder or a release id.")],
    ledger: LedgerUrl = None,
) -> None:
    """Delete the record of which released trip came from which original."""
    from murmurate.custody.internal import Internal
    from murmurate.releases.manifest import read_manifest

    release_id = read_manifest(Path(release)).release_id if Path(release).is_dir() else release
    with open_ledger(ledger) as book:
        gone = Internal(book, release_id).forget_pairing()
        typer.echo(
            "Deleted: nothing links this release to its originals any more." if gone else f"Nothing was kept for {release_id}."
        )


def _amount(amount: object) -> dict[str, object] | None:
    return None if amount is None else dict(vars(amount))


def _account_words(account: Any) -> str:
    """Say what was spent of an account, what is left, and what an account without a limit takes."""
    releases = f"{account.n_charges:,} release{'s' if account.n_charges != 1 else ''}"
    if account.limit is not None:
        left = "nothing is left" if not account.remaining.epsilon else f"{account.remaining} left"
        return f"{left}: {account.spent} spent in {releases} of the limit of {account.limit}"
    if account.closed:
        return f"{account.spent} spent in {releases} for coarser units; no limit of its own, so nothing is charged for it alone"
    return f"{account.spent} spent in {releases}; NO LIMIT is set: any amount may be spent (murmurate ledger limit)"


def _account(account: Any) -> dict[str, object]:
    amounts = {"spent": _amount(account.spent), "limit": _amount(account.limit)}
    return {**amounts, "closed": account.closed, "charges": account.n_charges}


def _details(details: dict[str, object]) -> str:
    shown = ("release_id", "mechanism", "kind", "unit", "epsilon", "delta", "n_people")
    return ", ".join(f"{key}={value}" for key, value in details.items() if key in shown)
