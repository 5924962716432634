"""Print messages, tables and progress in the terminal."""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Lock, Timer
from typing import Any, TypeVar

import typer

from murmurate.core import progress
from murmurate.errors import InputError, MurmurateError, ParameterError, visible

Answer = TypeVar("Answer")

SHOW_AFTER_S = 1.0
"""Seconds before a progress bar appears; shorter work would make it flicker. Set by hand."""
PARAGRAPH_WIDTH = 100
"""Letters of a line of prose. Set by hand."""
OF_A_PLACE = frozenset({
    errno.ENAMETOOLONG, errno.ENOTDIR, errno.EISDIR, errno.ELOOP, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENOSPC,
    errno.EDQUOT,
})  # fmt: skip
"""Errors of the operating system about where a user wants to read or write: no fault of this package."""
CHARGED = 5
"""The exit code of whatever went wrong after the charge."""


def fault(error: BaseException) -> int:
    """Print a fault as a sentence and give its exit code."""
    if isinstance(error, typer.Exit):
        return error.exit_code
    if isinstance(error, typer.Abort | KeyboardInterrupt):
        if not say_charged(error.__cause__ or error):
            typer.echo("Interrupted: no incomplete release was left. A charge that was already made stands.", err=True)
        return 130
    if hasattr(error, "show") and hasattr(error, "exit_code"):  # a usage error, whichever click typer brings
        error.show()
        return int(error.exit_code)
    charged = say_charged(error)
    if isinstance(error, MurmurateError):
        notes = "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))
        typer.echo(visible(f"{_title(error) if not charged else 'What went wrong:'}\n{error}{notes}"), err=True)
        return CHARGED if charged else error.exit_code
    if isinstance(error, OSError) and error.errno in OF_A_PLACE:
        named = isinstance(error.filename, str | bytes)
        # without the folder: this ends up in logs
        name = visible(os.path.basename(os.fsdecode(error.filename).rstrip("/"))) if named else "A file"
        typer.echo(
            f"{'What went wrong' if charged else 'That cannot be done; nothing was spent'}:\n{name}: {error.strerror}.",
            err=True,
        )
        return CHARGED if charged else ParameterError.exit_code
    if os.environ.get("MURMURATE_DEBUG"):
        import traceback

        traceback.print_exception(error)
    # the message of a foreign error may quote a value of the data, and this text ends up in logs
    typer.echo(
        f"This is a fault of Murmurate's own, not of your data: {type(error).__name__} in {_where(error)}.\n"
        "Set MURMURATE_DEBUG=1 to see more, and please report it (without private data).",
        err=True,
    )
    return 1


def say_charged(error: BaseException) -> bool:
    """Say what stays spent after an error, and how to go on under the same charge; return whether anything was charged."""
    release_id = getattr(error, "charged", None)
    if release_id is None:
        return False
    typer.echo(f"The ledger had been charged when this went wrong; the debit of release {release_id} stands.", err=True)
    if getattr(error, "resumable", False):
        typer.echo(f"The same command with --resume {release_id} continues under that charge.", err=True)
    return True


def _where(error: BaseException) -> str:
    """Return module and line of the last frame of our own."""
    place, frame = "the command line", error.__traceback__
    while frame is not None:
        name = str(frame.tb_frame.f_globals.get("__name__", ""))
        place = f"{name}, line {frame.tb_lineno}" if name.startswith("murmurate") else place
        frame = frame.tb_next
    return place


def _title(error: MurmurateError) -> str:
    if isinstance(error, InputError):
        count = len(error.faults)
        return f"The input cannot be used ({count} fault{'s' if count != 1 else ''}); nothing was written, nothing was spent."
    return {2: "That cannot be done; nothing was spent.", 3: "Refused.", 4: "The release does not verify."}.get(
        error.exit_code, "Failed."
    )


def as_json(values: Any) -> None:
    """Print plain values for scripts."""
    typer.echo(json.dumps(values, indent=2, default=str))


