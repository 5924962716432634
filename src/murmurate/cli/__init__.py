"""Run the command line: parse, call, show. `main` is the entry point and owns the exit codes.

0 done; 1 a fault of ours; 2 bad input, parameters or output place; 3 the ledger or the guarantee refused;
4 a release that does not verify; 5 something went wrong after the charge, which stands; 130 interrupted.
"""

from __future__ import annotations

import os
import signal
import sys
import warnings
from collections.abc import Callable
from importlib.metadata import version
from types import FrameType
from typing import Annotated, Any, NoReturn

import typer
from typer.core import TyperGroup

from murmurate.cli import assure, data, demo, dummies, exporting, judge, ledger, making, studio
from murmurate.cli import start as starting


class _Commands(TyperGroup):
    """The commands; one that is interrupted keeps its error, which says what was charged. Typer would end it in silence."""

    def invoke(self, ctx: Any) -> Any:
        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            raise typer.Abort from error


app = typer.Typer(
    name="murmurate",
    cls=_Commands,
    help="Publish mobility data with a privacy guarantee that is stated, charged and checked.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"murmurate {version('murmurate')}")
        raise typer.Exit


@app.callback()
def root(
    show_version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Publish mobility data with a privacy guarantee that is stated, charged and checked."""


SHORT = {
    "start": "Look at a file and write a recipe.",
    "demo": "Run every mechanism on a made-up city.",
    "release": "Charge the ledger and write a release.",
    "fit": "Charge the ledger once and write a model.",
    "sample": "Draw trips from a fitted model; free.",
    "verify": "Check a release and its debit.",
    "export": "Write a release in another format.",
    "list": "List mechanisms, scores and other choices.",
    "evaluate": "Judge a release against its originals.",
    "attack": "Attack a release as an adversary would.",
    "study": "Compare mechanisms over many settings.",
    "audit": "Audit a mechanism on made-up people.",
    "dossier": "Write the sign-off pack of a release.",
    "inspect": "Show what is in a file, and its faults.",
    "demo-data": "Write synthetic public data to try out.",
    "studio": "Make a release in a browser.",
}
"""What the list of commands says of each: short enough not to be cut off."""

COMMANDS: dict[str, Callable[..., None]] = {
    "start": starting.start,
    "demo": demo.demo,
    "release": making.release,
    "fit": making.fit,
    "sample": making.sample,
    "verify": making.verify,
    "export": exporting.export,
    "list": making.list_names,
    "evaluate": judge.evaluate,
    "attack": judge.attack,
    "study": judge.study,
    "audit": assure.audit,
    "dossier": assure.dossier,
    "inspect": data.inspect,
    "demo-data": data.demo_data,
    "studio": studio.studio,
}
"""The commands by the word that users type, in the order of the help."""
for name, command in COMMANDS.items():
    app.command(name, short_help=SHORT[name])(command)
app.add_typer(ledger.app, name="ledger")
app.add_typer(dummies.app, name="dummies")


def main() -> NoReturn:
    """Run the command line; every fault ends in a message and an exit code, never in a traceback."""
    from murmurate.cli.show import fault

    # asking the kernel for huge pages can stall for seconds while it tidies memory; numpy reads this when first imported
    os.environ.setdefault("NUMPY_MADVISE_HUGEPAGE", "0")
    signal.signal(signal.SIGTERM, _stop)
    warnings.showwarning = _as_a_sentence
    try:
        code = app(standalone_mode=False)
        _parameters_too(sys.argv[1:])
    except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  the last line of defence: a person reads a sentence
        code = fault(error)
    sys.stdout.flush()
    sys.exit(code if isinstance(code, int) else 0)


def _parameters_too(words: list[str]) -> None:
    """After the help of `release MECHANISM` or `fit MECHANISM`, list the parameters of that mechanism."""
    if len(words) < 3 or words[0] not in ("release", "fit") or "--help" not in words:
        return
    from murmurate.cli.show import parameter_list
    from murmurate.mechanisms import NAMES

    for name in words[1:]:
        if name in NAMES:
            parameter_list(name)


def _as_a_sentence(message: Warning | str, *_where: Any, **_more: Any) -> None:
    """Show a warning without the file and line of code that raised it."""
    typer.echo(f"Warning: {message}", err=True)


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt
