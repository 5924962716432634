"""Damage inputs, models, recipes and manifests, and see that each is read or refused in one message.

A case ends well where it works or raises a `MurmurateError`. Any other exception, a killed process, more than ten seconds of
processor time or more than 1 GB of memory is a failure. Many cases run in one child process, so that a crash is seen and
counted. `scripts/fuzz` runs as many as asked; `tests/test_fuzz.py` runs a few of each.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import multiprocessing
import os
import resource
import shutil
import signal
import sys
import traceback
import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from fuzz_seeds import Case, seeds
from mutations import MOST_INPUT_BYTES, scratch

LONGEST_S = 10
MOST_BYTES = 10**9
MOST_ADDRESSES = 12 * 10**9
"""Address space of a child, so that a file that asks for everything ends the child and not the machine."""
BATCH = 1_000
FORMATS = ("input", "road", "zones", "stops", "prior")
"""First words of the cases that are formats of their own."""
MODELS, INPUTS, OTHERS = 2_000, 10_000, 1_000
"""Damaged copies of each saved model, of each format, and of recipes, studies, manifests and second readers of a format."""


def most_memory() -> int:
    """The most bytes that this process has held since `forget_memory`.

    On Linux, `ru_maxrss` of a spawned process starts at what its parent held: it outlives exec, `VmHWM` does not.
    """
    status = Path("/proc/self/status")
    if status.is_file():
        for line in status.read_text().splitlines():
            if line.startswith("VmHWM:"):
                return int(line.split()[1]) * 1024
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return most if sys.platform == "darwin" else most * 1024


def forget_memory() -> None:
    """Let the highest mark of memory start at what is held now."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return


def _child(case: Case, numbers: list[int], pipe: object) -> None:
    from murmurate.errors import MurmurateError

    with scratch() as folder:  # imports and compiled kernels are loaded before anything is timed
        case.act(case.seed, Path(folder))
    warnings.simplefilter("error")
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    resource.setrlimit(resource.RLIMIT_AS, (MOST_ADDRESSES, MOST_ADDRESSES))
    for number in numbers:
        with scratch() as folder:
            work = Path(folder)
            copy = work / "in"
            shutil.copytree(case.seed, copy)
            try:
                case.mutate(copy, np.random.default_rng([number, 77]))
            except Exception as error:  # noqa: BLE001 - shown: a fault of the tests themselves
                pipe.send(("not damaged", number, "".join(traceback.format_exception(error))[-1500:]))
                continue
            if sum(file.stat().st_size for file in copy.rglob("*") if file.is_file()) > MOST_INPUT_BYTES:
                pipe.send(("accepted", number, "too large to count"))
                continue
            pipe.send(("start", number, ""))
            forget_memory()
            signal.setitimer(
                signal.ITIMER_PROF, LONGEST_S
            )  # of processor time, which other work on the machine does not use up
            signal.alarm(12 * LONGEST_S)
            try:
                case.act(copy, work)
                found, words = "accepted", ""
            except MurmurateError:
                found, words = "refused", ""
            except BaseException as error:  # noqa: BLE001 - this is what is counted
                found, words = "raw exception", "".join(traceback.format_exception(error))[-2500:]
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.alarm(0)
            if most_memory() > MOST_BYTES:
                pipe.send(("memory", number, f"{most_memory():,} bytes"))
                os._exit(0)
            pipe.send((found, number, words))
    os._exit(0)


def run(case: Case, n: int, *, first: int = 0, batch: int = BATCH) -> tuple[Counter, list[tuple[str, int, str]]]:
    """Run `n` damaged copies of a case in child processes; return counts by outcome, and every failure with its number."""
    context = multiprocessing.get_context("spawn")  # threads of polars do not survive a fork
    counts: Counter = Counter()
    failures = []
    todo = list(range(first, first + n))
    while todo:
        ours, theirs = context.Pipe(duplex=False)
        child = context.Process(target=_child, args=(case, todo[:batch], theirs))
        child.start()
        theirs.close()
        open_: int | None = None
        answered = 0
        try:
            while True:
                found, number, words = ours.recv()
                if found == "start":
                    open_ = number
                    continue
                todo.remove(number)
                open_ = None
                answered += 1
                counts[found] += 1
                if found not in ("accepted", "refused"):
                    failures.append((found, number, words))
        except EOFError:
            pass
        child.join()
        if open_ is not None:  # it died in the middle of a case
            late = child.exitcode in (-signal.SIGALRM, -signal.SIGPROF)
            how = "longer than 10 s" if late else f"killed by signal {-(child.exitcode or 0)}"
            counts[how] += 1
            failures.append((how, open_, ""))
            todo.remove(open_)
        elif child.exitcode or not answered:
            raise RuntimeError(f"the harness itself failed with {child.exitcode} on {case.name}")
    return counts, failures


