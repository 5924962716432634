"""Start and end the studio: on the loopback address only, with a link that opens it once."""

from __future__ import annotations

import os
import secrets
import socket
import webbrowser
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from murmurate.errors import MurmurateError, ParameterError
from murmurate.studio.guard import HOST, Entrance, Guard
from murmurate.studio.jobs import sweep
from murmurate.studio.room import NotThere, Room
from murmurate.studio.screens import amount, file, ledger, release, run, sign, start, what, whom

STATIC = Path(__file__).parent / "static"
"""Folder of the style sheet and the script."""
SCREENS = (start, file, whom, what, amount, sign, run, release, ledger)
"""One module a screen; each has `routes(room)`."""
MOST_AT_ONCE = 200
"""Most connections at a time: ten tabs need a few dozen. Set by hand."""


def make_app(room: Room) -> Guard:
    """Return the application, behind its guard."""
    routes = [route for screen in SCREENS for route in screen.routes(room)]
    routes.append(Route("/quit", _quitting(room), methods=["POST"]))

    async def not_there(_request: Request, _error: Exception) -> Response:
        return room.page("message.html.j2", status=404, title="Not here", words="There is no such page.")

    async def refused(_request: Request, error: Exception) -> Response:
        return room.page("message.html.j2", status=422, title="That cannot be done", words=str(error))

    async def our_fault(_request: Request, error: Exception) -> Response:
        words = (
            f"This is a fault of Murmurate's own, not of your data: {type(error).__name__}. Nothing was charged by this page."
        )
        return room.page("message.html.j2", status=500, title="Something went wrong", words=words)

    @asynccontextmanager
    async def lifespan(_app: Starlette) -> AsyncIterator[None]:
        for draft in room.drafts.folder.glob("*/"):  # of a studio that was killed
            sweep(draft)
        yield
        await room.jobs.close()
        room.ledger.close()

    handlers: dict[Any, Callable[..., Any]] = {
        404: not_there, 405: not_there, NotThere: not_there, 500: our_fault,
        start.Forbidden: start.forbidden, MurmurateError: refused,
    }  # fmt: skip
    app = Starlette(
        routes=[*routes, Mount("/static", StaticFiles(directory=STATIC))], exception_handlers=handlers, lifespan=lifespan
    )
    return Guard(app, room.entrance)


def _quitting(room: Room) -> Callable[[Request], Any]:
    async def quit_studio(_request: Request) -> Response:
        room.quit()
        return room.page("message.html.j2", title="The studio has ended", words="You can close this tab.")

    return quit_studio


def serve(source: str | None, *, ledger: str | None, port: int, open_browser: bool, say: Callable[[str], None]) -> None:
    """Serve until it is ended by Ctrl-C, a signal or the page."""
    if ledger == "demo":
        raise ParameterError("the studio needs a ledger that lasts; give a file or leave --ledger out.")
    if source is not None and not Path(source).exists():
        raise ParameterError(f"{source} does not exist.")
    listening = _listen(port)
    entrance = Entrance(listening.getsockname()[1])
    room = Room(ledger, entrance)
    if source is not None:
        path = Path(source).resolve()
        room.drafts.new(name=path.name, source=str(path))
    config = uvicorn.Config(
        make_app(room),
        http="h11",
        ws="none",
        loop="asyncio",
        lifespan="on",
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        limit_concurrency=MOST_AT_ONCE,
        timeout_graceful_shutdown=2,
    )
    server = _Server(config, room)
    room.quit = server.end
    link = entrance.new_link()
    say(f"Ledger: {room.ledger.url}")
    say(f"Open this link once, in a browser on this machine: {link}")
    say("It cannot be reached from elsewhere. End it with Ctrl-C.")
    opener = _opener(room, link) if open_browser else None
    try:
        server.run(sockets=[listening])
    except KeyboardInterrupt:
        pass  # uvicorn has shut down in order and passes the signal on
    finally:
        if opener is not None:
            opener.unlink(missing_ok=True)
        listening.close()
    say("The studio has ended.")


class _Server(uvicorn.Server):
    """Ends streams of events before it waits for open connections."""

    def __init__(self, config: uvicorn.Config, room: Room) -> None:
        super().__init__(config)
        self._room = room

    def end(self) -> None:
        """Shut down in order."""
        self.should_exit = True

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop the children first: streams that watch them end with them."""
        await self._room.jobs.close()
        await super().shutdown(sockets)


def _listen(port: int) -> socket.socket:
    """Return a socket bound to the loopback address; there is no option to bind elsewhere."""
    found = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    found.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        found.bind((HOST, port))
    except OSError as error:
        found.close()
        raise ParameterError(f"port {port} cannot be used ({error.strerror}); choose another with --port.") from None
    found.listen()  # from now on a browser may come, also before the studio answers
    return found


def _opener(room: Room, link: str) -> Path:
    """Open the browser by a closed file that leads to the link, so that the token stands in no list of processes."""
    path = room.drafts.folder / f"open-{secrets.token_hex(8)}.html"
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(
            f'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url={link}"><title>Studio</title>'
        )
    webbrowser.open(path.as_uri())
    return path
