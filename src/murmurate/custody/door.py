"""The one door: price, charge, bound, and only then let a mechanism read.

`release` and `fit` spend; `sample` costs nothing more; `rehearse` runs without a charge for the custodian's own eyes, and
what it gives cannot be written as a release.
"""

from __future__ import annotations

import secrets
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from murmurate import engine, noise
from murmurate.asking.rounds import is_measured
from murmurate.asking.samples import samples
from murmurate.core.guarantee import FINER, Guarantee, NoGuarantee
from murmurate.core.ledger import Ledger
from murmurate.core.mechanism import Learner, Mechanism, Payload
from murmurate.core.parameters import public_parameters, whole
from murmurate.core.pseudonyms import Link, link_word, write_trips
from murmurate.core.space import Space
from murmurate.core.trips import Trips
from murmurate.custody.charging import charged, resumed
from murmurate.custody.internal import Internal, PairingFile
from murmurate.custody.reading import Partitions, Private, asked_model, fitted_whole, made, together
from murmurate.errors import (
    InputError,
    LedgerError,
    ParameterError,
    UnknownPopulation,
)
from murmurate.releases.folder import DATA, Release, check_free, new_folder, open_release, seal
from murmurate.releases.manifest import FILE, Manifest, hash_file
from murmurate.releases.model import MODEL


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
    workers: int | engine.Engine = 1,
) -> Release:
    """Charge the ledger, run the mechanism on bounded private trips, and write the release folder.

    Without `out` the folder is a temporary one. `population` names whose budget is charged; a file nobody knows makes a
    population of its own unless its people largely belong to another one. `keep_pairing` keeps, beside the ledger, which
    released trip came from which original: pairwise scores need it.
    """
    folder = _folder(out)
    rng = rng or noise.secure()
    running = engine.engine(workers)
    guarantee = _checked(mechanism, private, link)
    facts = {"link": link, "ids": "kept" if keep_ids else "pseudonyms"}
    with (
        new_folder(folder) as temporary,
        _paid(
            mechanism,
            private,
            ledger,
            facts,
            population=population,
            override_overlap=override_overlap,
            accept_no_guarantee=accept_no_guarantee,
            seeded=rng.seeded,
        ) as internal,
        running,
    ):
        payload = made(mechanism, guarantee, private, rng, running, work_in=ledger.work_folder)
        if not isinstance(payload, Payload):
            parts = [payload] if isinstance(payload, Trips) else payload
            pairing = PairingFile(internal) if mechanism.paired and keep_pairing and not keep_ids else None
            n_points = payload.n_points if isinstance(payload, Trips) else private.n_points if mechanism.paired else None
            write_trips(
                parts,
                temporary / DATA,
                emits=mechanism.emits,
                rng=rng,
                link=link,
                keep_ids=keep_ids,
                n_points=n_points,
                on_part=pairing,
                synthetic=not isinstance(payload, Trips) and not mechanism.paired,
            )
            if pairing is not None:
                pairing.close()
        else:
            payload.write(temporary)
        manifest = seal(
            temporary,
            _manifest(
                mechanism,
                internal.release_id,
                kind=getattr(payload, "kind", "trips"),
                time_zone=private.time_zone,
                seeded=rng.seeded,
                demo=ledger.purpose == "demo",
                **facts,
            ),
        )
    _finish(ledger, folder, internal.release_id)
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
    resume: str | None = None,
    rng: noise.Randomness | None = None,
    workers: int | engine.Engine = 1,
) -> Release:
    """Charge the ledger once and write a fitted model that can be sampled any number of times.

    Where the mechanism is resumable, an interrupted fit keeps beside the ledger what it has drawn; `resume` (the release
    id of its charge) goes on with it under that charge, drawing no noise twice.
    """
    if not isinstance(mechanism, Learner):
        raise ParameterError(f"{getattr(mechanism, 'name', mechanism)!r} does not learn a model; use `release` with it.")
    asked = is_measured(mechanism)
    if not asked and not hasattr(mechanism, "fit"):
        raise ParameterError(f"{mechanism.name} learns no model with these settings; use `release` with it.")
    folder = _folder(out)
    rng = rng or noise.secure()
    running = engine.engine(workers)
    guarantee = _checked(mechanism, private, "none")
    with (
        new_folder(folder) as temporary,
        _paid(
            mechanism,
            private,
            ledger,
            {"kind": "model"},
            population=population,
            override_overlap=override_overlap,
            accept_no_guarantee=accept_no_guarantee,
            seeded=rng.seeded,
            resume=resume,
        ) as internal,
    ):
        (temporary / MODEL).mkdir()
        if asked:
            model = asked_model(
                mechanism, private, rng, internal, running, work_in=ledger.work_folder, resumed=resume is not None
            )
        else:
            model = fitted_whole(mechanism, guarantee, private, rng, internal)
        model.save(temporary / MODEL)
        manifest = seal(
            temporary,
            _manifest(
                mechanism,
                internal.release_id,
                kind="model",
                time_zone=private.time_zone,
                seeded=rng.seeded,
                demo=ledger.purpose == "demo",
            ),
        )
    _finish(ledger, folder, internal.release_id)
    internal.forget_unfinished()
    return Release(folder, manifest, getattr(mechanism, "space", None))


