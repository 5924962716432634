"""The figures and tables of the plausible-traces paper beside ours, on Geolife and the built-in city; then `own`.

python benchmarks/plausible_paper.py [--data DIR] [--people 1000] [--parts published,own] [--html PAGE]

Geolife is read from DIR (or MURMURATE_DATA); without it only the city is measured. Everything here is internal to a custodian.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl

import murmurate as mm
from murmurate import noise
from murmurate.attacks.localise import hide, overhead
from murmurate.attacks.localise_hmm import decode_viterbi
from murmurate.attacks.membership import absence
from murmurate.core.trips import Trips
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.library import PatternLibrary, named_library
from murmurate.mechanisms.plausible.patterns import label_days
from murmurate.metrics.semantics import (
    allocation_divergence,
    move_similarity,
    pair_similarities,
    stationary_similarity,
    time_allocation,
    top_coverage,
    visit_divergence,
    visit_relative_error,
    visit_similarity,
)
from murmurate.papers.plausible.agreement import agreement
from murmurate.papers.plausible.baselines import aggregate_iid, uniform_iid, walk_aggregate, walk_user
from murmurate.papers.plausible.published import PERIODS, Learned, Pool, fill_pool, learn
from murmurate.profiles.aggregate import Aggregate
from murmurate.profiles.days import DailyTraces, daily_traces
from murmurate.profiles.mobility import profiles_of_rows
from murmurate.profiles.similarity import geographic, semantic_visits
from murmurate.spaces.grid import Grid
from plausible_own import Scene, filtered, own, seeded
from plausible_page import Page

BEIJING = (39.75, 116.15, 40.10, 116.60)
PAPER_FIGURE_6 = {
    "uniform_iid": 0.2958,
    "aggregate_iid": 0.3066,
    "walk_aggregate": 0.3802,
    "walk_user": 0.7486,
    "plausible": 0.9972,
}
SMOOTHINGS = (0.03, 0.2, 0.42, 0.6, 0.85)
"""Shares of smoothing in the attacker's model; the paper does not give its own."""
TABLE_3 = (
    ("first place", 0, 0, ".0189 .0125 .1652 .6794"),
    ("first two together", 0, 1, ".0026 .0092 .0778 .5360"),
    ("first three together", 0, 2, ".0114 .0089 .0779 .5092"),
    ("second alone", 1, 1, "the same as for two"),
    ("third alone", 2, 2, "the same as for three"),
)
"""Ranks of places; the paper's rows called 2nd and 3rd have the sizes that places together give."""


def geolife(folder: Path) -> Trips:
    names = {"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"}
    table = (
        pl.read_parquet(folder / "geolife_60s.parquet").rename(names).with_columns(pl.col("datetime").dt.cast_time_unit("us"))
    )
    south, west, north, east = BEIJING
    inside = pl.col("lat").is_between(south - 0.05, north + 0.05) & pl.col("lng").is_between(west - 0.05, east + 0.05)
    return Trips(table.filter(inside), time_zone="Asia/Shanghai")


def with_two_days(days: DailyTraces) -> DailyTraces:
    return days.take(np.isin(days.person, np.flatnonzero(np.bincount(days.person) > 1)))


# -- as published -----------------------------------------------------------------------------------------------------


