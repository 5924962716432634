"""The differentially private variant against every observer: part of plausible_paper.py."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from murmurate import noise
from murmurate.attacks.localise import CLAIMED, RELINKED
from murmurate.attacks.localise_pool import localise_pool
from murmurate.attacks.membership import shadow_membership
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.library import PatternLibrary
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.patterns import label_days
from murmurate.mechanisms.plausible.seeded import recombine
from murmurate.mechanisms.plausible.statistics import LIBRARY_SHARES, SHARES, measured
from murmurate.metrics.semantics import visit_divergence
from murmurate.papers.plausible.published import publish
from murmurate.profiles.days import DailyTraces
from murmurate.spaces.grid import Grid
from plausible_page import Page

FAKES = (1, 2, 5, 10, 20)
SHOWN = ("hmm_marginals", "most_moves", "likelihood_ratio", "rhythm_ratio", "classifier", "another_day")


@dataclass(frozen=True)
class Scene:
    name: str
    days: DailyTraces
    grid: Grid
    library: PatternLibrary | None = None

    @property
    def title(self) -> str:
        return self.name if self.library is None else f"{self.name}, library {self.library.name}"

    def model(self, days: DailyTraces, seed: int) -> DayModel:
        shares = SHARES if self.library is None else LIBRARY_SHARES
        noisy = measured(days, self.grid, epsilon=1.0, rng=noise.seeded(seed), shares=shares)
        return DayModel.fit(noisy, self.grid, steps=72, time_zone="UTC", rng=noise.seeded(seed + 1), library=self.library)


def own(scene: Scene, page: Page, *, seed: int, runs: int, membership: bool) -> None:
    """Fresh noise, fresh fakes and fresh halves of people in each run; error against the number of fakes in the first."""
    days, grid = scene.days, scene.grid
    page.section(f"own, epsilon 1: {scene.title}")
    second = days.nth_days(1)
    n = second.n_days
    real = np.bincount(second.place.ravel(), minlength=grid.n_cells).astype(float)
    patterns = None if scene.library is None else scene.library.label
    errors: dict[str, list[tuple[float, float]]] = {}
    by_fakes: dict[str, dict[int, float]] = {}
    sizes, divergences = [], []
    for run in range(runs):
        made = scene.model(days, seed + 10 * run).places(n * max(FAKES) + 3000, noise.seeded(seed + 10 * run + 2))
        sizes.append((label_days(made)[2].mean(), (made[:, 1:] != made[:, :-1]).sum(axis=1).mean()))
        for part in range(3):
            counted = np.bincount(made[part * n : (part + 1) * n].ravel(), minlength=grid.n_cells).astype(float)
            divergences.append(visit_divergence(real, counted))
        for k in FAKES if run == 0 else (10,):
            for outcome in localise_pool(days, made, grid, n_fakes=k, library=patterns, seed=seed + run):
                if run == 0:
                    by_fakes.setdefault(outcome.name, {})[k] = float(outcome.wrong.mean())
                if k == 10:
                    errors.setdefault(outcome.name, []).append((outcome.wrong.mean(), np.median(outcome.wrong)))
    mean = {name: np.mean(values, axis=0) for name, values in errors.items()}
    worst = [min(errors[name][run][0] for name in CLAIMED if name in errors) for run in range(runs)]
    real_moves = (days.place[:, 1:] != days.place[:, :-1]).sum(axis=1).mean()
    page.table(
        f"{scene.title}: {runs} runs, each with fresh noise, fakes and halves of people; mean and median error with 10 fakes; "
        "chance .909",
        [
            ("people, cells of the grid", n, grid.n_cells),
            ("visit KL (sorted), as many days as people", float(np.mean(divergences))),
            ("places a day: own, real", float(np.mean([part[0] for part in sizes])), float(label_days(days.place)[2].mean())),
            ("moves a day: own, real", float(np.mean([part[1] for part in sizes])), float(real_moves)),
            ("moves of a run: least, greatest", *(float(pick(part[1] for part in sizes)) for pick in (min, max))),
            *((observer, *(float(part) for part in value)) for observer, value in mean.items()),
            ("mean of relinked", float(np.mean([mean[name][0] for name in RELINKED]))),
            ("worst claimed: by observer's mean", float(min(mean[name][0] for name in CLAIMED if name in mean))),
            ("worst claimed in a run: least, greatest", float(min(worst)), float(max(worst))),
        ],
    )
    lines = {name: (FAKES, [by_fakes[name][k] for k in FAKES]) for name in SHOWN}
    lines["chance"] = (FAKES, [k / (k + 1) for k in FAKES])
    words = "Nothing is claimed against the observer who knows another day."
    page.chart("Error against the number of fakes", "fakes", "mean error", lines, words, top=1.0, dots=True)
    page.table(
        f"{scene.title}: mean error by number of fakes {', '.join(map(str, FAKES))}; chance .5 .667 .833 .909 .952",
        [(observer, *(found[k] for k in FAKES)) for observer, found in by_fakes.items()],
    )
    if membership:
        members(scene, page, seed)


def members(scene: Scene, page: Page, seed: int) -> None:
    def released(some: DailyTraces, run: int) -> np.ndarray:
        return scene.model(some, seed + 500 + 10 * run).places(10 * len(some.people), noise.seeded(seed + 900 + run))

    found = shadow_membership(released, scene.days, shadows=10, targets=4)
    page.table(
        f"{scene.title}: membership AUC, 10 days a member; chance .5",
        [(part.name, part.value, part.low, part.high) for part in found],
    )


def seeded(scene: Scene, page: Page) -> None:
    n = scene.days.nth_days(1).n_days
    settings = Plausible(space=scene.grid, variant="own-seeded", n_out=min(scene.days.n_days, n * 10))
    made = recombine(scene.days, settings, noise.seeded(1))
    outcomes = localise_pool(scene.days, made, scene.grid, n_fakes=min(10, len(made) // n), seed=1)
    page.table(
        f"own-seeded ({scene.name}), no promise, {min(10, len(made) // n)} fakes a person",
        [(part.name, float(part.wrong.mean()), float(np.median(part.wrong))) for part in outcomes],
    )


def filtered(scene: Scene, page: Page) -> None:
    """As published, against the same observers and with the same cells; and members of such releases."""
    settings = Plausible(space=scene.grid, variant="as_published", n_out=1500)
    outcomes: dict[str, list[tuple[float, float]]] = {}
    for run in range(3):
        made = publish(scene.days, settings, noise.seeded(40 + run))
        for part in localise_pool(scene.days, made, scene.grid, seed=run):
            outcomes.setdefault(part.name, []).append((part.wrong.mean(), np.median(part.wrong)))
    page.table(
        f"as published ({scene.name}, cells of {scene.grid.cell_m:g} m, merging run): mean and median error with 10 fakes",
        [(name, *(float(value) for value in np.mean(values, axis=0))) for name, values in outcomes.items()],
    )
    few = replace(settings, n_out=300)
    found = shadow_membership(lambda some, run: publish(some, few, noise.seeded(60 + run)), scene.days, shadows=10, targets=4)
    page.table(
        f"as published ({scene.name}): membership AUC, 300 fakes; chance .5",
        [(part.name, part.value, part.low, part.high) for part in found],
    )
