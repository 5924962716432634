"""Hash the people of a file under a key, and compare sets of them.

Up to `EXACT_PEOPLE` people are kept whole. Of more, the smallest hashes are kept: a uniform sample of so many people, which
can be merged with others. The overlap that is estimated from samples errs towards people being the same. Single people are
followed over populations (`following.py`) only where they are in the sample.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from murmurate.core.names import one_spelling

Hashes = NDArray[np.uint64]

OVERLAP = 0.2
"""Minimum share of the smaller set for two files to count as being about the same people. Set by hand."""


EXACT_PEOPLE = 1 << 22
"""Most people whose hashes are all kept (34 MB); a set of so many is a sample of a larger one. Set by hand: below it nothing is
estimated, and a sample of this size knows a share to within 0.3 percentage points."""
MISSED = 1e-6
"""Probability that a share is larger than its upper bound, which was computed from a sample."""
HASHED_AT_ONCE = 1 << 17
"""People who are hashed at once, before they are merged with earlier ones."""


@runtime_checkable
class InParts(Protocol):
    """People whose names are in parts that other processes can read."""

    def fold(self, function: Callable[[Iterable[str]], Hashes], add: Callable[[Sequence[Hashes]], Hashes]) -> Hashes:
        """Apply a function to the names of some people at a time, and add up the results in any order and grouping."""
        ...


@dataclass(frozen=True, repr=False)
class _Hashing:
    """Hashes names under a key, which its representation does not show."""

    key: bytes

    def __call__(self, uids: Iterable[str]) -> Hashes:
        hashes, rest = np.empty(0, np.uint64), iter(uids)
        while some := list(islice(rest, HASHED_AT_ONCE)):
            digests = b"".join(hmac.digest(self.key, one_spelling(uid).encode(), "sha256")[:8] for uid in some)
            hashes = union([hashes, np.unique(np.frombuffer(digests, dtype=">u8").astype(np.uint64))])
        return hashes


def hash_people(uids: Collection[str], key: bytes) -> Hashes:
    """Return the HMAC-SHA256 of each uid under the ledger's own key, cut to 64 bits, sorted, each once.

    Spellings of one name that differ by accident (` 7`, `007`, `7.0`) are hashed alike. Of more than `EXACT_PEOPLE` people the
    smallest hashes are returned. The result is the same whether one process or several workers hash the parts.
    """
    return _hashed(uids, key)  # type: ignore[arg-type]


@lru_cache(maxsize=1)  # one release asks for the same people several times
def _hashed(uids: Collection[str], key: bytes) -> Hashes:
    return uids.fold(_Hashing(key), union) if isinstance(uids, InParts) else _Hashing(key)(uids)


def is_sample(*sets: Hashes) -> bool:
    """Return whether any of these sets is a sample of a larger one."""
    return any(len(hashes) >= EXACT_PEOPLE for hashes in sets)


def union(sets: Sequence[Hashes]) -> Hashes:
    """Return the people of all sets, or of their union the sample that `EXACT_PEOPLE` allows."""
    together = np.unique(np.concatenate(sets)) if sets else np.empty(0, np.uint64)
    return _below(together, _limit(sets))[:EXACT_PEOPLE]


def _limit(sets: Iterable[Hashes]) -> np.uint64:
    """Return up to where every one of the sets holds all its hashes."""
    return min((np.uint64(hashes[-1]) for hashes in sets if is_sample(hashes)), default=np.uint64(np.iinfo(np.uint64).max))


def _below(hashes: Hashes, limit: np.uint64) -> Hashes:
    return hashes[: int(np.searchsorted(hashes, limit, side="right"))]


def key_digest(key: bytes) -> str:
    """Hash the key for the history. This shows whether the key was replaced, and cannot be used to hash people."""
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
    """Return the share of the smaller set that lies in the larger one; of samples, an upper bound that is never 0.

    Samples are compared where both hold every hash. The bound is that of Clopper and Pearson: the true share is larger with
    probability `MISSED` at most.
    """
    if not len(first) or not len(second):
        return 0.0
    limit = _limit((first, second))
    here, there = _below(first, limit), _below(second, limit)
    smaller, common = min(len(here), len(there)), len(np.intersect1d(here, there, assume_unique=True))
    if not is_sample(first, second):
        return common / smaller
    from scipy.special import betaincinv  # half a second, which only files of millions of people need

    return float(betaincinv(common + 1, smaller - common, 1 - MISSED)) if common < smaller else 1.0
