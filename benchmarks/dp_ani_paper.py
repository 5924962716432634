"""DP-ANI's figures on San Francisco taxis, beside OD-successive and road_counts, and the attack on each of them.

    python benchmarks/dp_ani_paper.py [--network osm|tiger] [--hours 6] [--out FOLDER]
    python benchmarks/dp_ani_paper.py --ranges [--network osm|tiger] [--hours 3] [--seeds 3]     smallest range tested, scanned

Figures 4 and 6 to 8 (network length, ends moved, Wasserstein distances of counts and classes) are means over single hours of
single days; figure 5 is the first of them as maps; figure 3 is the number of trips by hour. road_counts runs on all 21 days.
Whether adaptive < fix < max holds, and what od_successive keeps, is settled on many more single hours. Where a column tells
fleet from private vehicles both are shown; the taxis have none, so that the built-in city with a made-up fleet stands in.
The attack reads single hours (raw, od_successive, dp_ani) and, for road_counts, both a single hour and all days.
The data folder is MURMURATE_DATA, or shared/data beside the project.
"""

from __future__ import annotations

import argparse
import os
import sys
import time
from pathlib import Path

import numpy as np
import polars as pl

from murmurate.asking.rounds import fitted
from murmurate.attacks.reconstruct import attack_network
from murmurate.core.trips import Trips
from murmurate.demo import city
from murmurate.mechanisms.dp_ani import DPANI
from murmurate.mechanisms.od_successive import ODSuccessive
from murmurate.mechanisms.road_counts import RoadCounts
from murmurate.metrics.networks import compare_networks, ends_moved, single_ends
from murmurate.noise import seeded
from murmurate.report.networks import curves, original_map, overlap_map, write_networks_page
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import read_roads
from murmurate.spaces.road.geometry import points_along
from murmurate.spaces.road.routing import routes

FILES = {"osm": "sf_osm2026_central_drive.graphml.gz", "tiger": "sf_tiger2017_roads.graphml.gz"}
EPSILONS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)
RULES = ("adaptive", "fix", "max")
INITIAL_M = (10.0, 25.0, 50.0, 75.0, 100.0, 150.0)
"""Smallest ranges that are scanned; the paper names z_init and gives no value."""
PAPER = "paper: adaptive within 10 % (195.2 of 194.6 miles), OD-successive .71, 76 % of ends moved at epsilon .1"


def read(folder: Path) -> Trips:
    file = folder / "sf_taxi_dploc200_trips.parquet"
    if not file.is_file():
        sys.exit(f"{file.name} is not here; set MURMURATE_DATA to the folder of real data.")
    table = pl.read_parquet(file).rename({"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"})
    return Trips(table, time_zone="America/Los_Angeles")


def scores(found, drives, original, true=None, new=None) -> dict[str, float]:
    """Network scores, ends moved where they are known, attacks with their baselines."""
    values = {score.name: score.value for score in [*compare_networks(found, original), *single_ends(found, drives)]}
    if true is not None:
        values |= {score.name: score.value for score in ends_moved(found.network, true.ravel(), new.ravel())}
    for score in attack_network(found, drives):
        values[score.name] = score.value
        values[f"{score.name}.chance"] = score.chance
    return values


def mean(rows: list[dict[str, float]]) -> dict[str, float]:
    return {name: float(np.nanmean([row.get(name, np.nan) for row in rows])) for name in rows[0]}


def day_hours(trips: Trips, n: int, at: int = 13) -> list[Trips]:
    """Trips that began from 1 to 2 pm (or another hour) on the first n days with enough of them."""
    first = trips.offsets[:-1]
    day, hour = trips.local_day[first], trips.local_hour[first]
    found = [trips.take_trips(np.flatnonzero((day == date) & (hour == at))) for date in np.unique(day)]
    return [part for part in found if part.n_trips > 100][:n]


