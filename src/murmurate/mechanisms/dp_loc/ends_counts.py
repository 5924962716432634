"""Where trips start and end, and in which hour: estimated from noisy tables over zones of equal noisy mass."""

from __future__ import annotations

import numpy as np

from murmurate.asking import Budget
from murmurate.asking.table import Answers
from murmurate.core.space import Floats
from murmurate.mechanisms.dp_loc.tables import Tables, Zones
from murmurate.synthesis.ends import Ends, coarsen, depth_of, filled, joint_of, shrink_cells, shrink_zone_hour
from murmurate.synthesis.zones import zones_of_equal_mass


def noisy_trips(answers: Answers) -> float:
    """Return the noisy number of trips, at least one."""
    return max(float(answers["n"].noisy[0]), 1.0)


def zones_of(answers: Answers, tables: Tables, budget: Budget) -> Zones:
    """Cut the grid into zones that each hold about as many ends, from noisy counts of cells."""
    n, hours = noisy_trips(answers), tables.hours
    noise = {name: budget.deviation(tables.shares[name], tables.limit) for name in ("source_hour", "pairs", "pairs_hour")}
    fine = depth_of(n / hours, noise["source_hour"], 1)
    pair = min(depth_of(n, noise["pairs"], 2), fine)
    pair_hour = min(depth_of(n / hours, noise["pairs_hour"], 2), pair)
    mass = estimated_cells(answers, tables, "source") + estimated_cells(answers, tables, "destination")
    of_cell = zones_of_equal_mass(mass, rows=tables.around.rows, columns=tables.around.columns, depth=fine)
    return Zones(of_cell, fine, pair, pair_hour)


def ends_of(answers: Answers, tables: Tables, zones: Zones) -> Ends:
    """Fit one distribution of source, destination and hour to all noisy tables of the ends."""
    hours = tables.hours
    cell, zone_hour = {}, {}
    for end in ("source", "destination"):
        cell[end] = estimated_cells(answers, tables, end)
        by_zone: Floats = np.bincount(zones.of_cell, weights=cell[end], minlength=2**zones.fine).astype(np.float64)
        noisy = answers[f"{end}_hour"].noisy.reshape(-1, hours)
        zone_hour[end] = filled(shrink_zone_hour(noisy, by_zone, answers[f"{end}_hour"].deviation), by_zone)
    joint = joint_of(
        coarsen(zone_hour["source"], zones.pair),
        coarsen(zone_hour["destination"], zones.pair),
        answers["pairs"].noisy.reshape(2**zones.pair, 2**zones.pair),
        answers["pairs_hour"].noisy.reshape(2**zones.pair_hour, 2**zones.pair_hour, hours),
        (answers["pairs"].deviation, answers["pairs_hour"].deviation),
    )
    return Ends(
        joint,
        zone_hour["source"],
        zone_hour["destination"],
        cell["source"],
        cell["destination"],
        zones.of_cell,
        noisy_trips(answers),
    )


def estimated_cells(answers: Answers, tables: Tables, end: str) -> Floats:
    """Estimate how many trips have this end ("source" or "destination") in each cell."""
    noisy = answers[f"{end}_cell"]
    return shrink_cells(
        noisy.noisy,
        rows=tables.around.rows,
        columns=tables.around.columns,
        n=noisy_trips(answers),
        deviation=noisy.deviation,
    )
