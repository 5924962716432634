"""Audit a mechanism: what one unit costs exactly, what its outputs give away, and whether planted faults are caught.

Three kinds of tests, none of which reads private data. The exact meter counts what a canary adds to every table, over its
noise. Black-box tests tell neighbouring inputs apart from outputs alone: a generator makes outputs, testers turn them into one
number each, and `attacks.audit` bounds epsilon from below. Sampler tests check the noise itself. Every test also runs on twins
with a planted fault, which it has to catch: a test that cannot fail proves nothing.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from murmurate import noise
from murmurate.asking.clipping import add
from murmurate.asking.meter import Counted, counted
from murmurate.asking.rounds import Asking, facts_of, is_measured
from murmurate.asking.table import SparseTable, Table, TreeTable
from murmurate.attacks.audit import audit as lower_bound
from murmurate.core import progress
from murmurate.core.guarantee import DP, GeoInd, KAnonymity, NoGuarantee, to_json
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import public_parameters, whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.errors import GuaranteeRefused
from murmurate.judging import twins
from murmurate.judging.audit_data import canaries, of_one_unit, people_in, together, town
from murmurate.judging.audit_local import audit_groups, audit_local
from murmurate.judging.audit_parts import Tester, Twin, fork_repeats, trained

QUICK_RUNS, DEEP_RUNS = 4_000, 400_000
"""Outputs drawn of each neighbour in the quick and in the deep form. The largest epsilon that n outputs can show is about
ln(n / 15)."""
TREE_RUNS = 20
"""Factor by which fewer outputs are drawn of tables of a tree, which cannot be drawn in bulk."""
METER_ROUNDS = {"quick": 1, "deep": 25}
"""Noisy answers for which the exact meter counts, each with other zones and thresholds."""
SCALE_TOLERANCE = 0.1
"""Relative error of the measured scale of noise that a sampler test accepts; half the noise is off by 0.5."""
MAX_BINS = 40
"""Bins of the tables, those that the canary changes most, that testers look at."""


@dataclass(frozen=True)
class Audit:
    """Hold what an audit found. Nothing of it was computed from private data."""

    mechanism: str
    parameters: Mapping[str, Any]
    guarantee: Mapping[str, Any]
    scores: tuple[Score, ...]
    twins: tuple[Twin, ...]
    note: str = ""
    unit: str = ""
    runs: int = 0
    tables: Mapping[str, float] = field(default_factory=dict)
    """Share of the promise that the worst canary spends, by table."""

    @property
    def broken(self) -> tuple[Score, ...]:
        """Scores above the claim: proof that the promise does not hold."""
        return tuple(score for score in self.scores if score.high is not None and score.value > score.high)

    @property
    def passed(self) -> bool:
        """Whether nothing passes the claim and every planted fault was caught."""
        return not self.broken and all(twin.caught_by for twin in self.twins)

    def to_json(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "mechanism": self.mechanism,
            "parameters": dict(self.parameters),
            "guarantee": dict(self.guarantee),
            "unit": self.unit,
            "passed": self.passed,
            "runs": self.runs,
            "scores": [score.to_json() for score in self.scores],
            "twins": [vars(twin) for twin in self.twins],
            "tables": dict(self.tables),
            "note": self.note,
        }


def audit(mechanism: Any, *, deep: bool = False, runs: int | None = None, rng: Rng | None = None, city: Any = None) -> Audit:
    """Audit a mechanism with its parameters on made-up people; `deep` takes hours and finds smaller faults."""
    runs = runs or (DEEP_RUNS if deep else QUICK_RUNS)
    whole("runs", runs, at_least=100)
    rng, city = rng or noise.secure(), city or town()
    promise = mechanism.guarantee()
    private = people_in(getattr(mechanism, "space", None), city)
    if is_measured(mechanism):
        found = _measured(mechanism, private, runs, "deep" if deep else "quick", rng)
    elif isinstance(promise, GeoInd):
        found = audit_local(mechanism, runs, rng)
    elif isinstance(promise, KAnonymity):
        found = audit_groups(mechanism, private, rng)
    else:
        said = "nothing is promised" if isinstance(promise, NoGuarantee) else "this variant reads all people at once"
        found = {"scores": (), "twins": (), "note": f"There is nothing to audit: {said}. Its attacks are in the study."}
    plain = public_parameters(mechanism)
    return Audit(
        mechanism.name, plain, to_json(promise), unit=promise.unit.name, runs=runs, **{"note": "", **found}
    )  # fmt: skip


# -- measured mechanisms ----------------------------------------------------------------------------------------------------


def _measured(mechanism: Any, private: Trips, runs: int, form: str, rng: Rng) -> dict[str, Any]:
    """Audit a mechanism that reads noisy tables: meter, independence of units, black box and sampler."""
    unit = mechanism.guarantee().unit.name
    cases = {name: of_one_unit(canary, unit, private.time_zone) for name, canary in canaries(private).items()}
    worst, worst_name, tables, found = -1.0, "", {}, []
    for name, canary in progress.track(cases.items(), "canaries", len(cases)):
        for _ in range(METER_ROUNDS[form]):
            here = counted(mechanism, (together(private, canary), private), rng)
            shares = {one.table.name: one.cost(mechanism.budget().norm) for one in here}
            if sum(shares.values()) > worst:
                worst, worst_name, tables, found = sum(shares.values()), name, shares, here
    probe = cases["all trips of a person" if unit == "user" else "a lone trip"]
    dependent = _dependent(mechanism, private, probe, rng)
    generator = Released(mechanism, found)
    epsilons = _bounds(generator, mechanism.guarantee(), runs, rng)
    sampler = _sampler(mechanism, found, rng, twins.honest)
    scores = (
        Score(
            name="audit.meter.worst_share", value=worst, better="lower", high=1.0, family="audit", n=len(cases),
            note=f"Exact share of the promise that one unit spends, given the noisy answers; worst canary: {worst_name}.",
        ),
        Score(
            name="audit.meter.dependent_tables", value=float(len(dependent)), better="lower", high=0.0, family="audit",
            note="Tables to which one unit adds something else when other people are there.",
        ),
        *epsilons,
        sampler,
    )  # fmt: skip
    return {"scores": scores, "tables": tables, "twins": _measured_twins(mechanism, private, probe, found, runs, rng)}


class Released:
    """Draws the released tables of both sides in bulk: only bins that the canary changes, as others tell nothing."""

    def __init__(self, mechanism: Any, found: list[Counted], draw: twins.Draw = twins.honest) -> None:
        self.mechanism, self.draw = mechanism, draw
        self.tree = any(isinstance(one.table, TreeTable) for one in found)
        self.found = found
        changes = [add([one.sums[0], (one.sums[1][0], -one.sums[1][1])], one.table.n_bins) for one in found]
        top = np.sort(np.concatenate([np.abs(size) for _, size in changes] or [np.zeros(0)]))[::-1]
        least = top[MAX_BINS] if len(top) > MAX_BINS else 0
        self.bins = [bins[np.abs(size) > least] for bins, size in changes]
        self.exact = [
            [_at(one.sums[side], bins) for one, bins in zip(found, self.bins, strict=True)] for side in (0, 1)
        ]  # fmt: skip
        budget = mechanism.budget()
        scales = [np.full(len(bins), _scale(budget, one.table, bins)) for one, bins in zip(found, self.bins, strict=True)]
        steps = [np.full(len(bins), float(one.table.steps)) for one, bins in zip(found, self.bins, strict=True)]
        self.scale = np.concatenate(scales) if scales else np.zeros(0)
        self.means = [np.concatenate(side) / np.concatenate(steps) if scales else np.zeros(0) for side in self.exact]
        self.laplace = budget.norm == "l1"

    def __call__(self, side: int, n: int, rng: Rng) -> Floats:
        """Return [run, bin] noisy counts."""
        if self.tree:
            return np.array([self._tree(side, rng) for _ in range(n)])
        parts = []
        for one, bins, exact in zip(self.found, self.bins, self.exact[side], strict=True):
            if len(exact):
                parts.append(self._bulk(one.table, bins, np.tile(exact, n), rng).reshape(n, -1))
        return np.concatenate(parts, axis=1) if parts else np.zeros((n, 1))

    def _bulk(self, table: Table, bins: Integers, exact: Integers, rng: Rng) -> Floats:
        """Return noisy counts of some bins, drawn many times at once; a hidden one lies just below its threshold."""
        budget, n = self.mechanism.budget(), len(exact)
        if not isinstance(table, SparseTable):
            answer = self.draw(budget, replace(table, n_bins=n, joint=False), exact, rng)
            return np.asarray(answer.noisy)
        threshold = np.tile(table.threshold[bins // table.n_columns], n // len(bins))
        wide = replace(table, n_bins=n, n_columns=1, threshold=threshold, joint=False)
        answer = self.draw(budget, wide, (np.arange(n), exact), rng)
        values = threshold.astype(np.float64) - 1.0
        values[answer.bins] = answer.noisy
        return values

    def _tree(self, side: int, rng: Rng) -> Floats:
        """Return the counts of one release; a bin that was not released has a count just below its threshold."""
        budget, values = self.mechanism.budget(), []
        for one, bins in zip(self.found, self.bins, strict=True):
            table = one.table
            answer = self.draw(budget, table, one.exact(side), rng)
            if isinstance(table, TreeTable) and answer.bins is not None and len(bins):
                hidden = table.threshold[bins // table.n_columns] - 1.0
                at = np.minimum(np.searchsorted(answer.bins, bins), max(len(answer.bins) - 1, 0))
                there = answer.bins[at] == bins if len(answer.bins) else np.zeros(len(bins), dtype=bool)
                values.append(np.where(there, answer.noisy[at] if len(answer.bins) else 0.0, hidden))
        return np.concatenate(values) if values else np.zeros(1)

    def testers(self, rng: Rng, runs: int) -> dict[str, Tester]:
        """Return what tells the sides apart: plain counts, the likelihood ratio, and a classifier trained on other outputs."""
        gain = self.means[0] - self.means[1] if len(self.scale) else np.zeros(1)
        sign = np.sign(gain)
        scale = np.maximum(self.scale, 1e-12) if len(self.scale) else np.ones(1)
        inside, outside = self.means if len(self.scale) else (np.zeros(1), np.zeros(1))

        def ratio(outputs: Floats) -> Floats:
            if self.laplace:
                return np.asarray(((np.abs(outputs - outside) - np.abs(outputs - inside)) / scale).sum(axis=1))
            return np.asarray((outputs * (gain / scale**2)).sum(axis=1))

        learned = [self(side, max(runs // 4, 50), rng) for side in (0, 1)]
        return {
            "counts": lambda outputs: np.asarray((outputs * sign).sum(axis=1)),
            "likelihood_ratio": ratio,
            "classifier": trained(*learned),
        }


def _bounds(generator: Any, promise: DP, runs: int, rng: Rng) -> tuple[Score, ...]:
    """Return the lower bound on epsilon by each tester."""
    runs = max(runs // TREE_RUNS, 100) if generator.tree else runs
    drawn = [generator(side, runs, rng) for side in (0, 1)]  # one set of outputs for all testers: secure noise is slow
    scores = []
    for name, tester in generator.testers(rng, runs).items():
        taken = [0, 0]

        def outputs(side: int, n: int, _rng: Rng, tester: Tester = tester, taken: list[int] = taken) -> Floats:
            taken[side] += n
            return tester(drawn[side][taken[side] - n : taken[side]])

        found = lower_bound(outputs, n=runs, rng=rng, delta=promise.delta)
        scores.append(replace(found, name=f"audit.black_box.{name}", low=None, high=promise.epsilon, n=runs))
    return tuple(scores)


def _dependent(mechanism: Any, private: Trips, canary: pl.DataFrame, rng: Rng) -> list[str]:
    """Return the tables to which a unit adds something else when others are there: sums must be sums over units."""
    alone = Trips(canary.select(private.table.columns), private.space, private.time_zone)
    far = canary.with_columns(uid=pl.lit("other"), datetime=pl.col("datetime") - pl.duration(days=40_000))
    rest = together(private, far)
    found = counted(mechanism, (together(rest, canary), rest, alone), rng)
    wrong = []
    for one in found:
        _, change = add([one.sums[0], *((part[0], -part[1]) for part in one.sums[1:])], one.table.n_bins)
        if change.any():
            wrong.append(one.table.name)
    return wrong


def _sampler(mechanism: Any, found: list[Counted], rng: Rng, draw: twins.Draw) -> Score:
    """Measure how wide the noise really is, over what it is said to be; the worst table."""
    worst = 0.0
    budget = mechanism.budget()
    for one in found:
        table = Table(
            name=one.table.name, n_bins=QUICK_RUNS, share=one.table.share, limit=one.table.limit, steps=one.table.steps
        )
        if isinstance(one.table, TreeTable):
            table = replace(table, share=float(one.table.row_share.max()))
        noisy = draw(mechanism.budget(), table, np.zeros(QUICK_RUNS, dtype=np.int64), rng).noisy
        said = budget.deviation(table.share, table.limit)
        worst = max(worst, abs(float(np.sqrt((noisy**2).mean())) / said - 1))
    return Score(
        name="audit.sampler.scale_error", value=worst, better="lower", high=SCALE_TOLERANCE, family="audit", n=QUICK_RUNS,
        note="Relative error of the measured standard deviation of the noise against the one that was promised.",
    )  # fmt: skip


def _measured_twins(  # noqa: PLR0917
    mechanism: Any, private: Trips, probe: pl.DataFrame, found: list[Counted], runs: int, rng: Rng
) -> tuple[Twin, ...]:
    """Plant every fault in a copy of the mechanism, and say which test caught it."""
    result = []
    for fault, draw in twins.DRAWS.items():
        sampler = _sampler(mechanism, found, rng, draw)
        caught = "sampler" if sampler.value > SCALE_TOLERANCE else ""
        generator = Released(mechanism, found, draw)
        bounds = [score for score in _bounds(generator, mechanism.guarantee(), runs, rng) if score.value > (score.high or 0)]
        result.append(Twin(fault, " and ".join([*([caught] if caught else []), *(["black box"] if bounds else [])])))
    share = twins.unclipped_share(mechanism, together(private, probe), private, rng)
    result.append(Twin("no clip", "meter" if share > 1 else "", f"spends {share:.3g} times the promise"))
    shared = twins.SharedFrame(mechanism)
    result.append(Twin("clock shared", "meter" if _dependent(shared, private, probe, rng) else ""))
    result.append(Twin("person split over partitions", "refused" if _refuses_split(mechanism, private, probe, rng) else ""))
    result.append(Twin("fork after draw", "sampler" if fork_repeats(twins.CopiedBlock()) else ""))
    if fork_repeats(rng.words) and not rng.seeded:
        result.append(Twin("the mechanism's own generator repeats after a fork", ""))
    return tuple(result)


def _refuses_split(mechanism: Any, private: Trips, crowd: pl.DataFrame, rng: Rng) -> bool:
    """Whether a person whose trips come in two parts is refused before anything is drawn."""
    split = crowd if crowd["tid"].n_unique() > 1 else pl.concat([crowd, crowd.with_columns(tid=pl.col("tid") + 1)])
    half = split["tid"].unique().sort()[: split["tid"].n_unique() // 2]
    first = together(private, split.filter(pl.col("tid").is_in(half.implode())))
    second = Trips(split.filter(~pl.col("tid").is_in(half.implode())).select(private.table.columns), None, private.time_zone)
    asked = mechanism.ask({}, facts_of(private))
    asking = Asking(mechanism, [first, second], rng, key=b"audit" * 4)
    try:
        asking.exact(asked, mechanism.budget().norm)
    except GuaranteeRefused:
        return True
    return False


def _at(sums: tuple[Any, Any], bins: Any) -> Any:
    """Return the sums of these bins; 0 where nobody has one."""
    have, size = sums
    if not len(have):
        return np.zeros(len(bins), dtype=np.int64)
    at = np.minimum(np.searchsorted(have, bins), len(have) - 1)
    return np.where(have[at] == bins, size[at], 0)


def _scale(budget: Any, table: Table, bins: Any) -> Any:
    if isinstance(table, TreeTable):
        return np.array([budget.scale(float(share), table.limit) for share in table.row_share[bins // table.n_columns]])
    return budget.scale(table.share, table.limit)
