"""A ledger as version 1 left it: no table of charged releases; written without the code under test."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import sqlalchemy as sa

TABLES = (
    "CREATE TABLE murmurate_ledger (ledger_id TEXT PRIMARY KEY, purpose TEXT NOT NULL, uid_key {blob} NOT NULL)",
    "CREATE TABLE murmurate_version (version INTEGER PRIMARY KEY, since TEXT NOT NULL)",
    "CREATE TABLE murmurate_record (seq BIGINT PRIMARY KEY, at TEXT NOT NULL, who TEXT NOT NULL, kind TEXT NOT NULL, "
    "population TEXT, body TEXT NOT NULL, previous TEXT NOT NULL, digest TEXT NOT NULL UNIQUE)",
    "CREATE TABLE murmurate_people (seq BIGINT PRIMARY KEY, hashes {blob} NOT NULL)",
)


def write(engine: sa.Engine) -> None:
    """Town, two people, a limit of 1 and two debits of 0.3."""
    promise = {
        "kind": "dp",
        "epsilon": 0.3,
        "delta": 0.0,
        "unit": {"name": "user", "max_trips": None, "max_points": None},
        "adjacency": "add_remove",
        "assumptions": [],
        "events": [{"event": "Pure", "epsilon": 0.3, "times": 1}],
    }
    people = bytes(range(16))
    lines: list[tuple[str, str | None, dict[str, Any]]] = [
        ("created", None, {"ledger_id": "old", "purpose": "real"}),
        ("population", "town", {"name": "town"}),
        (
            "attached",
            "town",
            {
                "fingerprint": "one",
                "n_people": 2,
                "people_digest": hashlib.sha256(people).hexdigest(),
                "overridden_overlap": [],
            },
        ),
        ("limit", "town", {"kind": "dp", "unit": "user", "epsilon": 1.0, "delta": 0.0}),
    ]
    for name in ("r0", "r1"):
        values = {"release_id": name, "mechanism": "m", "parameters": {}, "guarantee": promise}
        lines.append(("debit", "town", {**values, "seeded": False, "accepted_no_guarantee": False}))
    with engine.begin() as connection:
        blob = "BYTEA" if engine.dialect.name == "postgresql" else "BLOB"
        for table in TABLES:
            connection.exec_driver_sql(table.format(blob=blob))
        connection.execute(sa.text("INSERT INTO murmurate_ledger VALUES ('old', 'real', :key)"), {"key": b"k" * 32})
        connection.execute(sa.text("INSERT INTO murmurate_version VALUES (1, '2026-01-01')"))
        previous = "old"
        for seq, (kind, population, values) in enumerate(lines, start=1):
            body = json.dumps(values, sort_keys=True, separators=(",", ":"))
            content = [seq, "2026-01-01T00:00:00+00:00", "ann", kind, population, body, previous]
            digest = hashlib.sha256(json.dumps(content, separators=(",", ":")).encode()).hexdigest()
            names = ("seq", "at", "who", "kind", "population", "body", "previous", "digest")
            connection.execute(
                sa.text("INSERT INTO murmurate_record VALUES (:seq, :at, :who, :kind, :population, :body, :previous, :digest)"),
                dict(zip(names, (*content, digest), strict=True)),
            )
            previous = digest
        connection.execute(sa.text("INSERT INTO murmurate_people VALUES (3, :people)"), {"people": people})
