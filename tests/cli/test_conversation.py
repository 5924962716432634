"""`start` and `release` in a real pseudo-terminal: questions, nonsense, and somebody who gives up."""

from __future__ import annotations

import os
import re
import select
import signal
import subprocess
import sys
from contextlib import suppress

import numpy as np
import pytest

pty = pytest.importorskip("pty", reason="pseudo-terminals are a matter of Unix")
fcntl = pytest.importorskip("fcntl")
termios = pytest.importorskip("termios")

PATIENCE_S = 120
"""After so long without a word the test fails; nothing here takes seconds."""


class Conversation:
    """A command in a terminal of its own."""

    def __init__(self, folder, *words):
        self._ours, theirs = pty.openpty()
        environment = {**os.environ, "MURMURATE_STATE": str(folder / "state"), "TERM": "xterm", "COLUMNS": "200"}
        command = [sys.executable, "-m", "murmurate", *words]
        self._process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            preexec_fn=_own_terminal,  # noqa: PLW1509
        )
        os.close(theirs)
        self.said = ""

    def hears(self, words):
        """Wait until it has said something, and return what came before."""
        while words not in self.said:
            assert self._listen(), f"it ended without saying {words!r}:\n{self.said}"
        before, _, self.said = self.said.partition(words)
        return before

    def types(self, answer):
        os.write(self._ours, f"{answer}\n".encode())

    def presses_control_c(self):
        os.write(self._ours, b"\x03")

    def ends(self):
        """Listen to the end; return the exit code."""
        while self._listen():
            pass
        os.close(self._ours)
        return self._process.wait()

    def _listen(self):
        if not select.select([self._ours], [], [], PATIENCE_S)[0]:
            self._process.kill()
            self._process.wait()
            pytest.fail(f"it said nothing more after:\n{self.said}")
        heard = b""
        with suppress(OSError):  # the terminal closes with the process
            heard = os.read(self._ours, 65536)
        self.said += re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", heard.decode(errors="replace")).replace("\r", "")
        return bool(heard)


def _own_terminal():
    """Before the command begins: its terminal is the one that control-C reaches, and it may be interrupted."""
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.fixture
def folder(tmp_path):
    rng = np.random.default_rng(5)
    rows = ["user,trip,time,lat,lon"]
    for trip in range(900):
        lat, lng = rng.uniform(60.15, 60.25), rng.uniform(24.9, 25.0)
        for k in range(5):
            clock = f"2024-05-0{1 + trip % 3} {7 + trip % 12:02}:{5 * k:02}:00"
            rows.append(f"{trip % 150},{trip},{clock},{lat + 0.002 * k:.5f},{lng + 0.003 * k:.5f}")
    (tmp_path / "trips.csv").write_text("\n".join(rows) + "\n")
    return tmp_path


def test_nonsense_is_asked_again_and_the_recipe_is_what_was_said(folder):
    talk = Conversation(folder, "start", "trips.csv")
    talk.hears("Which one are they in")
    talk.types("Helsinki time")
    talk.hears("Which one are they in")
    talk.types("Europe/Helsinki")
    talk.hears("Whom to protect [")
    talk.types("everybody")
    assert "must be one of trip" in talk.hears("Whom to protect [")
    talk.types("trip")
    talk.hears("What the release is for [")
    talk.types("zone_table")
    assert "Did you mean 'zone_tables'" in talk.hears("What the release is for [")
    talk.types("zone_tables")
    talk.hears("are planned [1]")
    talk.types("-3")
    talk.hears("are planned [1]")
    talk.types("12")
    talk.hears("A number, a city")
    for nonsense in ("99", "Atlantis", "60,24,50", "60.3,24,60.1,25"):
        talk.types(nonsense)
        talk.hears("A number, a city")
    talk.types("helsinki")
    talk.hears("May the recipe say this")
    talk.types("y")
    talk.hears("murmurate release recipe.toml --out release")
    assert talk.ends() == 0
    recipe = (folder / "recipe.toml").read_text()
    assert 'mechanism = "od_counts"' in recipe and 'time_zone = "Europe/Helsinki"' in recipe
    assert "Traceback" not in talk.said


def test_whoever_gives_up_leaves_nothing_behind(folder):
    talk = Conversation(folder, "start", "trips.csv", "--time-zone", "Europe/Helsinki")
    talk.hears("Whom to protect [")
    talk.presses_control_c()
    assert talk.ends() == 130
    assert "Interrupted" in talk.said and "Traceback" not in talk.said
    assert not (folder / "recipe.toml").exists()


def test_a_release_asks_for_a_limit_in_words(folder):
    box = ("--space", "grid:60.1,24.8,60.3,25.1:2000", "--set", "epsilon=2", "--out", "release")
    talk = Conversation(folder, "release", "od_counts", "--in", "trips.csv", "--time-zone", "UTC", *box)
    assert "at epsilon 1 no probability changes by more than a factor of 2.7" in talk.hears("may ever be spent per trip")
    talk.types("a lot")
    talk.hears("may ever be spent per trip")
    talk.types("4")
    talk.hears("epsilon 2 per trip left of epsilon 4 per trip")
    assert talk.ends() == 0
