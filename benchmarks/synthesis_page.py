"""The tables and the page of benchmarks/synthesis.py, from its results alone."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from synthesis import COLUMNS, DATA, HIGHER, MAP_SIDE, NOT_PRIVATE, SECOND

LEVELS = 9
"""Steps of ink in a map; one path each keeps the page small."""
ORDER = (SECOND, "flock", "flock_delta", "flock_roads", "flock_day", "flock_person", "dp_loc", "ngram")
NAMES = {
    "flock_delta": "flock, delta 1e-6",
    "flock_roads": "flock on roads",
    "flock_day": "flock, person-days",
    "flock_person": "flock, persons",
}


def page(rows: list[dict[str, Any]]) -> str:
    """One HTML page without any outside request."""
    import jinja2

    template = (Path(__file__).parent / "synthesis.html.j2").read_text(encoding="utf-8")
    return jinja2.Environment(autoescape=True).from_string(template).render(datasets=datasets(rows))


def tables(rows: list[dict[str, Any]]) -> str:
    """The same tables as words for a terminal."""
    lines = []
    for data in datasets(rows):
        lines.append(f"\n{data.title}, {data.trips:,} trips")
        lines.append("  ".join([f"{'release':30s}", *(f"{name:>9s}" for name in data.columns), "CPU s"]))
        for row in data.rows:
            cells = "  ".join(f"{cell.text:>9s}" for cell in row.cells)
            lines.append(f"{row.name:30s}  {cells}  {row.cpu}")
            if row.releases > 1:
                lines.append("  ".join([f"{'  +-':30s}", *(f"{cell.spread:>9s}" for cell in row.cells)]))
    return "\n".join(lines)


def datasets(rows: list[dict[str, Any]]) -> list[SimpleNamespace]:
    """A table and maps for each set of trips there are results of."""
    return [_dataset(name, mine) for name in DATA if (mine := [row for row in rows if row["data"] == name])]


def _dataset(name: str, rows: list[dict[str, Any]]) -> SimpleNamespace:
    grouped: dict[tuple[str, float], list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        if row["kind"] != "originals":
            grouped[row["kind"], row["epsilon"]].append(row)
    order = sorted(grouped, key=lambda key: (key[1], _order(key[0])))
    columns = [column for column in COLUMNS if any(column in row["scores"] for row in rows)]
    best = {epsilon: _best(grouped, epsilon, columns) for epsilon in {key[1] for key in order}}
    table = [_row(key, grouped[key], columns, best[key[1]]) for key in order]
    return SimpleNamespace(
        title=DATA[name].title, cell_m=DATA[name].cell_m, trips=rows[0]["trips"], columns=columns, rows=table,
        maps=[_map(row) for row in sorted(rows, key=_map_order) if "map" in row], side=MAP_SIDE,
    )  # fmt: skip


def _order(kind: str) -> int:
    """Place of a kind in tables; peers come last."""
    return ORDER.index(kind) if kind in ORDER else len(ORDER)


def _interval(values: list[float]) -> float:
    """Half the width of the 95 % interval of a mean."""
    from scipy.stats import t

    if len(values) < 2:
        return float("nan")
    return float(t.ppf(0.975, len(values) - 1) * np.std(values, ddof=1) / np.sqrt(len(values)))


def _mean(rows: list[dict[str, Any]], column: str) -> float:
    return float(np.mean([row["scores"].get(column, np.nan) for row in rows]))


def _best(grouped: dict[tuple[str, float], list[dict[str, Any]]], epsilon: float, columns: list[str]) -> dict[str, float]:
    """The best mean of each column among the releases of one epsilon."""
    found = {}
    for column in columns:
        values = [_mean(rows, column) for key, rows in grouped.items() if key[1] == epsilon]
        values = [value for value in values if not np.isnan(value)]
        if len(values) > 1:
            found[column] = max(values) if column in HIGHER else min(values)
    return found


def _row(key: tuple[str, float], rows: list[dict[str, Any]], columns: list[str], best: dict[str, float]) -> SimpleNamespace:
    cells = []
    for column in columns:
        mean = _mean(rows, column)
        spread = _interval([row["scores"].get(column, np.nan) for row in rows])
        cells.append(SimpleNamespace(text=_number(mean), spread=_number(spread), best=mean == best.get(column)))
    kind, epsilon = key
    cpu = np.mean([row["cpu_s"] for row in rows])
    return SimpleNamespace(
        name=_name(kind, epsilon), cells=cells, cpu="" if kind == SECOND else f"{cpu:.1f}", releases=len(rows),
        floor=kind == SECOND, private=epsilon not in {0.0, NOT_PRIVATE},
    )  # fmt: skip


def _name(kind: str, epsilon: float) -> str:
    if epsilon == 0.0:
        return kind
    return f"{NAMES.get(kind, kind)}, {'not private' if epsilon == NOT_PRIVATE else f'epsilon {epsilon:g}'}"


def _number(value: float) -> str:
    if np.isnan(value):
        return ""
    if abs(value) >= 1:
        return f"{value:,.0f}" if abs(value) >= 10 else f"{value:.2f}"
    return f"{value:.4f}" if abs(value) < 0.1 else f"{value:.3f}"


def _map_order(row: dict[str, Any]) -> tuple[float, int]:
    return row["epsilon"], -1 if row["kind"] == "originals" else _order(row["kind"])


def _map(row: dict[str, Any]) -> SimpleNamespace:
    """Squares of like ink as one path; row 0 of the counts is the south."""
    counts = np.array(row["map"]).reshape(MAP_SIDE, MAP_SIDE)[::-1]
    ink = np.ceil(np.sqrt(counts / max(counts.max(), 1)) * LEVELS - 0.1).astype(int)
    paths = []
    for level in range(1, LEVELS + 1):
        squares = "".join(f"M{x} {y}h1v1h-1z" for y, x in np.argwhere(ink == level))
        if squares:
            paths.append(SimpleNamespace(d=squares, ink=f"{level / LEVELS:.2f}"))
    return SimpleNamespace(name=_name(row["kind"], row["epsilon"]), paths=paths)
