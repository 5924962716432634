"""Bad input: one error, every fault, file, row and reason."""

from __future__ import annotations

import gzip
import os
import shlex

import polars as pl
import pyarrow as pa
import pytest

from murmurate.errors import InputError, ParameterError
from murmurate.ingest.formats import dialect
from murmurate.ingest.read import read

HEADER = "uid,tid,datetime,lat,lng\n"
GOOD = HEADER + "a,1,2020-01-01T00:00:00Z,60.1,24.9\na,1,2020-01-01T00:01:00Z,60.2,24.8\n"


def faults_of(source, **options):
    with pytest.raises(InputError) as caught:
        read(source, **options)
    return caught.value


def write(folder, content, name="traces.csv"):
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_all_faults_at_once_with_rows_and_lines(tmp_path):
    path = write(
        tmp_path,
        HEADER
        + ",1,2020-01-01T00:00:00Z,60.1,24.9\n"
        + "a,1,soon,60.1,24.9\n"
        + "a,1,2020-01-01T00:00:00Z,north,24.9\n"
        + "a,1,2020-01-01T00:00:00Z,60.1,\n",
    )
    error = faults_of(path)
    assert {(fault.column, fault.row) for fault in error.faults} == {("uid", 1), ("datetime", 2), ("lat", 3), ("lng", 4)}
    assert all(fault.file == path.name for fault in error.faults)
    assert "file line 3" in str(error)
    assert "written like 'aaaaa'" in str(error)
    assert "north" not in str(error)
    assert error.exit_code == 2


def test_values_beyond_the_earth(tmp_path):
    error = faults_of(write(tmp_path, HEADER + "a,1,1600000000,91,24\na,1,1600000001,60,181\na,1,1600000002,1,1\n"))
    assert [(fault.column, fault.row) for fault in error.faults] == [("lat", 1), ("lng", 2)]
    assert "beyond 90" in str(error)


def test_counts_and_first_rows_are_told(tmp_path):
    body = "".join(f"a,1,{1600000000 + k},95,1\n" for k in range(12)) + "a,1,1600000100,1,1\n" * 13
    error = faults_of(write(tmp_path, HEADER + body))
    assert "12 rows: 1, 2, 3, 4, 5, ..." in error.faults[0].reason


def test_swapped_coordinates_are_told(tmp_path):
    error = faults_of(write(tmp_path, HEADER + "a,1,1600000000,-122.4,37.7\na,1,1600000001,-122.5,37.6\n"))
    assert "look swapped" in str(error)
    assert "columns={'lat': 'lng', 'lng': 'lat'}" in str(error)


def test_names_of_columns_command_neither_a_terminal_nor_a_shell(tmp_path):
    """What stands in brackets is no part of a name, and may be anything; the message says what to type."""
    name = "lat [';touch pwned;' \x1bc]"
    told = str(faults_of(write(tmp_path, f"uid,tid,{name},lng\na,1,120.1,24.9\n")))
    assert "\x1b" not in told and "look swapped" in told
    words = shlex.split(told[told.index("--column lat=") : told.index(" (in Python")])
    assert words == ["--column", "lat=lng", "--column", "lng=" + name.replace("\x1b", "\\x1b")]


def test_metres_are_told():
    assert "metres" in str(faults_of(pl.DataFrame({"uid": ["a"], "x": [385000.0], "y": [6672000.0]})))


def test_longitudes_to_360_are_told():
    assert "0 to 360" in str(faults_of(pl.DataFrame({"uid": ["a"], "lat": [37.0], "lng": [238.0]})))


def test_nan_and_empty():
    error = faults_of(pl.DataFrame({"uid": ["a", None], "lat": [float("nan"), 1.0], "lng": [1.0, None]}))
    assert {(fault.column, fault.row) for fault in error.faults} == {("uid", 2), ("lng", 2)}
    assert "NaN" in str(faults_of(pl.DataFrame({"uid": ["a"], "lat": [float("nan")], "lng": [1.0]})))


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        (["uid", "user", "lat", "lng"], None),
        (["user_id", "taxi_id", "lat", "lng"], "ambiguous: uid could be 'user_id', 'taxi_id'"),
        (["uid", "timestamp", "time", "lat", "lng"], "ambiguous: datetime"),
        (["uid", "Lat", "LAT", "lng"], "ambiguous: lat"),
        (["lat", "lng"], "missing: who moved"),
        (["uid", "lat"], "missing: lng"),
        (["traj_id", "lat", "lng"], "columns={'uid': 'traj_id'}"),
        (["uid", "lat", "y", "lng", "x"], None),
    ],
)
def test_columns(columns, words):
    row = {name: ["2020-01-01T00:00:00Z" if name.startswith("time") else 1.0] for name in columns}
    if words is None:
        assert read(pl.DataFrame(row)).n_points == 1
    else:
        assert words in str(faults_of(pl.DataFrame(row)))


