"""Whatever is wrong with private data, the message tells no uid, time or place of theirs, and not where they lie."""

from __future__ import annotations

import re
import shutil
import warnings

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from fuzz_seeds import Seeds
from murmurate.errors import InputError, MurmurateError
from small_town import town

CANARY = re.compile("kestrel|4711|47:11", re.IGNORECASE)
"""Part of every uid, coordinate, time and folder of the files below."""
TRIES = 8


@pytest.fixture(scope="module")
def cases(tmp_path_factory):
    """Every format and layout of traces with canaries for values, below a folder that is a canary too."""
    home = tmp_path_factory.mktemp("kestrel")
    table = (
        town(400)
        .table.head(60)
        .with_columns(
            pl.format("kestrel4711{}", pl.col("uid")).alias("uid"),
            pl.col("lat", "lng").round(3) + 0.0004711,
            pl.col("datetime").dt.truncate("1h") + pl.duration(minutes=47, seconds=11),
        )
    )
    made = Seeds(home, table)
    made.traces()
    return {name: case for name, case in made.cases.items() if not name.startswith("inspect")}  # it shows the file


def test_no_message_on_a_damaged_file_tells_of_its_values(cases, tmp_path_factory):
    work = tmp_path_factory.mktemp("kestrel-work")
    said: dict[str, list[str]] = {name: [] for name in cases}
    for name, case in cases.items():
        for number in range(TRIES):
            copy = work / f"{name} {number}"
            shutil.copytree(case.seed, copy)
            case.mutate(copy, np.random.default_rng([number, 79]))
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    case.act(copy, work)
            except MurmurateError as error:
                said[name].append(str(error))
    assert all(said.values()), "a format of which no copy was refused tests nothing"
    assert [(name, text) for name, texts in said.items() for text in texts if CANARY.search(text)] == []


@pytest.mark.parametrize(
    "text",
    [
        "kestrel4711,1,2024-05-01T08:47:11Z,60.024711,24.034711\n" * 3,  # no header
        "kestrel4711 60.024711,cafe,2024-05-01 08:47:11\n" * 3,
        "uid,lat,lng\nkestrel4711,60.024711,x24.034711\n",
        "uid,lat,lng\nkestrel4711,60.024711,924.034711\n",
        "uid,datetime,lat,lng\nkestrel4711,May 4711,60.024711,24.034711\n",
        "uid,datetime,lat,lng\nkestrel4711,2024-05-01 47:11,60.024711,24.034711\n",
        "uid,tid,datetime,lat,lng\nkestrel4711,a,2024-05-01T08:47:11Z,60.024711,24.034711\nwren,a,2024-05-01T08:47:11Z,60.02,24.03\n",
        'uid,lat,lng\n"kestrel4711,60.024711,24.034711\n',
        "uid,lat,lng\nkestrel4711,60.024711,24.034711,24.094711\n",
        "kestrel4711,lat,lng\nkestrel4711,60.024711,24.034711\n",
    ],
)
def test_no_message_on_a_mistaken_table_tells_of_its_values(tmp_path, text):
    (tmp_path / "kestrel4711").mkdir()
    file = tmp_path / "kestrel4711" / "trips.csv"
    file.write_text(text)
    with pytest.raises(InputError) as refused:
        mm.read(file, strict=True)
    assert not CANARY.search(str(refused.value))
    assert "trips.csv" in str(refused.value)


def test_files_of_a_folder_are_numbered_because_their_names_are_often_uids(tmp_path):
    for name in ("finch", "kestrel4711", "wren"):
        broken = "x" if name == "kestrel4711" else ""
        (tmp_path / f"{name}.csv").write_text(f"datetime,lat,lng\n2024-05-01T08:00:00Z,60.02,24.03{broken}\n")
    with pytest.raises(InputError, match="file 2 in the order of names") as refused:
        mm.read(tmp_path, columns={"uid": "FILE"})
    assert not CANARY.search(str(refused.value))
