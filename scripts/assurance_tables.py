#!/usr/bin/env python3
"""Write docs/audits.md: an audit of every mechanism in every unit, and every attack on a release of each.

    scripts/assurance_tables.py [--runs 4000] [--people 80] [--rows FILE]

Takes about a quarter of an hour on one core. `--rows` keeps the rows of each mechanism in a file, so that a run goes on where
another ended.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import fields, replace
from datetime import UTC, datetime
from pathlib import Path

import murmurate as mm
from murmurate import mechanisms, noise
from murmurate.core.guarantee import FINER, short_promise
from murmurate.demo import city
from murmurate.errors import InputError, MurmurateError
from murmurate.judging.audit import audit
from murmurate.judging.audit_data import town
from murmurate.judging.review import review

PAGE = Path(__file__).resolve().parent.parent / "docs" / "audits.md"
SHOWN = (
    "membership.auc", "copying.copies", "singling_out.success", "linkability.success", "inference.destination",
    "inference.home", "inference.work", "reidentify.places.top1_k4", "reidentify.timed.top1_k4", "average.found_all",
    "reconstruct.ends.imbalance.exact", "reconstruct.trips.paths", "localise.hmm_viterbi", "localise.rhythm",
)  # fmt: skip
"""Scores of attacks in the table; the page of each attack has the others."""


LOUDER = 3
"""Times that an audit is tried, each with five times the epsilon, where a town is too small to release from."""


def in_units(name: str, spaces: object) -> Iterator[tuple[str, object]]:
    """Yield the mechanism with its demo settings in every unit that it takes."""
    example = mechanisms.example(name, spaces)
    own = example.guarantee().unit.name
    if "unit" not in {field.name for field in fields(example)}:
        yield own, example
        return
    for unit in FINER["user"][::-1]:
        try:
            yield unit, replace(example, unit=unit)
        except MurmurateError:
            continue


def audit_rows(name: str, runs: int, people: object) -> Iterator[str]:
    """Yield one row for each unit that the mechanism takes."""
    for unit, mechanism in in_units(name, people.spaces()):
        for _ in range(LOUDER):
            try:
                found = audit(mechanism, runs=runs, city=people)
                break
            except InputError:  # the made-up town is too small for this unit at this epsilon
                mechanism = replace(mechanism, epsilon=5 * mechanism.epsilon)
        else:
            yield f"| `{name}` | {unit} | {short_promise(mechanism.guarantee())} | refuses the small town | | | |"
            continue
        scores = {score.name.removeprefix("audit."): score for score in found.scores}
        promise = short_promise(mechanism.guarantee())
        if not scores:
            yield f"| `{name}` | {unit} | {promise} | nothing is promised | | | |"
            continue
        meter = scores.get("meter.worst_share")
        boxes = [score for key, score in scores.items() if key.startswith("black_box")] or list(scores.values())
        worst = max(boxes, key=lambda score: score.value / score.high if score.high else score.value)
        sampler = scores.get("sampler.scale_error")
        caught = sum(bool(twin.caught_by) for twin in found.twins)
        cells = [f"`{name}`", unit, promise, f"{meter.value:.4f}" if meter else "", f"{worst.value:.3g} of {worst.high:.3g}",
                 f"{sampler.value:.3f}" if sampler else "", f"{caught} of {len(found.twins)}"]  # fmt: skip
        yield f"| {' | '.join(cells)} |" + ("" if found.passed else " **fails** |")


def attack_rows(name: str, home: object) -> Iterator[str]:
    """Yield one row for each score of an attack on a release of the built-in city."""
    mechanism = mechanisms.example(name, home.spaces())
    with mm.Ledger.in_memory() as ledger:
        made = mm.release(mechanism, home.trips, ledger=ledger, rng=noise.seeded(7), accept_no_guarantee=True)
        found = review(made, home.trips, ledger=ledger).run_attacks(seed=1)
    promise = short_promise(mechanism.guarantee())
    for score in found.scores:
        if score.name in SHOWN:
            between = f" ({score.low:.3f} to {score.high:.3f})" if score.low is not None else ""
            chance = "" if score.chance is None else f"{score.chance:.3f}"
            yield f"| `{name}` | {promise} | `{score.name}` | {score.value:.3f}{between} | {chance} |"
    if not found.scores:
        yield f"| `{name}` | {promise} | none | {' '.join(found.skipped.values())} | |"


def main() -> None:
    """Audit and attack everything, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=4_000)
    parser.add_argument("--people", type=int, default=80)
    parser.add_argument("--rows", type=Path)
    chosen = parser.parse_args()
    kept = json.loads(chosen.rows.read_text()) if chosen.rows and chosen.rows.exists() else {}
    small, home = town(), city(people=chosen.people, days=7, seed=11, interval_s=60)
    for name in mechanisms.NAMES:
        if name not in kept:
            kept[name] = [list(audit_rows(name, chosen.runs, small)), list(attack_rows(name, home))]
            if chosen.rows:
                chosen.rows.write_text(json.dumps(kept))
    audits, attacks = ([row for name in mechanisms.NAMES for row in kept[name][k]] for k in (0, 1))
    day = f"{datetime.now(UTC):%-d %B %Y}"
    PAGE.write_text(
        f"""# Audits and attacks, all mechanisms

Made by `scripts/assurance_tables.py` on {day}. No private data take part: audits run on a made-up town, attacks on releases of the
built-in city ({chosen.people} people, 7 days). Every mechanism has its demo settings, with more epsilon where the town is too small for a unit.

## Audits
`murmurate audit MECHANISM` repeats a row. **Meter**: exact share of the promise that the worst canary spends, at most 1. **Black box**: lower
bound on epsilon (per metre for geo-indistinguishability; the largest group deficit for k-anonymity) shown from {chosen.runs:,} outputs of each of two neighbours, with
95 % confidence, beside the claim. **Sampler**: relative error of the measured scale of noise, at most 0.1. **Faults**: planted ones that were caught (no
noise, half noise, no clip, clock shared, person split over partitions, fork after draw, as far as the mechanism has them).

| mechanism | unit | promise | meter | black box | sampler | faults |
|---|---|---|---|---|---|---|
{chr(10).join(audits)}

A lower bound far below the claim does not show that the claim is loose: with {chosen.runs:,} outputs no more than about ln({chosen.runs:,} / 15) can be shown.

## Attacks
What each adversary knows is on the page of [attacks](attacks.md). Intervals are 95 %. Chance is what the same adversary reaches without the
release, or with real trips of other people. Mechanisms that move single points keep times and the way of each trip; their promise is about where a
point lies, and attacks that know whole trips succeed by design.

| mechanism | promise | score | value | chance |
|---|---|---|---|---|
{chr(10).join(attacks)}
"""
    )
    print(PAGE)


if __name__ == "__main__":
    main()
