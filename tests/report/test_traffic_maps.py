"""Pages of network releases: what is drawn adds up, and a public page knows nothing of the originals."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import noise
from murmurate.judging.review import review
from murmurate.mechanisms.od_successive import ODSuccessive
from murmurate.report.compare import Entry, write_comparison
from murmurate.report.page import write_report
from murmurate.report.traffic_maps import network_view, overlap, traffic_atlas
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from murmurate.spaces.grid import Grid
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(6)


@pytest.fixture(scope="module")
def cars():
    return traffic(TOWN, people=20)


@pytest.fixture(scope="module")
def original(cars):
    return LinkFlows.of_drives(drives_of(cars, TOWN))


def drawn(panel, role) -> int:
    return sum(part.d.count("M") for part in panel.roads if part.role == role)


def test_overlap_draws_every_street_once_in_its_part(original):
    kept = LinkFlows(network=TOWN, table=original.table.filter(pl.col("link") % 3 > 0))
    panel = overlap(kept, original, network_view(TOWN))
    lost = set(original.used) - set(kept.used)
    streets = {min(link, int(TOWN.twin[link])) if TOWN.twin[link] >= 0 else link for link in lost}
    assert drawn(panel, "lost") == len(streets)
    assert drawn(panel, "added") == 0 and "0 km added" in panel.words


def test_both_sides_share_one_scale_and_directions_are_added(original):
    double = LinkFlows(network=TOWN, table=original.table.with_columns(pl.col("count") * 2))
    atlas = traffic_atlas(double, original)
    roles = [{part.role for part in panel.roads} for panel in atlas.traffic]
    assert "t5" in roles[1] and max(roles[0]) <= max(roles[1])
    assert [series.role for series in atlas.hours[0].series] == ["original", "released"]
    assert atlas.busiest[0].rank == "1" and atlas.busiest[0].original
    totals = original.totals + np.where(TOWN.twin >= 0, original.totals[TOWN.twin], 0)
    streets = (totals > 0) & ((TOWN.twin < 0) | (np.arange(TOWN.n_links) < TOWN.twin))
    assert sum(part.d.count("M") for part in atlas.traffic[0].roads) == streets.sum()


def test_an_empty_release_is_drawn(original):
    atlas = traffic_atlas(LinkFlows(network=TOWN, table=original.table.head(0)), None)
    assert atlas.overlap is None and not atlas.busiest and not atlas.hours and not atlas.traffic[0].roads


def test_pages_show_networks_and_the_public_one_only_the_release(cars, tmp_path):
    ledger = mm.Ledger.in_memory()
    made = mm.release(
        ODSuccessive(space=TOWN), cars, ledger=ledger, out=tmp_path / "out", accept_no_guarantee=True, rng=noise.seeded(1)
    )
    seen = review(made.folder, cars, ledger=ledger)
    evaluation = seen.take_metrics()
    internal = write_report(tmp_path / "internal.html", seen, evaluation).read_text()
    assert "only in the original" in internal and "Rank there" in internal and 'class="links"' in internal
    public = write_report(tmp_path / "public.html", seen, evaluation, public=True).read_text()
    assert "Traffic of the release" in public and "Busiest hour" in public
    assert "only in the original" not in public and "Rank there" not in public
    grid = Grid(TOWN.node_lat.min(), TOWN.node_lng.min(), TOWN.node_lat.max(), TOWN.node_lng.max(), 200.0)
    both = write_comparison(tmp_path / "both.html", [Entry(seen.release, evaluation)], cars, grid=grid).read_text()
    assert "which roads are shown" in both and both.count('class="links"') == 1
