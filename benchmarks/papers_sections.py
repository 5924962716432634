"""What each publication prints, and how papers.py measures it again; one function a publication."""

from __future__ import annotations

import csv
import json
import os
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

import dp_ani_paper
import plausible_paper
from dp_loc_page import ENDS_LOSS, NEXT_CELL, PATTERNS
from dp_loc_paper import load, run
from murmurate import noise
from murmurate.ingest.discretise import to_cells
from murmurate.judging.study import study
from murmurate.mechanisms.dp_ani import DPANI
from murmurate.mechanisms.od_successive import ODSuccessive
from murmurate.mechanisms.plausible import Plausible
from murmurate.metrics.semantics import move_similarity, stationary_similarity
from murmurate.papers.plausible.published import fill_pool, learn
from murmurate.profiles.aggregate import Aggregate
from murmurate.profiles.days import daily_traces
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.grid import Grid
from murmurate.spaces.road import RoadNetwork, read_roads
from murmurate.spaces.road.geometry import points_along
from plausible_page import Page
from tony900 import BUDGETS, STUDIES, TABLES, Table, ours

STUDY, DP_LOC, DP_ANI, TRACES = "Geo-indistinguishability study", "DP-Loc", "DP-ANI", "Plausible traces"


@dataclass(frozen=True)
class Figure:
    """A figure whose values are drawn and not printed."""

    paper: str
    number: str
    shows: str
    here: str


@dataclass
class Found:
    rows: list[dict[str, Any]] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)


def absent(paper: str, file: str) -> Found:
    return Found(figures=[Figure(paper, "all", "everything on this file", f"{file} is not here; set MURMURATE_DATA")])


# -- the geo-indistinguishability study -------------------------------------------------------------------------------

TONY_READING = (
    "The budget of a trace is epsilon n + 0.1, the ratio of test to noise budget stays at 0.1 / epsilon, and the rate of "
    "passed tests at 0."
)

PORTO_READING = TONY_READING.replace("epsilon n + 0.1", "epsilon (n + 0.1)").replace("0.1 / epsilon", "0.1")
"""With the reading of Tony-900 the predictive rows at epsilon 0.1 are 3.6 times as high as printed."""

PORTO = (
    Table(2, "length (m)", "length.released_mean",
          ("1506.1", "745.66", "289.96", "138.67", "88.733", "64.038", "0.0076"),
          ("705.23", "341.77", "124.76", "53.833", "31.069", "20.213", "0.0226")),
    Table(4, "speed (m/s)", "speed.released_mean",
          ("1.9434", "0.962", "0.3739", "0.1787", "0.1142", "0.0823", "5.9111"),
          ("0.924", "0.4478", "0.1635", "0.0706", "0.0407", "0.0264", "17.27"), scale=1 / 3.6),
    Table(6, "absolute length change (m)", "length_change.absolute.mean",
          ("1506.1", "745.66", "289.96", "138.67", "88.733", "64.038", "0.0076"),
          ("705.23", "341.78", "124.77", "53.84", "31.08", "20.231", "0.0226")),
    Table(8, "relative length change (a growth is negative there)", "length_change.relative.mean",
          ("-0.4525", "-0.2247", "-0.0883", "-0.0428", "-0.0277", "-0.0203", "-24.213"),
          ("-0.2221", "-0.1086", "-0.0407", "-0.0181", "-0.0108", "-0.0072", "-64.436"), scale=-1.0),
    Table(10, "Hausdorff distance (m)", "hausdorff.mean",
          ("60.403", "29.308", "11.104", "5.3139", "3.4666", "2.5672", "0.1925"),
          ("47.804", "23.01", "8.5584", "4.0217", "2.5873", "1.8966", "0.2586")),
    Table(12, "centroid displacement (m)", "centroid_displacement.mean",
          ("3.5212", "1.7609", "0.7038", "0.3523", "0.2348", "0.176", "2.8401"),
          ("4.0718", "2.0443", "0.8337", "0.4389", "0.3134", "0.255", "2.0702")),
)  # fmt: skip
"""The natural half of the study; Table 1 gives the trips' mean and deviation of duration (s) and speed (m/s)."""

PORTO_HEADER = (
    "TRIP_ID", "CALL_TYPE", "ORIGIN_CALL", "ORIGIN_STAND", "TAXI_ID", "TIMESTAMP", "DAY_TYPE", "MISSING_DATA", "POLYLINE"
)  # fmt: skip

DURATION_S, SPEED_MS = (774.84, 671.75), (6.785, 3.925)


