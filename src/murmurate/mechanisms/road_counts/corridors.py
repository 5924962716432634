"""Smooth noisy counts along corridors: neighbouring links of one street carry nearly the same traffic, and what enters a
junction leaves it. Post-processing: it reads noisy counts and the public network alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from murmurate.core.space import Floats, Integers
from murmurate.spaces.road import RoadNetwork

MAX_STREET_TURN_RAD = np.pi / 4
"""Two links belong to one street if the turn between them is smaller than this."""

STREET_CHANGE = 0.5
"""Standard deviation of the difference between neighbouring links of a street, relative to the traffic. This and the next two
are from half of San Francisco's taxis and the built-in city."""

JUNCTION_CHANGE = 0.25
"""Standard deviation of the traffic that begins or ends at a junction, relative to the traffic through it."""

NEIGHBOURHOOD_CHANGE = 1.5
"""Standard deviation of a link around the mean of its class nearby, relative to the greater of both."""

RISK_GROUPS = 8
"""Groups of links, by estimated count, whose standard errors are compared with what their residuals show. Set by hand."""

RISK_LINKS = 500
"""Least number of links in such a group: the mean square error of so many is known to a sixteenth of the noise variance."""

FLOOR_SDS = 0.1
"""Added to the traffic wherever a change is relative to it, in standard deviations of the noise, so that the counts of empty
streets can still change."""

ROUNDS = 4
"""Times the field is fitted, each with the traffic of the fit before; set by hand."""

DRAWS = 24
"""Draws that the standard error of every link is estimated from; it is then right to about a seventh."""


@dataclass(frozen=True, eq=False)
class Corridors:
    """Holds which links follow each other on one street, and which links meet at which junction."""

    before: Integers
    after: Integers
    differences: Any
    """Sparse [pair, link]: +1 before, -1 after."""
    junctions: Any
    """Sparse [node, link]: +1 into the node, -1 out of it."""

    @classmethod
    def of(cls, network: RoadNetwork) -> Corridors:
        """Join each link with the straightest link that leaves its end, if it is also the straightest into that link."""
        from scipy import sparse

        into, out = successions(network)
        turn = turns_rad(network, into, out)
        onward = _best(into, out, turn, network.n_links)
        backward = _best(out, into, turn, network.n_links)
        link = np.arange(network.n_links)
        angle = np.full(network.n_links, np.inf)
        np.minimum.at(angle, into, turn)
        mutual = (onward >= 0) & (angle < MAX_STREET_TURN_RAD) & (backward[np.maximum(onward, 0)] == link)
        before, after = link[mutual], onward[mutual]
        pair = np.arange(len(before))
        shape = (len(before), network.n_links)
        differences = sparse.csr_matrix(
            (np.repeat([1.0, -1.0], len(pair)), (np.tile(pair, 2), np.concatenate([before, after]))), shape=shape
        )
        nodes = np.concatenate([network.link_to, network.link_from])
        junctions = sparse.csr_matrix(
            (np.repeat([1.0, -1.0], network.n_links), (nodes, np.tile(link, 2))), shape=(network.n_nodes, network.n_links)
        )
        return cls(before, after, differences, junctions)

    def fit(self, noisy: Floats, deviation: float, *, usual: Floats | None = None) -> Field:
        """Estimate counts from noisy ones by a Gaussian field over the links, refitted as its level gets known.

        `usual` is what links of this kind carry nearby; counts are shrunk towards it the less, the more they carry themselves.
        """
        from scipy import sparse
        from scipy.sparse.linalg import splu

        weight = 1 / deviation**2
        level = np.maximum(noisy if usual is None else usual, 0.0)
        prior = np.zeros(len(noisy))
        mean = prior if usual is None else usual
        for _ in range(ROUNDS):
            carried = level + FLOOR_SDS * deviation
            street = 1 / (STREET_CHANGE * (carried[self.before] + carried[self.after]) / 2) ** 2
            meeting = 1 / (JUNCTION_CHANGE * (abs(self.junctions) @ carried) / 2 + FLOOR_SDS * deviation) ** 2
            if usual is not None:
                prior = 1 / (NEIGHBOURHOOD_CHANGE * (np.maximum(level, usual) + FLOOR_SDS * deviation)) ** 2
            precision = sparse.diags(weight + prior) + self.differences.T @ sparse.diags(street) @ self.differences
            precision = precision + self.junctions.T @ sparse.diags(meeting) @ self.junctions
            solver = splu(precision.tocsc())
            level = np.maximum(solver.solve(noisy * weight + mean * prior), 0.0)
        return Field(self, level, solver, np.full(len(noisy), weight) + prior, street, meeting)

    def smooth_towards(self, noisy: Floats, prior: Floats, *, deviation: float, relative: float) -> Floats:
        """Shrink counts towards a prior whose `relative` error changes slowly along a street."""
        from scipy import sparse
        from scipy.sparse.linalg import spsolve

        if relative <= 0:
            return prior
        usual = prior + 0.02 * deviation
        slow = self.differences @ sparse.diags(1 / usual)
        precision = sparse.diags(1 / deviation**2 + 1 / (relative * usual) ** 2) + slow.T @ slow / (0.5 * relative) ** 2
        return np.maximum(prior + spsolve(precision.tocsc(), (noisy - prior) / deviation**2), 0.0)


