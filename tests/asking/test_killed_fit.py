"""A fit whose driver is killed before or after a draw goes on under its charge and draws no table twice, on any engine."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate.asking.kept_answers import load_answers
from murmurate.custody.internal import Internal
from murmurate.errors import InputError
from murmurate.mechanisms.flock import Flock

FLOCK = Flock(epsilon=5.0, space=GRID)

SCRIPT = """
import os, signal, sys
import murmurate as mm
from diagonal_city import GRID, city
from murmurate.asking.budget import Budget
from murmurate.custody import reading
from murmurate.mechanisms.flock import Flock

def main():
    where, engine, folder = sys.argv[1:]
    end = lambda: os.kill(os.getpid(), signal.SIGKILL)
    if where.startswith("before"):  # of a table of the first or of the second round
        draw, stop = Budget.draw, "n" if where == "before the first" else "ends"
        Budget.draw = lambda self, table, *rest, **more: end() if table.name == stop else draw(self, table, *rest, **more)
    else:
        save, rounds = reading.save_answers, []
        def saved(*given):
            save(*given)
            rounds.append(1)
            if len(rounds) == 2:
                end()
        reading.save_answers = saved
    with mm.Ledger(folder + "/ledger.sqlite") as ledger:
        mm.fit(Flock(epsilon=5.0, space=GRID), city(300, users=30), ledger=ledger, out=folder + "/model", engine=engine)

if __name__ == "__main__":
    main()
"""


def killed_fit(where, engine, folder):
    (folder / "fit.py").write_text(SCRIPT)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    done = subprocess.run(
        [sys.executable, folder / "fit.py", where, engine, folder], env={**os.environ, "PYTHONPATH": paths}, check=False
    )
    assert done.returncode == -signal.SIGKILL
    assert not (folder / "model").exists()


@pytest.mark.parametrize(
    ("where", "engine", "kept"), [("before the second", "processes:2", 1), ("after the second", "serial", 2)]
)
def test_a_killed_fit_goes_on_and_draws_nothing_twice(tmp_path, where, engine, kept):
    killed_fit(where, engine, tmp_path)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        debits = [entry for entry in ledger.history() if entry.what == "debit"]
        assert len(debits) == 1
        release_id = debits[0].details["release_id"]
        _, before = load_answers(Internal(ledger, release_id).unfinished())
        assert ("n" in before, "ends" in before) == (True, kept == 2)
        answers = {}
        model = Flock.model

        def remembered(self, found, facts, rng):
            answers.update(found)
            return model(self, found, facts, rng)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Flock, "model", remembered)
            mm.fit(FLOCK, city(300, users=30), ledger=ledger, out=tmp_path / "model", resume=release_id, engine="serial")
        assert all(np.array_equal(answers[name].noisy, one.noisy) for name, one in before.items())
        assert len([entry for entry in ledger.history() if entry.what == "debit"]) == 1


def test_a_fit_killed_before_its_first_draw_is_charged_and_says_so(tmp_path):
    """Nothing says that the draw had not happened, so a second one would have to be paid for."""
    killed_fit("before the first", "serial", tmp_path)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        debits = [entry for entry in ledger.history() if entry.what == "debit"]
        with pytest.raises(InputError, match="nothing is kept"):
            mm.fit(FLOCK, city(300, users=30), ledger=ledger, out=tmp_path / "m", resume=debits[0].details["release_id"])
