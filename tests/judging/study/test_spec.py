"""A study is checked before it runs, and all that is wrong with it is told at once."""

from __future__ import annotations

from pathlib import Path

import pytest

from murmurate.errors import InputError
from murmurate.judging.study import read_spec
from murmurate.mechanisms import NAMES

STUDIES = sorted((Path(__file__).resolve().parents[3] / "studies").glob("*.toml"))


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_shipped_study_can_be_read(path):
    spec = read_spec(path)
    assert spec.name == path.stem
    assert spec.about


def test_there_are_the_shipped_studies():
    assert {path.stem for path in STUDIES} >= {"tony900", "tony900_small", "porto", "sf_taxi", "families"}


def test_the_full_study_is_the_published_grid():
    spec = read_spec(next(path for path in STUDIES if path.stem == "tony900"))
    assert spec.repeats == 100
    assert [len(part.sweep["epsilon"]) * len(part.sweep["radius_m"]) for part in spec.mechanisms] == [48, 48]


def test_attacks_on_counts_are_refused(small):
    small["attacks"] = ["count_membership"]
    with pytest.raises(InputError, match="a study compares trips"):
        read_spec(small)


def test_unknown_names_are_answered_with_all_and_with_the_nearest(small):
    small["metrics"] = ["hausdorf"]
    small["attacks"] = ["reidentfy"]
    small["mechanisms"][0]["name"] = "geoindd"
    with pytest.raises(InputError) as caught:
        read_spec(small)
    text = str(caught.value)
    assert len(caught.value.faults) == 3
    for nearest in ("hausdorff", "reidentify", "geoind"):
        assert f"Did you mean {nearest!r}" in text
    assert all(name in text for name in NAMES)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"repeat": 3}, "Did you mean 'repeats'"),
        ({"repeats": 0}, "repeats must be"),
        ({"seed": -1}, "seed must be"),
        ({"metrics": []}, "measures something"),
        ({"metrics": "hausdorff"}, "list of names"),
        ({"datasets": {}}, "needs a dataset"),
        ({"datasets": {"tony901": {}}}, "Did you mean 'tony900'"),
        ({"datasets": {"tony900": {"skater": 3}}}, "Did you mean 'skaters'"),
        ({"datasets": {"mine": {"file": "a.csv", "clean": {"min_duration": 3}}}}, "Did you mean 'min_duration_s'"),
        ({"datasets": {"mine": {"kind": "file"}}}, "names no file"),
        ({"datasets": {"tony900": {"centre": 3}}}, "centre must be"),
        ({"datasets": {"tony900": 3}}, "table of names"),
        ({"mechanisms": []}, "needs a mechanism"),
        ({"mechanisms": {"name": "geoind"}}, "[[mechanisms]]"),
        ({"mechanisms": [{"label": "x"}]}, "names no mechanism"),
        ({"mechanisms": [{"name": "geoind", "sweep": {"epsilon": 1}}]}, "list of values"),
        ({"mechanisms": [{"name": "geoind", "sweep": {"epsilon": []}}]}, "list of values"),
        ({"mechanisms": [{"name": "geoind", "set": {"epsilon": 1}, "sweep": {"epsilon": [1]}}]}, "both set and swept"),
        ({"mechanisms": [{"name": "geoind"}, {"name": "geoind"}]}, "label of its own"),
        ({"regression": {"baseline": "simpel"}}, "Did you mean 'simple'"),
        ({"regression": {"radius": "radius_m"}}, "[regression] has no 'radius'"),
    ],
)
def test_what_is_wrong_is_told(small, change, told):
    with pytest.raises(InputError) as caught:
        read_spec({**small, **change})
    assert told in str(caught.value)


def test_a_file_that_is_no_study(tmp_path):
    with pytest.raises(InputError, match="does not exist"):
        read_spec(tmp_path / "none.toml")
    broken = tmp_path / "broken.toml"
    broken.write_text("metrics = [")
    with pytest.raises(InputError, match="can be read"):
        read_spec(broken)
