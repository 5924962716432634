"""Save and load."""

from dataclasses import replace

import numpy as np
import pytest

from murmurate.errors import InputError, OutputError
from murmurate.spaces.road import RoadNetwork, load, read_roads, save
from murmurate.spaces.road.network import ARRAYS
from road_town import grid_town


def named():
    return RoadNetwork.from_arrays(
        node_lat=[0.0, 0.0],
        node_lng=[0.0, 0.001],
        link_from=[0, 1],
        link_to=[1, 0],
        road_class=[5, 5],
        name=["Östra gatan", ""],
        way_id=[7, -1],
        source="here",
        dropped={"rings cut in two": 2},
    )


def test_a_round_trip_keeps_everything(tmp_path):
    network = named()
    copy = load(save(network, tmp_path / "n.npz"))
    assert copy.fingerprint == network.fingerprint
    assert copy.name.to_list() == ["Östra gatan", ""]
    assert copy.way_id.tolist() == [7, -1]
    assert (copy.source, copy.dropped) == ("here", {"rings cut in two": 2})
    assert read_roads(tmp_path / "n.npz").fingerprint == network.fingerprint
    for key in ARRAYS:
        assert getattr(copy, key).dtype == getattr(network, key).dtype
    assert list(tmp_path.iterdir()) == [tmp_path / "n.npz"]


def test_the_folder_of_the_source_is_not_kept(tmp_path):
    """Models carry their network, and a path may name a person or a project."""
    file = save(replace(named(), source="/home/someone/secret/town.osm.pbf"), tmp_path / "n.npz")
    assert load(file).source == "town.osm.pbf" and b"secret" not in file.read_bytes()


def test_without_names(tmp_path):
    copy = load(save(grid_town(3), tmp_path / "n.npz"))
    assert copy.name is None
    assert copy.way_id is None


def test_damaged_foreign_and_pickled_files_are_refused(tmp_path):
    file = save(named(), tmp_path / "n.npz")
    (tmp_path / "cut.npz").write_bytes(file.read_bytes()[:-100])
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    np.savez(tmp_path / "pickled.npz", about=np.array([{"a": 1}], dtype=object))
    for name in ("cut.npz", "other.npz", "pickled.npz"):
        with pytest.raises(InputError, match=r"not a whole network|does not hold a network"):
            load(tmp_path / name)
    about = np.frombuffer(b'{"schema": "murmurate-road-99"}', dtype=np.uint8)
    np.savez(tmp_path / "newer.npz", about=about)
    with pytest.raises(InputError, match="murmurate-road-99"):
        load(tmp_path / "newer.npz")


def test_places_that_cannot_be_written(tmp_path):
    with pytest.raises(OutputError, match=r"saved as \.npz"):
        save(named(), tmp_path / "n.road")
    with pytest.raises(OutputError, match="cannot be written"):
        save(named(), tmp_path / "no" / "n.npz")
