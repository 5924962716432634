"""A mechanism with a kind of release of its own, in one file: registered, released, judged, drawn and listed.

No other file of the package knows of it. CONTRIBUTING.md shows its mechanism as the example to start from.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import attacks, mechanisms, metrics, noise
from murmurate.asking import Budget, Round, Table
from murmurate.asking.meter import spent_share
from murmurate.asking.table import once
from murmurate.attacks import Attack
from murmurate.core.parameters import positive
from murmurate.core.registry import Entry
from murmurate.core.score import Score
from murmurate.errors import ParameterError
from murmurate.judging.review import review
from murmurate.mechanisms import Listed
from murmurate.metrics import Metric, Pair
from murmurate.releases import KINDS
from murmurate.releases.kind import Kind
from murmurate.report.charts import histogram
from murmurate.report.compare import Entry as Compared
from murmurate.report.compare import write_comparison
from murmurate.report.figures import FIGURES, Shown
from murmurate.report.page import write_attack_report, write_report
from murmurate.report.tour import tour

# -- the example begins ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CellCounts:
    """How many trips start in each cell of a public grid: what the mechanism returns and the release holds."""

    kind: ClassVar[str] = "counts"
    grid: mm.Grid
    count: np.ndarray

    def write(self, folder):
        pl.DataFrame({"cell": np.arange(self.grid.n_cells), "count": self.count}).write_parquet(folder / "counts.parquet")


class CountsKind(Kind):
    """Counts of cells in `counts.parquet`."""

    name = "counts"
    figures = ("count_histogram",)
    headline: ClassVar[Mapping[str, str]] = {"count_error.mean": "Mean error of a count"}

    def read(self, release):
        return CellCounts(release.space, pl.read_parquet(release.folder / "counts.parquet")["count"].to_numpy())


# -- the mechanism begins ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class NoisyCounts:
    """Counts the starts of trips in the cells of a grid, with discrete Laplace noise."""

    name: ClassVar[str] = "noisy_counts"
    needs: ClassVar[frozenset[str]] = frozenset({"coordinates"})
    emits: ClassVar[tuple[str, ...]] = ()
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[Mapping[str, Any]] = {"space": "grid", "epsilon": 1.0}

    space: mm.Grid
    epsilon: float

    def __post_init__(self):
        positive("epsilon", self.epsilon)

    def guarantee(self):
        return mm.DP(epsilon=self.epsilon, unit=mm.Unit(name="trip"))

    def statement(self):
        return ("Every cell is published, also those where no trip started.",)

    def expected_error(self):
        return f"A count is off by {1 / self.epsilon:.3g} on average."

    def budget(self):
        return Budget(epsilon=self.epsilon)

    def ask(self, answers, facts):
        table = Table(name="starts", n_bins=self.space.n_cells, share=1.0)  # a unit adds one count at most
        return None if answers else Round(tables=(table,), prepare=partial(start_cells, self.space), contribute=count_cells)

    def model(self, answers, facts, rng):
        return CellCounts(self.space, answers["starts"].noisy)


def start_cells(grid, part):
    first = part.trips.offsets[:-1]
    cell = grid.locate(part.trips.lat[first], part.trips.lng[first])
    return part.unit[cell >= 0], cell[cell >= 0]


def count_cells(prepared):
    return {"starts": once(*prepared)}  # each row adds one count to one bin


# -- the mechanism ends ------------------------------------------------------------------------------------------------


def count_error(both: Pair) -> list[Score]:
    """Mean difference between released and true counts."""
    away = np.abs(both.released.count - starts(both.original, both.released.grid))
    return [Score(name="count_error.mean", value=float(away.mean()), better="lower", family="counts", unit="trips")]


def occupied(released, original, *, pairing=None, seed=0) -> list[Score]:
    """Guesses that a trip started wherever the noisy count is positive."""
    true = starts(original, released.grid) > 0
    right, chance = float(((released.count > 0) == true).mean()), float(max(true.mean(), 1 - true.mean()))
    note = "the adversary sees the release alone"
    return [Score(name="occupied", value=right, chance=chance, better="closer_to_chance", family="counts", note=note)]


def count_histogram(shown: Shown) -> dict[str, Any]:
    """Draw how many trips start in a cell; the true counts stand beside them inside only."""
    released = shown.release.data
    sides = {"released": released.count.clip(0)}
    if shown.original is not None:
        sides = {"original": starts(shown.original, released.grid), **sides}
    return {"charts": [histogram("Starts in a cell", "trips", sides, "% of cells")]}


def starts(trips, grid):
    cell = grid.locate(trips.lat, trips.lng)[trips.offsets[:-1]]
    return np.bincount(cell[cell >= 0], minlength=grid.n_cells)


REGISTERED = (
    (mechanisms.NAMES, "noisy_counts", Listed(NoisyCounts)),
    (KINDS, "counts", Entry(CountsKind)),
    (metrics.METRICS, "count_error", Metric(count_error, reads="counts")),
    (attacks.NAMES, "occupied", Attack(occupied, reads=("counts",))),
    (FIGURES, "count_histogram", Entry(count_histogram)),
)
"""(registry, name, entry); a package of one's own calls `registry.register(name, entry)` when it is imported."""

