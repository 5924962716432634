"""Keep a durable, append-only record of what each population has spent; charged before data are read."""

from __future__ import annotations

import secrets
import shutil
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self

import sqlalchemy as sa

from murmurate.core.guarantee import FINER, Guarantee, NoGuarantee, to_json
from murmurate.core.ledger import populations, sqlite_file
from murmurate.core.ledger.accounts import SUMMED, Limit, Spent, limit_amount, standing
from murmurate.core.ledger.book import Book
from murmurate.core.ledger.following import plan_for_people
from murmurate.core.ledger.people import hash_people, people_digest
from murmurate.core.ledger.plan import Plan, make_plan, refuse_other_days, refuse_unaccepted, refuse_unsigned
from murmurate.core.ledger.records import REMEDY, default_who
from murmurate.core.ledger.schema import CHARGED, refuse_unguarded
from murmurate.core.ledger.state import Debit, State, debit_of
from murmurate.core.ledger.store import Store, address, work_folder
from murmurate.core.trips import Identity
from murmurate.core.work import state_folder, sweep, sweep_elsewhere
from murmurate.errors import GuaranteeRefused, LedgerDamaged, LedgerError, ParameterError, UnknownPopulation


@dataclass(frozen=True)
class Entry:
    """One line of the history: who did what, when."""

    seq: int
    at: str
    who: str
    what: str
    population: str | None
    details: dict[str, Any]


@dataclass(frozen=True)
class Verified:
    """Result of a full check."""

    n_lines: int
    n_debits: int
    digest: str


