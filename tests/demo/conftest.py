"""One city for all tests of the demo room."""

from __future__ import annotations

import pytest

from murmurate.demo import City, city
from murmurate.demo.network import StreetMap, street_map


@pytest.fixture(scope="session")
def town() -> City:
    return city(people=200, days=14, seed=1)


@pytest.fixture(scope="session")
def streets() -> StreetMap:
    return street_map(across_km=8.0, seed=1)
