"""Derive the state of the ledger from its lines: populations, their files, limits and debits."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from murmurate.core.guarantee import Guarantee, from_json
from murmurate.core.ledger.accounts import Amount, Limit, accounts_of
from murmurate.core.ledger.records import REMEDY, Record
from murmurate.errors import LedgerDamaged, LedgerVersion, MurmurateError


@dataclass(frozen=True)
class Debit:
    """One charge as it stands in the ledger."""

    release_id: str
    population: str
    mechanism: str
    parameters: dict[str, Any]
    guarantee: Guarantee
    who: str
    at: str
    seq: int
    digest: str
    """Covers this line and, through the chain, every line before it."""
    seeded: bool = False
    accepted_no_guarantee: bool = False
    manifest_hash: str | None = None
    """Set once the release was finished; a debit stands whether or not it ever is."""
    notes: tuple[str, ...] = ()
    """Notes of the charge: accounts without a limit, promises that are never summed."""


def debit_of(record: Record) -> Debit:
    """Return the charge that a line records."""
    values = record.values
    return Debit(
        release_id=values["release_id"],
        population=str(record.population),
        mechanism=values["mechanism"],
        parameters=values["parameters"],
        guarantee=from_json(values["guarantee"]),
        who=record.who,
        at=record.at,
        seq=record.seq,
        digest=record.digest,
        seeded=values["seeded"],
        accepted_no_guarantee=values["accepted_no_guarantee"],
    )


@dataclass(frozen=True)
class Attachment:
    """One file of a population."""

    fingerprint: str
    seq: int
    people_digest: str


@dataclass
class Population:
    """People who share one budget, whatever files they are in."""

    name: str
    at: str
    who: str
    files: list[Attachment] = field(default_factory=list)
    limits: dict[tuple[str, str], Limit] = field(default_factory=dict)
    charges: dict[tuple[str, str], list[Guarantee]] = field(default_factory=dict)
    day_zones: dict[str, set[str]] = field(default_factory=dict)
    """Time zones in which person-days were counted, by kind of guarantee; older lines do not tell."""

    def holds(self, fingerprint: str, people_digest: str) -> bool:
        """Return whether this file was attached with exactly these people."""
        return any((file.fingerprint, file.people_digest) == (fingerprint, people_digest) for file in self.files)

    def limit_amounts(self) -> dict[tuple[str, str], Amount]:
        """Return the limits in force."""
        return {account: limit.amount for account, limit in self.limits.items()}


@dataclass
class State:
    """The ledger up to line `seq`; lines are taken in order, each checked against the one before."""

    ledger_id: str
    purpose: str
    uid_key_sha256: str
    """Of the key the people are hashed under; a line must say the same."""
    key_recorded: bool = False
    seq: int = 0
    digest: str = ""
    populations: dict[str, Population] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    """Population by fingerprint."""
    debits: dict[str, Debit] = field(default_factory=dict)
    shared: dict[frozenset[str], bool] = field(default_factory=dict)
    """Pairs of populations with common hashes: True where these are the same people, False where somebody said they are not."""
    unchecked: set[str] = field(default_factory=set)
    """Populations with a file attached before lines told of common people."""

    def may_share(self, first: str, second: str) -> bool:
        """Return whether two populations have people in common, or may have, as far as the lines tell."""
        return self.shared.get(frozenset((first, second)), first in self.unchecked or second in self.unchecked)

    def take(self, record: Record) -> None:
        """Check the next line and let it count; an unknown kind is refused, never skipped."""
        record.check_follows(self.seq, self.digest or self.ledger_id)
        reader = _READERS.get(record.kind)
        if reader is None:
            raise LedgerVersion(f"line {record.seq} of the ledger is of an unknown kind {record.kind!r}. Update Murmurate.")
        if (record.seq == 1) != (record.kind == "created"):
            raise LedgerDamaged(f"line {record.seq} of the ledger is of kind {record.kind}; its first line is lost. {REMEDY}")
        try:
            reader(self, record, record.values)
        except LedgerDamaged:
            raise
        except (KeyError, TypeError, ValueError, MurmurateError) as error:
            raise LedgerDamaged(f"line {record.seq} of the ledger ({record.kind}) makes no sense: {error}. {REMEDY}") from error
        self.seq, self.digest = record.seq, record.digest

    def _created(self, record: Record, values: dict[str, Any]) -> None:
        if (values["ledger_id"], values["purpose"]) != (self.ledger_id, self.purpose):
            raise LedgerDamaged(f"the ledger's first line belongs to another ledger or purpose. {REMEDY}")
        if "uid_key_sha256" in values:  # before version 3 it had a line of its own, written by the migration
            self._keyed(record, values)

    def _keyed(self, record: Record, values: dict[str, Any]) -> None:
        if values["uid_key_sha256"] != self.uid_key_sha256:
            raise LedgerDamaged(
                f"the key under which people are hashed is not the one line {record.seq} of the ledger tells of, so that "
                f"nobody already in it would be known again. {REMEDY}"
            )
        self.key_recorded = True

    def refuse_unrecorded_key(self) -> None:
        """Refuse a key that no line records; called after all lines."""
        if not self.key_recorded:
            raise LedgerDamaged(f"no line of the ledger tells of the key under which people are hashed. {REMEDY}")

    def _population(self, record: Record, values: dict[str, Any]) -> None:
        self.populations[values["name"]] = Population(values["name"], record.at, record.who)

    def _attached(self, record: Record, values: dict[str, Any]) -> None:
        file = Attachment(values["fingerprint"], record.seq, values["people_digest"])
        self._of(record).files.append(file)
        name = self.files[file.fingerprint] = self._of(record).name
        if "shared" not in values:
            self.unchecked.add(name)
        for other in values.get("shared", ()):
            self.shared[frozenset((name, other))] = True
        for item in values["overridden_overlap"]:
            self.shared[frozenset((name, item["population"]))] = False

    def _limited(self, record: Record, values: dict[str, Any]) -> None:
        amount = Amount(values["kind"], values["unit"], values["epsilon"], values["delta"])
        self._of(record).limits[amount.kind, amount.unit] = Limit(amount, record.who, record.at, bool(values.get("two_people")))

    def _debited(self, record: Record, values: dict[str, Any]) -> None:
        debit = debit_of(record)
        if debit.release_id in self.debits:
            raise ValueError(f"release {debit.release_id} was charged twice")
        self.debits[debit.release_id] = debit
        for account in accounts_of(debit.guarantee):
            self._of(record).charges.setdefault(account, []).append(debit.guarantee)
        if "days_in" in values:
            self._of(record).day_zones.setdefault(debit.guarantee.kind, set()).add(values["days_in"])

    def _completed(self, record: Record, values: dict[str, Any]) -> None:
        known = self.debits[values["release_id"]]
        self.debits[known.release_id] = replace(known, manifest_hash=values["manifest_hash"])

    def _rehearsed(self, record: Record, values: dict[str, Any]) -> None:
        """Change nothing: a rehearsal costs nothing."""

    def _of(self, record: Record) -> Population:
        return self.populations[str(record.population)]


_READERS = {
    "created": State._created,
    "uid_key": State._keyed,
    "population": State._population,
    "attached": State._attached,
    "limit": State._limited,
    "debit": State._debited,
    "completed": State._completed,
    "rehearsal": State._rehearsed,
}
"""What each kind of line changes in the state."""
