"""The one door: price, charge, bound, and only then let a mechanism read.

`release` and `fit` spend; `sample` costs nothing more; `rehearse` runs without a charge for the custodian's own eyes, and
what it gives cannot be written as a release.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import polars as pl

from murmurate import noise, runner
from murmurate.core.bounding import bound
from murmurate.core.guarantee import DP, FINER, GeoInd, Guarantee
from murmurate.core.internal import Internal, PairingFile
from murmurate.core.ledger import Ledger
from murmurate.core.manifest import FILE, Manifest, hash_file
from murmurate.core.mechanism import Learner, Mechanism, Payload
from murmurate.core.parameters import public_parameters, whole
from murmurate.core.pseudonyms import Link, link_word, write_trips
from murmurate.core.release import DATA, Release, check_free, new_folder, open_release, seal
from murmurate.core.trips import Identity, Trips
from murmurate.errors import GuaranteeRefused, InputError, LedgerError, MurmurateError, ParameterError, VerifyError

MODEL = "model"


class Partitions(Protocol):
    """Trips too large for memory: whole people a part, validated and fingerprinted by whoever made it."""

    identity: Identity
    time_zone: str
    n_points: int

    def carries(self) -> frozenset[str]: ...

    def __iter__(self) -> Iterator[Trips]: ...


Private = Trips | Partitions


@dataclass(frozen=True)
class Rehearsal:
    """What a mechanism would have given: for the custodian alone, uncharged, never a release."""

    payload: Trips | Payload
    guarantee: Guarantee
    paired: bool
    """Whether each trip of the payload carries the uid and tid of its original."""


def release(
    mechanism: Mechanism,
    private: Private,
    *,
    ledger: Ledger,
    out: str | Path | None = None,
    population: str | None = None,
    override_overlap: bool = False,
    link: Link = "none",
    keep_ids: bool = False,
    accept_no_guarantee: bool = False,
    keep_pairing: bool = True,
    rng: noise.Randomness | None = None,
    workers: int = 1,
) -> Release:
    """Charge the ledger, run the mechanism on bounded private trips, and write the release folder.

    Without `out` the folder is a temporary one. `population` names whose budget is charged; a file nobody knows makes a
    population of its own unless its people largely belong to another one. `keep_pairing` keeps, beside the ledger, which
    released trip came from which original: pairwise scores need it.
    """
    folder = _folder(out)
    rng = rng or noise.secure()
    guarantee = _checked(mechanism, private, link)
    name = ledger.population_of(private.identity, population=population, create=True, override_overlap=override_overlap)
    release_id = _charge(mechanism, guarantee, ledger, name, accept_no_guarantee=accept_no_guarantee, seeded=rng.seeded)
    internal = Internal(ledger, release_id)
    internal.note_source(private.identity.fingerprint)
    with new_folder(folder) as temporary:
        payload = None if mechanism.local and not isinstance(private, Trips) else _applied(mechanism, guarantee, private, rng)
        if payload is None or isinstance(payload, Trips):
            parts = [payload] if payload is not None else _streamed(mechanism, guarantee, private, rng, workers)
            pairing = PairingFile(internal) if mechanism.paired and keep_pairing and not keep_ids else None
            n_points = (private if payload is None else payload).n_points
            write_trips(
                parts,
                temporary / DATA,
                emits=mechanism.emits,
                rng=rng,
                link=link,
                keep_ids=keep_ids,
                n_points=n_points,
                on_part=pairing,
            )
            if pairing is not None:
                pairing.close()
        else:
            payload.write(temporary)
        manifest = seal(
            temporary,
            _manifest(
                mechanism,
                release_id,
                kind=getattr(payload, "kind", "trips"),
                time_zone=private.time_zone,
                link=link,
                ids="kept" if keep_ids else "pseudonyms",
                seeded=rng.seeded,
            ),
        )
    ledger.finish(release_id, hash_file(folder / FILE))
    return Release(folder, manifest, getattr(mechanism, "space", None))


def fit(
    mechanism: Learner,
    private: Private,
    *,
    ledger: Ledger,
    out: str | Path | None = None,
    population: str | None = None,
    override_overlap: bool = False,
    accept_no_guarantee: bool = False,
    rng: noise.Randomness | None = None,
) -> Release:
    """Charge the ledger once and write a fitted model that can be sampled any number of times."""
    if not isinstance(mechanism, Learner):
        raise ParameterError(f"{getattr(mechanism, 'name', mechanism)!r} does not learn a model; use `release` with it.")
    folder = _folder(out)
    rng = rng or noise.secure()
    guarantee = _checked(mechanism, private, "none")
    name = ledger.population_of(private.identity, population=population, create=True, override_overlap=override_overlap)
    release_id = _charge(mechanism, guarantee, ledger, name, accept_no_guarantee=accept_no_guarantee, seeded=rng.seeded)
    Internal(ledger, release_id).note_source(private.identity.fingerprint)
    with new_folder(folder) as temporary:
        (temporary / MODEL).mkdir()
        mechanism.fit(bound(_whole(private), guarantee.unit, rng), rng).save(temporary / MODEL)
        manifest = seal(
            temporary, _manifest(mechanism, release_id, kind="model", time_zone=private.time_zone, seeded=rng.seeded)
        )
    ledger.finish(release_id, hash_file(folder / FILE))
    return Release(folder, manifest, getattr(mechanism, "space", None))


def sample(
    model: Release | str | Path,
    *,
    n_out: int,
    out: str | Path | None = None,
    rebuild: Callable[[Manifest], Learner] | None = None,
    rng: noise.Randomness | None = None,
) -> Release:
    """Draw `n_out` trips from a fitted model: free, under the model's own guarantee and debit."""
    whole("n_out", n_out)
    fitted = model if isinstance(model, Release) else open_release(model)
    if fitted.manifest.kind != "model":
        raise InputError(f"{fitted.folder} holds a release of kind {fitted.manifest.kind!r}, not a fitted model.")
    mechanism = (rebuild or _rebuild)(fitted.manifest)
    folder = _folder(out)
    rng = rng or noise.secure()
    with new_folder(folder) as temporary:
        drawn = mechanism.load(fitted.folder / MODEL).sample(n_out, rng)
        if isinstance(drawn, Trips):
            write_trips([drawn], temporary / DATA, emits=mechanism.emits, rng=rng, n_points=drawn.n_points)
        else:
            drawn.write(temporary)
        manifest = seal(
            temporary,
            Manifest(
                release_id=secrets.token_hex(8),
                kind=getattr(drawn, "kind", "trips"),
                mechanism=mechanism.name,
                parameters={**fitted.manifest.parameters, "n_out": n_out},
                guarantee=fitted.manifest.guarantee,
                statement=fitted.manifest.statement,
                time_zone=fitted.manifest.time_zone,
                seeded=fitted.manifest.seeded or rng.seeded,
                model_of=fitted.manifest.release_id,
            ),
        )
    return Release(folder, manifest, getattr(mechanism, "space", None))


