"""Input, scratch space and output of the hidden Markov chain of link matching, as tuples of arrays for compiled code."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from murmurate.core.space import Floats, Integers

if TYPE_CHECKING:
    from murmurate.spaces.road.network import RoadNetwork

LONGEST_CHAIN = 20_000
"""Most points of a part, 40 MB of scratch space at 10 candidates; a longer trip is matched in parts."""


class Roads(NamedTuple):
    """Holds what the chain reads of a network."""

    link_from: Integers
    link_to: Integers
    length_m: Floats
    s_per_m: Floats
    twin: Integers
    out_offsets: Integers
    out_links: Integers


def roads_of(network: RoadNetwork) -> Roads:
    """Return the arrays of a network that kernels read, as writable copies: read-only ones are another type to numba."""
    ends = np.array(network.link_from), np.array(network.link_to)
    return Roads(*ends, np.array(network.length_m), 3.6 / network.speed_kmh, network.twin, *network.out_links)


class Path(NamedTuple):
    """Holds the links driven, with the part of the trip and the seconds at which each was entered; larger than needed."""

    link: Integers
    part: Integers
    entered_s: Floats


class Settings(NamedTuple):
    """Holds the chain's parameters; see `match.Options`."""

    radius_m: float
    candidates: int
    sigma_m: float
    beta_m: Floats
    """Transition scale by steps of 5 s of sampling interval."""
    back_m: float
    turn_weight: float
    """Weight of a transition that turns round on the spot."""
    fastest: float
    """Factor over the speed limits above which a route becomes less likely."""
    max_gap_s: float
    max_skipped: int
    has_time: bool


class Chain(NamedTuple):
    """Holds scratch space for one part: [point], [point, candidate] or [point, candidate before, candidate]."""

    point: Integers
    found: Integers
    """Number of candidates of each point."""
    link: Integers
    offset: Floats
    away: Floats
    emission: Floats
    weight: Floats
    back: Integers
    best: Floats
    total: Floats
    chosen: Integers


class Points(NamedTuple):
    """Holds what was found for every point; see `Matching`."""

    link: Integers
    offset_m: Floats
    distance_m: Floats
    confidence: Floats
    part: Integers


def scratch(longest: int, k: int) -> Chain:
    """Allocate a chain for parts of up to `longest` points with `k` candidates each."""
    n = min(longest, LONGEST_CHAIN) + 1
    return Chain(
        point=np.zeros(n, np.int64),
        found=np.zeros(n, np.int64),
        link=np.zeros((n, k), np.int64),
        offset=np.zeros((n, k)),
        away=np.zeros((n, k)),
        emission=np.zeros((n, k)),
        weight=np.zeros((n, k, k)),
        back=np.zeros((n, k), np.int64),
        best=np.zeros((n, k)),
        total=np.zeros((n, k)),
        chosen=np.zeros(n, np.int64),
    )
