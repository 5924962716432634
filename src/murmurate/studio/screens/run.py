"""Run: how far is it? What is charged now, progress, and cancelling, which says what stays spent."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from murmurate.custody.internal import Internal
from murmurate.studio.room import NotThere, Room, field, go
from murmurate.studio.screens.sign import release_order
from murmurate.studio.tasks import TASKS


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        job = room.jobs.find(draft, "release")
        if job is None:
            return go(f"/draft/{draft.id}/{room.furthest(draft)}")
        if job.state == "done":
            return go(f"/draft/{draft.id}/release")
        return room.page(
            "run.html.j2",
            draft=draft,
            steps=room.steps(draft, "release"),
            job=job,
            words=room.said(draft, job.message),
            debit=room.ledger.debit(draft.id) if room.is_charged(draft) else None,
            resumable=Internal(room.ledger, draft.id).has_unfinished,
        )

    async def resume(request: Request) -> Response:
        draft = room.draft(request)
        if Internal(room.ledger, draft.id).has_unfinished:
            # what looked unfit was confirmed before the charge
            room.jobs.start(draft, "release", release_order(room, draft, unfit=True, resume=True))
        return go(f"/draft/{draft.id}/run")

    async def cancel(request: Request) -> Response:
        draft = room.draft(request)
        task = field(request, "task")
        job = room.jobs.find(draft, task) if task in TASKS else None
        if job is None:
            raise NotThere
        await room.jobs.cancel(job)
        back = {"release": "run", "rehearsals": "amount", "judgement": "release", "foreign": "release"}.get(task, "file")
        return go(f"/draft/{draft.id}/{back}")

    async def events(request: Request) -> Response:
        draft = room.draft(request)
        task = request.path_params["task"]
        job = room.jobs.find(draft, task) if task in TASKS else None
        if job is None:
            raise NotThere

        async def stream() -> AsyncIterator[str]:
            async for told in room.jobs.watch(job):
                # messages may name the file: they are for the page itself, not for the stream
                shown = {name: told[name] for name in ("state", "what", "done", "total", "charged")}
                yield f"id: {told['id']}\ndata: {json.dumps(shown)}\n\n"

        return StreamingResponse(stream(), media_type="text/event-stream")

    return [
        Route("/draft/{draft}/run", show),
        Route("/draft/{draft}/resume", resume, methods=["POST"]),
        Route("/draft/{draft}/cancel", cancel, methods=["POST"]),
        Route("/draft/{draft}/events/{task}", events),
    ]
