"""Matching on a town whose answers are plain to see, and on drives with known links."""

import numpy as np
import polars as pl
import pytest

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.spaces.road import Options, match
from murmurate.spaces.sphere import METRES_PER_DEGREE
from road_town import grid_town, nodes_of, trip
from road_truth import drive, precision_recall


def test_a_drive_round_a_corner(town):
    found = match(trip([(20, 3), (90, -4), (170, 2), (203, 60), (197, 150), (201, 230)]), town)
    assert nodes_of(town, found.path(0)) == [0, 1, 2, 8, 14, 20]
    assert found.distance_m.max() < 5
    assert found.offset_m[0] == pytest.approx(20, abs=0.1)
    assert (found.confidence > 0.5).all()
    assert found.trip_unmatched.tolist() == [0]


def test_direction_is_told_by_the_drive(town):
    there = match(trip([(20, 0), (120, 0), (220, 0)]), town).path(0)
    back = match(trip([(220, 0), (120, 0), (20, 0)]), town).path(0)
    assert nodes_of(town, there) == [0, 1, 2, 3]
    assert nodes_of(town, back) == [3, 2, 1, 0]


def test_links_between_sparse_points_are_filled_in_with_their_times(town):
    found = match(trip([(50, 0), (450, 0)], every_s=60), town)
    assert nodes_of(town, found.path(0)) == [0, 1, 2, 3, 4, 5]
    assert found.path_entered_s == pytest.approx([0, 7.5, 22.5, 37.5, 52.5], abs=0.1)


def test_one_ways_are_never_driven_against():
    town = grid_town(one_way_rows=(0, 1, 2, 3, 4, 5))
    found = match(trip([(420, 2), (320, -3), (220, 1), (120, 0)], every_s=60), town)
    assert (town.link_to[found.path_link] - town.link_from[found.path_link] != -1).all()


def test_points_off_the_map_stay_unmatched(town):
    found = match(trip([(20, 0), (90, 0), (150, -300), (210, 0), (280, 0)]), town)
    assert found.link[2] == -1
    assert np.isnan(found.distance_m[2])
    assert found.confidence[2] == 0
    assert nodes_of(town, found.path(0)) == [0, 1, 2, 3]
    assert found.summary()["points_unmatched"] == 1


def test_a_trip_wholly_elsewhere_has_no_path(town):
    found = match(trip([(5000, 5000), (5100, 5000)]), town)
    assert found.link.tolist() == [-1, -1]
    assert len(found.path(0)) == 0
    assert found.summary()["trips_without_path"] == 1
    assert found.trip_confidence.tolist() == [0.0]


def test_an_outlier_on_another_street_is_left_out(town):
    found = match(trip([(20, 0), (60, 0), (100, 400), (140, 0), (180, 0)], every_s=5), town)
    assert found.link[2] == -1
    assert nodes_of(town, found.path(0)) == [0, 1, 2]


def test_a_leap_begins_a_new_part_and_invents_no_road(town):
    found = match(trip([(20, 0), (60, 0), (90, 0), (20, 500), (60, 500), (90, 500), (130, 500)], every_s=4), town)
    assert found.part.tolist() == [0, 0, 0, 1, 1, 1, 1]
    assert found.path_part.tolist() == [0, 1, 1]
    assert nodes_of(town, found.path(0)[:1]) == [0, 1]
    assert nodes_of(town, found.path(0)[1:]) == [30, 31, 32]


def test_a_long_silence_begins_a_new_part(town):
    times = [0, 10, 2000, 2010]
    found = match(trip([(20, 0), (120, 0), (220, 0), (320, 0)], times_s=times), town)
    assert found.part.tolist() == [0, 0, 1, 1]
    whole = match(trip([(20, 0), (120, 0), (220, 0), (320, 0)], times_s=times), town, options=Options(max_gap_s=3000))
    assert whole.part.tolist() == [0, 0, 0, 0]


def test_a_standing_car_does_not_shuttle(town):
    rng = np.random.default_rng(2)
    waiting = [(150 + dx, dy) for dx, dy in rng.normal(0, 6, (20, 2))]
    found = match(trip([(20, 0), (80, 0), *waiting, (220, 0), (280, 0)]), town)
    assert nodes_of(town, found.path(0)) == [0, 1, 2, 3]


