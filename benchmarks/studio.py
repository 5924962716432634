"""The studio under load: a large upload, the cost of its pages, and a release while ten tabs are open.

    python benchmarks/studio.py [--gigabytes 1] [--releases 3]

It prints the server's memory when idle and at its highest during an upload of a CSV of that size, the highest memory of the
child that looks into it, the CPU seconds of each page, and the CPU and wall seconds of a release with no tab open and with
ten, in turns. The data are random walks made here. Linux only: it reads /proc.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl

from murmurate.core.ledger import Ledger
from murmurate.studio.drafts import Drafts

BOX = (60.2, 24.9, 60.25, 25.0)
"""Where the walks are: south, west, north, east."""
TICK_S = 1 / os.sysconf("SC_CLK_TCK")
"""Seconds of one unit of CPU time in /proc."""


class Studio:
    """A studio in a process of its own, and the one browser that was let in."""

    def __init__(self, folder: Path) -> None:
        self.ledger = f"sqlite:///{folder / 'ledger.db'}"
        command = [sys.executable, "-m", "murmurate", "studio", "--no-browser", "--ledger", self.ledger]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        link = next(found for line in self.process.stdout or () if (found := re.search(r"http://(\S+):(\d+)(/\S+)", line)))
        self.port, self.cookie = int(link.group(2)), ""
        answer = self.ask("GET", link.group(3))
        self.cookie = (answer.getheader("set-cookie") or "").split(";")[0]
        found = re.search(r'name="token" value="([^"]+)"', self.ask("GET", "/").read().decode())
        self.token = found.group(1) if found else ""

    def ask(self, method: str, path: str, body: object = None, **headers: str) -> http.client.HTTPResponse:
        """Send one request and return its answer."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=600)
        own = {"Cookie": self.cookie, "Origin": f"http://127.0.0.1:{self.port}", "Connection": "close"}
        connection.request(method, path, body=body, headers={**own, **headers})  # type: ignore[arg-type]
        return connection.getresponse()

    def post(self, path: str, **fields: str) -> http.client.HTTPResponse:
        """Send a form."""
        body = "&".join(f"{name}={value}" for name, value in {"token": self.token, **fields}.items())
        return self.ask("POST", path, body, **{"Content-Type": "application/x-www-form-urlencoded"})

    def upload(self, path: Path) -> str:
        """Send a file as a browser does; return its draft."""
        mark = "benchmark-mark"
        head = f'--{mark}\r\nContent-Disposition: form-data; name="token"\r\n\r\n{self.token}\r\n--{mark}\r\n'
        head += f'Content-Disposition: form-data; name="file"; filename="{path.name}"\r\n\r\n'
        tail = f"\r\n--{mark}--\r\n"

        def pieces() -> Iterator[bytes]:
            yield head.encode()
            with path.open("rb") as file:
                while piece := file.read(1 << 20):
                    yield piece
            yield tail.encode()

        size = len(head) + path.stat().st_size + len(tail)
        kind = f"multipart/form-data; boundary={mark}"
        answer = self.ask("POST", "/new", pieces(), **{"Content-Type": kind, "Content-Length": str(size)})
        return (answer.getheader("location") or "").split("/")[2]

    def wait(self, draft: str, task: str) -> None:
        """Follow a job to its end."""
        last = self.ask("GET", f"/draft/{draft}/events/{task}").read().decode().strip().splitlines()[-1]
        state = json.loads(last.removeprefix("data: "))["state"]
        if state != "done":
            with Ledger(self.ledger) as ledger:
                told = json.loads((Drafts(ledger).folder / draft / f"{task}.job.json").read_text())
            raise RuntimeError(f"{task} ended as {state}: {told['message']}")

    def cpu_s(self) -> float:
        """Return the CPU seconds of the server and of the children it waited for."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:15])) * TICK_S

    def own_cpu_s(self) -> float:
        """Return the CPU seconds of the server alone."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return sum(map(int, fields[11:13])) * TICK_S


def memory_mb(pid: int) -> float:
    """Return the memory that a process holds now."""
    found = re.search(r"VmRSS:\s+(\d+)", Path(f"/proc/{pid}/status").read_text())
    return int(found.group(1)) / 1024 if found else 0.0


class Watch:
    """Sample the memory of the server and of its children until told to stop."""

    def __init__(self, pid: int) -> None:
        self.server = self.child = 0.0
        self._pid, self._stop = pid, threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)

    def _sample(self) -> None:
        while not self._stop.wait(0.05):
            self.server = max(self.server, memory_mb(self._pid))
            for child in Path(f"/proc/{self._pid}/task/{self._pid}/children").read_text().split():
                try:
                    self.child = max(self.child, memory_mb(int(child)))
                except OSError:  # it ended meanwhile
                    continue

    def __enter__(self) -> Watch:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        """End."""
        self._stop.set()
        self._thread.join()


