"""Draw the ground that the city of Sturnia stands on: coast, river, parks and districts, in metres around its market square."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.core.space import Floats
from murmurate.demo.draws import NETWORK, uniforms
from murmurate.spaces.plane import Plane

CITY_NAME = "Sturnia"
"""Name of the built-in city, in file and street names."""
ORIGIN_LAT, ORIGIN_LNG = 45.0, -30.0
"""Market square in degrees: open Atlantic, so that nothing in these data can be taken for a real place."""
TIME_ZONE = "Atlantic/South_Georgia"
"""Two hours behind UTC all year: local and UTC hours differ, and no clock is ever changed."""

ORIGIN = Plane(ORIGIN_LAT, ORIGIN_LNG)
"""Plane in metres around the market square."""


def to_degrees(x_m: ArrayLike, y_m: ArrayLike) -> tuple[Floats, Floats]:
    """Return latitude and longitude of metres east and north of the market square, on the microdegree lattice."""
    lat, lng = ORIGIN.from_xy(x_m, y_m)
    return np.round(lat, 6), np.round(lng, 6)


@dataclass(frozen=True, eq=False)
class Plan:
    """Coast in the south, river from north to south, parks, and districts with streets of their own direction."""

    half_m: float
    phases: Floats
    parks: Floats
    """One row a park: x, y, half axes in x and y."""
    district_xy: Floats
    district_angle: Floats
    district_spacing_m: Floats
    district_brick: NDArray[np.bool_]
    """Whether every second row of streets is shifted by half a block."""

    def river_x(self, y: ArrayLike) -> Floats:
        """Return where the middle of the river lies at each northing."""
        turn = 2 * np.pi * np.asarray(y, dtype=np.float64) / self.half_m
        return self.half_m * (
            0.075 + 0.085 * np.sin(turn / 1.35 + self.phases[0]) + 0.03 * np.sin(turn / 0.55 + self.phases[1])
        )

    def river_half_width_m(self, y: ArrayLike) -> Floats:
        """Return half the width of the river, which widens towards its mouth."""
        opening = np.clip((-0.42 * self.half_m - np.asarray(y, dtype=np.float64)) / (0.4 * self.half_m), 0, 1.5)
        return 48 + 150 * opening**2

    def coast_y(self, x: ArrayLike) -> Floats:
        """Return where the land ends: everything south of it is sea."""
        turn = 2 * np.pi * np.asarray(x, dtype=np.float64) / self.half_m
        return self.half_m * (-0.80 + 0.045 * np.sin(turn / 1.6 + self.phases[2]) + 0.02 * np.sin(turn / 0.6 + self.phases[3]))

    def east_bank(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
        """Return whether a point lies east of the river."""
        return np.asarray(x) > self.river_x(y)

    def in_water(self, x: ArrayLike, y: ArrayLike, *, bank_m: float = 0.0) -> NDArray[np.bool_]:
        """Return whether a point lies in the river or the sea, or within `bank_m` of them."""
        off = np.abs(np.asarray(x) - self.river_x(y))
        slope = (self.river_x(np.asarray(y) + 1.0) - self.river_x(np.asarray(y) - 1.0)) / 2
        in_river = off / np.sqrt(1 + slope**2) < self.river_half_width_m(y) + bank_m
        return in_river | (np.asarray(y) < self.coast_y(x) + bank_m)

    def in_park(self, x: ArrayLike, y: ArrayLike) -> NDArray[np.bool_]:
        """Return whether a point lies inside one of the parks."""
        east, north = np.asarray(x)[..., None], np.asarray(y)[..., None]
        px, py, rx, ry = self.parks.T
        return (((east - px) / rx) ** 2 + ((north - py) / ry) ** 2 < 1).any(axis=-1)

    def edge_m(self, angle: ArrayLike) -> Floats:
        """Return how far the streets reach in each direction: further along some valleys than between them."""
        turn = np.asarray(angle, dtype=np.float64)
        return self.half_m * (0.86 + 0.07 * np.sin(3 * turn + self.phases[4]) + 0.07 * np.sin(5 * turn + self.phases[5]))

    def water_outlines(self) -> list[Floats]:
        """Return the sea and the river as closed rings of (x, y), for drawing a base map."""
        reach = 1.15 * self.half_m
        x = np.linspace(-reach, reach, 240)
        sea = np.column_stack([np.r_[x, reach, -reach], np.r_[self.coast_y(x), -reach, -reach]])
        y = np.linspace(-reach, reach, 400)
        middle, width = self.river_x(y), self.river_half_width_m(y)
        river = np.column_stack([np.r_[middle - width, (middle + width)[::-1]], np.r_[y, y[::-1]]])
        return [sea, river]

    def park_outlines(self) -> list[Floats]:
        """Return the parks as closed rings of (x, y)."""
        turn = np.linspace(0, 2 * np.pi, 49)
        return [np.column_stack([x + rx * np.cos(turn), y + ry * np.sin(turn)]) for x, y, rx, ry in self.parks]


def draw_plan(*, half_m: float, seed: int) -> Plan:
    """Draw the ground for one seed."""
    phases = uniforms(seed, NETWORK, 0, 6) * 2 * np.pi
    phases[:2] = (phases[:2] - np.pi) * 0.25  # the river passes east of the market square whatever the seed
    drawn = uniforms(seed, NETWORK, 1, 200)
    inner, outer = 6, 11
    angle = np.r_[(np.arange(inner) + drawn[:inner]) / inner, (np.arange(outer) + drawn[6:17]) / outer] * 2 * np.pi
    reach = np.r_[0.34 + 0.08 * drawn[20:26], 0.68 + 0.16 * drawn[26:37]] * half_m
    seeds = np.vstack([[0.0, 0.0], np.column_stack([reach * np.cos(angle), reach * np.sin(angle)])])
    districts = len(seeds)
    from_centre = np.hypot(*seeds.T) / half_m
    plan = Plan(
        half_m=half_m,
        phases=phases,
        parks=np.zeros((0, 4)),
        district_xy=seeds,
        district_angle=drawn[40 : 40 + districts] * np.pi / 2,
        district_spacing_m=(80 + 88 * from_centre) * (0.88 + 0.24 * drawn[60 : 60 + districts]),
        district_brick=drawn[80 : 80 + districts] < 0.4,
    )
    return _with_parks(plan, drawn[100:160].reshape(-1, 4))


def _with_parks(plan: Plan, drawn: Floats) -> Plan:
    """Add parks where there is dry land, never on the market square."""
    angle = (np.arange(len(drawn)) + drawn[:, 0]) / len(drawn) * 2 * np.pi
    reach = (0.12 + 0.62 * drawn[:, 1]) * plan.half_m
    size = (110 + 190 * drawn[:, 2] ** 2) * (0.6 + 0.9 * drawn[:, 1])
    x, y = reach * np.cos(angle), reach * np.sin(angle)
    dry = ~plan.in_water(x, y, bank_m=200.0)
    parks = np.column_stack([x, y, size, size * (0.6 + 0.8 * drawn[:, 3])])[dry]
    return replace(plan, parks=np.round(parks, 1))
