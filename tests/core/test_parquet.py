"""Parquet files of strangers: what ends the process, or takes far more memory than it says, is refused before it is read."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import murmurate as mm
from murmurate.core import expansion, footers
from murmurate.core.parquet import check_parquet, read_table
from murmurate.errors import InputError

SOURCE = Path(mm.__file__).parent
OURS = ("core/parquet.py", "custody/internal.py", "judging/study/table.py", "cli/asking.py")
"""The one place that opens files of strangers, and places that open what they wrote themselves."""


def table(n=4, **more):
    return pa.table({"uid": ["a"] * n, "lat": np.arange(n) / n, "lng": np.arange(n) / n, **more})


def number(value, length):
    """Return a number as Thrift has it, in a given length."""
    coded = (value << 1) & (2**64 - 1)
    return bytes((coded >> 7 * k & 127) | (0 if k == length - 1 else 128) for k in range(length))


def as_stored(value):
    length = next(k for k in range(1, 11) if value << 1 < 1 << 7 * k)
    return number(value, length)


def test_a_footer_is_read_as_the_library_reads_it(tmp_path):
    nested = {"list": [["x"]] * 4, "both": [{"a": 1, "b": [{"c": "y"}]}] * 4}
    pq.write_table(table(**nested), tmp_path / "a.parquet", row_group_size=3)
    found, known = check_parquet(tmp_path / "a.parquet").footer, pq.read_metadata(tmp_path / "a.parquet")
    assert found.rows == [3, 1]
    for group, chunks in enumerate(found.groups):
        columns = [known.row_group(group).column(k) for k in range(known.num_columns)]
        assert [chunk.leaf for chunk in chunks] == [column.path_in_schema for column in columns]
        assert [chunk.n_values for chunk in chunks] == [column.num_values for column in columns]
        assert [chunk.n_bytes for chunk in chunks] == [column.total_compressed_size for column in columns]


def damaged_footers(tmp_path):
    """Yield a file with each byte of the footer changed in turn."""
    pq.write_table(table(geometry=[b"\1"] * 4), tmp_path / "good.parquet")
    good = (tmp_path / "good.parquet").read_bytes()
    start = len(good) - 8 - int.from_bytes(good[-8:-4], "little")
    for at in range(start, len(good) - 8):
        yield good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :]


def test_no_damaged_footer_ends_the_process(tmp_path):
    """pyarrow does not catch its own error about the size of a histogram: 'terminate called after throwing ...'."""
    for number_, content in enumerate(damaged_footers(tmp_path)):
        (tmp_path / f"{number_}.parquet").write_bytes(content)
    code = (
        "import sys, pathlib, contextlib, warnings\nwarnings.simplefilter('ignore')\n"
        "from murmurate.core.parquet import read_table\nfrom murmurate.errors import InputError\n"
        "for file in pathlib.Path(sys.argv[1]).glob('[0-9]*.parquet'):\n"
        "    with contextlib.suppress(InputError): read_table(file)\n"
        "print('alive')"
    )
    ran = subprocess.run([sys.executable, "-c", code, tmp_path], capture_output=True, text=True, check=False)
    assert ran.stdout.strip() == "alive", ran.stderr[-500:]


@pytest.mark.parametrize("cut", [1, 8, 9, 40])
def test_a_file_that_is_cut_is_one_message(tmp_path, cut):
    pq.write_table(table(), tmp_path / "a.parquet")
    file = tmp_path / "cut.parquet"
    file.write_bytes((tmp_path / "a.parquet").read_bytes()[:-cut])
    with pytest.raises(InputError, match="not a Parquet file, or damaged"):
        mm.read(file)


def test_sizes_that_a_footer_makes_up_are_not_believed(tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "TABLE_FLOOR_BYTES", 10**6)
    file = tmp_path / "a.parquet"
    pq.write_table(table(note=["x" * 3 * 10**6] * 4), file, compression="zstd", use_dictionary=False, data_page_version="2.0")
    stated = pq.read_metadata(file).row_group(0).column(3).total_uncompressed_size
    raw = file.read_bytes()
    assert as_stored(stated) in raw
    file.write_bytes(raw.replace(as_stored(stated), number(9, len(as_stored(stated)))))
    assert pq.read_metadata(file).row_group(0).column(3).total_uncompressed_size == 9
    with pytest.raises(InputError, match="decompression bomb"):
        mm.read(file)


def test_rows_that_a_footer_hides_are_counted(tmp_path, monkeypatch):
    monkeypatch.setattr(expansion, "TABLE_FLOOR_BYTES", 10**6)
    file = tmp_path / "a.parquet"
    pq.write_table(table(300_000, same=pa.repeat(1.5, 300_000)), file, use_dictionary=["uid", "same"])
    raw = file.read_bytes()
    rows = as_stored(300_000)
    at = raw.rindex(b"\x16" + rows, 0, len(raw) - 8)
    lines = [found.start() for found in re.finditer(re.escape(rows), raw)]
    assert len(lines) > 2  # of columns, of the group and of the file
    file.write_bytes(raw[: at + 1] + number(1, len(rows)) + raw[at + 1 + len(rows) :])
    with pytest.raises(InputError, match=r"do not add up|decompression bomb"):
        mm.read(file)


@pytest.mark.parametrize(
    "column",
    [
        pa.array([["x" * 5_000] * 10] * 300),
        pa.array([{"a": "x" * 5_000}] * 300),
        pa.array([b"x" * 5_000] * 300, pa.binary(5_000)),
        pa.array(["x" * 5_000] * 300),
    ],
)
@pytest.mark.parametrize("options", [{}, {"use_dictionary": False, "column_encoding": {"note": "DELTA_BYTE_ARRAY"}}])
def test_a_long_text_stored_once_is_refused_in_columns_of_every_kind(tmp_path, monkeypatch, column, options):
    if options and pa.types.is_nested(column.type):
        options = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
        numbers = {"uid": column}  # other columns cannot be written so
    else:
        numbers = table(300, note=column)
    monkeypatch.setattr(expansion, "TABLE_FLOOR_BYTES", 10**6)
    pq.write_table(pa.table(numbers) if isinstance(numbers, dict) else numbers, tmp_path / "a.parquet", **options)
    assert (tmp_path / "a.parquet").stat().st_size < 40_000
    with pytest.raises(InputError, match="decompression bomb"):
        read_table(tmp_path / "a.parquet")


@pytest.mark.parametrize("encoding", ["DELTA_BYTE_ARRAY", "DELTA_LENGTH_BYTE_ARRAY", "PLAIN"])
def test_names_of_people_are_read_in_every_encoding(tmp_path, monkeypatch, encoding):
    """DuckDB and the second version of Parquet's pages write texts so; pyarrow cannot read those dictionary-encoded."""
    monkeypatch.setattr(expansion, "TABLE_FLOOR_BYTES", 10**6)
    numbers = table(5_000).set_column(0, "uid", pa.array([f"person-{k // 2}" for k in range(5_000)]))
    times = pa.array(np.arange(5_000) * 1_000_000, pa.timestamp("us", "UTC"))
    options = {"use_dictionary": False, "column_encoding": {"uid": encoding}}
    pq.write_table(numbers.append_column("datetime", times), tmp_path / "a.parquet", row_group_size=2_000, **options)
    assert mm.read(tmp_path / "a.parquet").n_users == 2_500
    with mm.scan(tmp_path / "a.parquet", points_per_partition=1_000) as parts:
        assert sorted(parts.identity.uids) == sorted({f"person-{k // 2}" for k in range(5_000)})
    assert read_table(tmp_path / "a.parquet").height == 5_000


