"""Black-box tests of measured mechanisms: a generator draws released tables of two neighbours, testers tell them apart.

Neither knows the other. A `Generator` is made from a mechanism and what the meter counted, `Tester`s from a generator's
own outputs. `audit(generator=..., testers=...)` takes others in their place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from murmurate.asking.clipping import add
from murmurate.asking.meter import Counted
from murmurate.asking.table import SparseTable, Table, TreeTable
from murmurate.attacks.audit import audit as lower_bound
from murmurate.core.guarantee import DP
from murmurate.core.mechanism import Rng
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.judging import twins
from murmurate.judging.audit_parts import Tester, trained

MAX_BINS = 40
"""Most bins of the tables, those that the canary changes most, that testers look at. More cost more noise than they tell."""
NUMBERS = {"l1": 1_200_000, "l2": 300_000}
"""Noisy numbers that the quick form draws for one test, by norm: three to eight seconds of noise. Pure epsilon is bounded
bin by bin, which takes more of them."""
CONFIDENCE = 0.999
"""Confidence of every lower bound."""
GAP_SDS = {"l1": 8.0, "l2": 6.0}
"""Error of a bound, in units of 1 / sqrt(outputs), by which the number of bins is chosen: both probabilities at that
confidence, from one half of the outputs; for pure epsilon, all bins together."""


class Released:
    """Draws the released tables of both sides in bulk: only bins that the canary changes, as others tell nothing.

    As many bins are looked at as show most, where each costs as much noise as another output of all the others.
    """

    def __init__(self, mechanism: Any, found: list[Counted], draw: twins.Draw = twins.honest) -> None:
        self.mechanism, self.draw, self.found = mechanism, draw, found
        budget = mechanism.budget()
        self.laplace = budget.norm == "l1"
        changes = [add([one.sums[0], (one.sums[1][0], -one.sums[1][1])], one.table.n_bins) for one in found]
        losses = [
            np.abs(size) / one.table.steps / _scale(budget, one.table, bins)
            for one, (bins, size) in zip(found, changes, strict=True)
        ]
        least = _least_loss(np.concatenate([*losses, np.zeros(0)]), budget.norm)
        self.bins = [bins[loss >= least] for (bins, _), loss in zip(changes, losses, strict=True)]
        self.exact = [
            [_at(one.sums[side], bins) for one, bins in zip(found, self.bins, strict=True)] for side in (0, 1)
        ]  # fmt: skip
        parts = list(zip(found, self.bins, strict=True))
        self.scale = np.concatenate([np.zeros(0), *(_scale(budget, one.table, bins) for one, bins in parts)])
        steps = np.concatenate([np.zeros(0), *(np.full(len(bins), float(one.table.steps)) for one, bins in parts)])
        self.means = [np.concatenate([np.zeros(0), *side]) / steps for side in self.exact]

    @property
    def n_bins(self) -> int:
        """Return the number of bins that are drawn."""
        return len(self.scale)

    def loss(self) -> float:
        """Return what the bins that are drawn can show: a sum of epsilons, or a shift in standard deviations."""
        each = np.abs(self.means[0] - self.means[1]) / self.scale
        return float(each.sum() if self.laplace else np.sqrt((each**2).sum()))

    def __call__(self, side: int, n: int, rng: Rng) -> Floats:
        """Return [run, bin] noisy counts."""
        parts = []
        for one, bins, exact in zip(self.found, self.bins, self.exact[side], strict=True):
            if len(exact):
                parts.append(self._bulk(one.table, bins, np.tile(exact, n), rng).reshape(n, -1))
        return np.concatenate(parts, axis=1) if parts else np.zeros((n, 1))

    def _bulk(self, table: Table, bins: Integers, exact: Integers, rng: Rng) -> Floats:
        """Return noisy counts of some bins, drawn many times at once; a hidden one lies just below its threshold."""
        budget, n = self.mechanism.budget(), len(exact)
        if not isinstance(table, SparseTable | TreeTable):
            return np.asarray(self.draw(budget, replace(table, n_bins=n, joint=False), exact, rng).noisy)
        row = np.tile(bins // table.n_columns, n // len(bins))
        wide: dict[str, Any] = {"n_bins": n, "n_columns": 1, "threshold": table.threshold[row]}
        if isinstance(table, TreeTable):
            wide |= {"row_share": table.row_share[row], "after": None, "parent": None}
        there = np.flatnonzero(exact)  # bins that nobody has are drawn as releases draw them
        answer = self.draw(budget, replace(table, **wide), (there, exact[there]), rng)
        values = table.threshold[row].astype(np.float64) - 1.0
        values[answer.bins] = answer.noisy
        return values


MakeTesters = Callable[[Any, int, Rng], Mapping[str, Tester]]
"""testers(generator, runs, rng) -> testers by name; each may be trained on further outputs of the generator."""


def testers(generator: Any, runs: int, rng: Rng) -> dict[str, Tester]:
    """Return the tests that distinguish the sides: plain counts, the likelihood ratio, and a trained classifier."""
    inside, outside = generator.means if generator.n_bins else (np.zeros(1), np.zeros(1))
    scale = generator.scale if generator.n_bins else np.ones(1)
    gain = inside - outside

    def ratio(outputs: Floats) -> Floats:
        if generator.laplace:
            return np.asarray(((np.abs(outputs - outside) - np.abs(outputs - inside)) / scale).sum(axis=1))
        return np.asarray((outputs * (gain / scale**2)).sum(axis=1))

    learned = [generator(side, max(runs // 4, 50), rng) for side in (0, 1)]
    return {
        "counts": lambda outputs: np.asarray((outputs * np.sign(gain)).sum(axis=1)),
        "likelihood_ratio": ratio,
        "classifier": trained(*learned),
    }


def bounds(generator: Any, promise: DP, runs: int, rng: Rng, made: MakeTesters = testers) -> tuple[Score, ...]:
    """Return the lower bound on epsilon by each tester, and for pure epsilon the sum of what single bins show.

    Gaussian noise is bounded as such. Laplace noise of different bins is independent, so the largest losses of the bins add up;
    all of them at once occur too rarely to be seen.
    """
    drawn = [generator(side, runs, rng) for side in (0, 1)]  # one set of outputs for all testers: secure noise is slow
    laplace = getattr(generator, "laplace", True)
    scores = []
    for name, tester in made(generator, runs, rng).items():
        found = _bound(drawn, tester, rng, delta=promise.delta, gaussian=not laplace)
        scores.append(replace(found, name=f"audit.black_box.{name}", low=None, high=promise.epsilon, n=runs))
    if laplace and not promise.delta:
        n = drawn[0].shape[1]
        each = [
            _bound([side[:, [k]] for side in drawn], lambda one: one[:, 0], rng, confidence=1 - (1 - CONFIDENCE) / n).value
            for k in range(n)
        ]
        note = f"The sum over {n} bins, whose noise is independent; all bounds hold together with {CONFIDENCE:g} confidence."
        scores.append(
            replace(
                scores[-1], name="audit.black_box.bin_by_bin", value=sum(each), note=note
            )
        )  # fmt: skip
    return tuple(scores)


def _bound(drawn: list[Floats], tester: Tester, rng: Rng, **options: Any) -> Score:
    taken = [0, 0]

    def outputs(side: int, n: int, _rng: Rng) -> Floats:
        taken[side] += n
        return tester(drawn[side][taken[side] - n : taken[side]])

    return lower_bound(outputs, n=len(drawn[0]), rng=rng, **{"confidence": CONFIDENCE, **options})


def runs_for(generator: Any, effort: int) -> int:
    """Return how many outputs of each side are drawn, so that about `effort` times `NUMBERS` are drawn in all."""
    numbers = effort * NUMBERS["l1" if getattr(generator, "laplace", True) else "l2"]
    return max(numbers // max(2 * getattr(generator, "n_bins", 1), 2), 500)


def _least_loss(losses: Floats, norm: str) -> float:
    """Return the smallest loss of a bin that is worth its noise: with more bins, fewer outputs can be drawn of each."""
    ordered = np.sort(losses[losses > 0])[::-1][:MAX_BINS]
    if not len(ordered):
        return np.inf
    many = np.arange(1, len(ordered) + 1)
    error = GAP_SDS[norm] / np.sqrt(NUMBERS[norm] / (2 * many))
    shown = np.cumsum(ordered) - many * error if norm == "l1" else np.sqrt(np.cumsum(ordered**2)) - error
    return float(ordered[int(np.argmax(shown))])


def _at(sums: tuple[Any, Any], bins: Any) -> Any:
    """Return the sums of these bins; 0 where nobody has one."""
    have, size = sums
    if not len(have):
        return np.zeros(len(bins), dtype=np.int64)
    at = np.minimum(np.searchsorted(have, bins), len(have) - 1)
    return np.where(have[at] == bins, size[at], 0)


def _scale(budget: Any, table: Table, bins: Any) -> Floats:
    if isinstance(table, TreeTable):
        return np.array([budget.scale(float(share), table.limit) for share in table.row_share[bins // table.n_columns]])
    return np.full(len(bins), budget.scale(table.share, table.limit))
