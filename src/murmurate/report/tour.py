"""Run every mechanism on the built-in city and compare them: what `murmurate demo` does."""

from __future__ import annotations

import traceback
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from murmurate import engine, noise
from murmurate.core import progress
from murmurate.core.ledger import Ledger
from murmurate.core.parameters import whole
from murmurate.custody import door
from murmurate.demo import City, city
from murmurate.judging.review import review, write_json
from murmurate.judging.scoring import Evaluation
from murmurate.mechanisms import NAMES, example, mechanism_class
from murmurate.releases.folder import new_folder
from murmurate.report.compare import Entry, write_comparison
from murmurate.report.ground import BaseMap
from murmurate.report.page import write_attack_report, write_report

METRICS = (
    "length",
    "duration",
    "speed",
    "point_displacement",
    "trip_size",
    "hausdorff_nearest",
    "od_emd",
    "od_emd_whole",
    "od_matrix",
    "visits",
    "range_queries",
    "top_places",
    "hot_spots",
    "gyration",
    "time_of_day",
    "patterns",
    "day_visits",
    "day_mobility",
)
"""The metrics of trips that a demo takes: every family, nothing slow. Of other kinds of release it takes all."""

SLOW_ATTACKS = ("count_membership",)
"""Attacks that a demo leaves out, since each releases a dozen times again; docs/audits.md has their results on this city."""
REPORT = "report.html"
"""The page to look at first."""


@dataclass(frozen=True)
class Tour:
    """Hold where everything is, and what was found."""

    folder: Path
    entries: tuple[Entry, ...]

    @property
    def report(self) -> Path:
        """The page to look at first."""
        return self.folder / REPORT


class MechanismFailed(RuntimeError):
    """Raised for a mechanism that could not be shown; the note holds where it failed."""


def tour(
    out: str | Path,
    *,
    people: int = 150,
    days: int = 7,
    only: Sequence[str] | None = None,
    seed: int = 1,
    cell_m: float = 500.0,
    workers: int = 1,
) -> Tour:
    """Build the city, run the mechanisms with their demo settings, judge them, write releases and pages under `out`.

    Everything is seeded, so that a tour repeats; the city is public, so nothing is at stake. A mechanism that fails does
    not stop the others, but the tour then ends in an `ExceptionGroup` that names it.
    """
    whole("seed", seed, at_least=0)
    names = list(dict.fromkeys(only or NAMES))
    for name in names:
        mechanism_class(name)  # an unknown name is refused before any work
    folder = Path(out)
    failed: dict[str, MechanismFailed] = {}
    entries: list[Entry] = []
    with new_folder(folder) as temporary:
        progress.report("building the city", 0, 1)
        town = city(people=people, days=days, seed=seed)
        progress.report("building the city", 1, 1)
        (temporary / "reports").mkdir()
        stop = partial(_stop, town, temporary, seed, cell_m)
        found = engine.map(stop, names, workers=min(workers, len(names)), describe="mechanisms", total=len(names))
        for name, shown in zip(names, found, strict=True):
            progress.report(name, 1, 1)
            if isinstance(shown, Entry):
                entries.append(shown)
            else:
                failed[name] = MechanismFailed(f"{name}: {shown[0]}")
                failed[name].add_note(shown[1])
        if entries:
            write_comparison(temporary / REPORT, entries, town.trips, grid=town.grid(cell_m), base=_base(town), demo=True)
            write_json(temporary / "scores.json", {entry.name: _json(entry) for entry in entries})
    if failed:
        reasons = "; ".join(str(error) for error in failed.values())
        raise ExceptionGroup(f"{len(failed)} of {len(names)} mechanisms failed: {reasons}", list(failed.values()))
    settled = (replace(entry.release, folder=folder / "releases" / entry.name) for entry in entries)
    return Tour(folder, tuple(replace(entry, release=made) for entry, made in zip(entries, settled, strict=True)))


def _stop(town: City, folder: Path, seed: int, cell_m: float, name: str) -> Entry | tuple[str, str]:
    """Show one mechanism; or return what went wrong and where, as text: not every exception travels between processes."""
    try:
        return _show(town, folder, seed, cell_m, name)
    except Exception as error:  # noqa: BLE001  raised at the end, all together, with a failure code
        return f"{type(error).__name__}: {error}", traceback.format_exc()


def _show(town: City, folder: Path, seed: int, cell_m: float, name: str) -> Entry:
    """Release, judge, write pages."""
    with Ledger.in_memory() as ledger:
        made = door.release(
            example(name, town.spaces(cell_m)),
            town.trips,
            ledger=ledger,
            out=folder / "releases" / name,
            accept_no_guarantee=True,
            rng=noise.seeded(seed),
        )
        seen = review(made, town.trips, ledger=ledger)
    kind = made.kind
    evaluation, attacked = Evaluation((), {}), None
    if kind.scores:
        chosen = [metric for metric in METRICS if metric in kind.scores] or None
        evaluation = seen.take_metrics(grid=town.grid(cell_m), metrics=chosen, workers=1, seed=seed)
    if kind.attacks:
        attacked = seen.run_attacks(seed=seed, attacks=[one for one in kind.attacks if one not in SLOW_ATTACKS])
    judged = seen.verdict(evaluation, attacked=attacked, seed=seed) if evaluation.scores else None
    pages, base = folder / "reports", _base(town)
    write_report(pages / f"{name}.html", seen, evaluation, verdict=judged, base=base, overview=f"../{REPORT}")
    write_report(pages / f"{name}-public.html", seen, evaluation, base=base, public=True)
    if attacked is not None:
        write_attack_report(pages / f"{name}-attacks.html", seen, attacked)
    return Entry(
        made,
        evaluation if evaluation.scores else None,
        attacked,
        judged,
        page=f"reports/{name}.html",
        attack_page=f"reports/{name}-attacks.html" if attacked is not None else "",
        public_page=f"reports/{name}-public.html",
    )


def _base(town: City) -> BaseMap:
    return BaseMap(town.network, town.outlines())


def _json(entry: Entry) -> dict[str, Any]:
    return {
        "guarantee": entry.release.manifest.to_json()["guarantee"],
        "scores": entry.evaluation.to_json()["scores"] if entry.evaluation else [],
        "attacks": entry.attacked.to_json()["scores"] if entry.attacked else [],
        "verdict": entry.verdict.to_json() if entry.verdict else None,
    }
