"""Usage classes: places that different people use alike, found by mapping the places of each person onto those of others."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Literal

import numpy as np
from numba import njit
from numpy.typing import NDArray
from scipy.linalg import eigh

from murmurate import engine
from murmurate.core.parameters import one_of, whole
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.profiles.mapping import STARTS, assign, gains, search
from murmurate.profiles.mobility import Profiles

Level = Literal["visits", "moves"]

CRITERION = (5, 8, 12, 16, 20, 25, 30, 40)
"""Numbers of classes tried where none is given; set by hand around the paper's 20."""

PAIRS_AT_ONCE = 2_000_000
"""Pairs of people compared at a time, 32 MB of pair numbers: a list of all pairs of many people would not fit into memory."""


@dataclass(frozen=True, eq=False)
class LocationGraph:
    """Holds how often, and by how similar people, two places were mapped onto each other."""

    place: Integers
    """Places that anybody visits, ascending; the graph is over positions in it."""
    weight: Floats
    """[place, place], symmetric: similarities of the pairs of people whose mapping joins the two."""
    chances: Floats
    """[place, place]: pairs of people who could have joined them, since each visits one."""
    n_pairs: int

    def merged(self, more: LocationGraph) -> LocationGraph:
        """Add the pairs of another graph, such as those of people who came later."""
        place = np.union1d(self.place, more.place)
        weight, chances = np.zeros((2, len(place), len(place)))
        for part in (self, more):
            at = np.searchsorted(place, part.place)
            weight[np.ix_(at, at)] += part.weight
            chances[np.ix_(at, at)] += part.chances
        return LocationGraph(place, weight, chances, self.n_pairs + more.n_pairs)


