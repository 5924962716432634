"""Compare an aggregated mobility network with the original: roads, traffic, hours, connectivity and speeds."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from murmurate.core.parameters import whole
from murmurate.core.score import Better, Score
from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError
from murmurate.metrics import Pair
from murmurate.spaces.drives import Drives
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import RoadNetwork

BUSIEST = 1_000
"""Busiest original links whose counts are compared one by one. Set by hand."""
TOP = (100, 1_000)
"""Numbers of busiest links that are looked for among the busiest of the release."""


@dataclass(frozen=True)
class Networks(Pair):
    """Hold counts of links on both sides, of one network."""

    released: LinkFlows
    original: LinkFlows

    def __post_init__(self) -> None:
        mine, theirs = self.released.network, self.original.network
        if mine.n_links != theirs.n_links or not np.array_equal(mine.link_from, theirs.link_from):
            raise InputError("the two sides are counted on different networks; match both on the released one.")
        if not len(self.original.used):
            raise InputError("the original drives nothing on this network; check that trips and network belong together.")


def compare_networks(released: LinkFlows, original: LinkFlows, *, busiest: int = BUSIEST) -> list[Score]:
    """Calculate every network score of a release against the original's plain counts.

    >>> import polars as pl
    >>> town = RoadNetwork.from_arrays(node_lat=[0, 0], node_lng=[0, 0.001], link_from=[0], link_to=[1], road_class=[5])
    >>> flows = LinkFlows(network=town, table=pl.DataFrame({"link": [0], "hour": [8], "count": [3.0]}))
    >>> {score.name: score.value for score in compare_networks(flows, flows)}["network_length.ratio"]
    1.0
    """
    whole("busiest", busiest)
    both = Networks(released, original)
    return [
        *network_length(both),
        *network_links(both, busiest=busiest),
        *network_counts(both),
        *network_classes(both),
        *network_hours(both, busiest=busiest),
        *network_connectivity(both),
        *network_speeds(both),
    ]


def network_length(both: Networks) -> list[Score]:
    """Measure the length of the used network over the original's, and the shares that were lost and invented."""
    released, original = both.released, both.original
    length = original.network.length_m
    mine, theirs = released.totals > 0, original.totals > 0
    whole_km = original.length_km
    invented = float(length[mine & ~theirs].sum() / 1000)
    scores = [
        _score("network_length.ratio", released.length_km / whole_km, "neither", note="1 is the original"),
        _score("network_length.change", abs(released.length_km / whole_km - 1), "lower"),
        _score("network_length.lost", float(length[theirs & ~mine].sum() / 1000) / whole_km, "lower"),
        _score("network_length.invented", invented / released.length_km if len(released.used) else 0.0, "lower"),
    ]
    threshold = released.about.get("threshold_trips")
    if threshold is not None:
        above = original.totals >= threshold
        if above.any():
            kept = float(length[above & mine].sum() / length[above].sum())
            note = f"of links that {threshold:,.0f} trips or more drove"
            scores.append(_score("network_length.kept_above_threshold", kept, "higher", note=note))
    return scores


def network_links(both: Networks, *, busiest: int = BUSIEST) -> list[Score]:
    """Measure the correlation of link counts on the originals' busiest links, and how many of the top links stay on top."""
    released, original = both.released, both.original
    truth, found = original.totals, released.totals
    top = _busiest(truth, busiest)
    shown = top[found[top] > 0]  # a link that is not published has no count that could be off
    scores = [
        _score("network_links.correlation", _correlation(found[top], truth[top]), "higher", n=len(top)),
        _score("network_links.total_ratio", float(found.sum() / truth.sum()), "neither", note="1 is the original"),
        _score("network_links.shown", len(shown) / len(top), "higher", n=len(top), note="share of the busiest links"),
    ]
    if len(shown):
        error = float(np.median(np.abs(found[shown] - truth[shown]) / truth[shown]))
        note = "median over the busiest links that the release shows"
        scores.append(_score("network_links.relative_error", error, "lower", n=len(shown), note=note))
    for size in TOP:
        if len(original.used) >= size:
            kept = len(np.intersect1d(_busiest(truth, size), _busiest(found, size))) / size
            scores.append(_score(f"network_links.top_{size}", kept, "higher", n=size))
    return scores


def network_counts(both: Networks) -> list[Score]:
    """Measure the Wasserstein distance of the counts of used links, over their original mean."""
    truth, found = both.original.totals, both.released.totals
    mean = float(truth[truth > 0].mean())
    away = _wasserstein(found[found > 0], truth[truth > 0]) / mean if (found > 0).any() else 1.0
    return [_score("network_counts.wasserstein", away, "lower", note="in units of the original's mean count")]


def network_classes(both: Networks) -> list[Score]:
    """Measure the Wasserstein distance of the road class of traffic."""
    classes = np.arange(1, 6)
    found, truth = (
        np.bincount(side.network.road_class.astype(np.int64), weights=side.totals, minlength=6)[1:6].astype(np.float64)
        for side in (both.released, both.original)
    )
    away = _wasserstein(classes, classes, found, truth) if found.sum() > 0 else float(classes.max() - classes.min())
    return [_score("network_classes.wasserstein", away, "lower", unit="classes")]


