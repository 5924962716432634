"""A studio on a port of its own, a small town in a CSV, a browser."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import polars as pl
import pytest


@dataclass
class Running:
    """A studio in a process of its own."""

    process: subprocess.Popen[str]
    link: str
    folder: Path
    said: list[str]

    @property
    def origin(self) -> str:
        return self.link.split("/enter")[0]

    @property
    def port(self) -> int:
        return int(self.origin.rsplit(":", 1)[1])

    @property
    def ledger(self) -> str:
        return f"sqlite:///{self.folder / 'ledger.db'}"

    def children(self) -> list[int]:
        listed = subprocess.run(["pgrep", "-P", str(self.process.pid)], capture_output=True, text=True, check=False)
        return [int(line) for line in listed.stdout.split()]

    def end(self) -> int:
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGINT)
        code = self.process.wait(30)
        self.process.stdout.close()
        return code


def start(folder: Path, *arguments: str) -> Running:
    command = [sys.executable, "-m", "murmurate", "studio", "--no-browser", "--ledger", f"sqlite:///{folder / 'ledger.db'}"]
    process = subprocess.Popen(
        [*command, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        env={**os.environ, "TMPDIR": str(folder / "tmp"), "POLARS_MAX_THREADS": "1"},
    )  # fmt: skip
    said = []
    for line in process.stdout:
        said.append(line)
        found = re.search(r"http://\S+", line)
        if found:
            return Running(process, found.group(0), folder, said)
    raise AssertionError("the studio did not start: " + "".join(said))


@pytest.fixture
def studio(tmp_path):
    (tmp_path / "tmp").mkdir()
    running = start(tmp_path)
    yield running
    running.end()


@pytest.fixture(scope="session")
def town_csv(tmp_path_factory) -> Path:
    """Trips of 160 people on three days, enough to be clear of the noise, as an export has them."""
    draw = np.random.default_rng(4)
    people, days, per_day, points = 160, 3, 2, 6
    rows = []
    for person in range(people):
        home = 60.2 + 0.05 * draw.random(), 24.9 + 0.08 * draw.random()
        for day in range(days):
            for trip in range(per_day):
                to = 60.2 + 0.05 * draw.random(), 24.9 + 0.08 * draw.random()
                for k in range(points):
                    share = k / (points - 1)
                    lat, lng = (a + share * (b - a) for a, b in zip(home, to, strict=True))
                    minute = 7 * 60 + 240 * trip + 2 * k
                    moment = f"2024-03-{4 + day:02d}T{minute // 60:02d}:{minute % 60:02d}:00Z"
                    rows.append((f"secret-{person:02d}", person * 100 + day * 10 + trip, moment, round(lat, 6), round(lng, 6)))
    path = tmp_path_factory.mktemp("town") / "secret_town.csv"
    pl.DataFrame(rows, schema=["user_id", "trip_id", "timestamp", "lat", "lon"], orient="row").write_csv(path)
    return path
