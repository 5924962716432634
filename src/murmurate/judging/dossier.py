"""Gather the evidence for one release: a public and an internal edition, for people and for machines.

The public edition is a function of the release folder and of the installed software alone. Whatever was computed from private
data (attack scores, budget history, the name of a population, who approved) is in the internal edition only.
"""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

from murmurate import __version__
from murmurate.core.guarantee import DP, GeoInd, KAnonymity, to_json
from murmurate.core.ledger import Ledger
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.judging.attack_words import attack_label
from murmurate.judging.checking import verify
from murmurate.judging.guarantee_words import (
    NOT_PROTECTED,
    composition,
    meaning,
    not_protected_by,
    publishers_task,
    rests_on_noise,
    side_channels,
)
from murmurate.judging.review import attack
from murmurate.judging.scoring import Evaluation
from murmurate.releases import kind_of
from murmurate.releases.folder import Release, open_release
from murmurate.releases.manifest import FILE, Manifest, hash_file

EUROPEAN = {
    "Singling out": ("singling_out.success", "copying.copies", "reconstruct.lone_pairs", "reconstruct.trips.count_one"),
    "Linkability": ("linkability.success", "reidentify.timed.top1_k4", "reidentify.places.top1_k4"),
    "Inference": ("inference.destination", "inference.home", "inference.work", "membership.auc"),
}
"""The three tests of Opinion 05/2014 of the Article 29 Working Party, and the scores that measure each."""


@dataclass(frozen=True)
class Approval:
    """Say who approved a release, in which role."""

    who: str
    role: str = ""
    at: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))


@dataclass(frozen=True)
class Dossier:
    """Hold both editions as plain values."""

    public: Mapping[str, Any]
    internal: Mapping[str, Any]


def gather(
    folder: str | Path,
    *,
    ledger: Ledger | None = None,
    against: Trips | None = None,
    attacked: Evaluation | None = None,
    approvals: Sequence[Approval] = (),
    force: bool = False,
) -> Dossier:
    """Gather what is known of a release: verified first, then what the ledger knows, then attacks.

    `attacked` are attacks that were run already; otherwise they run where `against`, the private trips, is given.
    """
    release = open_release(folder)
    findings = verify(folder)
    public = _public(release, findings)
    internal: dict[str, Any] = {"approvals": [vars(one) for one in approvals], "tests": [], "budget": {}, "history": []}
    if ledger is not None:
        internal |= _budget(release.manifest, ledger)
    if attacked is None and against is not None:
        attacked = attack(release, against, ledger=ledger, force=force)
    if attacked is not None:
        internal["tests"] = _european(attacked.scores)
        internal["attacks"] = [score.to_json() for score in attacked.scores]
        internal["not_measured"] = dict(attacked.skipped)
    return Dossier(public, internal)


# -- the public edition ------------------------------------------------------------------------------------------


def _public(release: Release, findings: Mapping[str, str]) -> dict[str, Any]:
    manifest = release.manifest
    return {
        "release_id": manifest.release_id,
        "made": manifest.created,
        "mechanism": manifest.mechanism,
        "kind": kind_of(manifest).name,
        "words": manifest.guarantee.words(),
        "guarantee": to_json(manifest.guarantee),
        "parameters": dict(manifest.parameters),
        "questions": _questions(manifest),
        "assessment": _assessment(manifest),
        "deployment": _deployment(manifest),
        "verified": {name: found for name, found in findings.items() if name != "debit"},
        "hashes": {**manifest.files, FILE: hash_file(release.folder / FILE)},
        "sbom": sbom(),
    }


def _questions(manifest: Manifest) -> list[dict[str, str]]:
    """Answer the questions that NIST SP 800-226 says an evaluation of a differential privacy guarantee must ask."""
    promise = manifest.guarantee
    bounds = [
        f"at most {value:,} {name}"
        for name, value in (("trips", promise.unit.max_trips), ("points", promise.unit.max_points))
        if value is not None
    ]
    unit = f"{promise.unit.words()}{'; read of each: ' + ' and '.join(bounds) if bounds else ''}"
    answers = {
        "What is the unit of privacy?": unit,
        "What are epsilon and delta, and what do they mean?": meaning(promise),
        "Which kind of guarantee is it?": promise.words(),
        "What is not protected?": " ".join([*NOT_PROTECTED, *not_protected_by(promise)]),
        "Whom must people trust?": (
            "Each person's points are moved by themselves; whoever runs the mechanism still sees the true points."
            if isinstance(promise, GeoInd)
            else f"The publisher, who {publishers_task(promise)} (central model); nobody who reads the release."
            if isinstance(promise, DP)
            else f"The publisher, who {publishers_task(promise)}; and readers, where they know more than the guarantee assumes."
        ),
        "On which assumptions does it rest?": "; ".join(manifest.rests_on) or "None beyond the mechanism itself.",
        "Which choices depended on the data?": " ".join(manifest.declared)
        or "The publisher declared none; a choice that was made by looking at the data is not covered by the guarantee.",
        "Which side channels remain?": side_channels(promise),
        "How do several releases add up?": composition(promise),
        "What must readers know about accuracy?": " ".join(manifest.statement),
        "Was the noise secure?": "No: it came from a seed, for a test or demo."
        if manifest.seeded
        else "Yes: drawn from the operating system's generator."
        if rests_on_noise(promise)
        else "The guarantee does not rest on noise. Random numbers came from the operating system's generator.",
    }
    return [{"question": question, "answer": answer} for question, answer in answers.items()]