def write_walks(path: Path, *, n_bytes: float) -> None:
    """Write random walks of 20 points a trip as a CSV of about this size."""
    draw, first = np.random.default_rng(1), True
    trips_a_part = 5_000
    south, west, north, east = BOX
    part = 0
    with path.open("wb") as file:
        while file.tell() < n_bytes:
            trip = np.repeat(np.arange(trips_a_part) + part * trips_a_part, 20)
            step = np.tile(np.arange(20), trips_a_part)
            lat = south + (north - south) * (draw.random(trips_a_part).repeat(20) * 0.9 + 0.004 * step)
            lng = west + (east - west) * (draw.random(trips_a_part).repeat(20) * 0.9 + 0.004 * step)
            day = pl.datetime(2024, 1, 1, time_zone="UTC") + pl.duration(seconds=pl.Series(trip % 86_400 + 30 * step))
            table = pl.DataFrame({"uid": trip // 30, "tid": trip, "lat": lat.round(6), "lng": lng.round(6)})
            table.select("uid", "tid", day.alias("datetime"), "lat", "lng").write_csv(file, include_header=first)
            first, part = False, part + 1


def pages(studio: Studio, draft: str) -> None:
    """Print the CPU of every page, the mean of ten."""
    for path in (
        "/",
        "/ledger",
        "/releases",
        *(f"/draft/{draft}/{word}" for word in ("file", "whom", "what", "amount", "sign")),
    ):
        studio.ask("GET", path).read()  # the first of all imports what it needs
        before = studio.own_cpu_s()
        for _ in range(10):
            studio.ask("GET", path).read()
        print(f"page {path.replace(draft, 'DRAFT'):24} {1000 * (studio.own_cpu_s() - before) / 10:6.0f} ms CPU")


def ordered(studio: Studio, source: Path, population: str) -> str:
    """Make a draft as the pages leave it before signing."""
    south, west, north, east = BOX
    with Ledger(studio.ledger) as ledger:
        area = {"south": south, "west": west, "north": north, "east": east, "cell_m": 500.0}
        given = {"epsilon": 2.0, "unit": "trip", "n_out": 200_000, "space": f"grid:{south},{west},{north},{east}:500"}
        draft = Drafts(ledger).new(
            name="walks.csv", source=str(source), unit="trip", area=area, area_public=True, population=population, limit="100",
            mechanism="flock", parameters=given,
        )  # fmt: skip
    return draft.id


def released(studio: Studio, source: Path, *, tabs: int) -> tuple[float, float]:
    """Release once with so many tabs open at the page of progress; return CPU and wall seconds."""
    draft = ordered(studio, source, "walks")
    before, began = studio.cpu_s(), time.perf_counter()
    studio.post(f"/draft/{draft}/sign", who="Ann", why="benchmark", understood="1").read()
    watching = [
        threading.Thread(target=lambda: studio.ask("GET", f"/draft/{draft}/events/release").read()) for _ in range(tabs)
    ]
    for tab in watching:
        tab.start()
    studio.wait(draft, "release")
    took = time.perf_counter() - began
    for tab in watching:
        tab.join()
    time.sleep(0.5)  # the child's CPU is counted once the server has waited for it
    return studio.cpu_s() - before, took


def main() -> None:
    """Measure and print."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--gigabytes", type=float, default=1.0)
    options.add_argument("--releases", type=int, default=3)
    wanted = options.parse_args()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        small, large = folder / "walks.csv", folder / "large.csv"
        write_walks(small, n_bytes=1e6)
        write_walks(large, n_bytes=wanted.gigabytes * 1e9)
        studio = Studio(folder)
        try:
            idle = memory_mb(studio.process.pid)
            print(f"idle: {idle:.0f} MB")
            with Watch(studio.process.pid) as watch:
                draft = studio.upload(large)
                studio.wait(draft, "inspection")
            size = large.stat().st_size / 1e9
            print(f"upload of {size:.2f} GB: server {watch.server:.0f} MB, child {watch.child:.0f} MB at the highest")
            pages(studio, ordered(studio, small, "pages"))
            for _ in range(wanted.releases):
                for tabs in (0, 10):
                    cpu, wall = released(studio, small, tabs=tabs)
                    print(f"release with {tabs:2} tabs: {cpu:.1f} CPU s, {wall:.1f} s")
        finally:
            studio.process.terminate()
            studio.process.wait()


if __name__ == "__main__":
    main()