def as_published(network, hours: list[Trips]):
    """name -> epsilon -> mean scores over hours; and the maps of the first hour."""
    table: dict[str, dict[float, dict[str, float]]] = {}
    maps = []
    prepared = [(part, drives_of(part, network)) for part in hours]
    plain = [LinkFlows.of_drives(drives) for _, drives in prepared]
    maps.append(original_map(plain[0]))
    pairs = list(zip(prepared, plain, strict=True))
    table["raw"] = {0.0: mean([scores(flows, drives, flows) for (_, drives), flows in pairs])}
    shortened = [LinkFlows.of_drives(ODSuccessive(space=network).shortened(drives)) for _, drives in prepared]
    maps.append(overlap_map("OD-successive, k = 2", shortened[0], plain[0]))
    table["od_successive"] = {
        0.0: mean([scores(cut, drives, flows) for cut, ((_, drives), flows) in zip(shortened, pairs, strict=True)])
    }
    for rule in (*RULES, "adaptive, epsilon_radius 1"):
        held = 1.0 if "radius" in rule else None
        table[rule] = {}
        for epsilon in EPSILONS:
            mechanism = DPANI(epsilon=epsilon, space=network, radius_rule=rule.split(",")[0], epsilon_radius=held)
            rows = []
            for number, ((part, drives), flows) in enumerate(pairs):
                done = mechanism.perturb(part, seeded(number))
                found = LinkFlows.of_drives(done.drives)
                rows.append(
                    scores(found, drives, flows, done.true_link, done.new_link) | {"radius_m": float(np.median(done.radius_m))}
                )
                if number == 0 and epsilon == 1.0 and held is None:
                    maps.append(overlap_map(f"DP-ANI {rule}, epsilon 1", found, flows))
            table[rule][epsilon] = mean(rows)
    noisy = [fitted(RoadCounts(epsilon=1.0, space=network, unit="trip"), part, seeded(k)) for k, part in enumerate(hours)]
    table["road_counts, unit trip, one hour"] = {
        1.0: mean([scores(found, drives, flows) for found, ((_, drives), flows) in zip(noisy, pairs, strict=True)])
    }
    return table, maps


def initial_ranges(network, hours: list[Trips], seeds: int) -> list[dict]:
    """Length and ends moved by the smallest range tested, epsilon tied to that of the noise; means over hours and seeds."""
    rows = []
    plain = [LinkFlows.of_drives(drives_of(part, network)).length_km for part in hours]
    for initial_m in INITIAL_M:
        for epsilon in (0.1, 1.0, 10.0):
            for rule in RULES:
                mechanism = DPANI(epsilon=epsilon, space=network, initial_m=initial_m, radius_rule=rule)
                done = [
                    (mechanism.perturb(part, seeded(1_000 * seed + number)), length)
                    for seed in range(seeds if rule == "adaptive" else 1)
                    for number, (part, length) in enumerate(zip(hours, plain, strict=True))
                ]
                moved = [one.moved for one, _ in done]
                ratio = [LinkFlows.of_drives(one.drives).length_km / length for one, length in done]
                rows.append({"initial_m": initial_m, "epsilon": epsilon, "rule": rule, "runs": len(done),
                             "moved": float(np.mean(moved)), "moved_se": float(np.std(moved) / len(moved) ** 0.5),
                             "length": float(np.mean(ratio))})  # fmt: skip
                print(rows[-1], flush=True)
    return rows


def pooled_days(trips: Trips, network, days: int) -> list[str]:
    """The same hour of one day, or of several together."""
    first = trips.offsets[:-1]
    dates = np.unique(trips.local_day[first])[1 : 1 + days]
    part = trips.take_trips(np.flatnonzero(np.isin(trips.local_day[first], dates) & (trips.local_hour[first] == 13)))
    drives = drives_of(part, network)
    plain = LinkFlows.of_drives(drives)
    cut = LinkFlows.of_drives(ODSuccessive(space=network).shortened(drives))
    found = DPANI(epsilon=1.0, space=network).apply(part, seeded(1))
    values = {score.name: score.value for score in [*compare_networks(found, plain), *single_ends(found, drives)]}
    told = [values["network_ends.single"], cut.length_km / plain.length_km, values["network_length.ratio"]]
    return [str(days), str(part.n_trips), *(f"{value:.3f}" for value in (*told, values["network_ends.single_shown"]))]


