"""Threats, each with raw sockets: who is let in, what is refused, what is never written down."""

from __future__ import annotations

import os
import re
import socket
import stat
import subprocess
import time
from pathlib import Path

import pytest

from .conftest import start


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("safety")
    (folder / "tmp").mkdir()
    running = start(folder)
    yield running
    running.end()


def send(port, text, *, body=b"", patience=10):
    """The answer to a raw request: status, headers, body."""
    with socket.create_connection(("127.0.0.1", port), timeout=patience) as wire:
        wire.sendall(text.replace("\n", "\r\n").encode() + b"\r\n\r\n" + body)
        answer = b""
        while True:
            try:
                piece = wire.recv(65536)
            except ConnectionResetError:
                break
            if not piece:
                break
            answer += piece
    head, _, rest = answer.partition(b"\r\n\r\n")
    return int(head.split()[1]) if head else 0, head.decode("latin-1"), rest


class Inside:
    """Somebody who was let in: cookie and form token."""

    def __init__(self, studio):
        self.studio = studio
        path = studio.link.removeprefix(studio.origin)
        status, head, _ = send(studio.port, f"GET {path} HTTP/1.1\nHost: 127.0.0.1:{studio.port}\nConnection: close")
        assert status == 200
        self.cookie = re.search(r"set-cookie: ([^;]+)", head, re.I).group(1)
        self.entered = head
        status, _, page = self.get("/")
        assert status == 200
        self.token = re.search(rb'name="token" value="([0-9a-f]{64})"', page).group(1).decode()

    def head(self, method, path, extra="", host=None, cookie=None):
        cookie = self.cookie if cookie is None else cookie
        line = f"{method} {path} HTTP/1.1\nHost: {host or f'127.0.0.1:{self.studio.port}'}\nConnection: close"
        return line + (f"\nCookie: {cookie}" if cookie else "") + (f"\n{extra}" if extra else "")

    def get(self, path, extra="", **options):
        return send(self.studio.port, self.head("GET", path, extra, **options))

    def post(self, path, fields="", *, origin="own", token=True, extra="", kind="application/x-www-form-urlencoded", **options):
        body = f"{'token=' + self.token + '&' if token else ''}{fields}".encode()
        lines = [f"Content-Type: {kind}", f"Content-Length: {len(body)}"]
        own = f"http://127.0.0.1:{self.studio.port}"
        lines += [f"Origin: {own if origin == 'own' else origin}"] if origin else []
        lines += [extra] if extra else []
        return send(self.studio.port, self.head("POST", path, "\n".join(lines), **options), body=body)

    def upload(self, path, name, content, *, token=None):
        mark = "----mark"
        parts = f'--{mark}\r\nContent-Disposition: form-data; name="token"\r\n\r\n{self.token if token is None else token}\r\n'
        parts += f'--{mark}\r\nContent-Disposition: form-data; name="file"; filename="{name}"\r\nContent-Type: text/csv\r\n\r\n'
        body = parts.encode() + content + f"\r\n--{mark}--\r\n".encode()
        extra = f"Content-Type: multipart/form-data; boundary={mark}\nContent-Length: {len(body)}"
        extra += f"\nOrigin: http://127.0.0.1:{self.studio.port}"
        return send(self.studio.port, self.head("POST", path, extra), body=body)


@pytest.fixture(scope="module")
def inside(studio):
    return Inside(studio)


def test_only_the_loopback_address_listens(studio):
    listed = [line.split() for table in ("tcp", "tcp6") for line in Path(f"/proc/net/{table}").read_text().splitlines()[1:]]
    mine = [row[1] for row in listed if row[3] == "0A" and int(row[1].rsplit(":", 1)[1], 16) == studio.port]
    assert mine == [f"0100007F:{studio.port:04X}"]


def test_there_is_no_option_to_listen_elsewhere():
    import sys

    told = subprocess.run([sys.executable, "-m", "murmurate", "studio", "--help"], capture_output=True, text=True, check=True)
    assert "--port" in told.stdout and "--host" not in told.stdout and "0.0.0.0" not in told.stdout


