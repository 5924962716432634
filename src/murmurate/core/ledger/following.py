"""Follow people over populations: a charge counts in the limits of every population that holds any of those charged."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import sqlalchemy as sa

from murmurate.core.guarantee import Guarantee
from murmurate.core.ledger.accounts import accounts_of
from murmurate.core.ledger.plan import Followed, Plan, make_plan
from murmurate.core.ledger.populations import everyone, named
from murmurate.core.ledger.state import State

MAX_GROUPS = 32
"""Groups of people, by the populations that hold them, whose charges are added up apart. Beyond it, all count as one group that
is in every population: too much is charged then, never too little. Set by hand; bounds the time of a charge."""


def plan_for_people(connection: sa.Connection, state: State, population: str, guarantee: Guarantee) -> Plan:
    """Price a charge for a population, and for those of its people whom other populations charge too."""
    own = named(state, population)
    followed = []
    for names, n_people in _groups(connection, state, population, guarantee):
        holding = [own, *(state.populations[name] for name in names)]
        charges = {
            account: [charge for one in holding for charge in one.charges.get(account, ())]
            for account in accounts_of(guarantee)
        }
        for one in holding:
            limits = {account: amount for account, amount in one.limit_amounts().items() if account[0] == guarantee.kind}
            if limits or one is own:
                priced = make_plan(one.name, guarantee, charges=charges, limits=limits)
                followed.append(Followed(n_people, names, priced))
    return make_plan(population, guarantee, charges=own.charges, limits=own.limit_amounts(), followed=tuple(followed))


def _groups(
    connection: sa.Connection, state: State, population: str, guarantee: Guarantee
) -> list[tuple[tuple[str, ...], int]]:
    """Return which other populations hold people of this one, and how many people are in exactly these.

    Sets of populations within larger ones are left out: they are charged less. One list of people is held at a time
    beside that of the population itself, eight bytes a person.
    """
    counting = [
        name
        for name, other in state.populations.items()
        if name != population
        and state.may_share(population, name)
        and any(account[0] == guarantee.kind for account in (*other.charges, *other.limits))
    ]
    if not counting or not accounts_of(guarantee):
        return []
    here = everyone(connection, state, population)
    held = np.zeros((len(here), -(-len(counting) // 8)), dtype=np.uint8)
    for k, name in enumerate(counting):
        there = everyone(connection, state, name)
        common = np.searchsorted(here, np.intersect1d(here, there, assume_unique=True))
        held[common, k // 8] |= np.uint8(1 << (k % 8))
    found, times = np.unique(held[held.any(axis=1)], axis=0, return_counts=True)
    bits = np.unpackbits(found, axis=1, bitorder="little")[:, : len(counting)].astype(bool)
    return _largest([frozenset(np.flatnonzero(row)) for row in bits], times.tolist(), counting)


def _largest(sets: Sequence[frozenset[int]], times: Sequence[int], names: Sequence[str]) -> list[tuple[tuple[str, ...], int]]:
    """Keep the sets that lie within no other one; all of them as one where they are too many."""
    if len(sets) > MAX_GROUPS:
        sets, times = [frozenset[int]().union(*sets)], [sum(times)]
    kept = [k for k, one in enumerate(sets) if not any(one < other for other in sets)]
    return [(tuple(names[k] for k in sorted(sets[at])), times[at]) for at in kept]