def order_of_rules(trips: Trips, network, hours=(9, 13, 19), epsilon: float = 2.0) -> list[list[str]]:
    """Network length by rule on many single hours: means, and paired differences with their standard error."""
    found: dict[str, list[float]] = {rule: [] for rule in (*RULES, "od_successive")}
    for hour in hours:
        for number, part in enumerate(day_hours(trips, 99, hour)):
            drives = drives_of(part, network)
            plain = LinkFlows.of_drives(drives).length_km
            found["od_successive"].append(LinkFlows.of_drives(ODSuccessive(space=network).shortened(drives)).length_km / plain)
            for rule in RULES:
                done = DPANI(epsilon=epsilon, space=network, radius_rule=rule).perturb(part, seeded(100 * hour + number))
                found[rule].append(LinkFlows.of_drives(done.drives).length_km / plain)
    n = len(found["fix"])
    rows = [
        [f"{name}, {n} single hours", f"{np.mean(values):.4f}", f"{np.std(values) / np.sqrt(n):.4f}"]
        for name, values in found.items()
    ]
    for one, other in (("adaptive", "fix"), ("fix", "max")):
        apart = np.array(found[other]) - np.array(found[one])
        rows.append([f"{other} minus {one}", f"{apart.mean():+.4f}", f"{apart.std() / np.sqrt(n):.4f}"])
    return rows


def by_vehicle(trips: Trips, network, hours=(8, 9, 17, 18)) -> list[list[str]]:
    """Single-count ends and length of the network, for each kind of vehicle that the column `vehicle` names."""
    first = trips.offsets[:-1]
    kind = trips.table["vehicle"].gather(first).to_numpy()
    day, hour = trips.local_day[first], trips.local_hour[first]
    rows = []
    for name in sorted(set(kind.tolist())):
        each = []
        for date in np.unique(day):
            for at in hours:
                part = trips.take_trips(np.flatnonzero((kind == name) & (day == date) & (hour == at)))
                if part.n_trips < 30:
                    continue
                drives = drives_of(part, network)
                plain = LinkFlows.of_drives(drives)
                done = DPANI(epsilon=1.0, space=network).perturb(part, seeded(1))
                found = LinkFlows.of_drives(done.drives)
                cut = LinkFlows.of_drives(ODSuccessive(space=network).shortened(drives))
                each.append(
                    scores(found, drives, plain, done.true_link, done.new_link)
                    | {"trips": float(part.n_trips), "cut": cut.length_km / plain.length_km}
                )
        if each:
            told = mean(each)
            wanted = ("network_ends.single", "cut", "network_length.ratio", "network_ends.moved", "network_ends.single_shown",
                      "reconstruct.ends.imbalance.exact")  # fmt: skip
            rows.append([name, str(len(each)), f"{told['trips']:.0f}", *(number(told, column) for column in wanted)])
    return rows


def city_with_a_fleet(*, vehicles: int = 120, seed: int = 5):
    """The built-in city, and cabs that drive from one busy place to the next all day; `vehicle` tells them apart."""
    town = city(people=600, days=3, seed=seed)
    network, private = town.network, town.trips
    rng = np.random.default_rng(seed)
    use = np.bincount(network.link_to[drives_of(private, network).link], minlength=network.n_nodes) + 1.0
    begin_us = int(private.time_us.min())
    own = private.table.select("uid", "tid", "datetime", "lat", "lng")
    parts = [own.with_columns(pl.col("uid", "tid").cast(pl.String), vehicle=pl.lit("private"))]
    tid = 0
    for cab in range(vehicles):
        node, moment = int(rng.choice(network.n_nodes, p=use / use.sum())), begin_us + int(rng.integers(0, 3_600_000_000))
        while moment < begin_us + 3 * 86_400_000_000:
            goal = int(rng.choice(network.n_nodes, p=use / use.sum()))
            path = routes(network, [node], [goal])[0].links
            if len(path) > 3:
                seconds = np.cumsum(network.time_s[path] * 1.5)
                t = np.arange(0.0, seconds[-1], 15.0)
                at = np.searchsorted(seconds, t, side="right")
                share = 1 - (seconds[at] - t) / (network.time_s[path[at]] * 1.5)
                lat, lng = points_along(network.shape_offsets, network.shape_lat, network.shape_lng, path[at], share)
                when = pl.Series(moment + (t * 1e6).astype(np.int64)).cast(private.table.schema["datetime"])
                names = {"uid": f"cab {cab}", "tid": f"cab {tid}", "datetime": when}
                parts.append(pl.DataFrame({**names, "lat": lat, "lng": lng, "vehicle": "fleet"}))
                node, moment, tid = goal, moment + int(seconds[-1] * 1e6), tid + 1
            moment += int(rng.exponential(1_200)) * 1_000_000
    return Trips(pl.concat(parts), time_zone=private.time_zone), network


