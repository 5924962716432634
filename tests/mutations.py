# ruff: noqa: E501 - tables of what is tried stay whole
"""Damage files of every format: by their structure (values, names, lengths, nesting, compression) and byte by byte.

Every function takes the bytes of a good file and a generator, and returns bytes of at most `MOST_INPUT_BYTES`.
"""

from __future__ import annotations

import gzip
import io
import json
import re
import sqlite3
import struct
import tempfile
import warnings
import zipfile
import zlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

Dice = np.random.Generator
Mutator = Callable[[bytes, Dice], bytes]

MOST_INPUT_BYTES = 10**7

WEIRD_NUMBERS = (
    0, -1, 1, 2**31 - 1, 2**31, 2**40, 2**63, -(2**63), 1e30, -1e30, 1e308, 1e-300, float("nan"), float("inf"), 0.5
)  # fmt: skip
WEIRD_TEXTS = (
    "", "x" * 300, "../../etc/passwd", "\0", "é" * 40, "=1+1", "nan", "inf", "-1", "1e999", "9" * 40, "0x10", " 7 ", "\ufeff",
    "2024-13-45T99:99:99", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", "true", "null", "\ud7ff", "\u202e", "a\nb", "'", '"', "\\",
)  # fmt: skip
WEIRD_VALUES = (*WEIRD_NUMBERS, None, True, *WEIRD_TEXTS, [], {}, [[1]], 10**400, -(10**30), "y" * 100_000)
WEIRD_BYTES = (b"\0", b"\xff", b"-", b"9" * 40, b"nan", b"[" * 3000, b"]", b'"', b"\n", b",", b"<", b"&a;", b"{", b"1e999")
DEEP = 10_000
"""How deep some files are nested."""


def pick(choices: Any, rng: Dice) -> Any:
    return choices[int(rng.integers(len(choices)))]


def weird_text(rng: Dice) -> str:
    return str(pick(WEIRD_NUMBERS if rng.random() < 0.5 else WEIRD_TEXTS, rng))


# -- bytes --------------------------------------------------------------------------------------------------------------------


def in_bytes(data: bytes, rng: Dice) -> bytes:
    """Change, cut, insert, repeat or remove bytes; or write an odd number where one of four or eight bytes may be."""
    out = bytearray(data)
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(0, len(out) + 1))
        how = int(rng.integers(0, 8))
        if how == 0 and out:
            out[min(at, len(out) - 1)] = int(rng.integers(256))
        elif how == 1:
            out = out[:at]
        elif how == 2:
            out[at:at] = pick(WEIRD_BYTES, rng)
        elif how == 3:
            end = int(rng.integers(at, len(out) + 1))
            out[at:at] = out[at : min(end, at + 4000)]
        elif how == 4:
            del out[at : at + int(rng.integers(1, 50))]
        elif how == 5:
            number = pick((0, 1, -1, 2**31 - 1, -(2**31), 2**16, 2**24, 2**28), rng)
            out[at : at + 4] = struct.pack(pick(("<i", ">i"), rng), number)
        elif how == 6:
            number = pick((0, -1, 2**63 - 1, -(2**63), 2**31, 2**40), rng)
            out[at : at + 8] = struct.pack(pick(("<q", ">q"), rng), number)
        else:
            value = pick((float("nan"), float("inf"), 1e308, -1.0, 5e-324), rng)
            out[at : at + 8] = struct.pack(pick(("<d", ">d"), rng), value)
    return bytes(out)


def whole(data: bytes, rng: Dice) -> bytes:
    """Change a file as a whole: cut, doubled, empty, of another kind, in another encoding."""
    how = int(rng.integers(0, 8))
    if how == 0:
        return data[: int(rng.integers(0, len(data) + 1))]
    if how == 1:
        return data + data
    if how == 2:
        return b""
    if how == 3:
        return rng.bytes(int(rng.integers(1, 3000)))
    if how == 4:
        return (
            pick(
                (b"PK\x03\x04", b"\x1f\x8b\x08", b"PAR1", b"SQLite format 3\0", b"\x28\xb5\x2f\xfd", b"\x89HDF\r\n\x1a\n"), rng
            )
            + data
        )
    if how == 5:
        return gzip.compress(data, 1)
    if how == 6:
        return data.decode("utf-8", "replace").encode(pick(("utf-16", "utf-32", "latin-1", "utf-8-sig"), rng), "replace")
    return data[::-1]


