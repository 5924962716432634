"""Release: what may I hand out? Two boxes, never one: what may leave, and what stays here."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from starlette.requests import Request
from starlette.responses import FileResponse, Response, StreamingResponse
from starlette.routing import Route

from murmurate.core.score import Score
from murmurate.custody.internal import Internal
from murmurate.errors import InputError, MurmurateError
from murmurate.releases.folder import open_release
from murmurate.report.score_rows import attacks as attack_rows
from murmurate.report.score_rows import key_rows
from murmurate.studio.drafts import Draft
from murmurate.studio.room import NotThere, Room, go
from murmurate.studio.same import same_elsewhere
from murmurate.studio.screens.start import receive
from murmurate.studio.tasks import DOSSIER
from murmurate.studio.uploads import suffix_of

INTERNAL = ("report.html", "attacks.html", "pairing.parquet")
"""Files of a release that stay beside the ledger and can be looked at, by their fixed names."""

EDITIONS = ("public", "internal")
"""Editions of the sign-off pack."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    async def show(request: Request) -> Response:
        draft = room.draft(request)
        return _page(room, draft)

    async def package(request: Request) -> Response:
        draft = room.draft(request)
        if not draft.release_folder.is_dir():
            raise NotThere
        open_release(draft.release_folder)  # nothing leaves that is not what its manifest says
        return _as_zip(draft.release_folder, f"murmurate-{draft.id}")

    async def dossier(request: Request) -> Response:
        draft = room.draft(request)
        edition = request.path_params["edition"]
        folder = Internal(room.ledger, draft.id).folder / DOSSIER / edition
        if edition not in EDITIONS or not folder.is_dir():
            raise NotThere
        return _as_zip(folder, f"sign-off-{edition}-{draft.id}")

    async def internal(request: Request) -> Response:
        draft = room.draft(request)
        name = request.path_params["name"]
        path = Internal(room.ledger, draft.id).folder / name if name in INTERNAL else None
        if path is None or not path.is_file():
            raise NotThere
        return FileResponse(path, filename=f"internal-{name}", content_disposition_type="attachment")

    async def judge(request: Request) -> Response:
        draft = room.draft(request)
        if draft.release_folder.is_dir():
            space = draft.parameters.get("space", "")
            order = room.order(draft, task="judgement", release=str(draft.release_folder), space=space)
            room.jobs.start(draft, "judgement", order)
        return go(f"/draft/{draft.id}/release#stays")

    async def foreign(request: Request) -> Response:
        draft = room.draft(request)
        try:
            name, _ = await receive(room, request, draft, "foreign")
        except InputError as error:
            return _page(room, draft, error)
        path = draft.folder / f"foreign{suffix_of(name)}"
        order = room.order(draft, task="foreign", release=str(path), population=_population(room, draft))
        room.jobs.start(draft, "foreign", order)
        return go(f"/draft/{draft.id}/judge")

    async def judge_page(request: Request) -> Response:
        draft = room.draft(request)
        job = room.jobs.find(draft, "foreign")
        found = draft.internal("foreign") if job is not None and job.state == "done" else None
        return room.page(
            "foreign.html.j2",
            draft=draft,
            job=job if job is not None and not job.over else None,
            failed=room.said(draft, job.message) if job is not None and job.state in ("failed", "cancelled") else "",
            judged=_judged(found, "trips") if found else None,
        )

    async def forget(request: Request) -> Response:
        draft = room.draft(request)
        Internal(room.ledger, draft.id).forget_pairing()
        return go(f"/draft/{draft.id}/release#stays")

    async def again(request: Request) -> Response:
        return go(f"/draft/{room.drafts.copy(room.draft(request)).id}/amount")

    async def recipe(request: Request) -> Response:
        draft = room.draft(request)
        same = same_elsewhere(room, draft)
        if same is None or not same.recipe:
            raise NotThere
        headers = {"content-disposition": 'attachment; filename="recipe.toml"'}
        return Response(same.recipe, media_type="application/toml", headers=headers)

    async def releases(_request: Request) -> Response:
        drafts = room.drafts.all()
        return room.page(
            "releases.html.j2",
            releases=[(draft, room.ledger.debit(draft.id)) for draft in drafts if room.is_charged(draft)],
            files=[draft for draft in drafts if (draft.internal("inspection") or {}).get("readable")],
        )

    return [
        Route("/draft/{draft}/release", show),
        Route("/draft/{draft}/package.zip", package),
        Route("/draft/{draft}/dossier/{edition}", dossier),
        Route("/draft/{draft}/internal/{name}", internal),
        Route("/draft/{draft}/judge", judge_page),
        Route("/draft/{draft}/judge", judge, methods=["POST"]),
        Route("/draft/{draft}/foreign", foreign, methods=["POST"]),
        Route("/draft/{draft}/forget", forget, methods=["POST"]),
        Route("/draft/{draft}/again", again, methods=["POST"]),
        Route("/draft/{draft}/recipe.toml", recipe),
        Route("/releases", releases),
    ]


