"""Exact sums of the tables a measured mechanism asks for, and what a change of them costs; for tests of sensitivity."""

from __future__ import annotations

import numpy as np

from murmurate.asking import Answer
from murmurate.asking.clipping import dense
from murmurate.asking.rounds import Asking, facts_of
from murmurate.noise import seeded

KEY = b"k" * 16


def exact_sums(mechanism, private, **options):
    """{table name: (table, exact clipped sums)} of all rounds; later rounds follow fixed answers, not these sums."""
    asking = Asking(mechanism, private, seeded(1), key=KEY, **options)
    facts, answers, found = facts_of(private), {}, {}
    norm = mechanism.budget().norm
    while (asked := mechanism.ask(answers, facts)) is not None:
        sums = asking.exact(asked, norm)
        for table in asked.tables:
            found[table.name] = table, dense(sums[table.name], table.n_bins)
            answers[table.name] = Answer(10.0 + np.arange(table.n_bins) % 7, 1.0)
    return found


def privacy_used(mechanism, one, two):
    """Share of the budget that the difference between two inputs costs; at most one where they differ in one unit."""
    squared = mechanism.budget().norm == "l2"
    total = 0.0
    for name, (table, sums) in one.items():
        change = np.abs(sums - two[name][1]).astype(float)
        norm = np.sqrt((change**2).sum()) if squared else change.sum()
        relative = norm / (table.limit * table.steps)
        total += table.share * (relative**2 if squared else relative)
    return total
