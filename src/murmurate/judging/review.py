"""A release folder beside the private file it came from: what evaluate, attack and the report start from.

Everything here is for the custodian. Nothing is charged, the ledger notes that somebody looked, and nothing of it leaves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from murmurate.core.ledger import Ledger
from murmurate.core.space import Integers, Space
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.errors import InputError
from murmurate.judging import attacking, scoring
from murmurate.judging.attacking import Attacked
from murmurate.judging.scoring import Evaluation
from murmurate.releases.folder import Release, open_release
from murmurate.spaces import parse
from murmurate.spaces.flows import GEOPACKAGE, LinkFlows


@dataclass(frozen=True)
class Review:
    """A release, its originals, and which released trip came from which original where that was kept."""

    release: Release
    original: Trips
    pairing: Integers | None
    """Position of the original of each released trip, -1 for none."""
    note: str = ""
    """What could not be checked."""

    @property
    def released(self) -> Trips:
        return self.release.trips

    @property
    def network(self) -> LinkFlows:
        """What a release of a network holds."""
        return LinkFlows.read(self.release.folder)

    def evaluate(self, **options: Any) -> Evaluation:
        """Every metric that this kind of release allows; `options` go to `scoring.evaluate`."""
        if self.release.manifest.kind == "network":
            return scoring.evaluate_network(self.network, self.original)
        return scoring.evaluate(self.released, self.original, pairing=self.pairing, **options)

    def attack(self, **options: Any) -> Attacked:
        """Every attack that this kind of release allows; `options` go to `attacking.attack`."""
        target = self.network if self.release.manifest.kind == "network" else self.released
        return attacking.attack(target, self.original, pairing=self.pairing, **options)


def review(folder: str | Path, private: Trips, *, ledger: Ledger | None = None, force: bool = False) -> Review:
    """Open a release beside its originals; a file it did not come from is refused unless `force` says otherwise."""
    made = open_release(folder, parse_space=partial(_space, Path(folder)))
    release_id = made.manifest.model_of or made.manifest.release_id
    source = Internal(ledger, release_id).source() if ledger is not None else None
    if source is not None and source != private.identity.fingerprint and not force:
        raise InputError(
            f"{folder} was not released from this file: its fingerprint is {source[:16]}..., this file's is "
            f"{private.identity.fingerprint[:16]}...",
            remedy="give the file it came from, or --force to compare with this one all the same.",
        )
    note = (
        ""
        if source is not None
        else "Whether this is the file the release came from could not be checked: no ledger that knows it."
    )
    if ledger is not None and source is not None:
        ledger.log_rehearsal(ledger.debit(release_id).population, "review", {"release_id": made.manifest.release_id})
    if made.manifest.kind != "trips":
        return Review(made, private, None, note)
    pairs = Internal(ledger, release_id).pairing() if ledger is not None else None
    kept = made.manifest.ids == "kept"
    return Review(made, private, _positions(made.trips, private, None if kept else pairs, kept), note)


def evaluate(
    release: Release | Trips | str | Path, against: Trips, *, ledger: Ledger | None = None, force: bool = False, **options: Any
) -> Evaluation:
    """Every metric that the data allow, of a release (its folder, or bare trips) against its originals. Internal."""
    if isinstance(release, Trips):
        return scoring.evaluate(release, against, **options)
    return review(_folder(release), against, ledger=ledger, force=force).evaluate(**options)


def attack(
    release: Release | Trips | str | Path, against: Trips, *, ledger: Ledger | None = None, force: bool = False, **options: Any
) -> Attacked:
    """Every attack that the data allow, on a release (its folder, or bare trips) made from these originals. Internal."""
    if isinstance(release, Trips):
        return attacking.attack(release, against, **options)
    return review(_folder(release), against, ledger=ledger, force=force).attack(**options)


def _folder(release: Release | str | Path) -> Path:
    return release.folder if isinstance(release, Release) else Path(release)


def _space(folder: Path, spec: str) -> Space:
    """The public space of a release; a network release carries its own roads, wherever the file they came from is now."""
    return LinkFlows.read(folder).network if (folder / GEOPACKAGE).is_file() else parse(spec)


def _positions(released: Trips, original: Trips, pairs: pl.DataFrame | None, kept: bool) -> Integers | None:
    """Where the original of each released trip stands, by the pairing kept beside the ledger or by kept identifiers."""
    if pairs is None and not kept:
        return None
    theirs = _names(released)
    if pairs is not None:
        text = pairs.with_columns(pl.all().cast(pl.String))
        theirs = theirs.join(text, on=["uid", "tid"], how="left", maintain_order="left").select(
            uid="original_uid", tid="original_tid"
        )
    mine = _names(original).with_row_index("position")
    found = theirs.join(mine, on=["uid", "tid"], how="left", maintain_order="left")["position"]
    return found.cast(pl.Int64).fill_null(-1).to_numpy().astype(np.int64)


def _names(trips: Trips) -> pl.DataFrame:
    first = trips.offsets[:-1]
    return pl.DataFrame({name: trips.table[name].gather(first).cast(pl.String) for name in ("uid", "tid")})


def write_json(path: Path, values: object) -> None:
    """Scores as plain JSON."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(values, indent=2, default=str) + "\n", encoding="utf-8")