def tony900(_folder: Path | None, full: bool, _kept: dict) -> Found:
    """Tables 3, 5, 7, 9, 11 and 13."""
    with tempfile.TemporaryDirectory() as out:
        result = study(STUDIES / ("tony900.toml" if full else "tony900_small.toml"), out=Path(out) / "study", workers=1)
    return Found(study_rows(result, TABLES, TONY_READING, 100 if full else 3, ""), study_figures())


def porto(folder: Path | None, full: bool, _kept: dict) -> Found:
    """Tables 2, 4, 6, 8, 10 and 12: from the published file where it is here, else from simulated trips on Porto's roads."""
    text = (STUDIES / "porto.toml").read_text().replace("repeats = 100", f"repeats = {10 if full else 1}")
    why = ""
    with tempfile.TemporaryDirectory() as name:
        out = Path(name)
        if folder is not None and (folder / "porto_taxi.csv").is_file():
            os.environ["MURMURATE_DATA"] = str(folder)
        elif folder is not None and (folder / "porto_osm2022_drive.graphml.gz").is_file():
            network = read_roads(folder / "porto_osm2022_drive.graphml.gz")
            simulated_trips(network, out / "porto_taxi.csv", 3000 if full else 400)
            why = "The published file is not here: simulated trips on Porto's roads, durations and speeds as in Table 1."
        else:
            return absent(STUDY, "porto_taxi.csv")
        (out / "porto.toml").write_text(text)
        result = study(out / "porto.toml", out=out / "study", workers=1)
    return Found(study_rows(result, PORTO, f"{why} {PORTO_READING}".strip(), 10 if full else 1, why))


def simulated_trips(network: RoadNetwork, path: Path, n: int) -> None:
    """Write trips on these roads in the published layout: a point every 15 s, gamma durations and speeds as in Table 1.

    A trip goes from link to link, straight on more often than not.
    """
    rng = np.random.default_rng(2014)
    offsets, out = network.out_links
    first, last = network.shape_offsets[:-1], network.shape_offsets[1:] - 1
    lat, lng = network.shape_lat, network.shape_lng
    heading = np.arctan2(lat[last] - lat[first], (lng[last] - lng[first]) * np.cos(np.radians(41.15)))
    begin = int(datetime(2014, 4, 24, 6, tzinfo=UTC).timestamp())
    with path.open("w", newline="") as file:
        rows = csv.writer(file, quoting=csv.QUOTE_ALL)
        rows.writerow(PORTO_HEADER)
        for trip in range(n):
            duration, speed = (rng.gamma((mean / sd) ** 2, sd**2 / mean) for mean, sd in (DURATION_S, SPEED_MS))
            points = max(2, round(duration / 15) + 1)
            links = [int(rng.integers(network.n_links))]
            while network.length_m[links].sum() < speed * 15 * (points - 1):
                node = network.link_to[links[-1]]
                choice = out[offsets[node] : offsets[node + 1]]
                if not len(choice):
                    links = [int(rng.integers(network.n_links))]
                    continue
                weight = np.exp(3 * np.cos(heading[choice] - heading[links[-1]]))
                links.append(int(rng.choice(choice, p=weight / weight.sum())))
            ends = np.cumsum(network.length_m[links])
            along = np.minimum(np.arange(points) * 15 * speed, ends[-1] - 1e-6)
            at = np.searchsorted(ends, along, side="right")
            part = 1 - (ends[at] - along) / network.length_m[links][at]
            y, x = points_along(network.shape_offsets, lat, lng, np.asarray(links)[at], part)
            line = json.dumps([[round(float(a), 6), round(float(b), 6)] for a, b in zip(x, y, strict=True)])
            rows.writerow([f"T{trip}", "B", "", "", f"2000{trip % 442:04}", begin + trip * 7, "A", "False", line])


def study_rows(result: Any, tables: tuple[Table, ...], reading: str, runs: int, why: str) -> list[dict[str, Any]]:
    rows = []
    for table in tables:
        for mechanism, printed in (("simple", table.simple), ("predictive", table.predictive)):
            names = [f"{mechanism}, a at epsilon {budget:g}" for budget in BUDGETS] + [f"{mechanism}, c"]
            for name, text, found in zip(names, printed, ours(result, table, mechanism), strict=True):
                rows.append({"paper": STUDY, "item": f"Table {table.number}, {table.title}", "setting": name,
                             "printed": float(text), "found": float(found), "runs": runs, "why": why,
                             "reading": reading if mechanism == "predictive" or why else ""})  # fmt: skip
    return rows


