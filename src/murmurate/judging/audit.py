"""Audit a mechanism: compute the exact cost of one unit, bound epsilon from outputs, and test that planted faults are caught.

Three kinds of tests, none of which reads private data. The exact meter counts what a canary adds to every table, over its
noise. Black-box tests tell neighbouring inputs apart from outputs alone: a generator makes outputs, testers turn them into one
number each, and `attacks.audit` bounds epsilon from below. Sampler tests check the noise itself. Every test also runs on twins
with a planted fault, which it has to catch: a test that cannot fail proves nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import polars as pl

from murmurate import noise
from murmurate.asking.clipping import add
from murmurate.asking.meter import Counted, counted
from murmurate.asking.rounds import Asking, facts_of, is_measured
from murmurate.asking.table import SparseTable, Table, TreeTable
from murmurate.core import progress
from murmurate.core.guarantee import GeoInd, KAnonymity, NoGuarantee, to_json
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import public_parameters, whole
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.errors import GuaranteeRefused, InputError
from murmurate.judging import twins
from murmurate.judging.audit_data import canaries, company, more_canaries, of_one_unit, people_in, several_times, together, town
from murmurate.judging.audit_local import audit_groups, audit_local
from murmurate.judging.audit_outputs import MakeTesters, Released, bounds, runs_for, testers
from murmurate.judging.audit_parts import Twin, fork_repeats

SAMPLES = 4_000
"""Numbers that a sampler test draws of each table."""
POINTS = 20_000
"""Points that a local mechanism moves for each of two places: about a second."""
TOWN_COPIES = (1, 4, 16)
"""How many times the people of the made-up town are taken, where a mechanism refuses to release fewer."""
SCALE_TOLERANCE = 0.1
"""Relative error of the measured scale of noise that a sampler test accepts; half the noise is off by 0.5."""


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
            "scores": [score.to_json() for score in self.scores],
            "twins": [vars(twin) for twin in self.twins],
            "tables": dict(self.tables),
            "note": self.note,
        }


def audit(
    mechanism: Any,
    *,
    effort: int = 1,
    runs: int | None = None,
    rng: Rng | None = None,
    city: Any = None,
    generator: Callable[..., Any] = Released,
    testers: MakeTesters = testers,
) -> Audit:
    """Audit a mechanism with its parameters on made-up people.

    `effort` times the noise and the canaries of the quick form are drawn; `runs` sets the outputs of each neighbour instead. A
    black-box test takes outputs from `generator(mechanism, counted tables, draw)` and numbers from `testers`.
    """
    whole("effort", effort)
    whole("runs", POINTS if runs is None else runs, at_least=100)
    rng, city = rng or noise.secure(), city or town()
    promise = mechanism.guarantee()
    private = people_in(getattr(mechanism, "space", None), city)
    if is_measured(mechanism):
        found = _in_a_town(mechanism, private, _Boxes(mechanism, generator, testers, effort, runs), rng)
    elif isinstance(promise, GeoInd):
        found = audit_local(mechanism, runs or effort * POINTS, rng)
    elif isinstance(promise, KAnonymity):
        found = audit_groups(mechanism, private, rng)
    else:
        said = "nothing is promised" if isinstance(promise, NoGuarantee) else "this variant reads all people at once"
        found = {"scores": (), "twins": (), "note": f"There is nothing to audit: {said}. Its attacks are in the study."}
    plain = public_parameters(mechanism)
    return Audit(mechanism.name, plain, to_json(promise), unit=promise.unit.name, **{"note": "", **found})


# -- measured mechanisms ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Boxes:
    """How black-box tests are made: by which generator and testers, and with how much noise."""

    mechanism: Any
    generator: Callable[..., Any]
    testers: MakeTesters
    effort: int
    runs: int | None

    def bounds(self, found: list[Counted], draw: twins.Draw, rng: Rng) -> tuple[Score, ...]:
        """Return the lower bounds on epsilon where noise is drawn so."""
        outputs = self.generator(self.mechanism, found, draw)
        return bounds(outputs, self.mechanism.guarantee(), self.runs or runs_for(outputs, self.effort), rng, self.testers)


def _in_a_town(mechanism: Any, private: Trips, boxes: _Boxes, rng: Rng) -> dict[str, Any]:
    """Audit a measured mechanism; where it refuses so few people, in a town with several times as many who do the same."""
    for copies in TOWN_COPIES:
        try:
            return _measured(mechanism, several_times(private, copies), boxes, rng)
        except InputError as error:
            refused = error
    raise InputError(
        f"the made-up town cannot be released with these settings, even with {TOWN_COPIES[-1]} times its people: "
        f"{refused.faults[0]}",
        "audit a larger epsilon, or larger cells or zones.",
    )


def _measured(mechanism: Any, private: Trips, boxes: _Boxes, rng: Rng) -> dict[str, Any]:
    """Audit a mechanism that reads noisy tables: meter, independence of units, black box and sampler."""
    unit = mechanism.guarantee().unit.name
    cases = {name: of_one_unit(canary, unit, private.time_zone) for name, canary in canaries(private).items()}
    probe = cases["all trips of a person" if unit == "user" else "a lone trip"]
    cases |= {
        name: of_one_unit(canary, unit, private.time_zone) for name, canary in more_canaries(private, boxes.effort - 1).items()
    }
    worst, worst_name, tables = -1.0, "", {}
    shown, shown_by, found = -1.0, "", []
    for name, canary in progress.track(cases.items(), "canaries", len(cases)):
        base = private
        here = counted(mechanism, (together(base, canary), base), rng)
        if any(isinstance(one.table, SparseTable | TreeTable) for one in here):
            base = together(private, company(canary))
            here = counted(mechanism, (together(base, canary), base), rng)
        shares = {one.table.name: one.cost(mechanism.budget().norm) for one in here}
        if sum(shares.values()) > worst:
            worst, worst_name, tables = sum(shares.values()), name, shares
        if (loss := Released(mechanism, here).loss()) > shown:  # what few bins show; the worst canary may change thousands
            shown, shown_by, found = loss, name, here
    dependent = _dependent(mechanism, private, probe, rng)
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
        *(
            replace(score, note=f"{score.note} Canary: {shown_by}.")
            for score in progress.track(boxes.bounds(found, twins.honest, rng), "black box")
        ),
        sampler,
    )  # fmt: skip
    return {"scores": scores, "tables": tables, "twins": _measured_twins(mechanism, private, probe, found, boxes, rng)}


def _dependent(mechanism: Any, private: Trips, canary: pl.DataFrame, rng: Rng) -> list[str]:
    """Return the tables to which a unit adds something else when others are there: sums must be sums over units."""
    alone = Trips(canary.select(private.table.columns), private.space, private.time_zone)
    # at another hour too: a clock that others set changes hours of the day, also where places are too coarse to change
    far = canary.with_columns(uid=pl.lit("other"), datetime=pl.col("datetime") - pl.duration(days=40_000, hours=5))
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
        table = Table(name=one.table.name, n_bins=SAMPLES, share=one.table.share, limit=one.table.limit, steps=one.table.steps)
        if isinstance(one.table, TreeTable):
            table = replace(table, share=float(one.table.row_share.max()))
        noisy = draw(mechanism.budget(), table, np.zeros(SAMPLES, dtype=np.int64), rng).noisy
        said = budget.deviation(table.share, table.limit)
        worst = max(worst, abs(float(np.sqrt((noisy**2).mean())) / said - 1))
    return Score(
        name="audit.sampler.scale_error", value=worst, better="lower", high=SCALE_TOLERANCE, family="audit", n=SAMPLES,
        note="Relative error of the measured standard deviation of the noise against the one that was promised.",
    )  # fmt: skip


def _measured_twins(  # noqa: PLR0917
    mechanism: Any, private: Trips, probe: pl.DataFrame, found: list[Counted], boxes: _Boxes, rng: Rng
) -> tuple[Twin, ...]:
    """Plant every fault in a copy of the mechanism, and say which test caught it."""
    result = []
    for fault, draw in twins.DRAWS.items():
        sampler = _sampler(mechanism, found, rng, draw)
        caught = "sampler" if sampler.value > SCALE_TOLERANCE else ""
        best = max(boxes.bounds(found, draw, rng), key=lambda score: score.value)
        seen = ["black box"] if best.value > (best.high or 0) else []
        words = f"the black box shows epsilon {best.value:.3g}"
        result.append(Twin(fault, " and ".join([*([caught] if caught else []), *seen]), words))
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
    """Whether a person whose trips come in two parts is refused before anything is drawn; a trip, where that is the unit."""
    split = crowd if crowd["tid"].n_unique() > 1 else pl.concat([crowd, crowd.with_columns(tid=pl.col("tid") + 1)])
    half = pl.col("tid").is_in(split["tid"].unique().sort()[: split["tid"].n_unique() // 2].implode())
    first = together(private, split.filter(half))
    rest = split if mechanism.guarantee().unit.name == "trip" else split.filter(~half)
    second = Trips(rest.select(private.table.columns), None, private.time_zone)
    asked = mechanism.ask({}, facts_of(private))
    asking = Asking(mechanism, [first, second], rng, key=b"audit" * 4)
    try:
        asking.exact(asked, mechanism.budget().norm)
    except GuaranteeRefused:
        return True
    return False