def rehearse(
    mechanism: Mechanism, private: Trips, *, ledger: Ledger | None = None, rng: noise.Randomness | None = None
) -> Rehearsal:
    """Run without a charge, for studies and evaluations inside; the ledger logs that it happened."""
    rng = rng or noise.secure()
    guarantee = _checked(mechanism, private, "none")
    if ledger is not None:
        ledger.log_rehearsal(ledger.population_of(private.identity, create=True), mechanism.name, public_parameters(mechanism))
    payload = mechanism.apply(bound(private, guarantee.unit, rng), rng)
    return Rehearsal(payload, guarantee, mechanism.paired)


def verify(folder: str | Path, *, ledger: Ledger | None = None) -> dict[str, str]:
    """Check a release folder: hashes and schema, the guarantee against its parameters, the debit where a ledger is given."""
    from murmurate.mechanisms import build

    made = open_release(folder)
    manifest = made.manifest
    findings = {"files": f"{len(manifest.files)} match their hashes", "manifest": f"format {manifest.format}"}
    try:
        rebuilt = build(manifest.mechanism, manifest.parameters).guarantee()
    except MurmurateError as error:
        findings["guarantee"] = f"not recomputed here ({str(error).splitlines()[0]})"
    else:
        if rebuilt != manifest.guarantee:
            raise VerifyError(
                f"{folder}: the guarantee in the manifest is not the one its parameters give:\n"
                f"manifest: {manifest.guarantee}\nparameters: {rebuilt}"
            )
        findings["guarantee"] = f"follows from the parameters: {manifest.guarantee.words()}"
    findings["marks"] = (
        ", ".join(["seeded (a test or demo)"] * manifest.seeded + ["original identifiers"] * (manifest.ids == "kept")) or "none"
    )
    if ledger is None:
        findings["debit"] = "not looked up; give --ledger"
        return findings
    try:
        debit = ledger.debit(manifest.model_of or manifest.release_id)
    except LedgerError as error:
        raise VerifyError(f"{folder}: {error}") from None
    if debit.guarantee != manifest.guarantee:
        raise VerifyError(f"{folder}: the ledger was charged for another guarantee than the manifest states: {debit.guarantee}")
    if manifest.model_of is None and debit.manifest_hash not in (None, hash_file(Path(folder) / FILE)):
        raise VerifyError(f"{folder}: the manifest is not the one the ledger saw when the release was finished.")
    findings["debit"] = f"charged to population {debit.population!r} on {debit.at[:19]} UTC"
    return findings


