"""Compare the names of people: spellings that differ by accident are one person."""

from __future__ import annotations

import re
import unicodedata

import polars as pl

_ODD = r"[^!-~]|^0[0-9]|\.0+$"
"""What may hide that two names are one: anything but visible ASCII, leading zeros, and the `.0` of a number read as a float."""

_IS_ODD = re.compile(_ODD).search
"""Find what may hide that two names are one; a name without it is spelled as it is."""


def one_spelling(name: str) -> str:
    r"""Return the spelling under which a person is known: no spaces around, invisible characters, leading zeros or `.0`.

    >>> [one_spelling(name) for name in (" 7", "007", "7.0", "7\u200b", "cab 7 ", "0")]
    ['7', '7', '7', '7', 'cab 7', '0']
    """
    if not _IS_ODD(name):
        return name
    folded = unicodedata.normalize("NFKC", name)
    visible = "".join(" " if letter.isspace() else letter for letter in folded if letter.isspace() or _is_visible(letter))
    trimmed = " ".join(visible.split())
    number = re.fullmatch(r"0*([0-9]+)(?:\.0+)?", trimmed)
    return number[1] if number else trimmed


def one_spelling_of(names: pl.Series) -> pl.Series:
    """Return a column of names, each as `one_spelling` writes it."""
    if not names.str.contains(_ODD).any():
        return names
    known = names.unique()
    return names.replace_strict(known, [one_spelling(name) for name in known], return_dtype=pl.String)


def _is_visible(letter: str) -> bool:
    return unicodedata.category(letter) not in ("Cc", "Cf", "Cs", "Co", "Cn")