def _assessment(manifest: Manifest) -> list[dict[str, str]]:
    """Fill the headings of ISO/IEC 27559:2022, a framework for de-identification, as far as a release can answer them."""
    seen = "Where they were measured, the figures were computed from private data and are in the internal edition."
    texts = {
        "Context assessment": "Public release: anybody may read it, combine it with other data, and keep it.",
        "Data assessment": f"Traces of people, released as {kind_of(manifest).name} by {manifest.mechanism}.",
        "Threats": f"Singling out, linkability and inference by readers with other data. {seen}",
        "Identifiability assessment": manifest.guarantee.words(),
        "Mitigation": " ".join(manifest.statement) or "As the guarantee says.",
        "De-identification governance": "Every release is debited in an append-only ledger before a row is read, and "
        "verified by hashes, guarantee and debit.",
        "After the release": "A release cannot be recalled. "
        + (
            "The costs of later releases about the same people add up."
            if rests_on_noise(manifest.guarantee)
            else "What later releases about the same people reveal together is not bounded."
        ),
    }
    return [{"heading": heading, "text": text} for heading, text in texts.items()]


FILL_IN = "to be filled in by the publisher"
"""Stands in the registry record where only the publisher knows."""
PRODUCTS = {"trips": "Synthetic data", "days": "Synthetic data", "model": "Machine learning model"}
"""Types of data products in the words of the registry, by kind of release; other kinds are summary statistics."""


def _deployment(manifest: Manifest) -> dict[str, Any]:
    """Return a record in the form of OpenDP's deployments registry, schema of 2026; what a release cannot know is left open.

    Tier 3 is the highest: it also tells the data domain, what is not protected, adjacency, accounting and implementation.
    """
    promise, kind = manifest.guarantee, kind_of(manifest).name
    parameters: dict[str, float] = {}
    variant = "Custom"
    if isinstance(promise, DP):
        variant = "Approximate DP" if promise.delta else "Pure DP"
        parameters = {"epsilon": promise.epsilon, **({"delta": promise.delta} if promise.delta else {})}
    elif isinstance(promise, GeoInd):
        parameters = {"epsilon": promise.epsilon_per_m}
    moved = isinstance(promise, (GeoInd, KAnonymity))  # trips of people, not synthetic ones
    adjacency = "added or removed" if isinstance(promise, DP) else "moved by some metres"
    settings = ", ".join(f"{name} = {value}" for name, value in manifest.parameters.items() if value is not None)
    return {
        "url_slug": f"{manifest.mechanism.replace('_', '-')}-{manifest.release_id}",
        "status": "Draft",
        "tier": 3 if isinstance(promise, (DP, GeoInd)) else 1,
        "deployment": {
            "basic": {
                "name": f"{manifest.mechanism} {manifest.release_id}",
                "data_curators": [FILL_IN],
                "intended_use": FILL_IN,
                "data_product_type": "Dataset" if moved else PRODUCTS.get(kind, "Summary statistics"),
                "data_product_region": FILL_IN,
                "description": " ".join(manifest.statement) or promise.words(),
                "publication_date": manifest.created[:10],
            },
            "dp_variant": {
                "variant_name": variant,
                "data_domain": "Traces of people: points with person, trip, time and place, or places or links in order.",
                "unprotected_quantities": "; ".join(manifest.declared) or "None was declared.",
            },
            "privacy_loss": {
                "privacy_unit": promise.unit.name.replace("_", "-"),
                "privacy_unit_details": f"Adjacent data differ in {promise.unit.words()} ({adjacency})."
                if rests_on_noise(promise)
                else "No adjacency is defined: this is not differential privacy.",
                "privacy_parameters": parameters,
                "privacy_parameters_details": promise.words(),
            },
            "deployment_model": {
                "model_name": "Central",
                "actors": f"The publisher {publishers_task(promise)} and is trusted. Readers are not.",
                "release_type": "One release",
                "release_type_details": "Further releases about the same people are recorded in the same ledger.",
                "data_source_type": "Static",
                "access_type": "Non-interactive",
            },
            "accounting": {
                "post_processing": "Models, trips and maps are made from noisy counts and public parameters alone."
                if isinstance(promise, DP)
                else "None is relied on.",
                "composition": composition(promise),
            },
            "implementation": {
                "preprocessing_and_hyperparameter_tuning": "; ".join(manifest.declared) or "None was declared.",
                "mechanisms": f"{manifest.mechanism} of murmurate {manifest.murmurate} ({settings}). {side_channels(promise)}",
                "justification": "; ".join(manifest.rests_on) or "The guarantee follows from the parameters alone.",
            },
            "administrative": {"registry_authors": [FILL_IN]},
        },
    }