def sound(network, trips: Trips):
    """road_counts on all days at epsilon 1, by unit; raw and od_successive pooled beside it."""
    drives = drives_of(trips, network)
    plain = LinkFlows.of_drives(drives)
    table = {"raw, all days": scores(plain, drives, plain)}
    table["od_successive, all days"] = scores(LinkFlows.of_drives(ODSuccessive(space=network).shortened(drives)), drives, plain)
    maps = []
    settings = {
        "trip": {},
        "user_day": {},
        "user": {},
        "user, speeds and turns": {"speeds": True, "turns": True},
    }
    for name, more in settings.items():
        began = time.process_time()
        mechanism = RoadCounts(epsilon=1.0, space=network, unit=name.split(",")[0], **more)
        found = fitted(mechanism, trips, seeded(1))
        rows = found.table
        truth = plain.by_hour[rows["hour"].to_numpy(), rows["link"].to_numpy()]
        inside = (truth >= rows["low"].to_numpy()) & (truth <= rows["high"].to_numpy())
        table[f"road_counts, {name}"] = scores(found, drives, plain) | {
            "threshold": found.about["threshold_trips"],
            "coverage": float(inside.mean()) if len(inside) else float("nan"),
            "busy_speed": busy_speed_error(found, plain),
            "cpu_s": time.process_time() - began,
        }
        maps.append(overlap_map(f"road_counts, unit {name}, 21 days", found, plain))
    return table, maps


def busy_speed_error(found: LinkFlows, plain: LinkFlows) -> float:
    """Median relative error of mean speeds on the 1,000 busiest links."""
    busy = np.argsort(-plain.totals)[:1000]
    mine, theirs = (side.link_table()["observed_kmh"].to_numpy()[busy] for side in (found, plain))
    return float(np.nanmedian(np.abs(mine / theirs - 1))) if np.isfinite(mine).any() else float("nan")