def mixed(own: Mutator, bytewise: float = 0.25) -> Mutator:
    """Return a mutator that mostly changes the structure, and sometimes bytes or the whole file."""

    return partial(_mixed, own, bytewise)


def _mixed(own: Mutator, bytewise: float, data: bytes, rng: Dice) -> bytes:
    dice = rng.random()
    out = in_bytes(data, rng) if dice < bytewise else whole(data, rng) if dice < bytewise + 0.05 else own(data, rng)
    return out[:MOST_INPUT_BYTES]


# -- texts --------------------------------------------------------------------------------------------------------------------


def in_table(data: bytes, rng: Dice) -> bytes:
    """Change values, names, columns and lines of a delimited text."""
    lines = data.decode().split("\n")
    mark = next((mark for mark in ("\t", ";", ",", " ") if mark in lines[0]), ",")
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(lines)))
        fields = lines[at].split(mark)
        column = int(rng.integers(len(fields)))
        how = int(rng.integers(0, 14))
        if how <= 4:
            fields[column] = weird_text(rng)
            lines[at] = mark.join(fields)
        elif how == 5:  # a whole column
            value = weird_text(rng)
            for k in range(1, len(lines)):
                parts = lines[k].split(mark)
                if column < len(parts):
                    parts[column] = value
                    lines[k] = mark.join(parts)
        elif how == 6:  # the names
            names = lines[0].split(mark)
            names[column % len(names)] = pick(
                ("x" * 300, "uid", "lat", "geometry", "", "é", "datetime", "lng", "tid", '"'), rng
            )
            lines[0] = mark.join(names)
        elif how == 7:  # a column twice, or gone
            keep = rng.random() < 0.5
            for k, line in enumerate(lines):
                parts = line.split(mark)
                if column < len(parts):
                    parts[column : column + 1] = [parts[column]] * 2 if keep else []
                    lines[k] = mark.join(parts)
        elif how == 8:
            lines[at] = mark.join(fields * int(pick((2, 50, 3000), rng)))
        elif how == 9:
            lines.insert(at, pick(("", '"', "#", mark * 50, '"' + "z" * 70_000, "\0", "\r"), rng))
        elif how == 10:
            lines = lines[: at + 1] + lines
        elif how == 11:
            new = pick((",", ";", "\t", "|", " "), rng)
            lines = [line.replace(mark, new) for line in lines]
        elif how == 12:
            lines = [line + "\r" for line in lines]
        else:
            del lines[at]
            lines = lines or [""]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def in_tree(values: Any, rng: Dice) -> Any:
    """Replace, drop, rename, repeat or nest one value anywhere in a tree of JSON."""
    if isinstance(values, dict) and values and rng.random() < 0.85:
        key = pick(list(values), rng)
        how = rng.random()
        if how < 0.07:
            return {k: v for k, v in values.items() if k != key}
        if how < 0.14:
            return {(pick(WEIRD_TEXTS, rng) if k == key else k): v for k, v in values.items()}
        return {**values, key: in_tree(values[key], rng)}
    if isinstance(values, list) and values and rng.random() < 0.75:
        at = int(rng.integers(len(values)))
        if rng.random() < 0.1:
            return values[:at] + values[at : at + 1] * int(pick((0, 2, 1000), rng)) + values[at + 1 :]
        return [*values[:at], in_tree(values[at], rng), *values[at + 1 :]]
    return pick(WEIRD_VALUES, rng) if rng.random() < 0.9 else pick(([values], {"a": values}, [values, values]), rng)


def dumped(values: Any, rng: Dice) -> str:
    """Write JSON; sometimes with a key twice, or with something nested very deep."""
    text = json.dumps(values)
    how = rng.random()
    if how < 0.03:
        at = int(rng.integers(len(text) + 1))
        inner = pick(("[" * DEEP + "]" * DEEP, '{"a":' * DEEP + "1" + "}" * DEEP, "[" * DEEP), rng)
        return (
            text[:at] + inner + text[at:] if how < 0.01 else re.sub(r"(?<=[:,] )[\d\"][^,}\]]*", lambda _: inner, text, count=1)
        )
    if how < 0.06 and text.startswith("{"):
        return "{" + text[1:-1] + ", " + text[1:]
    return text


def in_json(data: bytes, rng: Dice) -> bytes:
    values = json.loads(data)
    for _ in range(int(rng.integers(1, 3))):
        values = in_tree(values, rng)
    return dumped(values, rng).encode("utf-8", "surrogatepass")


