"""Find whose data a file holds: budgets belong to people, not to files, so that a changed file gets no new one."""

from __future__ import annotations

import hashlib
import unicodedata
from dataclasses import dataclass

import numpy as np
import sqlalchemy as sa

from murmurate.core.ledger.book import Page
from murmurate.core.ledger.people import OVERLAP, Hashes, is_sample, overlap, pack, people_digest, union, unpack
from murmurate.core.ledger.records import REMEDY
from murmurate.core.ledger.schema import PEOPLE
from murmurate.core.ledger.state import Attachment, Population, State
from murmurate.core.parameters import closest
from murmurate.core.trips import Identity
from murmurate.errors import LedgerDamaged, LedgerError, PopulationOverlap, UnknownPopulation


def named(state: State, population: str) -> Population:
    """Return the population of that name."""
    found = state.populations.get(population)
    if found is None:
        known = ", ".join(state.populations) or "none yet"
        raise UnknownPopulation(
            f"no population is called {population!r}; known: {known}.{closest(population, state.populations)} "
            "A new one is made when a file is attached to it: murmurate ledger attach."
        )
    return found


def attach(page: Page, identity: Identity, population: str, *, hashes: Hashes, create: bool, override_overlap: bool) -> None:
    """Add a file to a population, unless its people largely belong to another one.

    A file read with another column of people is attached again with the people it then has. With `override_overlap` the
    people whom other populations have too are taken for others of the same uid, and the line says so.
    """
    known = page.state.files.get(identity.fingerprint)
    digest = people_digest(hashes)
    held = known == population and page.state.populations[known].holds(identity.fingerprint, digest)
    if held and not override_overlap:
        return
    if known not in (None, population):
        raise LedgerError(f"this file belongs to population {known!r}, not {population!r}; a file has one budget.")
    if not create:
        named(page.state, population)
    common = _in_common(page, hashes, population)
    if override_overlap:
        if held and not any(page.state.may_share(population, one.population) for one in common):
            return
    elif common and common[0].largely:
        raise _overlap_refused(population, common[0])
    if population not in page.state.populations:
        refuse_odd_name(population)
        page.append("population", population, {"name": population})
    values = {
        "fingerprint": identity.fingerprint,
        "n_people": len(hashes),
        "people_digest": digest,
        "overridden_overlap": [{"population": one.population, "share": one.share} for one in common if override_overlap],
        "shared": sorted(one.population for one in common if one.brought and not override_overlap),
    }
    line = page.append("attached", population, values)
    page.connection.execute(PEOPLE.insert().values(seq=line.seq, hashes=pack(hashes)))


def _overlap_refused(population: str, found: Common) -> PopulationOverlap:
    name = found.population
    return PopulationOverlap(
        f"{found.share:.0%} of the smaller set of people (those of the file, or all of {population!r} with it) are in "
        f"population {name!r} too, and a budget of their own would let them be spent twice. If they are the same people, "
        f"charge {name!r}: --population {name}. If both files only number their people alike (1, 2, 3, ...), give these a "
        "namespace, such as --people taxi-2024. If you know that they are others for another reason, --override-overlap "
        "goes on. Each choice is recorded.",
        population=name,
        share=found.share,
    )


def refuse_odd_name(population: str) -> None:
    """Refuse a new name that a person cannot see or type: control and invisible characters, spaces around it, nothing."""
    odd = [letter for letter in population if unicodedata.category(letter)[0] == "C" or letter in "\u2028\u2029"]
    if odd or not population.strip() or population != population.strip():
        raise LedgerError(
            f"a population's name holds visible characters, without spaces around it; got {population!r}. Nothing was spent."
        )


def holder(page: Page, identity: Identity, hashes: Hashes) -> str | None:
    """Return the population that has this file, or largely these people."""
    known = page.state.files.get(identity.fingerprint)
    found = [one.population for one in _in_common(page, hashes, "") if one.largely] if known is None else []
    return found[0] if found else known


def people_of(connection: sa.Connection, file: Attachment) -> Hashes:
    """Return the hashed people of one attached file, checked against its line."""
    packed = connection.execute(sa.select(PEOPLE.c.hashes).where(PEOPLE.c.seq == file.seq)).scalar_one_or_none()
    if not isinstance(packed, bytes) or hashlib.sha256(packed).hexdigest() != file.people_digest:
        raise LedgerDamaged(f"the people of the file attached in line {file.seq} were changed or lost. {REMEDY}")
    return unpack(packed)


@dataclass(frozen=True)
class Common:
    """People that a file, or a population with it, has in common with another population."""

    population: str
    share: float
    """Of the smaller set; of samples, an upper bound."""
    brought: bool
    """Whether the file brings some who were not here before."""
    largely: bool
    """Whether both count as being about the same people."""


def _in_common(page: Page, hashes: Hashes, population: str) -> list[Common]:
    """Return every other population with people of the file, or of this population with it; largest share first."""
    here = everyone(page.connection, page.state, population)
    together = union([here, hashes])
    # who of a sample was here before is not known of everybody: all of them may be new
    newcomers = hashes if is_sample(here, hashes) else np.setdiff1d(hashes, here, assume_unique=True)
    found = []
    for name in page.state.populations:
        if name == population:
            continue
        others = everyone(page.connection, page.state, name)
        share = overlap(hashes, others)
        # many files, each with few of the others, would bring them all over; who brings none of them makes it no worse
        if overlap(newcomers, others) > 0:
            share = max(share, overlap(together, others))
        largely = share >= OVERLAP
        if largely or len(np.intersect1d(together, others, assume_unique=True)):
            brought = len(np.intersect1d(newcomers, others, assume_unique=True)) > 0
            found.append(Common(name, share or overlap(together, others), brought, largely))
    return sorted(found, key=lambda one: (not one.largely, -one.share))


def everyone(connection: sa.Connection, state: State, population: str) -> Hashes:
    """Return the people of all files of a population so far; nobody where it is new."""
    known = state.populations.get(population)
    return union([people_of(connection, file) for file in known.files] if known else [])
