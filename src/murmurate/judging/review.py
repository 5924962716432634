"""Compare a release folder with the private file it came from, for evaluation, attacks and the report.

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
from murmurate.core.space import Integers, Places, Space
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.engine import Engine
from murmurate.errors import InputError, MurmurateError
from murmurate.judging.scoring import Evaluation, releasing_again, run_attacks, take_metrics
from murmurate.judging.second_sample import second_sample
from murmurate.judging.study.table import whole_file
from murmurate.judging.verdict import Verdict, verdict
from murmurate.mechanisms import build
from murmurate.releases import kind_of_data
from murmurate.releases.folder import Release, open_release
from murmurate.releases.kind import Kind
from murmurate.releases.manifest import Manifest

Released = Release | Trips | Payload | str | Path
"""A release, its folder, or bare data: trips, or what a mechanism returned."""


@dataclass(frozen=True)
class Review:
    """Hold a release, its originals, and which released trip came from which original where that was kept."""

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

    def take_metrics(self, **options: Any) -> Evaluation:
        """Take every metric that this kind of release allows; for `options` see `evaluate`."""
        return take_metrics(self.release.kind, self.released, self.original, **{"pairing": self.pairing, **options})

    def run_attacks(self, **options: Any) -> Evaluation:
        """Run every attack that this kind of release allows; for `options` see `attack`."""
        knows = {**self._mechanism_again(), **{key: options.pop(key) for key in ("holdout",) if key in options}}
        given = {"pairing": self.pairing, "knows": knows, **options}
        return run_attacks(self.release.kind, self.released, self.original, **given)

    def _mechanism_again(self) -> dict[str, Any]:
        """Return how to release other people by the same mechanism, where it releases no moved trips and can be built here."""
        manifest = self.release.manifest
        by_person = manifest.guarantee.unit.name != "trip"
        try:
            given = {"space": self.release.space} if self.release.space is not None else {}
            mechanism = build(manifest.mechanism, {**manifest.parameters, **given})
        except MurmurateError:
            return {"by_person": by_person}
        if mechanism.paired:
            return {"by_person": by_person}

        return releasing_again(mechanism, seeded_runs=manifest.seeded)

    def verdict(self, evaluation: Evaluation, *, attacked: Evaluation | None = None, seed: int = 0) -> Verdict:
        """Judge the release by its scores (`take_metrics`), by a second real sample, and by `attacked` (`run_attacks`)."""
        second = second_sample(
            self.release.kind, self.released, self.original, evaluation.scores, grid=evaluation.places, seed=seed
        )
        return verdict(
            evaluation, second=second, attacked=attacked, guarantee=self.release.manifest.guarantee, kind=self.release.kind
        )


def review(
    release: Release | str | Path,
    private: Trips,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    space: Space | None = None,
) -> Review:
    """Open a release beside its originals; a file it did not come from is refused.

    The `ledger` knows the source and the pairing of the release, and notes this review. `force` accepts another file than the
    one the release came from. `space` says where the places of the release are, where neither its folder nor its parameters
    do: trips on a road network name the network's file only.
    """
    folder, known = (release.folder, release.space) if isinstance(release, Release) else (Path(release), None)
    made = open_release(folder, read_space=True, space=space or known)
    note = checked(made, private, ledger, force)
    if not made.kind.identifiers:
        return Review(made, private, None, note)
    kept = made.manifest.ids == "kept"
    internal = Internal(ledger, made.manifest.model_of or made.manifest.release_id) if ledger is not None else None
    pairs = internal.pairing() if internal is not None and not kept else None
    return Review(made, private, positions(made.trips, private, pairs, kept), note)


def checked(made: Release, private: Any, ledger: Ledger | None, force: bool) -> str:
    """Refuse a file that a release did not come from, note the review in the ledger; return what could not be checked."""
    folder = made.folder
    release_id = made.manifest.model_of or made.manifest.release_id
    internal = Internal(ledger, release_id) if ledger is not None else None
    source = internal.source() if internal is not None else None
    if source is not None and source != private.identity.fingerprint and not force:
        raise InputError(
            f"{folder} was not released from this file: its fingerprint is {source[:16]}..., this file's is "
            f"{private.identity.fingerprint[:16]}...",
            remedy="give the file it came from, or --force to compare with this one all the same.",
        )
    if not force:
        _refuse_otherwise_made(made.manifest, private, internal.made_from() if internal is not None else {})
    note = "Whether this is the file the release came from could not be checked: no ledger that knows it."
    if ledger is not None and source is not None:
        ledger.log_rehearsal(ledger.debit(release_id).population, "review", {"release_id": made.manifest.release_id})
        note = ""
    return note


def evaluate(
    release: Released,
    against: Trips,
    *,
    ledger: Ledger | None = None,
    force: bool = False,
    space: Space | None = None,
    metrics: Sequence[str] | None = None,
    grid: Places | None = None,
    pairing: ArrayLike | None = None,
    workers: int | str | Engine = 2,
    seed: int = 0,
) -> Evaluation:
    """Score a release against its originals by every metric that they allow. Internal.

    `release` is a release, its folder, or bare data; `against` are the originals. The `ledger` knows the source and the
    pairing of a release; `force` accepts another file than its source. `space` says where places are, where the release
    itself does not. `metrics` names some of those that read this kind of release (default: all). `grid` is what cells mean
    for trips (default: the release's own, then the originals', then one of 250 m over the originals). `pairing[k]` is the
    position of the original of released trip k, -1 for none (default: what was kept beside the ledger). `workers` is a
    number of processes or an engine. `seed` fixes what is sampled, so that scores repeat.

    >>> table = pl.DataFrame({"uid": [1, 1, 1], "tid": [1, 1, 1], "lat": [60.1, 60.11, 60.12], "lng": [24.9, 24.9, 24.92]})
    >>> evaluation = evaluate(Trips(table), Trips(table), metrics=["visits", "duration"])
    >>> evaluation["visits.jsd"].value, evaluation.skipped["duration"]
    (0.0, 'the released trips have no timestamps')
    """
    kind, released, kept = _opened(release, against, ledger, force, space)
    pairing = kept if pairing is None else pairing
    return take_metrics(kind, released, against, grid=grid, pairing=pairing, metrics=metrics, workers=workers, seed=seed)


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
    holdout: Trips | None = None,
    seed: int = 0,
) -> Evaluation:
    """Run every attack that the data allow on a release made from these originals. Internal.

    `attacks` names some of those that read this kind of release (default: all). `options` gives keyword options to single
    attacks by name. `holdout` are trips of people who are not in the release. `release`, `against`, `ledger`, `force`,
    `space`, `pairing` and `seed` are as for `evaluate`.

    >>> table = pl.DataFrame({"uid": [1, 1, 2, 2], "tid": [1, 1, 2, 2], "lat": [60.1, 60.11, 60.2, 60.21], "lng": [24.9] * 4})
    >>> found = attack(Trips(table), Trips(table), pairing=[0, 1], attacks=["reidentify"])
    >>> found["reidentify.places.top1_k1"].value, found["reidentify.places.top1_k1"].chance
    (1.0, 0.5)
    """
    chosen: dict[str, Any] = {"attacks": attacks, "options": options, "seed": seed}
    if isinstance(release, (Release, str, Path)):
        found = review(release, against, ledger=ledger, force=force, space=space)
        kept = found.pairing if pairing is None else pairing
        return found.run_attacks(pairing=kept, **chosen, **({} if holdout is None else {"holdout": holdout}))
    knows = {} if holdout is None else {"holdout": holdout}
    return run_attacks(kind_of_data(release), release, against, pairing=pairing, knows=knows, **chosen)


def _opened(
    release: Released, against: Trips, ledger: Ledger | None, force: bool, space: Space | None
) -> tuple[Kind, Any, Integers | None]:
    """Return the kind of a release or of bare data, what it holds, and the pairing that was kept of it."""
    if not isinstance(release, (Release, str, Path)):
        return kind_of_data(release), release, None
    found = review(release, against, ledger=ledger, force=force, space=space)
    return found.release.kind, found.released, found.pairing


def _refuse_otherwise_made(manifest: Manifest, private: Any, record: Mapping[str, Any]) -> None:
    """Refuse originals that were cut into trips, or whose hours are counted, in another way than those of the release."""
    differ = []
    if "time" in private.carries() and private.time_zone != manifest.time_zone:
        differ.append(f"the release counts hours in {manifest.time_zone}, these trips in {private.time_zone}")
    known = record.get("n_points")
    if known is not None and known != private.n_points:
        how = f" with {manifest.cleaning}" if manifest.cleaning else ""
        differ.append(f"the release was made from {known:,} points{how}, these are {private.n_points:,}")
    if differ:
        raise InputError(
            f"these originals are not as they were when the release was made: {'; '.join(differ)}.",
            remedy="read and clean the file as for the release (murmurate.custody.sources.open_again does), or force the "
            "comparison: force=True, --force.",
        )


def positions(released: Trips, original: Trips, pairs: pl.DataFrame | None, kept: bool) -> Integers | None:
    """Return the position of each released trip's original, by the kept pairing or by kept identifiers."""
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
    """Write scores as plain JSON; they were computed from private data, so nobody else may read the file."""
    with whole_file(path) as temporary:
        temporary.write_text(json.dumps(values, indent=2, default=str) + "\n", encoding="utf-8")
