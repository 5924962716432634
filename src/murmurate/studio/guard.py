"""Let in only the person who started the studio: exact host, own origin, a one-use link, a cookie and a form token.

The cookie alone is not enough: browsers send it to every port of a machine, so a page on another local port would carry it.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qs, parse_qsl

from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

HOST = "127.0.0.1"
"""The only address the studio is bound to and answers for."""
ENTER = "/enter"
"""The one path that needs no cookie: it takes a one-use token."""
TOKEN_BYTES = 32
"""Random bytes of a one-use token and of a cookie."""
MOST_FORM_BYTES = 1 << 20
"""Largest form without a file, in bytes. Set by hand: the largest one is a recipe."""
FORM = "application/x-www-form-urlencoded"
"""Kind of a form without a file."""
UPLOAD = "multipart/form-data"
"""Kind of a form with a file; it is read as it comes, by `murmurate.studio.uploads`."""
OWN = frozenset({"same-origin", "none"})
"""Values of Sec-Fetch-Site of the studio's own pages and of an address that a person typed."""

HEADERS = {
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; "
    "form-action 'self'; frame-ancestors 'none'; base-uri 'none'",
    "x-content-type-options": "nosniff",
    # without a referrer at all, browsers would send no origin with a form either
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "permissions-policy": "geolocation=(), camera=(), microphone=()",
    "cache-control": "no-store",
}
"""Headers of every answer: nothing from outside, nothing inline, nothing kept."""


class Entrance:
    """Hold the secrets of one studio: links that open it once, the cookie of who used one, the token of its forms."""

    def __init__(self, port: int) -> None:
        self.port = port
        self.host = f"{HOST}:{port}"
        self.origin = f"http://{self.host}"
        # the name holds the port, because cookies of two studios on one machine would overwrite each other
        self.cookie_name = f"murmurate-{port}"
        self._cookie = secrets.token_urlsafe(TOKEN_BYTES)
        self._unused: set[str] = set()
        self.form_token = hmac.new(self._cookie.encode(), b"form", hashlib.sha256).hexdigest()

    def new_link(self) -> str:
        """Return an address that opens the studio once."""
        token = secrets.token_urlsafe(TOKEN_BYTES)
        self._unused.add(_digest(token))
        return f"{self.origin}{ENTER}?token={token}"

    def use(self, token: str) -> bool:
        """Return whether this token was still unused; from now on it is used."""
        digest = _digest(token)
        there = digest in self._unused
        self._unused.discard(digest)
        return there

    @property
    def set_cookie(self) -> str:
        """The header that gives the cookie to a browser; scripts cannot read it, other sites cannot send it."""
        return f"{self.cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"

    def knows(self, cookie_header: str) -> bool:
        """Return whether a Cookie header holds the cookie."""
        pairs = (part.strip().partition("=") for part in cookie_header.split(";"))
        mine = self._cookie.encode()
        return any(name == self.cookie_name and hmac.compare_digest(value.encode(), mine) for name, _, value in pairs)

    def is_form_token(self, token: str) -> bool:
        """Return whether a form carries the token of this studio's own pages."""
        return hmac.compare_digest(token.encode(), self.form_token.encode())


class Guard:
    """Refuse every request that is not from the studio's own pages in the browser that was let in."""

    def __init__(self, app: ASGIApp, entrance: Entrance) -> None:
        self.app = app
        self.entrance = entrance

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request and pass it on with its form, or answer with a refusal."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            return
        guarded = _with_headers(send)
        refusal = self._refusal(scope)
        if refusal is None and scope["path"] == ENTER:
            refusal = self._let_in(scope)
        if refusal is None and scope["method"] == "POST":
            kind = _one(scope, b"content-type").split(";")[0].strip().lower()
            if kind == FORM:
                refusal = await self._take_form(scope, receive)
            elif kind != UPLOAD:
                refusal = _refuse(415, "This is not a form of the studio.")
        await (refusal or self.app)(scope, receive, guarded)

    def _refusal(self, scope: Scope) -> Response | None:
        """Return why a request is not served, judged by its head alone."""
        if _all(scope, b"host") != [self.entrance.host]:
            return _refuse(403, f"The studio answers at {self.entrance.origin} only.")
        if scope["method"] not in ("GET", "HEAD", "POST"):
            return _refuse(405, "The studio is read and sent forms, nothing else.")
        entering = scope["path"] == ENTER and scope["method"] == "GET"
        if not entering and not set(_all(scope, b"sec-fetch-site")) <= OWN:
            return _refuse(403, "This request comes from another page. Open the studio in a tab of its own.")
        if scope["method"] == "POST" and _all(scope, b"origin") != [self.entrance.origin]:
            return _refuse(403, "This form does not come from the studio's own pages.")
        if not entering and not any(self.entrance.knows(value) for value in _all(scope, b"cookie")):
            return _refuse(
                401,
                "The studio opens with the link it was started with, once. Start it again for a new one.",
            )
        return None

    def _let_in(self, scope: Scope) -> Response:
        """Answer a one-use link: with the cookie, and a page of our own that leads on.

        A redirect would still count as coming from where the link was, and browsers then keep strict cookies back.
        """
        given = dict(parse_qsl(scope["query_string"].decode("ascii", "replace"))).get("token", "")
        if scope["method"] != "GET" or not self.entrance.use(given):
            return _refuse(403, "This link was used already, or is none of this studio's. Start it again for a new one.")
        page = _page('<meta http-equiv="refresh" content="0; url=/">', 'The studio is open: <a href="/">go on</a>.')
        return HTMLResponse(page, headers={"set-cookie": self.entrance.set_cookie})

    async def _take_form(self, scope: Scope, receive: Receive) -> Response | None:
        """Read a form, check its token, and leave it in the request's state."""
        body = bytearray()
        more = True
        while more:
            message = await receive()
            if message["type"] != "http.request":
                return _refuse(400, "The form did not arrive whole.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > MOST_FORM_BYTES:
                return _refuse(413, "The form is too large.")
        fields = parse_qs(body.decode("utf-8", "replace"), keep_blank_values=True, max_num_fields=1000)
        if not self.entrance.is_form_token(fields.pop("token", [""])[0]):
            return _refuse(403, "This form does not come from the studio's own pages, or from before it was started anew.")
        scope.setdefault("state", {})["form"] = fields
        return None


def _digest(token: str) -> str:
    """Return what is kept of a token; looking it up then tells nothing of the token by its timing."""
    return hashlib.sha256(token.encode()).hexdigest()


def _all(scope: Scope, name: bytes) -> list[str]:
    headers: Iterable[tuple[bytes, bytes]] = scope["headers"]
    return [value.decode("latin-1") for key, value in headers if key.lower() == name]


def _one(scope: Scope, name: bytes) -> str:
    found = _all(scope, name)
    return found[0] if len(found) == 1 else ""


def _with_headers(send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            there = {key.lower() for key, _ in message["headers"]}
            extra = [(key.encode(), value.encode()) for key, value in HEADERS.items() if key.encode() not in there]
            message["headers"] = [*message["headers"], *extra]
        await send(message)

    return sending


def _refuse(status: int, why: str) -> Response:
    return HTMLResponse(_page("", why), status_code=status)


def _page(head: str, words: str) -> str:
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Murmurate Studio</title>'
        # named here as on every page: a browser that finds no icon asks for /favicon.ico, which is not there
        f'<link rel="icon" href="/static/icon.svg" type="image/svg+xml">{head}</head>'
        f"<body><main><h1>Murmurate Studio</h1><p>{words}</p></main></body></html>"
    )
