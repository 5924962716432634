"""Looking into files."""

from __future__ import annotations

import json

import polars as pl
import pytest

from murmurate.errors import ParameterError
from murmurate.ingest.inspect import inspect

TEXT = """user,t,lat,lng
a,1600000000,60.1,24.9
a,1600000060,60.2,24.8
a,1600000060,60.2,24.8
b,1600000000,61.0,25.0
"""


def test_what_is_there(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(TEXT)
    seen = inspect(path)
    values = json.loads(json.dumps(seen.to_json()))
    assert seen.readable
    assert (values["report"]["points"], values["report"]["people"], values["report"]["duplicates"]) == (3, 2, 1)
    assert values["extent"] == {"south": 60.1, "west": 24.8, "north": 61.0, "east": 25.0}
    assert values["interval_s"]["50%"] == 60
    assert (values["first"], values["last"]) == ("2020-09-13T12:26:40+00:00", "2020-09-13T12:27:40+00:00")
    assert values["report"]["columns"]["uid"] == "user"
    assert "1 duplicate points" in seen.words()
    assert "private" in seen.words()


def test_large_files_are_looked_at_in_parts(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text(TEXT)
    whole = inspect(path)
    monkeypatch.setattr("murmurate.ingest.stream._STREAM_BYTES", 3)
    assert inspect(path) == whole


def test_what_is_wrong(tmp_path):
    path = tmp_path / "x.csv"
    path.write_text(TEXT.replace("61.0", "95"))
    seen = inspect(path)
    assert not seen.readable
    assert "row 4" in seen.words()
    assert seen.to_json()["faults"] == [path.name + ", row 4, column lat: latitude beyond 90 degrees (file line 5)"]
    assert "unknown kind" in inspect(__file__).words()
    with pytest.raises(ParameterError):
        inspect(path, layout="no such")


def test_frames_and_sequences():
    seen = inspect(pl.DataFrame({"uid": ["a"], "cell": [1]}))
    assert seen.source == "DataFrame"
    assert (seen.first, seen.extent, seen.interval_s) == (None, None, None)
    assert "time: none" in seen.words()
