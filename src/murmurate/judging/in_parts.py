"""Evaluate a release of trips that is too large for memory against its originals, part by part on an engine. Internal.

Metrics that are computed from sums use all trips. The other metrics, the attacks and the figures use a random sample of whole
trips of each side, and say so.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.foreign import damaged
from murmurate.core.ledger import Ledger
from murmurate.core.parquet import check_parquet
from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.custody.sources import open_parts_again
from murmurate.engine import Engine
from murmurate.engine.shared import give_back_memory
from murmurate.errors import InputError
from murmurate.ingest.stream import worth_streaming
from murmurate.judging.review import Review, checked
from murmurate.judging.scoring import Evaluation, take_metrics
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import Comparison
from murmurate.metrics.summed import SAMPLE_POINTS, SUMMED, Plan, SummedSide, Sums, drawn
from murmurate.releases.folder import DATA, Release, open_release


@dataclass(frozen=True)
class LargeReview(Review):
    """A review whose release and originals are samples of whole trips, beside the sums over all trips."""

    summed: Comparison | None = None

    def take_metrics(self, **options: Any) -> Evaluation:
        """Compute metrics in `SUMMED` on all trips, and the others on the sample."""
        if self.summed is None:
            return super().take_metrics(**options)
        kind, names = self.release.kind, options.pop("metrics", None)
        names = list(kind.scores) if names is None else list(names)
        options.setdefault("grid", self.summed.grid)
        found = take_metrics(kind, self.released, self.original, **options, metrics=[n for n in names if n not in SUMMED])
        whole = take_metrics(
            kind, self.released, self.original, **options, metrics=[n for n in names if n in SUMMED], comparison=self.summed
        )
        note = f"on a sample of {self.released.n_trips:,} of {self.summed.released.n:,} released trips"
        sampled = tuple(replace(score, note=f"{score.note}; {note}" if score.note else note) for score in found.scores)
        order = {name: k for k, name in enumerate(names)}
        scores = sorted([*whole.scores, *sampled], key=lambda score: order[score.name.partition(".")[0]])
        skipped = {**whole.skipped, **found.skipped}
        n = self.summed.original.n, self.summed.released.n
        return Evaluation(tuple(scores), skipped, found.grid, *n, found.places)


def is_large(folder: Path, against: str) -> bool:
    """Return whether a release of trips, or the file it came from, is so large that both are read in parts."""
    released = _files(folder)
    return bool(released) and (worth_streaming(against) or any(worth_streaming(path) for path in released) or len(released) > 1)


def review_in_parts(
    folder: Path,
    against: str,
    running: Engine,
    *,
    ledger: Ledger,
    read: dict[str, Any],
    force: bool = False,
    space: Space | None = None,
) -> LargeReview:
    """Read a release and its originals in parts; keep a sample of each, and the sums over all trips."""
    made = open_release(folder, read_space=True, space=space)
    internal = Internal(ledger, made.manifest.model_of or made.manifest.release_id)
    running.start("murmurate.metrics.summed", work_in=ledger.work_folder)
    with open_parts_again(
        against, made.manifest, internal, running, read=read, force=force, work_dir=ledger.work_folder
    ) as parts:
        note = checked(made, parts, ledger, force)
        return _reviewed(made, parts, note, running)


def _reviewed(made: Release, parts: Any, note: str, running: Engine) -> LargeReview:
    sources = list(parts.sources()), _released_parts(made)
    points = parts.n_points, sum(part.n_points for part in sources[1])
    samples = [_sample(running, of, min(1.0, SAMPLE_POINTS / max(n, 1))) for of, n in zip(sources, points, strict=True)]
    give_back_memory()  # that of the parts from which the samples were drawn
    plan = Plan.of(compare(samples[1], samples[0]))
    original, released = (_summed_side(running, sample, plan, of) for sample, of in zip(samples, sources, strict=True))
    n = min(sample.n_trips for sample in samples)
    said = (
        "Both sides are large. Scores of counts, lengths, durations and speeds use all trips; where they are estimated, they "
        "state their error. Other scores, attacks and figures use "
        f"a random sample of {samples[0].n_trips:,} of {original.n:,} original and {samples[1].n_trips:,} of {released.n:,} "
        f"released trips: a share in this sample has a standard error of at most {0.5 / max(n, 1) ** 0.5:.2%}. Trips are not "
        "paired with their originals."
    )
    shown = made.with_trips(samples[1])
    return LargeReview(shown, samples[0], None, f"{note} {said}".strip(), Comparison(original, released))


def _summed_side(running: Engine, sample: Trips, plan: Plan, sources: Sequence[Any]) -> SummedSide:
    sums = running.fold(partial(_sums, plan), sources, Sums.add)
    assert sums is not None  # a side without parts has no sample, and was refused
    return SummedSide(sample, plan.grid, sums)


@dataclass(frozen=True)
class _ReleasedPart:
    """A row group of a release."""

    path: Path
    group: int
    n_points: int
    space: Space | None
    time_zone: str

    def load(self) -> Trips:
        """Return its trips."""
        with damaged(self.path, "a part of a release"):
            checked = check_parquet(self.path)
            checked.refuse_expansion(groups=[self.group])
            with checked.open() as file:
                table = pl.DataFrame(pl.from_arrow(file.read_row_group(self.group)))
        return Trips(table.drop("geometry", strict=False), self.space, self.time_zone)


def _files(folder: Path) -> list[Path]:
    data = folder / DATA
    return sorted(data.glob("*.parquet")) if data.is_dir() else [data] if data.is_file() else []


def _released_parts(made: Release) -> list[_ReleasedPart]:
    found = []
    for path in _files(made.folder):
        rows = check_parquet(path).footer.rows
        found += [_ReleasedPart(path, k, n, made.space, made.manifest.time_zone) for k, n in enumerate(rows) if n]
    return found


def _sample(running: Engine, sources: Sequence[Any], share: float) -> Trips:
    """Return a sample of the trips of all parts; refuse parts that cut a trip."""
    found = list(running.map(partial(_drawn, share), sources))
    if not found:
        raise InputError("the released side has no trip.", "evaluate a release that holds trips.")
    if any(one[2] == other[1] for one, other in pairwise(found)):
        raise InputError("a released trip lies in two row groups.", "Evaluate it on a machine with more memory.")
    first = found[0][0]
    return Trips(pl.concat([one[0].table for one in found]), first.space, first.time_zone)


def _drawn(share: float, source: Any) -> tuple[Trips, tuple[Any, Any], tuple[Any, Any]]:
    """Return a sample of the trips of a part, and the names of its first and last trip."""
    trips = source.load()
    names = [tuple(trips.table[name][at] for name in ("uid", "tid")) for at in (0, -1)]
    return trips.take_trips(np.flatnonzero(drawn(trips, share))), names[0], names[1]


def _sums(plan: Plan, source: Any) -> Sums:
    return Sums.of(source.load(), plan)
