"""Errors that libraries raise on files of strangers, turned into one message that names the file and no value of it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import polars as pl

from murmurate.errors import InputError, MurmurateError

FOREIGN = (Exception, pl.exceptions.PanicException)
"""What libraries raise on damaged or wrongly named files: about anything. Polars' panic is no `Exception`."""
_VALUES = re.compile(
    r"""(?:(?<!\w)|(?<=\bb))'.*?(?:'(?!\w)|$)|(["`]).*?(?:\1|$)|\[.*\]|(?<!line )(?<!column )(?<!row )(?<!char )\S*\d\S*"""
)
"""Parts of an error text that may hold a value of the file: quoted words (also without an end; the apostrophe of
"can't" begins none), lists, and numbers that count no lines."""
MAX_LETTERS = 160
"""Letters of a library's error that are shown."""


def shown(error: BaseException) -> str:
    """Return a library's error in one line, without the values it quotes: error texts end up in logs.

    >>> shown(ValueError("could not convert 'anna' at 60.17 in line 3"))
    'ValueError: could not convert ... at ... in line 3'
    """
    words = (str(error).strip().splitlines() or [""])[0]
    return f"{type(error).__name__}: {_VALUES.sub('...', words)[:MAX_LETTERS]}"


@contextmanager
def damaged(file: Path | str, what: str, remedy: str | None = None) -> Iterator[None]:
    """Turn whatever a library raises on a file into one message that says what was expected."""
    try:
        yield
    except MurmurateError:
        raise
    except FOREIGN as error:
        reason = f"{file}: cannot be read as {what} ({shown(error)}); it may be cut off or of another format."
        raise InputError(reason, remedy) from None
