"""Mechanisms on every kind of place: what a unit costs, releases that are evaluated and drawn, and refusals before a charge."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import mechanisms, noise
from murmurate.asking.meter import spent_share
from murmurate.cli import main
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.judging.review import review
from murmurate.mechanisms.ngram import NGram
from murmurate.mechanisms.od_counts import ODCounts
from murmurate.releases.folder import open_release
from murmurate.report.page import write_report
from murmurate.spaces.hexes import Hexes
from murmurate.spaces.places import write_places
from murmurate.spaces.stops import Stops
from murmurate.spaces.zones import Zones
from test_contract import leaking_files, signed

KINDS = ("grid", "hex", "zones", "stops")
every_kind = pytest.mark.parametrize("kind", KINDS)


@pytest.fixture(scope="module")
def city() -> Any:
    return mm.demo.city(people=40, days=4, seed=3, interval_s=120)


@pytest.fixture(scope="module")
def places(city, tmp_path_factory) -> dict[str, Places]:
    folder = tmp_path_factory.mktemp("places")
    grid = city.grid(1500.0)
    write_places(grid, folder / "zones.geojson")
    lat, lng = grid.centre(np.arange(grid.n_cells))
    rows = "\n".join(["lat,lng", *(f"{a},{b}" for a, b in zip(lat, lng, strict=True))])
    (folder / "stops.csv").write_text(rows)
    return {
        "grid": grid,
        "hex": Hexes(7, *city.box),
        "zones": Zones.read(folder / "zones.geojson"),
        "stops": Stops.read(folder / "stops.csv"),
    }


def made(name: str, space: Places, unit: str = "trip") -> Any:
    if name == "od_counts":
        return ODCounts(epsilon=60.0, space=space, unit=unit)
    return NGram(epsilon=60.0, space=space, unit=unit, max_trips=None if unit == "trip" else 4, n_out=200)


@every_kind
@pytest.mark.parametrize("name", ["od_counts", "ngram"])
@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_a_unit_costs_no_more_than_the_promise(city, places, kind, name, unit):
    table = city.trips.table.select(pl.col("uid").cast(pl.String), pl.col("tid").cast(pl.Int64), "datetime", "lat", "lng")
    one = table.filter(pl.col("tid") == table["tid"][0])
    crowd = [
        one.with_columns(uid=pl.lit("canary"), tid=pl.lit(10**7 + k, pl.Int64)) for k in range(1 if unit == "trip" else 500)
    ]
    # the same trip along the edge of the places: some points have a place, some have none
    edge = one.with_columns(
        uid=pl.lit("canary"), tid=pl.lit(10**8, pl.Int64), lng=pl.col("lng") + 0.1 * pl.int_range(pl.len()) / pl.len()
    )
    private, without = (Trips(rows, time_zone=city.trips.time_zone) for rows in (pl.concat([table, *crowd]), table))
    shares = [spent_share(made(name, places[kind], unit), private, without, noise.seeded(7))]
    if unit == "trip":
        beyond = Trips(pl.concat([table, edge]), time_zone=city.trips.time_zone)
        shares.append(spent_share(made(name, places[kind], unit), beyond, without, noise.seeded(7)))
    assert all(sum(share.values()) <= 1 for share in shares) and sum(shares[0].values()) > 0


@every_kind
def test_trips_on_places_are_released_evaluated_and_drawn(city, places, kind, tmp_path):
    ledger = mm.Ledger.in_memory()
    private = signed(city.trips)
    release = mm.release(made("ngram", places[kind]), private, ledger=ledger, out=tmp_path / "release", rng=noise.seeded(1))
    assert leaking_files(release.folder) == [] and mm.verify(release.folder)["guarantee"].startswith("follows")
    again = open_release(release.folder, read_space=True)  # the file of the zones is not here
    assert again.space.n_cells == places[kind].n_cells and again.trips.cell.max() < places[kind].n_cells
    seen = review(release.folder, private, ledger=ledger)
    scores = seen.take_metrics(
        metrics=["visits", "range_queries", "od_queries", "od_matrix", "od_emd_whole", "hot_spots", "adatrace_kendall"]
    )
    assert not scores.skipped and all(np.isfinite(score.value) for score in scores)
    assert scores["visits.jsd"].value < 0.5 and seen.verdict(scores).paragraph
    for public in (True, False):
        page = write_report(tmp_path / f"{public}.html", seen, scores, public=public).read_text()
        assert ("Cells of" in page) == (kind == "grid") and 'class="d' in page


@every_kind
def test_a_fitted_model_is_sampled_without_the_file_of_its_places(city, places, kind, tmp_path):
    fitted = mm.fit(
        made("ngram", places[kind]), city.trips, ledger=mm.Ledger.in_memory(), out=tmp_path / "m", rng=noise.seeded(1)
    )
    drawn = mm.sample(tmp_path / "m", n_out=20, out=tmp_path / "s", rng=noise.seeded(2))
    assert drawn.trips.n_trips == 20 and fitted.manifest.parameters["space"] == places[kind].spec()


@every_kind
def test_company_is_evaluated_on_every_kind_of_place(city, places, kind):
    released = mechanisms.example("k_anonymity", city.spaces()).apply(city.trips, noise.seeded(1))
    scores = mm.evaluate(released, city.trips, grid=places[kind], metrics=["visits", "range_queries", "od_matrix"])
    same = mm.evaluate(city.trips, city.trips, grid=places[kind], metrics=["visits", "range_queries", "od_matrix"])
    assert not scores.skipped and scores.grid == places[kind].spec() and scores["visits.jsd"].value > 0
    assert all(score.value == 0 for score in same)


def test_zones_cut_from_a_grid_give_the_scores_of_the_grid(city, places):
    released = mechanisms.example("geoind", city.spaces()).apply(city.trips, noise.seeded(1))
    metrics = ["visits", "counting_queries", "top_places", "od_matrix"]
    one, other = (mm.evaluate(released, city.trips, grid=places[kind], metrics=metrics) for kind in ("grid", "zones"))
    apart = {a.name: abs(a.value - b.value) for a, b in zip(one, other, strict=True) if ".zones." not in a.name}
    assert max(apart.values()) < 1e-9  # coarse zones are equal squares over the box, whatever the places


@pytest.mark.parametrize("name", ["flock", "dp_loc", "plausible"])
@pytest.mark.parametrize("kind", ["hex", "zones", "stops"])
def test_what_needs_squares_says_so_before_the_charge(city, places, name, kind, tmp_path, monkeypatch, capsys):
    write_places(places["grid"], tmp_path / "zones.geojson")
    (tmp_path / "stops.csv").write_text("lat,lng\n45.0,-30.0\n45.01,-30.0\n")
    city.trips.table.write_csv(tmp_path / "trips.csv")
    word = {
        "hex": places["hex"].spec(),
        "zones": f"zones:{tmp_path / 'zones.geojson'}",
        "stops": f"stops:{tmp_path / 'stops.csv'}",
    }
    options = ["--in", str(tmp_path / "trips.csv"), "--out", str(tmp_path / "out"), "--ledger", str(tmp_path / "l.sqlite")]
    monkeypatch.setattr("sys.argv", ["murmurate", "release", name, *options, "--space", word[kind], "--set", "epsilon=2"])
    with pytest.raises(SystemExit) as stopped:
        main()
    words = " ".join("".join(capsys.readouterr()).split())
    assert stopped.value.code == 2 and "grid:SOUTH,WEST,NORTH,EAST:CELL_M" in words and "nothing was spent" in words
    assert "POLYGON" not in words and len(words) < 500
    assert not (tmp_path / "l.sqlite").exists() and not (tmp_path / "out").exists()
