"""Times: zones explicit, units told apart, mixtures refused."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from murmurate.errors import InputError, ParameterError
from murmurate.ingest.counts import ReadReport
from murmurate.ingest.instants import NAIVE, UNREADABLE, parse
from murmurate.ingest.read import read

MOMENT = datetime(2020, 7, 1, 12, 30, 15, tzinfo=UTC)
MOMENT_US = int(MOMENT.timestamp()) * 1_000_000


def read_times(values, **options):
    count = len(values)
    frame = pl.DataFrame({"uid": [str(k) for k in range(count)], "t": values, "lat": [1.0] * count, "lng": [1.0] * count})
    return read(frame, **options).time_us.tolist()


@pytest.mark.parametrize("scale", [1, 10**3, 10**6, 10**9])
def test_counts_since_1970_tell_their_unit(scale):
    seconds = MOMENT_US // 10**6
    assert read_times([seconds * scale]) == [MOMENT_US]
    assert read_times([str(seconds * scale)]) == [MOMENT_US]


def test_fractions_of_seconds_since_1970():
    assert read_times([MOMENT_US / 1e6 + 0.5]) == [MOMENT_US + 500_000]


def test_units_that_cannot_be_told_are_asked_for():
    with pytest.raises(InputError, match="time_unit='s'"):
        read_times([0, 15, 30])
    assert read_times([0, 15], time_unit="s") == [0, 15_000_000]
    with pytest.raises(InputError, match="mixed units"):
        read_times([1_600_000_000, 1_600_000_000_000])
    with pytest.raises(InputError, match="since 1970"):
        read_times([1_600_000_000, 1_600_000_001, 3])


@pytest.mark.parametrize(
    "text",
    [
        "2020-07-01T12:30:15Z",
        "2020-07-01 12:30:15+00:00",
        "2020-07-01T15:30:15+03:00",
        "2020-07-01T15:30:15.000+0300",
        "2020/7/1 15:30:15 +03",
        "2020-07-01 12:30:15 UTC",
        "2020-07-01 12:30:15 GMT",
        "2020-07-01T12:30:15,0Z",
        "  2020-07-01t12:30:15.000000000z ",
    ],
)
def test_iso_texts(text):
    assert read_times([text]) == [MOMENT_US]


@pytest.mark.parametrize(
    "text",
    [
        "2020-02-30T00:00:00Z",
        "2020-13-01T00:00Z",
        "2020-01-01",
        "2020-01-01T24:00:00Z",
        "2020-01-01T00:00:00+2",
        "-",
        "2020-01-01T10:00:00Z!",
        "2020-01-01 10:22:41 GMX",
        "2020-01-01 10:22:41 CEST",
        "2020-01-01 10:22:41 +16:00",
        "2020-01-01T10:22:60Z",
        "2020-01-01T10: 2:41Z",
        "2020-01/01 10:22",
        "13/13/2020 10:00",
    ],
)
def test_texts_that_are_no_time(text):
    with pytest.raises(InputError, match="not a time"):
        read_times([text])


def test_a_garbage_zone_is_told_by_its_row():
    with pytest.raises(InputError, match="99:99:99 AAA") as caught:
        read_times(["2020-07-01 10:22:41 GMT", "2020-07-01 10:22:42 GMX"])
    assert caught.value.faults[0].row == 2


def test_fractions_may_come_and_go():
    texts = ["2020-07-01T12:30:15Z", "2020-07-01T12:30:15.5Z", "2020-07-01T12:30:15.1234567Z"]
    assert read_times(texts) == [MOMENT_US, MOMENT_US + 500_000, MOMENT_US + 123_456]
    assert read_times(texts[::-1]) == [MOMENT_US + 123_456, MOMENT_US + 500_000, MOMENT_US]


def test_day_and_month_are_told_apart_where_only_one_order_fits():
    assert read_times(["01/07/2020 12:30:15 UTC", "13/07/2020 12:30:15 UTC"])[0] == MOMENT_US
    assert read_times(["7/1/2020 12:30:15Z", "7/13/2020 12:30:15Z"])[0] == MOMENT_US
    assert read_times(["01.07.2020 12:30:15Z"]) == [MOMENT_US]
    with pytest.raises(InputError, match="day or month first") as caught:
        read_times(["01/07/2020 12:30:15Z", "02/07/2020 12:30:15Z"])
    assert "time_format" in caught.value.remedy


def test_a_format_says_how_times_are_written():
    wall = MOMENT.replace(second=0)
    minute = int(wall.timestamp()) * 1_000_000
    assert read_times(["01/07/2020 12:30"], time_format="%d/%m/%Y %H:%M", time_zone="UTC") == [minute]
    assert read_times(["07/01/2020 12:30"], time_format="%m/%d/%Y %H:%M", time_zone="UTC") == [minute]
    assert read_times([" 1 Jul 2020 12:30 PM "], time_format="%d %b %Y %I:%M %p", time_zone="UTC") == [minute]
    assert read_times(["01/07/2020 15:30 +0300"], time_format="%d/%m/%Y %H:%M %z") == [minute]
    assert read_times([20200701123015], time_format="%Y%m%d%H%M%S", time_zone="UTC") == [MOMENT_US]
    with pytest.raises(InputError, match="no time zone"):
        read_times(["01/07/2020 12:30"], time_format="%d/%m/%Y %H:%M")
    with pytest.raises(InputError, match="'%d/%m/%Y %H:%M' writes") as caught:
        read_times(["01/07/2020 12:30", "1 July"], time_format="%d/%m/%Y %H:%M", time_zone="UTC")
    assert caught.value.faults[0].row == 2


@pytest.mark.parametrize("time_format", ["%d/%m/%Y", "%H:%M", "%Q", "", "%d/%m/%Y %I:%M", "%d/%m/%Y %H:%M %Z"])
def test_a_format_that_tells_no_moment_is_refused(time_format):
    with pytest.raises(ParameterError, match="time_format must tell date, hour and minute"):
        read_times(["01/07/2020 12:30"], time_format=time_format, time_zone="UTC")


def test_naive_times_need_a_zone():
    for value in ("2020-07-01 12:30:15", datetime(2020, 7, 1, 12, 30, 15)):
        with pytest.raises(InputError, match="no time zone"):
            read_times([value])
        assert read_times([value], time_zone="Europe/Helsinki") == [MOMENT_US - 3 * 3_600_000_000]


def test_mixed_zones_are_refused():
    with pytest.raises(InputError, match="mixed time zones") as caught:
        read_times(["2020-07-01T12:00:00Z", "2020-07-01T12:00:00+02:00"])
    assert caught.value.faults[0].row == 2
    with pytest.raises(InputError, match="mixed time zones"):
        read_times(["2020-07-01T12:00:00Z", "2020-07-01T12:00:00"], time_zone="UTC")


def test_offsets_that_follow_summer_time_are_explained_by_the_zone():
    texts = ["2020-01-01T12:00:00+01:00", "2020-07-01T12:00:00+02:00"]
    with pytest.raises(InputError, match="mixed"):
        read_times(texts)
    with pytest.raises(InputError, match="mixed"):
        read_times(texts, time_zone="Europe/Helsinki")
    assert read_times(texts, time_zone="Europe/Berlin") == [1577876400_000_000, 1593597600_000_000]


def test_clocks_set_back_and_forward():
    report = ReadReport()
    assert read_times(["2020-10-25 03:30:00"], time_zone="Europe/Helsinki", report=report) == [1603585800_000_000]
    assert report.ambiguous_times == 1
    with pytest.raises(InputError, match="skipped"):
        read_times(["2020-03-29 03:30:00"], time_zone="Europe/Helsinki")


def test_absurd_times_are_refused():
    for value in ("1066-10-14T12:00:00Z", "2600-01-01T00:00:00Z"):
        with pytest.raises(InputError, match="1900 to 2200"):
            read_times([value])
    with pytest.raises(InputError):
        read_times([2**62], time_unit="s")
    with pytest.raises(InputError, match="not a number"):
        read_times([float("inf")])


@pytest.mark.filterwarnings("error")
def test_numbers_of_half_precision_are_no_times():
    with pytest.raises(InputError, match="time_unit"):
        read_times(pl.Series([1.5, 20.0, 300.0], dtype=pl.Float16))


def test_any_datetime_column():
    moments = pl.Series([MOMENT]).dt.convert_time_zone("Asia/Tokyo")
    for unit in ("ms", "us", "ns"):
        assert read_times(moments.dt.cast_time_unit(unit)) == [MOMENT_US]


@given(
    st.datetimes(min_value=datetime(1, 1, 1), max_value=datetime(9999, 12, 31)),
    st.integers(-15 * 60, 15 * 60),
    st.sampled_from("T "),
)
def test_the_parser_reads_what_python_writes(moment, minutes, separator):
    text = moment.isoformat(separator)
    clock, offset = parse(pl.Series([text, moment.replace(tzinfo=timezone(timedelta(minutes=minutes))).isoformat()]))
    wall = np.datetime64(moment, "us").astype(np.int64)
    assert clock.tolist() == [wall, wall]
    assert offset.tolist() == [NAIVE, minutes]


@given(st.text(max_size=40))
def test_the_parser_takes_any_text(text):
    _, offset = parse(pl.Series([text]))
    if offset[0] != UNREADABLE:
        assert text.strip()[:4].isdigit()
