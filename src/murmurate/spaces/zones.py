"""Zones: public polygons of a file, such as districts or traffic analysis zones."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from murmurate.core.foreign import damaged
from murmurate.core.space import Floats, Integers
from murmurate.errors import Fault, InputError
from murmurate.spaces.places import areas_m2, halved, n_districts
from murmurate.spaces.sphere import great_circle_m

NAMES = ("name", "zone", "zone_name", "zone_id", "taz", "stop_name", "geoid", "locationid", "id")
"""Attributes that may name a place, in the order in which they are tried."""

MAX_OVERLAP = 1e-4
"""Largest share of the smaller of two zones that may lie in the other: files cut off digits, so edges may cross a little."""

MAX_TOUCHING = 50
"""Most zones that touch a zone, on average over a file. Set by hand: in maps it is about six."""

HASH_DIGITS = 16
"""Digits of the content hash in a spec, as road networks have them."""

FORMATS = "give GeoJSON, GeoPackage, GeoParquet or a zipped shapefile."
"""What to do with a file that cannot be read."""

SHOWN_FAULTS = 5
"""Faulty zones named in one message."""


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class Zones:
    """Holds polygons that do not overlap; places are numbered in the order of the file. A point between them has no place."""

    kind: ClassVar[str] = "zones"
    shapes: NDArray[Any]
    labels: tuple[str, ...]
    district: Integers
    source: str

    @classmethod
    def read(cls, file: str | Path) -> Self:
        """Read polygons of a GeoJSON, GeoPackage, GeoParquet or (zipped) shapefile; coordinates become degrees.

        Invalid or overlapping polygons, features that are none, and coordinates that are no degrees are refused together.
        """
        path = Path(file)
        with damaged(path, "zones as polygons", FORMATS):
            return cls._read(path)

    @classmethod
    def _read(cls, path: Path) -> Self:
        import shapely

        rows, crs = features_of(path, "zones as polygons")
        shapes = np.array([shape for _, shape in rows], dtype=object)
        faults = _faulty(shapes, path)
        if not faults:
            shapes = in_degrees(shapes, crs, path)
            faults = _overlaps(shapes, path)
        if faults:
            raise InputError(
                faults, "repair the polygons (in QGIS: Fix geometries, Topology checker), then read the file again."
            )
        tags = [row for row, _ in rows]
        lat, lng = centres(shapely.point_on_surface(shapes))
        return cls(shapes=shapes, labels=labels_of(tags), district=districts_of(tags, lat, lng), source=path.name)

    def __repr__(self) -> str:
        """Return the spec: outlines would fill pages of an error message."""
        return self.spec()

    # -- the Space protocol ----------------------------------------------------------------------------------------

    def spec(self) -> str:
        """Return kind, file name and content hash: where the file lies on this machine is nobody's business."""
        return f"{self.kind}:{self.source}#{self.fingerprint[:HASH_DIGITS]}"

    @cached_property
    def fingerprint(self) -> str:
        """Return a hash of outlines, names and districts."""
        import shapely

        digest = hashlib.sha256()
        for shape, label in zip(shapely.to_wkb(shapely.normalize(self.shapes)), self.labels, strict=True):
            digest.update(shape + label.encode() + b"\x00")
        digest.update(self.district.tobytes())
        return digest.hexdigest()

    def locate(self, lat: ArrayLike, lng: ArrayLike) -> Integers:
        """Return the zones of points; -1 for a point in none. A point on a common edge belongs to the zone that comes first."""
        import shapely

        lat, lng = np.broadcast_arrays(np.asarray(lat, dtype=np.float64), np.asarray(lng, dtype=np.float64))
        out = np.full(lat.size, -1, dtype=np.int64)
        known = np.flatnonzero(np.isfinite(lat.ravel() + lng.ravel()))
        x, y = lng.ravel()[known], lat.ravel()[known]
        if len(known) < self.n_cells:
            point, zone = self._tree.query(shapely.points(x, y), predicate="intersects")
            order = np.argsort(-zone, kind="stable")
            out[known[point[order]]] = zone[order]
            return out.reshape(lat.shape)
        # many points: zone by zone, the points between its edges; no object is made for a point
        eastward = np.argsort(x)
        west, south, east, north = shapely.bounds(self.shapes).T
        first, last = np.searchsorted(x[eastward], west), np.searchsorted(x[eastward], east, side="right")
        shapely.prepare(self.shapes)
        for zone in range(self.n_cells - 1, -1, -1):
            near = eastward[first[zone] : last[zone]]
            near = near[(y[near] >= south[zone]) & (y[near] <= north[zone])]
            out[known[near[shapely.intersects_xy(self.shapes[zone], x[near], y[near])]]] = zone
        return out.reshape(lat.shape)

    def centre(self, place: ArrayLike) -> tuple[Floats, Floats]:
        """Return latitude and longitude of a point inside each zone."""
        lat, lng = self._centres
        return lat[np.asarray(place)], lng[np.asarray(place)]

    def distance(self, one: ArrayLike, other: ArrayLike) -> Floats:
        """Return great-circle metres between centres, element by element."""
        return great_circle_m(*self.centre(one), *self.centre(other))

    def neighbours(self, place: int, reach: int = 1) -> Integers:
        """Return the zones that can be reached over at most `reach` common edges or corners, itself included."""
        found = np.array([int(place)])
        for _ in range(reach):
            found = np.unique(np.concatenate([found, self._tree.query(self.shapes[found], predicate="intersects")[1]]))
        return found.astype(np.int64)

    # -- the Places protocol ---------------------------------------------------------------------------------------

    @property
    def n_cells(self) -> int:
        return len(self.shapes)

    @cached_property
    def box(self) -> tuple[float, float, float, float]:
        """Return south, west, north and east of all zones."""
        import shapely

        west, south, east, north = (float(value) for value in shapely.total_bounds(self.shapes))
        return south, west, north, east

    def boundary(self, place: ArrayLike) -> NDArray[Any]:
        """Return the polygon of each zone, x being longitude."""
        return np.asarray(self.shapes[np.asarray(place)])

    def area_m2(self, place: ArrayLike) -> Floats:
        """Return the area of each zone on the sphere."""
        return areas_m2(self.boundary(place))

    def districts(self) -> Integers:
        """Return the district of each zone: the file's attribute `district`, or compact groups of about as many zones each."""
        return self.district

    def names(self) -> list[str]:
        """Return the name of every zone."""
        return list(self.labels)

    def describe(self) -> str:
        """Describe the places in a sentence."""
        return f"{self.n_cells:,} places of {self.source} in {int(self.district.max()) + 1:,} districts."

    @cached_property
    def _tree(self) -> Any:
        import shapely

        shapely.prepare(self.shapes)
        return shapely.STRtree(self.shapes)

    @cached_property
    def _centres(self) -> tuple[Floats, Floats]:
        import shapely

        return centres(shapely.point_on_surface(self.shapes))

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the index, which is made again where it is needed."""
        return {name: value for name, value in self.__dict__.items() if not name.startswith("_")}


def features_of(path: Path, what: str) -> tuple[list[tuple[dict[str, str], Any]], str | None]:
    """Read the features of a file; what cannot be read is named as what was looked for."""
    from murmurate.spaces.road.read_lines import read_features

    if not path.is_file():
        raise InputError(f"{path}: there is no such file.")
    try:
        return read_features(path)
    except InputError as error:
        words = str(error).replace("as lines", f"as {what}").split("\n")[0]
        raise InputError(words, FORMATS) from None


def in_degrees(shapes: NDArray[Any], crs: str | None, path: Path) -> NDArray[Any]:
    """Return shapes in degrees; refuse coordinates that cannot be degrees in a file that names no system."""
    import shapely

    from murmurate.spaces.road.reproject import to_degrees

    def moved(xy: Floats) -> Floats:
        lat, lng = to_degrees(xy[:, 1], xy[:, 0], crs)
        return np.column_stack([lng, lat])

    turned = shapely.transform(shapes, moved)
    west, south, east, north = shapely.total_bounds(turned)
    if not (west >= -180 and south >= -90 and east <= 180 and north <= 90):
        raise InputError(
            f"{path}: coordinates from {south:.6g}, {west:.6g} to {north:.6g}, {east:.6g} are no degrees"
            + (f" after transformation from {crs}." if crs else "; the file names no coordinate system."),
            "write it in EPSG:4326 (WGS84), or as GeoPackage or GeoParquet, which name their system.",
        )
    return np.asarray(turned)


def labels_of(tags: list[dict[str, str]]) -> tuple[str, ...]:
    """Return the names of places: the first attribute that names all of them differently, or their numbers."""
    for name in NAMES:
        found = [row.get(name, "") for row in tags]
        if all(found) and len(set(found)) == len(found):
            return tuple(found)
    return tuple(str(k) for k in range(len(tags)))


def districts_of(tags: list[dict[str, str]], lat: Floats, lng: Floats) -> Integers:
    """Return districts as the file names them, or groups by halving."""
    found = [row.get("district", "") for row in tags]
    if all(found):
        named = [int(word) for word in found] if all(word.isdigit() for word in found) else found  # numbers keep their order
        return np.unique(named, return_inverse=True)[1].astype(np.int64)
    return halved(lat, lng, n_districts(len(tags)))


def centres(points: NDArray[Any]) -> tuple[Floats, Floats]:
    """Return latitude and longitude of points."""
    import shapely

    return np.asarray(shapely.get_y(points)), np.asarray(shapely.get_x(points))


def _faulty(shapes: NDArray[Any], path: Path) -> list[Fault]:
    import shapely

    missing = np.array([shape is None for shape in shapes])
    other = ~missing & ~np.isin(shapely.get_type_id(shapes), (3, 6))
    invalid = ~missing & ~other & (~shapely.is_valid(shapes) | shapely.is_empty(shapes))
    reasons = ((missing, "features without a geometry"), (other, "features that are no polygons"))
    faults = [_fault(path, words, np.flatnonzero(bad)) for bad, words in reasons if bad.any()]
    if invalid.any():
        first = int(np.argmax(invalid))
        faults.append(_fault(path, f"invalid polygons ({shapely.is_valid_reason(shapes[first])})", np.flatnonzero(invalid)))
    return faults


def _overlaps(shapes: NDArray[Any], path: Path) -> list[Fault]:
    """Return zones that lie in each other. Few at a time: a thousand copies of one zone are half a million pairs."""
    import shapely

    tree, first, step, touching = shapely.STRtree(shapes), 0, 1, 0
    while first < len(shapes):
        one, other = tree.query(shapes[first : first + step], predicate="intersects")
        one, other = one[one + first < other] + first, other[one + first < other]
        common = shapely.area(shapely.intersection(shapes[one], shapes[other]))
        bad = common > MAX_OVERLAP * np.minimum(shapely.area(shapes[one]), shapely.area(shapes[other]))
        if bad.any():
            pairs = ", ".join(f"{a} and {b}" for a, b in zip(one[bad][:SHOWN_FAULTS], other[bad][:SHOWN_FAULTS], strict=True))
            return [Fault(f"zones overlap, so a point would be in two: features {pairs}", file=str(path))]
        touching += len(one)
        if touching > MAX_TOUCHING * len(shapes):
            return [Fault(f"more than {MAX_TOUCHING} zones touch each zone on average: these are no areas", file=str(path))]
        first += step
        step = 2 * step if len(one) < MAX_TOUCHING * step else 1
    return []


def _fault(path: Path, words: str, rows: Integers) -> Fault:
    listed = ", ".join(str(row) for row in rows[:SHOWN_FAULTS].tolist())
    return Fault(f"{len(rows):,} {words}: {listed}{', ...' if len(rows) > SHOWN_FAULTS else ''}", file=str(path))
