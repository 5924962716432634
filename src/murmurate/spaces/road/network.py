"""RoadNetwork: public nodes and directed links with geometry, length, class and speed, as arrays for kernels."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from murmurate.core.space import Floats, Integers
from murmurate.errors import InputError, ParameterError
from murmurate.spaces.road.checks import refuse_bad_arrays
from murmurate.spaces.road.classes import CLASS_SPEED_KMH
from murmurate.spaces.road.geometry import points_along, polyline_lengths
from murmurate.spaces.sphere import great_circle_m

SHORTEST_M = 0.01
"""Least length of a link in metres: two nodes at one place stay connected, and no travel time is zero."""

if TYPE_CHECKING:
    from murmurate.spaces.road.index import LinkIndex

LOCATE_WITHIN_M = 60.0
"""Metres from the nearest link beyond which a point is outside the network; set by hand."""

HASH_DIGITS = 16
"""Hexadecimal digits of the content hash in a spec: 64 bits, so that two files are not confused by accident."""

UNSAVED = "unsaved"
"""File name in the spec of a network that was built in memory."""

ARRAYS: dict[str, type[np.generic]] = {
    "node_lat": np.float64,
    "node_lng": np.float64,
    "link_from": np.int64,
    "link_to": np.int64,
    "length_m": np.float64,
    "road_class": np.int8,
    "speed_kmh": np.float64,
    "lanes": np.int8,
    "shape_offsets": np.int64,
    "shape_lat": np.float64,
    "shape_lng": np.float64,
}
"""Arrays of a network that routing and matching read, and their types; the content hash covers them in this order."""


@dataclass(frozen=True, eq=False, kw_only=True)
class RoadNetwork:
    """Holds nodes and directed links; a two-way street is two links. A place is a link's number.

    >>> network = RoadNetwork.from_arrays(
    ...     node_lat=[60.0, 60.0], node_lng=[24.0, 24.001], link_from=[0, 1], link_to=[1, 0], road_class=[5, 5]
    ... )
    >>> network.n_nodes, network.n_links, network.length_m.round(1).tolist(), network.twin.tolist()
    (2, 2, [55.6, 55.6], [1, 0])
    """

    node_lat: Floats
    node_lng: Floats
    link_from: Integers
    link_to: Integers
    length_m: Floats
    road_class: NDArray[np.int8]
    """1 motorway or arterial ... 5 local."""
    speed_kmh: Floats
    lanes: NDArray[np.int8]
    """0 where unknown."""
    shape_offsets: Integers
    """The geometry of link k is vertices shape_offsets[k]:shape_offsets[k + 1], both ends included."""
    shape_lat: Floats
    shape_lng: Floats
    name: pl.Series | None = field(default=None, repr=False)
    way_id: Integers | None = field(default=None, repr=False)
    """The id the source gave (an OpenStreetMap way), where it gave one."""
    source: str = ""
    """The file it came from; what `--space road:FILE` takes."""
    dropped: Mapping[str, int] = field(default_factory=dict)
    """Counts of what readers dropped or assumed."""

    @classmethod
    def from_arrays(
        cls,
        *,
        node_lat: ArrayLike,
        node_lng: ArrayLike,
        link_from: ArrayLike,
        link_to: ArrayLike,
        road_class: ArrayLike,
        length_m: ArrayLike | None = None,
        speed_kmh: ArrayLike | None = None,
        lanes: ArrayLike | None = None,
        shape_offsets: ArrayLike | None = None,
        shape_lat: ArrayLike | None = None,
        shape_lng: ArrayLike | None = None,
        name: Sequence[str] | pl.Series | None = None,
        way_id: ArrayLike | None = None,
        source: str = "",
        dropped: Mapping[str, int] | None = None,
    ) -> RoadNetwork:
        """Check arrays of nodes and links and make a network of them.

        Geometry defaults to straight lines, `length_m` to that of the geometry, `speed_kmh` to that of the class. Link k runs
        from node link_from[k] to link_to[k]; its vertices are shape_offsets[k]:shape_offsets[k + 1]. `lanes` is 0 where
        unknown; `name`, `way_id`, `source` and `dropped` are kept as given.
        """
        values: dict[str, Any] = {
            "node_lat": node_lat,
            "node_lng": node_lng,
            "link_from": link_from,
            "link_to": link_to,
            "road_class": road_class,
        }
        values = {key: _array(key, value) for key, value in values.items()}
        n_links = len(values["link_from"])
        if shape_offsets is not None and shape_lat is not None and shape_lng is not None:
            shape: tuple[ArrayLike, ArrayLike, ArrayLike] = (shape_offsets, shape_lat, shape_lng)
        elif shape_offsets is None and shape_lat is None and shape_lng is None:
            shape = _straight(values)
        else:
            raise ParameterError("give shape_offsets, shape_lat and shape_lng together, or none of them.")
        for key, value in zip(("shape_offsets", "shape_lat", "shape_lng"), shape, strict=True):
            values[key] = _array(key, value)
        values["lanes"] = np.zeros(n_links, dtype=np.int8) if lanes is None else _array("lanes", lanes)
        for key, given in (("length_m", length_m), ("speed_kmh", speed_kmh)):
            values[key] = np.ones(n_links) if given is None else _array(key, given)
        if name is not None:
            name = name.cast(pl.String) if isinstance(name, pl.Series) else pl.Series("name", list(name), dtype=pl.String)
        ids = None if way_id is None else np.ascontiguousarray(way_id, dtype=np.int64)
        refuse_bad_arrays(values, name, ids)
        if length_m is None:
            lengths = polyline_lengths(values["shape_offsets"], values["shape_lat"], values["shape_lng"])
            values["length_m"] = np.maximum(lengths, SHORTEST_M)
        if speed_kmh is None:
            values["speed_kmh"] = np.array([CLASS_SPEED_KMH[int(k)] for k in values["road_class"]])
        for array in values.values():
            array.flags.writeable = False
        return cls(**values, name=name, way_id=ids, source=source, dropped=dict(dropped or {}))

    # -- what is there ---------------------------------------------------------------------------------------------

    @property
    def n_nodes(self) -> int:
        return len(self.node_lat)

    @property
    def n_links(self) -> int:
        return len(self.link_from)

    @property
    def total_km(self) -> float:
        """Return kilometres of directed links; a two-way street counts twice."""
        return float(self.length_m.sum() / 1000.0)

    @cached_property
    def time_s(self) -> Floats:
        """Return seconds to drive each link at its speed."""
        return self.length_m * 3.6 / self.speed_kmh

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of everything that routing and matching read."""
        digest = hashlib.sha256()
        for key in ARRAYS:
            digest.update(key.encode())
            digest.update(getattr(self, key).tobytes())
        return digest.hexdigest()

    @cached_property
    def out_links(self) -> tuple[Integers, Integers]:
        """Return (offsets, links): the links that leave node n are links[offsets[n]:offsets[n + 1]]."""
        return _grouped(self.link_from, self.n_nodes)

    @cached_property
    def in_links(self) -> tuple[Integers, Integers]:
        """Return (offsets, links): the links that reach node n are links[offsets[n]:offsets[n + 1]]."""
        return _grouped(self.link_to, self.n_nodes)

    @cached_property
    def twin(self) -> Integers:
        """Return the link of the same street in the opposite direction; -1 for a one-way."""
        count = np.diff(self.shape_offsets)
        middle = self.shape_offsets[:-1] + count // 2
        mirrored = self.shape_offsets[:-1] + (count - 1) // 2  # so that a street and its mirror name the same vertices
        keys = pl.DataFrame(
            {
                "a": self.link_from,
                "b": self.link_to,
                "n": count,
                "x": self.shape_lng[middle] + self.shape_lng[mirrored],
                "y": self.shape_lat[middle] + self.shape_lat[mirrored],
            }
        ).with_row_index("link")
        keys = keys.unique(["a", "b", "n", "x", "y"], keep="first", maintain_order=True)
        pairs = keys.join(keys.rename({"a": "b", "b": "a", "link": "other"}), on=["a", "b", "n", "x", "y"])
        twin = np.full(self.n_links, -1, dtype=np.int64)
        twin[pairs["link"].to_numpy()] = pairs["other"].to_numpy()
        return twin

    @cached_property
    def index(self) -> LinkIndex:
        """Return the spatial index over link segments."""
        from murmurate.spaces.road.index import LinkIndex

        return LinkIndex.build(self)

    @cached_property
    def midpoint(self) -> tuple[Floats, Floats]:
        """Return latitude and longitude half way along every link."""
        every, half = np.arange(self.n_links), np.full(self.n_links, 0.5)
        return points_along(self.shape_offsets, self.shape_lat, self.shape_lng, every, half)

    @cached_property
    def heading(self) -> Integers:
        """Return the direction of each link, from end to end: 0 east, 1 north, 2 west, 3 south."""
        start, end = self.link_from, self.link_to
        across = (self.node_lng[end] - self.node_lng[start]) * np.cos(np.radians(self.node_lat[start]))
        angle = np.arctan2(self.node_lat[end] - self.node_lat[start], across)
        return np.floor(angle / (np.pi / 2) + 0.5).astype(np.int64) % 4

    # -- a Space whose places are links ----------------------------------------------------------------------------

    def spec(self) -> str:
        """Return `road:`, the file's name without its folder, and the first digits of a hash of its content."""
        return f"road:{Path(self.source).name or UNSAVED}#{self.fingerprint[:HASH_DIGITS]}"

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the nearest link within 60 m; -1 outside."""
        return self.index.nearest(lat, lng, radius_m=LOCATE_WITHIN_M)[0]

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return the middle of each link."""
        links = self._known(place)
        return self.midpoint[0][links], self.midpoint[1][links]

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return great-circle metres between the middles of links."""
        return great_circle_m(*self.centre(one), *self.centre(other))

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the links within `reach` steps of `place`; two links are one step apart when they share a node."""
        found = set(self._known([place]).tolist())
        edge = set(found)
        (out_offsets, out), (in_offsets, into) = self.out_links, self.in_links
        for _ in range(reach):
            nodes = {int(node) for link in edge for node in (self.link_from[link], self.link_to[link])}
            touching = {int(k) for n in nodes for k in out[out_offsets[n] : out_offsets[n + 1]]}
            touching |= {int(k) for n in nodes for k in into[in_offsets[n] : in_offsets[n + 1]]}
            edge = touching - found
            found |= edge
        return np.array(sorted(found), dtype=np.int64)

    def shape(self, link: int) -> tuple[Floats, Floats]:
        """Return the vertices of one link."""
        span = slice(int(self.shape_offsets[link]), int(self.shape_offsets[link + 1]))
        return self.shape_lat[span], self.shape_lng[span]

    def take_links(self, keep: ArrayLike, *, dropped: Mapping[str, int] | None = None) -> RoadNetwork:
        """Return the network of the links in `keep` (numbers or a mask) and their nodes, renumbered; `dropped` adds counts."""
        mask = np.zeros(self.n_links, dtype=bool)
        mask[np.asarray(keep)] = True
        links = np.flatnonzero(mask)
        used = np.zeros(self.n_nodes, dtype=bool)
        used[self.link_from[links]] = used[self.link_to[links]] = True
        number = np.cumsum(used) - 1
        vertices = np.repeat(mask, np.diff(self.shape_offsets))
        return RoadNetwork.from_arrays(
            node_lat=self.node_lat[used],
            node_lng=self.node_lng[used],
            link_from=number[self.link_from[links]],
            link_to=number[self.link_to[links]],
            **{key: getattr(self, key)[links] for key in ("length_m", "road_class", "speed_kmh", "lanes")},
            shape_offsets=np.concatenate(([0], np.cumsum(np.diff(self.shape_offsets)[links]))),
            shape_lat=self.shape_lat[vertices],
            shape_lng=self.shape_lng[vertices],
            name=None if self.name is None else self.name.gather(links),
            way_id=None if self.way_id is None else self.way_id[links],
            source=self.source,
            dropped={**self.dropped, **(dropped or {})},
        )

    def _known(self, place: ArrayLike) -> Integers:
        links = np.asarray(place, dtype=np.int64)
        bad = (links < 0) | (links >= self.n_links)
        if bad.any():
            raise InputError(f"link {int(links[bad].flat[0])} is not in this network; it has links 0 to {self.n_links - 1:,}.")
        return links

    def __getstate__(self) -> dict[str, Any]:
        # Indexes are rebuilt where they are needed: they are larger than the network and quick to make.
        return {key: value for key, value in self.__dict__.items() if key in self.__dataclass_fields__}


