"""The tour: every mechanism on the built-in city, judged side by side. What `murmurate demo` runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from murmurate import door, noise, progress
from murmurate.attack import attack
from murmurate.core.ledger import Ledger
from murmurate.core.parameters import whole
from murmurate.core.release import Release, new_folder
from murmurate.demo import City, city
from murmurate.evaluate import Evaluation, evaluate
from murmurate.mechanisms import NAMES, example, mechanism_class
from murmurate.report.compare import Entry, write_comparison
from murmurate.report.ground import BaseMap
from murmurate.report.page import write_attack_report, write_report
from murmurate.review import review, write_json

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
)
"""A demo's worth of them: every family, nothing slow."""

REPORT = "report.html"
STEPS = 3
"""Of each mechanism: release, judge, write its pages."""


@dataclass(frozen=True)
class Tour:
    """Where everything is, and what was found."""

    folder: Path
    entries: tuple[Entry, ...]

    @property
    def report(self) -> Path:
        """The page to look at first."""
        return self.folder / REPORT


def tour(
    out: str | Path,
    *,
    people: int = 150,
    days: int = 7,
    only: Sequence[str] | None = None,
    seed: int = 1,
    cell_m: float = 500.0,
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
    failed: dict[str, Exception] = {}
    entries: list[Entry] = []
    with new_folder(folder) as temporary, Ledger.in_memory() as ledger:
        progress.report("building the city", 0, 1)
        town = city(people=people, days=days, seed=seed)
        progress.report("building the city", 1, 1)
        guide = _Guide(town, temporary, ledger, seed, cell_m)
        for name in names:
            try:
                entries.append(guide.show(name))
            except Exception as error:  # noqa: BLE001  told at the end, all together, with a failure code
                error.add_note(f"while the tour showed {name}")
                failed[name] = error
        if entries:
            write_comparison(temporary / REPORT, entries, town.trips, grid=town.grid(cell_m), base=guide.base, demo=True)
            write_json(temporary / "scores.json", {entry.name: _json(entry) for entry in entries})
    if failed:
        told = "; ".join(f"{name}: {type(error).__name__}: {error}" for name, error in failed.items())
        raise ExceptionGroup(f"{len(failed)} of {len(names)} mechanisms failed ({told})", list(failed.values()))
    settled = (replace(entry.release, folder=folder / "releases" / entry.name) for entry in entries)
    return Tour(folder, tuple(replace(entry, release=made) for entry, made in zip(entries, settled, strict=True)))


class _Guide:
    """What all stops of a tour share."""

    def __init__(self, town: City, folder: Path, ledger: Ledger, seed: int, cell_m: float) -> None:
        self.town, self.folder, self.ledger, self.seed, self.cell_m = town, folder, ledger, seed, cell_m
        self.base = BaseMap(town.network, town.outlines())
        (folder / "reports").mkdir()

    def show(self, name: str) -> Entry:
        """Release, judge, write pages."""
        progress.report(name, 0, STEPS)
        made = self._release(name)
        progress.report(name, 1, STEPS)
        seen = review(made.folder, self.town.trips, ledger=self.ledger)
        if made.manifest.kind == "trips":
            evaluation = evaluate(
                seen.released,
                seen.original,
                grid=self.town.grid(self.cell_m),
                pairing=seen.pairing,
                metrics=METRICS,
                workers=1,
                seed=self.seed,
            )
            attacked = attack(seen.released, seen.original, pairing=seen.pairing, seed=self.seed)
        else:
            evaluation, attacked = Evaluation((), {}), None
        progress.report(name, 2, STEPS)
        pages = self.folder / "reports"
        write_report(pages / f"{name}.html", seen, evaluation, base=self.base)
        write_report(pages / f"{name}-public.html", seen, evaluation, base=self.base, public=True)
        if attacked is not None:
            write_attack_report(pages / f"{name}-attacks.html", seen, attacked)
        progress.report(name, STEPS, STEPS)
        return Entry(
            made,
            evaluation if made.manifest.kind == "trips" else None,
            attacked,
            page=f"reports/{name}.html",
            attack_page=f"reports/{name}-attacks.html" if attacked is not None else "",
        )

    def _release(self, name: str) -> Release:
        return door.release(
            example(name, self.town.spaces(self.cell_m)),
            self.town.trips,
            ledger=self.ledger,
            out=self.folder / "releases" / name,
            accept_no_guarantee=True,
            rng=noise.seeded(self.seed),
        )


def _json(entry: Entry) -> dict[str, Any]:
    return {
        "guarantee": entry.release.manifest.to_json()["guarantee"],
        "scores": entry.evaluation.to_json()["scores"] if entry.evaluation else [],
        "attacks": entry.attacked.to_json()["scores"] if entry.attacked else [],
    }
