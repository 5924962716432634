"""A release folder beside the private file it came from: what evaluate, attack and the report start from.

Everything here is for the custodian. Nothing is charged, the ledger notes that somebody looked, and nothing of it leaves.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike

from murmurate.core.ledger import Ledger
from murmurate.core.mechanism import Payload
from murmurate.core.space import Integers, Space
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.errors import InputError
from murmurate.judging.attacking import Attacked, attack_release
from murmurate.judging.scoring import Evaluation, score_release
from murmurate.releases import kind_of_data
from murmurate.releases.folder import Release, open_release
from murmurate.spaces.grid import Grid

Released = Release | Trips | Payload | str | Path
"""A release, its folder, or bare data: trips, or what a mechanism returned."""


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
    def released(self) -> Any:
        """What the release holds, as its kind reads it: `Trips`, `LinkFlows`, ..."""
        return self.release.data

    def evaluate(self, **options: Any) -> Evaluation:
        """Take every metric that this kind of release allows; for `options` see the function `evaluate`."""
        return score_release(self.release.kind, self.released, self.original, **{"pairing": self.pairing, **options})

    def attack(self, **options: Any) -> Attacked:
        """Run every attack that this kind of release allows; for `options` see the function `attack`."""
        return attack_release(self.release.kind, self.released, self.original, **{"pairing": self.pairing, **options})


def review(
    release: Release | str | Path,
    private: Trips,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    space: Space | None = None,
) -> Review:
    """Open a release beside its originals; a file it did not come from is refused unless `force` says otherwise.

    `space` is what the release's places mean, where neither its folder nor its parameters tell: trips on a road network name
    the network's file only.
    """
    folder, known = (release.folder, release.space) if isinstance(release, Release) else (Path(release), None)
    made = open_release(folder, read_space=True, space=space or known)
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
    if not made.kind.identifiers:
        return Review(made, private, None, note)
    pairs = Internal(ledger, release_id).pairing() if ledger is not None else None
    kept = made.manifest.ids == "kept"
    return Review(made, private, _positions(made.trips, private, None if kept else pairs, kept), note)


def evaluate(
    release: Released,
    against: Trips,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    space: Space | None = None,
    metrics: Sequence[str] | None = None,
    grid: Grid | None = None,
    pairing: ArrayLike | None = None,
    workers: int = 2,
    seed: int = 0,
) -> Evaluation:
    """Score a release (its folder, or bare data) against its originals by every metric that they allow. Internal.

    `metrics` names some of those that read this kind of release (default: all). `grid` is what cells mean for trips (default:
    the release's own, then the originals', then one of 250 m over the originals). `pairing[k]` is the position of the original
    of released trip k, -1 for none (default: what was kept beside the ledger). `seed` fixes what is sampled, so that scores
    repeat. `space` tells where places are, where the release itself cannot.

    >>> table = pl.DataFrame({"uid": [1, 1, 1], "tid": [1, 1, 1], "lat": [60.1, 60.11, 60.12], "lng": [24.9, 24.9, 24.92]})
    >>> evaluation = evaluate(Trips(table), Trips(table), metrics=["visits", "duration"])
    >>> evaluation["visits.jsd"].value, evaluation.skipped["duration"]
    (0.0, 'the released trips have no timestamps')
    """
    options: dict[str, Any] = {"metrics": metrics, "grid": grid, "workers": workers, "seed": seed}
    if pairing is not None:
        options["pairing"] = pairing
    if isinstance(release, (Release, str, Path)):
        return review(release, against, ledger=ledger, force=force, space=space).evaluate(**options)
    return score_release(kind_of_data(release), release, against, **options)


def attack(
    release: Released,
    against: Trips,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    space: Space | None = None,
    attacks: Sequence[str] | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    pairing: ArrayLike | None = None,
    seed: int = 0,
) -> Attacked:
    """Run every attack that the data allow on a release (its folder, or bare data) made from these originals. Internal.

    `attacks` names some of those that read this kind of release (default: all). `options` gives keyword options to single
    attacks by name. `pairing`, `seed` and `space` are as for `evaluate`.

    >>> table = pl.DataFrame({"uid": [1, 1, 2, 2], "tid": [1, 1, 2, 2], "lat": [60.1, 60.11, 60.2, 60.21], "lng": [24.9] * 4})
    >>> found = attack(Trips(table), Trips(table), pairing=[0, 1], attacks=["reidentify"])
    >>> found["reidentify.places.top1_k1"].value, found["reidentify.places.top1_k1"].chance
    (1.0, 0.5)
    """
    given: dict[str, Any] = {"attacks": attacks, "options": options, "seed": seed}
    if pairing is not None:
        given["pairing"] = pairing
    if isinstance(release, (Release, str, Path)):
        return review(release, against, ledger=ledger, force=force, space=space).attack(**given)
    return attack_release(kind_of_data(release), release, against, **given)


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
