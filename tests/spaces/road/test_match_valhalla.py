"""Valhalla behind the same function; where it is not installed, the extra is named."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

from murmurate.errors import InputError, MissingPart
from murmurate.spaces.road import Options, match, read_roads
from road_town import trip
from road_truth import drive, precision_recall

HERE = importlib.util.find_spec("valhalla") is not None


def test_without_the_package(town, monkeypatch):
    monkeypatch.setitem(sys.modules, "valhalla", None)
    with pytest.raises(MissingPart, match=r"murmurate\[valhalla\]"):
        match(trip([(0, 0), (50, 0)]), town, matcher="valhalla")


@pytest.mark.skipif(not HERE, reason="Valhalla is not installed (the [valhalla] extra)")
def test_it_needs_a_configuration(town):
    with pytest.raises(InputError, match="valhalla_config"):
        match(trip([(0, 0), (50, 0)]), town, matcher="valhalla")


@pytest.mark.data
@pytest.mark.skipif(not HERE, reason="Valhalla is not installed (the [valhalla] extra)")
def test_known_drives_in_porto(data_dir, tmp_path):
    import valhalla

    source = data_dir / "porto_osm2022_highways.osm.pbf"
    config = tmp_path / "config.json"
    config.write_text(json.dumps(valhalla.get_config(tile_dir=str(tmp_path), tile_extract="")))
    tool = next(Path(valhalla.__file__).parent.rglob("valhalla_build_tiles"))
    subprocess.run([tool, "-c", config, source], check=True, capture_output=True, cwd=tmp_path)
    porto = read_roads(source, connected=True)
    truth = drive(porto, n_trips=20, interval_s=15, seed=1)
    found = match(truth.trips, porto, matcher="valhalla", options=Options(valhalla_config=str(config)))
    precision, recall = precision_recall(truth, found.path_offsets, found.path_link)
    assert precision > 0.9
    assert recall > 0.9
