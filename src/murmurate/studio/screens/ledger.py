"""Ledger: who spent what? Bars, history, limits with a reason, a plan, a check of the chain, a backup."""

from __future__ import annotations

from typing import Any

from starlette.background import BackgroundTask
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from murmurate.errors import MurmurateError, ParameterError
from murmurate.studio.room import Room, amount, field, go

SHOWN = 200
"""Lines of the history on the page, the newest first. Set by hand; the command line shows all."""


def routes(room: Room) -> list[Route]:
    """Return the addresses of this screen."""

    def page(error: MurmurateError | None = None, typed: dict[str, str] | None = None, checked: Any = None) -> Response:
        history = room.ledger.history()
        return room.page(
            "ledger.html.j2",
            status=422 if error else 200,
            error=error,
            url=room.ledger.url,
            populations=[(name, [_bar(account) for account in room.ledger.spent(name)]) for name in room.ledger.populations()],
            history=list(reversed(history[-SHOWN:])),
            more=max(0, len(history) - SHOWN),
            typed=typed
            or {"population": "", "kind": "dp", "unit": "user_day", "epsilon": "", "delta": "", "why": "", "two": ""},
            checked=checked,
        )

    async def show(_request: Request) -> Response:
        return page()

    async def limit(request: Request) -> Response:
        typed = {name: field(request, name) for name in ("population", "kind", "unit", "epsilon", "delta", "why", "two")}
        try:
            _set_limit(room, typed)
        except MurmurateError as error:
            return page(error, typed)
        return go("/ledger")

    async def check(_request: Request) -> Response:
        return page(checked=room.ledger.verify())

    async def backup(_request: Request) -> Response:
        path = room.drafts.folder / "backup.sqlite"
        path.unlink(missing_ok=True)
        room.ledger.backup(path)
        path.chmod(0o600)
        return FileResponse(path, filename="ledger-backup.sqlite", background=BackgroundTask(path.unlink, missing_ok=True))

    return [
        Route("/ledger", show),
        Route("/ledger/limit", limit, methods=["POST"]),
        Route("/ledger/check", check, methods=["POST"]),
        Route("/ledger/backup", backup, methods=["POST"]),
    ]


def _set_limit(room: Room, typed: dict[str, str]) -> None:
    try:
        value, delta = float(typed["epsilon"]), float(typed["delta"] or 0)
    except ValueError:
        raise ParameterError(f"a limit is a number; got {typed['epsilon']!r} and delta {typed['delta']!r}.") from None
    amounts = {"epsilon": value, "delta": delta} if typed["kind"] == "dp" else {"epsilon_per_m": value}
    if not typed["why"]:
        raise ParameterError("say why the limit is set: it goes into the history.")
    said: dict[str, Any] = {"two_people": bool(typed["two"]), "why": typed["why"], **amounts}
    room.ledger.limit(typed["population"], kind=typed["kind"], unit=typed["unit"], **said)


def _bar(account: Any) -> dict[str, Any]:
    """Return one account as a bar and in words."""
    spent, limit = float(account.spent), None if account.limit is None else float(account.limit)
    whole = max(spent, limit or spent, 1e-12)
    return {
        "kind": account.spent.kind,
        "unit": account.spent.unit,
        "spent": amount(spent),
        "ceiling": account.ceiling,
        "left": "" if account.remaining is None else amount(float(account.remaining)),
        "charges": account.n_charges,
        "share": spent / whole,
        "limited": limit is not None,
        "within": account.within,
    }
