"""What: which product, of which public area? Cards by use, with a picture from the built-in city."""

from __future__ import annotations

import math
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from murmurate.core.parameters import one_of
from murmurate.custody.advice import Advice, advise
from murmurate.errors import InputError, MurmurateError, ParameterError
from murmurate.mechanisms import NAMES
from murmurate.spaces import parse
from murmurate.spaces.grid import Grid
from murmurate.studio import standin
from murmurate.studio.drafts import Draft
from murmurate.studio.pictures import thumbnail
from murmurate.studio.products import CELL_M, first_parameters, products, promise_of, space_wanted, unfit
from murmurate.studio.room import Room, field, go
from murmurate.studio.same import same_elsewhere
from murmurate.studio.screens.start import receive
from murmurate.studio.uploads import suffix_of

SIDES = ("south", "west", "north", "east")
"""Edges of an area, in the order of `--space`."""
ROUNDED = 0.05
"""Degrees to which the suggested area is rounded outwards, so that it tells no more than the town. Set by hand."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    def page(draft: Draft, error: MurmurateError | None = None, typed: dict[str, str] | None = None) -> Response:
        typed = typed or _suggested(draft)
        cards = []
        for item in products():
            why = unfit(draft, item.mechanism, _any_space(space_wanted(item.mechanism)))
            if not why and space_wanted(item.mechanism) == "road" and not draft.roads:
                why = "It needs a public road network: add one below."
            cards.append((item, why, thumbnail(item.mechanism, draft.unit, item.picture)))
        return room.page(
            "what.html.j2",
            status=422 if error else 200,
            draft=draft,
            error=error,
            steps=room.steps(draft, "what"),
            cards=cards,
            typed=typed,
            advice=_advised(draft, typed),
            same=same_elsewhere(room, draft),
            suggested=not draft.area,
        )

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        if not draft.unit or room.furthest(draft) == "release":
            return go(f"/draft/{draft.id}/{'whom' if not draft.unit else 'release'}")
        return page(draft)

    async def choose(request: Request) -> Response:
        draft = room.draft(request)
        typed = {name: field(request, name) for name in (*SIDES, "cell_m", "area_public")}
        mechanism = field(request, "mechanism")
        try:
            one_of("the product", mechanism, NAMES)
            if space_wanted(mechanism) == "grid" or any(typed[name] for name in SIDES):
                suggested = not draft.area and all(typed[name] == _suggested(draft)[name] for name in SIDES)
                said = _declared(typed) if suggested or draft.declared == _declared(typed) else ()
                area, public = _area(typed), bool(typed["area_public"])
                draft = room.drafts.change(draft, area=area, area_public=public, declared=said if public else ())
            if space_wanted(mechanism) == "grid" and not draft.area_public:
                raise ParameterError(
                    "a space that would have to be read from private data is refused unless it is declared public: "
                    "say that this area is public, or give another one."
                )
            parameters = first_parameters(draft, mechanism)
            promise_of(mechanism, parameters)
        except MurmurateError as error:
            return page(draft, error, typed)
        room.drafts.change(draft, mechanism=mechanism, parameters=parameters, own_file=False, compared=())
        (draft.folder / "rehearsals.json").unlink(missing_ok=True)
        return go(f"/draft/{draft.id}/amount")

    async def roads(request: Request) -> Response:
        draft = room.draft(request)
        try:
            name, _ = await receive(room, request, draft, "roads")
        except InputError as error:
            return page(draft, error)
        path = draft.folder / f"roads{suffix_of(name)}"
        try:
            parse(f"road:{path}")
        except MurmurateError as error:
            path.unlink()
            return page(draft, InputError(str(error).replace(str(path), name)))
        room.drafts.change(draft, roads=str(path))
        return go(f"/draft/{draft.id}/what#roads")

    return [
        Route("/draft/{draft}/what", show),
        Route("/draft/{draft}/what", choose, methods=["POST"]),
        Route("/draft/{draft}/roads", roads, methods=["POST"]),
    ]


def _suggested(draft: Draft) -> dict[str, str]:
    """Return the area as it was given, or one around the file, rounded outwards; the person says whether it is public."""
    if draft.area:
        return {name: f"{value:g}" for name, value in draft.area.items()} | {"area_public": "1" if draft.area_public else ""}
    extent = (draft.internal("inspection") or {}).get("extent")
    if not extent:
        return {**dict.fromkeys(SIDES, ""), "cell_m": f"{CELL_M:g}", "area_public": ""}
    outwards = {"south": math.floor, "west": math.floor, "north": math.ceil, "east": math.ceil}
    edges = {name: f"{outwards[name](extent[name] / ROUNDED) * ROUNDED:.4g}" for name in SIDES}
    return {**edges, "cell_m": f"{CELL_M:g}", "area_public": ""}


def _area(typed: dict[str, str]) -> dict[str, float]:
    """Read the area; the grid itself says what is wrong with it."""
    values: dict[str, float] = {}
    for name in (*SIDES, "cell_m"):
        try:
            values[name] = float(typed[name])
        except ValueError:
            raise ParameterError(
                f"{name} is a number in {'metres' if name == 'cell_m' else 'degrees'}; got {typed[name]!r}."
            ) from None
    Grid(**values)
    return values


def _declared(typed: dict[str, str]) -> tuple[str, ...]:
    """Return the sentence that is published where the area was taken from the file."""
    box = ", ".join(typed[name] for name in SIDES)
    return (f"The area {box} (south, west, north, east) was looked up in the data and declared public.",)


def _advised(draft: Draft, typed: dict[str, str]) -> Advice | None:
    """Return what custody advises for these answers, from public facts alone; None before there is an area."""
    try:
        area = _area(typed)
        return advise(protect=draft.unit, box=[area[name] for name in SIDES])
    except MurmurateError:
        return None


def _any_space(wanted: str) -> Any:
    """Return any public space of a kind, for asking a mechanism what it can promise."""
    if wanted == "road":
        return standin.network()
    return parse(standin.table()["city"]["grid"]) if wanted == "grid" else None
