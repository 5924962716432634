"""A first look at a file: what is mended, what is offered, and that only declared things go on."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner

from murmurate.cli import app
from murmurate.cli.start import CUT_BY_DATA
from murmurate.core.trips import Trips
from murmurate.custody.advice import advise
from murmurate.custody.looking import findings, weakness
from murmurate.custody.recipes import read_recipe
from murmurate.custody.starting import look, rounded_down
from murmurate.errors import InputError
from murmurate.ingest.cleaning import described
from murmurate.mechanisms.flock import Flock
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.spaces.grid import Grid
from murmurate.spaces.plane import Plane

START = datetime(2014, 2, 1, 8, tzinfo=UTC)


def stream(**columns: object) -> pl.DataFrame:
    """Two taxis in Rome that drive, wait and drive for three hours each, a point every half minute."""
    rows = []
    for cab in (156, 187):
        for k in range(360):
            driving = k % 90 < 60
            lat = 41.90 + 0.0005 * (k % 90 if driving else 60) + 0.001 * (cab - 150)
            rows.append(
                (cab, START + timedelta(seconds=30 * k), lat, 12.48 + 0.0002 * (k % 90 if driving else 60), int(driving))
            )
    return pl.DataFrame(rows, schema=["TaxiID", "TimeStamp", "Latitude", "Longitude", "occupied"], orient="row")


def test_a_stream_is_split_by_stays(tmp_path):
    stream().drop("occupied").write_csv(tmp_path / "rome.csv")
    found = look(str(tmp_path / "rome.csv"), read={}, clean={})
    assert found.clean == {"max_speed_kmh": 200.0, "split_gap_s": 300.0, "split_stay_s": 600.0}
    assert found.trips.n_trips > 2
    assert any("raw stream" in note for note in found.notes)
    assert found.protect == "user_day"
    assert found.rough() == {"people": 1, "trips": rounded_down(found.trips.n_trips), "days": 1}


@pytest.mark.parametrize(("purpose", "cut_by"), [("synthetic_trips", "split_stay_s"), ("moved_points", "split_gap_s")])
def test_what_was_chosen_by_looking_is_declared_and_moved_points_are_not_cut_by_places(tmp_path, purpose, cut_by):
    stream().drop("occupied").write_csv(tmp_path / "rome.csv")
    recipe = tmp_path / "recipe.toml"
    done = CliRunner().invoke(
        app, ["start", str(tmp_path / "rome.csv"), "--yes", "--place", "Rome", "--for", purpose, "--recipe", str(recipe)]
    )
    assert done.exit_code == 0, done.output
    made = read_recipe(recipe)
    assert list(made.clean)[-1] == cut_by
    assert CUT_BY_DATA in made.declared


def test_a_stream_with_passengers_is_split_by_them(tmp_path):
    stream().write_csv(tmp_path / "rome.csv")
    found = look(str(tmp_path / "rome.csv"), read={}, clean={})
    assert found.clean["occupied"] == "occupied"
    assert found.trips.n_trips == 8


def test_swapped_places_are_mended_and_said(tmp_path):
    stream().rename({"Latitude": "Longitude", "Longitude": "Latitude"}).write_csv(tmp_path / "rome.csv")
    found = look(str(tmp_path / "rome.csv"), read={}, clean={})
    assert found.read["columns"] == {"lat": "Longitude", "lng": "Latitude"}
    assert 41.8 < found.trips.lat.min() < 42
    assert any("swapped" in note for note in found.notes)


def test_columns_that_somebody_named_are_left_alone(tmp_path):
    swapped = stream().rename({"Latitude": "Longitude", "Longitude": "Latitude"})
    swapped.write_csv(tmp_path / "rome.csv")
    columns = {"lat": "Latitude", "lng": "Longitude"}
    assert look(str(tmp_path / "rome.csv"), read={"columns": columns}, clean={}).trips.lat.max() < 13


def test_boxes_on_offer_are_rounded_or_public(tmp_path):
    stream().write_csv(tmp_path / "rome.csv")
    extent, rome = look(str(tmp_path / "rome.csv"), read={}, clean={}).offers()
    assert all(round(10 * value, 6) == round(10 * value) for value in extent.box)
    assert "roughly where the data lie" in extent.declared
    assert rome.label.startswith("Rome, IT")
    assert "that of Rome, which was offered because many points" in rome.declared


def test_nothing_is_left_of_a_file_of_single_points(tmp_path):
    (tmp_path / "one.csv").write_text(
        "uid,datetime,lat,lng\n1,2014-02-01T08:00:00Z,41.9,12.4\n2,2014-02-01T08:00:00Z,41.9,12.4\n"
    )
    with pytest.raises(InputError, match="nothing is left"):
        look(str(tmp_path / "one.csv"), read={}, clean={"split_gap_s": 300})


def scattered(n: int, *, hours: float = 0.2, swap: bool = False) -> Trips:
    """Trips of two points each in Helsinki."""
    rng = np.random.default_rng(1)
    lat, lng = np.repeat(rng.uniform(60.15, 60.25, n), 2), np.repeat(rng.uniform(24.9, 25.0, n), 2)
    times = [START + timedelta(hours=hours * (k % 2)) for k in range(2 * n)]
    places = (lng, lat) if swap else (lat, lng)
    table = {"uid": np.repeat(np.arange(n), 2), "tid": 0, "datetime": times, "lat": places[0], "lng": places[1]}
    return Trips(pl.DataFrame(table))


def flock(**settings: object) -> Flock:
    return Flock(**{"epsilon": 1.0, "space": Grid(60.1, 24.8, 60.3, 25.1, 1000), **settings})


def test_all_is_well_with_trips_in_the_box():
    assert findings(flock(), scattered(2000)) == []


def test_what_would_be_empty_is_found_before_the_charge():
    elsewhere = flock(space=Grid(41.1, -8.7, 41.2, -8.5, 1000))
    assert findings(elsewhere, scattered(2000))[0].fatal
    assert "swapped" in findings(flock(), scattered(2000, swap=True))[0].remedy
    assert "releases nothing" in findings(flock(epsilon=0.01), scattered(2000))[0].words
    assert "raw stream" in findings(flock(), scattered(2000, hours=9))[0].words
    cleaned = scattered(2000, hours=9)
    known = cleaned.with_source(described(cleaned.identity, {}, {"split_gap_s": 300}))
    assert findings(flock(), known) == []


def test_a_plane_that_does_not_reach_is_found_before_the_charge():
    moved = {"epsilon": 1.0, "radius_m": 200.0}
    assert findings(GeoIndistinguishability(**moved, space=Plane(60.2, 24.95)), scattered(20)) == []
    far = findings(GeoIndistinguishability(**moved, space=Plane(-41.2, 174.8)), scattered(20))
    assert far[0].fatal
    assert "plane:LAT,LNG" in far[0].remedy


def test_weak_promises_are_named():
    assert weakness(flock(), scattered(3)) is None
    assert "e^11" in weakness(flock(epsilon=11.0), scattered(3))
    moved = GeoIndistinguishability(epsilon=1.0, radius_m=200.0, max_points=50)
    assert "times of all points stay exact" in weakness(moved, scattered(3))
    assert "e^50" in weakness(moved, scattered(3))
    assert "names its person" in weakness(moved, scattered(3), keep_ids=True)
    assert weakness(flock(), scattered(3), keep_ids=True) is None  # made-up trips have made-up names


def test_advice_reads_no_data_and_says_when_trips_are_few():
    few = advise(protect="user", box=(60.1, 24.8, 60.3, 25.1), people=10, trips=300)
    assert any("are too few" in reason for reason in few.reasons)