def network_hours(both: Networks, *, busiest: int = BUSIEST) -> list[Score]:
    """Compare the city's hourly profile (total variation), and counts of links by hour."""
    released, original = both.released, both.original
    truth, found = original.by_hour, released.by_hour
    top = _busiest(original.totals, busiest)
    away = 1.0
    if found.sum() > 0:
        away = float(0.5 * np.abs(found.sum(axis=1) / found.sum() - truth.sum(axis=1) / truth.sum()).sum())
    return [
        _score("network_hours.profile", away, "lower", note="total variation between the two hourly profiles"),
        _score(
            "network_hours.correlation", _correlation(found[:, top].ravel(), truth[:, top].ravel()), "higher", n=24 * len(top)
        ),
    ]


def network_connectivity(both: Networks) -> list[Score]:
    """Measure the share of the used network's length in its largest connected part, relative to the original's share."""
    released, original = both.released, both.original
    mine, theirs = (_largest_share(side) for side in (released, original))
    return [_score("network_connectivity.ratio", mine / theirs, "higher", note="1 is the original; may exceed it")]


def network_speeds(both: Networks) -> list[Score]:
    """Measure the median relative error of the mean speed on links where both sides have one."""
    released, original = both.released, both.original
    mine, theirs = (side.link_table()["observed_kmh"].to_numpy() for side in (released, original))
    known = np.isfinite(mine) & np.isfinite(theirs) & (theirs > 0)
    if not known.any():
        return []
    error = float(np.median(np.abs(mine[known] / theirs[known] - 1)))
    return [_score("network_speeds.relative_error", error, "lower", n=int(known.sum()))]


def ends_moved(network: RoadNetwork, true_link: Integers, new_link: Integers) -> list[Score]:
    """Measure the share of trip ends that stand on another street than before, and how far the moved ones moved."""
    if not len(true_link):
        return []
    same = (true_link == new_link) | (network.twin[true_link] == new_link)
    distance = network.distance(true_link, new_link)
    scores = [
        _score("network_ends.moved", float(1 - same.mean()), "higher", n=len(same), note="share of origins and destinations")
    ]
    if (~same).any():
        median = float(np.median(distance[~same]))
        scores.append(
            _score("network_ends.distance", median, "neither", unit="m", n=int((~same).sum()), note="median of the moved")
        )
    return scores


def single_ends(released: LinkFlows, drives: Drives) -> list[Score]:
    """Measure the share of trip ends on a link alone in its hour, and how many of these are released with a count of one."""
    by_day = "day" in released.table.columns
    n = drives.network.n_links
    hours = drives.hour + (24 * drives.day if by_day else 0)
    keys = hours * n + drives.link
    places, counts = np.unique(keys, return_counts=True)
    ends = np.concatenate([keys[drives.offsets[drives.driven]], keys[drives.offsets[drives.driven + 1] - 1]])
    single = ends[counts[np.searchsorted(places, ends)] == 1]
    if not len(single):
        return []
    table = released.table
    shown = table["hour"].to_numpy() + (24 * table["day"].to_numpy() if by_day else 0)
    ones = (shown * n + table["link"].to_numpy())[table["count"].to_numpy() == 1.0]
    return [
        _score("network_ends.single", len(single) / len(ends), "neither", n=len(ends), note="in the original, share of ends"),
        _score("network_ends.single_shown", float(np.isin(single, ones).mean()), "lower", n=len(single)),
    ]


def _score(name: str, value: float, better: Better, *, unit: str = "", n: int | None = None, note: str = "") -> Score:
    return Score(name=name, value=float(value), better=better, unit=unit, n=n, note=note, family="networks")


def _busiest(counts: Floats, n: int) -> Integers:
    """Return the links with the highest counts, never one without traffic."""
    order = np.argsort(-counts, kind="stable")[:n]
    return order[counts[order] > 0]


def _correlation(one: Floats, other: Floats) -> float:
    if len(one) < 2 or one.std() == 0 or other.std() == 0:
        return 1.0 if np.array_equal(one, other) else 0.0
    return float(np.corrcoef(one, other)[0, 1])


def _wasserstein(
    one: NDArray[np.generic], other: NDArray[np.generic], one_weight: Floats | None = None, other_weight: Floats | None = None
) -> float:
    from scipy.stats import wasserstein_distance

    return float(wasserstein_distance(one, other, one_weight, other_weight))


def _largest_share(side: LinkFlows) -> float:
    from scipy import sparse
    from scipy.sparse.csgraph import connected_components

    network, used = side.network, side.used
    if not len(used):
        return 0.0
    start, end = network.link_from[used], network.link_to[used]
    graph = sparse.coo_matrix((np.ones(len(used)), (start, end)), shape=(network.n_nodes, network.n_nodes))
    _, part = connected_components(graph, directed=False)
    lengths = np.bincount(part[start], weights=network.length_m[used])
    return float(lengths.max() / lengths.sum())
