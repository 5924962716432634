"""Charge a release before anything is read, or take up an interrupted one under the charge it has."""

from __future__ import annotations

import json
import logging
import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from murmurate.core.guarantee import Guarantee
from murmurate.core.ledger import Ledger
from murmurate.core.mechanism import Mechanism
from murmurate.core.parameters import public_parameters
from murmurate.custody.internal import Internal, Private
from murmurate.errors import InputError, LedgerError, MurmurateError

LOG = logging.getLogger("murmurate")
"""Where a program that uses this package hears sentences that are no errors."""


@contextmanager
def charged(
    mechanism: Mechanism,
    private: Private,
    ledger: Ledger,
    facts: dict[str, Any],
    *,
    population: str | None,
    override_overlap: bool,
    accept_no_guarantee: bool,
    seeded: bool,
    resume: str | None = None,
    release_id: str | None = None,
    signed: Sequence[str] = (),
) -> Iterator[Internal]:
    """Charge, then give the block the internal folder of the release; an error in the block says that the charge stands.

    `facts` are recorded beside the parameters. `resume` is the id of an interrupted run, which is not charged again.
    `release_id` is the id of a new release, by default a random one; the ledger takes no id twice.
    `signed` names who signed it.
    """
    identity = private.identity
    internal = Internal(ledger, resume or release_id or secrets.token_hex(8))
    parameters = {**public_parameters(mechanism), **facts}
    if resume is not None:
        _check_resumable(mechanism, private, ledger, parameters, internal, seeded=seeded)
    else:
        if release_id is not None and _is_charged(ledger, release_id):
            raise LedgerError(f"release {release_id} was charged already; every release has an id of its own.")
        name = ledger.population_of(identity, population=population, create=True, override_overlap=override_overlap)
        internal.note_source(private)
        try:
            for declared in getattr(mechanism, "declared_public", ()):
                ledger.refuse_as_public(declared)
            ledger.charge(
                name,
                mechanism.guarantee(),
                mechanism=mechanism.name,
                parameters=parameters,
                release_id=internal.release_id,
                accept_no_guarantee=accept_no_guarantee,
                seeded=seeded,
                signed=signed,
                days_in=private.time_zone,
            )
        except MurmurateError:
            if not _is_charged(ledger, internal.release_id):  # what the same order keeps that came first stays
                internal.drop()
            raise
        _say_unlimited(ledger, name, mechanism.guarantee())
    try:
        yield internal
    except SystemError as error:  # compiled code may wrap what a signal raised
        stopped = error.__cause__ or error.__context__
        told = stopped if isinstance(stopped, KeyboardInterrupt) else error
        _mark(told, internal)
        raise told from None
    except BaseException as error:  # also errors of other makers, such as a full disk, and an interruption by hand
        _mark(error, internal)
        raise


def _mark(error: BaseException, internal: Internal) -> None:
    """Note on an error after the charge which debit stands, and whether the release can go on under it."""
    error.charged = internal.release_id  # type: ignore[attr-defined]
    error.resumable = internal.has_unfinished  # type: ignore[attr-defined]


def _say_unlimited(ledger: Ledger, population: str, guarantee: Guarantee) -> None:
    """Say, on the standard error of a program that set up no logging, that nothing bounds what may be spent."""
    account = (guarantee.kind, guarantee.unit.name)
    if ledger.purpose == "demo" or guarantee.kind not in ("dp", "geoind"):
        return
    if account not in {limit.account for limit in ledger.limits(population)}:
        amount = "epsilon_per_m" if guarantee.kind == "geoind" else "epsilon"
        LOG.warning(
            "Notice: no limit is set for %s per %s of population %r, so nothing stops further releases. Set one with "
            "`murmurate ledger limit`, or in Python with ledger.limit(%r, kind=%r, unit=%r, %s=...).",
            *account, population, population, *account, amount,
        )  # fmt: skip


def _is_charged(ledger: Ledger, release_id: str) -> bool:
    try:
        ledger.debit(release_id)
    except LedgerError:
        return False
    return True


def _check_resumable(
    mechanism: Mechanism, private: Private, ledger: Ledger, parameters: dict[str, object], internal: Internal, *, seeded: bool
) -> None:
    """Refuse to go on with anything but a charged, unfinished run of the same file and settings that kept what it drew."""
    identity, release_id = private.identity, internal.release_id
    debit = ledger.debit(release_id)
    compared = {
        "the file": (internal.source(), identity.fingerprint),
        "how it is read": (
            internal.made_from().get("read"),
            json.loads(json.dumps(identity.made_with.get("read", {}), default=str)),
        ),
        # days and hours of the rounds before were counted in it
        "the time zone": (internal.made_from().get("time_zone"), private.time_zone),
        "the mechanism": (debit.mechanism, mechanism.name),
        "the parameters": (debit.parameters, parameters),
        "the guarantee": (debit.guarantee, mechanism.guarantee()),
        "whether noise is seeded": (debit.seeded, seeded),
    }
    other = [name for name, (known, given) in compared.items() if known != given]
    if other:
        raise InputError(
            f"release {release_id} was charged for something else: {', '.join(other)} differ.",
            "Give the same file and settings to resume it, or leave out `resume` for a new run and a new charge.",
        )
    if debit.manifest_hash is not None:
        raise InputError(f"release {release_id} is finished; there is nothing to resume.")
    if not internal.has_unfinished:
        raise InputError(
            f"nothing is kept of release {release_id}, so its noisy counts are not known and would be drawn a second time.",
            "Leave out `resume` for a new run and a new charge.",
        )
