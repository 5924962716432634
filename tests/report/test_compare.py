"""Releases side by side: one table, the best marked, other kinds with their files."""

from __future__ import annotations

from dataclasses import replace

import pytest

from murmurate.core.score import Score
from murmurate.errors import InputError
from murmurate.judging.scoring import Evaluation
from murmurate.releases.folder import Release
from murmurate.report.compare import Entry, attack_table, score_tables, write_comparison


def entry(judged, name, scores=(), attacks=(), kind="trips"):
    release = judged.review.release
    manifest = replace(release.manifest, mechanism=name, kind=kind)
    return Entry(Release(release.folder, manifest), Evaluation(tuple(scores)), Evaluation(tuple(attacks)) if attacks else None)


def test_the_best_of_a_row_is_marked_and_ties_are_shared(judged):
    entries = [
        entry(judged, "a", [Score(name="visits.jsd", value=0.1, better="lower"), Score(name="trip_size", value=0.5)]),
        entry(judged, "b", [Score(name="visits.jsd", value=0.1, better="lower")]),
        entry(judged, "c", [Score(name="visits.jsd", value=0.3, better="lower")]),
        entry(judged, "d", [Score(name="visits.jsd", value=float("nan"), better="lower")]),
    ]
    network = entry(judged, "roads", [Score(name="network_length.lost", value=0.1, better="lower")], kind="network")
    trips, roads = score_tables([*entries, network])
    assert [item.name for item in trips.entries] == ["a", "b", "c", "d"] and [item.name for item in roads.entries] == ["roads"]
    assert roads.rows[0][0] == "Roads lost, by length" and roads.rows[0][2][0].text == "10 %"
    visits, size = trips.rows
    assert visits[0] == "Difference of the maps of visits" and visits[1] == "lower is better"
    assert [cell.best for cell in visits[2]] == [True, True, False, False]
    assert [cell.text for cell in size[2]] == ["0.5", "–", "–", "–"] and not any(cell.best for cell in size[2])


def test_whole_days_have_a_table_of_their_own(judged):
    alike = Score(name="day_mobility.moves_similarity", value=0.8, better="higher")
    longer = Score(name="duration.relative_mean_change", value=200.0, better="lower")
    moved = Score(name="point_displacement.average.mean", value=9.0, better="lower")
    trips, days = score_tables([entry(judged, "plausible", [longer, alike]), entry(judged, "geoind", [longer, alike, moved])])
    assert [item.name for item in days.entries] == ["plausible"] and len(days.rows) == 1, (
        "durations of trips say nothing of days"
    )
    assert [item.name for item in trips.entries] == ["geoind"]


def test_attacks_are_best_near_chance(judged):
    def found(value):
        return [Score(name="new.share", value=value, chance=0.5, better="closer_to_chance")]

    entries = [entry(judged, "a", attacks=found(0.9)), entry(judged, "b", attacks=found(0.45)), entry(judged, "not attacked")]
    ((words, better, cells),) = attack_table(entries).rows
    assert (words, better) == ("New: share", "safer near chance")
    assert [cell.best for cell in cells] == [False, True] and cells[0].text == "0.9 (chance 0.5)"
    assert attack_table([entry(judged, "c")]) is None


def test_the_page_shows_every_release(judged, tmp_path):
    entries = [entry(judged, "one", judged.evaluation.scores, judged.attacked.scores), entry(judged, "waters", kind="pool")]
    path = write_comparison(
        tmp_path / "c.html", entries, judged.town.trips, grid=judged.town.grid(400), base=judged.base, demo=True
    )
    page = path.read_text(encoding="utf-8")
    assert 'class="banner demo"' in page and 'class="banner internal"' not in page
    assert page.count('class="map"') == 2, "one map of the original and one of the release; the rest is on its own page"
    assert "waters" in page and "data.parquet" in page and "<script" not in page
    inside = write_comparison(tmp_path / "i.html", entries, judged.town.trips, grid=judged.town.grid(400)).read_text()
    assert 'class="banner internal"' in inside


def test_nothing_to_compare_is_refused(judged, tmp_path):
    with pytest.raises(InputError):
        write_comparison(tmp_path / "c.html", [], judged.town.trips, grid=judged.town.grid(400))
