"""Add discrete Laplace and Gaussian noise to integers: the exact samplers of Canonne, Kamath and Steinke (2020).

Every probability is a fraction of whole numbers, and every decision compares random digits with the digits of such a fraction:
no floating-point number is rounded on the way, and the scale is the very number that was given (a Laplace scale below 2^-62
is rounded up). Random words come from one stream, secure or, for tests and demos, seeded.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import positive
from murmurate.core.space import Integers
from murmurate.errors import ParameterError
from murmurate.noise.stream import Randomness

MAX_SCALE = 2.0**45
"""Largest noise scale, in lattice steps. Values plus noise of this scale still fit 64 bits."""

SMOOTH_SCALE = 20.0
"""Smallest standard deviation of discrete Gaussian noise, in lattice steps, for which accountants of the continuous Gaussian
are used: from here on its delta is at most 0.4 % larger (see `core.accounting.LATTICE_MARGIN`)."""

AT_ONCE = 20_000
"""Numbers proposed at a time, to bound memory. Set by hand."""
_WORDS_AT_ONCE = 1 << 16
"""Random words drawn at a time (512 KiB). Set by hand."""
_RESERVE = 4096
"""Words kept for one draw, which needs more only with a probability below 2^-1000."""
_DIGITS = 64
"""Binary digits of a probability that compiled code compares with a random word; where all agree, Python compares the rest."""


def laplace_integers(values: Integers, *, scale: float, rng: Randomness) -> Integers:
    """Add independent noise of P(z) proportional to exp(-|z|/scale).

    Guarantee: with L1 sensitivity s the result is (s/scale)-differentially private.

    >>> from murmurate.noise.stream import seeded
    >>> laplace_integers(np.zeros(3, dtype=np.int64), scale=2.0, rng=seeded(1)).dtype
    dtype('int64')
    """
    values = checked(values, scale)
    return values + _laplace_numbers(values.size, *_ratio(scale), rng)


def gaussian_integers(values: Integers, *, scale: float, rng: Randomness) -> Integers:
    """Add independent noise of P(z) proportional to exp(-z^2/(2 scale^2)).

    Guarantee: with L2 sensitivity s the result is (s/scale)^2/2-zCDP; accountants take scale/s as noise multiplier, so a
    scale under `SMOOTH_SCALE` steps, where the discrete distribution still differs from the continuous one, is refused.
    """
    if scale < SMOOTH_SCALE:
        raise ParameterError(
            f"Gaussian noise needs a deviation of at least {SMOOTH_SCALE:g} lattice steps; got {scale:g}. "
            "Use finer fixed point, or a smaller epsilon."
        )
    return discrete_gaussian(values, scale=scale, rng=rng)


def discrete_gaussian(values: Integers, *, scale: float, rng: Randomness) -> Integers:
    """Add noise as `gaussian_integers` does, at any scale: (s/scale)^2/2-zCDP, and no continuous Gaussian for accountants."""
    values = checked(values, scale)
    noise = np.empty(values.size, dtype=np.int64)
    done = 0
    while done < noise.size:
        proposed = _laplace_numbers(min(AT_ONCE, int(1.4 * (noise.size - done)) + 16), math.floor(scale) + 1, 1, rng)
        kept = proposed[_accepted(np.abs(proposed), scale, rng)][: noise.size - done]
        noise[done : done + kept.size] = kept
        done += kept.size
    return values + noise


def checked(values: Integers, scale: float) -> Integers:
    """Return a vector of integers to which noise of this scale can be added; refuse anything else."""
    positive("scale", scale, at_most=MAX_SCALE)
    array = np.ascontiguousarray(values)
    if array.dtype.kind not in "iu" or array.ndim != 1:
        raise ParameterError(f"noise is added to a vector of integers; got {array.dtype} with {array.ndim} dimensions.")
    if array.size and max(abs(int(array.max())), abs(int(array.min()))) >= 2**62:
        raise ParameterError("values must stay below 2^62 so that noise cannot overflow them.")
    return array.astype(np.int64, copy=False)


def _ratio(scale: float) -> tuple[int, int]:
    """Return the scale as an exact fraction of 64-bit integers; a scale too small for one is rounded up to the next 2^-62."""
    numerator, denominator = float(scale).as_integer_ratio()
    return (numerator, denominator) if denominator <= 2**62 else (math.ceil(scale * 2**62), 2**62)


def _laplace_numbers(n: int, numerator: int, denominator: int, rng: Randomness) -> Integers:
    """Draw `n` numbers with scale numerator/denominator."""
    return _filled(n, rng, 20, lambda words, out, done: _laplace(words, out, done, numerator, denominator))


def _accepted(sizes: Integers, scale: float, rng: Randomness, digits: int = _DIGITS) -> NDArray[np.bool_]:
    """Decide which Laplace numbers of these sizes, drawn with the scale t = floor(scale) + 1, are kept as Gaussian ones.

    A size z is kept with probability exp(-(z - scale^2/t)^2 / (2 scale^2)): the exponent is a fraction of whole numbers. Its
    whole part is decided by coins of exp(-1), the rest by its binary digits.
    """
    numerator, denominator = float(scale).as_integer_ratio()
    top, below, t = numerator**2, denominator**2, math.floor(scale) + 1
    bottom = 2 * top * below * t * t
    distinct, which = np.unique(sizes, return_inverse=True)
    exponents = [divmod((size * t * below - top) ** 2, bottom) for size in distinct.tolist()]
    whole = np.array([part for part, _ in exponents], dtype=np.int64)
    first = np.array([(rest << digits) // bottom for _, rest in exponents], dtype=np.uint64)
    coins = _filled(sizes.size, rng, 8, lambda words, out, done: _coins(words, out, done, whole[which], first[which], digits))
    for at in np.flatnonzero(coins < 0).tolist():
        coins[at] = _finished(-int(coins[at]), exponents[int(which[at])][1], bottom, digits, rng)
    return coins == 1


def _finished(turn: int, rest: int, bottom: int, digits: int, rng: Randomness) -> bool:
    """Go on with a coin of exp(-rest/bottom) whose word agreed with all `digits` of rest/bottom in this turn."""
    smaller = _is_below((rest << digits) % bottom, bottom, rng)
    while smaller and (turn == 1 or rng.integers(0, turn, 1)[0] == 0):
        turn += 1
        smaller = _is_below(rest, bottom, rng)
    return turn % 2 == 1


def _is_below(rest: int, bottom: int, rng: Randomness) -> bool:
    """Return True with probability rest/bottom: draw digits of a uniform number until one differs."""
    while True:
        digit, rest = divmod(rest << 64, bottom)
        word = int(rng.words(1)[0])
        if word != digit:
            return word < digit


def _filled(n: int, rng: Randomness, words_each: int, kernel):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    out = np.empty(n, dtype=np.int64)
    done = 0
    while done < n:
        words = rng.words(min(_WORDS_AT_ONCE, (n - done) * words_each) + _RESERVE)
        done = kernel(words, out, done)
    return out


@njit(cache=True, nogil=True)
def _next(words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    word = words[cursor[0] % words.size]
    cursor[0] += 1
    return word


@njit(cache=True, nogil=True)
def _below(bound, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Draw uniformly from 0 .. bound - 1, without modulo bias."""
    size = np.uint64(bound)
    unfair = (~size + np.uint64(1)) % size  # 2^64 mod size
    word = _next(words, cursor)
    while word < unfair:
        word = _next(words, cursor)
    return np.int64(word % size)


