"""The figures and tables of the plausible-traces paper beside ours, on Geolife and the built-in city; then `own`.

python benchmarks/plausible_paper.py [--data DIR] [--people 1000] [--parts published,own] [--figures DIR]

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
from murmurate.attacks.localise import RELINKED, hide, overhead
from murmurate.attacks.localise_hmm import decode_viterbi
from murmurate.attacks.localise_pool import localise_pool
from murmurate.attacks.membership import absence, shadow_membership
from murmurate.core.trips import Trips
from murmurate.mechanisms.plausible import Plausible
from murmurate.mechanisms.plausible.baselines import aggregate_iid, uniform_iid, walk_aggregate, walk_user
from murmurate.mechanisms.plausible.model import DayModel
from murmurate.mechanisms.plausible.patterns import label_days
from murmurate.mechanisms.plausible.published import PERIODS, Learned, Pool, fill_pool, learn
from murmurate.mechanisms.plausible.seeded import recombine
from murmurate.mechanisms.plausible.statistics import gather
from murmurate.metrics.semantics import (
    allocation_divergence,
    move_similarity,
    pair_similarities,
    time_allocation,
    top_coverage,
    visit_divergence,
    visit_relative_error,
    visit_similarity,
)
from murmurate.profiles.aggregate import Aggregate
from murmurate.profiles.days import DailyTraces, daily_traces
from murmurate.profiles.mobility import profiles_of_rows
from murmurate.profiles.similarity import geographic, semantic_visits
from murmurate.spaces.grid import Grid

BEIJING = (39.75, 116.15, 40.10, 116.60)
PAPER_FIGURE_6 = {
    "uniform_iid": 0.2958,
    "aggregate_iid": 0.3066,
    "walk_aggregate": 0.3802,
    "walk_user": 0.7486,
    "plausible": 0.9972,
}
SMOOTHINGS = (0.03, 0.42, 0.85)


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


def show(title: str, rows: list[tuple[object, ...]]) -> None:
    print(f"\n## {title}")
    for row in rows:
        print("| " + " | ".join(f"{value:.3f}" if isinstance(value, float) else str(value) for value in row) + " |", flush=True)


# -- as published -----------------------------------------------------------------------------------------------------


def published(days: DailyTraces, grid: Grid, name: str) -> None:
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
        show(
            f"{name}, as published, merging {merge}, smoothing .05: {len(learned.seeds)} seeds, {len(learned.alternatives)} "
            f"alternatives, {int((learned.classes >= 0).sum())} places of seeds",
            [
                *(("passes", test, value) for test, value in pool.passed.items()),
                ("attempts per CPU second", pool.attempts / seconds),
                ("places a fake / a seed", float(label_days(pool.place)[2].mean()), float(label_days(learned.seeds)[2].mean())),
                ("moves a fake / a seed", float(moves), float(real_moves)),
            ],
        )
        release_tables(learned, pool, second_days(learned, second, grid), name, merge)
        if merge == "run":
            figure_6(learned, pool, name)
            similarities(learned, pool)
            seeds = np.unique(pool.seed)[:20]
            for each in (10, 40):
                rows = [np.flatnonzero(pool.seed == seed)[:each] for seed in seeds]
                if min(len(part) for part in rows) == each:
                    found = absence(learned.seeds[seeds], np.stack([pool.place[part] for part in rows]))
                    show(
                        f"absence, {each} fakes a seed, linkage known", [(part.name, part.value, part.chance) for part in found]
                    )


def second_days(learned: Learned, second: DailyTraces, grid: Grid) -> np.ndarray:
    """The seeds' own second day over the same places."""
    own = second.take(np.isin(second.person, learned.seed_person)).place
    return learned.chosen.locate(*grid.centre(own.ravel())).reshape(own.shape).astype(np.int32)