def main() -> int:
    """Run as many damaged copies of each kind as asked, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--models", type=int, default=MODELS, help="of each saved model")
    parser.add_argument("--inputs", type=int, default=INPUTS, help="of each format that is read")
    parser.add_argument(
        "--others", type=int, default=OTHERS, help="of recipes, studies, manifests and of second readers of a format"
    )
    parser.add_argument("--only", default="", help="kinds whose name begins with one of these words, separated by commas")
    parser.add_argument("--first", type=int, default=0, help="number of the first copy")
    parser.add_argument("--log", type=Path, help="file of finished batches; a run that was stopped goes on after them")
    parser.add_argument("--table", action="store_true", help="only show what --log holds")
    chosen = parser.parse_args()
    os.environ["POLARS_MAX_THREADS"] = "1"  # of children: threads that wait for tiny tables cost more than they give
    lines = _finished(chosen.log)
    if not chosen.table:
        done = {(line["code"], line["name"], line["first"], line["n"]) for line in lines}
        code = source_hash()
        with scratch() as folder:
            chosen_cases = {
                name: case for name, case in seeds(Path(folder)).items() if name.startswith(tuple(chosen.only.split(",")))
            }
            for name, first, n in _batches(chosen_cases, chosen):
                if (code, name, first, n) in done:
                    continue
                counts, failed = run(chosen_cases[name], n, first=first)
                line = {"code": code, "name": name, "first": first, "n": n, "counts": counts, "failures": failed}
                lines.append(line)
                if chosen.log:
                    with chosen.log.open("a") as log:
                        log.write(json.dumps(line) + "\n")
    return show(lines)


def _batches(cases: dict[str, Case], chosen: argparse.Namespace) -> Iterator[tuple[str, int, int]]:
    """Yield name, first number and size: the first thousand of each kind before the second of any."""
    wanted = {}
    for name in cases:
        kind = name.partition(" ")[0]
        wanted[name] = chosen.inputs if kind in FORMATS else chosen.models if kind == "model" else chosen.others
    for start in range(0, max(wanted.values(), default=0), BATCH):
        for name, n in wanted.items():
            if start < n:
                yield name, chosen.first + start, min(BATCH, n - start)


def show(lines: list[dict]) -> int:
    """Print a table of finished batches; return 1 where something failed."""
    print("| kind | damaged copies | refused | read | failures |\n|---|---|---|---|---|")
    total: Counter = Counter()
    for name in dict.fromkeys(line["name"] for line in lines):
        mine = [line for line in lines if line["name"] == name]
        counts = sum((Counter(line["counts"]) for line in mine), Counter())
        failed = [failure for line in mine for failure in line["failures"]]
        n = sum(line["n"] for line in mine)
        total.update(n=n, failed=len(failed))
        print(f"| {name} | {n:,} | {counts['refused']:,} | {counts['accepted']:,} | {len(failed):,} |")
        for found, number, words in failed[:5]:
            print(f"  {name} {number}: {found}\n{words}", file=sys.stderr)
    print(f"{total['n']:,} damaged copies, {total['failed']:,} failures; source {', '.join({line['code'] for line in lines})}")
    return int(total["failed"] > 0)


def source_hash() -> str:
    """Hash what is tested and how: batches of other code are not counted again."""
    import murmurate

    digest = hashlib.sha256()
    files = [*Path(murmurate.__file__).parent.rglob("*.py"), Path(__file__), *Path(__file__).parent.glob("*mutations.py")]
    for file in sorted([*files, Path(__file__).with_name("fuzz_seeds.py")]):
        digest.update(file.read_bytes())
    return digest.hexdigest()[:12]


def _finished(log: Path | None) -> list[dict]:
    return [json.loads(line) for line in log.read_text().splitlines()] if log and log.is_file() else []


if __name__ == "__main__":
    sys.exit(main())
