"""Follow trips through an aggregated network: what enters a junction leaves it, so counts can be chained link by link.

Within one hour counts are conserved at junctions except where trips begin and end. At every junction the traffic that comes in
is handed on to the links that lead out, straight on rather than round a corner and to links with a similar count rather than to
others; what is left over has ended or begun there. Paths are then followed from where they begin. Where few drive, a path is a
trip.
"""

from __future__ import annotations

import numpy as np
from numba import njit

from murmurate.core.space import Floats, Integers
from murmurate.mechanisms.road_counts.corridors import successions, turns_rad
from murmurate.spaces.road import RoadNetwork

TURN_COST = 1.0
"""Cost of a right-angle turn; counts that differ by a factor of e cost 1. Set by hand."""
MAX_LINKS = 1_000
"""Most links of a followed path; a longer one runs in circles and ends where it is. Set by hand."""


class Follower:
    """Follow paths on one network.

    >>> street = RoadNetwork.from_arrays(
    ...     node_lat=[0, 0, 0], node_lng=[0, 0.001, 0.002], link_from=[0, 1], link_to=[1, 2], road_class=[5, 5]
    ... )
    >>> [ends.tolist() for ends in Follower(street).trips(np.array([2.0, 1.0]))]
    [[0, 0], [2, 1]]
    """

    def __init__(self, network: RoadNetwork) -> None:
        self._network = network
        self._into, self._out = successions(network)
        self._turn = turns_rad(network, self._into, self._out) / (np.pi / 2)
        self._offsets = np.searchsorted(self._into, np.arange(network.n_links + 1))

    def trips(self, count: Floats) -> tuple[Integers, Integers]:
        """Return the nodes where followed trips began and ended, one pair for each trip that the counts of an hour show."""
        remaining = np.rint(count).astype(np.int64)
        used = np.flatnonzero((remaining[self._into] > 0) & (remaining[self._out] > 0))
        apart = np.abs(np.log(remaining[self._into[used]] / remaining[self._out[used]]))
        order = used[np.argsort(apart + TURN_COST * self._turn[used], kind="stable")]
        handed, begun = _handed_on(remaining, order, self._into, self._out)
        links = np.repeat(np.arange(self._network.n_links), begun)
        last = _followed(links, handed, self._offsets, self._out)
        return self._network.link_from[links], self._network.link_to[last]


@njit(cache=True, nogil=True)
def _handed_on(count: Integers, order: Integers, into: Integers, out: Integers) -> tuple[Integers, Integers]:
    """Return [succession]: trips that go from one link to the next; [link]: trips that begin on it."""
    coming, going = count.copy(), count.copy()
    handed = np.zeros(len(into), dtype=np.int64)
    for k in order:
        trips = min(coming[into[k]], going[out[k]])
        handed[k] = trips
        coming[into[k]] -= trips
        going[out[k]] -= trips
    return handed, going


@njit(cache=True, nogil=True)
def _followed(links: Integers, handed: Integers, offsets: Integers, out: Integers) -> Integers:
    last = links.copy()
    for k in range(len(links)):
        for _ in range(MAX_LINKS):
            chosen = -1
            for at in range(offsets[last[k]], offsets[last[k] + 1]):
                if handed[at] > 0 and (chosen < 0 or handed[at] > handed[chosen]):
                    chosen = at
            if chosen < 0:
                break
            handed[chosen] -= 1
            last[k] = out[chosen]
    return last
