"""Judge a release of trips that is too large for memory, part by part on an engine, beside the file it came from. Internal.

Metrics that are sums, or read one value a trip, see all trips. The others, the attacks and the figures see a random sample of
whole trips of each side, and say so.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.ledger import Ledger
from murmurate.core.space import Places, Space
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.custody.sources import open_parts_again
from murmurate.engine import Engine
from murmurate.errors import InputError
from murmurate.ingest.stream import worth_streaming
from murmurate.judging.review import Review, checked
from murmurate.judging.scoring import Evaluation, take_metrics
from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import Comparison
from murmurate.metrics.summed import SAMPLE_POINTS, SUMMED, Sums, drawn, side_of, sums_of
from murmurate.releases.folder import DATA, Release, open_release


@dataclass(frozen=True)
class LargeReview(Review):
    """A review whose release and originals are samples of whole trips, beside the sums over all trips."""

    summed: Comparison | None = None

    def take_metrics(self, **options: Any) -> Evaluation:
        """Take the metrics that are sums on all trips, and the others on the sample."""
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


@contextmanager
def review_in_parts(
    folder: Path,
    against: str,
    running: Engine,
    *,
    ledger: Ledger,
    read: dict[str, Any],
    force: bool = False,
    space: Space | None = None,
) -> Iterator[LargeReview]:
    """Open a release beside its originals, both in parts."""
    made = open_release(folder, read_space=True, space=space)
    internal = Internal(ledger, made.manifest.model_of or made.manifest.release_id)
    running.start("murmurate.metrics.summed", work_in=ledger.work_folder)
    with open_parts_again(
        against, made.manifest, internal, running, read=read, force=force, work_dir=ledger.work_folder
    ) as parts:
        note = checked(made, parts, ledger, force)
        yield _reviewed(made, parts, note, running)


def _reviewed(made: Release, parts: Any, note: str, running: Engine) -> LargeReview:
    sources = list(parts.sources()), _released_parts(made)
    points = parts.n_points, sum(part.n_points for part in sources[1])
    samples = [_sample(running, of, min(1.0, SAMPLE_POINTS / max(n, 1))) for of, n in zip(sources, points, strict=True)]
    grid = compare(samples[1], samples[0]).grid
    original, released = (
        side_of(sample, grid, list(running.map(partial(_sums, grid), of))) for sample, of in zip(samples, sources, strict=True)
    )
    n = min(sample.n_trips for sample in samples)
    said = (
        "Both sides are large. Sums, and values of single trips, are of all trips. Other scores, attacks and figures are "
        f"of a random sample of {samples[0].n_trips:,} of {original.n:,} original and {samples[1].n_trips:,} of {released.n:,} "
        f"released trips: a share found in it has a standard error of at most {0.5 / max(n, 1) ** 0.5:.2%}. Trips are not "
        "paired with their originals."
    )
    shown = made.with_trips(samples[1])
    return LargeReview(shown, samples[0], None, f"{note} {said}".strip(), Comparison(original, released))


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
        import pyarrow.parquet as pq

        table = pl.DataFrame(pl.from_arrow(pq.ParquetFile(self.path).read_row_group(self.group)))
        return Trips(table.drop("geometry", strict=False), self.space, self.time_zone)


def _files(folder: Path) -> list[Path]:
    data = folder / DATA
    return sorted(data.glob("*.parquet")) if data.is_dir() else [data] if data.is_file() else []


def _released_parts(made: Release) -> list[_ReleasedPart]:
    import pyarrow.parquet as pq

    found = []
    for path in _files(made.folder):
        footer = pq.read_metadata(path)
        rows = [footer.row_group(k).num_rows for k in range(footer.num_row_groups)]
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


def _sums(grid: Places, source: Any) -> Sums:
    return sums_of(source.load(), grid)
