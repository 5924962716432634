"""Keep private work files under names: in a folder of this account, or encrypted in an object store or on a network drive.

What is encrypted is so by AES-GCM with a key that is never written anywhere: it lives in the process that runs the release and
travels with its tasks. What a killed process leaves in a store is therefore unreadable, also before it is swept.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import lru_cache
from io import BytesIO
from itertools import pairwise
from pathlib import Path
from typing import Any

from murmurate.errors import MissingPart, ParameterError

NO_COPY = "none"
"""Word in place of a folder: no private row is written to any disk, and files are read again as often as they are needed."""
CHUNK_BYTES = 1 << 28
"""Bytes that are encrypted at once; AES-GCM takes at most 2^31. Set by hand."""
NONCE_BYTES, TAG_BYTES = 12, 16
"""What encryption adds before and behind each chunk: the sizes of AES-GCM."""
NETWORK_DRIVES = frozenset(
    (
        "afs",
        "beegfs",
        "ceph",
        "cifs",
        "fuse.glusterfs",
        "fuse.sshfs",
        "gfs2",
        "glusterfs",
        "gpfs",
        "lustre",
        "nfs",
        "nfs4",
        "ocfs2",
        "smb3",
        "smbfs",
    )
)
"""Types of file systems, as Linux names them, whose disks are in another machine."""


@dataclass(frozen=True, repr=False)
class WorkFiles:
    """Private files under names, which any process that is given this can read and write."""

    where: str
    """A folder, or where there is a `key` the address of one, as fsspec reads it."""
    key: bytes | None = None
    """Encrypts every file; None in a folder that only this account can open."""

    def __repr__(self) -> str:
        return f"<work files in {self.where}>"

    @property
    def folder(self) -> Path | None:
        """The folder where files lie as they are; None where they are encrypted."""
        return Path(self.where) if self.key is None else None

    def put(self, name: str, content: bytes) -> None:
        """Write a file, whole or not at all."""
        with self.writing(name) as target:
            if isinstance(target, Path):
                target.write_bytes(content)
            else:
                target.write(content)

    def get(self, name: str) -> bytes:
        """Return what a file holds."""
        source = self.source(name)
        return source.read_bytes() if isinstance(source, Path) else source.getvalue()

    @contextmanager
    def writing(self, name: str) -> Iterator[Path | BytesIO]:
        """Give the block a path or a buffer to write to, which becomes the file at its end."""
        if self.key is None:
            half = Path(self.where, f"{name}.{secrets.token_hex(4)}")  # two workers may be at one file
            yield half
            half.replace(Path(self.where, name))
        else:
            buffer = BytesIO()
            yield buffer
            self._store(name, _sealed(self.key, name, buffer.getbuffer()))

    def source(self, name: str) -> Path | BytesIO:
        """Return a path, or a buffer, to read a file from."""
        if self.key is None:
            return Path(self.where, name)
        return BytesIO(_opened(self.key, name, self._load(name)))

    def put_segments(self, name: str, segments: Sequence[bytes]) -> list[int]:
        """Write one encrypted file of segments that can be read one by one; return where each begins, and the end."""
        if self.key is None:
            raise RuntimeError("segments are for encrypted files")
        sealed = [_sealed(self.key, f"{name}/{k}", segment) if segment else b"" for k, segment in enumerate(segments)]
        ends = [0]
        for one in sealed:
            ends.append(ends[-1] + len(one))
        self._store(name, b"".join(sealed))
        return ends

    def get_segment(self, name: str, k: int, first: int, end: int) -> bytes:
        """Return segment k, which lies from `first` to before `end`; no other byte is read."""
        return self.get_segments(name, k, (first, end))[0]

    def get_segments(self, name: str, first: int, ends: Sequence[int]) -> list[bytes]:
        """Return the segments from number `first` on that lie between these ends, read at once; no other byte is read."""
        if self.key is None:
            raise RuntimeError("segments are for encrypted files")
        content = self._load(name, ends[0], ends[-1]) if ends[-1] > ends[0] else b""
        return [
            _opened(self.key, f"{name}/{first + k}", content[low - ends[0] : high - ends[0]]) if high > low else b""
            for k, (low, high) in enumerate(pairwise(ends))
        ]

    def has(self, name: str) -> bool:
        """Return whether a file is there."""
        if self.key is None:
            return Path(self.where, name).is_file()
        with _store_errors():
            return bool(_store(self.where)[0].exists(self._path(name)))

    def remove(self, names: Iterable[str]) -> None:
        """Delete files; those that are not there are no fault."""
        for name in names:
            if self.key is None:
                Path(self.where, name).unlink(missing_ok=True)
            else:
                with _store_errors(), suppress(FileNotFoundError):
                    _store(self.where)[0].rm_file(self._path(name))

    def try_out(self) -> None:
        """Write a file and read it again; raise OSError where that cannot be."""
        if self.where.startswith("file://"):  # stores need no folders, and asking for one could make a bucket
            Path(self.where.removeprefix("file://")).mkdir(parents=True, exist_ok=True, mode=0o700)
        self.put("first", b"first")
        if self.get("first") != b"first":
            raise OSError("a file that was written is another one when it is read")
        self.remove(["first"])

    def _path(self, name: str) -> str:
        return f"{_store(self.where)[1].rstrip('/')}/{name}"

    def _store(self, name: str, content: bytes) -> None:
        with _store_errors():
            _store(self.where)[0].pipe_file(self._path(name), content)

    def _load(self, name: str, first: int | None = None, end: int | None = None) -> bytes:
        with _store_errors():
            content: bytes = _store(self.where)[0].cat_file(self._path(name), start=first, end=end)
        return content


def is_address(where: str | Path | None) -> bool:
    """Return whether this is the address of a store and not a folder.

    >>> is_address("s3://bucket/work"), is_address("/mnt/work"), is_address(None)
    (True, False, False)
    """
    return isinstance(where, str) and "://" in where


def on_network(folder: Path) -> bool:
    """Return whether a folder lies on a disk of another machine, as far as Linux says; False on other systems."""
    try:
        mounts = Path("/proc/self/mounts").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    inside = os.path.realpath(folder)
    held = [line.split()[1:3] for line in mounts if len(line.split()) > 2]
    over = [(point, kind) for point, kind in held if inside == point or inside.startswith(point.rstrip("/") + "/")]
    return bool(over) and max(over, key=lambda one: len(one[0]))[1] in NETWORK_DRIVES


def remove_store(where: str) -> None:
    """Delete everything at an address; raise OSError where that cannot be."""
    with _store_errors():
        fs, path = _store(where)
        fs.invalidate_cache()
        if fs.exists(path):
            fs.rm(path, recursive=True)


@lru_cache(maxsize=8)
def _store(where: str) -> tuple[Any, str]:
    """Return the store of an address, and the path in it."""
    scheme = where.partition("://")[0]
    try:
        import fsspec
    except ImportError:
        raise MissingPart(_missing(scheme)) from None
    try:
        fs, path = fsspec.core.url_to_fs(where)
    except ImportError:
        raise MissingPart(_missing(scheme)) from None
    except ValueError as error:
        raise ParameterError(f"work files cannot lie at {where}: {error}.") from None
    return fs, path


def _missing(scheme: str) -> str:
    return f"work files at {scheme}:// need more packages: `pip install 'murmurate[cloud]'`, or what fsspec names for it."


@contextmanager
def _store_errors() -> Iterator[None]:
    """Turn errors of a store, each of its own kind, into OSError; messages of ours stay."""
    try:
        yield
    except (OSError, MissingPart, ParameterError):
        raise
    except Exception as error:  # noqa: BLE001  every store has errors of its own
        raise OSError(f"{type(error).__name__}: {error}") from None


def _sealed(key: bytes, name: str, content: bytes | memoryview) -> bytes:
    """Encrypt a file; a chunk is bound to its name, its place and the number of chunks."""
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, n = AESGCM(key), max(1, -(-len(content) // CHUNK_BYTES))
    chunks = []
    for k in range(n):
        nonce = secrets.token_bytes(NONCE_BYTES)
        chunk = content[k * CHUNK_BYTES : (k + 1) * CHUNK_BYTES]
        chunks += [nonce, cipher.encrypt(nonce, chunk, f"{name} {k} {n}".encode())]
    return b"".join(chunks)


def _opened(key: bytes, name: str, content: bytes) -> bytes:
    """Decrypt a file; OSError where it is not the one that was written."""
    from cryptography.exceptions import InvalidTag
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

    cipher, size = AESGCM(key), CHUNK_BYTES + NONCE_BYTES + TAG_BYTES
    n = max(1, -(-len(content) // size))
    chunks = []
    try:
        for k in range(n):
            chunk = content[k * size : (k + 1) * size]
            chunks.append(cipher.decrypt(chunk[:NONCE_BYTES], chunk[NONCE_BYTES:], f"{name} {k} {n}".encode()))
    except (InvalidTag, ValueError):
        raise OSError("an encrypted work file was changed by somebody") from None
    return b"".join(chunks)
