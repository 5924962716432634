"""The README tells the truth: its commands and its Python run as they stand."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

README = (Path(__file__).resolve().parent.parent / "README.md").read_text(encoding="utf-8")
ROWS = "user_id,trip_id,timestamp,lat,lon\n" + "".join(
    f"{person},{trip},2024-05-01T{8 + trip:02}:{minute:02}:00,{60.17 + person / 100:.4f},{24.94 + minute / 1000:.4f}\n"
    for person in range(3)
    for trip in range(2)
    for minute in range(5)
)


def blocks(language: str, after: str) -> str:
    """The first block of a language behind a heading."""
    section = README[README.index(after) :]
    found = re.search(rf"```{language}\n(.*?)```", section, re.DOTALL)
    assert found is not None
    return found[1]


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "trips.csv").write_text(ROWS)
    return tmp_path


def test_the_commands_of_the_first_release(folder):
    script = blocks("sh", "## Release a file").replace("murmurate ", f"{sys.executable} -m murmurate ")
    environment = {**os.environ, "MURMURATE_STATE": str(folder / "state")}
    done = subprocess.run(["bash", "-euc", script], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (folder / "release" / "statement.md").is_file()


def test_the_python(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    exec(compile(blocks("python", "From Python"), "README.md", "exec"), {})
    assert capsys.readouterr().out.rstrip().endswith("6")


def test_every_page_it_names_is_there():
    root = Path(__file__).resolve().parent.parent
    for target in re.findall(r"\]\(([^)#]+)\)", README):
        assert (root / target).exists(), target
