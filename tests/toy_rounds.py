"""A small measured mechanism over the cells where trips start, for tests of the asking core."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import polars as pl

from murmurate.asking import Budget, Round, Table, TreeTable
from murmurate.asking.table import once
from murmurate.core.guarantee import DP, Unit
from murmurate.core.trips import Trips

CELLS = 5


def trips_of(n=60, people=12):
    """Trip k of person k % people visits the cells k % CELLS and 0."""
    rows = [(f"u{k % people}", k, cell) for k in range(n) for cell in (k % CELLS, 0)]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "cell"], orient="row"))


def first_cells(part):
    return part.unit, part.trips.cell[part.trips.offsets[:-1]]


def every_trip_alone(part):
    """A planted fault: rows are numbered by trip, so that each trip of a person would be clipped by itself."""
    return np.arange(part.trips.n_trips), part.trips.cell[part.trips.offsets[:-1]]


def count_cells(prepared):
    return {"cells": once(*prepared)}


def count_busiest(prepared):
    unit, cell = prepared
    return {"people": once(unit, np.zeros_like(cell))}


@dataclass(frozen=True, kw_only=True)
class Toy:
    name: ClassVar[str] = "toy"
    epsilon: float = 1.0
    delta: float = 0.0
    unit: str = "trip"
    max_trips: int | None = None
    shares: tuple[float, float] = (0.5, 0.5)
    again: bool = False

    def budget(self):
        return Budget(epsilon=self.epsilon, delta=self.delta)

    def guarantee(self):
        return DP(epsilon=self.epsilon, delta=self.delta, unit=Unit(name=self.unit, max_trips=self.max_trips))

    def ask(self, answers, facts):
        limit = float(self.max_trips or 1)
        if "cells" not in answers:
            tables = (Table(name="cells", n_bins=CELLS, share=self.shares[0], limit=limit),)
            return Round(tables=tables, prepare=first_cells, contribute=count_cells, keep="cells")
        if "people" not in answers:
            name = "cells" if self.again else "people"
            tables = (Table(name=name, n_bins=1, share=self.shares[1], limit=limit),)
            return Round(tables=tables, prepare=first_cells, contribute=count_busiest, keep="cells")
        return None

    def model(self, answers, facts, rng):
        return {name: answer.noisy for name, answer in answers.items()}


def tree(name, share, **more):
    return TreeTable(
        name=name, n_bins=len(share) * 3, share=max(share), n_columns=3, row_share=np.array(share), limit=4.0, steps=1,
        threshold=np.ones(len(share), dtype=np.int64), **more,
    )  # fmt: skip
