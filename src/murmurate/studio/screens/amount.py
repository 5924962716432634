"""How much: slide epsilon and watch map, error, odds and cost move together; on a public stand-in, or on the own file."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from murmurate.errors import MurmurateError, ParameterError
from murmurate.studio import standin
from murmurate.studio.answers import Answer, answers
from murmurate.studio.charts import charts
from murmurate.studio.drafts import Draft
from murmurate.studio.pictures import pictures
from murmurate.studio.products import PER, at_stop, built, dial, grid_spec
from murmurate.studio.room import Room, field, go
from murmurate.studio.same import same_elsewhere

MOST_COMPARED = 3
"""Settings side by side at a time; more do not fit a screen."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    def page(draft: Draft, error: MurmurateError | None = None) -> Response:
        return room.page("amount.html.j2", status=422 if error else 200, error=error, **shown(room, draft))

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        if not draft.mechanism or room.furthest(draft) == "release":
            return go(f"/draft/{draft.id}/{room.furthest(draft)}")
        return page(draft)

    async def choose(request: Request) -> Response:
        draft = room.draft(request)
        try:
            draft = _changed(room, request, draft)
        except MurmurateError as error:
            return page(draft, error)
        if field(request, "go") == "sign":
            return go(f"/draft/{draft.id}/sign")
        return go(f"/draft/{draft.id}/amount")

    async def rehearse(request: Request) -> Response:
        draft = _changed(room, request, room.draft(request))
        _, stops = dial(draft.mechanism)
        order = room.order(
            draft,
            task="rehearsals",
            mechanism=draft.mechanism,
            settings=[[value, at_stop(draft, value)] for value in stops],
            area=grid_spec(draft),
            roads=draft.roads,
            earlier=draft.internal("rehearsals") or [],
            at=datetime.now(UTC).isoformat(timespec="seconds"),
        )
        room.jobs.start(draft, "rehearsals", order)
        room.drafts.change(draft, own_file=True)
        return go(f"/draft/{draft.id}/amount")

    async def compare(request: Request) -> Response:
        draft = room.draft(request)
        if not draft.mechanism:
            return go(f"/draft/{draft.id}/{room.furthest(draft)}")
        return room.page("compare.html.j2", **shown(room, draft))

    async def choose_compared(request: Request) -> Response:
        draft = room.draft(request)
        _, stops = dial(draft.mechanism)
        form = request.scope["state"]["form"]
        wanted = [float(value) for value in form.get("stop", []) if _is_stop(value, stops)][:MOST_COMPARED]
        room.drafts.change(draft, compared=tuple(dict.fromkeys(wanted)))
        return go(f"/draft/{draft.id}/compare")

    return [
        Route("/draft/{draft}/amount", show),
        Route("/draft/{draft}/amount", choose, methods=["POST"]),
        Route("/draft/{draft}/rehearse", rehearse, methods=["POST"]),
        Route("/draft/{draft}/compare", compare),
        Route("/draft/{draft}/compare", choose_compared, methods=["POST"]),
    ]


def shown(room: Room, draft: Draft) -> dict[str, Any]:
    """Return everything the page says, for every stop: the script only turns to another one."""
    parameter, stops = dial(draft.mechanism)
    history = draft.internal("rehearsals") or []
    job = room.jobs.find(draft, "rehearsals")
    own = draft.own_file and bool(history)
    unit = built(draft.mechanism, draft.parameters).guarantee().unit.name
    board = history[-1]["board"] if own else standin.board(draft.mechanism, unit)
    if board is None:
        board = {"stops": [{"value": value, "scores": {}, "attacks": {}} for value in stops], "original": {}, "measures": {},
                 "floor": {}, "grid": None, "runs": 0, "kind": ""}  # fmt: skip
    ground = board if own else standin.table()
    at = _nearest(draft.parameters.get(parameter, stops[0]), stops)
    found = answers(room, draft, board)
    compared = draft.compared or tuple(stops[max(0, at - 1) : at + 2])
    return {
        "draft": draft,
        "steps": room.steps(draft, "amount"),
        "parameter": parameter,
        "stops": stops,
        "at": at,
        "answers": found,
        "chosen": found[at],
        "board": board,
        "own": own,
        "pictures": pictures(board, ground),
        "charts": charts(board, found, parameter),
        "per": PER[unit],
        "unit": unit,
        "job": job if job is not None and not job.over else None,
        "failed": job.message if job is not None and job.state in ("failed", "cancelled") else "",
        "history": history,
        "fields": _fields(draft, parameter),
        "same": same_elsewhere(room, draft),
        "compared": compared,
        "city": standin.table()["city"],
        "data": _data(found, board),
    }


def _data(found: list[Answer], board: dict[str, Any]) -> dict[str, Any]:
    """Return what the script turns to: sentences of every stop, and the cells under the cursor."""
    return {
        "stops": [answer.told() for answer in found],
        "cells": [stop.get("cells", []) for stop in board["stops"]],
        "original": board["original"].get("cells", []),
    }


def _fields(draft: Draft, parameter: str) -> list[tuple[str, Any]]:
    """Return the other plain settings of the mechanism that a person may change here."""
    hidden = {parameter, "space", "unit", "roads", "library", "seed"}
    known = {name: value for name, value in _all(draft).items() if name not in hidden}
    return [(name, "" if value is None else value) for name, value in known.items() if not isinstance(value, (dict, list))]


def _all(draft: Draft) -> dict[str, Any]:
    from murmurate.studio.products import every_parameter

    return every_parameter(draft.mechanism, draft.parameters)


def _changed(room: Room, request: Request, draft: Draft) -> Draft:
    """Take the stop, the source and the other settings; the mechanism itself says what is wrong with one."""
    from murmurate.custody.recipes import parse_value

    parameter, stops = dial(draft.mechanism)
    text = field(request, "stop")
    if not _is_stop(text, stops):
        raise ParameterError(f"{parameter} is one of {', '.join(f'{stop:g}' for stop in stops)} here; got {text!r}.")
    parameters = at_stop(draft, float(text))
    now = {name: str(value) for name, value in _fields(draft, parameter)}
    for name, before in now.items():
        given = field(request, f"set_{name}", before)
        if given != before:
            parameters[name] = parse_value(given) if given else None
    built(draft.mechanism, parameters).guarantee()
    own = field(request, "source") == "own"
    return room.drafts.change(draft, parameters=parameters, own_file=own)


def _is_stop(text: str, stops: tuple[float, ...]) -> bool:
    try:
        return float(text) in stops
    except ValueError:
        return False


def _nearest(value: Any, stops: tuple[float, ...]) -> int:
    return min(range(len(stops)), key=lambda k: abs(stops[k] - float(value)))
