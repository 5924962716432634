"""The aggregate mobility model: visits and transitions of a population, smoothed by distance."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numba import njit
from numpy.typing import NDArray

from murmurate.core.parameters import share
from murmurate.core.space import Floats, Integers, Space
from murmurate.errors import InputError, ParameterError
from murmurate.spaces.sphere import great_circle_m

MOST_PLACES = 6000
"""Most places of a model: each of its three matrices then takes 288 MB."""


@dataclass(frozen=True, eq=False)
class Aggregate:
    """Holds visits and transitions of a population over the places of a space; every row of `steps` is a distribution."""

    steps: Floats
    """[from, to]: one step of the day, smoothed."""
    visits: Floats
    """[place]: shares of visits, of which 1 % is uniform so that none is zero."""
    counts: Floats
    """[from, to]: observed transitions, so that more people can be added."""
    visited: Floats
    """[place]: observed steps."""
    kernel: Floats
    """[from, to]: the smoothing alone; see `distance_kernel`."""
    lat: Floats
    lng: Floats
    smoothing: float
    """Share of a row's mass that is smoothing; the paper's epsilon says nothing of it."""

    @classmethod
    def of(
        cls,
        place: NDArray[np.int32],
        space: Space,
        n_places: int,
        *,
        smoothing: float = 0.05,
        person: Integers | None = None,
    ) -> Aggregate:
        """Count daily traces [row, step] over the `n_places` places of `space`.

        `smoothing` is the share of the distance kernel in each row. With `person`, the person of each row, people weigh the
        same however many days they have.
        """
        share("smoothing", smoothing)
        if n_places > MOST_PLACES:
            raise ParameterError(
                f"an aggregate model holds at most {MOST_PLACES:,} places; this space has {n_places:,}. Take larger cells."
            )
        lat, lng = space.centre(np.arange(n_places))
        weight = np.ones(len(place)) if person is None else 1.0 / np.bincount(person)[person]
        counts, visited = _count(place, weight, n_places)
        return cls._from_counts(counts, visited, distance_kernel(lat, lng), lat, lng, smoothing)

    @classmethod
    def _from_counts(  # noqa: PLR0917
        cls, counts: Floats, visited: Floats, kernel: Floats, lat: Floats, lng: Floats, smoothing: float
    ) -> Aggregate:
        if visited.sum() <= 0:
            raise InputError("an aggregate model needs at least one daily trace; got none.")
        rows = counts.sum(axis=1, keepdims=True)
        empirical = np.divide(counts, rows, out=np.zeros_like(counts), where=rows > 0)
        steps = np.where(rows > 0, (1 - smoothing) * empirical + smoothing * kernel, kernel)
        visits = 0.99 * visited / visited.sum() + 0.01 / len(visited)
        return cls(steps, visits, counts, visited, kernel, lat, lng, smoothing)

    def with_more(self, place: NDArray[np.int32]) -> Aggregate:
        """Add more daily traces without counting the earlier ones again."""
        counts, visited = _count(place, np.ones(len(place)), len(self.visits))
        return Aggregate._from_counts(
            self.counts + counts, self.visited + visited, self.kernel, self.lat, self.lng, self.smoothing
        )

    def log_likelihood(self, place: NDArray[np.int32]) -> Floats:
        """Return the log-likelihood of each daily trace [row, step]."""
        return self.log_visits()[place[:, 0]] + np.log(self.steps)[place[:, :-1], place[:, 1:]].sum(axis=1)

    def log_steps(self, gap: int) -> Floats:
        """Return the logarithm of transition probabilities over `gap` steps."""
        return np.log(np.linalg.matrix_power(self.steps, gap))

    def log_visits(self) -> Floats:
        """Return the logarithm of the visiting probabilities."""
        return np.log(self.visits)

    def distance_m(self, one: NDArray[np.integer], other: NDArray[np.integer]) -> Floats:
        """Return metres between places."""
        return great_circle_m(self.lat[one], self.lng[one], self.lat[other], self.lng[other])


def distance_kernel(lat: Floats, lng: Floats) -> Floats:
    """Return [from, to], max(1 km, distance)^-2 with normalised rows."""
    return _kernel(tuple(lat.tolist()), tuple(lng.tolist())).copy()


@lru_cache(maxsize=2)
def _kernel(lat: tuple[float, ...], lng: tuple[float, ...]) -> Floats:
    y, x = np.array(lat), np.array(lng)
    kernel = np.maximum(1.0, great_circle_m(y[:, None], x[:, None], y, x) / 1000) ** -2.0
    return kernel / kernel.sum(axis=1, keepdims=True)


@njit(cache=True)
def _count(place: NDArray[np.int32], weight: Floats, n_places: int) -> tuple[Floats, Floats]:
    """Count transitions and visited steps, each row by its weight."""
    counts = np.zeros((n_places, n_places))
    visited = np.zeros(n_places)
    for row in range(len(place)):
        for step in range(place.shape[1]):
            visited[place[row, step]] += weight[row]
            if step:
                counts[place[row, step - 1], place[row, step]] += weight[row]
    return counts, visited
