"""The mechanism: parameters, guarantee, and the search for the narrowest groups that keep the trash small."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import polars as pl

from murmurate.core.guarantee import KAnonymity, Unit
from murmurate.core.mechanism import Rng
from murmurate.core.parameters import positive, share, whole
from murmurate.core.space import Integers
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.k_anonymity.cylinders import move, sizes
from murmurate.mechanisms.k_anonymity.groups import Shapes, group, shapes

WIDENING = 1.5
"""Factor by which the width of groups grows until few enough trips are trash; set by hand."""

WIDEST_M = 5e7
"""Largest finite width of a group, in metres: four diameters of the Earth. Beyond it any trip may join any group."""


@dataclass(frozen=True, kw_only=True)
class KAnonymousTrips:
    """Groups trips of at least k people and moves each group into a common cylinder of space and time.

    Guarantee: every released trip has at least k - 1 others, of as many other people, that start and end with it and are never
    farther from it than `radius_m`. Nothing is promised against somebody who knows more about the people in a group.

    >>> KAnonymousTrips(k=5, radius_m=300.0).guarantee().k
    5
    """

    name: ClassVar[str] = "k_anonymity"
    needs: ClassVar[frozenset[str]] = frozenset({"time", "coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("datetime", "lat", "lng")
    paired: ClassVar[bool] = True
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"k": 3, "radius_m": 500.0}

    k: int
    """People in each group, oneself included."""
    radius_m: float
    """Largest distance between two trips of a group at any moment, in metres."""
    max_trash: float = 0.1
    """Largest share of trips that may be dropped because nobody moves like them."""
    time_cost_m_per_s: float = 0.1
    """Metres that a second of difference in start or end weighs when groups are formed: 360 m for an hour."""

    def __post_init__(self) -> None:
        whole("k", self.k, at_least=2, at_most=10**6)
        positive("radius_m", self.radius_m, at_most=1_000_000)
        if self.radius_m < 1:
            raise ParameterError(f"radius_m must be at least 1 m, ten times the lattice; got {self.radius_m!r}.")
        share("max_trash", self.max_trash, closed=True)
        positive("time_cost_m_per_s", self.time_cost_m_per_s)

    # -- the promise -----------------------------------------------------------------------------------------------

    def guarantee(self) -> KAnonymity:
        """Return the promise: k people within the radius."""
        return KAnonymity(
            k=self.k,
            radius_m=self.radius_m,
            unit=Unit(name="trip"),
            assumptions=(
                "The reader knows nothing of the members of a group beyond what is released: who knows all but one of them, or "
                "that all go to one sensitive place, learns the rest.",
            ),
        )

    def statement(self) -> tuple[str, ...]:
        """Say what is and is not protected."""
        return (
            f"Every released trip starts and ends together with at least {self.k - 1} trips of as many other people, and is "
            f"never farther than {self.radius_m:g} m from any of them.",
            f"Trips were given the times of one trip of their group and moved as little as the radius requires; at most "
            f"{100 * self.max_trash:g} % were left out.",
            "This is not differential privacy: a group hides which of its members is meant, not where the group goes.",
            "A person with many trips may be grouped with the same people in several of them, which narrows down who it is.",
            "Somebody who compares two releases of the same data can narrow down who is who.",
        )

    def expected_error(self) -> str:
        """Say what is known before the data are read."""
        return (
            f"Trips of one group end up within {self.radius_m:g} m of each other; how far each must move for that depends on "
            "how similar the trips are, and is not known before they are read."
        )

    # -- what it does ----------------------------------------------------------------------------------------------

    def apply(self, private: Trips, rng: Rng) -> Trips:
        """Move trips in groups of k people; the few that nobody resembles are dropped."""
        columns = [name for name in ("uid", "tid", *self.emits) if name in private.columns]
        if private.n_points == 0:
            return Trips(private.table.select(columns), time_zone=private.time_zone)
        if private.n_users < self.k:
            raise InputError(
                f"k_anonymity with k = {self.k} needs trips of at least {self.k} people; these data have fewer.",
                remedy="choose a smaller k, or release more people together.",
            )
        seconds = (private.time_us - private.time_us.min()) / 1e6
        these = shapes(private.offsets, seconds, private.lat, private.lng, private.trip_user)
        member, pivots = self._grouped(these, rng)
        points = sizes(private.offsets, member, pivots)
        ends = np.r_[0, np.cumsum(points)].astype(np.int64)
        tracks = (private.offsets, seconds, private.lat, private.lng)
        lat, lng = move(tracks, member, pivots, ends, self.radius_m / 2)
        trip = np.repeat(np.arange(private.n_trips), points)
        pivot_point = private.offsets[pivots[member[trip]]] + np.arange(len(trip)) - ends[trip]
        table = private.table.select("uid", "tid")[private.offsets[trip]].with_columns(
            pl.Series("datetime", private.time_us[pivot_point]).cast(TIME), pl.Series("lat", lat), pl.Series("lng", lng)
        )
        return Trips(table, time_zone=private.time_zone)

    def _grouped(self, these: Shapes, rng: Rng) -> tuple[Integers, Integers]:
        """Find groups of the least width, tried in growing steps, that sends no more than the allowed share to the trash."""
        order = rng.permutation(len(these.start_s))
        most_apart_m = self.radius_m
        while True:
            member, pivots = group(
                these, k=self.k, most_apart_m=most_apart_m, time_cost_m_per_s=self.time_cost_m_per_s, order=order
            )
            if (member < 0).mean() <= self.max_trash or most_apart_m == np.inf:
                return member, pivots
            most_apart_m = most_apart_m * WIDENING if most_apart_m < WIDEST_M else np.inf