def study_figures() -> list[Figure]:
    page = "murmurate study studies/tony900.toml or studies/porto.toml draws it"
    return [
        Figure(STUDY, "3, 6, 9, 12, 15", "first layer, Porto", page),
        Figure(STUDY, "4, 7, 10, 13, 16", "first layer, Tony-900", page),
        Figure(STUDY, "5, 8, 11, 14, 17, 19", "final layer and performance over epsilon", page),
        Figure(STUDY, "18", "residuals of the centroid's first layer", page),
    ]


# -- DP-Loc -----------------------------------------------------------------------------------------------------------

TABLE_1 = {250: (121_622, 2_851, 69, 9.07, 5.15), 500: (120_561, 848, 55, 7.34, 4.53)}
"""Trips, visited cells, greatest, mean and deviation of the cells of a trip."""


def dp_loc(folder: Path | None, full: bool, kept: dict) -> Found:
    """Table 1; tables 2 to 5 from kept figures of dp_loc_paper.py, or trained anew, which takes hours."""
    if folder is None:
        return absent(DP_LOC, "sf_taxi_dploc200_trips.parquet")
    os.environ.setdefault("MURMURATE_DATA", str(folder))
    rows: list[dict[str, Any]] = []
    reading = "The 200 longest cab files, weekdays of the authors' own time zone; the text says 200 random cabs."
    for cell_m, printed in TABLE_1.items():
        private, grid = load("sf", cell_m)
        cells = to_cells(private, grid)
        size = np.diff(cells.offsets)
        found = (cells.n_trips, len(np.unique(cells.cell)), size.max(), size.mean(), size.std())
        for name, text, value in zip(("trips", "visited cells", "longest", "mean", "deviation"), printed, found, strict=True):
            rows.append({"paper": DP_LOC, "item": "Table 1, the data", "setting": f"{cell_m} m, {name}", "printed": text,
                         "found": float(value), "reading": reading})  # fmt: skip
    figures = trained(kept["dp_loc"]) if full else kept["dp_loc"]
    rows += [row for part in (kept_patterns, kept_losses, kept_next_cell) for row in part(figures)]
    page = "benchmarks/dp_loc_paper.py --html draws it by hour, as divergence; its page gives the root beside it"
    return Found(rows, [
        Figure(DP_LOC, "1, 2", "sketches of the networks", "murmurate.papers.dp_loc"),
        Figure(DP_LOC, "3", "JSD of trip sizes by hour", page),
        Figure(DP_LOC, "4", "EMD of sources and destinations by hour", page),
    ])  # fmt: skip


def trained(kept: dict) -> dict:
    """Fit NGRAM and the published networks in every printed setting, once each, and give the figures as they are kept."""
    found: dict[str, Any] = kept | {"taken": "", "patterns": {}, "loss": {}, "next_cell": {}}
    for cell_m, epsilon in PATTERNS:
        for which in ("ngram", "as_published"):
            one = run("sf", which, cell_m, epsilon, 120_000)
            percent = {name: list(one[f"{name}_percent"].values()) for name in ("cell_sets", "patterns")}
            found["patterns"][f"{which}, {cell_m}, {epsilon}"] = {"runs": 1, **percent}
            if which == "as_published":
                found["loss"][f"{cell_m}, {epsilon}"] = one["ends"]["loss"]
                found["next_cell"][f"{cell_m}, {epsilon}"] = list(one["next_cell"].values())
    return found


def kept_patterns(kept: dict) -> list[dict[str, Any]]:
    rows = []
    for (cell_m, epsilon), printed in PATTERNS.items():
        for name, which in (("DP-Loc", "as_published"), ("NGRAM", "ngram")):
            found = kept["patterns"].get(f"{which}, {cell_m}, {epsilon}")
            for k, (top, text) in enumerate(zip((10, 20, 50, 100), printed[name], strict=True)):
                sets = None if found is None else found["cell_sets"][k]
                rows.append({"paper": DP_LOC, "item": f"Table {2 if cell_m == 250 else 3}, frequent patterns (%)",
                             "setting": f"{name}, {cell_m} m, epsilon {epsilon}, K = {top}", "printed": text / 100,
                             "found": None if sets is None else sets / 100, "share": True, "taken": kept["taken"],
                             "runs": 0 if found is None else found["runs"], "reading": kept["patterns_reading"],
                             "why": "Not measured in this setting." if found is None else
                             f"Strings of two to four cells give {found['patterns'][k]:.0f} %."})  # fmt: skip
    return rows


