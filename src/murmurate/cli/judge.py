"""Judging releases: nothing here leaves the custodian's side."""

from __future__ import annotations

import typer


def add_to(app: typer.Typer) -> None:
    """Put these commands on the command line."""
