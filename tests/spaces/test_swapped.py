"""Exchanged coordinates are noticed anywhere by one of three signs, and never in real or ordinary data."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.core.trips import Trips
from murmurate.custody.looking import findings
from murmurate.ingest.inspect import inspect
from murmurate.spaces.swapped import why_swapped


def walks(lat, lng, *, swap=False, wide=1.0, n=60):
    """Random walks of twenty steps of about 100 m around a place, `wide` times wider from west to east."""
    rng = np.random.default_rng(4)
    steps = rng.normal(0, 0.001, (n, 20, 2)).cumsum(axis=1)
    north, east = lat + steps[..., 0], lng + wide * steps[..., 1] / np.cos(np.radians(lat))
    first, second = (east, north) if swap else (north, east)
    trip = np.repeat(np.arange(n), 20)
    start = datetime(2024, 5, 1, 8, tzinfo=UTC)
    return Trips(
        pl.DataFrame(
            {
                "uid": trip,
                "tid": trip,
                "datetime": [start + timedelta(minutes=k % 20) for k in range(20 * n)],
                "lat": first.ravel(),
                "lng": second.ravel(),
            }
        )
    )


PLACES = {
    "Helsinki": (60.2, 24.9, "no known city"),
    "Rome": (41.9, 12.5, "no known city"),
    "a village in Lapland": (68.9, 27.0, "sea|narrow"),
    "a village in Brittany": (48.1, -3.5, "sea"),
    "a town in the Urals": (57.4, 56.8, "narrow"),
    "a village in Rajasthan": (26.3, 72.1, "narrow|sea"),
    "a village in Maine": (45.4, -69.2, "narrow"),
}


@pytest.mark.parametrize("name", PLACES)
@pytest.mark.parametrize("wide", [0.8, 1.0, 1.25])
def test_it_is_noticed_in_any_region_and_nothing_is_said_of_the_right_order(name, wide):
    lat, lng, sign = PLACES[name]
    said = why_swapped(walks(lat, lng, swap=True, wide=wide))
    assert said is not None and any(word in said for word in sign.split("|")), said
    assert why_swapped(walks(lat, lng, wide=wide)) is None


def test_nothing_is_said_where_nothing_can_be_told():
    assert why_swapped(walks(37.8, -122.4)) is None  # exchanged, it would be no latitude
    assert why_swapped(walks(57.4, 56.8, swap=True, n=3)) is None  # too few steps to have a shape
    assert why_swapped(walks(1.0, 32.0, swap=True)) is None  # at the equator both have one shape


def test_it_is_said_with_what_to_type_before_a_charge_and_by_inspect(tmp_path):
    swapped = walks(57.4, 56.8, swap=True)
    (found,) = findings(mm.GeoIndistinguishability(epsilon=1.0, radius_m=100.0, max_points=30), swapped)
    assert "swapped" in found.words and "--column lat=... --column lng=..." in found.remedy
    swapped.table.write_csv(tmp_path / "swapped.csv", datetime_format="%Y-%m-%dT%H:%M:%SZ")
    assert "--column lat=lng --column lng=lat" in inspect(tmp_path / "swapped.csv").words()


@pytest.mark.parametrize("file", ["rome_taxi_sample.csv", "geolife_60s.parquet", "sf_taxi_dploc200_trips.parquet"])
def test_real_files_are_left_as_they_are(data_dir, file):
    table = pl.scan_csv(data_dir / file) if file.endswith("csv") else pl.scan_parquet(data_dir / file)
    assert why_swapped(mm.read(table.head(20_000).collect())) is None
