"""Whom: a trip, a person's day, a person? None is chosen beforehand. And whose budget is it, with which limit?"""

from __future__ import annotations

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from murmurate.core.guarantee import DP, Unit
from murmurate.core.parameters import one_of, whole
from murmurate.custody.limits import parse_limit, refuse_unlimited
from murmurate.errors import MurmurateError
from murmurate.studio.drafts import Draft
from murmurate.studio.products import MAX_TRIPS, UNITS
from murmurate.studio.room import Room, field, go
from murmurate.studio.same import same_elsewhere

CARDS = {
    "trip": (
        "One trip",
        "Limits how surely anybody can tell whether one trip was in the data.",
        "A person who makes many trips is not protected as a whole: their trips add up.",
        "Vehicles without a driver’s name, or data in which nobody appears often.",
    ),
    "user_day": (
        "A person’s day",
        "Limits how surely anybody can tell whether all trips of one person on one day were in the data.",
        "Habits that repeat on many days: what is learned adds up over the days.",
        "Most files about people. A good first choice.",
    ),
    "user": (
        "A person",
        "Limits how surely anybody can tell whether a person was in the data at all.",
        "Small groups: this unit costs the most accuracy.",
        "People who appear on many days, sensitive groups.",
    ),
}
"""Unit -> title, promise, what it does not cover, when to choose it."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    def page(draft: Draft, error: MurmurateError | None = None, typed: dict[str, str] | None = None) -> Response:
        inspected = draft.internal("inspection") or {}
        known = inspected.get("population")
        populations = room.ledger.populations()
        return room.page(
            "whom.html.j2",
            status=422 if error else 200,
            draft=draft,
            error=error,
            steps=room.steps(draft, "whom"),
            cards=CARDS,
            same=same_elsewhere(room, draft),
            typed=typed or {"population": draft.population or "", "limit": draft.limit or "", **_bounds(draft)},
            known=known,
            populations=populations,
            accounts=room.ledger.spent(known) if known else [],
            inside=inspected if request_look(draft) else None,
        )

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        if room.furthest(draft) in ("file", "release"):
            return go(f"/draft/{draft.id}/{room.furthest(draft)}")
        return page(draft)

    async def choose(request: Request) -> Response:
        draft = room.draft(request)
        names = ("population", "limit", "max_trips_user_day", "max_trips_user")
        typed = {name: field(request, name) for name in names}
        unit = field(request, "unit")
        try:
            one_of("the unit", unit, UNITS)
            known = (draft.internal("inspection") or {}).get("population")
            values = _said(room, draft, unit, typed, known)
        except MurmurateError as error:
            return page(draft, error, typed)
        room.drafts.change(draft, unit=unit, **values)
        return go(f"/draft/{draft.id}/what")

    async def inside(request: Request) -> Response:
        draft = room.draft(request)
        room.ledger.log_rehearsal((draft.internal("inspection") or {}).get("population"), "look inside", {"page": "whom"})
        (draft.folder / "looked.json").touch(mode=0o600)
        return go(f"/draft/{draft.id}/whom")

    return [
        Route("/draft/{draft}/whom", show),
        Route("/draft/{draft}/whom", choose, methods=["POST"]),
        Route("/draft/{draft}/inside", inside, methods=["POST"]),
    ]


def request_look(draft: Draft) -> bool:
    """Return whether the person asked to see figures of the file on this page, which is noted in the ledger."""
    return (draft.folder / "looked.json").exists()


def _bounds(draft: Draft) -> dict[str, str]:
    return {
        f"max_trips_{unit}": str(draft.bounds.get("max_trips", most) if draft.unit == unit else most)
        for unit, most in MAX_TRIPS.items()
    }


def _said(room: Room, draft: Draft, unit: str, typed: dict[str, str], known: str | None) -> dict[str, Any]:
    """Check what was filled in; limits and numbers are read as the command line reads them."""
    values: dict[str, Any] = {"population": known or typed["population"] or None, "limit": typed["limit"] or None}
    if unit in MAX_TRIPS:
        text = typed[f"max_trips_{unit}"]
        most: Any = int(text) if text.isdigit() else text
        whole("max_trips", most)
        values["bounds"] = {"max_trips": most}
    else:
        values["bounds"] = {}
    if draft.mechanism:  # another unit may not suit what was chosen on the next page
        values |= {"mechanism": "", "parameters": {}}
        (draft.folder / "recipe.toml").unlink(missing_ok=True)
    limits = {limit.account for limit in room.ledger.limits(values["population"])} if _is_known(room, values) else set()
    promised = DP(epsilon=1.0, unit=Unit(name=unit))  # type: ignore[arg-type]
    if values["limit"] is not None:
        parse_limit(values["limit"], promised)
    elif ("dp", unit) not in limits and ("geoind", unit) not in limits:
        refuse_unlimited(promised)
    return values


def _is_known(room: Room, values: dict[str, Any]) -> bool:
    return values["population"] in room.ledger.populations()