def show(title: str, head: list[str], rows: list[list[str]]) -> list[list[str]]:
    print(f"\n{title}")
    widths = [max(len(row[k]) for row in [head, *rows]) for k in range(len(head))]
    for row in [head, *rows]:
        print("  " + "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)))
    return [head, *rows]


def number(values: dict[str, float], name: str) -> str:
    return f"{values[name]:.3f}" if name in values and np.isfinite(values[name]) else ""


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--network", choices=list(FILES), default="osm")
    parser.add_argument("--hours", type=int, default=6, help="single hours that figures are means of")
    parser.add_argument("--ranges", action="store_true", help="scan the smallest range tested, and nothing else")
    parser.add_argument("--seeds", type=int, default=3, help="seeds of --ranges")
    parser.add_argument("--out", type=Path, help="folder for the page of figures (internal: it shows private data)")
    given = parser.parse_args()
    folder = Path(os.environ.get("MURMURATE_DATA", Path(__file__).resolve().parents[2] / "shared" / "data"))
    trips, network = read(folder), read_roads(folder / FILES[given.network])
    hours = day_hours(trips, given.hours)
    n_trips = np.mean([part.n_trips for part in hours])
    print(f"{given.network}: {network.n_links:,} links; {len(hours)} hours of {n_trips:.0f} trips")
    print(PAPER)
    if given.ranges:
        initial_ranges(network, hours, given.seeds)
        return
    table, maps = as_published(network, hours)
    tables = {}
    columns = ["network_length.ratio", "network_ends.moved", "network_ends.distance", "network_ends.single_shown",
               "network_counts.wasserstein",
               "network_classes.wasserstein", "network_connectivity.ratio", "radius_m"]  # fmt: skip
    head = [
        "mechanism",
        "epsilon",
        "length",
        "ends moved",
        "by m",
        "single ends shown",
        "counts W",
        "classes W",
        "connected",
        "radius m",
    ]
    rows = [
        [name, f"{e:g}" if e else "", *(number(found, c) for c in columns)]
        for name, each in table.items()
        for e, found in each.items()
    ]
    tables["As published, single hours"] = show("As published, single hours", head, rows)
    attacked = [
        "ends.imbalance.exact",
        "ends.imbalance.within_100m",
        "ends.dead_ends.exact",
        "trips.assignment",
        "trips.paths",
        "trips.count_one",
    ]
    head = ["release", "epsilon", *(column for name in attacked for column in (name, "by traffic"))]
    rows = [
        [name, f"{e:g}" if e else "", *(number(found, f"reconstruct.{a}{end}") for a in attacked for end in ("", ".chance"))]
        for name, each in table.items() for e, found in each.items() if e in (0.0, 0.1, 1.0, 10.0)
    ]  # fmt: skip
    together = [pooled_days(trips, network, days) for days in (1, 3)]
    tables["One day and three days pooled, 1 to 2 pm"] = show(
        "One day and three days pooled, 1 to 2 pm",
        ["days", "trips", "single ends", "od_successive length", "adaptive, epsilon 1, length", "single ends shown"],
        together,
    )
    settled = order_of_rules(trips, network)
    tables["Epsilon 2, many single hours"] = show("Epsilon 2, many single hours", ["length", "mean", "standard error"], settled)
    fleet, town = (trips, network) if "vehicle" in trips.columns else city_with_a_fleet()
    head_of_kinds = ["vehicle", "hours", "trips", "single ends", "od_successive length", "adaptive, epsilon 1, length", "moved",
                     "single ends shown", "ends found"]  # fmt: skip
    tables["Fleet and private vehicles"] = show("Fleet and private vehicles", head_of_kinds, by_vehicle(fleet, town))
    pooled, more = sound(network, trips)
    rows += [
        [
            name,
            "1" if "road" in name else "",
            *(number(found, f"reconstruct.{a}{end}") for a in attacked for end in ("", ".chance")),
        ]
        for name, found in pooled.items()
    ]
    tables["Attack"] = show("Attack: share found, beside guessing by traffic", head, rows)
    wanted = {
        "links r": "network_links.correlation", "link x hour r": "network_hours.correlation",
        "top 100": "network_links.top_100",
        "profile TV": "network_hours.profile", "speed error": "busy_speed", "length": "network_length.ratio",
        "kept above threshold": "network_length.kept_above_threshold", "invented": "network_length.invented",
        "total": "network_links.total_ratio", "threshold": "threshold", "in interval": "coverage", "CPU s": "cpu_s",
    }  # fmt: skip
    rows = [[name, *(number(found, c) for c in wanted.values())] for name, found in pooled.items()]
    tables["21 days, epsilon 1, delta 1e-6"] = show("21 days, epsilon 1, delta 1e-6", ["release", *wanted], rows)
    if given.out:
        ends = trips.local_hour[trips.offsets[:-1]]
        names = [*RULES, "adaptive, epsilon_radius 1"]

        def over(metric: str, title: str, label: str):
            series = {name: [table[name][e][metric] for e in EPSILONS] for name in names}
            if metric in table["od_successive"][0.0]:
                series["OD-successive"] = [table["od_successive"][0.0][metric]] * len(EPSILONS)
            return curves(title, EPSILONS, series, x_label="epsilon", y_label=label, log_x=True)

        charts = [
            curves(
                "Figure 3: trips by hour",
                range(24),
                {"trips": np.bincount(ends, minlength=24)},
                x_label="hour",
                y_label="trips",
            ),
            over("network_length.ratio", "Figure 4: network length", "relative to the original"),
            over("network_ends.moved", "Figure 6: ends moved", "share of ends"),
            over("network_counts.wasserstein", "Figure 7: link counts", "Wasserstein over mean count"),
            over("network_classes.wasserstein", "Figure 8: road classes", "Wasserstein, classes"),
            over("reconstruct.ends.imbalance.exact", "Attack: ends found by imbalance", "share of ends"),
        ]
        about = f"San Francisco taxis on the {given.network} network. {PAPER}. Internal: made from private data."
        file = given.out / f"dp_ani_{given.network}.html"
        shown = {"maps": [*maps, *more], "charts": charts, "tables": tables}
        page = write_networks_page(file, title="Aggregated mobility networks", about=about, network=network, **shown)
        print(f"\n{page.name} written")


if __name__ == "__main__":
    main()
