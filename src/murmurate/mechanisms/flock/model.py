"""A fitted flock: plain arrays with a schema, sampled any number of times, with or without a condition, for free."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl

from murmurate.core.parameters import whole
from murmurate.core.trips import TIME, Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.flock.base_model import apart_again
from murmurate.mechanisms.flock.ends import EndsPool
from murmurate.mechanisms.flock.estimates import log_weights, resample
from murmurate.mechanisms.flock.fitting import Fitted
from murmurate.mechanisms.flock.rounds import CANDIDATES
from murmurate.mechanisms.flock.shapes import times_us
from murmurate.mechanisms.flock.stored import write
from murmurate.mechanisms.flock.tables import parts
from murmurate.mechanisms.flock.tracks import Tracks
from murmurate.spaces.grid import Grid

if TYPE_CHECKING:
    from murmurate.noise import Randomness

AT_ONCE = 50_000


@dataclass(frozen=True, eq=False)
class FlockModel:
    """What was fitted, and the public frame in which trips are written."""

    fitted: Fitted
    time_zone: str
    day: str

    @property
    def n(self) -> float:
        """Noisy number of trips the model was fitted on."""
        return self.fitted.n

    @property
    def grid(self) -> Grid:
        return self.fitted.law.frame.grid

    def sample(
        self,
        n: int,
        rng: Randomness,
        *,
        hour: int | None = None,
        origin: Sequence[int] | None = None,
        destination: Sequence[int] | None = None,
    ) -> Trips:
        """`n` synthetic trips; only those of an hour of day, from cells of the grid, or to cells of it, where asked."""
        made = list(self.batches(n, rng, hour=hour, origin=origin, destination=destination))
        return Trips(pl.concat([part.table for part in made]), self.grid, self.time_zone)

    def batches(
        self,
        n: int,
        rng: Randomness,
        *,
        hour: int | None = None,
        origin: Sequence[int] | None = None,
        destination: Sequence[int] | None = None,
        at_once: int = AT_ONCE,
    ) -> Iterator[Trips]:
        """The same a part at a time, for more trips than memory holds; names run on over the parts."""
        whole("n", n)
        ends = self._ends(hour, origin, destination)
        generator = rng.generator()
        for first in range(0, n, at_once):
            size = min(at_once, n - first)
            tracks = self._tracks(size, ends, generator)
            yield self._released(tracks, first, generator)

    def save(self, path: Path) -> None:
        """Write arrays and their schema into the folder."""
        write(path, self.fitted, time_zone=self.time_zone, day=self.day)

    def _ends(self, hour: int | None, origin: Sequence[int] | None, destination: Sequence[int] | None) -> EndsPool:
        pool, hours = self.fitted.law.ends, self.fitted.law.frame.hours
        keep = np.ones(len(pool.source), dtype=bool)
        if hour is not None:
            whole("hour", hour, at_least=0, at_most=23)
            if hours == 1:
                raise ParameterError("this model was fitted without hours of day; fit it on trips with times and hours=24.")
            keep &= pool.hour == hour * hours // 24
        for cells, have in ((origin, pool.source), (destination, pool.destination)):
            if cells is not None:
                keep &= np.isin(have, self.grid.locate(*self.grid.centre(np.asarray(cells, dtype=np.int64))))
        if not keep.any():
            raise ParameterError("the model holds no trip that meets this condition; ask for more cells or another hour.")
        return pool if keep.all() else pool.where(keep)

    def _tracks(self, n: int, ends: EndsPool, generator: np.random.Generator) -> Tracks:
        fitted = self.fitted
        law = fitted.law
        times = CANDIDATES["fine" if law.counted else "coarse"]
        candidates = law.draw(times * n, generator, ends)
        shown = parts(list(fitted.pulls), candidates, law.frame, fitted.zones, fitted.norm)
        chosen = resample(log_weights(shown, fitted.pulls, candidates.n), n, generator)
        again = np.concatenate([[False], chosen[1:] == chosen[:-1]])
        order = generator.permutation(n)
        return apart_again(candidates.take(chosen), again, law.frame, generator).take(order)

    def _released(self, tracks: Tracks, first: int, generator: np.random.Generator) -> Trips:
        frame, pace = self.fitted.law.frame, self.fitted.pace
        trip = np.repeat(np.arange(tracks.n, dtype=np.int64), np.diff(tracks.offsets)) + first
        lat, lng = frame.degrees(tracks.y, tracks.x)
        columns: dict[str, Any] = {"uid": trip, "tid": trip}
        if pace is not None:
            seconds = pace.seconds(tracks, generator)
            when = times_us(tracks, seconds, time_zone=self.time_zone, day=self.day, generator=generator, hours=frame.hours)
            columns["datetime"] = pl.Series(when).cast(TIME)
        if frame.hours > 1:
            columns["hour"] = tracks.walks.hours[trip - first] * (24 // frame.hours)
        columns |= {"lat": lat, "lng": lng, "cell": frame.grid.locate(lat, lng)}
        return Trips(pl.DataFrame(columns), frame.grid, self.time_zone)
