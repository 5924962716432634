from __future__ import annotations

import numpy as np

from murmurate.synthesis.zones import zones_of_equal_mass


def test_zones_carry_nearly_equal_mass():
    mass = np.random.default_rng(1).gamma(2.0, size=40 * 60)
    zone = zones_of_equal_mass(mass, rows=40, columns=60, depth=5)
    carried = np.bincount(zone, weights=mass, minlength=32)
    assert carried.min() > 0.7 * mass.sum() / 32
    assert carried.max() < 1.3 * mass.sum() / 32


def test_zones_are_nested():
    mass = np.random.default_rng(2).gamma(1.0, size=30 * 30)
    fine = zones_of_equal_mass(mass, rows=30, columns=30, depth=6)
    coarse = zones_of_equal_mass(mass, rows=30, columns=30, depth=4)
    assert (fine >> 2 == coarse).all()


def test_more_zones_than_cells_and_no_mass_at_all():
    zone = zones_of_equal_mass(np.zeros(6), rows=2, columns=3, depth=5)
    assert len(np.unique(zone)) == 6
    assert zone.max() < 32
    assert (zones_of_equal_mass(np.array([-3.0]), rows=1, columns=1, depth=3) == 0).all()