def test_points_every_second_are_thinned_and_still_placed(town):
    """Dense noise alone must not make a drive shuttle; every point still gets a link that was driven."""
    truth = drive(town, n_trips=60, interval_s=1, seed=5, nearest_m=300, farthest_m=700)
    found = match(truth.trips, town)
    precision, recall = precision_recall(truth, found.path_offsets, found.path_link)
    raw = match(truth.trips, town, options=Options(thin_m=0))
    assert precision > precision_recall(truth, raw.path_offsets, raw.path_link)[0]
    assert precision > 0.9
    assert recall > 0.9
    assert (found.link >= 0).mean() > 0.99
    placed = found.link >= 0
    assert (found.distance_m[placed] <= 60).all()
    assert (found.offset_m[placed] <= town.length_m[found.link[placed]] + 1e-6).all()


def test_driving_round_the_block_is_told(town):
    block = [(50, 0), (98, 50), (50, 100), (2, 50), (40, 0), (90, 0), (150, 0)]
    found = match(trip(block, every_s=15), town)
    assert nodes_of(town, found.path(0)) == [0, 1, 7, 6, 0, 1, 2]


def test_one_point_tells_a_place_but_no_drive(town):
    found = match(trip([(50, 3)]), town)
    assert found.link[0] >= 0
    assert len(found.path_link) == 0
    assert found.confidence[0] == pytest.approx(0.5, abs=0.01)


def test_without_times(town):
    timed = trip([(20, 3), (90, -4), (170, 2), (203, 60), (197, 150)])
    untimed = Trips(timed.table.drop("datetime"))
    found = match(untimed, town)
    assert nodes_of(town, found.path(0)) == [0, 1, 2, 8, 14]
    assert np.isnan(found.path_entered_s).all()


def test_touching_a_link_at_the_end_is_not_driving_it(town):
    found = match(trip([(0, 20), (0, 60), (0, 100)]), town)
    assert nodes_of(town, found.path(0)) == [0, 6]


def test_the_path_as_trips(town):
    source = trip([(50, 0), (450, 0)], every_s=60)
    links = match(source, town).to_trips(source, town)
    assert links.link.tolist() == match(source, town).path(0).tolist()
    assert links.space is town
    assert links.n_trips == 1
    assert links.table["datetime"].is_sorted()


def many(town, n_trips=40):
    return drive(town, n_trips=n_trips, interval_s=10, seed=3, nearest_m=200, farthest_m=700)


def test_processes_change_nothing(town):
    trips = many(town).trips
    one, two = match(trips, town), match(trips, town, workers=2)
    for name in ("link", "part", "path_offsets", "path_link", "path_part"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))
    np.testing.assert_array_equal(one.path_entered_s, two.path_entered_s)
    assert one.n_trips == two.n_trips == 40


PER_POINT = ("link", "offset_m", "distance_m", "confidence", "part")
PER_LINK = ("path_link", "path_part", "path_elapsed_s", "path_entered_s")


def renamed(trips, tid, *, years=0, east_m=0.0):
    """The same trips under other names, so many years later, so far to the east."""
    table = trips.table.with_columns(
        pl.col("uid").cast(pl.String),
        pl.col("tid") + tid,
        pl.col("datetime").dt.offset_by(f"{years}y"),
        pl.col("lng") + east_m / METRES_PER_DEGREE,
    )
    return table.select("uid", "tid", "datetime", "lat", "lng")


def assert_matched_alone(trips, town, matcher):
    """Everything found for a trip is, bit by bit, what is found when it is the only one."""
    together = match(trips, town, matcher=matcher)
    for k in range(trips.n_trips):
        alone = match(trips.take_trips([k]), town, matcher=matcher)
        points = slice(together.offsets[k], together.offsets[k + 1])
        links = slice(together.path_offsets[k], together.path_offsets[k + 1])
        for names, span in ((PER_POINT, points), (PER_LINK, links)):
            for name in names:
                np.testing.assert_array_equal(getattr(together, name)[span], getattr(alone, name), err_msg=name)


@pytest.mark.parametrize("matcher", ["markov", "nearest"])
@pytest.mark.parametrize(
    "others",
    [
        {"years": -70}, {"years": 19}, {"years": 230}, {"east_m": 40_000.0}, {"east_m": 1_000_000.0, "years": -70}, {},
    ],
    ids=["1900", "1989", "2200", "far away", "far away in 1900", "the same again"],
)  # fmt: skip
@pytest.mark.parametrize("order", ["before", "after", "between"])
def test_each_trip_is_matched_as_if_it_were_alone(town, others, matcher, order):
    """A clock of the whole file, or any number taken over it, would pass one trip's times on to the others."""
    mine = many(town, 12).trips
    table, more = renamed(mine, 0), renamed(mine.take_trips([3, 7]), 1000, **others)
    half = mine.offsets[6]
    parts = {
        "before": [more, table], "after": [table, more], "between": [table[:half], more, table[half:]],
    }[order]  # fmt: skip
    assert_matched_alone(Trips(pl.concat(parts)), town, matcher)


