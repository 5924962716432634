"""File: what is in it, what is wrong? Recognised columns with a choice each, zone and layout, faults with their remedy."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from murmurate.custody.recipes import parse_value
from murmurate.errors import MurmurateError
from murmurate.ingest.cleaning import Cleaning
from murmurate.ingest.layouts import LAYOUTS
from murmurate.studio.drafts import Draft
from murmurate.studio.room import Room, field, go
from murmurate.studio.same import same_elsewhere
from murmurate.studio.screens.start import look, receive
from murmurate.studio.uploads import suffix_of

CANONICAL = {
    "uid": "Person or vehicle",
    "tid": "Trip",
    "datetime": "Time",
    "lat": "Latitude",
    "lng": "Longitude",
}
"""Columns that a person can point out, in words."""
CLEANING = {
    "max_speed_kmh": "Leave out points faster than, km/h",
    "split_gap_s": "New trip after a pause of, s",
    "split_stay_s": "New trip after a stay of, s",
}
"""Settings of cleaning that a person can give here, in words."""
HEAD_BYTES = 65_536
"""Bytes of the file that are looked at for the names of columns. Set by hand."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        if room.is_charged(draft):
            return go(f"/draft/{draft.id}/release")
        return page(draft)

    def page(draft: Draft, error: MurmurateError | None = None) -> Response:
        job = room.jobs.find(draft, "inspection")
        if job is None:  # a file named on the command line
            look(room, draft)
            job = room.jobs.find(draft, "inspection")
        making = room.jobs.find(draft, "demo")
        shown = making if making is not None and not making.over else job
        found = draft.internal("inspection") if job is not None and job.state == "done" else None
        failed = shown.message if shown is not None and shown.state in ("failed", "cancelled") else ""
        return room.page(
            "file.html.j2",
            status=422 if error else 200,
            error=error,
            draft=draft,
            steps=room.steps(draft, "file"),
            same=same_elsewhere(room, draft),
            cleaning=CLEANING,
            job=shown if shown is not None and not shown.over else None,
            found=found,
            faults=[room.said(draft, fault) for fault in (found["faults"] if found else [failed] if failed else [])],
            remedy=found["remedy"] if found else None,
            canonical=CANONICAL,
            header=header_of(draft),
            columns={**(found["report"]["columns"] if found else {}), **draft.read.get("columns", {})},
            layouts=list(LAYOUTS),
        )

    async def change(request: Request) -> Response:
        draft = room.draft(request)
        try:
            clean = _cleaning(request)
        except MurmurateError as error:
            return page(draft, error)
        look(room, room.drafts.change(draft, read=_read_options(request, draft), clean=clean))
        return go(f"/draft/{draft.id}/file")

    async def replace(request: Request) -> Response:
        draft = room.draft(request)
        name, _ = await receive(room, request, draft, "data")
        source = str(draft.folder / f"data{suffix_of(name)}")
        look(room, room.drafts.change(draft, name=name, source=source, read={}))
        return go(f"/draft/{draft.id}/file")

    return [
        Route("/draft/{draft}/file", show),
        Route("/draft/{draft}/file", change, methods=["POST"]),
        Route("/draft/{draft}/upload", replace, methods=["POST"]),
    ]


def _read_options(request: Request, draft: Draft) -> dict[str, Any]:
    """Return the options of `read` that the form gives; what is recognised anyway is not said again."""
    inspected = draft.internal("inspection")
    known = inspected["report"]["columns"] if inspected else {}
    columns = {name: field(request, f"column_{name}") for name in CANONICAL}
    chosen = {name: column for name, column in columns.items() if column and column != known.get(name)}
    given: dict[str, Any] = {name: field(request, name) for name in ("layout", "time_zone", "local_zone", "time_format")}
    options = {name: value for name, value in given.items() if value}
    kept = {name: column for name, column in draft.read.get("columns", {}).items() if columns.get(name) == column}
    if chosen or kept:
        options["columns"] = {**kept, **chosen}
    if field(request, "strict"):
        options["strict"] = True
    return options


def _cleaning(request: Request) -> dict[str, Any]:
    """Return the cleaning that the form asks for; the cleaning itself says what is wrong with a setting."""
    given = {name: field(request, name) for name in CLEANING}
    clean = {name: parse_value(value) for name, value in given.items() if value}
    Cleaning.of(clean)
    return clean


def header_of(draft: Draft) -> list[str]:
    """Return the names of the columns of a text file, for choosing; empty where they cannot be told."""
    path = Path(draft.source or "")
    if path.suffix.lower() not in (".csv", ".tsv", ".txt", ".tab") or not path.is_file():
        return []
    with path.open("rb") as file:
        first = file.read(HEAD_BYTES).decode("utf-8", "replace").splitlines()[:1]
    if not first:
        return []
    mark = max(",;\t|", key=first[0].count)
    return [name.strip() for name in next(csv.reader(first, delimiter=mark), [])][:100]