class Ledger:
    """Records what every population may spend and has spent; safe to share between threads, processes and machines.

    `url_or_path` is a file, sqlite:///path or postgresql://...; by default a file in the state folder. `who` goes into the
    history; by default user and machine.

    >>> from murmurate.core.guarantee import DP, Unit
    >>> from murmurate.core.trips import Identity
    >>> with Ledger.in_memory() as ledger:
    ...     name = ledger.population_of(Identity("f1", ("ann", "bo")), population="town", create=True)
    ...     limit = ledger.limit(name, epsilon=1.0)
    ...     promise = DP(epsilon=0.75, unit=Unit(name="user"))
    ...     debit = ledger.charge(name, promise, mechanism="ngram", parameters={}, release_id="r1")
    ...     ledger.plan(name, promise).allowed
    False
    """

    def __init__(self, url_or_path: str | Path | None = None, *, who: str | None = None) -> None:
        self._begin(Store(address(url_or_path), purpose="real"), who)

    @classmethod
    def in_memory(cls, *, who: str | None = None) -> Self:
        """Open a ledger for demos and tests that ends with the process; the only kind that takes seeded releases."""
        ledger = cls.__new__(cls)
        ledger._begin(Store(sa.URL.create("sqlite"), purpose="demo"), who)
        return ledger

    def _begin(self, store: Store, who: str | None) -> None:
        self.who = who or default_who()
        self._store = store
        self._book = Book(store)
        self._temporary: Path | None = None
        if store.in_memory:  # closed with the ledger, where nobody closes it
            weakref.finalize(self, store.close)
        with self._book.reading():
            pass  # a damaged chain is reported at once, not at the first charge
        if not store.in_memory:
            sweep(self.work_folder)  # what a killed release left of private rows does not wait for the next that spills
            sweep_elsewhere()

    # -- what it is ------------------------------------------------------------------------------------------------

    @property
    def url(self) -> str:
        """Where it lives, any password hidden."""
        return self._store.shown

    @property
    def ledger_id(self) -> str:
        return self._store.ledger_id

    @property
    def purpose(self) -> str:
        """`real`, or `demo` for ledgers in memory."""
        return self._store.purpose

    @property
    def internal_folder(self) -> Path:
        """Where what only the custodian may see is kept; made on first use, closed to everyone else."""
        if self._store.in_memory:
            if self._temporary is None:
                self._temporary = Path(tempfile.mkdtemp(prefix="murmurate-demo-"))
                weakref.finalize(self, shutil.rmtree, self._temporary, ignore_errors=True)
            return self._temporary
        if self._store.path is not None:
            folder = sqlite_file.internal_folder_beside(self._store.path)
        else:
            folder = state_folder() / "internal" / self.ledger_id
        try:
            folder.mkdir(parents=True, exist_ok=True, mode=0o700)
            if folder.stat().st_mode & 0o077:
                folder.chmod(0o700)
        except OSError as error:
            raise LedgerError(f"the internal folder {folder} cannot be made private: {error.strerror or error}.") from None
        return folder

    @property
    def work_folder(self) -> Path:
        """Where private work files of its releases lie while they are made."""
        return state_folder() / "work" if self._store.path is None else work_folder(self._store.path)

    # -- populations -----------------------------------------------------------------------------------------------

    def populations(self) -> list[str]:
        """Return the names of the populations, in the order they were made."""
        with self._book.reading() as state:
            return list(state.populations)

    def population_of(
        self, identity: Identity, *, population: str | None = None, create: bool, override_overlap: bool = False
    ) -> str:
        """Return the population a file belongs to; an unknown file, or one read by other people, is attached only if `create`.

        `population` names the expected or new one; `override_overlap` attaches a file whose people belong to another.
        """
        digest = people_digest(hash_people(identity.uids, self._store.uid_key))
        with self._book.reading() as state:
            known = state.files.get(identity.fingerprint)
            same_people = known is not None and state.populations[known].holds(identity.fingerprint, digest)
        if known is not None and same_people and population in (None, known) and not override_overlap:
            return known
        if known is not None and not same_people and not create:
            raise UnknownPopulation(
                f"this file belongs to population {known!r}, but was read with other people then (another uid column?). "
                f"Attach it again as it is read now: murmurate ledger attach {known} FILE, or Ledger.attach."
            )
        if known is None and not create:
            named = f" {population!r}" if population else ""
            raise UnknownPopulation(
                "no population is known for this file (a changed file is a new file). Attach it to the people it is "
                f"about{named}: murmurate ledger attach, or Ledger.attach(identity, population)."
            )
        # a name that is drawn says nothing of the data
        drawn = f"population-{secrets.token_hex(4)}"
        return self._attach(identity, population, drawn, create=True, override_overlap=override_overlap)

    def attach(self, identity: Identity, population: str, *, create: bool = False, override_overlap: bool = False) -> str:
        """Add a file to a population; refused where its people largely belong to another one.

        `create` makes the population if it is new; `override_overlap` accepts the overlap, which is recorded.
        """
        return self._attach(identity, population, "", create=create, override_overlap=override_overlap)

    def refuse_as_public(self, identity: Identity) -> None:
        """Refuse data declared public to a mechanism, where a population of this ledger has them or their people."""
        with self._book.writing(self.who) as page:
            found = populations.holder(page, identity, hash_people(identity.uids, self._store.uid_key))
        if found is not None:
            raise GuaranteeRefused(
                f"what was given as public data belongs to population {found!r}, or has largely the same uids: whatever a "
                "release takes from it would stand outside the promise. Give data that are public, under other uids. "
                "Nothing was spent."
            )

    def _attach(self, identity: Identity, named: str | None, drawn: str, *, create: bool, override_overlap: bool) -> str:
        if named is not None and not named.strip():
            raise ParameterError("a population needs a name.")
        hashes = hash_people(identity.uids, self._store.uid_key)
        with self._book.writing(self.who) as page:
            # between a look and the lock, somebody else may have attached the same file
            name = named or page.state.files.get(identity.fingerprint) or drawn
            populations.attach(page, identity, name, hashes=hashes, create=create, override_overlap=override_overlap)
        return name

    # -- limits and standing ---------------------------------------------------------------------------------------

    def limit(
        self,
        population: str,
        *,
        kind: str = "dp",
        unit: str = "user",
        epsilon: float | None = None,
        delta: float | None = None,
        epsilon_per_m: float | None = None,
        two_people: bool = False,
        why: str = "",
    ) -> Limit:
        """Set what one account of a population may spend; a limit below what is spent allows nothing more.

        The account is given by `kind` (dp or geoind) and `unit`, the limit by `epsilon` and `delta`, or by `epsilon_per_m`
        for geoind. With `two_people`, two people must sign every release that debits this account. Every change is
        recorded, with `why` where it is said.
        """
        amount = limit_amount(kind=kind, unit=unit, epsilon=epsilon, delta=delta, epsilon_per_m=epsilon_per_m)
        with self._book.writing(self.who) as page:
            populations.named(page.state, population)
            values: dict[str, Any] = {"kind": kind, "unit": unit, "epsilon": amount.epsilon, "delta": amount.delta}
            values |= {"two_people": True} if two_people else {}
            values |= {"why": why} if why else {}
            line = page.append("limit", population, values)
        return Limit(amount, line.who, line.at, two_people)

    def limits(self, population: str) -> list[Limit]:
        """Return the limits in force."""
        with self._book.reading() as state:
            return list(populations.named(state, population).limits.values())

    def spent(self, population: str) -> list[Spent]:
        """Return every account of a population with a charge or a limit."""
        with self._book.reading() as state:
            found = populations.named(state, population)
            charges, limits = {key: tuple(value) for key, value in found.charges.items()}, found.limit_amounts()
        accounts = [(kind, unit) for kind in SUMMED for unit in FINER["user"]]
        limited = {kind for kind, _ in limits}
        return [
            replace(
                standing(account, charges.get(account, ()), limits.get(account)),
                closed=account not in limits and account[0] in limited,
            )
            for account in accounts
            if account in charges or account in limits
        ]

    def plan(self, population: str | None, guarantee: Guarantee) -> Plan:
        """Return what a charge would do, without spending; without a population, its price alone."""
        if population is None:
            return make_plan(None, guarantee, charges={}, limits={})
        with self._book.looking() as (state, connection):
            return plan_for_people(connection, state, population, guarantee)

    # -- spending --------------------------------------------------------------------------------------------------

    def charge(
        self,
        population: str,
        guarantee: Guarantee,
        *,
        mechanism: str,
        parameters: dict[str, Any],
        release_id: str,
        accept_no_guarantee: bool = False,
        seeded: bool = False,
        signed: Sequence[str] = (),
        days_in: str | None = None,
    ) -> Debit:
        """Debit every account that the guarantee touches, or raise with nothing written; on disk when this returns.

        `mechanism`, its public `parameters` and `release_id` are recorded. `accept_no_guarantee` lets a release without
        guarantee pass; `seeded` releases are refused by real ledgers. `signed` names who signed; a limit may
        ask for two people. `days_in` is the time zone in which a promise per person-day counts days.
        """
        if seeded and self.purpose != "demo":
            raise GuaranteeRefused(
                "a seeded release can be replayed and its noise taken off, so a real ledger does not take it. Leave out "
                "the seed, or use Ledger.in_memory(). Nothing was spent."
            )
        refuse_unaccepted(guarantee, accepted=accept_no_guarantee)
        if not release_id.strip():
            raise ParameterError("a charge needs a release_id, so that the release can be verified against it.")
        with self._book.writing(self.who) as page:
            found = populations.named(page.state, population)
            if release_id in page.state.debits:
                raise LedgerError(f"release {release_id} was charged already; every release has an id of its own.")
            plan = plan_for_people(page.connection, page.state, population, guarantee)
            plan.refuse_overspending()
            refuse_unsigned(population, guarantee, found.limits, signed)
            holding = {population}.union(*(one.populations for one in plan.followed))
            zones = [page.state.populations[name].day_zones.get(guarantee.kind, set()) for name in holding]
            refuse_other_days(population, guarantee, set().union(*zones), days_in)
            values = {
                "release_id": release_id,
                "mechanism": mechanism,
                "parameters": parameters,
                "guarantee": to_json(guarantee),
                "seeded": seeded,
                "accepted_no_guarantee": bool(accept_no_guarantee and isinstance(guarantee, NoGuarantee)),
            }
            values |= {"signed": list(signed)} if signed else {}
            values |= {"days_in": days_in} if days_in and guarantee.unit.name == "user_day" else {}
            line = page.append("debit", population, values)
            page.connection.execute(CHARGED.insert().values(release_id=release_id, seq=line.seq))
        return replace(debit_of(line), notes=plan.notes)

    def finish(self, release_id: str, manifest_hash: str) -> None:
        """Record that a release was written, with its `manifest_hash`; the debit stands with or without this."""
        with self._book.writing(self.who) as page:
            debit = _debit(page.state, release_id)
            if debit.manifest_hash is not None:
                raise LedgerError(f"release {release_id} was finished already, with manifest {debit.manifest_hash}.")
            values = {"release_id": release_id, "manifest_hash": manifest_hash}
            page.append("completed", debit.population, values)

    def debit(self, release_id: str) -> Debit:
        """Return the charge of a release."""
        with self._book.reading() as state:
            return _debit(state, release_id)

    def log_rehearsal(self, population: str | None, mechanism: str, parameters: dict[str, Any]) -> None:
        """Record that a `mechanism` with these `parameters` ran on private data without a release; it costs nothing."""
        with self._book.writing(self.who) as page:
            if population is not None:
                populations.named(page.state, population)
            page.append("rehearsal", population, {"mechanism": mechanism, "parameters": parameters})

    # -- looking back and keeping safe -----------------------------------------------------------------------------

    def history(self, population: str | None = None) -> list[Entry]:
        """Return every line, or those of one population: who, when, what."""
        with self._book.connected() as connection:
            lines = self._store.read_after(connection, 0)
        return [
            Entry(line.seq, line.at, line.who, line.kind, line.population, line.values)
            for line in lines
            if population is None or line.population == population
        ]

    def backup(self, path: str | Path) -> Path:
        """Write a consistent copy to `path`: one SQLite file, itself a ledger, while others may be charging."""
        if self._store.in_memory:
            raise LedgerError("a ledger in memory is for demos and has no backup; use a file.")
        with self._book.connected() as connection:
            self._store.write_backup(connection, Path(path))
        return Path(path)

    def verify(self) -> Verified:
        """Check every line, every list of people, their key and the database itself, from the first byte on."""
        if self._store.path is not None:
            with self._book.connected():
                sqlite_file.check_pages(self._store.path)
        with self._book.connected() as connection:
            state = self._store.new_state(connection)
            for line in self._store.read_after(connection, 0):
                state.take(line)
            state.refuse_unrecorded_key()
            for population in state.populations.values():
                for file in population.files:
                    populations.people_of(connection, file)
            charged = {row.release_id: row.seq for row in connection.execute(sa.select(CHARGED))}
            if any(charged.get(release_id) != debit.seq for release_id, debit in state.debits.items()):
                raise LedgerDamaged(f"the list of charged releases does not agree with the lines. {REMEDY}")
            refuse_unguarded(connection)
        return Verified(state.seq, len(state.debits), state.digest)

    def close(self) -> None:
        """Close the database; what is on disk stays."""
        self._store.close()
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)
            self._temporary = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"Ledger({self.url!r}, purpose={self.purpose!r})"


def _debit(state: State, release_id: str) -> Debit:
    found = state.debits.get(release_id)
    if found is None:
        raise LedgerError(f"no release {release_id} was charged to this ledger. Is it the ledger the release was made with?")
    return found