def in_json_lines(data: bytes, rng: Dice) -> bytes:
    lines = data.split(b"\n")
    at = int(rng.integers(len(lines)))
    lines[at] = in_json(lines[at], rng) if lines[at] and rng.random() < 0.8 else pick((b"", b"[]", b"1", lines[0], b"{"), rng)
    return b"\n".join(lines)


def in_xml(data: bytes, rng: Dice) -> bytes:
    """Change attributes, texts, tags, nesting and entities."""
    text = data.decode()
    for _ in range(int(rng.integers(1, 3))):
        how = int(rng.integers(0, 10))
        if how <= 3 and (found := list(re.finditer(r'"[^"<>]*"', text))):
            one = pick(found, rng)
            value = weird_text(rng).replace('"', "&quot;").replace("<", "&lt;") if rng.random() < 0.9 else weird_text(rng)
            text = f'{text[: one.start()]}"{value}"{text[one.end() :]}'
        elif how == 4 and (found := list(re.finditer(r">[^<>]+<", text))):
            one = pick(found, rng)
            text = f"{text[: one.start()]}>{weird_text(rng)}<{text[one.end() :]}"
        elif how == 5 and (found := list(re.finditer(r"<(\w+)", text))):
            one = pick(found, rng)
            text = (
                text[: one.start(1)]
                + pick(("x" * 300, "node", "edge", "trkpt", "way", "data", "gpx"), rng)
                + text[one.end(1) :]
            )
        elif how == 6 and (found := list(re.finditer(r"<(\w+)[^<>]*/>|<(\w+)[^<>]*>[^<>]*</\2>", text))):
            one = pick(found, rng)
            text = text[: one.start()] + one.group() * int(pick((0, 2, 300), rng)) + text[one.end() :]
        elif how == 7:
            at = text.find(">", text.find("?>") + 2) + 1
            tag = pick(("a", "node", "trk", "graph", "way"), rng)
            text = text[:at] + f"<{tag}>" * DEEP + (f"</{tag}>" * DEEP if rng.random() < 0.7 else "") + text[at:]
        elif how == 8:
            laughs = "".join(f'<!ENTITY e{k} "{f"&e{k - 1};" * 10}">' for k in range(1, 10))
            outside = '<!ENTITY x SYSTEM "file:///etc/passwd">'
            head = f'<!DOCTYPE r [<!ENTITY e0 "lol">{laughs if rng.random() < 0.7 else outside}]>'
            at = text.find("?>") + 2 if "?>" in text else 0
            text = text[:at] + head + re.sub(r">([^<>]+)<", pick((">&e9;<", ">&x;<"), rng), text[at:], count=1)
        else:
            text = re.sub(r'encoding="[^"]*"', f'encoding="{pick(("utf-16", "nonsense", "latin-1", ""), rng)}"', text)
            text = re.sub(
                r" (\w+)=", lambda m: f" {m.group(1)}=" if rng.random() < 0.97 else f" {m.group(1)}{m.group(1)}=", text
            )
    return text.encode("utf-8", "surrogatepass")


def in_toml(data: bytes, rng: Dice) -> bytes:
    """Change values and names of a recipe or study, nest them, write them twice."""
    lines = data.decode().split("\n")
    values = (
        "1", "-1", "1e308", "nan", "inf", str(2**63), "9" * 400, '""', f'"{"x" * 300}"', "[]", "{}", "true", "1979-05-27",
        "07:32:00", "[[1]]", '"../../etc/passwd"', '"\\u0000"', '["a", 1]', "{a = {b = 1}}", "[" * 400 + "]" * 400,
        "[" * DEEP + "]" * DEEP, "{b=" * DEEP + "1" + "}" * DEEP, '"=1+1"', "'''", '"é"', "0x7fffffffffffffff", "-0.0", '"grid:"',
        '"road:/etc/passwd"', '"grid:0,0,90,180:0.001"', '"hex:15@-90,-180,90,180"', '"zones:x"', '"plane:nan,nan"', '"dp:trip:nan"',
    )  # fmt: skip
    for _ in range(int(rng.integers(1, 4))):
        at = int(rng.integers(len(lines)))
        name, found, _ = lines[at].partition("=")
        how = int(rng.integers(0, 10))
        if found and how <= 5:
            lines[at] = f"{name}= {pick(values, rng)}"
        elif found and how == 6:
            other = pick(("x" * 300, "a.b.c", name.strip() + ".a", '""', '"é"', "mechanism", "seed"), rng)
            lines[at] = f"{other} ={lines[at].partition('=')[2]}"
        elif how == 7:
            lines.insert(
                at,
                pick(
                    (
                        f"[{'a.' * 500}a]",
                        f"[{'a.' * DEEP}a]",
                        "[set]",
                        "[[mechanisms]]",
                        "[[set]]",
                        "a.b = 1",
                        "[read.columns]",
                        lines[at],
                    ),
                    rng,
                ),
            )
        elif how == 8:
            del lines[at]
            lines = lines or [""]
        else:
            lines[at] = in_bytes(lines[at].encode(), rng).decode("utf-8", "replace")
    return "\n".join(lines).encode("utf-8", "surrogatepass")


