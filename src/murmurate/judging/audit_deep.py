"""Audit a mechanism for hours: every unit that it takes, several epsilons, many releases, several times the noise and canaries.

What was found is kept after every audit, so that a run that was interrupted goes on where it was.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from murmurate import __version__
from murmurate.core import progress
from murmurate.core.guarantee import FINER
from murmurate.core.parameters import public_parameters
from murmurate.errors import InputError, MurmurateError
from murmurate.judging.audit import audit
from murmurate.judging.audit_data import town

EFFORT = 4
"""How many times the noise and the random canaries of the quick form each audit of the deep one takes. Set by hand."""
EPSILONS = (1.0, 4.0, 0.25)
"""Factors on epsilon. More epsilon is easier to see through; less shows that noise grows as it should."""
MAX_TRIPS = 6
"""Trips of a unit that are read where a mechanism needs that bound and has none. Set by hand."""
RELEASES = 10
"""Times that every unit and epsilon is audited, each with fresh noisy answers, so with other zones and thresholds."""


def in_units(mechanism: Any) -> Iterator[Any]:
    """Yield the mechanism in every unit that it takes, the finest first."""
    if "unit" not in {field.name for field in fields(mechanism)}:
        yield mechanism
        return
    bounded = {field.name for field in fields(mechanism)} & {"max_trips"}
    for unit in FINER["user"][::-1]:
        for more in ({}, dict.fromkeys(bounded, MAX_TRIPS)):  # some need a bound on the trips of a longer unit
            try:
                yield replace(mechanism, unit=unit, **more)
                break
            except MurmurateError:
                continue


def deep_audit(
    mechanism: Any, *, kept: Path | None = None, effort: int = EFFORT, releases: int = RELEASES, city: Any = None
) -> Iterator[Mapping[str, Any]]:
    """Yield every audit as plain values as soon as it is done; those in the file `kept` are not done again.

    What cannot be audited with some settings, because the made-up town is too small for them, has a `note` and no scores.
    """
    city = city or town()
    done = _read(kept, mechanism)
    cells = [
        (release, changed)
        for release in range(releases)
        for in_unit in in_units(mechanism)
        for changed in _in_epsilons(in_unit)
    ]
    progress.report("audits", 0, len(cells))
    for number, (release, changed) in enumerate(cells, start=1):
        key = f"{release} {json.dumps(public_parameters(changed), sort_keys=True, default=str)}"
        if key not in done:
            try:
                found = audit(changed, effort=effort, city=city).to_json()
            except InputError as error:
                promise = changed.guarantee()
                found = {"unit": promise.unit.name, "parameters": public_parameters(changed), "passed": True, "scores": [],
                         "twins": [], "note": f"The made-up town cannot be released with these settings: {error}"}  # fmt: skip
            done[key] = {**found, "release": release + 1}
            if kept is not None:
                _write(kept, mechanism, done)
        progress.report("audits", number, len(cells))
        yield done[key]


def _in_epsilons(mechanism: Any) -> Iterator[Any]:
    for factor in EPSILONS:
        if factor == 1.0 or hasattr(mechanism, "epsilon"):
            try:
                yield mechanism if factor == 1.0 else replace(mechanism, epsilon=factor * mechanism.epsilon)
            except MurmurateError:  # above what the mechanism takes
                continue


def _read(kept: Path | None, mechanism: Any) -> dict[str, Any]:
    """Return the audits in the file, by what they audited; another version's are done again."""
    if kept is None or not kept.exists():
        return {}
    try:
        found = json.loads(kept.read_text(encoding="utf-8"))
        same = (found["mechanism"], found["murmurate"]) == (mechanism.name, __version__)
        return dict(found["audits"]) if same else {}
    except (OSError, ValueError, KeyError, TypeError):
        raise InputError(
            f"{kept} is not a file of a deep audit.", "name a new file, or the one that an interrupted audit wrote."
        ) from None


def _write(kept: Path, mechanism: Any, done: Mapping[str, Any]) -> None:
    text = json.dumps({"mechanism": mechanism.name, "murmurate": __version__, "audits": done}, indent=1, default=str)
    partial = kept.with_name(f"{kept.name}.part")
    partial.write_text(text + "\n", encoding="utf-8")
    partial.replace(kept)


def rows_of(audits: Sequence[Mapping[str, Any]]) -> list[tuple[str, ...]]:
    """Return one row a unit and epsilon: releases, worst meter, largest lower bound beside the claim, faults missed."""
    groups: dict[tuple[str, str], list[Mapping[str, Any]]] = {}
    for one in audits:
        groups.setdefault((one["unit"], f"{one['parameters'].get('epsilon', '')}"), []).append(one)
    rows: list[tuple[str, ...]] = []
    for (unit, epsilon), found in groups.items():
        scores = [score for one in found for score in one["scores"]]
        meter = [score["value"] for score in scores if score["name"] == "audit.meter.worst_share"]
        boxes = [(score["value"], score["high"]) for score in scores if score["name"].startswith("audit.black_box")]
        missed = sorted({twin["fault"] for one in found for twin in one["twins"] if not twin["caught_by"]})
        best = max(boxes, default=None)
        rows.append(
            (
                unit, epsilon, str(sum(bool(one["scores"]) for one in found)), f"{max(meter):.4f}" if meter else "",
                f"{best[0]:.3g} of {best[1]:.3g}" if best else "", ", ".join(missed) or ("none" if scores else "not audited"),
            )
        )  # fmt: skip
    return rows
