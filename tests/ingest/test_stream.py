"""Files bigger than memory: parts of whole people, the same as reading at once."""

from __future__ import annotations

import gc
import gzip

import numpy as np
import polars as pl
import pyarrow.parquet as pq
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.engine import Serial
from murmurate.errors import InputError, OutputError
from murmurate.ingest import people, shuffle
from murmurate.ingest.buckets import PartsFolder, read_runs
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.options import ReadOptions
from murmurate.ingest.packed import Blocks, Packed
from murmurate.ingest.pieces import pieces_of, read_piece
from murmurate.ingest.read import find_files, read
from murmurate.ingest.runs import Runs
from murmurate.ingest.stream import _Reading, scan, worth_streaming


def traces(people=40, points=50, seed=1, decimals=6, fraction=False):
    rng = np.random.default_rng(seed)
    n = people * points
    uid = np.repeat(np.arange(people), points)
    times = 1_600_000_000_000_000 + np.arange(n) * (1_500_000 if fraction else 30_000_000)
    return pl.DataFrame(
        {
            "uid": [f"p{k:04d}" for k in uid],
            "tid": np.arange(n) // 10,
            "datetime": pl.Series(times).cast(pl.Datetime("us")).dt.replace_time_zone("UTC"),
            "lat": np.round(rng.uniform(60, 61, n), decimals),
            "lng": np.round(rng.uniform(24, 25, n), decimals),
        }
    )


def gathered(partitions):
    parts = list(partitions)
    people = [set(part.user_ids) for part in parts]
    assert sum(map(len, people)) == len(set().union(*people)), "a person is in two parts"
    assert sum(part.n_points for part in parts) == partitions.n_points
    return pl.concat([part.table for part in parts]).sort("uid", "tid", "datetime"), parts