def _checked(mechanism: Mechanism, private: Private, link: Link) -> Guarantee:
    """Everything that can be refused from public facts, before anything is spent."""
    link_word(link)
    missing = mechanism.needs - private.carries()
    if missing:
        raise InputError(
            f"{mechanism.name} needs {', '.join(sorted(mechanism.needs))}; these trips carry no {', '.join(sorted(missing))}."
        )
    guarantee = mechanism.guarantee()
    wanted = {"none": "point", "day": "user_day", "user": "user"}[link]
    if mechanism.paired and isinstance(guarantee, (DP, GeoInd)) and wanted not in FINER[guarantee.unit.name]:
        raise ParameterError(
            f"link={link!r} lets anyone join the trips of one {link}, so the promise must cover them together: set unit="
            f"{wanted!r} with max_trips and max_points (the cost adds up over them), or use link='none'."
        )
    return guarantee


def _charge(
    mechanism: Mechanism, guarantee: Guarantee, ledger: Ledger, name: str, *, accept_no_guarantee: bool, seeded: bool
) -> str:
    release_id = secrets.token_hex(8)
    ledger.charge(
        name,
        guarantee,
        mechanism=mechanism.name,
        parameters=public_parameters(mechanism),
        release_id=release_id,
        accept_no_guarantee=accept_no_guarantee,
        seeded=seeded,
    )
    return release_id


def _applied(mechanism: Mechanism, guarantee: Guarantee, private: Private, rng: noise.Randomness) -> Trips | Payload:
    return mechanism.apply(bound(_whole(private), guarantee.unit, rng), rng)


def _manifest(mechanism: Mechanism, release_id: str, **rest: Any) -> Manifest:
    return Manifest(
        release_id=release_id,
        mechanism=mechanism.name,
        parameters=public_parameters(mechanism),
        guarantee=mechanism.guarantee(),
        statement=tuple(mechanism.statement()),
        **rest,
    )


def _streamed(
    mechanism: Mechanism, guarantee: Guarantee, private: Private, rng: noise.Randomness, workers: int
) -> Iterator[Trips]:
    work = partial(_apply_part, mechanism, guarantee)
    parts = [private] if isinstance(private, Trips) else private
    items = ((part, rng.spawn(1)[0]) for part in parts)
    return runner.map(work, items, workers=workers, describe="releasing")


def _apply_part(mechanism: Mechanism, guarantee: Guarantee, item: tuple[Trips, noise.Randomness]) -> Trips:
    part, rng = item
    released = mechanism.apply(bound(part, guarantee.unit, rng), rng)
    if not isinstance(released, Trips):
        raise GuaranteeRefused(f"{mechanism.name} says it works on each person alone but did not return trips.")
    return released


def _whole(private: Private) -> Trips:
    """All of it in memory, for mechanisms that must see everything at once."""
    if isinstance(private, Trips):
        return private
    parts = list(private)
    return Trips(pl.concat([part.table for part in parts]), parts[0].space, private.time_zone, private.identity)


def _folder(out: str | Path | None) -> Path:
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="murmurate-")) / "release"
    check_free(folder)
    return folder


def _rebuild(manifest: Manifest) -> Learner:
    from murmurate.mechanisms import build

    mechanism = build(manifest.mechanism, manifest.parameters)
    if not isinstance(mechanism, Learner):
        raise InputError(f"{manifest.mechanism} is not a mechanism that learns a model.")
    return mechanism


__all__ = ["Partitions", "Rehearsal", "fit", "rehearse", "release", "sample", "verify"]
