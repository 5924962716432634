"""Release private trips: compute the price, charge the ledger, bound each unit, and only then let a mechanism read.

`release` and `fit` spend; `sample` costs nothing more; `rehearse` runs without a charge for the custodian's own eyes, and
what it gives cannot be written as a release.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from murmurate import noise
from murmurate.asking.rounds import is_measured
from murmurate.asking.samples import Samples
from murmurate.core.guarantee import Guarantee
from murmurate.core.ledger import Ledger
from murmurate.core.mechanism import Learner, Mechanism, Payload
from murmurate.core.parameters import public_parameters, whole
from murmurate.core.pseudonyms import Link
from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.core.work_files import NO_COPY
from murmurate.custody.charging import charged
from murmurate.custody.internal import Internal, PairingFile
from murmurate.custody.promises import checked
from murmurate.custody.reading import Private, fitted_whole, measured_model, read_privately, together
from murmurate.custody.trips_in_parts import TripsInParts
from murmurate.engine import Engine, Serial
from murmurate.engine import engine as open_engine
from murmurate.errors import InputError, LedgerError, ParameterError, UnknownPopulation
from murmurate.exports import check_formats, write_beside
from murmurate.ingest.buckets import disk_errors
from murmurate.releases.folder import DATA, Release, check_free, new_folder, open_release, seal
from murmurate.releases.manifest import FILE, Manifest, hash_file
from murmurate.releases.model import MODEL


@dataclass(frozen=True)
class Rehearsal:
    """Hold what a mechanism would have released: for the custodian alone, uncharged, never a release."""

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
    declared: Sequence[str] = (),
    confirmed: str | None = None,
    format: str | Sequence[str] = (),
    rng: noise.Randomness | None = None,
    workers: int = 1,
    engine: str | Engine | None = None,
    work: str | Path | None = None,
    release_id: str | None = None,
    resume: str | None = None,
    signed: Sequence[str] = (),
) -> Release:
    """Charge the ledger, run the mechanism on bounded private trips, and write the release folder.

    `private` are trips, or partitions of them by person. `ledger` is charged before they are read. `out` is the new folder;
    without it, a temporary one. `population` names whose budget is charged; a file nobody knows makes a population of its own,
    unless its people largely belong to another one and `override_overlap` is not given. `link` says which trips share a
    pseudonym: none, those of a day or of a user. `keep_ids` keeps uid and tid, for studies. `accept_no_guarantee` lets a
    mechanism without a guarantee run. `keep_pairing` keeps, beside the ledger, which released trip came from which original:
    pairwise scores need it. `declared` are sentences about what was looked up in the data and declared public; they are
    published with the release. `confirmed` says what weakness a person confirmed, for the ledger. `format` is csv, geojson or
    gpkg, or several: the same data once more in the folder, for tools that open no Parquet. `rng` is seeded for tests
    and demos only. `workers` is a number of processes; `engine` is an engine or its word instead, such as "dask-local:2"
    (docs/scale.md). `work` is where private work files lie: a folder, an address such as "s3://bucket/work", or "none" for no
    copy of any row; by default a folder beside the ledger.
    `release_id` is random unless it is given; the ledger charges no id twice, so an order that is repeated is charged once.
    `resume` is the id of an interrupted release whose noisy counts are kept beside the ledger: it goes on under its charge.
    `signed` names who signed the release; a limit may ask for two people.
    """
    folder = _folder(out)
    rng = rng or noise.secure()
    running = open_engine(engine or workers)
    guarantee = checked(mechanism, private, link)
    formats = check_formats(format, mechanism)
    facts = {"link": link, "ids": "kept" if keep_ids else "pseudonyms"}
    made = _made_with(private, declared)
    with (
        new_folder(folder) as temporary,
        _started(running, mechanism, private, work or ledger.work_folder),
        charged(
            mechanism,
            private,
            ledger,
            facts | made | _noted(private, confirmed),
            population=population,
            override_overlap=override_overlap,
            accept_no_guarantee=accept_no_guarantee,
            seeded=rng.seeded,
            resume=resume,
            release_id=release_id,
            signed=signed,
        ) as internal,
    ):
        resumed, work_in = resume is not None, work or ledger.work_folder
        payload = read_privately(
            mechanism, guarantee, private, rng, running, internal=internal, work_in=work_in, resumed=resumed
        )
        hashes: dict[str, str] = {}
        if isinstance(payload, Payload):
            payload.write(temporary)
        elif isinstance(payload, Samples):
            hashes = payload.write_to(temporary / DATA, emits=mechanism.emits, keep_ids=keep_ids)
        else:
            kept = PairingFile(internal) if mechanism.paired and keep_pairing and not keep_ids else None
            if isinstance(payload, Trips):
                payload = TripsInParts.whole(payload, rng, work_in, keep_ids=keep_ids)
            with kept or nullcontext():
                hashes = payload.write_to(temporary / DATA, emits=mechanism.emits, link=link, keep_ids=keep_ids, pairing=kept)
        kind = getattr(payload, "kind", "trips")
        noted = {"kind": kind, "seeded": rng.seeded, **facts, **made}
        manifest = _sealed(temporary, mechanism, private, ledger, internal, formats=formats, hashes=hashes, **noted)
    written = _finished(ledger, folder, manifest, mechanism)
    internal.forget_unfinished()
    return written


def fit(
    mechanism: Learner,
    private: Private,
    *,
    ledger: Ledger,
    out: str | Path | None = None,
    population: str | None = None,
    override_overlap: bool = False,
    accept_no_guarantee: bool = False,
    resume: str | None = None,
    signed: Sequence[str] = (),
    declared: Sequence[str] = (),
    confirmed: str | None = None,
    rng: noise.Randomness | None = None,
    workers: int = 1,
    engine: str | Engine | None = None,
    work: str | Path | None = None,
) -> Release:
    """Charge the ledger once and write a fitted model that can be sampled any number of times.

    Where the mechanism is resumable, an interrupted fit keeps beside the ledger what it has drawn; `resume` (the release
    id of its charge) goes on with it under that charge, drawing no noise twice. The other parameters are as for `release`.
    """
    if not isinstance(mechanism, Learner):
        raise ParameterError(f"{getattr(mechanism, 'name', mechanism)!r} does not learn a model; use `release` with it.")
    measured = is_measured(mechanism)
    if not measured and not hasattr(mechanism, "fit"):
        raise ParameterError(f"{mechanism.name} learns no model with these settings; use `release` with it.")
    folder = _folder(out)
    rng = rng or noise.secure()
    running = open_engine(engine or workers)
    guarantee = checked(mechanism, private, "none")
    made = _made_with(private, declared)
    with (
        new_folder(folder) as temporary,
        _started(running, mechanism, private, work or ledger.work_folder),
        charged(
            mechanism,
            private,
            ledger,
            {"kind": "model"} | made | _noted(private, confirmed),
            population=population,
            override_overlap=override_overlap,
            accept_no_guarantee=accept_no_guarantee,
            seeded=rng.seeded,
            resume=resume,
            signed=signed,
        ) as internal,
    ):
        (temporary / MODEL).mkdir()
        if measured:
            model = measured_model(
                mechanism, private, rng, internal, running, work_in=work or ledger.work_folder, resumed=resume is not None
            )
        else:
            model = fitted_whole(mechanism, guarantee, private, rng, internal)
        model.save(temporary / MODEL)
        manifest = _sealed(temporary, mechanism, private, ledger, internal, kind="model", seeded=rng.seeded, **made)
    written = _finished(ledger, folder, manifest, mechanism)
    internal.forget_unfinished()
    return written


def sample(
    model: Release | str | Path,
    *,
    n_out: int,
    out: str | Path | None = None,
    rebuild: Callable[[Manifest], Learner] | None = None,
    rng: noise.Randomness | None = None,
    workers: int = 1,
    engine: str | Engine | None = None,
) -> Release:
    """Draw `n_out` trips from a fitted model: free, under the model's own guarantee and debit.

    `model` is a fitted model or its folder. `out` is the new folder; without it, a temporary one. `rebuild` makes the
    mechanism from the model's manifest, where it is not a registered one. `rng` is seeded for tests and demos only. `workers`
    and `engine` are as for `release`.
    """
    whole("n_out", n_out)
    fitted = model if isinstance(model, Release) else open_release(model)
    if not fitted.kind.sampled:
        raise InputError(f"{fitted.folder} holds a release of kind {fitted.manifest.kind!r}, not a fitted model.")
    mechanism = (rebuild or partial(_rebuild, fitted.kind.carried_space(fitted.folder)))(fitted.manifest)
    folder = _folder(out)
    rng = rng or noise.secure()
    with new_folder(folder) as temporary:
        with open_engine(engine or workers) as running:
            drawn = Samples(mechanism.load(fitted.folder / MODEL), n_out, rng, running)
            hashes = drawn.write_to(temporary / DATA, emits=mechanism.emits)
        manifest = seal(
            temporary,
            Manifest(
                release_id=secrets.token_hex(8),
                kind="trips",
                mechanism=mechanism.name,
                parameters={**fitted.manifest.parameters, "n_out": n_out},
                guarantee=fitted.manifest.guarantee,
                statement=fitted.manifest.statement,
                cleaning=fitted.manifest.cleaning,
                declared=fitted.manifest.declared,
                time_zone=fitted.manifest.time_zone,
                seeded=fitted.manifest.seeded or rng.seeded,
                demo=fitted.manifest.demo,
                model_of=fitted.manifest.release_id,
            ),
            getattr(mechanism, "space", None),
            hashes,
        )
    return Release(folder, manifest, getattr(mechanism, "space", None))


def rehearse(
    mechanism: Mechanism, private: Trips, *, ledger: Ledger | None = None, rng: noise.Randomness | None = None
) -> Rehearsal:
    """Run a mechanism on private trips without a charge, for studies and evaluations inside.

    A `ledger` that is given notes that it happened. `rng` is seeded for tests and studies of public data only.
    """
    rng = rng or noise.secure()
    guarantee = checked(mechanism, private, "none")
    if ledger is not None:
        ledger.log_rehearsal(_known(ledger, private), mechanism.name, public_parameters(mechanism))
    drawn = read_privately(mechanism, guarantee, private, rng, Serial())
    payload = drawn if isinstance(drawn, Trips | Payload) else together(list(drawn))
    return Rehearsal(payload, guarantee, mechanism.paired)


@contextmanager
def _started(running: Engine, mechanism: Mechanism, private: Private, work_in: str | Path | None) -> Iterator[None]:
    """Use an engine in the block, and start its workers first: a cluster that cannot be used is told before the charge."""
    with running:
        if is_measured(mechanism) or not isinstance(private, Trips):
            with disk_errors(work_in):
                running.start("murmurate.asking.rounds", work_in=None if work_in == NO_COPY else work_in)
                running.files()
        yield


def _made_with(private: Private, declared: Sequence[str]) -> dict[str, Any]:
    """Return how trips were made and what was declared public, for the ledger and the manifest; only what there is."""
    made_with = private.identity.made_with
    facts = {"cleaning": dict(made_with.get("clean", {})), "declared": list(declared)}
    return {name: value for name, value in facts.items() if value}


def _noted(private: Private, confirmed: str | None) -> dict[str, str]:
    """Return what the ledger records and nobody else reads: a namespace of people, and what a person confirmed."""
    facts = {"people": private.identity.made_with.get("people"), "confirmed": confirmed}
    return {name: value for name, value in facts.items() if value is not None}


def _sealed(
    temporary: Path,
    mechanism: Mechanism,
    private: Private,
    ledger: Ledger,
    internal: Internal,
    *,
    formats: Sequence[str] = (),
    hashes: Mapping[str, str] | None = None,
    **facts: Any,
) -> Manifest:
    """Write other formats, the statement and the manifest of what a charged mechanism made."""
    facts["declared"] = tuple(facts.get("declared", ()))
    manifest = Manifest(
        release_id=internal.release_id,
        mechanism=mechanism.name,
        parameters=public_parameters(mechanism),
        guarantee=mechanism.guarantee(),
        statement=tuple(mechanism.statement()),
        time_zone=private.time_zone,
        demo=ledger.purpose == "demo",
        **facts,
    )
    space = getattr(mechanism, "space", None)
    write_beside(Release(temporary, manifest, space), formats)
    return seal(temporary, manifest, space, hashes)


def _finished(ledger: Ledger, folder: Path, manifest: Manifest, mechanism: Mechanism) -> Release:
    """Note in the ledger that a release is complete, and return it."""
    try:
        ledger.finish(manifest.release_id, hash_file(folder / FILE))
    except LedgerError as error:
        error.charged = manifest.release_id
        error.add_note(f"The release itself is whole, in {folder}; only its completion could not be noted in the ledger.")
        raise
    return Release(folder, manifest, getattr(mechanism, "space", None))


def _known(ledger: Ledger, private: Trips) -> str | None:
    """Return the population of these trips, if the ledger knows them; a rehearsal makes none."""
    try:
        return ledger.population_of(private.identity, create=False)
    except UnknownPopulation:
        return None


def _folder(out: str | Path | None) -> Path:
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="murmurate-")) / "release"
    check_free(folder)
    return folder


def _rebuild(space: Space | None, manifest: Manifest) -> Learner:
    """Build the mechanism of a model, on the space that the model carries where it carries one; a mask it always carries."""
    from murmurate.mechanisms import build

    given = {name: value for name, value in manifest.parameters.items() if name != "mask"}
    mechanism = build(manifest.mechanism, given | ({} if space is None else {"space": space}))
    if not isinstance(mechanism, Learner):
        raise InputError(f"{manifest.mechanism} is not a mechanism that learns a model.")
    return mechanism
