"""Road networks: read, index, route, match, write."""

from murmurate.spaces.road.match import Options, match
from murmurate.spaces.road.matching import Matching
from murmurate.spaces.road.network import RoadNetwork
from murmurate.spaces.road.read import largest_connected, read_roads
from murmurate.spaces.road.route_table import prepare
from murmurate.spaces.road.routing import Route, route, routes
from murmurate.spaces.road.storage import load, save
from murmurate.spaces.road.write import to_networkx, write_roads

__all__ = [
    "Matching",
    "Options",
    "RoadNetwork",
    "Route",
    "largest_connected",
    "load",
    "match",
    "prepare",
    "read_roads",
    "route",
    "routes",
    "save",
    "to_networkx",
    "write_roads",
]
