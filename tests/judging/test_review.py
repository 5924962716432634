"""A release beside its originals: what is refused, with the reason and the way out."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import polars as pl
import pytest

from murmurate import noise
from murmurate.core.ledger import Ledger
from murmurate.core.trips import Trips
from murmurate.custody import door
from murmurate.demo import city
from murmurate.errors import InputError, VerifyError
from murmurate.judging.review import evaluate, review
from murmurate.mechanisms.flock import Flock
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.spaces.grid import Grid
from small_town import GRID, town

MECHANISM = GeoIndistinguishability(epsilon=1.0, radius_m=50.0, max_points=200)


@pytest.fixture
def made(tmp_path):
    trips = city(people=6, days=2, seed=3, interval_s=60, across_km=4.0).trips
    ledger = Ledger.in_memory()
    release = door.release(MECHANISM, trips, ledger=ledger, out=tmp_path / "release", rng=noise.seeded(1))
    yield SimpleNamespace(folder=tmp_path / "release", trips=trips, ledger=ledger, release=release)
    ledger.close()


def elsewhere(trips, lat):
    return Trips(trips.table.with_columns(pl.col("lat") + lat), time_zone=trips.time_zone)


def test_pairs_are_found_through_the_pairing_kept_inside(made):
    seen = review(made.folder, made.trips, ledger=made.ledger)
    assert seen.note == "" and sorted(seen.pairing) == list(range(made.trips.n_trips))
    lengths = np.diff(seen.released.offsets), np.diff(seen.original.offsets)[seen.pairing]
    assert (lengths[0] == lengths[1]).all(), "geoind keeps the number of points of each trip"
    moved = evaluate(seen.released, seen.original, pairing=seen.pairing, metrics=["point_displacement"], workers=1)
    assert 60 < moved["point_displacement.average.mean"].value < 140


def test_without_a_ledger_nothing_is_paired_and_the_reader_is_told(made):
    seen = review(made.folder, made.trips)
    assert seen.pairing is None and "could not be checked" in seen.note


def test_looking_is_logged(made):
    review(made.folder, made.trips, ledger=made.ledger)
    assert "review" in json.dumps([vars(entry) for entry in made.ledger.history()], default=str)


def test_kept_ids_pair_by_themselves(made, tmp_path):
    door.release(MECHANISM, made.trips, ledger=made.ledger, out=tmp_path / "kept", keep_ids=True, rng=noise.seeded(1))
    seen = review(tmp_path / "kept", made.trips)
    assert seen.pairing.tolist() == list(range(made.trips.n_trips))


def test_a_folder_without_a_manifest_is_no_release(made, tmp_path):
    (made.folder / "manifest.json").unlink()
    with pytest.raises(VerifyError, match=r"has no manifest\.json"):
        review(made.folder, made.trips)
    with pytest.raises(VerifyError, match="not a release"):
        review(tmp_path / "nowhere", made.trips)


@pytest.mark.parametrize("number", [0, 2, "1", None])
def test_a_manifest_of_another_version_names_both_versions(made, number):
    path = made.folder / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "format": number}))
    with pytest.raises(VerifyError, match=rf"format {number!r}.*reads format 1"):
        review(made.folder, made.trips)


def test_another_private_file_is_refused_until_forced(made):
    other = made.trips.take_trips(np.arange(made.trips.n_trips - 1))
    with pytest.raises(InputError, match="fingerprint") as told:
        review(made.folder, other, ledger=made.ledger)
    assert "--force" in str(told.value)
    seen = review(made.folder, other, ledger=made.ledger, force=True)
    assert (seen.pairing == -1).sum() == 1, "the trip that is missing has no original"


def test_a_changed_release_is_refused(made):
    data = made.folder / "data.parquet"
    pl.read_parquet(data).head(10).write_parquet(data)
    with pytest.raises(VerifyError, match="hash differs"):
        review(made.folder, made.trips)


def test_sides_that_do_not_overlap_are_told_apart(made):
    seen = review(made.folder, elsewhere(made.trips, 10.0), force=True)
    with pytest.raises(InputError, match="no point of the released side") as told:
        evaluate(seen.released, seen.original, metrics=["visits"], workers=1)
    assert "check that the two belong together" in str(told.value)


def test_an_empty_side_is_told(made):
    none = Trips(made.trips.table.clear(), time_zone=made.trips.time_zone)
    with pytest.raises(InputError, match="the original side has no trip"):
        evaluate(made.release.trips, none, workers=1)


def test_cells_of_different_grids_meet_on_one(made):
    coarse, fine = Grid(*city_box(made.trips), 400.0), Grid(*city_box(made.trips), 200.0)
    mine = cells_only(made.trips, coarse)
    with_cells = cells_only(made.trips, fine)
    scores = evaluate(mine, with_cells, metrics=["visits"], workers=1)
    assert scores.grid == coarse.spec() and scores["visits.jsd"].value < 0.2, "cells are told by their centres"


def test_cells_that_mean_nothing_are_refused(made):
    grid = Grid(*city_box(made.trips), 400.0)
    nameless = Trips(cells_only(made.trips, grid).table)
    with pytest.raises(InputError, match="no space that tells where they are"):
        evaluate(nameless, nameless, metrics=["visits"], workers=1)


def city_box(trips):
    return (trips.lat.min() - 0.01, trips.lng.min() - 0.01, trips.lat.max() + 0.01, trips.lng.max() + 0.01)


def cells_only(trips, grid):
    cell = grid.locate(trips.lat, trips.lng)
    return Trips(trips.table.drop("lat", "lng").with_columns(cell=pl.Series(cell)), grid, trips.time_zone)


def test_an_attack_whose_people_are_too_few_for_the_mechanism_is_skipped_with_its_reason():
    private = town(600)
    with Ledger.in_memory() as ledger:  # at this epsilon flock releases from 424 trips on, and membership gives it 200
        release = door.release(Flock(space=GRID, epsilon=0.5), private, ledger=ledger, rng=noise.seeded(1))
        found = review(release, private, ledger=ledger).run_attacks(attacks=["membership", "copying"])
    assert [score.name for score in found][:1] == ["copying.copies"]
    assert found.skipped["membership"].startswith("flock refused to release some of the people again: a noisy count found")