def sbom() -> dict[str, Any]:
    """Return the installed software as a bill of materials in the form of CycloneDX, from package metadata alone."""
    seen: dict[str, Distribution] = {}
    todo = ["murmurate"]
    while todo:
        name = todo.pop().lower().replace("_", "-")
        if name in seen:
            continue
        try:
            found = distribution(name)
        except PackageNotFoundError:
            continue
        seen[name] = found
        todo += [_bare(line) for line in found.requires or () if "extra ==" not in line]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "metadata": {"component": {"type": "application", "name": "murmurate", "version": __version__}},
        "components": [
            {
                "type": "library",
                "name": name,
                "version": found.version,
                "purl": f"pkg:pypi/{name}@{found.version}",
                "licence": _licence(found),
            }
            for name, found in sorted(seen.items())
            if name != "murmurate"
        ]
        + [{"type": "platform", "name": "python", "version": platform.python_version()}],
    }


def _bare(requirement: str) -> str:
    for stop in " ;<>=!~[(":
        requirement = requirement.partition(stop)[0]
    return requirement.strip()


def _metadata(found: Distribution, name: str) -> str:
    return str(found.metadata[name]) if name in found.metadata else ""


def _licence(found: Distribution) -> str:
    text = _metadata(found, "License-Expression") or _metadata(found, "License")
    return str(text).strip().splitlines()[0][:60] if str(text).strip() else "see the package"


# -- the internal edition ------------------------------------------------------------------------------------------


def _budget(manifest: Manifest, ledger: Ledger) -> dict[str, Any]:
    """Return what the ledger knows: the debit of this release, what its population has spent, and its history."""
    debit = ledger.debit(manifest.model_of or manifest.release_id)
    return {
        "budget": {
            "ledger": ledger.url,
            "population": debit.population,
            "charged": debit.at[:19],
            "spent": [
                f"{one.spent} in {one.n_charges:,} charge{'' if one.n_charges == 1 else 's'}; "
                f"{'of ' if one.limit else ''}{one.ceiling}"
                for one in ledger.spent(debit.population)
            ],
            "limits": [f"{one.amount}, set by {one.who} on {one.at[:10]}" for one in ledger.limits(debit.population)],
        },
        "history": [
            {"at": entry.at, "who": entry.who, "kind": entry.what} for entry in ledger.history(debit.population)
        ],
    }  # fmt: skip


def _european(scores: Sequence[Score]) -> list[dict[str, Any]]:
    """Return the three European tests, each with the scores that measure it."""
    by_name = {score.name: score for score in scores}
    return [
        {
            "test": test,
            "scores": [{**by_name[name].to_json(), "label": attack_label(name)} for name in names if name in by_name],
        }
        for test, names in EUROPEAN.items()
    ]


def to_json_text(values: object) -> str:
    """Write plain values as JSON."""
    return json.dumps(values, indent=2, default=str, allow_nan=False) + "\n"


def to_yaml(values: Any, indent: int = 0) -> str:
    """Write plain values as YAML; every text is quoted as in JSON, which YAML reads alike.

    >>> print(to_yaml({"a": 1, "b": ["x"], "c": {"d": None}}), end="")
    a: 1
    b:
      - "x"
    c:
      d: null
    """
    pad = " " * indent
    if isinstance(values, Mapping):
        lines = []
        for key, value in values.items():
            if isinstance(value, (Mapping, list, tuple)) and value:
                lines.append(f"{pad}{key}:\n{to_yaml(value, indent + 2)}")
            else:
                lines.append(f"{pad}{key}: {_scalar(value)}\n")
        return "".join(lines)
    return "".join(f"{pad}- {_scalar(value)}\n" for value in values)


def _scalar(value: Any) -> str:
    text = "{}" if value == {} else json.dumps(value, default=str)
    # YAML 1.1 takes 1e-06 for a text; a number has a point
    return text.replace("e", ".0e", 1) if isinstance(value, float) and "e" in text and "." not in text else text
