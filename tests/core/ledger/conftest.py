"""A private PostgreSQL server for the session, and an address of a fresh ledger on each kind of database."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest


@dataclass(frozen=True)
class Server:
    """A PostgreSQL cluster in a temporary folder, on a socket of its own."""

    bin: Path
    folder: Path

    def address(self, database: str) -> str:
        return f"postgresql://postgres@/{database}?host={self.folder}"

    def run(self, tool: str, *arguments: str) -> None:
        command = [str(self.bin / tool), *arguments]
        if os.geteuid() == 0:  # the server refuses to run as root
            command = ["runuser", "-u", "postgres", "--", *command]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=self.folder, timeout=300)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses='' -c max_connections=100"
        self.run(
            "pg_ctl", "-D", str(self.folder / "data"), "-w", "-t", "240", "-l", str(self.folder / "log"), "-o", options, "start"
        )

    def stop(self, mode: str = "fast") -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", mode, "stop")

    def new_database(self) -> str:
        name = f"ledger_{secrets.token_hex(4)}"
        self.run("psql", "-h", str(self.folder), "-U", "postgres", "-qc", f"CREATE DATABASE {name}")
        return self.address(name)

    def sql(self, address: str, statement: str) -> None:
        self.run("psql", "-v", "ON_ERROR_STOP=1", "-qc", statement, address)


@pytest.fixture(scope="session")
def postgres() -> Iterator[Server]:
    tools = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if not tools:
        pytest.skip("no PostgreSQL server on this machine (apt install postgresql)")
    if os.geteuid() == 0 and not shutil.which("runuser"):
        pytest.skip("PostgreSQL does not run as root and there is no runuser to change the user")
    pytest.importorskip("psycopg")
    folder = Path(tempfile.mkdtemp(prefix="mm-pg-"))
    server = Server(tools[-1].parent, folder)
    try:
        if os.geteuid() == 0:
            shutil.chown(folder, "postgres")
        server.run("initdb", "-D", str(folder / "data"), "-U", "postgres", "--auth=trust", "--no-sync", "-E", "UTF8")
        server.start()
        try:
            yield server
        finally:
            server.stop("immediate")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


@pytest.fixture(params=["sqlite", pytest.param("postgresql", marks=pytest.mark.postgres)])
def address(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Where a ledger may be made; every test that uses it runs on both databases."""
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    if request.param == "sqlite":
        return str(tmp_path / "ledger.sqlite")
    return request.getfixturevalue("postgres").new_database()
