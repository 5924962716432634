"""Carry out a recipe: read its file, settle population and limit, charge, and write the release or the model."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmurate import noise
from murmurate.asking.rounds import is_measured
from murmurate.core.ledger import Ledger
from murmurate.core.pseudonyms import link_word
from murmurate.custody import door
from murmurate.custody.limits import Ask, population_for
from murmurate.custody.recipes import Recipe, build_mechanism
from murmurate.errors import ParameterError
from murmurate.ingest.read import read
from murmurate.ingest.stream import scan, worth_streaming
from murmurate.releases.folder import Release, check_free


@dataclass(frozen=True)
class Prepared:
    """A recipe whose mechanism is built, whose folder is free and whose file is read; nothing is charged yet."""

    recipe: Recipe
    mechanism: Any
    seed: int | None
    private: Any
    target: Path

    def release(self, ledger: Ledger, *, ask: Ask, override_overlap: bool = False, workers: int = 1) -> tuple[Release, str]:
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
            workers=workers,
        )
        return made, name

    def fit(
        self, ledger: Ledger, *, ask: Ask, override_overlap: bool = False, resume: str | None = None, workers: int = 1
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
            workers=workers,
        )
        return made, name

    def _population(self, ledger: Ledger, ask: Ask, override_overlap: bool) -> str:
        guarantee = self.mechanism.guarantee()
        return population_for(ledger, self.private.identity, self.recipe, guarantee, ask=ask, override_overlap=override_overlap)


def prepare(recipe: Recipe, *, workers: int = 1) -> Prepared:
    """Build the mechanism, check the target and read the file, so that whatever is wrong is told before a ledger is opened."""
    mechanism, seed = build_mechanism(recipe)
    target = Path(_given("--out", recipe.out))
    check_free(target)
    source = _given("--in", recipe.source)
    if (mechanism.local or is_measured(mechanism)) and worth_streaming(source, **recipe.read):
        return Prepared(recipe, mechanism, seed, scan(source, workers=workers, **recipe.read), target)
    return Prepared(recipe, mechanism, seed, read(source, **recipe.read), target)


def sample_model(model: str | Path, *, n_out: int, out: str | Path, seed: int | None = None) -> Release:
    """Draw trips from a fitted model; free, and seeded only for tests and demos."""
    return door.sample(model, n_out=n_out, out=out, rng=_randomness(seed))


def _given(flag: str, value: str | None) -> str:
    if not value:
        raise ParameterError(f"{flag} is missing.")
    return value


def _randomness(seed: int | None) -> noise.Randomness | None:
    return None if seed is None else noise.seeded(seed)
