"""The one page of dp_loc_paper.py: tables side by side with the paper's, curves by hour; one file, nothing fetched."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import jinja2
import numpy as np

import murmurate

PATTERNS = {  # true positives in percent for K = 10, 20, 50, 100 (tables 2 and 3)
    (250, 1): {"DP-Loc": [50, 60, 71, 71], "NGRAM": [80, 88, 100, 100]},
    (250, 2): {"DP-Loc": [20, 60, 80, 80], "NGRAM": [90, 90, 100, 100]},
    (500, 1): {"DP-Loc": [40, 25, 30, 22], "NGRAM": [90, 95, 76, 100]},
    (500, 2): {"DP-Loc": [40, 30, 20, 15], "NGRAM": [90, 95, 78, 79]},
}
ENDS_LOSS = {(250, 1): 4.22, (250, 2): 3.43, (500, 1): 2.50, (500, 2): 1.00}
"""Table 4; the paper does not say how the parts of the loss are weighed."""
NEXT_CELL = {(250, 1): (3.10, 24.19, 350.40), (250, 2): (2.98, 26.45, 333.19),
             (500, 1): (1.42, 73.52, 237.71), (500, 2): (1.28, 75.28, 220.26)}  # fmt: skip
"""Table 5: loss, accuracy in percent, error in metres."""
NAMES = {"own": "own (default)", "as_published": "as published", "ngram": "NGRAM"}
TARGETS = {500: "JSD at most .03, EMD at most 1,450 m, patterns at least 85 %",
           250: "JSD at most .05, EMD at most 1,550 m, patterns at least 70 %"}  # fmt: skip
SETTINGS = tuple(PATTERNS)
DATA = {"city": "the built-in city", "geolife": "Geolife"}
WIDTH, HEIGHT, LEFT, BELOW = 460, 190, 46, 24
CURVES = {"jsd_by_hour": ("Trip size, JSD", 0.2), "emd_by_hour_m": ("Source and destination, EMD in m", 4000)}


def write_page(results: list[dict], path: Path, *, delta: float) -> None:
    """Write the page from the results of the runs that are there."""
    templates = Path(murmurate.__file__).parent / "report" / "templates"
    loader = jinja2.FileSystemLoader([str(Path(__file__).parent), str(templates)])
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    everywhere = [r for r in results if r["which"] != "networks"]
    runs = [r for r in everywhere if r.get("data", "sf") == "sf"]
    text = environment.get_template("dp_loc_paper.html.j2").render(
        version=murmurate.__version__,
        delta=delta,
        targets=TARGETS,
        rows=[row(key, which, found) for key in SETTINGS for which in NAMES if (found := of(runs, which, key))],
        patterns=[pattern_row(key, runs) for key in SETTINGS],
        ends=[(key, ENDS_LOSS[key], means(of(runs, "as_published", key), "ends")) for key in SETTINGS],
        next_cell=[next_cell_row(key, runs) for key in SETTINGS],
        elsewhere=elsewhere(everywhere),
        charts=[chart(key, kind, runs) for key in SETTINGS for kind in CURVES],
        networks=next((r for r in results if r["which"] == "networks"), None),
        missing=[f"{NAMES[w]}, {k[0]} m, epsilon {k[1]}" for k in SETTINGS for w in NAMES if len(of(runs, w, k)) < 3],
    )
    path.write_text(text, encoding="utf-8")


def of(runs: list[dict], which: str, key: tuple[int, int]) -> list[dict]:
    return [r for r in runs if r["which"] == which and (r["cell_m"], r["epsilon"]) == key]


def span(values: list[float], shown: str) -> str:
    """Least to greatest of the runs, or the one there is."""
    low, high = format(min(values), shown), format(max(values), shown)
    return low if low == high else f"{low} - {high}"


def row(key: tuple[int, int], which: str, found: list[dict]) -> SimpleNamespace:
    return SimpleNamespace(
        name=NAMES[which], cell_m=key[0], epsilon=key[1], runs=len(found),
        jsd=span([r["jsd"] for r in found], ".4f"), emd=span([r["emd_m"] for r in found], ",.0f"),
        floor=span([r["emd_floor_m"] for r in found], ",.0f"),
        top=span([r["patterns_percent"]["100"] for r in found], ".0f"),
        fit=span([r["fit_cpu_s"] for r in found], ".0f"), sample=span([r["sample_cpu_s"] for r in found], ".1f"),
        peak=span([r["peak_mib"] for r in found], ",.0f"),
    )  # fmt: skip


def elsewhere(everywhere: list[dict]) -> list[SimpleNamespace]:
    """Rows of the other data sets, own beside NGRAM."""
    groups: dict[tuple, list[dict]] = {}
    for r in everywhere:
        if r.get("data", "sf") != "sf":
            groups.setdefault((r["data"], r["cell_m"], r["epsilon"], r["which"]), []).append(r)
    rows = []
    for (data, cell_m, epsilon, which), found in sorted(groups.items()):
        one = row((int(cell_m), int(epsilon)), which, found)
        one.data = DATA[data]
        rows.append(one)
    return rows


def pattern_row(key: tuple[int, int], runs: list[dict]) -> SimpleNamespace:
    ours = {}
    for which, name in NAMES.items():
        found = of(runs, which, key)
        ours[name] = [
            f"{np.mean([r['patterns_percent'][k] for r in found]):.0f}" if found else "" for k in ("10", "20", "50", "100")
        ]
    return SimpleNamespace(cell_m=key[0], epsilon=key[1], paper=PATTERNS[key], ours=ours)


def means(found: list[dict], part: str) -> dict[str, float] | None:
    there = [r[part] for r in found if part in r]
    return {name: float(np.mean([one[name] for one in there])) for name in there[0]} if there else None


def next_cell_row(key: tuple[int, int], runs: list[dict]) -> tuple:
    return key, NEXT_CELL[key], means(of(runs, "as_published", key), "next_cell"), means(of(runs, "own", key), "next_cell")


def chart(key: tuple[int, int], kind: str, runs: list[dict]) -> SimpleNamespace:
    """Mean over runs by hour, and a band from the least to the greatest run."""
    words, top = CURVES[kind]
    lines = []
    for which, name in NAMES.items():
        found = of(runs, which, key)
        if not found:
            continue
        hours = sorted(set.intersection(*(set(r[kind]) for r in found)))
        values = np.array([[r[kind][hour] for hour in hours] for r in found])
        x = LEFT + (WIDTH - LEFT) * np.array([int(hour) for hour in hours]) / 23
        band = points(np.r_[x, x[::-1]], np.r_[values.max(axis=0), values.min(axis=0)[::-1]], top)
        lines.append(SimpleNamespace(which=which, name=name, line=points(x, values.mean(axis=0), top), band=band))
    ticks = [SimpleNamespace(y=y_of(top * part, top), text=f"{top * part:,.2f}" if top < 1 else f"{top * part:,.0f}")
             for part in (0, 0.25, 0.5, 0.75, 1)]  # fmt: skip
    hours = [SimpleNamespace(x=LEFT + (WIDTH - LEFT) * hour / 23, text=hour) for hour in (0, 6, 12, 18, 23)]
    return SimpleNamespace(
        words=words, cell_m=key[0], epsilon=key[1], lines=lines, ticks=ticks, hours=hours, width=WIDTH, height=HEIGHT, left=LEFT
    )


def y_of(value: float, top: float) -> float:
    return float((HEIGHT - BELOW) * (1 - min(value, top) / top) + 6)


def points(x: np.ndarray, values: np.ndarray, top: float) -> str:
    return " ".join(f"{at:.1f},{y_of(value, top):.1f}" for at, value in zip(x, values, strict=True))
