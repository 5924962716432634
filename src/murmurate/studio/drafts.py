"""Keep drafts beside the ledger: a closed folder each, with the recipe that page, command line and Python read alike.

The id of a draft is random, stands in addresses, and becomes the id of its release: the ledger charges no id twice, so a
draft is charged once at most, whatever is clicked how often.
"""

from __future__ import annotations

import json
import os
import re
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from murmurate.core.ledger import Ledger
from murmurate.custody.recipes import Recipe, read_recipe, to_toml

RECIPE, FACTS = "recipe.toml", "draft.json"
"""Files of a draft: the recipe, and what no recipe holds."""
RELEASE = "release"
"""Folder of what may leave, inside the folder of its draft."""
_ID = re.compile(r"[0-9a-f]{16}")
"""What ids of drafts and releases look like."""


@dataclass(frozen=True, kw_only=True)
class Draft:
    """Hold one release on its way: what the person said so far. Internal."""

    id: str
    folder: Path
    made: str
    name: str = ""
    """What the file is called on the person's disk; shown, never a path."""
    source: str | None = None
    read: Mapping[str, Any] = field(default_factory=dict)
    clean: Mapping[str, Any] = field(default_factory=dict)
    """Settings of `[clean]`."""
    declared: tuple[str, ...] = ()
    """What was looked up in the data and declared public."""
    unit: str = ""
    """The unit to protect, before a mechanism is chosen."""
    bounds: Mapping[str, int] = field(default_factory=dict)
    """`max_trips` and `max_points` of the unit, where they were given."""
    population: str | None = None
    limit: str | None = None
    area: Mapping[str, float] = field(default_factory=dict)
    """south, west, north, east and cell_m of the public area."""
    area_public: bool = False
    roads: str | None = None
    """The public road network, a file of this draft."""
    mechanism: str = ""
    parameters: Mapping[str, Any] = field(default_factory=dict)
    accept_no_guarantee: bool = False
    own_file: bool = False
    """Whether the page shows rehearsals on the own file, or the public stand-in."""
    compared: tuple[float, ...] = ()
    """Settings that are shown side by side."""
    signed: Mapping[str, str] = field(default_factory=dict)
    """Who signed, why, and who else."""

    @property
    def release_folder(self) -> Path:
        """Where what may leave will lie."""
        return self.folder / RELEASE

    def recipe(self, ledger: str | None = None) -> Recipe:
        """Return the recipe of this draft."""
        return Recipe(
            mechanism=self.mechanism,
            source=self.source,
            out=str(self.release_folder),
            ledger=ledger,
            population=self.population,
            limit=self.limit,
            accept_no_guarantee=self.accept_no_guarantee,
            parameters=self.parameters,
            read=self.read,
            clean=self.clean,
            declared=self.declared,
        )

    def internal(self, name: str) -> Any:
        """Return what a job left under this name, None where it left nothing."""
        path = self.folder / f"{name}.json"
        return json.loads(path.read_text(encoding="utf-8")) if path.is_file() else None


class Drafts:
    """Find, make, change and delete the drafts beside a ledger."""

    def __init__(self, ledger: Ledger) -> None:
        self.folder = ledger.internal_folder / "studio"
        self.folder.mkdir(mode=0o700, exist_ok=True)

    def new(self, **values: Any) -> Draft:
        """Make an empty draft in a folder of its own, closed to everyone else."""
        made = datetime.now(UTC).isoformat(timespec="seconds")
        draft_id = secrets.token_hex(8)
        draft = Draft(id=draft_id, folder=self.folder / draft_id, made=made, **values)
        draft.folder.mkdir(mode=0o700)
        return self.save(draft)

    def get(self, draft_id: str) -> Draft | None:
        """Return the draft of this id; the recipe on disk counts, so that it may be edited by hand."""
        if not _ID.fullmatch(draft_id):
            return None
        folder = self.folder / draft_id
        path = folder / FACTS
        if not path.is_file():
            return None
        values = json.loads(path.read_text(encoding="utf-8"))
        sequences = {name: tuple(values.get(name, ())) for name in ("compared", "declared")}
        draft = Draft(folder=folder, **{**values, **sequences})
        if not (folder / RECIPE).is_file():
            return draft
        recipe = read_recipe(folder / RECIPE)
        known = ("mechanism", "source", "population", "limit", "parameters", "accept_no_guarantee", "read", "clean")
        return replace(draft, **{name: getattr(recipe, name) for name in known})

    def all(self) -> list[Draft]:
        """Return every draft, the newest first."""
        found = (self.get(path.name) for path in self.folder.iterdir() if path.is_dir())
        return sorted((draft for draft in found if draft is not None), key=lambda draft: draft.made, reverse=True)

    def change(self, draft: Draft, **values: Any) -> Draft:
        """Write a draft with other values."""
        return self.save(replace(draft, **values))

    def save(self, draft: Draft) -> Draft:
        """Write a draft: the recipe as soon as there is a mechanism, and beside it what no recipe holds."""
        facts = {name: value for name, value in asdict(draft).items() if name != "folder"}
        write_closed(draft.folder / FACTS, json.dumps(facts, indent=1))
        if draft.mechanism:
            write_closed(draft.folder / RECIPE, to_toml(draft.recipe(), draft.parameters))
        return draft

    def copy(self, draft: Draft) -> Draft:
        """Make a new draft with the settings and the files of another; a file on disk gets a second name, not a copy."""
        values = {name: value for name, value in vars(draft).items() if name not in ("id", "folder", "made", "signed")}
        made = self.new(**values)
        own = [name for name in ("source", "roads") if values[name] and Path(values[name]).parent == draft.folder]
        for name in own:
            os.link(values[name], made.folder / Path(values[name]).name)
        if (draft.folder / "inspection.json").is_file():
            shutil.copy2(draft.folder / "inspection.json", made.folder)
        moved = {name: str(made.folder / Path(values[name]).name) for name in own}
        parameters = {
            name: value.replace(str(draft.folder), str(made.folder)) if isinstance(value, str) else value
            for name, value in draft.parameters.items()
        }
        return self.change(made, parameters=parameters, **moved)

    def delete(self, draft: Draft) -> None:
        """Delete a draft and its copy of the file; what was released or charged stays in the ledger."""
        shutil.rmtree(draft.folder)


def write_closed(path: Path, text: str) -> None:
    """Write a file that only its owner may read, whole or not at all."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(4)}")
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)
