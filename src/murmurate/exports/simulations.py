"""Demand for traffic simulations: SUMO trips and routes, MATSim plans."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING
from xml.sax.saxutils import escape

import numpy as np

from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.releases.folder import Release

if TYPE_CHECKING:
    from murmurate.spaces.road import RoadNetwork

HEAD = '<?xml version="1.0" encoding="UTF-8"?>\n'
"""First line of every XML file."""

Seconds = np.ndarray[tuple[int], np.dtype[np.int64]]
"""Seconds of each point."""


def write_sumo(release: Release, out: Path, promise: list[str]) -> None:
    """Write trips between coordinates, or routes over links where the release has links and its roads are at hand.

    Trips (`*.trips.xml`) name longitude and latitude of both ends; `duarouter` finds their routes. With links, a folder holds
    `routes.rou.xml` and the network as `nodes.nod.xml` and `edges.edg.xml`, in degrees, which `netconvert --proj.utm` joins.
    Seconds count from the first midnight of the release.
    """
    from murmurate.spaces.road import RoadNetwork

    trips: Trips = release.data
    seconds = _seconds(trips)
    if "link" in trips.columns and isinstance(release.space, RoadNetwork):
        out.mkdir()
        _write(out / "routes.rou.xml", promise, "routes", _vehicles(trips, seconds))
        _write(out / "nodes.nod.xml", promise, "nodes", _nodes(release.space))
        _write(out / "edges.edg.xml", promise, "edges", _edges(release.space))
        return
    _write(out, promise, "routes", _trips(trips, seconds))


def write_matsim(release: Release, out: Path, promise: list[str]) -> None:
    """Write a population: one person for each trip, with an activity at either end, in metres of a UTM zone."""
    from pyproj import CRS, Transformer
    from pyproj.aoi import AreaOfInterest
    from pyproj.database import query_utm_crs_info

    trips: Trips = release.data
    seconds = _seconds(trips)
    if not trips.has_coordinates:
        raise InputError("plans need coordinates; this release has cells or links alone.")
    lat, lng = float(np.median(trips.lat)), float(np.median(trips.lng))
    zone = query_utm_crs_info(datum_name="WGS 84", area_of_interest=AreaOfInterest(lng, lat, lng, lat))[0]
    x, y = Transformer.from_crs("EPSG:4326", CRS.from_epsg(zone.code), always_xy=True).transform(trips.lng, trips.lat)
    text = [HEAD, '<!DOCTYPE population SYSTEM "http://www.matsim.org/files/dtd/population_v6.dtd">\n', _comment(promise)]
    text.append("<population>\n<attributes>\n")
    text.append(
        f'<attribute name="coordinateReferenceSystem" class="java.lang.String">EPSG:{zone.code}</attribute>\n</attributes>\n'
    )
    first, last = trips.offsets[:-1], trips.offsets[1:] - 1
    for number, (a, b) in enumerate(zip(first.tolist(), last.tolist(), strict=True)):
        text.append(
            f'<person id="{number}"><plan selected="yes">'
            f'<activity type="start" x="{x[a]:.1f}" y="{y[a]:.1f}" end_time="{_clock(seconds[a])}"/>'
            f'<leg mode="car"/><activity type="end" x="{x[b]:.1f}" y="{y[b]:.1f}"/></plan></person>\n'
        )
    text.append("</population>\n")
    out.write_text("".join(text), encoding="utf-8")


def _seconds(trips: Trips) -> Seconds:
    """Return seconds since the first local midnight of the release."""
    if not trips.has_time:
        raise InputError("simulations need times; this release has none.")
    if not trips.n_points:
        raise InputError("this release has no trips.")
    clock = trips.table["datetime"].dt.convert_time_zone(trips.time_zone)
    of_day = (
        clock.dt.hour().to_numpy().astype(np.int64) * 3600 + clock.dt.minute().to_numpy() * 60 + clock.dt.second().to_numpy()
    )
    return (trips.local_day - trips.local_day.min()) * 86_400 + of_day


def _trips(trips: Trips, seconds: Seconds) -> Iterator[str]:
    if not trips.has_coordinates:
        raise InputError("this release has links and no coordinates; open it with its roads: --space road:FILE.")
    first, last = trips.offsets[:-1], trips.offsets[1:] - 1
    for trip in np.argsort(seconds[first], kind="stable").tolist():  # SUMO reads departures in order
        a, b = first[trip], last[trip]
        yield (
            f'<trip id="{trip}" depart="{seconds[a]}" fromLonLat="{trips.lng[a]:.6f},{trips.lat[a]:.6f}" '
            f'toLonLat="{trips.lng[b]:.6f},{trips.lat[b]:.6f}"/>'
        )


def _vehicles(trips: Trips, seconds: Seconds) -> Iterator[str]:
    first = trips.offsets[:-1]
    for trip in np.argsort(seconds[first], kind="stable").tolist():
        edges = " ".join(f"l{link}" for link in trips.link[trips.offsets[trip] : trips.offsets[trip + 1]].tolist())
        yield f'<vehicle id="{trip}" depart="{seconds[first[trip]]}"><route edges="{edges}"/></vehicle>'


def _nodes(network: RoadNetwork) -> Iterator[str]:
    for node, (lng, lat) in enumerate(zip(network.node_lng.tolist(), network.node_lat.tolist(), strict=True)):
        yield f'<node id="n{node}" x="{lng:.7f}" y="{lat:.7f}"/>'


def _edges(network: RoadNetwork) -> Iterator[str]:
    ends = zip(network.link_from.tolist(), network.link_to.tolist(), network.speed_kmh.tolist(), strict=True)
    for link, (start, end, speed) in enumerate(ends):
        yield f'<edge id="l{link}" from="n{start}" to="n{end}" numLanes="1" speed="{speed / 3.6:.2f}"/>'


def _write(path: Path, promise: list[str], root: str, rows: Iterator[str]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(HEAD + _comment(promise) + f"<{root}>\n")
        file.writelines(f"{row}\n" for row in rows)
        file.write(f"</{root}>\n")


def _comment(promise: list[str]) -> str:
    return "<!-- " + escape(" ".join(promise)).replace("--", "- -") + " -->\n"


def _clock(seconds: int) -> str:
    return f"{seconds // 3600:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