def kept_losses(kept: dict) -> list[dict[str, Any]]:
    return [
        {"paper": DP_LOC, "item": "Table 4, loss of the initialiser", "setting": f"{cell_m} m, epsilon {epsilon}",
         "printed": printed, "found": kept["loss"].get(f"{cell_m}, {epsilon}"), "taken": kept["taken"],
         "reading": kept["loss_reading"], "why": kept["loss_why"]}
        for (cell_m, epsilon), printed in ENDS_LOSS.items()
    ]  # fmt: skip


def kept_next_cell(kept: dict) -> list[dict[str, Any]]:
    rows = []
    for (cell_m, epsilon), printed in NEXT_CELL.items():
        found = kept["next_cell"].get(f"{cell_m}, {epsilon}", [None] * 3)
        for name, text, value in zip(("loss", "accuracy %", "error m"), printed, found, strict=True):
            rows.append({"paper": DP_LOC, "item": "Table 5, next cell", "setting": f"{cell_m} m, epsilon {epsilon}, {name}",
                         "printed": text, "found": value, "taken": kept["taken"], "reading": kept["next_cell_reading"],
                         "why": kept["next_cell_why"]})  # fmt: skip
    return rows


# -- DP-ANI -----------------------------------------------------------------------------------------------------------


def dp_ani(folder: Path | None, full: bool, _kept: dict) -> Found:
    """The printed lengths, and the share of ends moved at epsilon 0.1, on single hours of San Francisco taxis."""
    if folder is None:
        return absent(DP_ANI, "sf_taxi_dploc200_trips.parquet")
    trips, network = dp_ani_paper.read(folder), read_roads(folder / dp_ani_paper.FILES["osm"])
    hours = dp_ani_paper.day_hours(trips, 6 if full else 2)
    reading = (
        f"The smallest range tested, z_init, is {DPANI(epsilon=1.0, space=network).initial_m:g} m; the paper gives none. San "
        "Francisco taxis of one hour instead of the authors' own data."
    )
    ratios, moved, cut = [], [], []
    for number, part in enumerate(hours):
        drives = drives_of(part, network)
        plain = LinkFlows.of_drives(drives).length_km
        one = DPANI(epsilon=1.0, space=network).perturb(part, noise.seeded(number))
        ratios.append(LinkFlows.of_drives(one.drives).length_km / plain)
        moved.append(DPANI(epsilon=0.1, space=network).perturb(part, noise.seeded(number)).moved)
        cut.append(LinkFlows.of_drives(ODSuccessive(space=network).shortened(drives)).length_km / plain)
    shared = {"paper": DP_ANI, "runs": len(hours), "reading": reading, "share": True}
    page = "benchmarks/dp_ani_paper.py --out draws it"
    return Found(
        [
            {"item": "Figure 5, lengths", "setting": "adaptive, epsilon 1, relative to the original",
             "printed": 195.2 / 194.6, "found": float(np.mean(ratios)), **shared},
            {"item": "Figure 5, lengths", "setting": "OD-successive, relative to the original", "printed": 138.2 / 194.6,
             "found": float(np.mean(cut)), **shared},
            {"item": "Figure 6, ends moved", "setting": "adaptive, epsilon 0.1", "printed": 0.76,
             "found": float(np.mean(moved)), **shared},
        ],
        [
            Figure(DP_ANI, "1, 2", "sketches", "docs/mechanisms/dp_ani.md"),
            Figure(DP_ANI, "3", "trips by hour", page),
            Figure(DP_ANI, "4", "network length over epsilon: adaptive below 10 %", page),
            Figure(DP_ANI, "6", "ends moved over epsilon", page),
            Figure(DP_ANI, "7, 8", "Wasserstein distance of counts and classes", page),
        ],
    )  # fmt: skip


# -- plausible traces -------------------------------------------------------------------------------------------------


SMOOTHING = 0.35
"""Share of smoothing in the models of Figure 6 and (e): the one at which both similarities of (e) come out, and both walks."""

TRACES_READING = "Geolife instead of the Lausanne campaign; fakes from a model with 5 % smoothing; places persist in runs."

