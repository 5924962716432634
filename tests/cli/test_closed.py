"""Every command, run once: none uses the network, none writes down who or where, and what is internal is closed to others."""

from __future__ import annotations

import json
import os
import re
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from every_command import PERSON, commands, faulty
from murmurate.cli import COMMANDS, dummies, ledger

TESTS = Path(__file__).resolve().parent.parent
INTERNAL = (
    "page.html",
    "scores.json",
    "attacks.html",
    "attacks.json",
    "foreign.html",
    "foreign.json",
    "l.sqlite",
    "copy.sqlite",
)
"""What `every_command.py` writes from private data by name; its umask is 0."""

pytestmark = pytest.mark.xdist_group("closed")  # one process makes what all of them look at


@pytest.fixture(scope="module")
def tour(tmp_path_factory):
    home = tmp_path_factory.mktemp("closed")
    tried = home / "sockets-tried"
    environment = {
        **os.environ,
        "MURMURATE_STATE": str(home / "state"),
        "MURMURATE_SOCKETS_TRIED": str(tried),
        "NO_COLOR": "1",
        "PYTHONPATH": os.pathsep.join([str(TESTS / "no_network"), str(TESTS)]),
    }
    program = [sys.executable, str(TESTS / "every_command.py"), str(home)]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, timeout=900, check=False)
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return home, lines, tried.read_text() if tried.exists() else ""


def test_the_list_of_commands_is_whole():
    run = {tuple(words[: 2 if words[0] in ("ledger", "dummies") else 1]) for words in commands(Path())}
    inner = {("ledger", one.callback.__name__) for one in ledger.app.registered_commands}
    inner |= {("dummies", one.callback.__name__) for one in dummies.app.registered_commands}
    assert run == {(name,) for name in COMMANDS if name != "studio"} | inner


def test_every_command_works_without_a_network(tour):
    _, lines, tried = tour
    for line in lines[: -len(faulty(Path()))]:
        assert line["code"] == 0, (line["words"], line["err"])
    assert tried == ""


def test_the_guard_sees_a_socket(tmp_path):
    tried = tmp_path / "tried"
    environment = {**os.environ, "MURMURATE_SOCKETS_TRIED": str(tried), "PYTHONPATH": str(TESTS / "no_network")}
    program = "import socket; socket.create_connection(('127.0.0.1', 9))"
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert "no network" in done.stderr
    assert "socket.getaddrinfo" in tried.read_text()


def test_nothing_that_is_printed_tells_who_or_where(tour):
    """Uids everywhere; places wherever the command is not there to show them to the custodian."""
    home, lines, _ = tour
    for line in lines:
        said = f"{line['out']}\n{line['err']}"
        assert PERSON not in said, line["words"]
        if line["words"][0] not in ("inspect", "start", "dummies"):
            assert not re.search(r"\b60\.0\d{3,}|\b24\.0\d{3,}|4711", said.replace(str(home), "")), (line["words"], said)
    for line in lines[-len(faulty(Path())) :]:
        assert line["code"] in (2, 3), line
        assert "Traceback" not in line["err"]
    assert "sometime" not in lines[-len(faulty(Path()))]["err"]


def test_no_uid_and_no_private_path_is_in_what_may_leave(tour):
    home, *_ = tour
    public = [path for name in ("moved", "model", "drawn", "days", "pack/public") for path in (home / name).rglob("*")]
    public += [home / "drawn.csv", home / "audit.json", home / "audit.html", home / "pool.mur"]
    for path in filter(Path.is_file, public):
        content = path.read_bytes()
        assert PERSON.encode() not in content, path
        assert str(home / "private").encode() not in content, path


def test_internal_files_are_closed_whatever_the_umask(tour):
    home, *_ = tour
    for name in INTERNAL:
        assert stat.S_IMODE((home / name).stat().st_mode) == 0o600, name
    for path in (home / "l.sqlite.internal", home / "pack" / "internal"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700, path
    assert not (home / "l.sqlite.work").exists(), "private work files are gone when their command ends"


def test_audit_dossier_and_foreign_attacks_write_what_they_say(tour):
    home, lines, _ = tour
    said = {" ".join(line["words"][:2]): line["out"] for line in lines}
    audit = json.loads((home / "audit.json").read_text())
    assert audit["passed"] is True
    assert {twin["fault"] for twin in audit["twins"]} >= {"no noise", "half noise"}
    assert "planted fault" in said["audit geoind"]
    foreign = json.loads((home / "foreign.json").read_text())
    assert foreign["promised"] == "nothing"
    assert "nothing is promised" in (home / "foreign.html").read_text()
    names = {score["name"] for score in foreign["scores"]}
    assert {"copying.copies", "singling_out.success", "linkability.success", "inference.destination"} <= names
    own = {score["name"] for score in json.loads((home / "attacks.json").read_text())["scores"]}
    assert {"membership.auc", "copying.copies"} <= own
    verdict = json.loads((home / "scores.json").read_text())["verdict"]
    assert verdict["attacked"] is True
    for edition in ("public", "internal"):
        assert (home / "pack" / edition / "dossier.html").is_file()
    assert "Nothing of the internal edition may leave" in said["dossier drawn"]