@njit(cache=True, nogil=True)
def _flip(numerator, denominator, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Return True with probability exp(-numerator/denominator), for a fraction within [0, 1]."""
    k = 1
    while _below(denominator, words, cursor) < numerator and (k == 1 or _below(k, words, cursor) == 0):
        k += 1
    return k % 2 == 1


@njit(cache=True, nogil=True)
def _one_laplace(numerator, denominator, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    """Draw one number with scale numerator/denominator."""
    while True:
        part = _below(numerator, words, cursor)
        if not _flip(part, numerator, words, cursor):
            continue
        turns = 0
        while _flip(1, 1, words, cursor):
            turns += 1
        size = (part + numerator * turns) // denominator
        negative = _next(words, cursor) & np.uint64(1)
        if negative and size == 0:
            continue  # zero would come twice
        return -size if negative else size


@njit(cache=True, nogil=True)
def _laplace(words, out, done, numerator, denominator):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    cursor = np.zeros(1, dtype=np.int64)
    while done < out.size and cursor[0] <= words.size - _RESERVE:
        out[done] = _one_laplace(numerator, denominator, words, cursor)
        done += 1
    return done


@njit(cache=True, nogil=True)
def _coins(words, out, done, whole, first, digits):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202, PLR0917
    """Toss coins of exp(-(whole + fraction)); 1 or 0, or minus the turn in which a word agreed with all first digits."""
    cursor = np.zeros(1, dtype=np.int64)
    while done < out.size and cursor[0] <= words.size - _RESERVE:
        out[done] = _one_coin(whole[done], first[done], digits, words, cursor)
        done += 1
    return done


@njit(cache=True, nogil=True)
def _one_coin(whole, first, digits, words, cursor):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
    for _ in range(whole):
        if not _flip(1, 1, words, cursor):
            return 0
    turn = 1
    while True:
        word = _next(words, cursor) >> np.uint64(64 - digits)
        if word == first:
            return -turn
        if word > first or (turn > 1 and _below(turn, words, cursor) != 0):
            return turn % 2
        turn += 1