def test_nothing_is_shown_without_the_cookie(inside):
    for path in ("/", "/ledger", "/releases", "/static/studio.css", "/draft/0123456789abcdef/file", "/nowhere"):
        assert inside.get(path, cookie="")[0] == 401
        for wrong in ("wrong", "wr\u00f6ng"):  # the second is no text that hmac compares
            assert inside.get(path, cookie=f"murmurate-{inside.studio.port}={wrong}")[0] == 401


def test_a_link_opens_once_and_a_guess_never(inside):
    path = inside.studio.link.removeprefix(inside.studio.origin)
    assert len(path.split("token=")[1]) >= 43, "32 random bytes"
    assert inside.get(path, cookie="")[0] == 403
    assert inside.get("/enter?token=guess", cookie="")[0] == 403
    assert inside.get("/enter", cookie="")[0] == 403


def test_the_cookie_is_strict_and_unreadable(inside):
    cookie = re.search(r"set-cookie: (.+)", inside.entered, re.I).group(1)
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and "Domain" not in cookie


@pytest.mark.parametrize(
    "host",
    ["evil.example:{port}", "localhost:{port}", "127.0.0.1", "127.0.0.1:1", "[::1]:{port}", "127.0.0.1:{port}.evil.example"],
)
def test_another_host_name_is_refused(inside, host):
    assert inside.get("/", host=host.format(port=inside.studio.port))[0] == 403


def test_two_host_headers_are_refused(inside):
    assert inside.get("/", f"Host: 127.0.0.1:{inside.studio.port}")[0] in (400, 403)


@pytest.mark.parametrize(
    "origin", ["http://evil.example", "http://127.0.0.1:9", "http://localhost:{port}", "null", "https://127.0.0.1:{port}", ""]
)
def test_forms_from_another_origin_are_refused(inside, origin):
    assert inside.post("/demo", origin=origin.format(port=inside.studio.port))[0] == 403


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_requests_that_another_page_caused_are_refused(inside, site):
    assert inside.get("/ledger", f"Sec-Fetch-Site: {site}")[0] == 403
    assert inside.post("/demo", extra=f"Sec-Fetch-Site: {site}")[0] == 403
    assert inside.get("/ledger", "Sec-Fetch-Site: none")[0] == 200


def test_every_form_needs_its_token(inside):
    from murmurate.studio.guard import Entrance
    from murmurate.studio.room import Room
    from murmurate.studio.server import make_app

    room = Room(f"sqlite:///{inside.studio.folder / 'other.db'}", Entrance(1))
    posts = [route.path for route in make_app(room).app.routes if "POST" in (getattr(route, "methods", None) or ())]
    room.ledger.close()
    assert len(posts) > 20
    for path in posts:
        path = path.replace("{draft}", "0123456789abcdef")
        assert inside.post(path, token=False)[0] == 403, path
        assert inside.post(path, "token=" + "0" * 64, token=False)[0] == 403, path
        assert inside.post(path, "{}", kind="application/json")[0] == 415, path
        assert inside.post(path, "x=1", kind="text/plain")[0] == 415, path


def test_a_file_without_the_token_is_not_kept(inside):
    before = sorted(inside.studio.folder.rglob("data*"))
    assert inside.upload("/new", "a.csv", b"uid,lat,lng\n1,2,3\n", token="0" * 64)[0] == 403
    assert sorted(inside.studio.folder.rglob("data*")) == before


def test_other_methods_are_refused(inside):
    for method in ("PUT", "DELETE", "OPTIONS", "TRACE", "CONNECT"):
        assert send(inside.studio.port, inside.head(method, "/"))[0] in (400, 405)


POLICY = (
    "x-content-type-options: nosniff",
    "cache-control: no-store",
    "referrer-policy: same-origin",
    "frame-ancestors 'none'",
    "cross-origin-resource-policy: same-origin",
    "cross-origin-opener-policy: same-origin",
)


def test_every_answer_carries_the_policy(inside):
    for answer in (inside.get("/"), inside.get("/nowhere"), inside.get("/static/studio.js"), inside.get("/", cookie="")):
        head = answer[1].lower()
        assert "content-security-policy: default-src 'none'; script-src 'self'" in head and "unsafe" not in head
        for wanted in POLICY:
            assert wanted in head
        assert "server:" not in head and "access-control" not in head


