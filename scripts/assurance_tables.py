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

Made by `scripts/assurance_tables.py` on {day}. No private data are used: audits run on a synthetic town, attacks on releases of the
built-in city ({chosen.people} people, 7 days). Every mechanism has the settings of the demo. Where the town is too small for a unit,
epsilon is larger.

## Audits
`murmurate audit MECHANISM` repeats the audit of a mechanism.

- **Meter**: the share of the promise that the worst canary (a unit made up for the test) spends. It may be at most 1.
  It is computed exactly, without noise, and is the strongest evidence.
- **Black box**: lower bound on epsilon at 99.9 % confidence, from many outputs for two neighbouring inputs, and the claimed epsilon. The
  next column names the test that gave the bound. For geo-indistinguishability, epsilon is per metre. For k-anonymity the figure is the
  number of people missing from the smallest group. For Gaussian noise the bound uses its known shape (Nasr et al. 2023). Under pure
  epsilon the bounds of single bins are added up, because their noise is independent.
- **Sampler**: relative error of the measured noise scale; more than 0.1 fails.

| mechanism | unit | promise | meter | black box | shown by | sampler |
|---|---|---|---|---|---|---|
{chr(10).join(audits)}

A lower bound below the claim does not show that the claim is loose, because the bound grows with the number of outputs.

### Planted faults
Which test caught each fault that was planted on purpose. The column "half noise" gives in brackets the epsilon that the black box showed.
"-" means that the fault does not apply to the mechanism.

| mechanism | unit | {" | ".join(FAULTS)} |
|---|---|{"---|" * len(FAULTS)}
{chr(10).join(faults)}

### What an audit means for each family
- **Measured mechanisms** (`flock`, `dp_loc` own, `ngram`, `road_counts`, `od_counts`, `plausible` own) read the data only through noisy
  tables. The meter counts what one unit adds to these tables. The black box sees the tables themselves, more than any reader of the
  release sees.
- **Local mechanisms** (`geoind`, `geoind_predictive`, `geoind_anchors`) move each point. The black box tries to tell at which of two places
  a point was. It also tests that the noise of two people is independent. The promise for a trip, day or person is the sum over its
  points.
- **`k_anonymity`** is not differential privacy. The audit counts the people of each group in the released trips alone, by brute force.
- **`dp_ani`, `od_successive`**, and the variants own-seeded and as_published of `plausible`, promise no differential privacy. There is
  nothing to audit; attacks show what they reveal.
- **Neural networks of `dp_loc`** (`vae`, `net`) are trained by DP-SGD, and **`plausible` own-tested** compares people. `murmurate audit`
  does not run them; tests do. `tests/papers/training/test_train_audit.py` bounds the epsilon of a training, and detects copies without
  noise and without clipping. `tests/mechanisms/plausible/test_tested.py` audits one attempt and a faulty version of it.

### The deep form
`murmurate audit MECHANISM --deep --json FILE` audits every unit at three epsilons, ten times each, which takes hours. After an
interruption the same command continues. Results for `flock` on 18 November 2026: the run was interrupted after four of ninety audits,
and no fault was missed.

| unit | epsilon | meter | black box |
|---|---|---|---|
| trip | 0.5 | 0.9999 | 0.166 of 0.5 |
| trip | 2 | 0.9999 | 1.53 of 2 |
| trip | 8 | 0.9999 | 7.45 of 8 |
| user_day | 2 | 0.9998 | 1.68 of 2 |

## Attacks
The page [attacks](attacks.md) says what each adversary knows. Intervals are 95 %. Chance is what the same adversary achieves without the
release, or with real trips of other people. Mechanisms that move single points keep the times and the course of each trip. Their promise
is about the place of a point, so attackers who know whole trips are expected to succeed.

| mechanism | promise | score | value | chance |
|---|---|---|---|---|
{chr(10).join(attacks)}
"""
    )
    print(PAGE)


if __name__ == "__main__":
    main()
