"""A release judged in parts: the scores of sums are those of everything at once, the others are of a stated sample."""

from __future__ import annotations

import json
import re
import sys

import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate.cli import main
from murmurate.engine import Serial
from murmurate.errors import InputError
from murmurate.judging import in_parts
from murmurate.judging.in_parts import review_in_parts
from murmurate.judging.review import review
from murmurate.mechanisms.flock import Flock
from murmurate.metrics import summed
from murmurate.metrics.summed import SUMMED

DRAWN = ("od_emd", "dpmobility_visits.emd")
"""Scores of drawn trips, which stand in another order in parts."""


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("made")
    city(300, users=40).table.write_parquet(folder / "x.parquet", row_group_size=400)
    private = mm.read(folder / "x.parquet")
    with mm.Ledger(folder / "ledger.sqlite") as ledger:
        out = mm.release(Flock(epsilon=20.0, space=GRID, n_out=250), private, ledger=ledger, out=folder / "r")
    return folder, private, out


@pytest.fixture
def parted(made, monkeypatch):
    """The same release in several row groups."""
    folder, _, out = made
    groups = [group.table for group in out.trips.partitions(500)]
    assert len(groups) > 2
    parts = [
        in_parts._ReleasedPart(folder, k, table.height, out.space, out.manifest.time_zone) for k, table in enumerate(groups)
    ]
    monkeypatch.setattr(in_parts._ReleasedPart, "load", lambda self: mm.Trips(groups[self.group], self.space, self.time_zone))
    monkeypatch.setattr(in_parts, "_released_parts", lambda _: parts)
    return groups


@pytest.mark.usefixtures("parted")
def test_sums_are_those_of_everything_at_once(made, monkeypatch):
    folder, private, _ = made
    monkeypatch.setattr(in_parts, "SAMPLE_POINTS", 1000)
    with mm.Ledger(folder / "ledger.sqlite") as ledger:
        whole = review(folder / "r", private, ledger=ledger).take_metrics(workers=1)
        found = review_in_parts(folder / "r", str(folder / "x.parquet"), Serial(), ledger=ledger, read={})
    result = found.take_metrics(workers=1)
    assert "standard error of at most" in found.note and "of 300 original" in found.note
    assert 20 < found.original.n_trips < 200 and found.released is found.release.trips
    assert [score.name for score in result] == [score.name for score in whole]
    assert (result.n_original, result.n_released, result.grid) == (300, 250, whole.grid)
    for score in whole:
        summed_up = score.name.partition(".")[0] in SUMMED
        if summed_up and not score.name.startswith(DRAWN):
            stated = re.search(r"off by at most (\S+)", result[score.name].note)
            off = float(stated[1]) if stated else 1e-15
            assert result[score.name].value == pytest.approx(score.value, rel=1e-8, abs=off), score.name
        assert ("on a sample of" in result[score.name].note) != summed_up


def test_a_trip_in_two_row_groups_is_refused(made, parted):
    folder, *_ = made
    parted[1] = parted[0][-2:].vstack(parted[1])
    with mm.Ledger(folder / "ledger.sqlite") as ledger, pytest.raises(InputError, match="two row groups"):
        review_in_parts(folder / "r", str(folder / "x.parquet"), Serial(), ledger=ledger, read={})


def test_the_command_judges_large_files_in_parts(made, monkeypatch, tmp_path):
    folder, *_ = made
    monkeypatch.setattr(in_parts, "is_large", lambda *_: True)
    words = ["evaluate", str(folder / "r"), "--against", str(folder / "x.parquet"), "--ledger", str(folder / "ledger.sqlite")]
    words += ["--engine", "serial", "--metric", "visits", "--no-attacks", "--json", str(tmp_path / "s.json")]
    monkeypatch.setattr(sys, "argv", ["murmurate", *words, "--html", str(tmp_path / "r.html")])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 0
    found = json.loads((tmp_path / "s.json").read_text())
    assert "random sample of" in found["note"] and found["trips"] == {"original": 300, "released": 250}
    assert "random sample of" in (tmp_path / "r.html").read_text()


def test_parts_are_chosen_by_size(made, monkeypatch):
    folder, *_ = made
    assert not in_parts.is_large(folder / "r", str(folder / "x.parquet"))
    monkeypatch.setattr("murmurate.ingest.stream._STREAM_ROWS", 100)
    assert in_parts.is_large(folder / "r", str(folder / "x.parquet"))


def test_samples_do_not_depend_on_parts(made):
    _, private, _ = made
    chosen = summed.drawn(private, 0.3)
    assert 50 < chosen.sum() < 130
    by_part = [keep for part in private.partitions(500) for keep in summed.drawn(part, 0.3)]
    assert by_part == chosen.tolist()
