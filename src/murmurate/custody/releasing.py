"""Carry out a recipe: read its file, settle population and limit, charge, and write the release or the model."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmurate import engine, noise
from murmurate.asking.rounds import is_measured
from murmurate.core.ledger import Ledger
from murmurate.core.ledger.store import work_folder
from murmurate.core.pseudonyms import link_word
from murmurate.core.work_files import NO_COPY
from murmurate.custody import door, promises
from murmurate.custody.limits import Ask, population_for
from murmurate.custody.looking import Finding, findings, refuse_fatal, weakness
from murmurate.custody.recipes import Recipe, build_mechanism
from murmurate.custody.sources import Opened, open_in_parts, open_private
from murmurate.errors import ParameterError
from murmurate.exports import check_formats
from murmurate.ingest.stream import worth_streaming
from murmurate.releases.folder import Release, check_free


@dataclass(frozen=True)
class Prepared:
    """Hold a recipe whose mechanism is built, whose folder is free and whose file is read; nothing is charged yet."""

    recipe: Recipe
    mechanism: Any
    seed: int | None
    private: Any
    target: Path
    running: engine.Engine

    def look(self) -> list[Finding]:
        """Return what the custodian should know before the charge; refuse what would be empty for certain."""
        found = findings(self.mechanism, self.private, self.running)
        refuse_fatal(found)
        return found

    def weakness(self) -> str | None:
        """Say why the promise hardly protects anybody, if it does not."""
        return weakness(self.mechanism, self.private, keep_ids=self.recipe.keep_ids)

    def release(
        self,
        ledger: Ledger,
        *,
        ask: Ask,
        override_overlap: bool = False,
        confirmed: str | None = None,
        release_id: str | None = None,
        resume: str | None = None,
        signed: Sequence[str] = (),
    ) -> tuple[Release, str]:
        """Charge and write the release; return it with the name of the population that was charged."""
        options = self._options(ledger, ask, override_overlap) | {"confirmed": confirmed}
        link, keep_ids = link_word(self.recipe.link), self.recipe.keep_ids
        options |= {
            "link": link,
            "keep_ids": keep_ids,
            "release_id": release_id,
            "resume": resume,
            "signed": signed,
            "format": self.recipe.format,
        }
        return door.release(self.mechanism, self.private, **options), options["population"]

    def fit(
        self,
        ledger: Ledger,
        *,
        ask: Ask,
        override_overlap: bool = False,
        confirmed: str | None = None,
        resume: str | None = None,
        signed: Sequence[str] = (),
    ) -> tuple[Release, str]:
        """Charge and write the model; return it with the name of the population that was charged."""
        options = self._options(ledger, ask, override_overlap) | {"confirmed": confirmed}
        return door.fit(self.mechanism, self.private, resume=resume, signed=signed, **options), options["population"]

    def _options(self, ledger: Ledger, ask: Ask, override_overlap: bool) -> dict[str, Any]:
        """Settle the population and its limit; return the options that `release` and `fit` share."""
        guarantee, identity = self.mechanism.guarantee(), self.private.identity
        return {
            "ledger": ledger,
            "out": self.target,
            "population": population_for(ledger, identity, self.recipe, guarantee, ask=ask, override_overlap=override_overlap),
            "accept_no_guarantee": self.recipe.accept_no_guarantee,
            "declared": self.recipe.declared,
            "rng": _randomness(self.seed),
            "engine": self.running,
            "work": self.recipe.work,
        }


def prepare(recipe: Recipe, running: engine.Engine) -> Prepared:
    """Build the mechanism, check the target and read the file, so that faults are raised before a ledger is opened."""
    mechanism, seed = build_mechanism(recipe)
    check_formats(recipe.format, mechanism)
    target = Path(_given("--out", recipe.out))
    check_free(target)
    source = _given("--in", recipe.source)
    private: Opened
    if (mechanism.local or is_measured(mechanism)) and worth_streaming(source, **recipe.read):
        beside = recipe.work or (None if recipe.ledger == "demo" else work_folder(recipe.ledger))
        # while this process reads, the others import what they need
        work_in = None if beside == NO_COPY else beside
        running.start(type(mechanism).__module__, "murmurate.asking.rounds", "murmurate.ingest.stream", work_in=work_in)
        opening: dict[str, Any] = {"read": recipe.read, "clean": recipe.clean, "people": recipe.people, "work_dir": beside}
        unit = mechanism.guarantee().unit.name if is_measured(mechanism) else "user"
        private = open_in_parts(source, running, unit=unit, column=getattr(mechanism, "column", None), **opening)
    else:
        private = open_private(source, read=recipe.read, clean=recipe.clean, people=recipe.people)
    promises.checked(mechanism, private, "none")  # how released trips are linked is checked when they are released
    return Prepared(recipe, mechanism, seed, private, target, running)


def sample_model(
    model: str | Path, *, n_out: int, out: str | Path, seed: int | None = None, running: engine.Engine | None = None
) -> Release:
    """Draw trips from a fitted model; free, and seeded only for tests and demos."""
    return door.sample(model, n_out=n_out, out=out, rng=_randomness(seed), engine=running)


def _given(flag: str, value: str | None) -> str:
    if not value:
        raise ParameterError(f"{flag} is missing.")
    return value


def _randomness(seed: int | None) -> noise.Randomness | None:
    return None if seed is None else noise.seeded(seed)
