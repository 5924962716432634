"""A study of the smallest size that still has two layers."""

from __future__ import annotations

import copy

import pytest

SMALL = {
    "name": "small",
    "metrics": ["length", "speed", "hausdorff"],
    "datasets": {"tony900": {"skaters": 30}},
    "repeats": 2,
    "seed": 5,
    "mechanisms": [
        {
            "name": "geoind",
            "label": "simple",
            "set": {"max_points": 14},
            "sweep": {"epsilon": [0.5, 1.0], "radius_m": [50, 100]},
        }
    ],
}


@pytest.fixture
def small():
    return copy.deepcopy(SMALL)