def table(columns: Sequence[str], rows: Sequence[Sequence[object]], *, title: str | None = None) -> None:
    """Print a table; as plain aligned lines when nobody looks."""
    if not sys.stdout.isatty():
        aligned([columns, *rows])
        return
    from rich.console import Console
    from rich.table import Table

    drawn = Table(*columns, title=title)
    for row in rows:
        drawn.add_row(*(str(cell) for cell in row))
    Console().print(drawn)


def aligned(rows: Sequence[Sequence[object]]) -> None:
    """Print rows with their columns under each other, two spaces apart."""
    text = [[str(cell) for cell in row] for row in rows]
    widths = [max(len(row[k]) for row in text) for k in range(len(text[0]))] if text else []
    for row in text:
        typer.echo("  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip())


def parameter_list(mechanism: str) -> None:
    """Print the parameters of a mechanism with their defaults, each with its meaning below."""
    import textwrap

    from murmurate.mechanisms.parameters import parameters

    typer.echo(f"Parameters of {mechanism} (--set NAME=VALUE):")
    for parameter in parameters(mechanism):
        typer.echo(f"  {parameter.name}  [{parameter.default}]")
        typer.echo(textwrap.indent("\n".join(textwrap.wrap(parameter.meaning, PARAGRAPH_WIDTH - 6)), "      "))


def paragraph(text: str) -> None:
    """Print a paragraph in lines no longer than a terminal is usually wide."""
    import textwrap

    typer.echo("\n".join(textwrap.wrap(text, PARAGRAPH_WIDTH)))


@contextmanager
def working(what: str = "working") -> Iterator[None]:
    """Show a progress bar for what takes longer than a second; quiet where stderr is not a terminal.

    Where nothing reports how far it has come, a bar without an end says that `what` goes on.
    """
    if not sys.stderr.isatty():
        yield
        return
    bars = _Bars(what)
    _shown.append(bars)
    try:
        with progress.shown_by(bars.report):
            bars.wait_and_show()
            yield
    finally:
        bars.hide()
        _shown.remove(bars)


@contextmanager
def asking() -> Iterator[None]:
    """Take progress bars off the terminal while a person is asked something, who may also give up."""
    for bars in _shown:
        bars.hide()
    if hasattr(signal, "siginterrupt"):  # polars takes control-C over, and would let it wait for the end of the line
        signal.siginterrupt(signal.SIGINT, True)
    try:
        yield
    finally:
        for bars in _shown:
            bars.wait_and_show()


def until_it_fits(ask: Callable[[], str], use: Callable[[str], Answer]) -> Answer:
    """Ask again, saying why, until an answer can be used: a person who mistypes does not begin anew."""
    while True:
        with asking():
            answer = str(ask())
        try:
            return use(answer)
        except MurmurateError as error:
            typer.echo(f"{error}", err=True)


class _Bars:
    """Draw bars on stderr, from `SHOW_AFTER_S` seconds after the work began."""

    def __init__(self, what: str) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

        columns = (TextColumn("{task.description}"), BarColumn(), TextColumn("{task.percentage:>3.0f}%"))
        times = (TimeElapsedColumn(), TimeRemainingColumn())
        self._drawn = Progress(*columns, *times, console=Console(stderr=True), transient=True)
        self._tasks = {what: self._drawn.add_task(what, total=None)}
        self._lock = Lock()
        self._timer: Timer | None = None

    def report(self, what: str, done: float, total: float | None) -> None:
        """Take what a task reports; the terminal shows it with the next picture."""
        with self._lock:
            if what not in self._tasks:
                self._tasks[what] = self._drawn.add_task(what, total=total)
            self._drawn.update(self._tasks[what], completed=done, total=total)

    def wait_and_show(self) -> None:
        """Draw from a second on: shorter work would make a bar flicker."""
        self._timer = Timer(SHOW_AFTER_S, self._drawn.start)
        self._timer.daemon = True
        self._timer.start()

    def hide(self) -> None:
        """Draw no longer, and leave nothing behind."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer.join()
        self._drawn.stop()


_shown: list[_Bars] = []
"""Bars of the commands that run, so that a question can take them off the terminal."""