def published(days: DailyTraces, grid: Grid, name: str, page: Page) -> None:
    first, second = days.nth_days(0), days.nth_days(1)
    share = 30 / first.n_days
    for merge in ("run", "boundary", "none"):
        settings = Plausible(
            space=grid, n_out=1500, variant="as_published", merge=merge, seed_share=share, most_per_seed=500, smoothing=0.05
        )
        learned = learn(first, settings, noise.seeded(1))
        start = time.process_time()
        pool = fill_pool(learned, settings, noise.seeded(2))
        seconds = time.process_time() - start
        moves = (pool.place[:, 1:] != pool.place[:, :-1]).sum(axis=1).mean()
        real_moves = (learned.seeds[:, 1:] != learned.seeds[:, :-1]).sum(axis=1).mean()
        page.section(f"As published: {name}, merging {merge}")
        page.table(
            f"{name}, as published, merging {merge}, smoothing .05: {len(learned.seeds)} seeds, {len(learned.alternatives)} "
            f"alternatives, {int((learned.classes >= 0).sum())} places of seeds",
            [
                *(("passes", test, value) for test, value in pool.passed.items()),
                ("attempts per CPU second", pool.attempts / seconds),
                ("places a fake / a seed", float(label_days(pool.place)[2].mean()), float(label_days(learned.seeds)[2].mean())),
                ("moves a fake / a seed", float(moves), float(real_moves)),
            ],
        )
        release_tables(learned, pool, second_days(learned, second, grid), name, merge, page)
        if merge == "run":
            figure_4(learned, grid, page)
            similarities(learned, pool, page)
            figure_6(learned, pool, second_days(learned, second, grid), name, page)
            seeds = np.unique(pool.seed)[:20]
            for each in (10, 40):
                rows = [np.flatnonzero(pool.seed == seed)[:each] for seed in seeds]
                if min(len(part) for part in rows) == each:
                    found = absence(learned.seeds[seeds], np.stack([pool.place[part] for part in rows]))
                    page.table(
                        f"absence, {each} fakes a seed, linkage known", [(part.name, part.value, part.chance) for part in found]
                    )


def second_days(learned: Learned, second: DailyTraces, grid: Grid) -> np.ndarray:
    """The seeds' own second day over the same places, in the order of the seeds."""
    own = second.place[np.searchsorted(second.person, learned.seed_person)]
    return learned.chosen.locate(*grid.centre(own.ravel())).reshape(own.shape).astype(np.int32)


def by_user(place: np.ndarray, first: int, last: int) -> np.ndarray:
    """Time allocation of each user, in their order: `time_allocation` sorts, so that users are compared by rank."""
    return np.concatenate([time_allocation(day[None], first, last) for day in place])


def one_fake_each(pool: Pool, n_seeds: int, generator: np.random.Generator) -> np.ndarray:
    """A fake of each seed, in the order of the seeds, for those that have one."""
    order = generator.permutation(len(pool.seed))
    seeds, first = np.unique(pool.seed[order], return_index=True)
    chosen = np.full(n_seeds, -1)
    chosen[seeds] = order[first]
    return chosen


def fake_sets(learned: Learned, pool: Pool) -> list[np.ndarray]:
    """Ten sets of fakes, each as large as the set of seeds."""
    generator = np.random.default_rng(3)
    return [pool.place[generator.permutation(len(pool.place))[: len(learned.seeds)]] for _ in range(10)]


