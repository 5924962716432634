"""The small town and its scrambled twin."""

from __future__ import annotations

import pytest

from murmurate.core.trips import Trips
from small_town import scrambled, town


@pytest.fixture(scope="session")
def original() -> Trips:
    return town()


@pytest.fixture(scope="session")
def noise(original: Trips) -> Trips:
    return scrambled(original)
