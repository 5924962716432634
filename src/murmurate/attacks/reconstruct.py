"""Guess the ends of trips, and whole trips, from an aggregated network alone.

The adversary knows the public network and how many trips began in each period; never a single trip. Ends show as imbalance:
what leaves a junction and did not enter it began there. Trips are then recovered by two methods: after Xu et al. (2017), by
assigning guessed origins to guessed destinations of the same and the next hour at least cost; and by following counts through
junctions, which uses what an aggregate of links holds beyond one of places. Every figure stands beside guessing by traffic,
and the notes beside uniform guessing.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from murmurate.attacks.reconstruct_paths import Follower
from murmurate.core.parameters import positive, whole
from murmurate.core.score import Score
from murmurate.core.space import Floats, Integers
from murmurate.core.trips import Trips
from murmurate.metrics.comparison import NotMeasurable
from murmurate.spaces.drives import Drives, drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

WITHIN_M = 100.0
"""Distance, in metres, at which a guessed end counts as near. Set by hand: about one block."""
MOST = 400
"""Ends of one period that are paired into trips; more are drawn down to this by a fixed seed. Set by hand: the assignment
grows with the cube."""
CUES = ("imbalance", "dead_ends", "traffic", "uniform")
"""What ends are guessed by; the last two are the chance levels."""


def reconstruct(
    released: LinkFlows | Trips,
    original: Trips,
    *,
    pairing: object = None,
    within_m: float = WITHIN_M,
    most: int = MOST,
    seed: int = 0,
) -> list[Score]:
    """Measure the share of trip ends found, of whole trips recovered, and of trips that a count of one gives away."""
    if not isinstance(released, LinkFlows):
        raise NotMeasurable("the release holds trips; reconstruct reads an aggregated network")
    positive("within_m", within_m)
    whole("most", most)
    if not original.has_time or not original.has_coordinates:
        raise NotMeasurable("the originals need times and coordinates to be matched to the released network")
    return attack_network(released, drives_of(original, released.network), within_m=within_m, most=most, seed=seed)


def attack_network(
    released: LinkFlows, drives: Drives, *, within_m: float = WITHIN_M, most: int = MOST, seed: int = 0
) -> list[Score]:
    """Run `reconstruct` on originals that have been matched already."""
    if not len(drives.driven):
        raise NotMeasurable("no original drives on the released network")
    periods = _periods(released, drives)
    places = np.column_stack(released.network.index.to_xy(released.network.node_lat, released.network.node_lng))
    total = sum(len(period.origins) + len(period.destinations) for period in periods)
    found = {cue: [0.0, 0.0] for cue in CUES}
    trips = dict.fromkeys(CUES, 0.0)
    n_trips, followed, shuffled = 0, 0.0, 0.0
    follower = Follower(released.network)
    generator = np.random.default_rng([seed, 29])
    for number, period in enumerate(periods):
        guesses = {cue: _guesses(cue, period, released.network) for cue in CUES}
        following = periods[number + 1] if number + 1 < len(periods) and periods[number + 1].follows(period) else None
        for cue in CUES:
            for guess, truth in zip(guesses[cue], (period.origins, period.destinations), strict=True):
                found[cue][0] += _exact(guess, truth, released.network.n_nodes)
                found[cue][1] += _near_nodes(guess, truth, places, within_m)
        chosen = np.sort(generator.permutation(len(period.origins))[:most])
        n_trips += len(chosen)
        for cue in ("imbalance", "traffic"):
            later = _guesses(cue, following, released.network)[1] if following else guesses[cue][1][:0]
            pairs = _assigned(places, guesses[cue][0], guesses[cue][1], later, most, generator)
            true = np.column_stack([places[period.origins[chosen]], places[period.ends_of_origins[chosen]]])
            trips[cue] += _near(pairs, true, within_m)
        whole_trips = np.column_stack([places[period.origins], places[period.ends_of_origins]])
        begun, ended = follower.trips(period.count)
        shown = np.sort(generator.permutation(len(begun))[: len(period.origins)])
        followed += _near(np.column_stack([places[begun[shown]], places[ended[shown]]]), whole_trips, within_m)
        starts, goals = (generator.permutation(side) for side in guesses["traffic"])
        paired = min(len(starts), len(goals))
        shuffled += _near(np.column_stack([places[starts[:paired]], places[goals[:paired]]]), whole_trips, within_m)
    total, n_trips = max(total, 1), max(n_trips, 1)
    scores: list[Score] = []
    for k, (name, what) in enumerate((("exact", "at the very junction"), (f"within_{within_m:g}m", f"within {within_m:g} m"))):
        for cue in ("imbalance", "dead_ends"):
            note = (
                f"Knows the network and the number of trips in each hour; guesses {what}. Uniform guessing finds "
                f"{found['uniform'][k] / total:.3f}."
            )
            chance = found["traffic"][k] / total
            scores.append(_score(f"ends.{cue}.{name}", found[cue][k] / total, chance, total, note))
    note = "Assigns guessed origins to guessed destinations of the same and the next hour; both ends must be near."
    scores.append(_score("trips.assignment", trips["imbalance"] / n_trips, trips["traffic"] / n_trips, n_trips, note))
    note = "Follows counts from junction to junction; both ends must be near. Chance: ends by traffic, in any pairs."
    known = len(drives.driven)
    scores.append(_score("trips.paths", followed / known, shuffled / known, known, note))
    scores.append(_given_away(released, drives))
    return scores


@dataclass(frozen=True, eq=False)
class _Period:
    """Hold one hour (of one day, or of the day) as the adversary sees it, and the truth."""

    day: int
    hour: int
    count: Floats
    """Of every link."""
    origins: Integers
    ends_of_origins: Integers
    """Where the trips that began at `origins` ended, whenever that was."""
    destinations: Integers

    def follows(self, other: _Period) -> bool:
        return self.day * 24 + self.hour == other.day * 24 + other.hour + 1


def _periods(released: LinkFlows, drives: Drives) -> list[_Period]:
    by_day = "day" in released.table.columns
    first, last = drives.offsets[drives.driven], drives.offsets[drives.driven + 1] - 1
    origin, destination = drives.end_nodes
    table = released.table
    day = table["day"].to_numpy() if by_day else np.zeros(table.height, dtype=np.int64)
    key = day * 24 + table["hour"].to_numpy()
    began, ended = (drives.hour[at] + (24 * drives.day[at] if by_day else 0) for at in (first, last))
    periods = []
    for moment in np.unique(np.concatenate([began, ended])):
        rows = key == moment
        count = np.zeros(released.network.n_links)
        np.add.at(count, table["link"].to_numpy()[rows], table["count"].to_numpy()[rows])
        here = began == moment
        periods.append(
            _Period(int(moment // 24), int(moment % 24), count, origin[here], destination[here], destination[ended == moment])
        )
    return periods


def _guesses(cue: str, period: _Period, network: RoadNetwork) -> tuple[Integers, Integers]:
    """Return as many guessed origins and destinations as there are."""
    leaving = np.bincount(network.link_from, weights=period.count, minlength=network.n_nodes)
    entering = np.bincount(network.link_to, weights=period.count, minlength=network.n_nodes)
    begun, ended = np.maximum(leaving - entering, 0.0), np.maximum(entering - leaving, 0.0)
    if cue == "traffic":
        begun = ended = leaving + entering
    elif cue == "uniform":
        begun = ended = np.ones(network.n_nodes)
    elif cue == "dead_ends":
        # a junction that one street of the released network touches, weighed by how few drove it
        used = period.count > 0
        touching = np.bincount(network.link_from[used], minlength=network.n_nodes)
        touching = touching + np.bincount(network.link_to[used], minlength=network.n_nodes)
        begun, ended = (np.where(touching <= 1, side, 0.0) for side in (begun, ended))
    return _allotted(begun, len(period.origins)), _allotted(ended, len(period.destinations))


def _allotted(weight: Floats, n: int) -> Integers:
    """Return `n` nodes in proportion to their weights, by largest remainders; fewer where weights run out."""
    total = float(weight.sum())
    if n == 0 or total <= 0:
        return np.zeros(0, dtype=np.int64)
    exact = weight * (n / total)
    each = np.floor(exact).astype(np.int64)
    rest = np.argsort(-(exact - each), kind="stable")[: n - int(each.sum())]
    each[rest[weight[rest] > 0]] += 1
    return np.repeat(np.arange(len(weight)), each)


def _exact(guess: Integers, truth: Integers, n_nodes: int) -> float:
    return float(np.minimum(np.bincount(guess, minlength=n_nodes), np.bincount(truth, minlength=n_nodes)).sum())


def _near_nodes(guess: Integers, truth: Integers, places: Floats, within_m: float) -> float:
    """Count how many true nodes a guessed node of their own stands within `within_m` of, by a maximum flow."""
    from scipy import sparse
    from scipy.sparse.csgraph import maximum_flow
    from scipy.spatial import cKDTree

    if not len(guess) or not len(truth):
        return 0.0
    (guessed, offered), (true, wanted) = (np.unique(side, return_counts=True) for side in (guess, truth))
    pairs = cKDTree(places[guessed]).sparse_distance_matrix(cKDTree(places[true]), within_m, output_type="coo_matrix")
    source, sink = len(guessed) + len(true), len(guessed) + len(true) + 1
    row = np.concatenate([np.full(len(guessed), source), pairs.row, len(guessed) + np.arange(len(true))])
    column = np.concatenate([np.arange(len(guessed)), len(guessed) + pairs.col, np.full(len(true), sink)])
    capacity = np.concatenate([offered, np.full(len(pairs.row), max(len(guess), len(truth))), wanted]).astype(np.int32)
    graph = sparse.csr_matrix((capacity, (row, column)), shape=(sink + 1, sink + 1))
    return float(maximum_flow(graph, source, sink).flow_value)


def _near(guess: Floats, truth: Floats, within_m: float) -> float:
    """Count how many true trips a guessed trip of their own is like, each end within `within_m`."""
    from scipy import sparse
    from scipy.sparse.csgraph import maximum_bipartite_matching
    from scipy.spatial import cKDTree

    if not len(guess) or not len(truth):
        return 0.0
    pairs = cKDTree(truth).sparse_distance_matrix(cKDTree(guess), within_m, p=np.inf, output_type="coo_matrix")
    row, column = pairs.row, pairs.col
    for end in range(guess.shape[1] // 2):
        at = slice(2 * end, 2 * end + 2)
        keep = np.hypot(*(truth[row][:, at] - guess[column][:, at]).T) <= within_m
        row, column = row[keep], column[keep]
    graph = sparse.csr_matrix((np.ones(len(row), dtype=np.int8), (row, column)), shape=(len(truth), len(guess)))
    return float((maximum_bipartite_matching(graph, perm_type="column") >= 0).sum())


def _assigned(  # noqa: PLR0917
    places: Floats, origins: Integers, same_hour: Integers, next_hour: Integers, most: int, generator: np.random.Generator
) -> Floats:
    """Return trips from guessed origins to guessed destinations at least cost: as far as usual, and soon."""
    from scipy.optimize import linear_sum_assignment

    begun = np.sort(generator.permutation(origins)[:most])
    ended = np.concatenate(
        [np.sort(generator.permutation(same_hour)[:most]), np.sort(generator.permutation(next_hour)[: most // 4])]
    )
    if not len(begun) or not len(ended):
        return np.zeros((0, 4))
    apart = np.hypot(*(places[begun][:, None, :] - places[ended][None, :, :]).transpose(2, 0, 1))
    usual = float(np.median(apart)) or 1.0
    later = np.arange(len(ended)) >= min(len(same_hour), most)
    cost = np.abs(np.log((apart + 50.0) / usual)) + np.where(later, 1.0, 0.0)
    row, column = linear_sum_assignment(cost)
    return np.column_stack([places[begun[row]], places[ended[column]]])


def _given_away(released: LinkFlows, drives: Drives) -> Score:
    """Trips that alone drove some link of an hour which the release shows with a count of one."""
    by_day = "day" in released.table.columns
    keys = (drives.hour + (24 * drives.day if by_day else 0)) * drives.network.n_links + drives.link
    table = released.table
    hours = table["hour"].to_numpy() + (24 * table["day"].to_numpy() if by_day else 0)
    ones = (hours * drives.network.n_links + table["link"].to_numpy())[table["count"].to_numpy() == 1.0]
    once = np.unique(np.column_stack([keys, drives.trip]), axis=0)
    _, inverse, drivers = np.unique(once[:, 0], return_inverse=True, return_counts=True)
    alone = (drivers == 1)[inverse.ravel()] & np.isin(once[:, 0], ones)
    share = len(np.unique(once[alone, 1])) / len(drives.driven)
    note = "Share of trips with a link that nobody else drove in that hour and that the release shows with a count of one."
    return _score("trips.count_one", share, 0.0, len(drives.driven), note)


def _score(name: str, value: float, chance: float, n: int, note: str) -> Score:
    spread = 1.96 * float(np.sqrt(max(value * (1 - value), 0.0) / max(n, 1)))
    return Score(
        name=f"reconstruct.{name}",
        value=float(value),
        low=max(0.0, value - spread),
        high=min(1.0, value + spread),
        better="closer_to_chance",
        chance=float(chance),
        family="reconstruct",
        n=n,
        note=note,
    )
