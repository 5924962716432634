"""Whose data a file holds: budgets belong to people, not to files, so that a changed file gets no fresh one."""

from __future__ import annotations

import hashlib

import numpy as np
import sqlalchemy as sa

from murmurate.core.ledger.book import Page
from murmurate.core.ledger.people import OVERLAP, Hashes, overlap, pack, unpack
from murmurate.core.ledger.records import REMEDY
from murmurate.core.ledger.schema import PEOPLE
from murmurate.core.ledger.state import Attachment, Population, State
from murmurate.core.parameters import closest
from murmurate.core.trips import Identity
from murmurate.errors import LedgerDamaged, LedgerError, PopulationOverlap, UnknownPopulation


def named(state: State, population: str) -> Population:
    """The population of that name."""
    found = state.populations.get(population)
    if found is None:
        known = ", ".join(state.populations) or "none yet"
        raise UnknownPopulation(
            f"no population is called {population!r}; known: {known}.{closest(population, state.populations)} "
            "A new one is made when a file is attached to it: murmurate ledger attach."
        )
    return found


def attach(page: Page, identity: Identity, population: str, *, hashes: Hashes, create: bool, override_overlap: bool) -> None:
    """Add a file to a population, unless its people largely belong to another one."""
    known = page.state.files.get(identity.fingerprint)
    if known == population:
        return
    if known is not None:
        raise LedgerError(f"this file belongs to population {known!r}, not {population!r}; a file has one budget.")
    if not create:
        named(page.state, population)
    found = _overlapping(page, hashes, apart_from=population)
    if found and not override_overlap:
        name, share = found[0]
        raise PopulationOverlap(
            f"{share:.0%} of the smaller set of people are in population {name!r} too, and a budget of their own would let "
            f"them be spent twice. Attach the file to {name!r}, or override the check, which is recorded.",
            population=name,
            share=share,
        )
    if population not in page.state.populations:
        page.append("population", population, {"name": population})
    packed = pack(hashes)
    values = {
        "fingerprint": identity.fingerprint,
        "n_people": len(hashes),
        "people_digest": hashlib.sha256(packed).hexdigest(),
        "overridden_overlap": [{"population": name, "share": share} for name, share in found],
    }
    line = page.append("attached", population, values)
    page.connection.execute(PEOPLE.insert().values(seq=line.seq, hashes=packed))


def people_of(connection: sa.Connection, file: Attachment) -> Hashes:
    """The hashed people of one attached file, checked against its line."""
    packed = connection.execute(sa.select(PEOPLE.c.hashes).where(PEOPLE.c.seq == file.seq)).scalar_one_or_none()
    if not isinstance(packed, bytes) or hashlib.sha256(packed).hexdigest() != file.people_digest:
        raise LedgerDamaged(f"the people of the file attached in line {file.seq} were changed or lost. {REMEDY}")
    return unpack(packed)


def _overlapping(page: Page, hashes: Hashes, *, apart_from: str) -> list[tuple[str, float]]:
    """Other populations that are largely the same people, the most alike first."""
    found = []
    for other in page.state.populations.values():
        if other.name == apart_from or not other.files:
            continue
        everyone = np.unique(np.concatenate([people_of(page.connection, file) for file in other.files]))
        share = overlap(hashes, everyone)
        if share >= OVERLAP:
            found.append((other.name, share))
    return sorted(found, key=lambda item: -item[1])