TABLE_2 = {"KL": (0.037, 0.384, 1.191, 4.666), "relative error": (0.144, 0.370, 1.621, 0.542)}
TABLE_3 = {
    "first": ("first place", (0.0189, 0.0125, 0.1652, 0.6794)),
    "second": ("first two together", (0.0026, 0.0092, 0.0778, 0.5360)),
    "third": ("first three together", (0.0114, 0.0089, 0.0779, 0.5092)),
}
TRACES_FIGURES = {
    "1 to 3": "sketches", "4": "places and classes", "5": "similarity of seeds", "7": "difference to alternatives",
    "8": "similarity to the seed", "9": "quantiles of similarity", "10": "top 50 places", "11": "coverage of the top n",
    "12": "time at the main place",
}  # fmt: skip


def plausible(folder: Path | None, full: bool, _kept: dict) -> Found:
    """Tables II and III, Figure 6 and the similarities, on Geolife."""
    if folder is None or not (folder / "geolife_60s.parquet").is_file():
        return absent(TRACES, "geolife_60s.parquet")
    grid = Grid(*plausible_paper.BEIJING, 300)
    days = plausible_paper.with_two_days(daily_traces(plausible_paper.geolife(folder), grid, grid.n_cells))
    first, second = days.nth_days(0), days.nth_days(1)
    settings = Plausible(space=grid, n_out=1500 if full else 600, variant="as_published", seed_share=30 / first.n_days,
                         most_per_seed=500, smoothing=0.05)  # fmt: skip
    learned = learn(first, settings, noise.seeded(1))
    pool = fill_pool(learned, settings, noise.seeded(2))
    later = plausible_paper.second_days(learned, second, grid)
    page = Page()
    page.section("Geolife")
    plausible_paper.release_tables(learned, pool, later, "Geolife", "run", page)
    plausible_paper.figure_6(learned, pool, later, "Geolife", page, (SMOOTHING,))
    tables = {table["title"]: table["rows"] for table in page.sections[-1].tables}
    rows: list[dict[str, Any]] = []

    def add(item: str, setting: str, printed: float, found: float, **more: str) -> None:
        reading = f"{TRACES_READING} {more.get('reading', '')}".strip()
        rows.append({"paper": TRACES, "item": item, "setting": setting, "printed": printed, "found": found, "share": True,
                     "reading": reading, "why": more.get("why", "")})  # fmt: skip

    for line, printed in zip(table_of(tables, "Table II (")[1:], TABLE_2.values(), strict=True):
        for name, text, k in zip(("day 2", "synthetic", "uniform", "single"), printed, (1, 2, 4, 5), strict=True):
            add("Table II, visits", f"{line[0]}, {name}", text, float(line[k]))
    paired = {line[0]: line for line in table_of(tables, "Table III (Geolife, run): allocations compared user by user")}
    for name, (used, values) in TABLE_3.items():
        for k, text in enumerate(values):
            column = ("day 2", "synthetic", "uniform", "random")[k]
            add("Table III, time allocation", f"{name} place, {column}", text, float(paired[used][k + 1]),
                reading=f"Users and fakes are paired; read as {used}.",
                why="Compared by rank, random gives .15 to .23 and uniform .06 to .09.")  # fmt: skip
    for line in table_of(tables, "Figure 6"):
        add("Figure 6, median error with 10 fakes", line[0], plausible_paper.PAPER_FIGURE_6[line[0]], float(line[7]),
            reading=f"Day 2 is hidden; the attacker's model has {SMOOTHING:.0%} smoothing. Chance is .909.",
            why="Scanned from 3 to 85 %: no share gives the two baselines that draw each step alone.")  # fmt: skip
    models = [Aggregate.of(part, learned.chosen, learned.chosen.n_places, smoothing=SMOOTHING)
              for part in (learned.seeds, *plausible_paper.fake_sets(learned, pool))]  # fmt: skip
    words = f"Both models have {SMOOTHING:.0%} smoothing"
    for name, text, measure, more in (
        ("p", 0.806, move_similarity, "."),
        ("pi", 0.786, stationary_similarity, "; pi is the stationary distribution of p. Shares of visits give about .5."),
    ):
        found = float(np.mean([measure(models[0], model) for model in models[1:]]))
        add("(e) aggregate similarity", name, text, found, reading=words + more)
    passing = min(pool.passed["similarity"], pool.passed["intersection"])
    add("VIII-B, passing tests", "geographic and intersection tests", 0.80, passing)
    return Found(rows, [Figure(TRACES, number, shows, "benchmarks/plausible_paper.py --html draws it")
                        for number, shows in TRACES_FIGURES.items()])  # fmt: skip


def table_of(tables: dict[str, list], start: str) -> list:
    return next(rows for title, rows in tables.items() if title.startswith(start))


ALL = (tony900, porto, dp_loc, dp_ani, plausible)