def release_tables(learned: Learned, pool: Pool, later: np.ndarray, name: str, merge: str) -> None:
    generator = np.random.default_rng(3)
    n, size = learned.chosen.n_places, len(learned.seeds)
    sets = [pool.place[generator.permutation(len(pool.place))[:size]] for _ in range(10)]

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
    show(f"Table II ({name}, {merge})", rows)
    rows = []
    for rank, paper in enumerate((".0189 .0125", ".0026 .0092", ".0114 .0089")):
        own = time_allocation(learned.seeds, rank)
        values = [allocation_divergence(own, time_allocation(part, rank)) for part in sets]
        rows.append(
            (f"place {rank + 1}", allocation_divergence(own, time_allocation(later, rank)), float(np.mean(values)), paper)
        )
    show(f"Table III ({name}, {merge}): day 2, synthetic; paper", rows)
    base = [top_coverage(real, counts(later), k) for k in (10, 20, 30, 40, 50)]
    made = [float(np.mean([top_coverage(real, counts(part), k) for part in sets])) for k in (10, 20, 30, 40, 50)]
    relative = [min(1.0, x / y) if y else float("nan") for x, y in zip(made, base, strict=True)]
    show(f"Figure 11 ({name}, {merge}): top 10 to 50, relative to day 2; paper .61 to 1", [tuple(relative)])
    own_model = learned.aggregate
    models = [Aggregate.of(part, learned.chosen, n, smoothing=0.05) for part in sets]
    day_two = Aggregate.of(later, learned.chosen, n, smoothing=0.05)
    show(
        f"(e) aggregate similarity ({name}, {merge}): synthetic, day 2; paper p .806, pi .786",
        [
            ("p", float(np.mean([move_similarity(own_model, part) for part in models])), move_similarity(own_model, day_two)),
            (
                "pi",
                float(np.mean([visit_similarity(own_model, part) for part in models])),
                visit_similarity(own_model, day_two),
            ),
        ],
    )


def figure_6(learned: Learned, pool: Pool, name: str) -> None:
    generator = np.random.default_rng(4)
    n, people = learned.chosen.n_places, len(learned.seeds)
    classes = np.where(learned.classes >= 0, learned.classes, learned.classes.max() + 1)
    for smoothing in SMOOTHINGS:
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
        for maker, make in makers.items():
            row: list[object] = [maker]
            for k in (1, 5, 10):
                wrong, sizes, pollution = [], [], []
                for _ in range(4):
                    fakes = make(k).reshape(people, k, 72)
                    for _ in range(5):
                        scene = hide(learned.seeds, fakes, generator=generator)
                        wrong.append(np.median((decode_viterbi(scene.sent, log_step, log_visit) != scene.true).mean(axis=1)))
                    bandwidth, classes_sent = overhead(scene, classes)
                    sizes.append(bandwidth)
                    pollution.append(classes_sent)
                row += [float(np.mean(wrong)), float(np.mean(sizes)), float(np.mean(pollution))]
            rows.append((*row, PAPER_FIGURE_6[maker]))
        show(
            f"Figure 6 ({name}, day 1, merging run, smoothing {smoothing:g}): median error, places and classes a query for "
            "1, 5, 10 fakes; chance .5 .833 .909; the paper with 10",
            rows,
        )


def similarities(learned: Learned, pool: Pool) -> None:
    off = ~np.eye(len(learned.seeds), dtype=bool)
    made = profiles_of_rows(pool.place[:300], np.arange(301), learned.chosen.n_places, periods=PERIODS)
    own = semantic_visits(learned.profiles, made)[pool.seed[:300], np.arange(300)]
    others = semantic_visits(learned.alternative_profiles, made)
    real, fakes = (
        pair_similarities(learned.seeds, learned.chosen.n_places),
        pair_similarities(pool.place[:100], learned.chosen.n_places),
    )
    points = np.linspace(0.01, 0.99, 99)
    show(
        "Figures 5, 7, 8, 9",
        [
            ("5a mean geographic similarity of seeds", float(geographic(learned.profiles, learned.profiles)[off].mean())),
            ("5b mean semantic similarity of seeds", float(semantic_visits(learned.profiles, learned.profiles)[off].mean())),
            ("7 median difference to alternatives", float(np.median(np.abs(others - own)))),
            ("8 mean semantic similarity of fake and seed", float(own.mean())),
            ("9 correlation of quantiles", float(np.corrcoef(np.quantile(real, points), np.quantile(fakes, points))[0, 1])),
        ],
    )


# -- own --------------------------------------------------------------------------------------------------------------


