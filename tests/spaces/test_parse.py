"""The words of --space."""

import pickle

import pytest

from murmurate.errors import InputError, ParameterError
from murmurate.spaces import Grid, Plane, parse
from murmurate.spaces.road import save
from road_town import grid_town


def test_each_form_gives_its_space():
    assert parse("grid:60.1,24.8,60.3,25.2:250") == Grid(60.1, 24.8, 60.3, 25.2, 250)
    assert parse(" plane:60.17,24.94 ") == Plane(60.17, 24.94)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("", "plane:LAT,LNG"),
        ("60,25", "plane:LAT,LNG"),
        ("gird:60,24,61,25:250", "Did you mean 'grid'"),
        ("grid:60,24,61,25", "grid:SOUTH"),
        ("grid:60,24,61:250", "grid:SOUTH"),
        ("grid:60,24,61,25:250:9", "grid:SOUTH"),
        ("grid:60,24,61,x:250", "plain numbers"),
        ("grid:nan,24,61,25:250", "south"),
        ("grid:61,24,60,25:250", "below north"),
        ("plane:60", "plane:LAT,LNG"),
        ("plane:60;25", "plain numbers"),
        ("plane:", "plain numbers"),
        ("plane:95,0", "origin"),
    ],
)
def test_other_words_are_refused(words, says):
    with pytest.raises(ParameterError, match=says):
        parse(words)


def test_a_road_file_is_read_and_a_missing_one_named(tmp_path):
    with pytest.raises(InputError, match=r"roads\.graphml"):
        parse(f"road:{tmp_path / 'roads.graphml'}")


def test_a_network_is_read_by_its_spec_where_its_file_is_and_a_changed_file_is_refused(tmp_path, monkeypatch):
    network = grid_town(4)
    monkeypatch.chdir(tmp_path)
    save(network, tmp_path / "town.npz")
    assert parse(f"road:town.npz#{network.fingerprint[:16]}").n_links == network.n_links
    with pytest.raises(ParameterError, match="another network"):
        parse("road:town.npz#0123456789abcdef")
    kept = parse("road:town.npz")
    assert str(tmp_path) not in kept.spec()


def test_telling_a_spec_does_not_make_a_network_known(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    network = grid_town(3)
    with pytest.raises(InputError, match=r"(?s)built in memory .*--space road:FILE"):
        parse(network.spec())
    again = pickle.loads(pickle.dumps(network))
    assert again.spec() == network.spec() and again.n_links == network.n_links