WAYS = {
    "held": {"points_per_partition": 300},
    "read again": {"points_per_partition": 300, "hold_points": 500},
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("order", ["grouped", "shuffled", "by time"])
@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_parts_hold_what_reading_gives(tmp_path, way, order, suffix):
    frame = traces(decimals=9 if order == "by time" else 6, fraction=order == "by time")
    if order == "shuffled":
        frame = frame.sample(fraction=1, shuffle=True, seed=3)
    elif order == "by time":
        frame = frame.sort(pl.col("datetime").dt.second(), "lat")
    path = tmp_path / f"traces.{suffix}"
    if suffix == "csv":
        frame.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%S%.6fZ")).write_csv(path)
    else:
        frame.write_parquet(path, row_group_size=170)
    whole = read(path)
    work = tmp_path / "work"
    work.mkdir()
    with scan(path, work_dir=work, **WAYS[way]) as partitions:
        assert partitions.identity.fingerprint == whole.identity.fingerprint
        assert set(partitions.identity.uids) == set(whole.identity.uids)
        assert len(partitions.identity.uids) == whole.n_users
        assert partitions.columns == whole.columns
        assert partitions.carries() == whole.carries()
        for _ in range(2):
            table, parts = gathered(partitions)
            assert table.equals(whole.table)
            assert len(parts) > 3
            for part in parts:
                fresh = type(part)(part.table)
                assert fresh.table.equals(part.table), "each part is sorted as Trips demand"
                assert np.array_equal(fresh.offsets, part.offsets)
                assert np.array_equal(fresh.user_offsets, part.user_offsets)
    assert not list(work.iterdir()), "the work folder is left clean"


class Two(Serial):
    """Runs pieces here as an engine of two workers would."""

    workers = 2


@pytest.mark.parametrize("group", [7, 50, 170])
@pytest.mark.parametrize("people", [2, 40])
@pytest.mark.parametrize("files", [1, 3])
def test_pieces_read_by_workers_hold_what_reading_gives(tmp_path, group, people, files):
    """People at the edges of row groups and files are whole."""
    frame = traces(people=people, points=2000 // people).with_columns(speed=pl.int_range(pl.len()))
    (tmp_path / "in").mkdir()
    size = -(-frame.height // files)
    for k in range(files):
        frame.slice(k * size, size).write_parquet(tmp_path / "in" / f"{k}.parquet", row_group_size=group)
    one, other = ReadReport(), ReadReport()
    whole = read(tmp_path / "in", report=one)
    work = tmp_path / "work"
    work.mkdir()
    kept = {"carry": ("speed",), "points_per_partition": 300, "work_dir": work}
    with scan(tmp_path / "in", engine=Two(), report=other, **kept) as parts:
        assert set(parts.identity.uids) == set(whole.identity.uids)
        assert (parts.identity.fingerprint, parts.columns) == (whole.identity.fingerprint, whole.columns)
        assert gathered(parts)[0].equals(whole.table)
        assert all(name.startswith("part-") and len(name) == 21 for name in parts._names)
    assert one == other
    assert not list(work.iterdir())


@pytest.mark.parametrize("trouble", ["fault", "shuffled", "person again", "strict"])
def test_what_workers_cannot_read_is_read_here(tmp_path, trouble):
    frame = traces()
    if trouble == "fault":
        frame = frame.with_columns(lat=pl.when(pl.int_range(pl.len()) == 990).then(99.0).otherwise("lat"))
    elif trouble == "shuffled":
        frame = frame.sample(fraction=1, shuffle=True, seed=3)
    elif trouble == "person again":
        frame = pl.concat([frame, frame.slice(0, 20).with_columns(tid=pl.lit(9999, pl.Int64))])
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=100)
    report = ReadReport()
    options = {"points_per_partition": 300, "work_dir": tmp_path / "work", "engine": Two(), "report": report}
    if trouble == "fault":
        with pytest.raises(InputError, match="row 991"):
            scan(tmp_path / "x.parquet", **options)
    else:
        with scan(tmp_path / "x.parquet", strict=trouble == "strict", **options) as parts:
            assert gathered(parts)[0].height == report.points == report.rows == frame.height
    assert not (tmp_path / "work").exists()


def test_the_footer_is_parsed_once_however_many_pieces_are_read(tmp_path, monkeypatch):
    """That of a large file takes megabytes, which would stay until Python looks for cycles."""
    traces().write_parquet(tmp_path / "t.parquet", row_group_size=50)
    options, parsed = ReadOptions(carry=()), []
    open_file, read_footer = pq.ParquetFile, pq.read_metadata
    monkeypatch.setattr(
        pq, "ParquetFile", lambda *given, metadata=None, **named: open_file(*given, metadata=_noted(parsed, metadata), **named)
    )
    monkeypatch.setattr(pq, "read_metadata", lambda path: _noted(parsed, None) or read_footer(path))
    pieces = pieces_of(find_files(tmp_path / "t.parquet", options, ReadReport()), options, 200)
    assert all(read_piece(options, piece) is not None for piece in pieces)
    assert (len(pieces), len(parsed)) == (10, 1)


def _noted(parsed, metadata):
    """Note that a footer is parsed, unless it is given."""
    if metadata is None:
        parsed.append(1)
    return metadata


def test_a_file_that_was_written_anew_is_read_by_its_new_footer(tmp_path):
    for count in (40, 30):
        traces(people=count).write_parquet(tmp_path / "t.parquet")
        assert read(tmp_path / "t.parquet").n_users == count


def written_text(frame: pl.DataFrame, path) -> None:
    """Write times with their offset, as text."""
    frame.with_columns(pl.col("datetime").dt.strftime("%Y-%m-%dT%H:%M:%SZ")).write_csv(path)


@pytest.mark.parametrize("people", [2, 40])
@pytest.mark.parametrize("order", ["grouped", "shuffled"])
def test_text_is_read_by_workers_line_by_line(tmp_path, monkeypatch, people, order):
    """Pieces end where lines do; people whose rows are cut are whole again."""
    monkeypatch.setattr(_Reading, "first_pass", lambda *_: pytest.fail("read by one process"))
    frame = traces(people=people, points=2000 // people).with_columns(uid=pl.format("é{}", "uid"))
    frame = frame.sample(fraction=1, shuffle=True, seed=3) if order == "shuffled" else frame
    written_text(frame, tmp_path / "x.csv")
    one, other = ReadReport(), ReadReport()
    whole = read(tmp_path / "x.csv", report=one)
    (tmp_path / "work").mkdir()
    with scan(tmp_path / "x.csv", points_per_partition=150, work_dir=tmp_path / "work", engine=Two(), report=other) as parts:
        found = pl.concat([part.table for part in parts]).sort("uid", "tid", "datetime", maintain_order=True)
        assert found.equals(whole.table.sort("uid", "tid", "datetime", maintain_order=True))
    assert one == other


@pytest.mark.parametrize("trouble", ["fault", "quotes", "another form", "day or month", "row numbers", "zip"])
def test_text_that_workers_cannot_share_is_read_here(tmp_path, trouble):
    frame = traces()
    options = {"points_per_partition": 300, "work_dir": tmp_path / "work", "engine": Two(), "report": ReadReport()}
    path = tmp_path / "x.csv"
    written_text(frame, path)
    lines = path.read_text().splitlines()
    if trouble == "fault":
        lines[991] = lines[991].replace("2020-", "year-")
    elif trouble == "quotes":
        lines[501] = '"' + lines[501].replace(",", '",', 1)
    elif trouble == "another form":
        lines[900:] = [line.replace("Z,", "+01:00,") for line in lines[900:]]
    elif trouble == "day or month":  # the first thousand rows are of the 13th and more, the others can be read both ways
        days = [f"{13 + k % 10 if k < 800 else 1 + k % 10:02d}/03/2020 10:00:00" for k in range(frame.height)]
        frame.with_columns(datetime=pl.Series(days)).write_csv(path)
        lines, options["time_zone"] = path.read_text().splitlines(), "UTC"
    elif trouble == "row numbers":
        options["columns"] = {"uid": "ROW"}
    text = ("\n".join(lines) + "\n").encode()
    path.write_bytes(gzip.compress(text) if trouble == "zip" else text)
    if trouble in ("fault", "another form"):
        with pytest.raises(InputError) as told:
            scan(path, **options)
        with pytest.raises(InputError) as alone:
            read(path)
        assert str(told.value) == str(alone.value) and "row 9" in str(told.value)
        return
    whole = read(path, **{name: options[name] for name in ("time_zone", "columns") if name in options})
    with scan(path, **options) as parts:
        assert gathered(parts)[0].height == whole.n_points == frame.height
        assert set(parts.identity.uids) == set(whole.identity.uids)


@pytest.mark.parametrize("fan", [512, 3])
@pytest.mark.parametrize("text", [False, True])
def test_rows_in_any_order_are_sorted_by_person_on_the_workers(tmp_path, monkeypatch, fan, text):
    """In one level, and in two where parts are many; rows of a person keep their order, also without times."""
    monkeypatch.setattr(shuffle, "FAN", fan)
    monkeypatch.setattr(_Reading, "first_pass", lambda *_: pytest.fail("read by one process"))
    frame = traces().drop("datetime").sample(fraction=1, shuffle=True, seed=3)
    if text:
        frame = frame.with_columns(uid=pl.format("cab é {}", "uid"))
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=100)
    one, other = ReadReport(), ReadReport()
    whole = read(tmp_path / "x.parquet", report=one)
    work = tmp_path / "work"
    work.mkdir()
    with scan(tmp_path / "x.parquet", points_per_partition=150, work_dir=work, engine=Two(), report=other) as parts:
        found = [part.table for part in parts]
        assert pl.concat(found).sort("uid", "tid", maintain_order=True).equals(whole.table)
        assert len(found) > 5
        assert set(parts.identity.uids) == set(whole.identity.uids) and len(parts.identity.uids) == whole.n_users
        folder = parts._folder.files.folder
        assert folder.stat().st_mode & 0o077 == 0
        assert not list(folder.glob("bucket-*")), "only the parts are kept"
    assert one == other
    assert not list(work.iterdir())


def test_the_hash_of_names_never_changes():
    assert people.buckets_of(pl.Series(["1", "2", "cab é 7", ""]), 1000).tolist() == [232, 985, 237, 458]
    assert people.buckets_of(pl.Series([1, 2]), 1000).tolist() == [232, 985]


def test_rules_are_counted_alike(tmp_path):
    frame = traces()
    frame = pl.concat([frame, frame.head(30), frame.slice(100, 5).with_columns(lat=pl.lit(1.0))])
    frame.write_parquet(tmp_path / "x.parquet")
    one, other = ReadReport(), ReadReport()
    read(tmp_path / "x.parquet", report=one)
    scan(tmp_path / "x.parquet", points_per_partition=100, hold_points=0, report=other)
    assert one == other
    assert (one.duplicates, one.two_places_at_once) == (30, 5)


def test_faults_are_found_before_the_first_part(tmp_path):
    frame = traces()
    bad = frame.with_columns(lat=pl.when(pl.int_range(pl.len()) >= 1990).then(99.0).otherwise("lat"))
    bad.write_parquet(tmp_path / "x.parquet", row_group_size=100)
    with pytest.raises(InputError, match="10 rows: 1991"):
        scan(tmp_path / "x.parquet", points_per_partition=100)
    pl.concat([bad, frame]).write_parquet(tmp_path / "y.parquet", row_group_size=100)
    with pytest.raises(InputError, match="10 rows: 1991"):
        scan(tmp_path / "y.parquet", points_per_partition=100)
    pl.concat([frame.head(10), frame.head(1)]).write_parquet(tmp_path / "z.parquet")
    with pytest.raises(InputError, match=r"row 11.*time and place of another"):
        scan(tmp_path / "z.parquet", strict=True)


def test_a_file_that_changes_later_changes_nothing(tmp_path):
    path = tmp_path / "x.parquet"
    traces().write_parquet(path, row_group_size=100)
    with scan(path, points_per_partition=100, hold_points=0, work_dir=tmp_path) as partitions:
        before, _ = gathered(partitions)
        traces(seed=2).write_parquet(path, row_group_size=100)
        assert gathered(partitions)[0].equals(before)


def test_private_files_are_private_and_vanish(tmp_path):
    frame = traces().sample(fraction=1, shuffle=True, seed=3)
    frame.write_parquet(tmp_path / "x.parquet")
    work = tmp_path / "work"
    work.mkdir()
    partitions = scan(tmp_path / "x.parquet", points_per_partition=100, hold_points=300, work_dir=work)
    [folder] = work.iterdir()
    assert folder.stat().st_mode & 0o077 == 0
    assert list(folder.iterdir())
    del partitions
    gc.collect()
    assert not list(work.iterdir())
    frame.with_columns(uid=pl.lit(1)).write_parquet(tmp_path / "y.parquet")
    with pytest.raises(InputError, match="not of the type"):
        scan(tmp_path / "*.parquet", hold_points=0, work_dir=work)
    gc.collect()
    assert not list(work.iterdir()), "nothing stays when the input is refused"
    with pytest.raises(OutputError, match="work_dir"):
        scan(tmp_path / "x.parquet", hold_points=10, work_dir=tmp_path / "x.parquet")


def test_closed_partitions_say_so(tmp_path):
    traces(people=2).write_parquet(tmp_path / "x.parquet")
    with scan(tmp_path / "x.parquet") as partitions:
        assert partitions.n_points == 100
    with pytest.raises(InputError, match="closed"):
        list(partitions)


def test_carried_columns_must_be_asked_for(tmp_path):
    traces(people=2).with_columns(speed=1.5, note=pl.lit("x")).write_parquet(tmp_path / "x.parquet")
    assert scan(tmp_path / "x.parquet").columns == ["uid", "tid", "datetime", "lat", "lng"]
    [part] = scan(tmp_path / "x.parquet", carry=("speed",))
    assert part.columns == ["uid", "tid", "datetime", "lat", "lng", "speed"]


def test_a_person_larger_than_a_part_stays_whole(tmp_path):
    frame = pl.concat([traces(people=1, points=1000), traces(people=5, points=20).with_columns(uid="q" + pl.col("uid"))])
    frame.write_parquet(tmp_path / "x.parquet", row_group_size=64)
    sizes = [part.n_points for part in scan(tmp_path / "x.parquet", points_per_partition=50)]
    assert max(sizes) >= 1000
    assert sum(sizes) == 1100


@settings(max_examples=60)
@given(
    st.lists(st.floats(-90, 90), min_size=1, max_size=20),
    st.lists(st.integers(-(2**53), 2**53), min_size=20, max_size=20),
    st.booleans(),
)
def test_packing_loses_nothing(lat, times, whole):
    lat = np.round(lat, 6) if whole else np.array(lat)
    us = np.array(times[: len(lat)]) // 1_000_000 * 1_000_000 if whole else np.array(times[: len(lat)])
    points = pl.DataFrame({"datetime": us, "lat": lat, "note": ["x"] * len(lat)}).with_columns(
        pl.col("datetime").cast(pl.Datetime("us")).dt.replace_time_zone("UTC")
    )
    runs = Runs(pl.Series("uid", ["a"]), pl.Series("tid", [1]), np.array([len(lat)]), points)
    packed = Packed.of(runs, Blocks())
    assert packed.runs().points.select(points.columns).equals(points)
    folder = PartsFolder(None)
    folder.write("x", packed)
    assert read_runs(folder.files, "x").points.select(points.columns).equals(points)
    folder.close()
    assert not folder.files.folder.exists()


def test_lattice_points_take_twelve_bytes():
    runs = Runs.of(traces(people=3))
    packed = Packed.of(runs, Blocks())
    assert set(packed.whole) == {"datetime", "lat", "lng"}
    assert packed.rest.columns == []


def test_worth_streaming(tmp_path, monkeypatch):
    path = tmp_path / "x.csv"
    path.write_text("uid,lat,lng\n")
    assert not worth_streaming(path)
    assert not worth_streaming(pl.DataFrame())
    monkeypatch.setattr("murmurate.ingest.stream._STREAM_BYTES", 15)
    assert not worth_streaming(path)
    (tmp_path / "y.csv").write_text("uid,lat,lng\n")
    assert worth_streaming(tmp_path) and worth_streaming(f"{tmp_path}/*.csv")  # together
    monkeypatch.setattr("murmurate.ingest.stream._STREAM_BYTES", 3)
    assert worth_streaming(str(path), time_zone="UTC")
    assert not worth_streaming(tmp_path / "absent.csv")