def _array(name: str, values: ArrayLike) -> NDArray[Any]:
    """Copy values to an array of the type that `ARRAYS` gives this name."""
    wanted = ARRAYS[name]
    try:
        given = np.asarray(values)
        if np.issubdtype(wanted, np.integer) and given.size and not np.array_equal(given, given.astype(wanted)):
            raise ValueError("not whole numbers, or out of range")
        return np.array(given, dtype=wanted, order="C")  # a copy, so that freezing it never freezes the caller's
    except (TypeError, ValueError) as error:
        raise InputError(f"{name} must be a list of {wanted.__name__} values: {error}.") from None


def _straight(values: Mapping[str, NDArray[Any]]) -> tuple[Integers, Floats, Floats]:
    """Return two-vertex shapes; link ends outside the nodes are clipped, and refused by the later check."""
    ends = (
        np.column_stack([values["link_from"], values["link_to"]]).ravel() if len(values["link_from"]) else np.zeros(0, np.int64)
    )
    n_nodes = min(len(values["node_lat"]), len(values["node_lng"]))
    inside = np.clip(ends, 0, max(0, n_nodes - 1))
    if not n_nodes:
        return np.zeros(1, np.int64), np.zeros(0), np.zeros(0)
    return np.arange(0, len(ends) + 1, 2), values["node_lat"][inside], values["node_lng"][inside]


def _grouped(node_of_link: Integers, n_nodes: int) -> tuple[Integers, Integers]:
    """Return offsets by node, and links in the order of their nodes."""
    order = np.argsort(node_of_link, kind="stable").astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(np.bincount(node_of_link, minlength=n_nodes)))).astype(np.int64)
    return offsets, order
