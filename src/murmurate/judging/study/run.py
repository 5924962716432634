"""Run a study: finished cells are kept, the others go to the engine, and one table comes out."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import polars as pl

import murmurate
from murmurate import engine
from murmurate.core import progress
from murmurate.core.ledger import Ledger
from murmurate.core.views import view
from murmurate.judging.study.cell import Outcome, run_cell
from murmurate.judging.study.datasets import Absent, Dataset, load
from murmurate.judging.study.grid import Cell, expand
from murmurate.judging.study.regression import Regression, regress
from murmurate.judging.study.spec import StudySpec, read_spec
from murmurate.judging.study.table import keep, kept, open_folder, tidy, write_results


@dataclass(frozen=True, eq=False)
class StudyResult:
    """Hold one tidy table and its two-layer regression. Internal: it was computed from private data."""

    spec: StudySpec
    out: Path
    table: pl.DataFrame
    """study, dataset, mechanism, mechanism_name, setting, the settings, repeat, kind, metric, value, ..."""
    regression: Regression
    reused: int = 0
    """Cells that were finished before."""
    skipped: Mapping[str, str] = field(default_factory=dict)
    """Datasets, metrics and attacks that could not be taken, each with its reason."""
    failed: Mapping[str, str] = field(default_factory=dict)
    """Cells that a mechanism or an input refused; they are tried again by the next run."""

    def _repr_html_(self) -> str:
        return str(view("study.html", self))


def study(
    spec: str | Path | Mapping[str, Any] | StudySpec,
    *,
    out: str | Path,
    workers: int | str | engine.Engine = 1,
    ledger: Ledger | None = None,
) -> StudyResult:
    """Run every cell of a study that is not finished yet; nothing is charged and nothing of it is a release.

    `spec` is a TOML file or the same as plain values. `out` keeps finished cells, so a run that was killed goes on where it
    stopped; cells whose file is damaged are run again. `workers` is a number of processes or an engine. A `ledger` logs that
    the study looked at each file.

    >>> import tempfile
    >>> wanted = {"metrics": ["hausdorff"], "datasets": {"tony900": {"skaters": 20}}, "seed": 1,
    ...           "mechanisms": [{"name": "geoind", "sweep": {"epsilon": [1, 2], "radius_m": [50, 100]}}]}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     result = study(wanted, out=folder + "/study")
    >>> result.regression.second.select("metric", "mechanism").row(0)
    ('hausdorff.mean', 'geoind')
    """
    running = engine.engine(workers)
    wanted = read_spec(spec)
    folder = open_folder(Path(out))
    datasets, skipped = _datasets(wanted)
    cells = expand(wanted, datasets)
    done = {cell.key: found for cell in cells if (found := kept(folder, cell)) is not None}
    missing = list({cell.key: cell for cell in cells if cell.key not in done}.values())
    if ledger is not None and missing:
        _log(ledger, wanted, datasets, missing)
    failed: dict[str, str] = {}
    reused, total = len(done), len(done) + len(missing)
    progress.report("study", reused, total)
    for outcome in engine.map(partial(_finish, folder), missing, workers=running if len(missing) > 1 else 1):
        if outcome.failed is None:
            done[outcome.cell.key] = outcome
        else:
            failed[_words(outcome.cell)] = outcome.failed
        progress.report("study", len(done) + len(failed), total)
    # two labels may share one setting, and so one result
    outcomes = [replace(done[cell.key], cell=cell) for cell in cells if cell.key in done]
    for outcome in outcomes:
        for name, reason in outcome.skipped.items():
            skipped[f"{name} ({outcome.cell.dataset.name}, {outcome.cell.label})"] = reason
    table = tidy(outcomes, wanted.name) if outcomes else pl.DataFrame()
    regression = regress(table, wanted.regression)
    about = {
        "study": asdict(wanted),
        "murmurate": murmurate.__version__,
        "cells": len(cells),
        "skipped": skipped,
        "failed": failed,
        "regression": regression.to_json(),
    }
    write_results(Path(out), table, about)
    return StudyResult(wanted, Path(out), table, regression, reused, skipped, failed)


def _finish(folder: Path, cell: Cell) -> Outcome:
    """Run a cell and write it in the process that ran it: a kill costs what is under way, nothing that is finished."""
    outcome = run_cell(cell)
    if outcome.failed is None:
        keep(folder, outcome)
    return outcome


def _datasets(spec: StudySpec) -> tuple[dict[str, Dataset], dict[str, str]]:
    """Return the datasets that are here, and why the others are not."""
    here: dict[str, Dataset] = {}
    skipped: dict[str, str] = {}
    for part in spec.datasets:
        try:
            here[part.name] = load(part, spec.folder)
        except Absent as absent:
            skipped[f"dataset {part.name}"] = str(absent)
    return here, skipped


def _log(ledger: Ledger, spec: StudySpec, datasets: Mapping[str, Dataset], missing: list[Cell]) -> None:
    for part in spec.datasets:
        if part.kind == "file" and part.name in datasets:
            population = ledger.population_of(datasets[part.name].identity, create=True)
            for label in dict.fromkeys(cell.mechanism for cell in missing if cell.dataset == part):
                cells = sum(cell.mechanism == label for cell in missing if cell.dataset == part)
                ledger.log_rehearsal(population, label, {"study": spec.name, "cells": cells})


def _words(cell: Cell) -> str:
    settings = ", ".join(f"{name}={value}" for name, value in cell.parameters.items())
    return f"{cell.label} ({settings}) on {cell.dataset.name}, repeats {cell.first} to {cell.first + cell.repeats - 1}"
