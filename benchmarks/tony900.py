"""The Tony-900 tables of the geo-indistinguishability study, printed beside what this program gives.

    python benchmarks/tony900.py [--study studies/tony900.toml] [--out DIR] [--workers 2]

Every a is to lie within 1 % of the printed one, every c within 1 % (2 % for the predictive c of Table 9). The print has as
few as two digits, so some of the difference is its rounding.
"""

from __future__ import annotations

import argparse
import resource
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from murmurate.judging.study import StudyResult, study

STUDIES = Path(__file__).resolve().parent.parent / "studies"
BUDGETS = (0.1, 0.2, 0.5, 1.0, 1.5, 2.0)


@dataclass(frozen=True)
class Table:
    number: int
    title: str
    metric: str
    simple: tuple[str, ...]
    """Six a and one c, as printed."""
    predictive: tuple[str, ...]
    scale: float = 1.0
    """Times our a, so that units agree; c is divided by it."""
    predictive_c_within: float = 0.01


TABLES = (
    Table(
        3,
        "length (m)",
        "length.released_mean",
        ("362.29", "179.77", "70.289", "33.888", "21.75", "15.754", "0.031"),
        ("526.58", "168.7", "40.479", "14.581", "8.0586", "5.2622", "0.0859"),
    ),
    Table(
        5,
        "speed (m/s)",
        "speed.released_mean",
        ("1.9483", "0.9667", "0.378", "0.1822", "0.117", "0.0847", "5.7619"),
        ("2.8315", "0.9072", "0.2177", "0.0784", "0.0433", "0.0283", "15.976"),
        scale=1 / 3.6,
    ),
    Table(
        7,
        "absolute length change (m)",
        "length_change.absolute.mean",
        ("362.29", "179.77", "70.289", "33.888", "21.75", "15.754", "0.031"),
        ("526.58", "168.7", "40.48", "14.586", "8.0712", "5.2846", "0.0856"),
    ),
    Table(
        9,
        "relative length change (its rows, swapped in print, put back; a growth is negative there)",
        "length_change.relative.mean",
        ("-0.3897", "-0.1933", "-0.0756", "-0.0364", "-0.0234", "-0.0169", "-28.851"),
        ("-0.5663", "-0.1814", "-0.0435", "-0.0157", "-0.0087", "-0.0057", "-79.438"),
        scale=-1.0,
        predictive_c_within=0.02,
    ),
    Table(
        11,
        "Hausdorff distance (m)",
        "hausdorff.mean",
        ("48.799", "24.049", "9.2517", "4.4345", "2.8701", "2.1132", "0.233"),
        ("79.848", "27.853", "7.809", "3.2502", "2.014", "1.4625", "0.3301"),
    ),
    Table(
        13,
        "centroid displacement (m)",
        "centroid_displacement.mean",
        ("5.8989", "2.9501", "1.1789", "0.5895", "0.3929", "0.2956", "1.6939"),
        ("9.6926", "3.8132", "1.3857", "0.7199", "0.5089", "0.4066", "1.282"),
    ),
)


def ours(result: StudyResult, table: Table, mechanism: str) -> list[float]:
    """Six a and one c in the units of the print."""
    wanted = (pl.col("metric") == table.metric) & (pl.col("mechanism") == mechanism)
    first = result.regression.first.filter(wanted)
    a = [first.filter((pl.col("budget") - budget).abs() < 1e-9)["a"][0] * table.scale for budget in BUDGETS]
    return [*a, result.regression.second.filter(wanted)["c"][0] / table.scale]


def off(printed: str, found: float) -> float:
    """Relative difference from the printed figure."""
    return abs(found / float(printed) - 1)


def compare(result: StudyResult) -> list[tuple[Table, str, list[str], list[float], list[float], list[bool]]]:
    """Rows of (table, mechanism, printed, found, difference, within)."""
    rows = []
    for table in TABLES:
        for mechanism, printed in (("simple", table.simple), ("predictive", table.predictive)):
            found = ours(result, table, mechanism)
            within_c = table.predictive_c_within if mechanism == "predictive" else 0.01
            differences = [off(text, value) for text, value in zip(printed, found, strict=True)]
            limits = [0.01] * 6 + [within_c]
            good = [difference <= limit for difference, limit in zip(differences, limits, strict=True)]
            rows.append((table, mechanism, list(printed), found, differences, good))
    return rows


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--study", default=STUDIES / "tony900.toml", type=Path)
    parser.add_argument("--out", type=Path)
    parser.add_argument("--workers", type=int, default=2)
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        began = time.monotonic()
        result = study(wanted.study, out=wanted.out or Path(folder) / "study", workers=wanted.workers)
        seconds = time.monotonic() - began
        cpu = sum(resource.getrusage(who).ru_utime for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN))
    rows = compare(result)
    header = "".join(f"{f'eps {budget:g}':>11}" for budget in BUDGETS) + f"{'c':>11}"
    for table, mechanism, printed, found, differences, good in rows:
        if mechanism == "simple":
            print(f"\nTable {table.number}: {table.title}\n{'':24}{header}")
        print(f"{mechanism:>11} {'paper':>12}" + "".join(f"{text:>11}" for text in printed))
        print(f"{'':>11} {'reproduced':>12}" + "".join(f"{value:>11.5g}" for value in found))
        marks = "".join(
            f"{f'{100 * part:.2f} %' + ('' if fine else ' !'):>11}" for part, fine in zip(differences, good, strict=True)
        )
        print(f"{'':>11} {'off by':>12}{marks}")
    cells = [(difference, fine) for *_, differences, good in rows for difference, fine in zip(differences, good, strict=True)]
    outside = sum(not fine for _, fine in cells)
    worst = max(difference for difference, _ in cells)
    print(f"\n{len(cells)} figures, {outside} outside; the worst is off by {100 * worst:.2f} %")
    print(f"{result.table.height:,} values; {seconds:.0f} s with {wanted.workers} workers, {cpu:.0f} CPU s")
    return 1 if outside else 0


if __name__ == "__main__":
    sys.exit(main())
