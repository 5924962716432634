"""Take a file from a form as it comes: straight into a closed folder, never into memory or a temporary folder."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

from murmurate.errors import InputError

MOST_BYTES = 1 << 40
"""Largest file that is taken, in bytes. Set by hand: a terabyte is more than one machine releases."""
KEPT_FREE = 1 << 30
"""Bytes of the disk that stay free."""
MOST_HEAD = 16_384
"""Most bytes before the content of a part: its name and kind. Set by hand."""
MOST_FIELD = 65_536
"""Most bytes of a field that is no file. Set by hand."""


@dataclass(frozen=True)
class Uploaded:
    """Hold what a form brought: its fields, and where the file lies now."""

    fields: dict[str, str]
    name: str
    """What the file was called on the person's disk, without folders; for reading only, never a path."""
    path: Path | None


class Form:
    """Read a multipart form as it comes; plain fields stand before the file, the token first."""

    def __init__(self, content_type: str, chunks: AsyncIterator[bytes]) -> None:
        found = re.search(r'boundary="?([^";]{1,200})"?', content_type)
        if found is None:
            raise InputError("the form does not say where its parts end.")
        self._mark = b"\r\n--" + found.group(1).encode("latin-1", "replace")
        self._chunks = chunks
        self._buffer = b"\r\n"
        self._whole = False

    async def fields(self) -> tuple[dict[str, str], str]:
        """Read the fields before the file; return them with the file's name, which is empty where none was chosen."""
        fields: dict[str, str] = {}
        await self._until(self._mark, MOST_HEAD)
        while not await self._at_end():
            head = (await self._until(b"\r\n\r\n", MOST_HEAD)).decode("utf-8", "replace")
            field = re.search(r'name="([^"]*)"', head)
            file = re.search(r'filename="([^"]*)"', head)
            if file is not None:
                return fields, file.group(1).replace("\\", "/").rsplit("/", 1)[-1][:200]
            value = await self._until(self._mark, MOST_FIELD)
            if field is not None:
                fields[field.group(1)] = value.decode("utf-8", "replace")
        return fields, ""

    async def save(self, target: Path) -> int:
        """Write the file to a new path that only its owner may read; return its size. Nothing is left of a broken one."""
        free = shutil.disk_usage(target.parent).free - KEPT_FREE
        handle = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        size = 0
        try:
            with os.fdopen(handle, "wb") as file:
                async for piece in self._pieces():
                    size += len(piece)
                    if size > min(MOST_BYTES, free):
                        raise InputError(
                            "the file is larger than the disk beside the ledger has room for; nothing of it was kept.",
                            "make room there, or start the studio with the file: murmurate studio FILE reads it where it is.",
                        )
                    file.write(piece)
        except BaseException:
            target.unlink(missing_ok=True)
            raise
        return size

    async def _pieces(self) -> AsyncIterator[bytes]:
        """Yield the content of the file, holding back what may be the beginning of the mark that ends it."""
        while True:
            at = self._buffer.find(self._mark)
            if at >= 0:
                yield self._buffer[:at]
                self._buffer = self._buffer[at + len(self._mark) :]
                return
            ready = len(self._buffer) - len(self._mark)
            if ready > 0:
                yield self._buffer[:ready]
                self._buffer = self._buffer[ready:]
            await self._more()

    async def _until(self, mark: bytes, most: int) -> bytes:
        while (at := self._buffer.find(mark)) < 0:
            if len(self._buffer) > most:
                raise InputError("the form has a part without an end.")
            await self._more()
        found, self._buffer = self._buffer[:at], self._buffer[at + len(mark) :]
        return found

    async def _at_end(self) -> bool:
        while len(self._buffer) < 2:
            await self._more()
        return self._buffer[:2] == b"--"

    async def _more(self) -> None:
        try:
            self._buffer += await anext(self._chunks)
        except StopAsyncIteration:
            raise InputError("the file did not arrive whole; nothing of it was kept.", "send it again.") from None


def suffix_of(name: str) -> str:
    """Return the endings of a file name that say its format, as in `.csv.gz`; the rest of the name stays out of paths.

    >>> suffix_of("my trips.2024.csv.gz"), suffix_of("../../x;y"), suffix_of("trips.CSV")
    ('.csv.gz', '', '.csv')
    """
    found = re.search(r"((?:\.[A-Za-z0-9]{1,10})?\.(?:gz|zst|bz2|xz|zip)|\.[A-Za-z0-9]{1,10})$", name)
    return found.group(1).lower() if found else ""