def sample(
    model: Release | str | Path,
    *,
    n_out: int,
    out: str | Path | None = None,
    rebuild: Callable[[Manifest], Learner] | None = None,
    rng: noise.Randomness | None = None,
    workers: int | engine.Engine = 1,
) -> Release:
    """Draw `n_out` trips from a fitted model: free, under the model's own guarantee and debit."""
    whole("n_out", n_out)
    fitted = model if isinstance(model, Release) else open_release(model)
    if not fitted.kind.sampled:
        raise InputError(f"{fitted.folder} holds a release of kind {fitted.manifest.kind!r}, not a fitted model.")
    mechanism = (rebuild or partial(_rebuild, fitted.kind.carried_space(fitted.folder)))(fitted.manifest)
    folder = _folder(out)
    rng = rng or noise.secure()
    with new_folder(folder) as temporary:
        with engine.engine(workers) as running:
            parts = samples(mechanism.load(fitted.folder / MODEL), n_out, rng, running)
            write_trips(parts, temporary / DATA, emits=mechanism.emits, rng=rng, synthetic=True)
        manifest = seal(
            temporary,
            Manifest(
                release_id=secrets.token_hex(8),
                kind="trips",
                mechanism=mechanism.name,
                parameters={**fitted.manifest.parameters, "n_out": n_out},
                guarantee=fitted.manifest.guarantee,
                statement=fitted.manifest.statement,
                time_zone=fitted.manifest.time_zone,
                seeded=fitted.manifest.seeded or rng.seeded,
                demo=fitted.manifest.demo,
                model_of=fitted.manifest.release_id,
            ),
        )
    return Release(folder, manifest, getattr(mechanism, "space", None))


def rehearse(
    mechanism: Mechanism, private: Trips, *, ledger: Ledger | None = None, rng: noise.Randomness | None = None
) -> Rehearsal:
    """Run without a charge, for studies and evaluations inside; a ledger that is given notes that it happened."""
    rng = rng or noise.secure()
    guarantee = _checked(mechanism, private, "none")
    if ledger is not None:
        ledger.log_rehearsal(_known(ledger, private), mechanism.name, public_parameters(mechanism))
    drawn = made(mechanism, guarantee, private, rng, engine.Serial())
    payload = drawn if isinstance(drawn, Trips | Payload) else together(list(drawn))
    return Rehearsal(payload, guarantee, mechanism.paired)


def _checked(mechanism: Mechanism, private: Private, link: Link) -> Guarantee:
    """Everything that can be refused from public facts, before anything is spent."""
    link_word(link)
    guarantee = mechanism.guarantee()
    needs = mechanism.needs | ({"time"} if guarantee.unit.name == "user_day" or link == "day" else set())
    missing = needs - private.carries()
    if missing:
        raise InputError(
            f"{mechanism.name} with these settings needs {', '.join(sorted(needs))}; these trips carry no "
            f"{', '.join(sorted(missing))}."
        )
    wanted = {"none": "point", "day": "user_day", "user": "user"}[link]
    if mechanism.paired and not isinstance(guarantee, NoGuarantee) and wanted not in FINER[guarantee.unit.name]:
        raise ParameterError(
            f"link={link!r} lets anyone join the trips of one {link}, so the promise must cover them together: set unit="
            f"{wanted!r} with max_trips and max_points (the cost adds up over them), or use link='none'."
        )
    return guarantee


@contextmanager
def _paid(
    mechanism: Mechanism,
    private: Private,
    ledger: Ledger,
    facts: dict[str, str],
    *,
    population: str | None,
    override_overlap: bool,
    accept_no_guarantee: bool,
    seeded: bool,
    resume: str | None = None,
) -> Iterator[Internal]:
    """Charge, then let the block read; whatever goes wrong in it says that the charge stands."""
    if resume is not None:
        internal = resumed(mechanism, private.identity, ledger, facts, release_id=resume, seeded=seeded)
    else:
        internal = charged(
            mechanism,
            private.identity,
            ledger,
            facts,
            population=population,
            override_overlap=override_overlap,
            accept_no_guarantee=accept_no_guarantee,
            seeded=seeded,
        )
    try:
        yield internal
    except Exception as error:
        setattr(error, "charged", internal.release_id)  # noqa: B010  also on errors of other makers, such as a full disk
        raise


def _finish(ledger: Ledger, folder: Path, release_id: str) -> None:
    try:
        ledger.finish(release_id, hash_file(folder / FILE))
    except LedgerError as error:
        error.charged = release_id
        error.add_note(f"The release itself is whole, in {folder}; only its completion could not be noted in the ledger.")
        raise


def _known(ledger: Ledger, private: Trips) -> str | None:
    """The population of these trips, if the ledger knows them; a rehearsal makes none."""
    try:
        return ledger.population_of(private.identity, create=False)
    except UnknownPopulation:
        return None


def _manifest(mechanism: Mechanism, release_id: str, **rest: Any) -> Manifest:
    return Manifest(
        release_id=release_id,
        mechanism=mechanism.name,
        parameters=public_parameters(mechanism),
        guarantee=mechanism.guarantee(),
        statement=tuple(mechanism.statement()),
        **rest,
    )


def _folder(out: str | Path | None) -> Path:
    folder = Path(out) if out is not None else Path(tempfile.mkdtemp(prefix="murmurate-")) / "release"
    check_free(folder)
    return folder


def _rebuild(space: Space | None, manifest: Manifest) -> Learner:
    """The mechanism of a model, on the space that the model carries where it carries one."""
    from murmurate.mechanisms import build

    mechanism = build(manifest.mechanism, manifest.parameters | ({} if space is None else {"space": space}))
    if not isinstance(mechanism, Learner):
        raise InputError(f"{manifest.mechanism} is not a mechanism that learns a model.")
    return mechanism


__all__ = ["Partitions", "Rehearsal", "fit", "rehearse", "release", "sample"]
