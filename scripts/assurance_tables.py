#!/usr/bin/env python3
"""Write docs/audits.md: an audit of every mechanism in every unit, and every attack on a release of each.

    scripts/assurance_tables.py [--people 80] [--rows FILE] [--only audits|attacks]

Takes about a quarter of an hour on one core. `--rows` keeps the rows of each mechanism in a file, so that a run goes on where
another ended.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import murmurate as mm
from murmurate import mechanisms, noise
from murmurate.core.guarantee import short_promise
from murmurate.demo import city
from murmurate.errors import InputError
from murmurate.judging.audit import audit
from murmurate.judging.audit_data import town
from murmurate.judging.audit_deep import in_units
from murmurate.judging.review import review

PAGE = Path(__file__).resolve().parent.parent / "docs" / "audits.md"
SHOWN = (
    "membership.auc", "membership.auc_of_4_releases", "copying.copies", "singling_out.success", "linkability.success", "inference.destination",
    "inference.home", "inference.work", "reidentify.places.top1_k4", "reidentify.timed.top1_k4", "average.found_all",
    "reconstruct.ends.imbalance.exact", "reconstruct.trips.paths",
    "reconstruct.lone_pairs", "localise.hmm_viterbi", "localise.rhythm",
)  # fmt: skip
"""Scores of attacks in the table; the page of each attack has the others."""


LOUDER = 3
"""Times that an audit is tried, each with five times the epsilon, where a town is too small to release from."""
FAULTS = ("no noise", "half noise", "no clip", "clock shared", "person split over partitions", "fork after draw",
          "noise shared by people", "a group of one", "groups of one person fewer")  # fmt: skip
"""Planted faults, in the order of the columns."""


def audit_rows(name: str, people: object) -> Iterator[tuple[str, str]]:
    """Yield for each unit that the mechanism takes a row of the audits and a row of the faults."""
    for mechanism in in_units(mechanisms.example(name, people.spaces())):
        unit = mechanism.guarantee().unit.name
        for _ in range(LOUDER):
            try:
                found = audit(mechanism, city=people)
                break
            except InputError:  # the made-up town is too small for this unit at this epsilon
                mechanism = replace(mechanism, epsilon=5 * mechanism.epsilon)
        else:
            yield f"| `{name}` | {unit} | {short_promise(mechanism.guarantee())} | refuses the small town | | | |", ""
            continue
        scores = {score.name.removeprefix("audit."): score for score in found.scores}
        promise = short_promise(mechanism.guarantee())
        if not scores:
            yield f"| `{name}` | {unit} | {promise} | nothing is promised | | | |", ""
            continue
        meter = scores.get("meter.worst_share")
        boxes = {key: score for key, score in scores.items() if key.startswith("black_box")} or scores
        by, worst = max(boxes.items(), key=lambda one: one[1].value)
        sampler = scores.get("sampler.scale_error")
        cells = [f"`{name}`", unit, promise, f"{meter.value:.4f}" if meter else "", f"{worst.value:.3g} of {worst.high:.3g}",
                 by.partition(".")[2].replace("_", " "), f"{sampler.value:.3f}" if sampler else ""]  # fmt: skip
        caught = {twin.fault: twin.caught_by or "**not caught**" for twin in found.twins}
        words = {"half noise": next((twin.words for twin in found.twins if twin.fault == "half noise" and twin.words), "")}
        shown = words["half noise"].removeprefix("the black box shows epsilon ")
        caught["half noise"] = caught.get("half noise", "") + (f" ({shown})" if shown else "")
        row = f"| `{name}` | {unit} | " + " | ".join(caught.get(fault) or "-" for fault in FAULTS) + " |"
        yield f"| {' | '.join(cells)} |" + ("" if found.passed else " **fails** |"), row


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
    parser.add_argument("--people", type=int, default=80)
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--only", choices=("audits", "attacks"))
    chosen = parser.parse_args()
    kept = json.loads(chosen.rows.read_text()) if chosen.rows and chosen.rows.exists() else {}
    small, home = town(), city(people=chosen.people, days=7, seed=11, interval_s=60)
    for name in mechanisms.NAMES:
        for part, made in (
            ("audits", lambda: list(audit_rows(name, small))),
            ("attacks", lambda: list(attack_rows(name, home))),
        ):
            if f"{part} {name}" not in kept and chosen.only in (None, part):
                kept[f"{part} {name}"] = made()
                if chosen.rows:
                    chosen.rows.write_text(json.dumps(kept))
    if chosen.only:
        return
    pairs = [pair for name in mechanisms.NAMES for pair in kept[f"audits {name}"]]
    audits, faults = [pair[0] for pair in pairs], [pair[1] for pair in pairs if pair[1]]
    attacks = [row for name in mechanisms.NAMES for row in kept[f"attacks {name}"]]
    day = f"{datetime.now(UTC):%-d %B %Y}"
    PAGE.write_text(
        f"""# Audits and attacks, all mechanisms