def location_graph(
    profiles: Profiles,
    *,
    level: Level = "visits",
    first: int = 0,
    most_pairs: int | None = None,
    seed: int = 0,
    workers: int = 1,
) -> LocationGraph:
    """Map the places of all ordered pairs of people onto each other and add up which places meet.

    `level` maps by visits alone or by visits and moves. `first` leaves out pairs among the people before it, for updates of a
    graph. With `most_pairs`, that many pairs are drawn at random (by `seed`) instead: weights are then an estimate up to a
    common factor. `workers` processes share the work.
    """
    one_of("level", level, ("visits", "moves"))
    people = profiles.n_people
    if people < 2:
        raise InputError(f"usage classes need at least 2 people to compare; got {people}.")
    total = people * people - people - first * (first - 1)
    parts: list[Integers] | list[tuple[int, int]]
    if most_pairs is not None and most_pairs < total:
        whole("most_pairs", most_pairs)
        drawn = np.random.default_rng(seed).integers(0, people, (2, int(most_pairs * 1.2) + 10))
        pairs = drawn.T[(drawn[0] != drawn[1]) & (drawn.max(axis=0) >= first)][:most_pairs]
        total = len(pairs)
        parts = np.array_split(pairs, max(1, min(total, workers * 4)))
    else:
        n_parts = max(1, min(people, max(workers * 4, -(-people * people // PAIRS_AT_ONCE))))
        bounds = [k * people // n_parts for k in range(n_parts + 1)]
        parts = list(pairwise(bounds))
    visited = np.unique(profiles.place)
    work = partial(_part, profiles, visited, level, seed, first)
    weight, chances = np.zeros((2, len(visited), len(visited)))
    for joined, possible in engine.map(work, parts, workers=workers):
        weight += joined
        chances += possible
    return LocationGraph(visited, weight + weight.T, chances + chances.T, total)


def _part(  # noqa: PLR0917
    profiles: Profiles, visited: Integers, level: Level, seed: int, first: int, part: Integers | tuple[int, int]
) -> tuple[Floats, Floats]:
    """Map some pairs: given ones, or everybody with each of a range of people."""
    if isinstance(part, tuple):
        u, v = (axis.ravel() for axis in np.mgrid[part[0] : part[1], 0 : profiles.n_people])
        pairs = np.column_stack([u, v])[(u != v) & (np.maximum(u, v) >= first)]
    else:
        pairs = part
    at = np.searchsorted(visited, profiles.place)
    if level == "visits":
        return _join_visits(np.ascontiguousarray(pairs), at, len(visited), profiles)
    return _join_moves(np.ascontiguousarray(pairs), at, len(visited), profiles, np.random.default_rng(seed))


# two kernels, not one with a switch: what a level does not need is not compiled for it


@njit(cache=True, nogil=True)
def _join_visits(pairs: Integers, at: Integers, size: int, people: Profiles) -> tuple[Floats, Floats]:
    """Add up weights and chances of pairs of places, mapped by visits."""
    weight, chances = np.zeros((size, size)), np.zeros((size, size))
    place_at, visit, share = people.place_at, people.visit, people.period_share
    for pair in range(len(pairs)):
        u, v = pairs[pair]
        mine, theirs = slice(place_at[u], place_at[u + 1]), slice(place_at[v], place_at[v + 1])
        gain = gains(visit[mine], share[u], visit[theirs])
        to = assign(gain)
        similar = 0.0
        for r in range(len(to)):
            if to[r] >= 0:
                similar += gain[r, to[r]]
        _add(weight, chances, at[mine], at[theirs], gain, to, similar)
    return weight, chances


@njit(cache=True, nogil=True)
def _join_moves(
    pairs: Integers, at: Integers, size: int, people: Profiles, generator: np.random.Generator
) -> tuple[Floats, Floats]:
    """Add up weights and chances of pairs of places, mapped by visits and moves."""
    weight, chances = np.zeros((size, size)), np.zeros((size, size))
    place_at, visit, share = people.place_at, people.visit, people.period_share
    for pair in range(len(pairs)):
        u, v = pairs[pair]
        mine, theirs = slice(place_at[u], place_at[u + 1]), slice(place_at[v], place_at[v + 1])
        gain = gains(visit[mine], share[u], visit[theirs])
        similar, to = search(people, u, v, gain, STARTS, generator)
        _add(weight, chances, at[mine], at[theirs], gain, to, similar)
    return weight, chances


@njit(cache=True, nogil=True)
def _add(  # noqa: PLR0917
    weight: Floats, chances: Floats, own: Integers, other: Integers, gain: Floats, to: Integers, similar: float
) -> None:
    """Count every pair of places as a chance, and those that the mapping joins by how similar the people are."""
    for r in range(len(own)):
        for s in range(len(other)):
            chances[own[r], other[s]] += 1.0
        if 0 <= to[r] < len(other) and gain[r, to[r]] > 0.0:
            weight[own[r], other[to[r]]] += similar


def usage_classes(graph: LocationGraph, *, n_classes: int = 0, seed: int = 0) -> NDArray[np.int64]:
    """Cluster the places of a graph; `n_classes` of 0 chooses the number by the paper's criterion among `CRITERION`."""
    whole("n_classes", n_classes, at_least=0)
    size = len(graph.place)
    if size < 2:
        raise InputError(f"usage classes need at least 2 visited places; got {size}.")
    affinity = np.divide(graph.weight, graph.chances, out=np.zeros_like(graph.weight), where=graph.chances > 0)
    np.fill_diagonal(affinity, 0.0)
    vectors = _spectrum(affinity, min(size, n_classes if n_classes else max(CRITERION)))
    if n_classes:
        return _cluster(vectors, min(n_classes, size), seed)
    tried = [k for k in CRITERION if k < size] or [2]
    found = [_cluster(vectors, k, seed) for k in tried]
    return found[int(np.argmax([separation(affinity, classes) for classes in found]))]


def separation(affinity: Floats, classes: Integers) -> float:
    """Return the paper's criterion: mean similarity within classes over mean similarity between them."""
    same = classes[:, None] == classes[None, :]
    np.fill_diagonal(same, False)
    apart = classes[:, None] != classes[None, :]
    within = affinity[same].mean() if same.any() else 0.0
    between = affinity[apart].mean() if apart.any() else 1.0
    return float(within / max(between, 1e-12))


def _spectrum(affinity: Floats, n: int) -> Floats:
    """Return leading eigenvectors of the normalised affinity; k-means on its raw rows makes classes of one place."""
    degree = affinity.sum(axis=1)
    scale = 1 / np.sqrt(np.maximum(degree, np.median(degree) * 0.05 + 1e-12))
    normal = affinity * scale[:, None] * scale[None, :]
    size = len(affinity)
    _, vectors = eigh(normal, subset_by_index=[size - n, size - 1])
    return np.ascontiguousarray(vectors[:, ::-1])


def _cluster(vectors: Floats, n: int, seed: int) -> NDArray[np.int64]:
    """Cluster rows of the first n eigenvectors, of unit length, by k-means; best of eight starts."""
    points = vectors[:, :n]
    points = points / np.maximum(np.linalg.norm(points, axis=1, keepdims=True), 1e-12)
    generator = np.random.default_rng(seed)
    best, chosen = np.inf, np.zeros(len(points), dtype=np.int64)
    for _ in range(8):
        centres = _spread(points, n, generator)
        classes = np.zeros(len(points), dtype=np.int64)
        for _ in range(60):
            far = ((points**2).sum(axis=1)[:, None] - 2 * points @ centres.T) + (centres**2).sum(axis=1)[None, :]
            now = far.argmin(axis=1)
            if (now == classes).all():
                break
            classes = now
            for k in range(n):
                if (classes == k).any():
                    centres[k] = points[classes == k].mean(axis=0)
        loss = float(far.min(axis=1).sum())
        if loss < best:
            best, chosen = loss, classes
    return np.unique(chosen, return_inverse=True)[1].astype(np.int64)


def _spread(points: Floats, n: int, generator: np.random.Generator) -> Floats:
    """Choose starting centres that lie apart (k-means++)."""
    centres = [points[generator.integers(len(points))]]
    far = ((points - centres[0]) ** 2).sum(axis=1)
    for _ in range(n - 1):
        total = far.sum()
        at = generator.choice(len(points), p=far / total) if total > 0 else generator.integers(len(points))
        centres.append(points[at])
        far = np.minimum(far, ((points - points[at]) ** 2).sum(axis=1))
    return np.array(centres)
