"""Write the manifest and the statement of a release: functions of public parameters and charged outputs only.

No seed, no raw count, no warning drawn from the data: the manifests of two private inputs differ in the time, the random
release name and the hashes of the data alone.
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path, PurePath, PurePosixPath
from typing import Any
from zoneinfo import ZoneInfo

from murmurate import __version__
from murmurate.core.guarantee import GeoInd, Guarantee, from_json, to_json
from murmurate.core.saved import read_object
from murmurate.errors import InputError, MurmurateError, VerifyError
from murmurate.releases import kind_of

FORMAT = 1
"""Version of the manifest's schema."""
FILE = "manifest.json"
"""File of the manifest in a release folder."""
SECURE = "secure stream"
"""Words of an assumption that does not hold for seeded releases."""
STATEMENT = "statement.md"
"""File of the statement that people read."""
LINKED = {
    "none": "Identifiers are random and differ for every trip: trips of one person cannot be joined by them.",
    "day": "Identifiers are random; the trips of one person on one day share one.",
    "user": "Identifiers are random; all trips of one person share one.",
}
"""What the statement says of identifiers, by which trips share one."""
FILE_SPACES = ("road", "zones", "stops")
"""Spaces that are written with the name of a file. A manifest names it without a folder, so that it cannot point elsewhere."""
FILE_PARAMETERS = ("library", "roads")
"""Parameters that may name a file by themselves."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """Hold what a release is, who may trust it for what, and the hashes of its files."""

    release_id: str
    """Random; the ledger knows the debit by it."""
    kind: str
    """What it holds: the `written_as` of a kind in `murmurate.releases`, such as trips, network or model."""
    mechanism: str
    parameters: dict[str, Any]
    guarantee: Guarantee
    statement: tuple[str, ...]
    cleaning: dict[str, Any] = field(default_factory=dict)
    """How private points were cleaned and split into trips: settings of `murmurate.ingest.cleaning`."""
    declared: tuple[str, ...] = ()
    """What the publisher declared public although it was looked up in the data, such as a rounded extent."""
    time_zone: str = "UTC"
    """Where hours of the day are counted; `datetime` itself is UTC."""
    link: str = "none"
    """Which trips share a uid: none, those of a day, those of a user."""
    ids: str = "pseudonyms"
    """`kept` marks a release for studies: it carries the original identifiers."""
    seeded: bool = False
    """True marks a test or a demo: whoever knows the seed can take the noise off."""
    demo: bool = False
    """True marks a release charged to a demo ledger, which forgets: nothing limits how often it is repeated."""
    model_of: str | None = None
    """For samples: the release id of the model, whose debit covers them."""
    created: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="seconds"))
    murmurate: str = __version__
    format: int = FORMAT
    files: dict[str, str] = field(default_factory=dict)
    """SHA-256 of every other file of the folder."""

    def to_json(self) -> dict[str, Any]:
        """Return plain values, in a fixed order."""
        values = asdict(self)
        values["guarantee"] = to_json(self.guarantee)
        values["statement"] = list(self.statement)
        values["declared"] = list(self.declared)
        return {"format": values.pop("format"), **values}

    @property
    def rests_on(self) -> tuple[str, ...]:
        """Return the assumptions of the promise; a seeded release cannot claim that its noise was secure."""
        said = self.guarantee.assumptions
        if not self.seeded:
            return said
        return (*(sentence for sentence in said if SECURE not in sentence), "nobody knows the seed that its noise came from")

    def text(self) -> str:
        return json.dumps(self.to_json(), indent=2, sort_keys=False, allow_nan=False) + "\n"


def read_manifest(folder: Path) -> Manifest:
    """Read the manifest of a release folder, or say why it is none."""
    path = folder / FILE
    if path.is_symlink() or not path.is_file():
        raise VerifyError(f"{folder} is not a release: it has no {FILE}.")
    try:
        values = read_object(path, "a manifest")
    except InputError as error:
        raise VerifyError(f"{path} cannot be read as a manifest: {error}") from None
    if values.get("format") != FORMAT:
        raise VerifyError(
            f"{path} has manifest format {values.get('format')!r}; this version of Murmurate reads format {FORMAT}. "
            "Use the version that wrote it."
        )
    try:
        values["guarantee"] = from_json(values["guarantee"])
        values["statement"] = tuple(values["statement"])
        values["declared"] = tuple(values.get("declared", ()))
        values["files"] = dict(values["files"])
        found = Manifest(**values)
        _check_types(found)
    except (KeyError, TypeError, AttributeError, ValueError, OSError, RecursionError, MurmurateError) as error:
        raise VerifyError(f"{path} does not follow the manifest schema: {error}.") from None
    return found


def _check_types(manifest: Manifest) -> None:
    """Refuse fields of a wrong type, and names that lead out of the folder."""
    texts = [
        getattr(manifest, name) for name in ("release_id", "kind", "mechanism", "time_zone", "link", "created", "murmurate")
    ]
    texts += [manifest.model_of or "", *manifest.statement, *manifest.files, *manifest.files.values(), *manifest.parameters]
    texts += [*manifest.declared, *manifest.cleaning, *manifest.guarantee.assumptions]
    objects = (manifest.parameters, manifest.cleaning)
    if not all(isinstance(text, str) for text in texts) or not all(isinstance(values, dict) for values in objects):
        raise TypeError("a field is not of the type it must have")
    if not re.fullmatch(r"[0-9A-Za-z_-]{1,64}", manifest.release_id + (manifest.model_of or "")):
        raise ValueError("a release id is letters and digits")
    if manifest.link not in LINKED or manifest.ids not in ("pseudonyms", "kept"):
        raise ValueError("link or ids is none of the known words")
    ZoneInfo(manifest.time_zone)
    for name in manifest.files:
        if PurePosixPath(name).is_absolute() or ".." in PurePosixPath(name).parts or "\\" in name or "\0" in name:
            raise ValueError(f"it names a file outside its folder: {name[:100]!r}")
    for key, value in manifest.parameters.items():
        kind, colon, rest = value.partition(":") if isinstance(value, str) else ("", "", "")
        named = rest if colon and kind in FILE_SPACES else value if key in FILE_PARAMETERS else ""
        if isinstance(named, str) and named != PurePath(named.replace("\\", "/")).name:
            raise ValueError(f"its parameter {key} names a file in another folder: {named[:100]!r}")


def statement_text(manifest: Manifest) -> str:
    """Write the statement: the promise first, then what it rests on and what it leaves open."""
    guarantee = manifest.guarantee
    lines = [f"# What this release promises\n\nMechanism: `{manifest.mechanism}`. {guarantee.words()}\n"]
    if manifest.seeded:
        lines.append("**This is a test or demo release: its noise came from a seed and can be removed.**\n")
    if manifest.demo:
        lines.append("**This is a demo: no lasting ledger was charged, so nothing limits how often it is repeated.**\n")
    if manifest.ids == "kept":
        lines.append("**This release keeps the original identifiers. It is for internal studies, not for publication.**\n")
    bounds = [
        f"at most {value:,} {name}"
        for name, value in (("trips", guarantee.unit.max_trips), ("points", guarantee.unit.max_points))
        if value is not None
    ]
    if bounds:
        lines.append(f"Of each unit ({guarantee.unit.words()}) {' and '.join(bounds)} were read.\n")
    if isinstance(guarantee, GeoInd):
        lines.append(f"Distances are {guarantee.metric}.\n")
    for title, sentences in (("What it assumes", manifest.rests_on), ("What to know", manifest.statement)):
        if sentences:
            lines.append(f"## {title}\n\n" + "\n".join(f"- {sentence}" for sentence in sentences) + "\n")
    if manifest.cleaning:
        lines.append("## How trips were made\n\n" + "\n".join(f"- {sentence}" for sentence in _cleaned(manifest)) + "\n")
    if manifest.declared:
        said = "\n".join(f"- {sentence}" for sentence in manifest.declared)
        lines.append(f"## Declared public by the publisher\n\n{said}\n")
    if kind_of(manifest).identifiers and manifest.ids == "pseudonyms":
        lines.append(f"## Identifiers\n\n{LINKED[manifest.link]}\n")
    lines.append("## Parameters\n\n" + "\n".join(f"- `{name}` = {value}" for name, value in manifest.parameters.items()) + "\n")
    return "\n".join(lines)


def _cleaned(manifest: Manifest) -> list[str]:
    """Say how points were cleaned; a manifest of another version may hold settings that are not known here."""
    from murmurate.ingest.cleaning import Cleaning

    try:
        cleaning = Cleaning.of(manifest.cleaning)
    except (MurmurateError, TypeError):
        return [f"`{name}` = {value}" for name, value in manifest.cleaning.items()]
    return cleaning.words() if cleaning else []


def hash_file(path: Path) -> str:
    """Return the SHA-256 of a file's bytes."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
