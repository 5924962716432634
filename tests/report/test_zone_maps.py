"""Pages of released flows: maps, hours with bands, strongest pairs with intervals, in both editions, from the release alone."""

from __future__ import annotations

import re

import pytest

import murmurate as mm
from murmurate import noise
from murmurate.judging.review import review
from murmurate.mechanisms.od_counts import ODCounts
from murmurate.report.page import write_report
from murmurate.report.zone_maps import zone_atlas
from murmurate.spaces.hexes import Hexes


@pytest.fixture(scope="module")
def town():
    return mm.demo.city(people=120, days=4, seed=2, interval_s=300)


@pytest.fixture(scope="module")
def made(town, tmp_path_factory):
    ledger = mm.Ledger.in_memory()
    mechanism = ODCounts(epsilon=4.0, space=Hexes(7, *town.box), max_error=0.4)
    return mm.release(
        mechanism, town.trips, ledger=ledger, out=tmp_path_factory.mktemp("m") / "flows", rng=noise.seeded(1)
    ), ledger


def test_both_editions_show_the_released_figures_alone(made, town, tmp_path):
    release, ledger = made
    seen = review(release.folder, town.trips, ledger=ledger)
    scores = seen.take_metrics()
    pages = {
        public: write_report(tmp_path / f"{public}.html", seen, scores, public=public).read_text() for public in (True, False)
    }
    top = release.data.pairs()
    for page in pages.values():
        assert "Flows of the release" in page and 'class="band"' in page and "Matrix of districts" in page
        assert f"<td>{top['trips'][0]:,}</td><td>{top['low'][0]:,.0f} to {top['high'][0]:,.0f}</td>" in page
    assert "Sums that do not agree" in pages[False] and "Sums that do not agree" not in pages[True]
    sections = [
        re.search(r'<section aria-labelledby="zone-flows">.*?</section>', page, re.DOTALL).group() for page in pages.values()
    ]
    assert sections[0] == sections[1]


def test_maps_draw_published_zones_and_listed_pairs(made):
    flows = made[0].data
    drawn = zone_atlas(flows, level=0.95)
    shown = int(flows.zones.filter(direction="departures", area="zone", time="day")["trips"].count())
    assert drawn.zones[0].words.startswith(f"{shown} of {flows.places.n_cells}")
    assert sum(patch.d.count("M") for patch in drawn.zones[0].patches) == shown
    arcs = sum(arc.d.count("M") + len(arc.rings) for arc in drawn.flows.arcs)
    assert arcs == min(flows.pairs().height, 60) > 0
    hidden = [square for square in drawn.matrix if not square.number]
    assert len(drawn.matrix) == (flows.district.max() + 1) ** 2 and all("not published" in square.label for square in hidden)


def test_a_release_without_a_reliable_figure_has_a_page(town, tmp_path):
    ledger = mm.Ledger.in_memory()
    mechanism = ODCounts(epsilon=0.01, space=town.grid(2000.0), max_error=0.01)
    made = mm.release(mechanism, town.trips, ledger=ledger, out=tmp_path / "flows", rng=noise.seeded(1))
    seen = review(made.folder, town.trips, ledger=ledger)
    page = write_report(tmp_path / "p.html", seen, seen.take_metrics(), public=True).read_text()
    assert "No pair of zones is reliable enough" in page and "No hour is published" in page
