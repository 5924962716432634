"""The town, the real network, and a cache of their own for tests."""

from __future__ import annotations

import pytest

from murmurate.spaces.road import RoadNetwork, read_roads
from road_town import grid_town


@pytest.fixture(scope="session", autouse=True)
def own_cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        folder = tmp_path_factory.mktemp("cache")
        patch.setenv("MURMURATE_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def town() -> RoadNetwork:
    return grid_town()


@pytest.fixture(scope="session")
def sf(data_dir) -> RoadNetwork:
    return read_roads(data_dir / "sf_osm2026_central_drive.graphml.gz")
