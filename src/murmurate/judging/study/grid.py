"""Expand a study into cells: one setting of one mechanism on one dataset, for some of the repeats."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import murmurate
from murmurate.core.parameters import plain_value
from murmurate.errors import Fault, InputError, MurmurateError
from murmurate.judging.study.datasets import Dataset
from murmurate.judging.study.spec import DatasetSpec, MechanismSpec, StudySpec
from murmurate.mechanisms import build

FORMAT = 1
"""Version of the results of a cell; another one makes all cells run again."""
ORIGINAL = "original"
"""Label of the originals compared with themselves: the value of every metric without any mechanism."""
CELL_POINTS = 5_000_000
"""Points that go through a cell, about, so that a kill never costs more than some seconds. Set by hand."""


@dataclass(frozen=True, kw_only=True)
class Cell:
    """Hold one piece of work; its key names everything that its result depends on."""

    dataset: DatasetSpec
    folder: str
    label: str
    mechanism: str
    parameters: Mapping[str, Any]
    setting: int
    first: int
    repeats: int
    metrics: tuple[str, ...]
    attacks: tuple[str, ...]
    seed: int | None
    fingerprint: str = field(repr=False)

    @cached_property
    def key(self) -> str:
        """Return a name for the result: cells of equal keys have the same distribution."""
        return _digest([*self._releases, self.metrics, self.attacks])[:32]

    @property
    def noise_seed(self) -> int:
        """Return the seed of this cell alone: neither order, nor processes, nor what is measured change its noise."""
        return int(_digest(self._releases)[:12], 16)

    @property
    def _releases(self) -> list[Any]:
        """List everything that the releases of this cell depend on."""
        return [
            FORMAT,
            murmurate.__version__,
            self.fingerprint,
            sorted(self.dataset.clean.items()),
            self.dataset.grid,
            self.dataset.centre,
            self.mechanism,
            {name: plain_value(value) for name, value in sorted(self.parameters.items())},
            [self.first, self.repeats],
            self.seed,
        ]


def _digest(facts: list[Any]) -> str:
    return hashlib.sha256(json.dumps(facts, default=str).encode()).hexdigest()


def settings(spec: MechanismSpec) -> list[dict[str, Any]]:
    """Return every combination of the swept values, with the fixed ones.

    >>> part = MechanismSpec(label="a", name="geoind", set={"max_points": 9}, sweep={"epsilon": (1, 2), "radius_m": (5,)})
    >>> settings(part)
    [{'max_points': 9, 'epsilon': 1, 'radius_m': 5}, {'max_points': 9, 'epsilon': 2, 'radius_m': 5}]
    """
    combined = itertools.product(*spec.sweep.values())
    return [{**spec.set, **dict(zip(spec.sweep, values, strict=True))} for values in combined]


def mechanism_of(name: str, parameters: Mapping[str, Any], spaces: Mapping[str, Any]) -> Any:
    """Build the mechanism; the space "plane", "grid" or "road" stands for that of the dataset."""
    values = dict(parameters)
    word = values.get("space")
    if isinstance(word, str) and word in ("plane", "grid", "road"):
        if word not in spaces:
            raise InputError(
                f"{name} asks for the dataset's {word}, which it has not.",
                'give the dataset centre = [lat, lng] or grid = "grid:..."',
            )
        values["space"] = spaces[word]
    return build(name, values)


def expand(spec: StudySpec, datasets: Mapping[str, Dataset]) -> list[Cell]:
    """Return all cells over the datasets that are here; a bad setting is refused before any runs."""
    cells: list[Cell] = []
    faults: list[Fault] = []
    for part in spec.datasets:
        if part.name not in datasets:
            continue
        data = datasets[part.name]
        shared: dict[str, Any] = {
            "dataset": part,
            "folder": spec.folder,
            "metrics": spec.metrics,
            "attacks": spec.attacks,
            "seed": spec.seed,
            "fingerprint": data.identity.fingerprint,
        }
        cells.append(Cell(label=ORIGINAL, mechanism=ORIGINAL, parameters={}, setting=0, first=0, repeats=1, **shared))
        block = max(1, CELL_POINTS // data.trips.n_points)
        number = 0
        for mechanism in spec.mechanisms:
            for parameters in settings(mechanism):
                try:
                    mechanism_of(mechanism.name, parameters, data.spaces)
                except MurmurateError as error:
                    faults.append(Fault(f"{mechanism.label} with {parameters} on {part.name}: {error}"))
                    continue
                number += 1
                cells += [
                    Cell(
                        label=mechanism.label,
                        mechanism=mechanism.name,
                        parameters=parameters,
                        setting=number,
                        first=first,
                        repeats=min(block, spec.repeats - first),
                        **shared,
                    )
                    for first in range(0, spec.repeats, block)
                ]
    if faults:
        raise InputError(faults, "mend these settings; nothing was run.")
    return cells
