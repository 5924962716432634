from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest

from murmurate import noise
from murmurate.core import shuffle
from murmurate.core.pseudonyms import write_trips
from murmurate.core.trips import Trips


def made(people=6, trips=4, points=5):
    rows = [
        (
            f"person{u}",
            t,
            datetime(2024, 1, 1 + t // 2, 8, p, tzinfo=UTC),
            60 + u * 0.1 + t * 0.01,
            24 + p * 0.001,
            f"secret{u}",
            u,
        )
        for u in range(people)
        for t in range(trips)
        for p in range(points)
    ]
    return Trips(pl.DataFrame(rows, schema=["uid", "tid", "datetime", "lat", "lng", "carried", "cell"], orient="row"))


def written(tmp_path, parts, **options):
    path = tmp_path / "data.parquet"
    options.setdefault("rng", noise.seeded(7))
    write_trips(parts, path, emits=("datetime", "lat", "lng"), **options)
    frame = pl.read_parquet(path)
    assert set(frame.columns) - {"geometry"} <= {"uid", "tid", "datetime", "lat", "lng"}
    return frame.drop("geometry")


def test_only_what_a_mechanism_emits_leaves(tmp_path):
    assert written(tmp_path, [made()]).columns == ["uid", "tid", "datetime", "lat", "lng"]


def test_no_original_name_is_in_the_bytes(tmp_path):
    written(tmp_path, [made()])
    content = (tmp_path / "data.parquet").read_bytes()
    assert b"person" not in content
    assert b"secret" not in content


def test_every_trip_arrives_whole_and_in_order(tmp_path):
    trips = made()
    frame = written(tmp_path, [trips])
    seen = {
        tuple(group["lat"].to_list() + group["lng"].to_list()) for _, group in frame.group_by("uid", "tid", maintain_order=True)
    }
    expected = {
        tuple(trips.lat[a:b].tolist() + trips.lng[a:b].tolist())
        for a, b in zip(trips.offsets[:-1], trips.offsets[1:], strict=True)
    }
    assert seen == expected
    assert Trips(frame).table.equals(frame.select(Trips(frame).columns))  # already in the order of its own names


@pytest.mark.parametrize(("link", "people"), [("none", 24), ("day", 12), ("user", 6)])
def test_link_decides_who_shares_a_name(tmp_path, link, people):
    assert written(tmp_path, [made()], link=link)["uid"].n_unique() == people


def test_order_tells_nothing_of_who_is_who(tmp_path):
    """Neighbours in the file come from one person no more often than under a random order."""
    trips = made(people=50, trips=10, points=1)
    frame = written(tmp_path, [trips])
    person = ((frame["lat"] - 60) / 0.1 + 1e-6).floor().to_numpy()
    same = float(np.mean(person[1:] == person[:-1]))
    assert same < 0.08  # 9 of 499 others: .018 expected, sd .006
    assert np.mean(trips.trip_user[1:] == trips.trip_user[:-1]) > 0.8  # the measure notices an unshuffled file


@pytest.mark.parametrize("read", [None, 120, 5000])
def test_parts_and_row_groups_change_nothing_but_names(tmp_path, monkeypatch, read):
    """The same rows in the same groups, whatever number of points was read before bounds cut them."""
    trips = made()
    whole = written(tmp_path, [trips])
    monkeypatch.setattr(shuffle, "POINTS_PER_GROUP", 50)
    parts = written(tmp_path, trips.partitions(10), n_points=read)
    assert sorted(whole["lat"].to_list()) == sorted(parts["lat"].to_list())
    assert parts["tid"].n_unique() == 24
    assert parts["uid"].is_sorted()
    metadata = pq.ParquetFile(tmp_path / "data.parquet").metadata
    assert [metadata.row_group(k).num_rows for k in range(metadata.num_row_groups)] == [50, 50, 20]


def test_names_are_told_to_the_pairing_alone(tmp_path):
    heard = []
    frame = written(tmp_path, [made()], on_part=heard.append)
    pairs = {
        (uid, tid): (original, trip)
        for uid, tid, original, trip in zip(
            heard[0].uid.to_list(),
            heard[0].tid.to_list(),
            heard[0].original_uid.to_list(),
            heard[0].original_tid.to_list(),
            strict=True,
        )
    }
    for uid, tid, lat in frame.select("uid", "tid", "lat").iter_rows():
        original, trip = pairs[(uid, tid)]
        assert lat == pytest.approx(60 + int(original.removeprefix("person")) * 0.1 + trip * 0.01)


def test_kept_names_are_the_originals(tmp_path):
    frame = written(tmp_path, made().partitions(20), keep_ids=True)
    assert frame["uid"].unique().sort().to_list() == [f"person{u}" for u in range(6)]
    assert frame.height == made().n_points


def test_nothing_to_write_is_an_empty_table(tmp_path):
    assert written(tmp_path, []).height == 0


def test_times_are_kept(tmp_path):
    frame = written(tmp_path, [made(people=1, trips=1)])
    assert frame["datetime"].to_list() == [datetime(2024, 1, 1, 8, tzinfo=UTC) + timedelta(minutes=p) for p in range(5)]


def test_no_column_can_miss_a_value(tmp_path):
    written(tmp_path, [made()])
    assert not any(field.nullable for field in pq.read_schema(tmp_path / "data.parquet"))
