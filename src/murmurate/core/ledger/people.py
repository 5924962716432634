"""Hash the people of a file under a key, and compare sets of them."""

from __future__ import annotations

import hashlib
import hmac
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from murmurate.core.names import one_spelling

Hashes = NDArray[np.uint64]

OVERLAP = 0.2
"""Share of the smaller set from which on two files count as being about the same people. Set by hand."""


@lru_cache(maxsize=1)  # one release asks for the same people several times
def hash_people(uids: tuple[str, ...], key: bytes) -> Hashes:
    """Return the HMAC-SHA256 of each uid under the ledger's own key, cut to 64 bits, sorted, each once.

    Spellings of one name that differ by accident (` 7`, `007`, `7.0`) are hashed alike.
    """
    digests = b"".join(hmac.digest(key, one_spelling(uid).encode(), "sha256")[:8] for uid in uids)
    return np.unique(np.frombuffer(digests, dtype=">u8").astype(np.uint64))


def key_digest(key: bytes) -> str:
    """Hash the key for the history: enough to see that it was exchanged, nothing to hash people with."""
    return hashlib.sha256(key).hexdigest()


def pack(hashes: Hashes) -> bytes:
    """Return the hashes as eight bytes each, big-endian, sorted."""
    return hashes.astype(">u8").tobytes()


def people_digest(hashes: Hashes) -> str:
    """Hash a set of people for the history."""
    return hashlib.sha256(pack(hashes)).hexdigest()


def unpack(packed: bytes) -> Hashes:
    """Return the hashes that `pack` wrote."""
    return np.frombuffer(packed, dtype=">u8").astype(np.uint64)


def overlap(first: Hashes, second: Hashes) -> float:
    """Return the share of the smaller set that lies in the larger one."""
    smaller = min(len(first), len(second))
    return len(np.intersect1d(first, second, assume_unique=True)) / smaller if smaller else 0.0
