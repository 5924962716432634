"""Say in words what each score means and what a good value is. The formulas are in docs/metrics.md."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Meaning:
    """Hold one metric: its plain name, the question it answers, what a good value is."""

    title: str
    asks: str
    good: str


_SAME = "0 is identical, 1 has nothing in common"
"""Good values of a divergence in base 2."""
_ZERO = "0 is identical; no upper end"
"""Good values of an error or distance."""
_ALL = "1 keeps all, 0 keeps none"
"""Good values of a share that is kept."""
_NATS = "0 is identical, 0.693 has nothing in common"
"""Good values of a divergence in nats."""
_FLOOR = "near the floor is as good as a second real sample"
"""Good values of a distance with a floor."""

MEANINGS: dict[str, Meaning] = {
    "length": Meaning("Trip length", "Are trips as long as they were?", "no change; 0 for the distances"),
    "duration": Meaning("Trip duration", "Do trips take as long as they did?", "no change; 0 for the distances"),
    "speed": Meaning("Trip speed", "Are trips as fast as they were?", "no change; 0 for the distances"),
    "length_change": Meaning("Length, trip by trip", "How much did each trip's length change?", _ZERO),
    "duration_change": Meaning("Duration, trip by trip", "How much did each trip's duration change?", _ZERO),
    "speed_change": Meaning("Speed, trip by trip", "How much did each trip's speed change?", _ZERO),
    "point_displacement": Meaning("Moved points", "How far did points move?", "0 is unmoved; privacy needs some"),
    "centroid_displacement": Meaning("Moved trip centres", "How far did the middle of a trip move?", "0 is unmoved"),
    "trip_size": Meaning("Cells per trip", "Do trips cross as many cells, hour by hour?", _SAME),
    "hausdorff": Meaning("Farthest detour", "How far does a trip stray from its original?", "0 is the same line"),
    "hausdorff_nearest": Meaning(
        "Distance to the nearest original",
        "Does each released trip look like some real trip?",
        "small is useful, and a warning for privacy",
    ),
    "od_emd": Meaning("Origins and destinations by hour", "How far are flows misplaced, hour by hour?", _FLOOR),
    "od_emd_whole": Meaning("Origins and destinations", "How far are flows misplaced over the whole day?", _FLOOR),
    "od_matrix": Meaning("Flow matrix", "Are flows between places as strong as they were?", _SAME + "; rmse in trips"),
    "visits": Meaning("Map of visits", "Are the same places visited as much?", _SAME + "; kl has no upper end"),
    "counting_queries": Meaning(
        "Counts per cell", "By how much are counts of single cells off?", "0 is exact; 1 is off by all"
    ),
    "range_queries": Meaning("Counts in areas", "By how much are counts of larger areas off?", "0 is exact; 1 is off by all"),
    "od_queries": Meaning("Counts between areas", "By how much are counts of trips from area to area off?", "0 is exact"),
    "top_places": Meaning("Busiest places", "Which of the busiest places are still among the busiest?", _ALL),
    "hot_spots": Meaning("Hot spots", "Do the hot spots stay where they are?", "overlap 1, share_change 0"),
    "gyration": Meaning("Spread of trips", "Do trips spread as far around their middle?", "0 for the changes"),
    "time_of_day": Meaning("Time of day", "Are trips made at the same hours?", _SAME),
    "patterns": Meaning("Frequent routes", "Are the most frequent routes still found?", _ALL + "; support_error 0"),
    "patterns_with_single": Meaning(
        "Frequent routes and places", "Are the most frequent routes and places still found?", _ALL + "; support_error 0"
    ),
    "patterns_by_trip": Meaning(
        "Frequent routes, counted by trips", "Are the routes that most trips use still found?", _ALL + "; support_error 0"
    ),
    "cell_sets": Meaning("Places visited together", "Are the sets of places that many trips visit still found?", _ALL),
    "adatrace_query": Meaning("AdaTrace: query error", "By how much are counts in circles off?", "0 is exact"),
    "adatrace_kendall": Meaning("AdaTrace: order of places", "Is the order of popularity kept?", "1 is the same order"),
    "adatrace_patterns": Meaning("AdaTrace: patterns", "Are frequent routes still found?", "f1 1; support_error 0"),
    "adatrace_trip": Meaning("AdaTrace: trip error", "Are origins and destinations alike?", _NATS),
    "adatrace_diameter": Meaning("AdaTrace: diameter error", "Do trips extend as far?", _NATS),
    "adatrace_length": Meaning("AdaTrace: length error", "Are trips as long?", _NATS),
    "dpmobility_visits": Meaning("dp-mobility-report: visits", "Are trip ends alike?", "0 for distances; coverage 1"),
    "dpmobility_od": Meaning("dp-mobility-report: flows", "Are pairs of ends alike?", "0 for distances; coverage 1"),
    "day_visits": Meaning("Days: visits", "Are places as popular, over whole days?", "0 for distances; coverage 1"),
    "day_time_allocation": Meaning("Days: time at the main places", "Is the day split alike between main places?", _ZERO),
    "day_mobility": Meaning("Days: moves", "Do people move between places alike?", "1 is alike, 0 has nothing in common"),
    "day_semantics": Meaning("Days: similarity", "Are days as similar to each other as the originals?", "correlation 1, gap 0"),
    "zone_totals": Meaning("Departures and arrivals", "By how much are counts of busy zones by hour off?", "0 is exact"),
    "zone_pairs": Meaning(
        "Pairs of zones", "By how much are counts between busy zones off, and how many are listed?", "0; all"
    ),
    "flow_intervals": Meaning("Intervals of flows", "How often does an interval hold the exact count?", "the level"),
    "flow_sums": Meaning("Sums of flows", "Do zones, hours and pairs add up?", "0 disagree"),
    "network_length": Meaning("Roads driven", "Which roads are lost, and which were never driven?", "0 lost, 0 invented"),
    "network_links": Meaning("Traffic of links", "Do links carry as much traffic?", "correlation 1, error 0, top 1"),
    "network_counts": Meaning("Distribution of traffic", "Are there as many busy and quiet links?", _ZERO),
    "network_classes": Meaning("Classes of roads", "Is traffic on the same classes of road?", _ZERO),
    "network_hours": Meaning("Hours", "Is traffic spread alike over the day?", "profile 0, correlation 1"),
    "network_connectivity": Meaning("Connectivity", "Are the released roads as well connected?", "near 1"),
    "network_speeds": Meaning("Speeds", "By how much are speeds off?", "0 is exact"),
}
"""One entry a metric; a test holds this."""

FAMILIES = {
    "trips": "Trips",
    "flows": "Flows",
    "density": "Places and times",
    "queries": "Counts between areas",
    "patterns": "Frequent routes",
    "days": "Whole days",
    "networks": "Roads and their traffic",
    "adatrace": "As AdaTrace measures",
    "dpmobility": "As dp-mobility-report measures",
}
"""Titles of the families of metrics, in the order of a report."""

FOLDED = ("adatrace", "dpmobility")
"""Families that are closed until a reader opens them."""

PARTS = {
    "emd": "distance of the distributions (earth mover's)",
    "jsd": "difference (Jensen-Shannon)",
    "kl": "difference (Kullback-Leibler)",
    "kl_by_label": "difference place by place (Kullback-Leibler)",
    "kl_by_popularity": "difference by rank (Kullback-Leibler)",
    "points_jsd": "difference of all points (Jensen-Shannon)",
    "departures_jsd": "difference of departures (Jensen-Shannon)",
    "distance": "as a distance (square root of the divergence)",
    "floor": "floor: a second sample of the originals",
    "rmse": "typical error of a flow",
    "smape": "mean relative error",
    "total_variation": "share of trips in the wrong flow",
    "relative": "relative, with its sign",
    "zones": "between 10 x 10 zones",
    "f1": "F1",
    "released_mean": "mean of the release",
    "original_mean": "mean of the originals",
    "mean_change": "change of the mean",
    "relative_mean_change": "change of the mean, relative",
    "least": "least moved point",
    "average": "average point",
    "greatest": "farthest moved point",
}
"""Parts of names of scores, in words."""

KEY_ATTACKS = (
    "reidentify.places.top1_k4",
    "reidentify.timed.top1_k1",
    "average.found_10",
    "reconstruct.ends.imbalance.exact",
    "reconstruct.trips.paths",
)
"""The results of attacks that a comparison shows first; of any other attack it shows the first result."""


def part_words(name: str) -> str:
    """Write the part of a metric that a score is, in words.

    >>> part_words("top_places.coverage_50"), part_words("od_matrix.zones.jsd"), part_words("trip_size")
    ('coverage 50', 'between 10 x 10 zones, difference (Jensen-Shannon)', 'overall')
    """
    parts = name.split(".")[1:]
    return ", ".join(PARTS.get(part, part.replace("f1_", "F1_").replace("_", " ")) for part in parts) or "overall"
