"""Start: where was I? Drafts, populations with what is left, releases, and a file to begin with."""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import Route

from murmurate.core.ledger import Ledger
from murmurate.errors import InputError, MurmurateError
from murmurate.studio.drafts import Draft
from murmurate.studio.room import Room, go
from murmurate.studio.uploads import Form, suffix_of


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    def page(error: MurmurateError | None = None) -> Response:
        drafts = room.drafts.all()
        return room.page(
            "start.html.j2",
            status=422 if error else 200,
            error=error,
            drafts=[(draft, room.furthest(draft), room.dial_words(draft)) for draft in drafts if not room.is_charged(draft)],
            releases=[draft for draft in drafts if room.is_charged(draft)],
            populations=_standing(room.ledger),
            ledger=room.ledger.url,
        )

    async def show(_request: Request) -> Response:
        return page()

    async def new(request: Request) -> Response:
        draft = room.drafts.new()
        try:
            name, _ = await receive(room, request, draft, "data")
        except InputError as error:
            room.drafts.delete(draft)
            return page(error)
        except BaseException:  # a refused or broken upload leaves no draft behind
            room.drafts.delete(draft)
            raise
        source = str(draft.folder / f"data{suffix_of(name)}")
        look(room, room.drafts.change(draft, name=name, source=source))
        return go(f"/draft/{draft.id}/file")

    async def demo(_request: Request) -> Response:
        draft = room.drafts.new(name="sturnia_week.csv", population="sturnia-trial")
        files = {"source": str(draft.folder / "data.csv"), "roads": str(draft.folder / "roads.geojson")}
        draft = room.drafts.change(draft, **files)
        room.jobs.start(draft, "demo", room.order(draft, task="demo"))
        look(room, draft)
        return go(f"/draft/{draft.id}/file")

    async def delete(request: Request) -> Response:
        draft = room.draft(request)
        for task in ("demo", "inspection", "rehearsals", "release"):
            job = room.jobs.find(draft, task)
            if job is not None and not job.over:
                await room.jobs.cancel(job)
        if not room.is_charged(draft):
            room.drafts.delete(draft)
        return go("/")

    return [
        Route("/", show),
        Route("/new", new, methods=["POST"]),
        Route("/demo", demo, methods=["POST"]),
        Route("/draft/{draft}/delete", delete, methods=["POST"]),
    ]


async def receive(room: Room, request: Request, draft: Draft, stem: str) -> tuple[str, dict[str, str]]:
    """Take the file of a form into the folder of a draft as `stem` with the ending it has; return its name and the fields."""
    form = Form(request.headers.get("content-type", ""), request.stream())
    fields, name = await form.fields()
    if not room.entrance.is_form_token(fields.pop("token", "")):
        raise Forbidden
    if not name:
        raise InputError("no file was chosen.", "drop a file on the page, or choose one.")
    target = draft.folder / f"{stem}{suffix_of(name)}"
    target.unlink(missing_ok=True)
    if await form.save(target) == 0:
        target.unlink()
        raise InputError(f"{name}: the file is empty.")
    return name, fields


class Forbidden(Exception):
    """A form with a file that does not come from the studio's own pages."""


async def forbidden(_request: Request, _error: Exception) -> Response:
    """Answer such a form; nothing of its file was kept."""
    return HTMLResponse("This form does not come from the studio's own pages.", status_code=403)


def look(room: Room, draft: Draft) -> None:
    """Have a child look into the file."""
    (draft.folder / "inspection.json").unlink(missing_ok=True)
    room.jobs.start(draft, "inspection", room.order(draft, task="inspection"))


def _standing(ledger: Ledger) -> list[dict[str, object]]:
    return [{"name": name, "accounts": ledger.spent(name)} for name in ledger.populations()]
