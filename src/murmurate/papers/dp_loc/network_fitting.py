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
from murmurate.asking.clipping import clipped_sums, dense
from murmurate.core.parameters import public_parameters
from murmurate.core.trips import Trips
from murmurate.mechanisms.dp_loc.ends_counts import ends_of, zones_of
from murmurate.mechanisms.dp_loc.model import DPLocModel, ends_from_arrays, router_from_arrays
from murmurate.mechanisms.dp_loc.moves_counts import counted_moves
from murmurate.mechanisms.dp_loc.protocols import Arrays, Ends, Router
from murmurate.mechanisms.dp_loc.reading import Read, read
from murmurate.mechanisms.dp_loc.tables import BY_CELL, BY_ZONE, MOVE_SHARES
from murmurate.papers.dp_loc.initialiser_vae import EndsVAE, VAEEnds
from murmurate.papers.dp_loc.moves_net import fit_published_moves, fit_relative_moves, plan_of
from murmurate.papers.dp_loc.network_budget import table_shares
from murmurate.papers.training.sampling import group_by_unit
from murmurate.papers.training.stages import Stages
from murmurate.papers.training.train import Plan, train
from murmurate.synthesis.frames import refuse_unbounded

if TYPE_CHECKING:
    from murmurate.mechanisms.dp_loc.mechanism import DPLoc
    from murmurate.noise import Randomness


def fit_networks(asked: DPLoc, private: Trips, rng: Randomness, checkpoint: Path | None) -> DPLocModel:
    """Spend the events of the guarantee on the trips, one after another, each once, and keep what came out."""
    found = read(private, grid=asked.space, unit=asked.bounds(), slot_s=asked.slot_s, hours=asked.hours)
    refuse_unbounded(found.unit, asked.bounds())
    _warn(found, asked.delta)
    with Stages(checkpoint, public_parameters(asked)) as stages:
        return _Fit(asked, found, stages, rng).model(private.time_zone)


class _Fit:
    """One fit: what is read, where its stages are kept, and the noise of its tables."""

    def __init__(self, asked: DPLoc, found: Read, stages: Stages, rng: Randomness) -> None:
        self.asked, self.found, self.stages, self.rng = asked, found, stages, rng
        self.settings, self.around = asked.settings(), asked.around()
        self.tables = replace(asked.tables(), shares=table_shares(self.settings, asked.ends_share))
        self.noise = Budget(epsilon=asked.epsilon, delta=asked.delta)

    def model(self, time_zone: str) -> DPLocModel:
        asked = self.asked
        ends, n = self._ends()
        kinds = (self.settings.initialiser, self._moves_kind())
        return DPLocModel(ends, self._router(ends, n), asked.space, time_zone, asked.day, asked.slot_s, asked.hours, n, kinds)

    def measured(self, asked: Round) -> dict[str, Answer]:
        """Count, clip and noise the tables of a round."""
        rows = asked.contribute(self.found)
        return {
            table.name: self.noise.draw(table, dense(clipped_sums(table, rows[table.name], "l2"), table.n_bins), self.rng)
            for table in asked.tables
        }

    def _ends(self) -> tuple[Ends, float]:
        asked, per_unit = self.asked, self.tables.limit
        if self.settings.initialiser == "counts":
            counted = self.stages.once("ends", self._counted_ends)
            return ends_from_arrays("counts", counted), float(counted["n"])
        answer = self.stages.once("n", lambda: {"n": self.measured(self.tables.round(("n",)))["n"].noisy})
        n = max(float(answer["n"][0]), 1.0)
        plan = plan_of(self.settings.ends_training, asked.network_budget().ends_noise_multiplier)
        network = EndsVAE(self.around.n_cells, asked.hours)
        return _fit_vae(self.found, network, n / per_unit, plan, self.rng, self.stages.training("ends")), n

    def _counted_ends(self) -> Arrays:
        answers = self.measured(self.tables.round(BY_CELL))
        zones = zones_of(answers, self.tables, self.noise)
        answers |= self.measured(self.tables.round(BY_ZONE, zones))
        return ends_of(answers, self.tables, zones).arrays()

    def _router(self, ends: Ends, n: float) -> Router:
        settings, stages, hours = self.settings, self.stages, self.asked.hours
        if settings.next_cell == "counts":

            def counted() -> Arrays:
                answers = self.measured(self.tables.round(tuple(MOVE_SHARES)))
                return counted_moves(answers, ends=ends, n=n, tables=self.tables, route=settings.route, rng=self.rng).arrays()

            return router_from_arrays("counts", stages.once("moves", counted), self.around, hours, settings.route)
        plan = plan_of(settings.moves_training, self.asked.network_budget().moves_noise_multiplier)
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


def _fit_vae(  # noqa: PLR0917
    found: Read, network: EndsVAE, n_units: float, plan: Plan, rng: Randomness, checkpoint: Path | None
) -> VAEEnds:
    columns = {"source": found.trips.sources, "destination": found.trips.destinations, "hour": found.trips.hours}
    grouped = group_by_unit({name: values.astype(np.int32) for name, values in columns.items()}, found.unit)
    start = network.start(rng.generator())
    params, _ = train(network, start, grouped, plan=plan, n_expected=n_units, rng=rng, checkpoint=checkpoint)
    return VAEEnds.of(params)


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
