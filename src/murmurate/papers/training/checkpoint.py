"""Checkpoints of a private training: kept on the custodian's side, and unable to replay noise.

Before a step draws anything it is written down as begun. A training that was interrupted goes on after the last step that
had begun: a step whose result was lost is lost, its budget spent, and the noise of the next one comes from a stream that has
never been used. So what is taken can never exceed what was planned and charged.
"""

from __future__ import annotations

import json
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from murmurate.asking.kept_answers import save_arrays, write_durably
from murmurate.errors import InputError

if TYPE_CHECKING:
    from murmurate.papers.training.ghost import Arrays
    from murmurate.papers.training.train import Plan

STATE = "state.npz"
"""Name of the file of parameters and optimiser state."""

STEPS = "steps.json"
"""Name of the file that says which step began last, and the plan it belongs to."""

EVERY = 25
"""Steps between two kept results. Set by hand: an interruption loses at most this many steps of budget."""


class Checkpoint:
    """A folder that remembers which steps began, and the parameters after some of them."""

    def __init__(self, folder: Path, plan: Plan) -> None:
        self.folder = folder
        self.plan = asdict(plan)
        folder.mkdir(parents=True, exist_ok=True)

    def load(self) -> tuple[Arrays, Arrays, int] | None:
        """Read parameters, optimiser state and the first step that may still be taken; None where nothing began."""
        path = self.folder / STEPS
        if not path.exists():
            return None
        steps = json.loads(path.read_text(encoding="utf-8"))
        if steps["plan"] != self.plan:
            raise InputError(f"{self.folder} belongs to a training with another plan; use an empty folder.")
        if not (self.folder / STATE).exists():
            raise InputError(f"{self.folder} holds a training that stopped before its first checkpoint; start a new one.")
        with np.load(self.folder / STATE, allow_pickle=False) as stored:
            params = {name.removeprefix("params/"): stored[name] for name in stored.files if name.startswith("params/")}
            state = {name.removeprefix("state/"): stored[name] for name in stored.files if name.startswith("state/")}
        return params, state, int(steps["begun"]) + 1

    def begin(self, step: int) -> None:
        """Write down that a step begins, before it draws."""
        write_durably(self.folder / STEPS, json.dumps({"begun": step, "plan": self.plan}).encode())

    def end(self, step: int, params: Arrays, state: Arrays) -> None:
        """Keep the result of every few steps, the first and the last one included."""
        if step % EVERY == 0 or step + 1 == self.plan["steps"]:
            arrays = {f"params/{name}": value for name, value in params.items()}
            save_arrays(self.folder / STATE, arrays | {f"state/{name}": value for name, value in state.items()})
