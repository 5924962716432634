"""Draw random words: AES-256 in counter mode, keyed by the operating system."""

from __future__ import annotations

import hashlib
import os
import threading
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from numpy.typing import NDArray

from murmurate.core.parameters import whole
from murmurate.errors import ParameterError

Words = NDArray[np.uint64]

_ZEROS = bytes(1 << 20)
"""Plain text that is encrypted, 1 MiB at a time: zeros, so that the key stream itself is the output."""


class Randomness:
    """Random words from AES-CTR; made by `secure()` or, for tests and demos only, by `seeded(seed)`.

    `seeded` tells whether somebody else can draw the same numbers again; a ledger refuses such a release. A secure
    stream is never copied: pickled, deep-copied or carried over a fork it becomes a new one with a key of its own, so
    that two workers cannot add the same noise. Safe to share between threads.

    >>> rng = seeded(7)
    >>> rng.seeded, rng.integers(0, 10, 5).tolist() == seeded(7).integers(0, 10, 5).tolist()
    (True, True)
    """

    __slots__ = ("_children", "_encryptor", "_key", "_lock", "_process")

    def __init__(self, seed_key: bytes | None = None) -> None:
        """Start a stream; use `secure()` or `seeded()` instead. A given `seed_key` makes it repeatable."""
        self._key = seed_key
        self._children = 0
        self._lock = threading.Lock()
        self._start()

    def _start(self) -> None:
        key = os.urandom(32) if self._key is None else self._key
        # a fresh key each time makes counter zero safe to start from
        self._encryptor = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor()
        self._process = os.getpid()

    @property
    def seeded(self) -> bool:
        """Whether somebody else can draw the same numbers again."""
        return self._key is not None

    def __repr__(self) -> str:
        return f"<Randomness, {'seeded: for tests and demos only' if self.seeded else 'secure'}>"

    def __reduce__(self) -> tuple[Any, tuple[Any, ...]]:
        return (Randomness, (self._child_key(),)) if self.seeded else (secure, ())

    def _child_key(self) -> bytes:
        with self._lock:
            self._children += 1
            return hashlib.sha256(b"murmurate child" + (self._key or b"") + self._children.to_bytes(8, "big")).digest()

    # -- words and numbers made of them ----------------------------------------------------------------------------

    def fill(self, buffer: Words) -> None:
        """Overwrite a contiguous buffer with random words."""
        target = buffer.view(np.uint8).data
        with self._lock:
            if not self.seeded and self._process != os.getpid():
                self._start()
            for start in range(0, len(target), len(_ZEROS)):
                part = target[start : start + len(_ZEROS)]
                self._encryptor.update_into(_ZEROS if len(part) == len(_ZEROS) else _ZEROS[: len(part)], part)

    def words(self, n: int) -> Words:
        """Return `n` uniform 64-bit words."""
        whole("n", int(n), at_least=0)
        buffer = np.empty(int(n), dtype=np.uint64)
        if n:
            self.fill(buffer)
        return buffer

    def uniforms(self, n: int) -> NDArray[np.float64]:
        """Return `n` numbers in the open interval (0, 1): the middles of 2^52 equal parts."""
        return ((self.words(n) >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52

    def integers(self, low: int, high: int, n: int) -> NDArray[np.int64]:
        """Return `n` whole numbers from `low` up to but not including `high`, without modulo bias."""
        span = int(high) - int(low)
        if not 0 < span <= 2**63 or int(low) < -(2**63) or int(high) > 2**63:
            raise ParameterError(f"integers needs low < high within 64 bits; got low = {low!r} and high = {high!r}.")
        last_fair = np.uint64((2**64 // span) * span - 1)
        words = self.words(n)
        unfair = np.flatnonzero(words > last_fair)
        while unfair.size:
            words[unfair] = self.words(unfair.size)
            unfair = unfair[words[unfair] > last_fair]
        return (words % np.uint64(span)).astype(np.int64) + np.int64(low)

    def permutation(self, n: int) -> NDArray[np.int64]:
        """Return the numbers 0 to `n` - 1 in uniformly random order."""
        while True:
            words = self.words(n)
            order = np.argsort(words, kind="stable").astype(np.int64)
            ranked = words[order]
            # given that no two words are equal every order is exactly equally likely, so draw again on a tie
            if not (ranked[1:] == ranked[:-1]).any():
                return order

    def normals(self, n: int) -> NDArray[np.float64]:
        """Return `n` standard normal numbers, in bulk; not a defence against floating-point attacks: round before release."""
        from murmurate.noise.ziggurat import fill_normals

        return fill_normals(int(n), self)

    # -- further streams -------------------------------------------------------------------------------------------

    def spawn(self, k: int) -> list[Randomness]:
        """Return `k` independent streams: secure ones have keys of their own, seeded ones follow from this one."""
        whole("k", k, at_least=0)
        return [Randomness(self._child_key()) if self.seeded else secure() for _ in range(k)]

    def generator(self) -> np.random.Generator:
        """Return a numpy generator for draws that carry no privacy claim (sampling from a model, choosing test queries)."""
        return np.random.default_rng(self.words(4))


def secure() -> Randomness:
    """Start a stream keyed by the operating system; the only kind a real release may use."""
    return Randomness()


def seeded(seed: int) -> Randomness:
    """Start a repeatable stream from `seed`, for tests and demos; releases say so and no real ledger accepts them."""
    whole("seed", seed, at_least=0)
    return Randomness(hashlib.sha256(b"murmurate seed" + int(seed).to_bytes(8, "big")).digest())