def release_tables(  # noqa: PLR0917
    learned: Learned, pool: Pool, later: np.ndarray, name: str, merge: str, page: Page
) -> None:
    generator = np.random.default_rng(3)
    n, size = learned.chosen.n_places, len(learned.seeds)
    sets = fake_sets(learned, pool)

    def counts(place: np.ndarray) -> np.ndarray:
        return np.bincount(place.ravel(), minlength=n).astype(float)

    real = counts(learned.seeds)
    flat, single = np.full(n, real.sum() / n), np.eye(1, n)[0] * real.sum()
    rows: list[tuple[object, ...]] = [
        ("", "day 2", "synthetic", "sd", "uniform", "single", "paper: day 2, synthetic, uniform, single")
    ]
    for label, measure, paper in (
        ("KL", visit_divergence, ".037 .384 1.191 4.666"),
        ("relative error", visit_relative_error, ".144 .370 1.621 .542"),
    ):
        values = [measure(real, counts(part)) for part in sets]
        rows.append(
            (
                label,
                measure(real, counts(later)),
                float(np.mean(values)),
                float(np.std(values)),
                measure(real, flat),
                measure(real, single),
                paper,
            )
        )
    page.table(f"Table II ({name}, {merge})", rows)
    rows = [("", "day 2", "synthetic", "uniform", "random", "paper: day 2, synthetic, uniform, random")]
    for label, first, last, paper in TABLE_3:
        mine = time_allocation(learned.seeds, first, last)
        values = [allocation_divergence(mine, time_allocation(part, first, last)) for part in sets]
        n_places = np.array([len(np.unique(day)) for day in learned.seeds])
        even = np.sort(np.clip(n_places - first, 0, last + 1 - first) / n_places)
        random = [allocation_divergence(mine, np.sort(generator.random(size))) for _ in range(20)]
        rows.append(
            (
                label,
                allocation_divergence(mine, time_allocation(later, first, last)),
                float(np.mean(values)),
                allocation_divergence(mine, even),
                float(np.mean(random)),
                paper,
            )
        )
    page.table(f"Table III ({name}, {merge}): allocations compared by rank", rows)
    rows = [("", "day 2", "synthetic", "uniform", "random", "paper: day 2, synthetic, uniform, random")]
    own_fakes = [one_fake_each(pool, size, generator) for _ in range(10)]
    for label, first, last, paper in TABLE_3:
        mine = by_user(learned.seeds, first, last)
        made = [
            allocation_divergence(mine[chosen >= 0], by_user(pool.place[chosen[chosen >= 0]], first, last))
            for chosen in own_fakes
        ]
        n_places = np.array([len(np.unique(day)) for day in learned.seeds])
        even = np.clip(n_places - first, 0, last + 1 - first) / n_places
        random = [allocation_divergence(mine, generator.random(size)) for _ in range(20)]
        rows.append(
            (
                label,
                allocation_divergence(mine, by_user(later, first, last)),
                float(np.mean(made)),
                allocation_divergence(mine, even),
                float(np.mean(random)),
                paper,
            )
        )
    page.table(f"Table III ({name}, {merge}): allocations compared user by user, a fake with its seed", rows)
    ranks, top = np.arange(1, 51), {"seeds": real, "day 2": counts(later), "synthetic": counts(sets[0])}
    shares = {label: (ranks, 100 * np.sort(part)[::-1][:50] / part.sum()) for label, part in top.items()}
    page.chart("Figure 10: the 50 most visited places", "rank", "% of visits", shares, x_range=(0.0, 50.0))
    steps = (10, 15, 20, 25, 30, 35, 40, 45, 50)
    base = np.array([top_coverage(real, counts(later), k) for k in steps])
    made = np.array([np.mean([top_coverage(real, counts(part), k) for part in sets]) for k in steps])
    covered = {
        "synthetic": (steps, np.minimum(1, made / np.maximum(base, 1e-9))),
        "uniform": (steps, np.minimum(1, np.array(steps) / n / np.maximum(base, 1e-9))),
    }
    page.chart("Figure 11: most visited places kept, relative to day 2", "top n", "share", covered, top=1.0, dots=True)
    page.table(
        f"Figure 11 ({name}, {merge}): top 10, 15 ... 50, relative to day 2; paper .61 to 1, uniform .11 to .24",
        [(label, *(float(value) for value in line[1])) for label, line in covered.items()],
    )
    parts = {"seeds": learned.seeds, "day 2": later, "synthetic": sets[0]}
    ordered = {label: time_allocation(part, 0) for label, part in parts.items()}
    lines = {label: (np.linspace(0, 100, len(part)), 100 * part) for label, part in ordered.items()}
    page.chart("Figure 12: time at the main place", "% of people", "% of the day", lines, top=100.0)
    own_model = learned.aggregate
    models = [Aggregate.of(part, learned.chosen, n, smoothing=0.05) for part in sets]
    day_two = Aggregate.of(later, learned.chosen, n, smoothing=0.05)
    strangers = Aggregate.of(learned.alternatives[:size], learned.chosen, n, smoothing=0.05)
    whole = Aggregate.of(pool.place, learned.chosen, n, smoothing=0.05)
    rows = [("", "synthetic sets", "all fakes", "day 2", "other real people", "paper: synthetic")]
    for label, measure, paper in (
        ("p", move_similarity, ".806"),
        ("pi, shares of visits", visit_similarity, ".786"),
        ("pi, stationary distribution of p", stationary_similarity, ".786"),
    ):
        mean = float(np.mean([measure(own_model, part) for part in models]))
        rows.append((label, mean, *(measure(own_model, part) for part in (whole, day_two, strangers)), paper))
    page.table(f"(e) aggregate similarity ({name}, {merge})", rows)


