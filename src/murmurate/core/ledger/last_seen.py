"""Notice a ledger that was put back from an older copy: the last line seen on this machine is kept apart from it."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import secrets
from pathlib import Path

from murmurate.core.ledger.records import Record
from murmurate.core.work import state_folder
from murmurate.errors import LedgerDamaged


class LastSeen:
    """Number and hash of the last line of one ledger at one address, in a file of the state folder.

    It is no proof: whoever may write both can put back both. It notices the mistake, and whoever has the ledger's folder alone.
    """

    def __init__(self, ledger_id: str, address: str) -> None:
        name = hashlib.sha256(f"{ledger_id} {address}".encode()).hexdigest()[:24]
        self.path = state_folder() / "last-seen" / f"{name}.json"
        self.seq, self.digest = _read(self.path)

    def check(self, line: Record) -> None:
        """Refuse the line that has the number of the last one seen, but not its hash."""
        if line.seq == self.seq and line.digest != self.digest:
            raise self._put_back(f"line {line.seq} of the ledger is not the one that was there")

    def check_end(self, seq: int) -> None:
        """Refuse a ledger that ends before the last line seen."""
        if seq < self.seq:
            raise self._put_back(f"the ledger ends with line {seq}, and line {self.seq} was there before")

    def note(self, seq: int, digest: str) -> None:
        """Remember the last line. A state folder that cannot be written to remembers nothing; the ledger itself is whole."""
        if seq <= self.seq:
            return
        self.seq, self.digest = seq, digest
        with contextlib.suppress(OSError):
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            draft = self.path.with_suffix(f".{secrets.token_hex(4)}")
            handle = os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600)
            with os.fdopen(handle, "w") as file:
                json.dump({"seq": seq, "digest": digest}, file)
            os.replace(draft, self.path)

    def _put_back(self, found: str) -> LedgerDamaged:
        return LedgerDamaged(
            f"{found}: an older copy was put in its place, and the charges since are forgotten. Nothing was spent. Put back "
            "the newer file. If this copy is all there is, run `murmurate verify` on every release made since and set limits "
            f"that allow for what is missing; then delete {self.path}, and it is used as it is."
        )


def _read(path: Path) -> tuple[int, str]:
    """Return number and hash; before the first line where there is no file, or one that another program wrote."""
    try:
        values = json.loads(path.read_text())
        return int(values["seq"]), str(values["digest"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0, ""
