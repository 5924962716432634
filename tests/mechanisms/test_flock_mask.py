"""A mask: no released point lies outside public polygons or far from public roads."""

from __future__ import annotations

import json

import numpy as np
import pytest

import murmurate as mm
from diagonal_city import GRID, city
from murmurate import noise
from murmurate.asking.rounds import fitted
from murmurate.errors import InputError, MurmurateError
from murmurate.mechanisms.flock import Flock, fitting
from murmurate.mechanisms.flock.mask import Mask
from murmurate.spaces.road import RoadNetwork

SOUTH, WEST, NORTH, EAST = GRID.south, GRID.west, GRID.north, GRID.east
MIDDLE = (WEST + EAST) / 2


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    """Fewer candidates: what is tested here does not hang on how many there are."""
    monkeypatch.setattr(fitting, "ENDS_POOL_TRIPS", (10_000, 10_000))
    monkeypatch.setattr(fitting, "POOL_TRIPS", (2_000, 2_000))


def polygons(path, west, east, *, scale=1.0):
    ring = [[west, SOUTH - 1], [east, SOUTH - 1], [east, NORTH + 1], [west, NORTH + 1], [west, SOUTH - 1]]
    shape = {"type": "Polygon", "coordinates": [[[x * scale, y * scale] for x, y in ring]]}
    feature = {"type": "Feature", "properties": {}, "geometry": shape}
    path.write_text(json.dumps({"type": "FeatureCollection", "features": [feature]}))
    return str(path)


def test_no_point_lies_outside_the_polygons_also_after_saving(tmp_path):
    coast = MIDDLE + 0.3 * GRID.lng_step  # within a cell
    land = polygons(tmp_path / "land.geojson", WEST - 1, coast)
    plain, masked = Flock(epsilon=2.0, space=GRID), Flock(epsilon=2.0, space=GRID, mask=land)
    assert masked.guarantee() == plain.guarantee()
    assert any("land.geojson#" in line for line in masked.statement())
    free = mm.rehearse(plain, city(400), rng=noise.seeded(1)).payload
    assert (free.lng > coast).mean() > 0.2  # the trips themselves cross the coast
    model = fitted(masked, city(400), noise.seeded(1))
    model.save(tmp_path)
    for one in (model, plain.load(tmp_path)):
        released = one.sample(600, noise.seeded(2))
        assert released.n_trips == 600
        assert (released.lng <= coast).all()
        assert len(np.unique(released.cell)) > 10


def test_points_move_to_the_nearest_open_square_of_their_cell():
    open_ = np.zeros((6, 6), dtype=bool)
    open_[0, 0] = open_[4, 5] = True
    mask = Mask(open_, 3)
    y, x = mask.moved(np.array([0.1, 0.9, 1.9, 0.5]), np.array([0.1, 0.9, 1.1, 1.9]))
    assert not mask.closed(y, x).any()
    assert np.floor(y[:3]).tolist() == np.floor(x[:3]).tolist() == [0, 0, 1]  # where their cell is partly open
    assert mask.share.tolist() == pytest.approx([1 / 9, 0, 0, 1 / 9])


def test_roads_as_a_mask():
    roads = RoadNetwork.from_arrays(
        node_lat=[SOUTH, NORTH], node_lng=[MIDDLE, MIDDLE], link_from=[0, 1], link_to=[1, 0], road_class=[5, 5]
    )
    released = mm.rehearse(Flock(epsilon=2.0, space=GRID, mask=roads), city(300), rng=noise.seeded(1)).payload
    assert np.abs(released.lng - MIDDLE).max() < GRID.lng_step
    assert released.lat.max() - released.lat.min() > 0.3 * (NORTH - SOUTH)


def test_a_mask_that_is_none_is_refused_before_anything_is_charged(tmp_path):
    elsewhere = polygons(tmp_path / "elsewhere.geojson", WEST - 3, WEST - 2)
    metres = polygons(tmp_path / "metres.geojson", WEST - 1, EAST, scale=1e5)
    text = tmp_path / "text.geojson"
    text.write_text("nothing")
    for mask, words in (
        (elsewhere, "covers nothing"),
        (metres, "are no degrees"),
        (str(text), "text.geojson"),
        (str(tmp_path / "none.geojson"), "no such file"),
        (5, "mask takes"),
    ):
        with pytest.raises(MurmurateError, match=words):
            Flock(epsilon=2.0, space=GRID, mask=mask)
    ledger = mm.Ledger(f"sqlite:///{tmp_path}/ledger.db")
    with pytest.raises(InputError):
        mm.release(Flock(epsilon=2.0, space=GRID, mask=metres), city(50), ledger=ledger, out=tmp_path / "made")
    assert not (tmp_path / "made").exists()


def test_flock_on_roads_takes_no_mask(tmp_path):
    roads = RoadNetwork.from_arrays(
        node_lat=[SOUTH, NORTH], node_lng=[WEST, EAST], link_from=[0, 1], link_to=[1, 0], road_class=[5, 5]
    )
    with pytest.raises(MurmurateError, match="keeps to the roads"):
        Flock(epsilon=2.0, space=roads, mask=polygons(tmp_path / "land.geojson", WEST, EAST))


def test_a_model_with_a_mask_is_sampled_where_the_file_is_not(tmp_path):
    file = tmp_path / "land.geojson"
    masked = Flock(epsilon=2.0, space=GRID, mask=polygons(file, WEST - 1, MIDDLE))
    ledger = mm.Ledger(f"sqlite:///{tmp_path}/l.db")
    made = mm.fit(masked, city(200), ledger=ledger, out=tmp_path / "model")
    file.unlink()
    drawn = mm.sample(made.folder, n_out=50, out=tmp_path / "drawn")
    assert drawn.manifest.parameters["mask"].startswith("zones:land.geojson#")
