"""road_counts: the aggregated mobility network with user-level differential privacy."""

from murmurate.mechanisms.road_counts.mechanism import RoadCounts

__all__ = ["RoadCounts"]