def figure_6(  # noqa: PLR0917
    learned: Learned, pool: Pool, later: np.ndarray, name: str, page: Page, smoothings: tuple[float, ...] = SMOOTHINGS
) -> None:
    """Hide each person's second day, the paper's testing set; the attacker's model is trained on the first."""
    generator = np.random.default_rng(4)
    n, people = learned.chosen.n_places, len(later)
    classes = np.where(learned.classes >= 0, learned.classes, learned.classes.max() + 1)
    for smoothing in smoothings:
        model = Aggregate.of(learned.seeds, learned.chosen, n, smoothing=smoothing)
        log_step, log_visit = model.log_steps(2), model.log_visits()
        makers: dict[str, Callable[[int], np.ndarray]] = {
            "uniform_iid": lambda k: uniform_iid(people * k, 72, n, generator),
            "aggregate_iid": lambda k, model=model: aggregate_iid(people * k, 72, model, generator),
            "walk_aggregate": lambda k, model=model: walk_aggregate(people * k, 72, model, generator),
            "walk_user": lambda k: walk_user(learned.seeds, k, generator),
            "plausible": lambda k: pool.place[generator.permutation(len(pool.place))[: people * k]],
        }
        rows = []
        by_places: dict[str, tuple[list[float], list[float]]] = {}
        by_classes: dict[str, tuple[list[float], list[float]]] = {}
        for maker, make in makers.items():
            row: list[object] = [maker]
            by_places[maker], by_classes[maker] = ([], []), ([], [])
            for k in (1, 5, 10):
                wrong, sizes, pollution = [], [], []
                for _ in range(4):
                    fakes = make(k).reshape(people, k, 72)
                    for _ in range(5):
                        scene = hide(later, fakes, generator=generator)
                        wrong.append(np.median((decode_viterbi(scene.sent, log_step, log_visit) != scene.true).mean(axis=1)))
                    bandwidth, classes_sent = overhead(scene, classes)
                    sizes.append(bandwidth)
                    pollution.append(classes_sent)
                row += [float(np.mean(wrong)), float(np.mean(sizes)), float(np.mean(pollution))]
                for drawn, across in ((by_places, np.mean(sizes)), (by_classes, np.mean(pollution))):
                    drawn[maker][0].append(float(across))
                    drawn[maker][1].append(float(np.mean(wrong)))
            rows.append((*row, PAPER_FIGURE_6[maker]))
        words = f"smoothing {smoothing:g}; 1, 5 and 10 fakes"
        page.chart("Figure 6a: error and bandwidth", "places a query", "median error", by_places, words, top=1.0, dots=True)
        page.chart("Figure 6b: error and pollution", "classes a query", "median error", by_classes, words, top=1.0, dots=True)
        page.table(
            f"Figure 6 ({name}, day 2 hidden, merging run, smoothing {smoothing:g}): median error, places and "
            "classes a query for 1, 5, 10 fakes; chance .5 .833 .909; the paper with 10",
            rows,
        )


def figure_4(learned: Learned, grid: Grid, page: Page) -> None:
    lat, lng = grid.centre(learned.chosen.cells)
    visits = np.bincount(learned.seeds.ravel(), minlength=learned.chosen.n_places).astype(float)
    seen = visits > 0
    place = {"lat": lat[seen], "lng": lng[seen], "size": visits[seen]}
    page.dots("Figure 4a: visited places", f"{seen.sum()} places by visits", classes=np.zeros(int(seen.sum())), **place)
    classes = learned.classes[seen]
    quarter = 2 * (lat[seen] > np.median(lat[seen])) + (lng[seen] > np.median(lng[seen]))
    words = (
        f"{len(np.unique(classes))} usage classes; agreement (AMI) with quarters of the map {agreement(classes, quarter):.2f}"
    )
    page.dots("Figure 4b: usage classes", words, classes=classes, **place)