@pytest.mark.parametrize("number_", [32_767, 32_768])
def test_the_field_of_extensions_is_passed_over(tmp_path, number_):
    """Parquet keeps field 32767 of every struct for bytes that a reader need not know."""
    pq.write_table(table(), tmp_path / "a.parquet")
    raw = (tmp_path / "a.parquet").read_bytes()
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    footer = raw[start:-9] + b"\x08" + as_stored(number_) + b"\x05extra" + b"\0"
    (tmp_path / "a.parquet").write_bytes(raw[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    if number_ == 32_767:
        assert check_parquet(tmp_path / "a.parquet").n_rows == pq.read_metadata(tmp_path / "a.parquet").num_rows == 4
    else:
        with pytest.raises(InputError, match="no number of Parquet's"):
            check_parquet(tmp_path / "a.parquet")


def test_a_footer_of_empty_things_takes_no_memory(tmp_path):
    schema = b"\x19\xfc\x80\x80\x80\x02" + bytes(100)  # four million columns
    footer = b"\x15\x02" + schema + bytes(10)
    (tmp_path / "a.parquet").write_bytes(b"PAR1" + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    with pytest.raises(InputError, match="longer than the footer"):
        check_parquet(tmp_path / "a.parquet")


def test_two_columns_on_the_same_pages_count_twice(tmp_path, monkeypatch):
    pq.write_table(pa.table({"lat": np.zeros(10_000)}), tmp_path / "a.parquet")
    checked = check_parquet(tmp_path / "a.parquet")
    monkeypatch.setattr(expansion, "TABLE_FLOOR_BYTES", 100_000)
    checked.refuse_expansion(max_expansion=1)
    twice = replace(checked, footer=checked.footer._replace(groups=[2 * checked.footer.groups[0]]))
    with pytest.raises(InputError, match="decompression bomb"):
        twice.refuse_expansion(max_expansion=1)


def test_a_long_name_above_many_columns_takes_no_memory(tmp_path, monkeypatch):
    monkeypatch.setattr(footers, "_MOST_NAME_LETTERS", 10**5)
    inner = pa.struct([(f"c{k}", pa.int8()) for k in range(200)])
    pq.write_table(pa.table({"n" * 1000: pa.array([None], inner)}), tmp_path / "a.parquet")
    with pytest.raises(InputError, match="names of its columns are too long"):
        check_parquet(tmp_path / "a.parquet")


def test_columns_that_share_their_pages_are_refused(tmp_path):
    """A thousand groups on the same pages are walked a thousand times: a file of 70 kB took seconds, of 700 kB minutes."""
    file = tmp_path / "a.parquet"
    pq.write_table(pa.table({"lat": np.arange(6) / 6}), file, row_group_size=1, use_dictionary=False)
    raw, known = file.read_bytes(), pq.read_metadata(file)
    first, sizes = known.row_group(0).column(0).data_page_offset, known.row_group(0).column(0).total_compressed_size
    whole = 6 * sizes  # every group claims the pages of all, from the first on
    start = len(raw) - 8 - int.from_bytes(raw[-8:-4], "little")
    footer = raw[start:-8].replace(b"\x16" + as_stored(sizes) + b"\x26", b"\x16" + number(whole, 2) + b"\x26")
    for group in range(6):
        footer = footer.replace(
            b"\x26" + as_stored(known.row_group(group).column(0).data_page_offset), b"\x26" + as_stored(first)
        )
    file.write_bytes(raw[:start] + footer + len(footer).to_bytes(4, "little") + b"PAR1")
    assert [pq.read_metadata(file).row_group(k).column(0).total_compressed_size for k in range(6)] == [whole] * 6
    with pytest.raises(InputError, match="lie over each other"):
        check_parquet(file)


def test_files_of_strangers_are_opened_in_one_place():
    opens = re.compile(r"ParquetFile\(|read_metadata\(|read_schema\(|pq\.read_table\(|\b(read|scan)_parquet\(|ParquetDataset")
    found = {
        path.relative_to(SOURCE).as_posix() for path in SOURCE.rglob("*.py") if opens.search(path.read_text(encoding="utf-8"))
    }
    assert found <= set(OURS), sorted(found - set(OURS))