@dataclass(frozen=True, eq=False)
class Field:
    """Estimated counts, and what their standard error is computed from."""

    corridors: Corridors
    level: Floats
    solver: Any
    own: Floats
    street: Floats
    meeting: Floats
    """Precisions: of links by themselves, of pairs on a street, of junctions."""

    def standard_error(self, noisy: Floats, deviation: float) -> Floats:
        """Estimate the remaining standard error of each count from draws of the field itself, and from what residuals show.

        Where neighbours differ more than the field expects, it errs by more than its draws do. So errors are raised, group by
        group of links with similar counts, to Stein's unbiased risk estimate: squared residuals, less the noise, plus what
        the fit took from it.
        """
        generator = np.random.default_rng(0)  # draws that protect nobody, the same whenever answers are read
        sizes = (len(self.own), len(self.street), len(self.meeting))
        own, streets, junctions = (generator.standard_normal((size, DRAWS)) for size in sizes)
        drawn = np.sqrt(self.own)[:, None] * own
        drawn = drawn + self.corridors.differences.T @ (np.sqrt(self.street)[:, None] * streets)
        drawn = drawn + self.corridors.junctions.T @ (np.sqrt(self.meeting)[:, None] * junctions)
        variance = (self.solver.solve(drawn) ** 2).mean(axis=1)
        risk = (noisy - self.level) ** 2 - deviation**2 + 2 * variance
        n = len(noisy)
        group = np.empty(n, dtype=np.int64)
        group[np.argsort(self.level, kind="stable")] = np.arange(n) * min(max(n // RISK_LINKS, 1), RISK_GROUPS) // n
        shown, expected = (np.bincount(group, weights=values) for values in (risk, variance))
        return np.sqrt(variance * np.maximum(shown / expected, 1.0)[group])


def successions(network: RoadNetwork) -> tuple[Integers, Integers]:
    """Return all pairs (link into a node, link out of it), ordered by the first; U-turns into the twin included."""
    offsets, links = network.out_links
    choices = np.diff(offsets)[network.link_to]
    into = np.repeat(np.arange(network.n_links), choices)
    within = np.arange(len(into)) - np.repeat(np.cumsum(choices) - choices, choices)
    return into, links[np.repeat(offsets[network.link_to], choices) + within]


def turns_rad(network: RoadNetwork, into: Integers, out: Integers) -> Floats:
    """Return the angle of each turn, 0 to pi."""
    first, end = network.shape_offsets[:-1], network.shape_offsets[1:]
    leaving, arriving = _bearing(network, first, first + 1), _bearing(network, end - 2, end - 1)
    return np.abs((leaving[out] - arriving[into] + np.pi) % (2 * np.pi) - np.pi)


def _bearing(network: RoadNetwork, start: Integers, end: Integers) -> Floats:
    squeeze = np.cos(np.radians(network.shape_lat[start]))
    return np.arctan2(
        (network.shape_lng[end] - network.shape_lng[start]) * squeeze, network.shape_lat[end] - network.shape_lat[start]
    )


def _best(of: Integers, to: Integers, cost: Floats, n: int) -> Integers:
    """Return for each number in `of` the `to` with the least cost; -1 where there is none."""
    order = np.lexsort((cost, of))
    with_one, first = np.unique(of[order], return_index=True)
    best = np.full(n, -1, dtype=np.int64)
    best[with_one] = to[order][first]
    return best