def test_paths_from_the_browser_reach_no_file(inside):
    for path in ("/static/../room.py", "/static/%2e%2e/room.py", "/static/..%2froom.py", "/draft/..%2f..%2fetc/file",
                 "/draft/0123456789abcdef/internal/..%2fledger.db", "/draft/../../etc/passwd"):  # fmt: skip
        assert inside.get(path)[0] in (404, 400)


def test_a_file_lies_closed_beside_the_ledger_under_no_name_of_its_own(inside):
    status, head, _ = inside.upload("/new", "../../<b>evil; rm -rf.csv", b"uid,lat,lng,datetime\n1,60,24,2024-01-01T00:00\n")
    assert status == 303
    draft = re.search(r"location: /draft/([0-9a-f]{16})/file", head, re.I).group(1)
    folder = next(inside.studio.folder.rglob(draft))
    assert sorted(path.name for path in folder.glob("data*")) == ["data.csv"]
    assert stat.S_IMODE((folder / "data.csv").stat().st_mode) == 0o600 and stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert stat.S_IMODE(folder.parent.stat().st_mode) == 0o700
    assert list((inside.studio.folder / "tmp").iterdir()) == [], "nothing in the temporary folder"
    status, _, page = inside.get("/")
    assert status == 200 and b"<b>evil" not in page and b"&lt;b&gt;evil" in page, "markup in names is text"
    inside.post(f"/draft/{draft}/delete")
    assert not folder.exists()


def test_a_file_that_stops_half_way_leaves_nothing(inside):
    before = set(inside.studio.folder.rglob("data*"))
    mark = "----mark"
    body = f'--{mark}\r\nContent-Disposition: form-data; name="token"\r\n\r\n{inside.token}\r\n--{mark}\r\n'
    body += 'Content-Disposition: form-data; name="file"; filename="a.csv"\r\n\r\nuid,lat\n1,2\n'
    extra = f"Content-Type: multipart/form-data; boundary={mark}\nContent-Length: 1000000\nOrigin: http://127.0.0.1:{inside.studio.port}"
    with socket.create_connection(("127.0.0.1", inside.studio.port)) as wire:
        wire.sendall(inside.head("POST", "/new", extra).replace("\n", "\r\n").encode() + b"\r\n\r\n" + body.encode())
        time.sleep(0.3)
    for _ in range(50):
        if set(inside.studio.folder.rglob("data*")) == before:
            break
        time.sleep(0.1)
    assert set(inside.studio.folder.rglob("data*")) == before


def test_large_forms_are_refused(inside):
    assert inside.post("/demo", "x=" + "y" * (1 << 21))[0] == 413


def test_nothing_private_is_logged(inside):
    inside.get("/ledger")
    assert not [line for line in inside.studio.said if "secret" in line.lower()]
    os.set_blocking(inside.studio.process.stdout.fileno(), False)
    rest = (inside.studio.process.stdout.buffer.read() or b"").decode()  # the text layer cannot read what is not there
    assert "token=" not in rest and "GET" not in rest and "POST" not in rest


def test_it_ends_cleanly_and_leaves_no_child(tmp_path):
    (tmp_path / "tmp").mkdir()
    running = start(tmp_path)
    someone = Inside(running)
    assert someone.post("/demo")[0] == 303
    for _ in range(100):
        if running.children():
            break
        time.sleep(0.05)
    assert running.children(), "the job runs in a child"
    (child,) = running.children()
    assert running.end() == 0
    assert not Path(f"/proc/{child}").exists()
    assert list((tmp_path / "tmp").iterdir()) == []


def test_a_child_ends_when_the_studio_is_killed(tmp_path):
    (tmp_path / "tmp").mkdir()
    running = start(tmp_path)
    Inside(running).post("/demo")
    for _ in range(100):
        if running.children():
            break
        time.sleep(0.05)
    (child,) = running.children()
    running.process.kill()
    running.end()
    for _ in range(150):
        if not Path(f"/proc/{child}").exists():
            break
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


def test_the_link_stands_in_no_list_of_processes(studio):
    listed = subprocess.run(["ps", "-eo", "args"], capture_output=True, text=True, check=True).stdout
    assert studio.link.split("token=")[1] not in listed
