"""Write lines of the ledger in a chain of hashes, in which a changed line shows."""

from __future__ import annotations

import getpass
import hashlib
import json
import os
import socket
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from murmurate.core.parameters import plain_value
from murmurate.errors import LedgerDamaged, ParameterError


@dataclass(frozen=True)
class Record:
    """A line as it is stored: who wrote what, when; `body` is canonical JSON, `digest` covers all of it."""

    seq: int
    at: str
    who: str
    kind: str
    population: str | None
    body: str
    previous: str
    digest: str

    @property
    def values(self) -> dict[str, Any]:
        """The body, read."""
        return json.loads(self.body)

    def expected_digest(self) -> str:
        """Return what the digest must be for this content after that predecessor."""
        content = [self.seq, self.at, self.who, self.kind, self.population, self.body, self.previous]
        return hashlib.sha256(canonical_json(content).encode()).hexdigest()

    def check_follows(self, seq: int, digest: str) -> None:
        """Refuse a line that was changed, or that does not follow the line with this number and digest."""
        texts = (self.at, self.who, self.kind, self.body, self.previous, self.digest, self.population or "")
        if not isinstance(self.seq, int) or not all(isinstance(text, str) for text in texts):  # SQLite does not insist
            raise LedgerDamaged(f"the line after line {seq} of the ledger is not a line. {REMEDY}")
        if self.seq != seq + 1:
            raise LedgerDamaged(f"line {seq + 1} of the ledger is missing (line {self.seq} comes next). {REMEDY}")
        if self.previous != digest or self.digest != self.expected_digest():
            raise LedgerDamaged(f"line {self.seq} of the ledger ({self.kind}, {self.at}) was changed after writing. {REMEDY}")


REMEDY = (
    "Nothing was spent, and nothing can be until it is repaired: put back the latest backup, and compare its history "
    "with the releases already made before releasing anything more."
)
"""What to do about a damaged ledger, at the end of every such error."""


def default_who() -> str:
    """Return the user and machine for the history."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a container may run under a user id that has no name
        user = f"uid {os.getuid()}"
    return f"{user}@{socket.gethostname()}"


def next_record(*, seq: int, previous: str, who: str, kind: str, population: str | None, values: dict[str, Any]) -> Record:
    """Return the line that follows line `seq` with digest `previous`."""
    moment = datetime.now(UTC).isoformat(timespec="microseconds")
    draft = Record(seq + 1, moment, who, kind, population, canonical_json(values), previous, "")
    return replace(draft, digest=draft.expected_digest())


def canonical_json(values: Any) -> str:
    """Write values as JSON in one fixed form, so that equal values have equal hashes."""
    try:
        return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False, default=_plain)
    except (TypeError, ValueError) as error:
        raise ParameterError(f"the ledger can only record plain parameters (numbers, words, lists): {error}") from None


def _plain(value: Any) -> Any:
    """Turn spaces into their spec and numpy numbers into numbers; anything else is refused."""
    plain = plain_value(value)
    if plain is not value:
        return plain
    if hasattr(value, "item"):
        return value.item()
    raise TypeError(f"{type(value).__name__} {value!r} is not plain")