# -- the example ends --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def registered():
    with ExitStack() as stack:
        for registry, name, entry in REGISTERED:
            stack.enter_context(registry.also(name, entry))
        yield


@pytest.fixture(scope="module")
def town():
    return mm.demo.city(people=20, days=3, seed=3, interval_s=60)


@pytest.fixture(scope="module")
def ledger():
    with mm.Ledger.in_memory() as book:
        yield book


@pytest.fixture(scope="module")
def made(registered, town, ledger, tmp_path_factory):
    mechanism = mechanisms.example("noisy_counts", town.spaces(500.0))
    out = tmp_path_factory.mktemp("new") / "release"
    return mm.release(mechanism, town.trips, ledger=ledger, out=out, rng=noise.seeded(1))


def test_it_is_released_and_verified(made, ledger):
    assert made.manifest.kind == "counts" and set(made.manifest.files) == {"counts.parquet", "statement.md"}
    assert "Identifiers" not in (made.folder / "statement.md").read_text()
    found = mm.verify(made.folder, ledger=ledger)
    assert found["guarantee"].startswith("follows") and found["debit"].startswith("charged to population")


def test_a_trip_costs_the_whole_promise_and_no_more(made, town):
    everyone, last = town.trips, town.trips.n_trips - 1
    without = everyone.take_trips(np.arange(last))
    for mechanism in (NoisyCounts(space=made.space, epsilon=1.0), NoisyCounts(space=made.space, epsilon=0.1)):
        assert spent_share(mechanism, everyone, without, noise.seeded(1)) == {"starts": 1.0}


def test_contributing_shows_the_same_code():
    own = Path(__file__).read_text(encoding="utf-8")
    code = own.split("# -- the mechanism begins ", 1)[1].split("\n", 1)[1].split("# -- the mechanism ends ")[0].strip()
    assert code in (Path(__file__).parents[1] / "CONTRIBUTING.md").read_text(encoding="utf-8")


def test_it_is_evaluated_by_its_own_score(made, town, ledger):
    found = mm.evaluate(made.folder, town.trips, ledger=ledger)
    assert [score.name for score in found] == ["count_error.mean"] and 0.3 < found["count_error.mean"].value < 3
    assert found.to_json()["trips"] == {"original": town.trips.n_trips, "released": 0}
    with pytest.raises(ParameterError, match="visits read trips; on a counts there are count_error"):
        mm.evaluate(made.folder, town.trips, metrics=["visits"])


def test_it_is_attacked_by_its_own_attack(made, town):
    found = mm.attack(made.folder, town.trips)
    assert [score.name for score in found] == ["occupied"] and found["occupied"].chance is not None
    with pytest.raises(ParameterError, match="reidentify read trips; on a counts there are occupied"):
        mm.attack(made.folder, town.trips, attacks=["reidentify"])


def test_bare_data_are_judged_as_well(made, town):
    payload = mm.rehearse(NoisyCounts(space=made.space, epsilon=1e6), town.trips, rng=noise.seeded(1)).payload
    assert mm.evaluate(payload, town.trips)["count_error.mean"].value == 0


def test_its_pages_show_its_figure(made, town, ledger, tmp_path):
    seen = review(made.folder, town.trips, ledger=ledger)
    scores, found = seen.take_metrics(), seen.run_attacks()
    inside = write_report(tmp_path / "in.html", seen, scores).read_text()
    outside = write_report(tmp_path / "out.html", seen, scores, public=True).read_text()
    assert "Mean error of a count" in inside and "Starts in a cell" in inside and "original 0 trips" in inside
    assert "Starts in a cell" in outside and "original" not in outside.split("Starts in a cell")[1].split("</figure>")[0]
    assert "occupied" in write_attack_report(tmp_path / "attacks.html", seen, found).read_text()
    entry = Compared(made, scores, found)
    page = write_comparison(tmp_path / "c.html", [entry], town.trips, grid=town.grid(500.0)).read_text()
    assert "Mean error of a count" in page and "counts.parquet" in page


def test_the_tour_shows_it(registered, tmp_path):
    done = tour(tmp_path / "out", people=15, days=2, only=["noisy_counts"], workers=1)
    assert (done.folder / "reports" / "noisy_counts-attacks.html").is_file()
    assert done.entries[0].evaluation["count_error.mean"].better == "lower"


def test_it_is_listed_while_it_is_registered(made):
    assert dict(mechanisms.NAMES.about())["noisy_counts"].startswith("Counts the starts")
    assert dict(metrics.METRICS.about())["count_error"] and dict(attacks.NAMES.about())["occupied"]