Made by `scripts/assurance_tables.py` on {day}. No private data take part: audits run on a made-up town, attacks on releases of the
built-in city ({chosen.people} people, 7 days). Every mechanism has its demo settings, with more epsilon where the town is too small for a unit.

## Audits
`murmurate audit MECHANISM` repeats a row.

- **Meter**: exact share of the promise that the worst canary spends, at most 1. It needs no noise and is the strongest evidence.
- **Black box**: lower bound on epsilon (per metre for geo-indistinguishability; people missing from the smallest group for k-anonymity),
  shown from outputs for two neighbouring inputs with 99.9 % confidence, beside the claim; and the tester that showed it. Gaussian
  noise is bounded as such (Nasr et al. 2023). Under pure epsilon the bounds of single bins add up, since their noise is independent.
- **Sampler**: relative error of the measured scale of noise, at most 0.1.

| mechanism | unit | promise | meter | black box | shown by | sampler |
|---|---|---|---|---|---|---|
{chr(10).join(audits)}

A lower bound below the claim does not show that the claim is loose: it grows with the number of outputs.

### Planted faults
Which test caught each planted fault; in brackets the epsilon that the black box showed with half the noise. "-": the mechanism has no
such fault.

| mechanism | unit | {" | ".join(FAULTS)} |
|---|---|{"---|" * len(FAULTS)}
{chr(10).join(faults)}

### What an audit means for each family
- **Measured mechanisms** (`flock`, `dp_loc` own, `ngram`, `road_counts`, `od_counts`, `plausible` own) read noisy tables alone. The meter
  counts what one unit adds to them; the black box sees the tables, which is more than any reader of the release sees.
- **Local mechanisms** (`geoind`, `geoind_predictive`, `geoind_anchors`) move each point. The black box sees one point at one of two
  places, and two people whose noise must be independent. The promise of longer units is the sum over their points.
- **`k_anonymity`** is no differential privacy: groups are counted on the released trips alone, by brute force.
- **`dp_ani`, `od_successive`**, `plausible` own-seeded and as_published promise no differential privacy. There is nothing to audit; attacks show what they reveal.
- **Networks of `dp_loc`** (`vae`, `net`) clip and noise gradients step by step (DP-SGD), and **`plausible` own-tested** compares people.
  `murmurate audit` does not run them. `tests/papers/training/test_train_audit.py` bounds epsilon of a training and catches twins without
  noise and without clipping; `tests/mechanisms/plausible/test_tested.py` audits one attempt and a broken one.

### The deep form
`murmurate audit MECHANISM --deep --json FILE` goes over units, epsilons and releases for hours; the same command goes on after an
interruption. `flock` on 18 November 2026, interrupted after four of ninety audits, no fault missed:

| unit | epsilon | meter | black box |
|---|---|---|---|
| trip | 0.5 | 0.9999 | 0.166 of 0.5 |
| trip | 2 | 0.9999 | 1.53 of 2 |
| trip | 8 | 0.9999 | 7.45 of 8 |
| user_day | 2 | 0.9998 | 1.68 of 2 |

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