def test_wrong_types():
    error = faults_of(pl.DataFrame({"uid": [[1]], "datetime": [True], "lat": [True], "lng": [b"x"]}))
    assert {fault.column for fault in error.faults} == {"uid", "datetime", "lat", "lng"}


def test_weekday_and_hour_out_of_range():
    frame = pl.DataFrame({"uid": ["a"], "weekday": [7], "hour": [24], "lat": [1.0], "lng": [1.0]})
    assert {fault.column for fault in faults_of(frame).faults} == {"weekday", "hour"}


def test_files_that_cannot_be_opened(tmp_path):
    assert "no such file" in str(faults_of(tmp_path / "none.csv"))
    assert "0 bytes" in str(faults_of(write(tmp_path, b"")))
    (tmp_path / "empty").mkdir()
    assert "no file of a known format" in str(faults_of(tmp_path / "empty"))
    assert "no file matches" in str(faults_of(str(tmp_path / "*.gpx")))
    assert "unknown kind" in str(faults_of(write(tmp_path, b"x", "notes.docx")))
    assert "no rows" in str(faults_of(write(tmp_path, HEADER)))
    with pytest.raises(ParameterError):
        read("")
    with pytest.raises(ParameterError, match="got int"):
        read(7)


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no pipes here")
def test_a_pipe_is_refused_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe.csv")
    assert "not a regular file" in str(faults_of(tmp_path / "pipe.csv"))


def test_permission_denied(tmp_path, monkeypatch):
    path = write(tmp_path, GOOD)

    def refuse(*_args, **_options):
        raise PermissionError(13, "no")

    monkeypatch.setattr(type(path), "open", refuse)
    assert "permission denied" in str(faults_of(path))


