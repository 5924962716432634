"""A network release from the door to its reports: written, verified, evaluated, attacked, wherever its road file is."""

from __future__ import annotations

import json

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import noise
from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.judging.review import attack, evaluate, review
from murmurate.mechanisms.dp_ani import DPANI
from murmurate.mechanisms.road_counts import RoadCounts
from murmurate.report.networks import curves, original_map, overlap_map, write_networks_page
from murmurate.spaces import parse
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.road import save
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(6)


@pytest.fixture(scope="module")
def cars():
    return traffic(TOWN)


@pytest.mark.parametrize(
    "mechanism", [DPANI(epsilon=1.0, space=TOWN), RoadCounts(epsilon=50.0, space=TOWN, unit="trip", zones=2)]
)
def test_a_network_release_is_verified_evaluated_and_attacked(mechanism, cars, tmp_path):
    ledger = mm.Ledger.in_memory()
    made = mm.release(mechanism, cars, ledger=ledger, out=tmp_path / "out", accept_no_guarantee=True, rng=noise.seeded(1))
    assert made.manifest.kind == "network"
    assert "charged to population" in mm.verify(made.folder, ledger=ledger)["debit"]
    seen = review(made.folder, cars, ledger=ledger)
    found = {score.name: score.value for score in evaluate(seen.released, seen.original)}
    assert found["network_length.ratio"] > 0.3
    attacked = attack(seen.released, seen.original)
    assert attacked["reconstruct.ends.imbalance.exact"].chance is not None
    assert seen.release.space.n_links == TOWN.n_links
    with pytest.raises(ParameterError, match="average read trips; on a network there are reconstruct"):
        attack(seen.released, seen.original, attacks=["average"])
    with pytest.raises(ParameterError, match="visits read trips; on a network there are network_length"):
        seen.take_metrics(metrics=["visits"])


def test_a_release_is_reviewed_where_the_road_file_is_gone(cars, tmp_path):
    roads = save(grid_town(5), tmp_path / "roads.npz")
    network = parse(f"road:{roads}")
    made = mm.release(
        DPANI(epsilon=1.0, space=network), cars, ledger=mm.Ledger.in_memory(), out=tmp_path / "out", accept_no_guarantee=True,
        rng=noise.seeded(1),
    )  # fmt: skip
    assert str(tmp_path) not in (made.folder / "manifest.json").read_text()
    assert json.loads((made.folder / "manifest.json").read_text())["parameters"]["space"].startswith("road:roads.npz#")
    roads.unlink()
    del network
    assert mm.verify(made.folder)["guarantee"].startswith("follows")
    assert review(made.folder, cars).released.network.n_links == grid_town(5).n_links


def test_a_release_whose_first_links_are_not_published_is_read_again(tmp_path):
    town = grid_town(9)  # more links than types are usually guessed from
    flows = LinkFlows(network=town, table=pl.DataFrame({"link": [town.n_links - 1], "hour": [8], "count": [1.5]}))
    flows.write(tmp_path)
    assert town.n_links > 150 and LinkFlows.read(tmp_path).totals[-1] == 1.5


def test_trips_without_times_cannot_be_compared(cars):
    flows = LinkFlows.of_drives(drives_of(cars, TOWN))
    with pytest.raises(InputError, match="times and coordinates"):
        evaluate(flows, Trips(cars.table.drop("datetime")))


def test_pictures_show_what_is_shared_lost_and_added(cars, tmp_path):
    original = LinkFlows.of_drives(drives_of(cars, TOWN))
    half = LinkFlows(network=TOWN, table=original.table.filter(pl.col("link") % 2 == 0))
    panel = overlap_map("half", half, original)
    assert "km lost, 0 km added" in panel.words
    assert {part.role for part in panel.roads} == {"lost", "both"}
    chart = curves(
        "length <script>",
        [0.1, 1.0, 10.0],
        {"a": [1.0, 1.1, np.nan], "b": [0.9, 0.9, 0.9]},
        x_label="epsilon",
        y_label="ratio",
        log_x=True,
    )
    page = write_networks_page(
        tmp_path / "page.html",
        title="Networks",
        about="",
        network=TOWN,
        maps=[original_map(original), panel],
        charts=[chart],
        tables={"t": [["x"], ["1"]]},
    ).read_text()
    assert page.count('role="img"') == 3 and "<script>" not in page and "http" not in page.split("</style>")[-1]
