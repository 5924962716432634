"""Progress: every long command says on a terminal that it goes on, on stderr alone, and never across a question."""

from __future__ import annotations

import io
import sys

import pytest
import typer

from murmurate.cli import main, show
from murmurate.core import progress
from murmurate.custody import releasing
from murmurate.demo import city
from murmurate.mechanisms import NAMES


class Terminal(io.StringIO):
    """Text that says it is a terminal."""

    def isatty(self):
        return True


class AtOnce:
    """A timer whose time has come."""

    daemon = True

    def __init__(self, _seconds, function):
        self.start = function

    def cancel(self):
        """Nothing waits."""

    def join(self):
        """Nothing waits."""


def open_terminal(monkeypatch):
    """In the test itself: pytest puts its own stderr in place after the fixtures."""
    stderr = Terminal()
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(show, "Timer", AtOnce)
    return stderr


def call(monkeypatch, *words):
    monkeypatch.setattr(sys, "argv", ["murmurate", *map(str, words)])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


@pytest.mark.parametrize("name", NAMES)
def test_a_release_by_any_mechanism_says_that_it_goes_on(name, monkeypatch):
    terminal = open_terminal(monkeypatch)

    def long_work(recipe, running):
        raise typer.Exit(0)  # whatever it does: the bar is there before it begins, and no mechanism has to report

    monkeypatch.setattr(releasing, "prepare", long_work)
    assert call(monkeypatch, "release", name, "--in", "trips.csv", "--out", "out") == 0
    assert f"releasing with {name}" in terminal.getvalue()


def test_a_whole_release_shows_its_bars_on_stderr_alone(tmp_path, monkeypatch, capsys):
    terminal = open_terminal(monkeypatch)
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    town = city(people=5, days=1, seed=1, interval_s=120)
    town.trips.table.write_csv(tmp_path / "trips.csv", datetime_format="%Y-%m-%dT%H:%M:%SZ")
    box = ",".join(str(value) for value in town.box)
    words = ("--space", f"grid:{box}:1000", "--set", "epsilon=5", "--limit", "5", "--yes", "--out", tmp_path / "out")
    assert call(monkeypatch, "release", "od_counts", "--in", tmp_path / "trips.csv", *words) == 0
    told = capsys.readouterr().out
    assert "releasing with od_counts" in terminal.getvalue()
    assert told.startswith("Released:") and "\x1b" not in told


def test_a_log_holds_no_bars(monkeypatch):
    stderr = io.StringIO()
    monkeypatch.setattr(sys, "stderr", stderr)
    monkeypatch.setattr(show, "Timer", AtOnce)
    with show.working("reading"):
        progress.report("reading", 1, 2)
    assert not stderr.getvalue()


def test_a_question_takes_the_bars_off_the_terminal(monkeypatch):
    terminal = open_terminal(monkeypatch)
    with show.working("reading"):
        progress.report("counting", 1, 2)
        with show.asking():
            before = terminal.getvalue()
            progress.report("counting", 2, 2)
            assert terminal.getvalue() == before
    assert "reading" in before
    assert "counting" in before
    assert terminal.getvalue().rstrip("\n").endswith(("\x1b[?25h", "\x1b[2K"))  # the cursor is back, the bar is gone
