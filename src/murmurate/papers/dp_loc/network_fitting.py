"""Fitting the variants with networks: the ends first, because the moves are calibrated on trips drawn from them.

Training reads whole data, so these variants are handed the trips themselves. What they count is counted, clipped and noised as
in the measured variant.
"""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking import Answer, Budget, Round
from murmurate.asking.clipping import clipped_sums
from murmurate.core.parameters import public_parameters
from murmurate.core.trips import Trips
from murmurate.mechanisms.dp_loc.ends_counts import ends_of, zones_of
from murmurate.mechanisms.dp_loc.model import DPLocModel, ends_from_arrays, router_from_arrays
from murmurate.mechanisms.dp_loc.moves_counts import counted_moves
from murmurate.mechanisms.dp_loc.routes import Arrays, Ends, Router
from murmurate.mechanisms.dp_loc.tables import BY_CELL, BY_ZONE, MOVE_SHARES, Read, read
from murmurate.papers.dp_loc.initialiser_vae import EndsVAE, VAEEnds
from murmurate.papers.dp_loc.moves_net import fit_published_moves, fit_relative_moves, plan_of
from murmurate.papers.dp_loc.network_budget import table_shares
from murmurate.papers.training.stages import Stages
from murmurate.papers.training.train import train_from_start
from murmurate.synthesis.frames import refuse_unbounded

if TYPE_CHECKING:
    from murmurate.mechanisms.dp_loc.mechanism import DPLoc
    from murmurate.noise import Randomness


def fit_networks(mechanism: DPLoc, private: Trips, rng: Randomness, checkpoint: Path | None) -> DPLocModel:
    """Spend the events of the guarantee on the trips, one after another, each once, and keep what came out."""
    found = read(private, grid=mechanism.space, unit=mechanism.bounds(), slot_s=mechanism.slot_s, hours=mechanism.hours)
    refuse_unbounded(found.unit, mechanism.bounds())
    _warn(found, mechanism.delta)
    with Stages(checkpoint, public_parameters(mechanism)) as stages:
        return _Fit(mechanism, found, stages, rng).model(private.time_zone)


class _Fit:
    """One fit: what is read, where its stages are kept, and the noise of its tables."""

    def __init__(self, mechanism: DPLoc, found: Read, stages: Stages, rng: Randomness) -> None:
        self.mechanism, self.found, self.stages, self.rng = mechanism, found, stages, rng
        self.settings, self.around = mechanism.settings(), mechanism.around()
        self.tables = replace(mechanism.tables(), shares=table_shares(self.settings, mechanism.ends_share))
        self.noise = Budget(epsilon=mechanism.epsilon, delta=mechanism.delta)

    def model(self, time_zone: str) -> DPLocModel:
        mechanism = self.mechanism
        ends, n = self._ends()
        kinds = (self.settings.initialiser, self._moves_kind())
        return DPLocModel(
            ends, self._router(ends, n), mechanism.space, time_zone, mechanism.day, mechanism.slot_s, mechanism.hours, n, kinds
        )

    def measured(self, wanted: Round) -> dict[str, Answer]:
        """Count, clip and noise the tables of a round."""
        rows = wanted.contribute(self.found)
        return {
            table.name: self.noise.draw(table, clipped_sums(table, rows[table.name], "l2"), self.rng) for table in wanted.tables
        }

    def _ends(self) -> tuple[Ends, float]:
        if self.settings.initialiser == "counts":
            counted = self.stages.once("ends", self._counted_ends)
            return ends_from_arrays("counts", counted), float(counted["n"])
        answer = self.stages.once("n", lambda: {"n": self.measured(self.tables.round(("n",)))["n"].noisy})
        n = max(float(answer["n"][0]), 1.0)
        plan = plan_of(self.settings.ends_training, self.mechanism.network_budget().ends_noise_multiplier)
        trips = self.found.trips
        params = train_from_start(
            EndsVAE(self.around.n_cells, self.mechanism.hours),
            {"source": trips.sources, "destination": trips.destinations, "hour": trips.hours},
            self.found.unit,
            plan=plan,
            n_expected=n / self.tables.limit,
            rng=self.rng,
            checkpoint=self.stages.training("ends"),
        )
        return VAEEnds.of(params), n

    def _counted_ends(self) -> Arrays:
        answers = self.measured(self.tables.round(BY_CELL))
        zones = zones_of(answers, self.tables, self.noise)
        answers |= self.measured(self.tables.round(BY_ZONE, zones))
        return ends_of(answers, self.tables, zones).arrays()

    def _router(self, ends: Ends, n: float) -> Router:
        settings, stages, hours = self.settings, self.stages, self.mechanism.hours
        if settings.next_cell == "counts":

            def counted() -> Arrays:
                answers = self.measured(self.tables.round(tuple(MOVE_SHARES)))
                return counted_moves(answers, ends=ends, n=n, tables=self.tables, route=settings.route, rng=self.rng).arrays()

            return router_from_arrays("counts", stages.once("moves", counted), self.around, hours, settings.route)
        plan = plan_of(settings.moves_training, self.mechanism.network_budget().moves_noise_multiplier)
        if settings.relative:
            return fit_relative_moves(
                self.found, ends=ends, n=n, tables=self.tables, measured=self.measured, route=settings.route, plan=plan,
                rng=self.rng, stages=stages,
            )  # fmt: skip
        return fit_published_moves(
            self.found, around=self.around, hours=hours, n_units=n / self.tables.limit, route=settings.route, plan=plan,
            rng=self.rng, checkpoint=stages.training("moves"),
        )  # fmt: skip

    def _moves_kind(self) -> str:
        if self.settings.next_cell == "counts":
            return "counts"
        return "relative_net" if self.settings.relative else "published_net"


def _warn(found: Read, delta: float) -> None:
    """Warn the custodian of an input that cannot be learned from; never refuse it, as a refusal may depend on one trip."""
    if found.trips.n == 0:
        warnings.warn(
            "no trip visits two cells of the grid, so there is nothing to learn and what is drawn is noise: check the box "
            "of the grid, or give smaller cells. For the custodian only; do not publish this message.",
            stacklevel=4,
        )
    n_units = len(np.unique(found.unit))
    if n_units * delta > 0.5:
        warnings.warn(
            f"delta = {delta:g} is large for {n_units:,} units: well below 1 / units is customary. "
            "For the custodian only; do not publish this message.",
            stacklevel=4,
        )
