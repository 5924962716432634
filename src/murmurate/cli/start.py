"""`start`: from a file to a recipe, with a few questions; nothing is spent and nothing leaves."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from murmurate.cli.choices import Json, clean_options, read_options, takes
from murmurate.cli.show import as_json, until_it_fits, working
from murmurate.cli.show import asking as quietly
from murmurate.core.parameters import one_of
from murmurate.errors import InputError, OutputError, ParameterError

if TYPE_CHECKING:
    from murmurate.custody.advice import Advice
    from murmurate.custody.starting import Look, Offer

HOW_MANY = "How many such releases are planned"
"""Question with a number for an answer."""
CUT_BY_DATA = "How points were made into trips was chosen by the columns and the typical pause between the points of the data."
"""What is declared where nobody said how to clean."""
PROMPTS = {"protect": "Whom to protect", "purpose": "What the release is for"}
"""Questions with words for answers."""


@takes(read=read_options, clean=clean_options)
def start(
    source: Annotated[str, typer.Argument(metavar="FILE", help="The private file, folder or pattern.")],
    recipe: Annotated[Path, typer.Option("--recipe", help="The recipe to write; it must not exist.")] = Path("recipe.toml"),
    yes: Annotated[bool, typer.Option("--yes", help="Take the advice without questions.")] = False,
    protect: Annotated[str | None, typer.Option("--protect", help="trip, user_day or user.")] = None,
    purpose: Annotated[
        str | None,
        typer.Option("--for", help="synthetic_trips, zone_tables, road_flows, moved_points or whole_days."),
    ] = None,
    repeats: Annotated[int | None, typer.Option("--repeats", help="How many such releases are planned.")] = None,
    place: Annotated[str | None, typer.Option("--place", help="A city by name, as the public box.")] = None,
    box: Annotated[str | None, typer.Option("--box", help="A public box: SOUTH,WEST,NORTH,EAST in degrees.")] = None,
    roads: Annotated[str | None, typer.Option("--roads", help="A public road network (OpenStreetMap, GraphML, ...).")] = None,
    json: Json = False,
    *,
    read: dict[str, Any],
    clean: dict[str, Any],
) -> None:
    """Look at a file, ask whom to protect and what for, and write a recipe that `murmurate release` runs as it is."""
    from murmurate.custody.advice import PROTECT, PURPOSES, advise

    if recipe.exists():
        raise OutputError(f"{recipe} exists already. Name another with --recipe, or move it away.")
    asking = not yes and not json and sys.stdin.isatty()
    if not yes and not json and not asking:
        raise ParameterError("there is no terminal to ask questions in: add --yes to take the advice, or answer with options.")
    with working("reading"):
        found = _looked(source, read, clean, asking)
    if not json:
        _show(found)
    protect = protect or _choice("protect", PROTECT, found.protect, asking)
    purpose = purpose or _choice("purpose", PURPOSES, "road_flows" if roads else "synthetic_trips", asking)
    repeats = repeats or (until_it_fits(lambda: typer.prompt(HOW_MANY, default="1"), _number) if asking else 1)
    where, declared = _box(found, place, box, needed=purpose not in ("road_flows", "moved_points") and not roads, asking=asking)
    clean, chosen = _cleaning(found, clean, purpose)
    declared += [CUT_BY_DATA] if chosen else []
    numbers = found.rough()
    declared += [_numbers_words(numbers)]
    if asking:
        with quietly():
            agreed = typer.confirm(f"May the recipe say this: {declared[-1]}", default=True)
        numbers, declared = (numbers, declared) if agreed else ({}, declared[:-1])
    advice = advise(
        protect=protect,
        purpose=purpose,
        repeats=repeats,
        box=where,
        roads=roads,
        timed=found.trips.has_time,
        source=source,
        read=found.read,
        clean=clean,
        declared=declared,
        **numbers,
    )
    warnings = _warnings(advice, found)
    try:
        recipe.write_text(advice.recipe, encoding="utf-8")
    except OSError as error:
        recipe.unlink(missing_ok=True)
        raise OutputError(f"{recipe} could not be written: {error.strerror or error}.") from None
    _close(found, advice, recipe, declared, warnings, json)


def _looked(source: str, read: dict[str, Any], clean: dict[str, Any], asking: bool) -> Look:
    """Open the file; where times carry no zone, a person is asked for it."""
    from murmurate.custody.starting import look

    try:
        return look(source, read=read, clean=clean)
    except InputError as error:
        if not asking or "no time zone" not in str(error):
            raise
        return until_it_fits(
            lambda: typer.prompt("The times carry no zone. Which one are they in, such as Europe/Helsinki"),
            lambda zone: look(source, read={**read, "time_zone": zone.strip()}, clean=clean),
        )


def _cleaning(found: Look, given: Mapping[str, Any], purpose: str) -> tuple[dict[str, Any], bool]:
    """Return the cleaning of the recipe, and whether it was chosen by looking at the data."""
    from murmurate.ingest.cleaning import BY_PLACE

    if given or purpose != "moved_points":
        return dict(found.clean), bool(found.clean) and not given
    by_time = {name: value for name, value in found.clean.items() if name not in BY_PLACE}  # else it tells of exact places
    if by_time != dict(found.clean):
        typer.echo(
            "\nMoved points: the recipe leaves out the cleaning that looks at places, since its result would show in the "
            "times. So its trips differ from those above.",
            err=True,  # standard output may be read as JSON
        )
    return by_time, bool(by_time)


def _show(found: Look) -> None:
    trips = found.trips
    typer.echo(f"{found.source}: {trips.n_points:,} points, {trips.n_trips:,} trips, {trips.n_users:,} people (private)")
    columns = ", ".join(f"{name} = {column!r}" for name, column in found.report.columns.items())
    typer.echo(f"  columns: {columns}\n  hours and days are counted in {trips.time_zone}")
    for note in found.notes:
        typer.echo(f"  {note}")


def _choice(name: str, known: Mapping[str, str], default: str, asking: bool) -> str:
    if not asking:
        return default
    typer.echo(f"\n{PROMPTS[name]}:")
    for word, meaning in known.items():
        typer.echo(f"  {word:16} {meaning}")
    return until_it_fits(lambda: typer.prompt(PROMPTS[name], default=default), partial(_word, known))


def _word(known: Mapping[str, str], answer: str) -> str:
    one_of("the answer", answer.strip(), known)
    return answer.strip()


def _number(answer: str) -> int:
    if not answer.strip().isdigit() or not int(answer):
        raise ParameterError(f"give a whole number from 1 on; got {answer!r}.")
    return int(answer)


def _box(
    found: Look, place: str | None, box: str | None, *, needed: bool, asking: bool
) -> tuple[Sequence[float] | None, list[str]]:
    """Return the public box, and what has to be declared for it."""
    from murmurate.spaces.gazetteer import city

    if box is not None or place is not None:
        return (_corners(box) if box is not None else city(str(place)).box), []
    offers = found.offers() if needed else []
    if not offers:
        return None, []
    if asking:
        typer.echo("\nThe release needs a public box. What is public anyway, or may be declared public:")
        for number, offer in enumerate(offers, start=1):
            typer.echo(f"  {number}  {offer.label}; {offer.share:.0%} of the points")
        return until_it_fits(
            lambda: typer.prompt("A number, a city, or SOUTH,WEST,NORTH,EAST", default="1"),
            lambda answer: _box_of(answer.strip(), offers),
        )
    return _box_of("1", offers)


def _box_of(answer: str, offers: Sequence[Offer]) -> tuple[Sequence[float], list[str]]:
    """Return the box that a person chose: an offer by its number, four corners, or a city by name."""
    from murmurate.spaces.gazetteer import city

    if not answer.isdigit():
        return _corners(answer) if "," in answer and any(map(str.isdigit, answer)) else city(answer).box, []
    if not 1 <= int(answer) <= len(offers):
        raise ParameterError(f"there are boxes 1 to {len(offers)}; got {answer}.")
    chosen = offers[int(answer) - 1]
    return chosen.box, [chosen.declared]


def _corners(text: str) -> Sequence[float]:
    try:
        south, west, north, east = (float(value) for value in text.split(","))
    except ValueError:
        raise ParameterError(f"a box is SOUTH,WEST,NORTH,EAST in degrees; got {text!r}.") from None
    from murmurate.spaces.grid import Grid

    Grid(south, west, north, east, 1000)  # refuses corners that make no box
    return south, west, north, east


def _warnings(advice: Advice, found: Look) -> list[str]:
    """Say what a release by this advice would hold little of; private."""
    from murmurate.custody.looking import findings
    from murmurate.mechanisms import build

    return [f"{one.words}. {one.remedy}" for one in findings(build(advice.mechanism, advice.settings), found.trips)]


def _numbers_words(numbers: Mapping[str, int]) -> str:
    words = ", ".join(f"{name} {value:,}" for name, value in numbers.items())
    return f"Settings follow from the size of the data, rounded down to 1, 3, 10, 30 and so on: {words}."


def _close(found: Look, advice: Advice, recipe: Path, declared: Sequence[str], warnings: Sequence[str], json: bool) -> None:
    """Print the advice, what was declared, and the command to go on with."""
    command = f"murmurate release {shlex.quote(str(recipe))} --out release"
    if json:
        values = {"recipe": str(recipe), "command": command, "notes": list(found.notes), "declared": list(declared)}
        as_json({**values, "warnings": list(warnings), "advice": advice.to_json()})
        return
    typer.echo(f"\n{advice.words()}")
    if declared:
        typer.echo("Declared public by you with this recipe, and published with the release:")
        for sentence in declared:
            typer.echo(f"  - {sentence}")
    for warning in warnings:
        typer.echo(f"Warning (private): {warning}")
    typer.echo(f"\nWritten: {recipe}. Nothing was spent. Read it, then run:\n  {command}")
