"""Every error a user can meet.

    MurmurateError                  exit code 1
    ├── InputError                  2   a file or table is not what was expected; carries all its faults
    ├── ParameterError              2   a parameter that makes no sense, found at construction
    ├── OutputError                 2   the place to write to exists, is read-only or is full
    ├── MissingPart                 2   an optional package is not installed
    ├── LedgerError                 3   the ledger cannot be used
    │   ├── LedgerDamaged               its chain of hashes or its file is broken
    │   ├── LedgerVersion               written by another version of Murmurate
    │   ├── UnknownPopulation           a file nobody has attached to a population
    │   ├── PopulationOverlap           its people largely belong to another population
    │   └── InsufficientBudget          carries `requested` and `remaining`
    ├── EngineError                 1   the machines that share the work failed
    ├── ContractBroken              1   a mechanism that breaks the contract of measured mechanisms
    ├── GuaranteeRefused            3   no guarantee and no explicit acceptance, or a seeded release
    └── VerifyError                 4   a release folder does not hold what its manifest says

Whatever goes wrong after the charge carries the release id in `charged`, and the command line ends in 5 then.
The exit codes are those of the command line. Messages say what was expected, what was found and what to do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


class MurmurateError(Exception):
    """Root of every error raised on purpose."""

    exit_code = 1
    charged: str | None = None
    """The release id, where the ledger had been charged before this went wrong: the debit stands."""
    resumable: bool = False
    """Whether enough is kept beside the ledger to go on under that debit, by `resume`."""

    def __reduce__(self) -> tuple[Any, ...]:
        """Travel from a worker as it is: pickling would call `__init__` with the finished message and end the worker."""
        return _as_raised, (type(self), self.args, self.__dict__)


def _as_raised(kind: type[MurmurateError], args: tuple[Any, ...], values: dict[str, Any]) -> MurmurateError:
    error = kind.__new__(kind, *args)
    error.__dict__.update(values)
    return error


@dataclass(frozen=True)
class Fault:
    """One thing wrong with an input: where it is, and why it is wrong."""

    reason: str
    file: str | None = None
    row: int | None = None
    column: str | None = None

    def __str__(self) -> str:
        place = [part for part in (self.file, _label("row", self.row), _label("column", self.column)) if part]
        return visible(f"{', '.join(place)}: {self.reason}" if place else self.reason)


def visible(text: str) -> str:
    """Return a text whose letters can all be seen: names in files of strangers may hold what commands a terminal."""
    return "".join(letter if letter.isprintable() or letter in "\n\t" else ascii(letter)[1:-1] for letter in text)


class InputError(MurmurateError):
    """An input that cannot be read as traces; `faults` lists everything wrong with it."""

    exit_code = 2
    SHOWN = 20

    def __init__(
        self, faults: Sequence[Fault] | str, remedy: str | None = None, suggested: Mapping[str, str] | None = None
    ) -> None:
        self.suggested = dict(suggested or {})
        """Columns by canonical name that would probably open the file."""
        self.faults: tuple[Fault, ...] = (Fault(faults),) if isinstance(faults, str) else tuple(faults)
        self.remedy = remedy = visible(remedy) if remedy else remedy
        lines = [str(fault) for fault in self.faults[: self.SHOWN]]
        if len(self.faults) > self.SHOWN:
            lines.append(f"... and {len(self.faults) - self.SHOWN:,} more faults")
        if remedy:
            lines.append(f"What to do: {remedy}")
        super().__init__("\n".join(lines))


class ParameterError(MurmurateError, ValueError):
    """A parameter outside what it can mean."""

    exit_code = 2


class OutputError(MurmurateError):
    """The release or report cannot be written where it was asked for."""

    exit_code = 2


class MissingPart(MurmurateError):
    """An optional package is needed; the message names the extra that brings it."""

    exit_code = 2


class EngineError(MurmurateError):
    """The processes that share the work failed; `remedy` says what to change."""

    def __init__(self, message: str, remedy: str) -> None:
        self.remedy = remedy
        super().__init__(f"{message}\nWhat to do: {remedy}")


class ContractBroken(MurmurateError):
    """A mechanism broke a clause of the contract of measured mechanisms; `clause` names it."""

    def __init__(self, clause: str, message: str) -> None:
        self.clause = clause
        super().__init__(f"contract broken ({clause}): {message}")


class LedgerError(MurmurateError):
    """The ledger cannot be used; nothing was spent."""

    exit_code = 3


class LedgerDamaged(LedgerError):
    """The ledger's own checks fail."""


class LedgerVersion(LedgerError):
    """The ledger was written by another version."""


class UnknownPopulation(LedgerError):
    """No population is known for this file, or no population has that name."""


class PopulationOverlap(LedgerError):
    """The people of this file largely belong to another population."""

    def __init__(self, message: str, *, population: str, share: float) -> None:
        self.population = population
        self.share = share
        super().__init__(message)


class InsufficientBudget(LedgerError):
    """The charge would pass the limit; nothing was spent."""

    def __init__(self, message: str, *, requested: object, remaining: object) -> None:
        self.requested = requested
        self.remaining = remaining
        super().__init__(message)


class GuaranteeRefused(MurmurateError):
    """A release whose protection was not accepted: no guarantee, or noise that can be replayed."""

    exit_code = 3


class VerifyError(MurmurateError):
    """A release folder that is not what its manifest says."""

    exit_code = 4


def _label(name: str, value: object) -> str | None:
    return None if value is None else f"{name} {value}"
