"""A fit or release whose driver is killed before or after a draw goes on under its charge and draws no kept table again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate.asking.kept_answers import load_answers
from murmurate.core.trips import Trips
from murmurate.custody.internal import Internal
from murmurate.errors import InputError
from murmurate.mechanisms.flock import Flock

FLOCK = Flock(epsilon=5.0, space=GRID)
ON_SPARK = [
    ("fit", "before the first", "local[2]", 0),
    ("release", "before the second", "local[2]", 1),
    ("release", "after the second", "local[2]", 2),
]
"""Cases where pyspark is installed; it is not part of dev."""

SCRIPT = """
import os, signal, sys
import murmurate as mm
from diagonal_city import GRID, city
from murmurate.asking.budget import Budget
from murmurate.custody import reading
from murmurate.mechanisms.flock import Flock

def main():
    make, where, engine, folder = sys.argv[1:]
    end = lambda: os.kill(os.getpid(), signal.SIGKILL)
    if where.startswith("before"):  # of a table of the first or of the second round
        draw, stop = Budget.draw, "n" if where == "before the first" else "ends"
        Budget.draw = lambda self, table, *rest, **more: end() if table.name == stop else draw(self, table, *rest, **more)
    else:
        save, rounds = reading.save_answers, []
        def saved(*given):
            save(*given)
            rounds.append(1)
            if len(rounds) == 3:  # the key, then two rounds
                end()
        reading.save_answers = saved
    with mm.Ledger(folder + "/ledger.sqlite") as ledger:
        make = {"fit": mm.fit, "release": mm.release}[make]
        make(Flock(epsilon=5.0, space=GRID), city(300, users=30), ledger=ledger, out=folder + "/made", engine=engine)

if __name__ == "__main__":
    main()
"""


def killed(make, where, engine, folder):
    (folder / "run.py").write_text(SCRIPT)
    paths = os.pathsep.join([str(Path(__file__).parents[1]), *sys.path])
    command = [sys.executable, folder / "run.py", make, where, engine, folder]
    done = subprocess.run(command, env={**os.environ, "PYTHONPATH": paths}, check=False)
    assert done.returncode == -signal.SIGKILL
    assert not (folder / "made").exists()


@pytest.mark.parametrize(
    ("make", "where", "engine", "kept"),
    [
        ("fit", "before the first", "serial", 0),
        ("fit", "before the second", "processes:2", 1),
        ("release", "before the second", "serial", 1),
        ("release", "after the second", "serial", 2),
        ("release", "after the second", "processes:2", 2),
        ("release", "before the second", "dask-local:1", 1),
        ("fit", "after the second", "dask-local:1", 2),
        *(ON_SPARK if find_spec("pyspark") else []),
    ],
)
def test_a_killed_run_goes_on_and_draws_nothing_kept_again(tmp_path, make, where, engine, kept):
    killed(make, where, engine, tmp_path)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        (debit,) = [entry for entry in ledger.history() if entry.what == "debit"]
        internal = Internal(ledger, debit.details["release_id"])
        _, before = load_answers(internal.unfinished())
        assert ("n" in before, "ends" in before) == (kept >= 1, kept == 2)
        answers = {}
        model = Flock.model

        def remembered(self, found, facts, rng):
            answers.update(found)
            return model(self, found, facts, rng)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(Flock, "model", remembered)
            again = {"fit": mm.fit, "release": mm.release}[make]
            options = {"ledger": ledger, "resume": internal.release_id, "engine": engine}
            made = again(FLOCK, city(300, users=30), out=tmp_path / "made", **options)
        assert all(np.array_equal(answers[name].noisy, one.noisy) for name, one in before.items())
        assert made.manifest.release_id == internal.release_id
        assert len([entry for entry in ledger.history() if entry.what == "debit"]) == 1
        assert not internal.has_unfinished
        with pytest.raises(InputError, match="is finished"):
            again(FLOCK, city(300, users=30), out=tmp_path / "twice", **options)


def test_only_the_same_run_is_resumed(tmp_path):
    killed("fit", "before the second", "serial", tmp_path)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        (debit,) = [entry for entry in ledger.history() if entry.what == "debit"]
        options = {"ledger": ledger, "out": tmp_path / "other", "resume": debit.details["release_id"]}
        with pytest.raises(InputError, match="was charged for something else: the parameters differ"):
            mm.release(FLOCK, city(300, users=30), **options)
        trips = city(300, users=30)
        otherwise = trips.with_source(replace(trips.identity, made_with={"read": {"columns": {"uid": "cab"}}}))
        with pytest.raises(InputError, match="was charged for something else: how it is read differ"):
            mm.fit(FLOCK, otherwise, **options)
        elsewhere = Trips(trips.table, trips.space, "Asia/Tokyo")  # a day there is part of two of the days counted before
        with pytest.raises(InputError, match="was charged for something else: the time zone differ"):
            mm.fit(FLOCK, elsewhere, **options)
