"""Notebooks: trips, releases, promises, scores and studies show themselves; maps are pages of their own."""

from __future__ import annotations

import json

import polars as pl
import pytest

import murmurate as mm
from murmurate.core.guarantee import DP, KAnonymity, NoGuarantee, Unit
from murmurate.errors import InputError
from murmurate.releases import kind_named
from murmurate.report.display import HEIGHT


@pytest.fixture(scope="module")
def release(judged):
    return mm.open(judged.review.release.folder)


def test_trips_are_sized_shown_and_handed_over(judged):
    trips = judged.town.trips
    assert len(trips) == trips.n_trips and trips.head(3).height == 3 and trips.to_polars() is trips.table
    assert trips.to_pandas().shape[0] == trips.n_points
    points = trips.to_geopandas()
    assert str(points.crs) == "EPSG:4326" and points.geometry.iloc[0].x == trips.lng[0]
    html = trips._repr_html_()
    assert f"{trips.n_trips:,} trips" in html and html.count("<tr>") == 9
    assert trips.take_trips([]) and not len(trips.take_trips([])), "no trips are trips all the same"


def test_a_release_opens_in_one_word_and_shows_its_promise(release, judged):
    assert len(release) == judged.review.released.n_trips and release.head(2).height == 2
    assert "geometry" not in release.trips.columns and release.to_pandas().shape[0] == release.trips.n_points
    html = release._repr_html_()
    assert "Trips released by geoind" in html and "from a seed" in html and "data.parquet" in html


def test_released_trips_are_geoparquet(release):
    import geopandas
    import pyarrow.parquet as pq

    path = release.folder / "data.parquet"
    about = json.loads(pq.read_schema(path).metadata[b"geo"])
    assert about["primary_column"] == "geometry" and about["columns"]["geometry"]["encoding"] == "WKB"
    points = geopandas.read_parquet(path)
    assert points.crs == "OGC:CRS84" and points.geometry.x.tolist() == points["lng"].tolist()
    assert points.geometry.y.tolist() == points["lat"].tolist()
    again = mm.read(path)
    assert again.n_trips == len(release) and again.lat.tolist() == release.trips.lat.tolist()


def test_maps_are_pages_of_their_own(release, judged, tmp_path):
    for picture in (judged.town.trips.plot(), release.plot(base=judged.base)):
        assert picture.page.count('class="map"') == 3 and "<script" not in picture.page
        html = picture._repr_html_()
        assert html.startswith("<iframe srcdoc=") and f'height="{HEIGHT}"' in html and "<svg" not in html
        assert picture.save(tmp_path / "maps.html").read_text(encoding="utf-8") == picture.page
        assert len(repr(picture)) < 100
    with pytest.raises(InputError, match="no trip"):
        judged.town.trips.take_trips([]).plot()


def test_scores_become_a_frame(judged):
    frame = judged.attacked.to_frame()
    assert frame.height == len(judged.attacked.scores) and {"name", "value", "chance", "note"} <= set(frame.columns)
    assert (
        frame.schema["value"] == pl.Float64
        and mm.evaluate(judged.town.trips, judged.town.trips, metrics=[]).to_frame().is_empty()
    )
    html = judged.attacked._repr_html_()
    assert "reidentify.timed.top1_k1" in html and "Internal" in html
    verdict = judged.review.verdict(judged.evaluation, attacked=judged.attacked)
    assert verdict.headlines[0].label in verdict._repr_html_()


@pytest.mark.parametrize(
    "promise",
    [DP(epsilon=1.0, unit=Unit(name="user")), KAnonymity(k=3, radius_m=100.0), NoGuarantee(why="<b>a test</b>")],
)
def test_promises_are_shown_in_words_and_escaped(promise):
    html = promise._repr_html_()
    assert html.count("<p") >= 1 and "<b>a test" not in html


@pytest.mark.parametrize("kind", [mm.Flock, mm.NGram])
def test_a_space_may_be_written_as_on_the_command_line(kind):
    spec = "grid:60.1,24.8,60.3,25.1:500.0"
    assert kind(epsilon=1.0, space=spec).space == mm.Grid(60.1, 24.8, 60.3, 25.1, 500.0)
    with pytest.raises(mm.errors.ParameterError, match="grid:SOUTH"):
        kind(epsilon=1.0, space="grid:60.1")


def test_every_kind_has_a_title():
    assert all(kind_named(name).title for name in ("trips", "days", "network", "model"))