def test_a_trip_that_no_road_explains_changes_no_other(town):
    mine = many(town, 6).trips
    nowhere = renamed(trip([(5000, 5000), (5100, 5000)], tid=500), 0, years=-70)
    single = renamed(trip([(50, 3)], tid=501), 0, years=230)
    assert_matched_alone(Trips(pl.concat([nowhere, renamed(mine, 0), single])), town, "markov")


def test_paths_are_connected_and_times_run_forward(town):
    found = match(many(town).trips, town)
    same = (np.diff(found.path_trip) == 0) & (np.diff(found.path_part) == 0)
    assert (town.link_to[found.path_link[:-1]] == town.link_from[found.path_link[1:]])[same].all()
    assert (np.diff(found.path_entered_s)[same] >= 0).all()


def test_no_trips_at_all(town):
    empty = Trips(pl.DataFrame(schema={"uid": pl.String, "tid": pl.Int64, "lat": pl.Float64, "lng": pl.Float64}))
    found = match(empty, town)
    assert found.n_trips == 0
    assert found.summary()["points"] == 0
    assert found.trip_confidence.size == found.trip_unmatched.size == 0


@pytest.mark.parametrize(
    "wrong",
    [
        {"radius_m": 0},
        {"sigma_m": -1},
        {"beta_m": 0.0},
        {"candidates": 0},
        {"turn_weight": 2},
        {"max_skipped": -1},
        {"back_m": -3},
    ],
)
def test_options_that_make_no_sense_are_refused(wrong):
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        Options(**wrong)


def test_bad_questions(town):
    with pytest.raises(ParameterError, match="markov, nearest, valhalla"):
        match(trip([(0, 0)]), town, matcher="magic")
    places = Trips(pl.DataFrame({"uid": ["a"], "tid": [1], "link": [3]}), town)
    with pytest.raises(InputError, match="lat and lng"):
        match(places, town)


def test_known_drives_in_the_town(town):
    truth = drive(town, n_trips=200, interval_s=15, seed=8, nearest_m=300, farthest_m=700)
    found = match(truth.trips, town)
    precision, recall = precision_recall(truth, found.path_offsets, found.path_link)
    assert precision > 0.9
    assert recall > 0.9
    sure = found.confidence > 0.9
    right = found.link == truth.point_link
    assert right[sure].mean() > right[~sure].mean() + 0.1  # confidence means something


@pytest.mark.data
@pytest.mark.parametrize(("interval_s", "wanted"), [(15, 0.94), (60, 0.87)])
def test_known_drives_in_san_francisco(sf, interval_s, wanted):
    truth = drive(sf, n_trips=150, interval_s=interval_s, seed=11)
    found = match(truth.trips, sf)
    precision, recall = precision_recall(truth, found.path_offsets, found.path_link)
    assert precision >= wanted
    assert recall >= wanted


@pytest.mark.data
def test_outliers_and_gaps_in_san_francisco(sf):
    """Three points in a hundred leap 400 m, and a tenth are missing: links stay right."""
    truth = drive(sf, n_trips=100, interval_s=10, seed=12)
    rng = np.random.default_rng(0)
    leap = rng.random(truth.trips.n_points) < 0.03
    lat = np.where(leap, truth.trips.lat + 400 / 111_195, truth.trips.lat)
    broken = truth.trips.with_columns({"lat": lat}).take_points(rng.random(truth.trips.n_points) > 0.1)
    found = match(broken, sf)
    precision, recall = precision_recall(truth, found.path_offsets, found.path_link)
    assert precision > 0.9
    assert recall > 0.9


@pytest.mark.data
def test_taxis_of_san_francisco(sf, data_dir):
    table = pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet").head(60_000)
    names = {"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"}
    trips = Trips(table.rename(names))
    near = sf.locate(trips.lat, trips.lng) >= 0
    found = match(trips, sf)
    assert near.mean() > 0.5
    assert ((found.link >= 0) & (found.distance_m <= 50))[near].mean() >= 0.99
    assert (found.link[~near] == -1).all()