def own(days: DailyTraces, grid: Grid, name: str, figures: Path | None) -> None:
    """Fresh noise, fresh fakes and fresh halves of people in each of three runs, averaged."""
    second = days.nth_days(1)
    n = second.n_days
    real = np.bincount(second.place.ravel(), minlength=grid.n_cells).astype(float)
    errors: dict[str, list[tuple[float, float]]] = {}
    sizes, divergences = [], []
    by_fakes: dict[int, dict[str, list[float]]] = {k: {} for k in (1, 2, 5, 10, 20)}
    for run in range(3):
        noisy = gather(days, grid).measured(1.0, noise.seeded(70 + run))
        model = DayModel.fit(noisy, grid, steps=72, time_zone="UTC", rng=noise.seeded(run))
        made = model.places(n * 20 + 3000, noise.seeded(run))
        sizes.append((label_days(made)[2].mean(), (made[:, 1:] != made[:, :-1]).sum(axis=1).mean()))
        for part in range(3):
            counted = np.bincount(made[part * n : (part + 1) * n].ravel(), minlength=grid.n_cells).astype(float)
            divergences.append(visit_divergence(real, counted))
        for k, found in by_fakes.items():
            if run and k != 10:
                continue
            for outcome in localise_pool(days, made, grid, n_fakes=k, seed=run):
                found.setdefault(outcome.name, []).append(float(outcome.wrong.mean()))
                if k == 10:
                    errors.setdefault(outcome.name, []).append((outcome.wrong.mean(), np.median(outcome.wrong)))
    real_moves = (days.place[:, 1:] != days.place[:, :-1]).sum(axis=1).mean()
    rows: list[tuple[object, ...]] = [
        ("people, cells of the grid", n, grid.n_cells),
        ("visit KL (sorted), as many days as people", float(np.mean(divergences))),
        ("places a day: own, real", float(np.mean([part[0] for part in sizes])), float(label_days(days.place)[2].mean())),
        ("moves a day: own, real", float(np.mean([part[1] for part in sizes])), float(real_moves)),
        ("each run", *[f"{a:.2f} / {b:.2f}" for a, b in sizes]),
    ]
    for observer, values in errors.items():
        rows.append((observer, *(float(part) for part in np.mean(values, axis=0))))
    rows.append(("mean of relinked", float(np.mean([np.mean([v[0] for v in errors[name]]) for name in RELINKED]))))
    show(f"own, epsilon 1 ({name}): mean and median error with 10 fakes; chance .909", rows)
    show(
        f"own ({name}): mean error by number of fakes 1, 2, 5, 10, 20; chance .5 .667 .833 .909 .952",
        [(observer, *(float(np.mean(by_fakes[k][observer])) for k in by_fakes)) for observer in by_fakes[10]],
    )
    if figures is not None:
        draw_errors(
            {k: {o: float(np.mean(v)) for o, v in part.items()} for k, part in by_fakes.items()}, figures / f"own_{name}.html"
        )

    def released(some: DailyTraces, run: int) -> np.ndarray:
        noisy = gather(some, grid).measured(1.0, noise.seeded(500 + run))
        fitted = DayModel.fit(noisy, grid, steps=72, time_zone="UTC", rng=noise.seeded(run))
        return fitted.places(10 * len(some.people), noise.seeded(run))

    found = shadow_membership(released, days, shadows=10, targets=4)
    show(
        f"own ({name}): membership AUC, 10 days a member; chance .5",
        [(part.name, part.value, part.low, part.high) for part in found],
    )
    seeded = recombine(days, Plausible(space=grid, variant="own-seeded", n_out=min(days.n_days, n * 10)), noise.seeded(1))
    outcomes = localise_pool(days, seeded, grid, n_fakes=min(10, len(seeded) // n), seed=1)
    show(
        f"own-seeded ({name}), no promise, {min(10, len(seeded) // n)} fakes a person",
        [(part.name, float(part.wrong.mean()), float(np.median(part.wrong))) for part in outcomes],
    )


def draw_errors(errors: dict[int, dict[str, float]], path: Path) -> None:
    import plotly.graph_objects as go

    figure = go.Figure()
    for observer in errors[10]:
        figure.add_scatter(x=list(errors), y=[errors[k][observer] for k in errors], name=observer)
    figure.add_scatter(x=list(errors), y=[k / (k + 1) for k in errors], name="chance", line={"dash": "dot", "color": "black"})
    figure.update_layout(xaxis_title="fakes", yaxis_title="mean error of the observer", template="simple_white")
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.write_html(path, include_plotlyjs=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=os.environ.get("MURMURATE_DATA"))
    parser.add_argument("--people", type=int, default=1000)
    parser.add_argument("--parts", default="published,own")
    parser.add_argument("--figures", type=Path)
    chosen = parser.parse_args()
    parts = chosen.parts.split(",")
    folder = Path(chosen.data) if chosen.data else None
    trips = geolife(folder) if folder is not None else None
    city = mm.demo.city(people=chosen.people + chosen.people // 7, days=5, seed=5, interval_s=120)
    town = city.grid(500)
    town_days = with_two_days(daily_traces(city.trips, town, town.n_cells))
    if "published" in parts:
        if trips is not None:
            fine = Grid(*BEIJING, 300)
            published(with_two_days(daily_traces(trips, fine, fine.n_cells)), fine, "Geolife")
        published(town_days.take(town_days.person < 120), town, "city")
    if "own" in parts:
        if trips is not None:
            coarse = Grid(*BEIJING, 2000)
            own(with_two_days(daily_traces(trips, coarse, coarse.n_cells)), coarse, "Geolife", chosen.figures)
        own(town_days, town, "city", chosen.figures)


if __name__ == "__main__":
    main()