@pytest.mark.parametrize("name", ["traces.csv.gz", "traces.csv.zst"])
def test_compressed_and_truncated(tmp_path, name):
    body = (HEADER + "".join(f"a,1,{1600000000 + k},{k % 90},{k % 7}\n" for k in range(2000))).encode()
    packed = gzip.compress(body) if name.endswith("gz") else pa.Codec("zstd").compress(body, asbytes=True)
    assert read(write(tmp_path, packed, name)).n_points == 2000
    error = faults_of(write(tmp_path, packed[: len(packed) // 2], name))
    assert "damaged or truncated" in str(error)
    assert name in str(error)


def test_truncated_parquet(tmp_path):
    path = tmp_path / "traces.parquet"
    pl.read_csv(GOOD.encode()).write_parquet(path)
    content = path.read_bytes()
    for cut in (4, len(content) // 2, len(content) - 1):
        assert "traces.parquet" in str(faults_of(write(tmp_path, content[:cut], "traces.parquet")))


def test_a_decompression_bomb_is_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("murmurate.ingest.files.BOMB_FLOOR_BYTES", 2**20)
    path = write(tmp_path, gzip.compress(GOOD.encode() + b"a,1,2020-01-01T00:01:00Z,60.2,24.8\n" * 200_000), "bomb.csv.gz")
    assert "bomb" in str(faults_of(path))
    assert read(path, max_expansion=100_000).n_points == 2


def test_encodings(tmp_path):
    text = "uid,ort,lat,lng\nå,Malmö,55.6,13.0\n"
    assert read(write(tmp_path, text.encode("utf-8-sig"))).table["uid"].to_list() == ["å"]
    assert read(write(tmp_path, text.encode("utf-16"))).table["ort"].to_list() == ["Malmö"]
    path = write(tmp_path, text.encode("latin-1"))
    error = faults_of(path)
    assert "file line 2" in str(error)
    assert "encoding='latin-1'" in str(error)
    assert read(path, encoding="latin-1").table["uid"].to_list() == ["å"]
    assert "zero byte" in str(faults_of(write(tmp_path, text.encode() + b"\0")))
    with pytest.raises(ParameterError):
        read(path, encoding="klingon")


def test_uneven_rows_are_told(tmp_path):
    error = faults_of(write(tmp_path, GOOD + "a,1,2020-01-01T00:02:00Z,60.1,24.9,7,8\n"))
    assert (error.faults[0].row, "7 values where the header names 5" in error.faults[0].reason) == (3, True)
    assert "file line 4" in error.faults[0].reason


def test_headers(tmp_path):
    assert "not column names" in str(faults_of(write(tmp_path, "1,2,3\n4,5,6\n")))
    assert "more than one column" in str(faults_of(write(tmp_path, "uid,uid,lat,lng\na,b,1,1\n")))
    values = str(faults_of(write(tmp_path, "a 60.1234,a 60.1234,lat,lng\na,b,1,1\n")))
    assert "called 'a 99.9999'" in values and "60.1234" not in values
    assert read(write(tmp_path, "uid;lat;lng\r\na;1;2\r\n")).n_points == 1
    assert read(write(tmp_path, "uid\tlat\tlng\na\t1\t2\n", "x.tsv")).n_points == 1


def test_a_long_first_line_takes_few_looks(tmp_path, monkeypatch):
    calls = []
    parse = dialect.parse
    monkeypatch.setattr(dialect, "parse", lambda *given: calls.append(1) or parse(*given))
    many = ",".join(["7 o'clock"] * 3 + ["2020-01-01T00:02:00Z", "1/2/2020 10:00"] * 2000)
    assert "not column names" in str(faults_of(write(tmp_path, f"{many}\n")))
    assert len(calls) < 400


def test_quotes_and_lines(tmp_path, monkeypatch):
    text = 'uid,note,lat,lng\n"a","two\nlines, one ""note""",1,2\nb,x,91,2\n'
    error = faults_of(write(tmp_path, text))
    assert error.faults[0].row == 2
    assert "line" not in error.faults[0].reason, "rows are not lines here"
    monkeypatch.setattr("murmurate.ingest.formats.text.CHUNK_BYTES", 20)
    assert "more than 0 MiB" in str(faults_of(write(tmp_path, "uid,lat,lng\n" + "a" * 100 + ",1,1\n")))


def test_chunks_of_a_file_make_one_table(tmp_path, monkeypatch):
    monkeypatch.setattr("murmurate.ingest.formats.text.CHUNK_BYTES", 100)
    rows = [f'"u{k % 3}",{1600000000 + k},{k % 90},"{k % 7}"' for k in range(500)]
    path = write(tmp_path, "uid,t,lat,lng\n" + "\n".join(rows))
    assert read(path).n_points == 500
    rows[400] = "u,1600000000,99,1"
    error = faults_of(write(tmp_path, "uid,t,lat,lng\n" + "\n".join(rows)))
    assert error.faults[0].row == 401
    assert "file line 402" in error.faults[0].reason


def test_faults_of_several_files_come_together(tmp_path):
    write(tmp_path, GOOD, "a.csv")
    write(tmp_path, HEADER + "a,1,2020-01-01T00:00:00Z,99,1\n", "b.csv")
    write(tmp_path, b"", "c.csv")
    assert "0 bytes" in str(faults_of(tmp_path))
    (tmp_path / "c.csv").write_text("uid,tid,lat,lng\na,1,1,1\n")
    error = faults_of(tmp_path)
    assert [fault.file for fault in error.faults] == ["file 2 in the order of names", "file 3 in the order of names"]
    assert "no datetime" in str(error)


def test_a_mixture_of_formats_is_refused(tmp_path):
    write(tmp_path, GOOD, "a.csv")
    pl.read_csv(GOOD.encode()).write_parquet(tmp_path / "a.parquet")
    assert "mixture" in str(faults_of(tmp_path))
    assert read(str(tmp_path / "*.csv")).n_points == 2


def test_bad_options_are_refused_before_anything_is_read():
    for options in ({"time_zone": "Mars/Olympus"}, {"time_unit": "fortnight"}, {"layout": "cabs"}, {"local_zone": "X"}):
        with pytest.raises(ParameterError):
            read("nowhere.csv", **options)
