"""Charging a release before anything is read, or taking up an interrupted one under the charge it has."""

from __future__ import annotations

import secrets

from murmurate.core.ledger import Ledger
from murmurate.core.mechanism import Mechanism
from murmurate.core.parameters import public_parameters
from murmurate.core.trips import Identity
from murmurate.custody.internal import Internal
from murmurate.errors import InputError, MurmurateError


def charged(
    mechanism: Mechanism,
    identity: Identity,
    ledger: Ledger,
    facts: dict[str, str],
    *,
    population: str | None,
    override_overlap: bool,
    accept_no_guarantee: bool,
    seeded: bool,
) -> Internal:
    """The internal folder of a release whose charge stands from now on."""
    internal = Internal(ledger, secrets.token_hex(8))
    name = ledger.population_of(identity, population=population, create=True, override_overlap=override_overlap)
    internal.note_source(identity.fingerprint)
    try:
        for declared in getattr(mechanism, "declared_public", ()):
            ledger.refuse_as_public(declared)
        ledger.charge(
            name,
            mechanism.guarantee(),
            mechanism=mechanism.name,
            parameters={**public_parameters(mechanism), **facts},
            release_id=internal.release_id,
            accept_no_guarantee=accept_no_guarantee,
            seeded=seeded,
        )
    except MurmurateError:
        internal.drop()
        raise
    return internal


def resumed(
    mechanism: Mechanism, identity: Identity, ledger: Ledger, facts: dict[str, str], *, release_id: str, seeded: bool
) -> Internal:
    """The internal folder of a charged, unfinished fit; only what was charged for, and has kept what it drew, may go on."""
    internal, debit = Internal(ledger, release_id), ledger.debit(release_id)
    asked = {
        "the file": (internal.source(), identity.fingerprint),
        "the mechanism": (debit.mechanism, mechanism.name),
        "the parameters": (debit.parameters, {**public_parameters(mechanism), **facts}),
        "the guarantee": (debit.guarantee, mechanism.guarantee()),
        "whether noise is seeded": (debit.seeded, seeded),
    }
    other = [name for name, (known, given) in asked.items() if known != given]
    if other:
        raise InputError(
            f"release {release_id} was charged for something else: {', '.join(other)} differ.",
            "Give the same file and settings to go on, or leave out `resume` for a new fit and a new charge.",
        )
    if debit.manifest_hash is not None:
        raise InputError(f"release {release_id} is finished; there is nothing to go on with.")
    if not internal.has_unfinished:
        raise InputError(
            f"nothing is kept of release {release_id}, so what it had drawn is not known and would be drawn again.",
            "Leave out `resume` for a new fit and a new charge.",
        )
    return internal