# -- compression --------------------------------------------------------------------------------------------------------------


def within_gzip(own: Mutator) -> Mutator:
    """Return a mutator of what is inside, and sometimes of the compressed bytes; few of the files expand without end."""
    return partial(_within_gzip, own)


def _within_gzip(own: Mutator, data: bytes, rng: Dice) -> bytes:
    how = rng.random()
    if how < 0.002:
        return gzip.compress(data, 1) + gzip.compress(bytes(int(pick((10**6, 10**8, 3 * 10**8), rng))), 1)
    inner = own(gzip.decompress(data), rng)
    out = gzip.compress(inner, 1)
    if how < 0.05:
        return out + pick((out, b"\0" * 50, b"more", out[:20]), rng)
    return in_bytes(out, rng) if how < 0.1 else out


def within_zstd(own: Mutator) -> Mutator:
    """Return a mutator as `within_gzip` does."""
    return partial(_within_zstd, own)


def _within_zstd(own: Mutator, data: bytes, rng: Dice) -> bytes:
    import pyarrow as pa

    with pa.CompressedInputStream(pa.BufferReader(data), "zstd") as stream:
        inner = own(stream.read(), rng)
    how = rng.random()
    if how < 0.002:
        inner += bytes(int(pick((10**6, 10**8, 3 * 10**8), rng)))
    out = bytes(pa.compress(inner, codec="zstd", asbytes=True))
    return in_bytes(out, rng) if how > 0.9 else out


def within_zip(own: dict[str, Mutator]) -> Mutator:
    """Return a mutator of members by their ending, of their names and of the archive's own numbers."""
    return partial(_within_zip, own)


def _within_zip(own: dict[str, Mutator], data: bytes, rng: Dice) -> bytes:
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    chosen = pick(list(members), rng)
    how = rng.random()
    if how < 0.75:
        members[chosen] = next((change for end, change in own.items() if chosen.endswith(end)), in_bytes)(members[chosen], rng)
    elif how < 0.85:
        members[pick(("../../up", "/etc/passwd", "x" * 300, "a/" * 200 + chosen, chosen.upper(), ""), rng)] = members.pop(
            chosen
        )
    elif how < 0.852:
        members[chosen] += bytes(int(pick((10**6, 10**8, 3 * 10**8), rng)))
    elif how < 0.854:
        members |= {f"{k}.txt": b"" for k in range(20_000)}
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        warnings.simplefilter("ignore")
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name[:60_000]), content, compress_type=zipfile.ZIP_DEFLATED)
            if how > 0.98:
                archive.writestr(zipfile.ZipInfo(name[:60_000]), content[::-1])
    made = bytearray(out.getvalue())
    if 0.854 <= how < 0.98:  # sizes, methods and flags of the headers
        mark, fields = pick(
            (
                (b"PK\x03\x04", (4, 6, 8, 14, 18, 22, 26)),
                (b"PK\x01\x02", (8, 10, 16, 20, 24, 28, 42)),
                (b"PK\x05\x06", (8, 10, 12, 16, 20)),
            ),
            rng,
        )
        starts = [found.start() for found in re.finditer(re.escape(mark), bytes(made))]
        at = pick(starts, rng) + pick(fields, rng)
        made[at : at + 2] = struct.pack("<H", int(pick((0, 1, 8, 9, 12, 14, 93, 99, 0xFFFF), rng)))
    return bytes(made)


# -- tables and arrays --------------------------------------------------------------------------------------------------------


