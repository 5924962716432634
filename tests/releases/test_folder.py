from __future__ import annotations

import json
from dataclasses import replace

import polars as pl
import pytest

from murmurate.core.guarantee import GeoInd, Unit
from murmurate.errors import InputError, OutputError, VerifyError
from murmurate.releases.folder import check_free, new_folder, open_release, seal
from murmurate.releases.manifest import Manifest, read_manifest, statement_text


def manifest(**changes):
    return Manifest(
        **{
            "release_id": "00",
            "kind": "trips",
            "mechanism": "geoind",
            "parameters": {"epsilon": 1.0},
            "guarantee": GeoInd(
                epsilon_per_m=0.01, unit=Unit(name="trip", max_points=5), radius_m=100.0, assumptions=("Times are public.",)
            ),
            "statement": ("Times are not protected.",),
            **changes,
        }
    )


def sealed(folder):
    with new_folder(folder) as temporary:
        (temporary / "data.parquet").write_bytes(b"rows")
        seal(temporary, manifest())
    return folder


def test_names_that_no_folder_can_have_are_refused_and_the_longest_work(tmp_path):
    """A temporary folder with a longer name than the release's would fail after the charge."""
    for name in ("n" * 300, "n\0"):
        with pytest.raises(OutputError, match="cannot be made"):
            check_free(tmp_path / name)
    assert sealed(tmp_path / ("n" * 255)).is_dir()


def test_a_folder_appears_whole(tmp_path):
    folder = sealed(tmp_path / "out")
    assert {path.name for path in folder.iterdir()} == {"data.parquet", "manifest.json", "statement.md"}
    assert replace(read_manifest(folder), files={}, created="") == replace(manifest(), created="")
    assert [path.name for path in tmp_path.iterdir()] == ["out"]


def test_a_failure_leaves_nothing(tmp_path):
    with pytest.raises(KeyboardInterrupt), new_folder(tmp_path / "out") as temporary:
        (temporary / "half").write_text("x")
        raise KeyboardInterrupt
    assert list(tmp_path.iterdir()) == []


def test_existing_output_is_refused(tmp_path):
    with pytest.raises(OutputError, match="exists already"):
        check_free(tmp_path)


def test_a_file_in_the_way_is_told(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(OutputError, match="not a folder"):
        check_free(tmp_path / "file" / "out")


def test_a_full_disk_is_told(tmp_path):
    with pytest.raises(OutputError, match="disk is full"), new_folder(tmp_path / "out"):
        raise OSError(28, "No space left on device")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("break_it", "match"),
    [
        (lambda f: (f / "data.parquet").write_bytes(b"rowz"), "was changed"),
        (lambda f: (f / "data.parquet").unlink(), "missing"),
        (lambda f: (f / "more").write_text("x"), "not in the manifest"),
        (lambda f: (f / "statement.md").write_text("all is well"), "statement"),
        (lambda f: (f / "manifest.json").unlink(), "no manifest.json"),
        (lambda f: (f / "manifest.json").write_text("{"), "cannot be read"),
        (lambda f: (f / "manifest.json").write_text("[1]"), "cannot be read"),
        (lambda f: (f / "manifest.json").write_text('{"format": 99}'), "format 99"),
        (lambda f: (f / "manifest.json").write_text('{"format": 1}'), "schema"),
    ],
)
def test_broken_folders_do_not_verify(tmp_path, break_it, match):
    folder = sealed(tmp_path / "out")
    assert open_release(folder).manifest.mechanism == "geoind"
    break_it(folder)
    with pytest.raises(VerifyError, match=match):
        open_release(folder)


def test_a_softened_guarantee_shows_in_the_statement(tmp_path):
    folder = sealed(tmp_path / "out")
    values = json.loads((folder / "manifest.json").read_text())
    values["guarantee"]["epsilon_per_m"] = 1e-9
    (folder / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(VerifyError, match="does not say what the manifest says"):
        open_release(folder)


def test_statement_says_what_matters():
    text = statement_text(manifest(seeded=True, ids="kept"))
    for part in (
        "e^(0.01 d)",
        "at most 5 points",
        "Times are public.",
        "Times are not protected.",
        "test or demo",
        "original identifiers",
    ):
        assert part in text


@pytest.mark.parametrize("uid", [[[1], [1]], [{"a": 1}, {"a": 1}]])
def test_names_that_are_no_values_are_damage(tmp_path, uid):
    with new_folder(tmp_path / "out") as temporary:
        table = pl.DataFrame({"uid": uid, "tid": ["a", "a"], "lat": [60.1, 60.2], "lng": [24.9, 24.9]})
        table.write_parquet(temporary / "data.parquet")
        seal(temporary, manifest())
    with pytest.raises(InputError, match="cannot be read as released trips"):
        _ = open_release(tmp_path / "out").trips
