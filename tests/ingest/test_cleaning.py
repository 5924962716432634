"""Cleaning as settings: the same trips in memory and in parts, each person by themselves."""

from dataclasses import fields
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from murmurate.core.trips import Trips
from murmurate.custody.recipes import CLEAN_KEYS
from murmurate.errors import InputError, ParameterError
from murmurate.ingest.cleaning import CleanedPartitions, Cleaning
from murmurate.ingest.read import read
from murmurate.ingest.segment import split_stays
from murmurate.ingest.stream import scan

START = datetime(2024, 5, 3, 8, tzinfo=UTC)


def stream(people: int = 3, legs: int = 4) -> pl.DataFrame:
    """Raw streams: each person drives, pauses for half an hour without a point, drives on."""
    rows = []
    for person in range(people):
        moment = START + timedelta(minutes=7 * person)
        for leg in range(legs):
            for step in range(10):
                rows.append((f"p{person}", moment, 60.1 + 0.01 * leg + 0.001 * step, 24.9 + 0.01 * person))
                moment += timedelta(seconds=30)
            moment += timedelta(minutes=30)
    return pl.DataFrame(rows, schema=["uid", "datetime", "lat", "lng"], orient="row").with_columns(tid=pl.lit(0))


def test_a_stream_is_split_and_keeps_the_identity_of_its_file():
    raw = Trips(stream())
    cleaned, removed = Cleaning(split_gap_s=300).apply(raw)
    assert (raw.n_trips, cleaned.n_trips) == (3, 12)
    assert cleaned.trip_ids.to_list() == [0, 1, 2, 3] * 3
    assert cleaned.identity.fingerprint == raw.identity.fingerprint
    assert [one.step for one in removed] == ["split_gaps", "drop_single_visits"]


def test_names_of_trips_follow_from_the_persons_own_rows():
    everybody, _ = Cleaning(split_gap_s=300, max_speed_kmh=200).apply(Trips(stream()))
    for person in ("p0", "p1", "p2"):
        alone, _ = Cleaning(split_gap_s=300, max_speed_kmh=200).apply(Trips(stream().filter(pl.col("uid") == person)))
        assert alone.table.equals(everybody.table.filter(pl.col("uid") == person))


def test_a_stay_ends_a_trip():
    times = [START + timedelta(minutes=m) for m in (0, 1, 2, 5, 9, 13, 14, 15)]
    lat = [60.10, 60.11, 60.12, 60.1201, 60.12, 60.1201, 60.13, 60.14]
    private = Trips(pl.DataFrame({"uid": "a", "tid": 7, "datetime": times, "lat": lat, "lng": 24.9}))
    split, removed = split_stays(private, min_stay_s=600)
    assert split.offsets.tolist() == [0, 3, 6]
    assert np.allclose(split.lat, [60.10, 60.11, 60.12, 60.1201, 60.13, 60.14])
    assert (removed.points, removed.trips) == (2, -1)
    assert split_stays(private, min_stay_s=700)[0].n_trips == 1
    again, nothing = split_stays(split, min_stay_s=600)
    assert again.table.equals(split.table)
    assert nothing.points == 0


def test_parts_are_cleaned_as_the_whole_is(tmp_path):
    stream().drop("tid").with_columns(occupied=1).write_csv(tmp_path / "raw.csv")
    cleaning = Cleaning(split_gap_s=300, occupied="occupied")
    whole, _ = cleaning.apply(read(tmp_path / "raw.csv"))
    with CleanedPartitions(scan(tmp_path / "raw.csv", points_per_partition=30, carry=("occupied",)), cleaning) as parts:
        again = pl.concat([part.table for part in parts])
        assert parts.n_points == whole.n_points
    assert again.equals(whole.table)


def test_settings_come_back_and_unknown_ones_are_refused():
    settings = {"split_gap_s": 300, "max_speed_kmh": 200.0}
    assert Cleaning.of(settings).settings() == {**settings, "stay_m": 100.0, "min_points": 2}
    assert Cleaning.of({}) is None
    assert tuple(item.name for item in fields(Cleaning)) == CLEAN_KEYS
    with pytest.raises(ParameterError, match="Did you mean 'split_gap_s'"):
        Cleaning.of({"split_gap": 300})
    for wrong in ({"split_gap_s": 0}, {"max_speed_kmh": "fast"}, {"occupied": ""}, {"min_points": 0}):
        with pytest.raises(ParameterError):
            Cleaning.of(wrong)


def test_trips_without_times_cannot_be_cleaned():
    with pytest.raises(InputError, match="needs the time"):
        Cleaning(split_gap_s=300).apply(Trips(stream().drop("datetime")))
