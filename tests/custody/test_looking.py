"""What is told before the charge is the same whoever looks at the parts."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from diagonal_city import city
from murmurate import engine
from murmurate.asking.rounds import Held
from murmurate.core.trips import Trips
from murmurate.custody.looking import findings
from murmurate.mechanisms.flock import Flock
from murmurate.spaces.grid import Grid


@dataclass
class Parts:
    """Trips in parts that workers can load."""

    trips: Trips
    sizes: int

    def __post_init__(self):
        self.identity = self.trips.identity

    def sources(self):
        return [Held(part) for part in self.trips.partitions(self.sizes)]

    def __iter__(self):
        raise AssertionError("the parts were read by this process")


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize("box", [(60.10, 24.80, 60.13, 24.83), (24.8, 60.1, 24.92, 60.16), (60.10, 24.80, 60.16, 24.92)])
def test_workers_find_what_one_process_finds(workers, box):
    private = city(120, users=30)
    mechanism = Flock(epsilon=0.5, unit="user", max_trips=1, space=Grid(*box, 600))
    whole = findings(mechanism, private)
    assert whole
    with engine.engine(workers) as running:
        assert findings(mechanism, Parts(private, 100), running) == whole