def similarities(learned: Learned, pool: Pool, page: Page) -> None:
    off = ~np.eye(len(learned.seeds), dtype=bool)
    n = learned.chosen.n_places
    made = profiles_of_rows(pool.place[:300], np.arange(301), n, periods=PERIODS)
    own = semantic_visits(learned.profiles, made)[pool.seed[:300], np.arange(300)]
    apart = np.abs(semantic_visits(learned.alternative_profiles, made) - own).ravel()
    real, fakes = pair_similarities(learned.seeds, n), pair_similarities(pool.place[:100], n)
    points = np.linspace(0.01, 0.99, 99)
    one, two = np.quantile(real, points), np.quantile(fakes, points)
    alike = {
        "geographic": geographic(learned.profiles, learned.profiles)[off],
        "semantic": semantic_visits(learned.profiles, learned.profiles)[off],
    }
    page.histogram("Figure 5: similarity of seeds", "similarity", alike)
    page.histogram("Figure 7: fake to seed against fake to others", "difference of similarity", {"difference": apart})
    page.histogram("Figure 8: similarity of fake and seed", "semantic similarity", {"fake and seed": own})
    lines = {"synthetic": (one, two), "chance: alike": ([0, 1], [0, 1])}
    page.chart("Figure 9: quantiles of similarity", "real", "synthetic", lines, x_range=(0.0, 1.0), top=1.0)
    page.table(
        "Figures 5, 7, 8, 9",
        [
            ("5a mean geographic similarity of seeds", float(alike["geographic"].mean())),
            ("5b mean semantic similarity of seeds", float(alike["semantic"].mean())),
            ("7 median difference to alternatives", float(np.median(apart))),
            ("8 mean semantic similarity of fake and seed", float(own.mean())),
            ("9 correlation of quantiles", float(np.corrcoef(one, two)[0, 1])),
        ],
    )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MURMURATE_DATA"))
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--parts", default="published,own")
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--seed", type=int, default=2600)
    parser.add_argument("--html", type=Path)
    chosen = parser.parse_args()
    parts = chosen.parts.split(",")
    folder = Path(chosen.data) if chosen.data else None
    trips = geolife(folder) if folder is not None else None
    city = mm.demo.city(people=chosen.people + chosen.people // 7, days=5, seed=5, interval_s=120)
    town = city.grid(500)
    town_days = with_two_days(daily_traces(city.trips, town, town.n_cells))
    page = Page()
    if "published" in parts:
        if trips is not None:
            fine = Grid(*BEIJING, 300)
            published(with_two_days(daily_traces(trips, fine, fine.n_cells)), fine, "Geolife", page)
        published(town_days.take(town_days.person < 120), town, "city", page)
    if "own" in parts:
        settings = {"seed": chosen.seed, "runs": chosen.runs}
        few = {"seed": chosen.seed, "runs": 4 * chosen.runs}  # few people, so that each draw of noise tells
        built_in = named_library("city", cell_m=500, steps=72)
        if trips is not None:
            coarse = Grid(*BEIJING, 2000)
            days = with_two_days(daily_traces(trips, coarse, coarse.n_cells))
            others = others_in_beijing(trips, coarse, days)
            for library in (None, others, built_in):
                own(Scene("Geolife", days, coarse, library), page, membership=library is not built_in, **few)
            seeded(Scene("Geolife", days, coarse), page)
            filtered(Scene("Geolife", days, coarse), page)
        for library in (None, built_in):
            own(Scene("city", town_days, town, library), page, membership=True, **settings)
        seeded(Scene("city", town_days, town), page)
    if chosen.html is not None:
        page.write(chosen.html, f"Geolife and the built-in city of {chosen.people:,} people; seed {chosen.seed}.")


def others_in_beijing(trips: Trips, grid: Grid, protected: DailyTraces) -> PatternLibrary:
    """Days, at least half covered, of people who do not have two full ones: a library from outside the protected people."""
    half = daily_traces(trips, grid, grid.n_cells, min_coverage=0.5)
    return PatternLibrary("others in Beijing", label_days(half.take(~np.isin(half.person, protected.person)).place)[0])


if __name__ == "__main__":
    main()
