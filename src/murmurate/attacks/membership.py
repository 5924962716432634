"""Infer whether a person's data were used, from released days alone or from days whose common seed became known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from murmurate.attacks.localise_hmm import Places
from murmurate.core.parameters import whole
from murmurate.core.score import Score
from murmurate.core.space import Floats
from murmurate.errors import ParameterError
from murmurate.profiles.days import DailyTraces

Releaser = Callable[[DailyTraces, int], Places]
"""release(days of some people, run) -> synthetic days [trace, step]; a fresh release at every call."""

STATISTICS = {
    "cells": "The adversary knows the person's days: how popular their places are in the release.",
    "rare_cells": "The adversary knows which cells only this person visits: how many of them the release visits.",
    "nearest": "The adversary knows the person's days: the nearest released day, step by step.",
}
"""Statistics of a person and a release, in the order of `evidence`, and what the adversary knows for each."""
_SHADOW_NOTE = "The adversary knows the person's own days and the mechanism, and trains on releases with and without them."
"""What the adversary with shadow releases knows."""


def shadow_membership(
    release: Releaser, population: DailyTraces, *, shadows: int = 8, targets: int = 2, seed: int = 0
) -> list[Score]:
    """Measure how well members of a release are distinguished from others, by a likelihood ratio learned on shadow releases.

    In each of `shadows` runs a random half of the population is released. For the last `targets` runs, the others teach what
    releases look like with and without each person: each statistic of person and release is normal in both cases, and the
    log ratios add up.
    """
    whole("shadows", shadows, at_least=4)
    whole("targets", targets, at_most=shadows - 3)
    generator = np.random.default_rng(seed)
    people = population.people
    if len(people) < 4:
        raise ParameterError(f"a membership attack needs at least 4 people, half of them members; got {len(people)}.")
    inside = np.zeros((shadows, len(people)), dtype=bool)
    shown = np.zeros((shadows, len(people), len(STATISTICS)))
    for run in range(shadows):
        members = generator.permutation(len(people))[: len(people) // 2]
        inside[run, members] = True
        released = release(population.take(np.isin(population.person, people[members])), run)
        shown[run] = evidence(population, released)
    ratio, truth = [], []
    for run in range(shadows - targets, shadows):
        others = np.arange(shadows) != run
        ratio.append(_log_ratio(shown[others], inside[others], shown[run]))
        truth.append(inside[run])
    scores = [_score("membership.shadow_auc", np.concatenate(ratio), np.concatenate(truth), _SHADOW_NOTE)]
    for k, (name, note) in enumerate(STATISTICS.items()):
        # the plain statistic, without shadows: what anybody can compute
        plain = np.concatenate([shown[run, :, k] for run in range(shadows)])
        scores.append(_score(f"membership.{name}_auc", plain, inside.ravel(), note))
    return scores


def evidence(population: DailyTraces, released: Places) -> Floats:
    """Return [person, statistic]: evidence in a release that each person was in it."""
    people = population.people
    visited = np.bincount(released.ravel(), minlength=population.n_places).astype(np.float64)
    log_popular = np.log(visited / visited.sum() + 1e-6)
    first = np.searchsorted(population.person, people)
    alone = np.zeros(population.n_places)
    own_cells = []
    for start, end in zip(first, np.r_[first[1:], population.n_days], strict=True):
        cells = np.unique(population.place[start:end])
        own_cells.append(cells)
        alone[cells] += 1
    out = np.zeros((len(people), len(STATISTICS)))
    for k, (start, end) in enumerate(zip(first, np.r_[first[1:], population.n_days], strict=True)):
        days = population.place[start:end]
        out[k, 0] = log_popular[days].mean()
        rare = own_cells[k][alone[own_cells[k]] == 1]
        out[k, 1] = (visited[rare] > 0).mean() if len(rare) else 0.0
        out[k, 2] = max((released == day).mean(axis=1).max() for day in days[:3])
    return out


def absence(true: Places, fakes: Places, *, visited_share: float = 0.5) -> list[Score]:
    """Measure what the fakes of one seed reveal by the cells they never visit, if somebody learns that they share a seed.

    `fakes` [seed, fake, step] of seeds `true` [seed, step]. The adversary knows which cells fakes in general visit; cells
    visited by fakes of most other seeds but by none of this one are taken for the seed's.
    """
    n_places = int(max(true.max(), fakes.max())) + 1
    met = np.zeros((len(true), n_places), dtype=bool)
    own = np.zeros_like(met)
    for seed in range(len(true)):
        met[seed, np.unique(fakes[seed])] = True
        own[seed, np.unique(true[seed])] = True
    usual = met.mean(axis=0)
    named = ~met & (usual >= visited_share * usual.max())[None, :]
    hits = (named & own).sum()
    precision = float(hits / named.sum()) if named.any() else float("nan")
    return [
        Score(
            name="membership.absence_precision",
            value=precision,
            better="lower",
            chance=float(own.mean()),
            family="membership",
            n=int(named.sum()),
            note=f"The adversary knows which {fakes.shape[1]} fakes share a seed; precision of the cells named as the seed's.",
        ),
        Score(
            name="membership.absence_recall",
            value=float(hits / own.sum()),
            better="lower",
            chance=float(named.mean()),
            family="membership",
            n=int(own.sum()),
            note="The share of the seeds' cells that are named.",
        ),
    ]


def auc(score: Floats, member: NDArray[np.bool_]) -> float:
    """Return the probability that a member scores above another; ties count half."""
    from scipy.stats import rankdata

    rank = rankdata(score)
    positives = int(member.sum())
    negatives = len(member) - positives
    if not positives or not negatives:
        return float("nan")
    return float((rank[member].sum() - positives * (positives + 1) / 2) / (positives * negatives))


def _log_ratio(shown: Floats, inside: NDArray[np.bool_], target: Floats) -> Floats:
    """Add up, over statistics, the log likelihood ratio between two normals of one variance, fitted person by person."""
    total = np.zeros(target.shape[0])
    for k in range(target.shape[1]):
        values = shown[:, :, k]
        mean_in, mean_out = _mean(values, inside), _mean(values, ~inside)
        centred = np.where(inside, values - mean_in, values - mean_out)
        # one variance for all, by the person's own spread and everybody's: few shadows, so neither alone
        variance = 0.5 * centred.var(axis=0) + 0.5 * centred.var() + 1e-12
        total += ((target[:, k] - mean_out) ** 2 - (target[:, k] - mean_in) ** 2) / (2 * variance)
    return total


def _mean(values: Floats, where: NDArray[np.bool_]) -> Floats:
    count = where.sum(axis=0)
    overall = values.mean(axis=0)
    return np.where(count > 0, (values * where).sum(axis=0) / np.maximum(count, 1), overall)


def _score(name: str, values: Floats, member: NDArray[np.bool_], note: str) -> Score:
    value = auc(values, member)
    n = len(member)
    spread = 1.96 * np.sqrt(1 / (12 * max(1, min(int(member.sum()), n - int(member.sum())))))
    return Score(
        name=name,
        value=value,
        low=max(0.0, value - spread),
        high=min(1.0, value + spread),
        better="closer_to_chance",
        chance=0.5,
        family="membership",
        n=n,
        note=note,
    )
