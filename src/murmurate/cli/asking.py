"""Ask the custodian before the charge: about what was found in the data, and about promises that hardly protect anybody."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from murmurate.cli.show import asking
from murmurate.errors import InputError, ParameterError

if TYPE_CHECKING:
    from murmurate.custody.looking import Finding
    from murmurate.releases.folder import Release

Yes = Annotated[bool, typer.Option("--yes", help="Continue although checks before the charge found problems in the data.")]
Confirm = Annotated[
    str | None, typer.Option("--confirm", help="Words that confirm a weak promise; the command says which. Recorded.")
]
EMPTY = (
    "*** THIS RELEASE IS EMPTY OR NEARLY EMPTY. The budget is spent. Look at it before you publish it; next time, more data, a "
    "larger epsilon, coarser cells or a box around the data will help. ***"
)
"""What is said of a release with nothing or hardly anything in it."""
NEARLY_EMPTY = 10
"""Released rows below which a release from over ten times as many points is called nearly empty. Set by hand."""


@dataclass(frozen=True)
class Asked:
    """Answers given on the command line before anything was asked."""

    yes: bool = False
    confirm: str | None = None

    def about_findings(self, found: Sequence[Finding]) -> None:
        """Show what was found before the charge, and go on only where somebody says so."""
        from murmurate.custody.looking import told

        if not found:
            return
        if not self.yes and not sys.stdin.isatty():
            raise InputError(told(found), "Fix this, or add --yes to continue as it is. Nothing was charged.")
        typer.echo(f"Found before the charge (private, never published):\n{told(found)}", err=True)
        with asking():
            agreed = self.yes or typer.confirm("Continue and spend the budget nevertheless?")
        if not agreed:
            raise typer.Exit(2)

    def about_weakness(self, weakness: str | None) -> str | None:
        """Ask for a confirmation in words where a promise hardly protects anybody; return what was confirmed."""
        from murmurate.custody.looking import WEAK_WORDS

        if weakness is None:
            return None
        if self.confirm is None and not sys.stdin.isatty():
            raise ParameterError(
                f"this promise hardly protects anybody: {weakness}. Take a mechanism that makes synthetic data (flock), a "
                f"smaller epsilon, or confirm it with --confirm '{WEAK_WORDS}', which is recorded."
            )
        typer.echo(f"This promise hardly protects anybody: {weakness}.", err=True)
        with asking():
            said = self.confirm if self.confirm is not None else typer.prompt(f"Type '{WEAK_WORDS}' to continue", err=True)
        if said.strip().strip("'\"").casefold() != WEAK_WORDS:
            raise ParameterError(f"not confirmed: the words are '{WEAK_WORDS}'; got {said!r}.")
        return weakness


def is_nearly_empty(made: Release, n_points: int) -> bool:
    """Return whether a release of trips or links holds nothing, or hardly anything of what was read."""
    import pyarrow.parquet as pq

    from murmurate.core.parquet import table_files

    tables = [path for path in (made.folder / "data.parquet", made.folder / "links.parquet") if path.exists()]
    rows = sum(pq.read_metadata(file).num_rows for path in tables for file in table_files(path))
    return bool(tables) and rows < min(NEARLY_EMPTY, n_points / 10)