def _page(room: Room, draft: Draft, error: MurmurateError | None = None) -> Response:
    job = room.jobs.find(draft, "release")
    if not draft.release_folder.is_dir():
        return go(f"/draft/{draft.id}/{'run' if job is not None else room.furthest(draft)}")
    made = open_release(draft.release_folder)
    internal = Internal(room.ledger, draft.id).folder
    judging = room.jobs.find(draft, "judgement")
    judged = draft.internal("judgement") if judging is not None and judging.state == "done" else None
    return room.page(
        "release.html.j2",
        draft=draft,
        error=error,
        steps=room.steps(draft, "release"),
        manifest=made.manifest,
        promise=made.manifest.guarantee.words(),
        files=[
            (path.relative_to(draft.release_folder).as_posix(), path.stat().st_size) for path in _files(draft.release_folder)
        ],
        debit=room.ledger.debit(draft.id),
        dossier=(internal / DOSSIER).is_dir(),
        stays=[name for name in INTERNAL if (internal / name).is_file()],
        job=judging if judging is not None and not judging.over else None,
        failed=room.said(draft, judging.message) if judging is not None and judging.state in ("failed", "cancelled") else "",
        judged=_judged(judged, made.kind.name) if judged else None,
        checks=judged["checks"] if judged else None,
        findings=(draft.internal("made") or {}).get("findings", ""),
        verdict=judged.get("verdict") if judged else None,
        same=same_elsewhere(room, draft),
    )


def _population(room: Room, draft: Draft) -> str | None:
    return draft.population if draft.population in room.ledger.populations() else None


def _judged(found: dict[str, Any], kind: str) -> dict[str, Any]:
    """Return the first scores and all attacks in words, as the report has them."""
    from murmurate.releases import kind_named

    scores = [Score(**score) for score in found["scores"]["scores"]]
    attacked = [Score(**score) for score in found["attacks"]["scores"]]
    return {
        "key": key_rows(scores, kind_named(kind), wanted=8),
        "attacks": attack_rows(attacked),
        "skipped": {item["name"]: item["reason"] for part in ("scores", "attacks") for item in found[part]["skipped"]},
    }


def _files(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.is_file()]


def _as_zip(folder: Path, name: str) -> Response:
    headers = {"content-disposition": f'attachment; filename="{name}.zip"'}
    return StreamingResponse(_zipped(folder), media_type="application/zip", headers=headers)


def _zipped(folder: Path) -> Iterator[bytes]:
    """Yield an archive of a folder as it is made; memory stays small."""
    pipe = _Pipe()
    with zipfile.ZipFile(pipe, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for path in _files(folder):
            # no clock of this machine goes into the package
            entry = zipfile.ZipInfo(path.relative_to(folder).as_posix(), (1980, 1, 1, 0, 0, 0))
            entry.external_attr = 0o644 << 16
            with archive.open(entry, "w", force_zip64=True) as inside, path.open("rb") as file:
                while piece := file.read(1 << 20):
                    inside.write(piece)
                    yield pipe.take()
    yield pipe.take()


class _Pipe(io.RawIOBase):
    """Give what was written to whoever reads next."""

    def __init__(self) -> None:
        super().__init__()
        self._parts: list[bytes] = []

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        self._parts.append(bytes(data))
        return len(data)

    def take(self) -> bytes:
        """Return what was written since the last time."""
        found, self._parts = b"".join(self._parts), []
        return found
