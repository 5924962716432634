"""Road networks: reading, indexing, routing, matching, writing."""

from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.read import read_roads

__all__ = ["RoadNetwork", "read_roads"]
