"""Carry out a recipe: read its file, settle population and limit, charge, and write the release or the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmurate import engine, noise
from murmurate.asking.rounds import is_measured
from murmurate.core.ledger import Ledger
from murmurate.core.ledger.store import work_folder
from murmurate.core.pseudonyms import link_word
from murmurate.custody import door
from murmurate.custody.limits import Ask, population_for
from murmurate.custody.recipes import Recipe, build_mechanism
from murmurate.errors import ParameterError
from murmurate.ingest.read import read
from murmurate.ingest.stream import Partitions, scan, worth_streaming
from murmurate.releases.folder import Release, check_free


@dataclass(frozen=True)
class Prepared:
    """A recipe whose mechanism is built, whose folder is free and whose file is read; nothing is charged yet."""

    recipe: Recipe
    mechanism: Any
    seed: int | None
    private: Any
    target: Path
    running: engine.Engine

    def release(self, ledger: Ledger, *, ask: Ask, override_overlap: bool = False) -> tuple[Release, str]:
        """Charge and write the release; with it comes the name of the population that was charged."""
        name = self._population(ledger, ask, override_overlap)
        made = door.release(
            self.mechanism,
            self.private,
            ledger=ledger,
            out=self.target,
            population=name,
            link=link_word(self.recipe.link),
            keep_ids=self.recipe.keep_ids,
            accept_no_guarantee=self.recipe.accept_no_guarantee,
            rng=_randomness(self.seed),
            workers=self.running,
        )
        return made, name

    def fit(
        self, ledger: Ledger, *, ask: Ask, override_overlap: bool = False, resume: str | None = None
    ) -> tuple[Release, str]:
        """Charge and write the model; with it comes the name of the population that was charged."""
        name = self._population(ledger, ask, override_overlap)
        made = door.fit(
            self.mechanism,
            self.private,
            ledger=ledger,
            out=self.target,
            population=name,
            accept_no_guarantee=self.recipe.accept_no_guarantee,
            resume=resume,
            rng=_randomness(self.seed),
            workers=self.running,
        )
        return made, name

    def _population(self, ledger: Ledger, ask: Ask, override_overlap: bool) -> str:
        guarantee = self.mechanism.guarantee()
        return population_for(ledger, self.private.identity, self.recipe, guarantee, ask=ask, override_overlap=override_overlap)


def prepare(recipe: Recipe, running: engine.Engine) -> Prepared:
    """Build the mechanism, check the target and read the file, so that whatever is wrong is told before a ledger is opened."""
    mechanism, seed = build_mechanism(recipe)
    target = Path(_given("--out", recipe.out))
    check_free(target)
    source = _given("--in", recipe.source)
    if (mechanism.local or is_measured(mechanism)) and worth_streaming(source, **recipe.read):
        return Prepared(recipe, mechanism, seed, _scanned(source, recipe, mechanism, running), target, running)
    return Prepared(recipe, mechanism, seed, read(source, **recipe.read), target, running)


def _scanned(source: str, recipe: Recipe, mechanism: Any, running: engine.Engine) -> Partitions:
    # while this process reads, the others import what they need
    running.start(type(mechanism).__module__, "murmurate.asking.rounds", "murmurate.ingest.stream")
    beside = None if recipe.ledger == "demo" else work_folder(recipe.ledger)
    return scan(source, workers=running.workers, work_dir=beside, **recipe.read)


def sample_model(model: str | Path, *, n_out: int, out: str | Path, seed: int | None = None, workers: int = 1) -> Release:
    """Draw trips from a fitted model; free, and seeded only for tests and demos."""
    return door.sample(model, n_out=n_out, out=out, rng=_randomness(seed), workers=workers)


def _given(flag: str, value: str | None) -> str:
    if not value:
        raise ParameterError(f"{flag} is missing.")
    return value


def _randomness(seed: int | None) -> noise.Randomness | None:
    return None if seed is None else noise.seeded(seed)