def in_array(array: np.ndarray, rng: Dice) -> np.ndarray:
    out = array.copy()
    how = int(rng.integers(0, 9))
    if how <= 3 and out.size:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            value = np.array(float(pick(WEIRD_NUMBERS, rng))).astype(out.dtype)
        if how == 3:
            out[...] = value
        else:
            out.flat[rng.integers(0, out.size, int(rng.integers(1, 4)))] = value
    elif how == 4:
        out = out[: len(out) // 2] if out.ndim else out[None]
    elif how == 5:
        out = out[None]
    elif how == 6:
        with np.errstate(all="ignore"), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            out = out.astype(pick([np.float64, np.int64, np.int8, np.uint8, np.float32, "<U3", ">f8", np.float16, bool], rng))
    elif how == 7 and out.ndim:
        rng.shuffle(out)
    else:
        out = np.concatenate([out, out]) if out.ndim else out
    return out


def in_npz(data: bytes, rng: Dice) -> bytes:
    with np.load(io.BytesIO(data)) as stored:
        arrays = dict(stored)
    name = pick(list(arrays), rng)
    arrays[name] = in_array(arrays[name], rng)
    if rng.random() < 0.05:
        arrays[pick(("x" * 300, "../up", "extra"), rng)] = arrays.pop(name)
    out = io.BytesIO()
    np.savez(out, **arrays)
    return out.getvalue() if rng.random() < 0.9 else within_zip({})(out.getvalue(), rng)


def in_parquet(data: bytes, rng: Dice) -> bytes:
    """Change columns, their types, names and number, what the file says about itself, or the bytes of its footer."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    how = rng.random()
    if how < 0.3:  # the footer, whose length stands before the last four bytes
        length = struct.unpack("<I", data[-8:-4])[0]
        start = len(data) - 8 - length
        footer = in_bytes(data[start:-8], rng)
        size = len(footer) if rng.random() < 0.8 else int(pick((0, 2**31 - 1, 2**32 - 1, len(data)), rng))
        return data[:start] + footer + struct.pack("<I", size) + b"PAR1"
    table = pq.read_table(io.BytesIO(data))
    at = int(rng.integers(table.num_columns))
    name, column = table.column_names[at], table.column(at)
    options: dict[str, Any] = {}
    if how < 0.55:
        table = _other_column(table, at, name, column, rng)
    elif how < 0.65:
        names = list(table.column_names)
        names[at] = pick(("x" * 300, names[0], "", "geometry", "lat", "LAT", "é", "a.b", "\ud7ff"), rng)
        table = table.rename_columns(names)
    elif how < 0.72:
        table = table.remove_column(at) if rng.random() < 0.5 else table.append_column(name, column)
    elif how < 0.8:
        meta = dict(table.schema.metadata or {})
        about = json.loads(meta.get(b"geo", b'{"columns": {"geometry": {"crs": null}}, "primary_column": "geometry"}'))
        text = dumped(in_tree(about, rng), rng)
        if rng.random() < 0.3:
            text = json.dumps(
                {
                    "primary_column": "geometry",
                    "columns": {"geometry": {"crs": pick((*WEIRD_VALUES, "EPSG:3857", "EPSG:1", {"id": 1}), rng)}},
                }
            )
        meta[b"geo"] = text.encode("utf-8", "surrogatepass")
        table = table.replace_schema_metadata(meta)
    elif how < 0.801:  # few bytes, many rows
        n = int(pick((10**6, 10**7, 10**8), rng))
        if n < 10**8:
            table = pa.table({key: pa.repeat(table.column(key)[0], n) for key in table.column_names[: 2 if n > 10**6 else 9]})
    elif how < 0.802 and table.num_rows:
        long = pa.DictionaryArray.from_arrays(np.zeros(20_000, np.int32), pa.array(["x" * 50_000]))
        table = table.slice(0, 1).take(np.zeros(20_000, np.int64)).append_column("long", long)
    elif how < 0.84:
        table = pa.table({f"c{k}": column for k in range(3000)} | dict(zip(table.column_names, table.columns, strict=True)))
    elif how < 0.86:
        table = table.slice(0, 0)
    else:
        options = {"row_group_size": int(pick((1, 7), rng)), "compression": pick(("zstd", "gzip", "none", "brotli"), rng)}
        options |= {"use_dictionary": bool(rng.random() < 0.5), "data_page_version": pick(("1.0", "2.0"), rng)}
    out = io.BytesIO()
    try:
        pq.write_table(table, out, **options)
    except (pa.ArrowException, ValueError, UnicodeError):
        return in_bytes(data, rng)
    made = out.getvalue()
    return in_bytes(made, rng) if rng.random() < 0.1 else made


def _other_column(table: Any, at: int, name: str, column: Any, rng: Dice) -> Any:
    import pyarrow as pa

    n = len(column)
    kinds: tuple[Callable[[], Any], ...] = (
        lambda: pa.array([None] * n, column.type),
        lambda: pa.nulls(n),
        lambda: pa.array([weird_text(rng) for _ in range(n)]),
        lambda: pa.array([float(pick(WEIRD_NUMBERS, rng)) for _ in range(n)]),
        lambda: pa.array([int(pick((0, -1, 2**63 - 1, -(2**63), 2**31), rng)) for _ in range(n)]),
        lambda: pa.array([int(pick((0, 2**64 - 1, 2**63), rng)) for _ in range(n)], pa.uint64()),
        lambda: pa.array(rng.integers(-(2**62), 2**62, n)).cast(pa.timestamp(pick(("s", "ms", "us", "ns"), rng), pick((None, "UTC", "Asia/Kabul"), rng))),
        lambda: pa.array([[k] for k in range(n)]),
        lambda: pa.array([{"a": k} for k in range(n)]),
        lambda: pa.array([rng.bytes(int(pick((0, 5, 21, 29), rng))) for _ in range(n)], pa.binary()),
        lambda: pa.array([b"\x01" + struct.pack("<I", int(pick((0, 2, 4, 7, 1001, 2**31), rng))) + rng.bytes(20) for _ in range(n)], pa.binary()),
        lambda: pa.array(["POINT (1 nan)", "POINT EMPTY", "LINESTRING (0 0, 1 1)"] * n)[:n],
        lambda: pa.array([k % 2 == 0 for k in range(n)]),
        lambda: pa.array(rng.integers(-(10**6), 10**6, n)).cast(pa.int32()).cast(pa.date32()),
        lambda: pa.array(rng.integers(0, 86_399, n).astype(np.int32)).cast(pa.time32("s")),
        lambda: pa.array(rng.integers(0, 10**6, n)).cast(pa.duration("us")),
        lambda: pa.array(rng.integers(0, 10**6, n)).cast(pa.decimal128(25, 3)),
        lambda: pa.array(rng.random(n).astype(np.float16)),
        lambda: column.combine_chunks().dictionary_encode() if not pa.types.is_dictionary(column.type) else column,
        lambda: pa.chunked_array([[None, *column.to_pylist()[1:]]], column.type),
    )  # fmt: skip
    try:
        return table.set_column(at, name, pick(kinds, rng)())
    except (pa.ArrowException, ValueError, OverflowError):
        return table


def in_sqlite(data: bytes, rng: Dice) -> bytes:
    """Change values, geometries, names of tables and columns of a GeoPackage, or single numbers of its pages."""
    if rng.random() < 0.2:
        out = bytearray(data)
        page = struct.unpack(">H", data[16:18])[0] or 4096
        at = int(rng.integers(len(data) // page)) * page + int(rng.integers(0, 100))
        out[at : at + 2] = struct.pack(">H", int(pick((0, 1, 2, 5, 10, 13, 0xFFFF, 4096), rng)))
        return bytes(out)
    database = sqlite3.connect(":memory:", isolation_level=None)
    database.deserialize(data)
    try:
        tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        for _ in range(int(rng.integers(1, 3))):
            table = pick(tables, rng)
            columns = [row[1] for row in database.execute(f'PRAGMA table_info("{table}")')]
            column = pick(columns, rng)
            rows = [row[0] for row in database.execute(f'SELECT rowid FROM "{table}"')]
            row = pick(rows, rng) if rows else 0
            old = database.execute(f'SELECT "{column}" FROM "{table}" WHERE rowid = {row}').fetchone()
            value = pick((*WEIRD_NUMBERS[:5], 2**63 - 1, 1e308, float("inf"), None, *WEIRD_TEXTS, b"", b"GP", b"\0" * 40), rng)
            if old and isinstance(old[0], bytes) and rng.random() < 0.7:
                value = in_bytes(old[0], rng)
            where = f" WHERE rowid = {row}" if rng.random() < 0.8 else ""
            statement = pick((f'UPDATE "{table}" SET "{column}" = ?{where}',) * 6 + (
                f'DELETE FROM "{table}"', f'DROP TABLE "{table}"', f'ALTER TABLE "{table}" RENAME TO "{"x" * 300}"',
                f'ALTER TABLE "{table}" RENAME COLUMN "{column}" TO "{pick(("x" * 300, "geom2", ""), rng)}"',
                f'CREATE VIEW v{int(rng.integers(9**9))} AS SELECT * FROM "{table}"',
                f'ALTER TABLE "{table}" DROP COLUMN "{column}"',
            ), rng)  # fmt: skip
            try:
                database.execute(statement, (value,) if "?" in statement else ())
            except (sqlite3.Error, OverflowError, UnicodeError):
                continue
            tables = [row[0] for row in database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")] or tables
        return bytes(database.serialize())
    except sqlite3.Error:
        return in_bytes(data, rng)
    finally:
        database.close()


def in_hdf5(data: bytes, rng: Dice) -> bytes:
    """Write another matrix of flows, or one that lies in another file."""
    import h5py

    out = io.BytesIO(data)
    with h5py.File(out, "r") as file:
        matrix = file["data/day"][:]
    out = io.BytesIO()
    n = len(matrix)
    with h5py.File(out, "w") as file:
        group = file.create_group("data")
        how = int(rng.integers(0, 11))
        if how <= 2:
            changed = in_array(matrix, rng)
            group.create_dataset("day", data=changed.astype("S3") if changed.dtype.kind == "U" else changed)
        elif how == 3:
            group["day"] = h5py.ExternalLink("/etc/passwd", "/data/day")
        elif how == 4:
            group["day"] = h5py.SoftLink(pick(("/data/day", "/data/other", "/data"), rng))
        elif how == 5:
            group.create_dataset(
                "day", shape=(n, n), dtype="u1", external=[(pick(("/etc/passwd", "/dev/zero", "../x"), rng), 0, n * n)]
            )
        elif how == 6:
            side = int(pick((10**4, 10**6, 2**40, 0), rng))
            group.create_dataset("day", shape=(side, side), dtype="f8", chunks=(100, 100), maxshape=(None, None))
        elif how == 7:
            kind = pick(
                (h5py.string_dtype(), np.dtype([("a", "f8"), ("b", "i4")]), h5py.vlen_dtype(np.int32), "c16", "S5", "?"), rng
            )
            group.create_dataset("day", shape=(n, n), dtype=kind)
        elif how == 8:
            for k in range(int(pick((2, 300), rng))):
                group.create_dataset(pick(("x" * 300, "é", "a"), rng) + str(k), data=matrix)
        elif how == 9:
            inner = group
            for _ in range(1000):
                inner = inner.create_group("day")
        else:
            group.create_dataset("day", data=matrix, chunks=(2, 2), compression="gzip", fletcher32=True)
    made = out.getvalue()
    return in_bytes(made, rng) if rng.random() < 0.2 else made


# -- OpenStreetMap ------------------------------------------------------------------------------------------------------------


def in_pbf(data: bytes, rng: Dice) -> bytes:
    """Change what is in the blocks of a .pbf, or the lengths that stand around them."""
    blocks = []
    at = 0
    while at + 4 <= len(data):
        length = struct.unpack(">I", data[at : at + 4])[0]
        header = data[at + 4 : at + 4 + length]
        size = _varint(header, header.rindex(b"\x18") + 1)[0]
        blocks.append((header, data[at + 4 + length : at + 4 + length + size]))
        at += 4 + length + size
    chosen = int(rng.integers(len(blocks)))
    how = rng.random()
    out = b""
    for k, (header, blob) in enumerate(blocks):
        if k == chosen:
            raw = _payload(blob)
            if raw is not None and how < 0.75:
                changed = in_bytes(raw, rng)
                stated = len(changed) if how < 0.65 else int(pick((0, 1, 2**31 - 1, 2**25, len(changed) + 1), rng))
                blob = _field(2, stated) + b"\x1a" + coded(len(packed := zlib.compress(changed, 1))) + packed
            elif how < 0.755:
                packed = zlib.compress(bytes(int(pick((10**6, 10**8), rng))), 1)
                blob = _field(2, int(pick((10**6, 10**8, 100), rng))) + b"\x1a" + coded(len(packed)) + packed
            elif how < 0.85:
                blob = in_bytes(blob, rng)
            elif how < 0.9:
                header = in_bytes(header, rng)
            kind = header[: header.rindex(b"\x18")] if b"\x18" in header else header
            size = len(blob) if how < 0.95 else int(pick((0, 2**31 - 1, 2**25, 1), rng))
            header = kind + b"\x18" + coded(size)
            times = 1 if how < 0.97 else int(pick((0, 2, 200), rng))
        else:
            times = 1
        length = len(header) if k != chosen or how < 0.92 or how > 0.95 else int(pick((0, 2**31, 70_000), rng))
        out += (struct.pack(">I", length) + header + blob) * times
    return out


def _payload(blob: bytes) -> bytes | None:
    at = blob.find(b"\x1a")
    if at < 0:
        return None
    size, start = _varint(blob, at + 1)
    try:
        return zlib.decompress(blob[start : start + size])
    except zlib.error:
        return None


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data):
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if not data[at - 1] & 128:
            break
    return value, at


def coded(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes([*out, value])


def _field(number: int, value: int) -> bytes:
    return bytes([number << 3]) + coded(value)


# -- folders ------------------------------------------------------------------------------------------------------------------


def reseal(folder: Path) -> None:
    """Write the hashes of the files as they are now: a stranger can do so, too."""
    import hashlib

    path = folder / "manifest.json"
    manifest = json.loads(path.read_text())
    manifest["files"] = {
        file.relative_to(folder).as_posix(): hashlib.sha256(file.read_bytes()).hexdigest()
        for file in sorted(folder.rglob("*"))
        if file.is_file() and file != path
    }
    path.write_text(json.dumps(manifest))


def in_model(folder: Path, rng: Dice) -> None:
    """Change one array, one schema or some bytes of a saved model, and let the manifest vouch for it."""
    file = pick(sorted((folder / "model").iterdir()), rng)
    if file.suffix == ".json":
        text = dumped(in_tree(json.loads(file.read_text()), rng), rng)
        file.write_text(text if rng.random() < 0.95 else "[" * 100_000, errors="surrogatepass")
    elif rng.random() < 0.1:
        file.write_bytes(in_bytes(file.read_bytes(), rng))
    elif file.suffix == ".npz":
        file.write_bytes(in_npz(file.read_bytes(), rng))
        schema = folder / "model" / "schema.json"
        if schema.is_file() and rng.random() < 0.8:
            values = json.loads(schema.read_text())
            if "arrays" in values:
                try:
                    with np.load(file) as stored:
                        values["arrays"] = {
                            k: {"shape": list(a.shape), "dtype": str(a.dtype)}
                            for k, a in stored.items()
                            if isinstance(a, np.ndarray)
                        }
                except Exception:  # noqa: BLE001 - as damaged as can be
                    return reseal(folder)
                schema.write_text(json.dumps(values))
    elif file.suffix == ".npy":
        np.save(file, in_array(np.load(file), rng))
    else:
        file.write_bytes(in_bytes(file.read_bytes(), rng))
    return reseal(folder)


def in_manifest(folder: Path, rng: Dice) -> None:
    path = folder / "manifest.json"
    if rng.random() < 0.15:
        path.write_bytes(in_bytes(path.read_bytes(), rng))
    else:
        path.write_text(dumped(in_tree(json.loads(path.read_text()), rng), rng), errors="surrogatepass")


def in_release(folder: Path, rng: Dice) -> None:
    """Change one data file of a release, and let the manifest vouch for it."""
    by_ending: dict[str, Mutator] = {".parquet": in_parquet, ".json": in_json, ".geojson": in_json, ".gpkg": in_sqlite}
    file = pick([path for path in sorted(folder.rglob("*")) if path.suffix in by_ending and path.name != "manifest.json"], rng)
    file.write_bytes(mixed(by_ending[file.suffix])(file.read_bytes(), rng))
    reseal(folder)


def in_input(own: Mutator, folder: Path, rng: Dice) -> None:
    """Change the file called `input`."""
    file = the_input(folder)
    file.write_bytes(own(file.read_bytes(), rng))


def the_input(folder: Path) -> Path:
    """Return the file of a folder that is handed over."""
    return next(path for path in folder.iterdir() if path.name.startswith("input"))


def scratch() -> Any:
    """Return a temporary folder, in memory where there is such a file system."""
    memory = Path("/dev/shm")
    return tempfile.TemporaryDirectory(dir=memory if memory.is_dir() else None)
