"""Road networks: reading, indexing, routing, matching, writing."""

from murmurate.spaces.road.network import RoadNetwork

__all__ = ["RoadNetwork"]
