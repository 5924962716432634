"""Dummies: the same device chooses the same fakes, and what is sent tells nothing of which place is true."""

from __future__ import annotations

import struct
import zlib
from datetime import UTC, datetime, timedelta

import numpy as np
import polars as pl
import pytest

from murmurate.core.trips import Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.plausible.dummies import MAGIC, Pool, choose
from murmurate.mechanisms.plausible.model import as_trips
from plausible_days import GRID, made_days

DEVICE = b"a secret of this very device"
NOON = datetime(2026, 3, 2, 12, 0, tzinfo=UTC)


@pytest.fixture(scope="module")
def pool():
    return Pool(made_days(300, 1).place, GRID, "Europe/Helsinki")


def test_a_release_is_a_pool():
    place = made_days(5, 1).place
    assert (Pool.of(as_trips(place, GRID, "UTC")).place == place).all()
    uneven = Trips(pl.DataFrame({"uid": [1, 1, 2], "tid": [1, 1, 2], "lat": [60.01] * 3, "lng": [24.01] * 3}))
    with pytest.raises(InputError, match="one point for each step"):
        Pool.of(uneven, grid=GRID)
    with pytest.raises(ParameterError, match="grid"):
        Pool.of(uneven)


def test_the_file_is_small_and_comes_back(pool, tmp_path):
    size = pool.save(tmp_path / "pool.mur")
    assert size < 25 * pool.n_traces
    again = Pool.load(tmp_path / "pool.mur")
    assert (again.place == pool.place).all()
    assert (again.grid.spec(), again.time_zone, again.digest) == (GRID.spec(), "Europe/Helsinki", pool.digest)
    assert (choose(again, 10, device=DEVICE).chosen == choose(pool, 10, device=DEVICE).chosen).all()


def test_choices_belong_to_the_device_and_the_pool(pool):
    own = choose(pool, 10, device=DEVICE).chosen
    assert len(set(own.tolist())) == 10
    assert (own != choose(pool, 10, device=DEVICE + b"!").chosen).any()
    assert (own != choose(pool, 10, device=DEVICE, day="2026-03-03").chosen).any()
    assert (own != choose(Pool(pool.place[::-1].copy(), GRID), 10, device=DEVICE).chosen).any()


def test_uniform_choices_are_uniform(pool):
    count = np.zeros(pool.n_traces)
    for k in range(600):
        count[choose(pool, 10, device=b"device number %06d" % k).chosen] += 1
    assert abs(count.mean() - 20) < 1e-9
    assert count.std() < 1.3 * np.sqrt(20)


def test_likelihood_favours_the_usual(pool):
    def moves(by):
        chosen = [choose(pool, 10, device=b"device number %06d" % k, by=by).chosen for k in range(20)]
        place = pool.place[np.concatenate(chosen)]
        return (place[:, 1:] != place[:, :-1]).sum(axis=1).mean()

    assert moves("likelihood") < 0.6 * moves("uniform")


def test_what_is_sent(pool):
    dummies = choose(pool, 5, device=DEVICE)
    lat, lng = GRID.centre(42)
    sent = dummies.at(NOON, float(lat) + 0.001, float(lng) + 0.001)
    assert len(sent) == 6
    assert (float(lat), float(lng)) in sent  # the centre, not the exact place
    assert sent == dummies.at(NOON, float(lat) - 0.001, float(lng))
    cells = sorted(dummies.cells_at(NOON, 42))
    assert cells == sorted([42, *pool.place[dummies.chosen, 14 * 3].tolist()])  # 12 UTC is 14 in Helsinki


def test_the_order_tells_nothing(pool):
    dummies = choose(pool, 4, device=DEVICE)
    odd = [dummies.cells_at(NOON + timedelta(minutes=k), 100).index(100) for k in range(2000)]
    count = np.bincount(odd, minlength=5)
    assert (abs(count - 400) < 6 * np.sqrt(400 * 0.8)).all()


def test_fakes_are_fixed_traces(pool):
    dummies = choose(pool, 3, device=DEVICE)
    morning = [sorted(dummies.cells_at(NOON + timedelta(days=day), 42)) for day in range(3)]
    assert morning[0] == morning[1] == morning[2]


def test_outside_the_grid_nothing_is_sent(pool):
    dummies = choose(pool, 3, device=DEVICE)
    with pytest.raises(InputError, match="outside"):
        dummies.at(NOON, 0.0, 0.0)
    with pytest.raises(ParameterError, match="time zone"):
        dummies.at(datetime(2026, 3, 2), 60.01, 24.01)


@pytest.mark.parametrize(
    "changes", [{"k": 0}, {"k": 301}, {"device": b"short"}, {"device": "text of enough length"}, {"by": "luck"}]
)
def test_senseless_choices_are_refused(pool, changes):
    with pytest.raises(ParameterError):
        choose(pool, **{"k": 3, "device": DEVICE, **changes})


def header(traces=2, steps=72, grid=GRID.spec(), zone="UTC"):
    return f'{{"grid": "{grid}", "steps": {steps}, "time_zone": "{zone}", "traces": {traces}}}'.encode()


def packed(head, body):
    return MAGIC + struct.pack(">I", len(head)) + head + zlib.compress(body)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"PK\x03\x04 something else",
        MAGIC,
        MAGIC + struct.pack(">I", 10) + b"{}",
        packed(b"[]", b""),
        packed(header(), b""),
        packed(header(), b"\x01\x49\x00" * 2),
        packed(header(traces=10**9), b"\x01\x48\x00"),
        packed(header(grid="plane:60,24"), b"\x01\x48\x00" * 2),
        packed(header(zone="Nowhere/Else"), b"\x01\x48\x00" * 2),
        packed(header(), b"\x01\x48\xff\xff\xff\xff\xff\xff\xff\x01" * 2),
        packed(header(), b"\x01\x48\x00" * 2)[:-9],
    ],
)
def test_damaged_files_are_refused(data, tmp_path):
    path = tmp_path / "pool.mur"
    path.write_bytes(data)
    with pytest.raises(InputError):
        Pool.load(path)


def test_a_missing_file_and_a_bomb_are_refused(tmp_path, monkeypatch):
    with pytest.raises(InputError, match="cannot be read"):
        Pool.load(tmp_path / "nothing")
    monkeypatch.setattr("murmurate.mechanisms.plausible.dummies.MOST_BYTES", 1000)
    (tmp_path / "bomb").write_bytes(packed(header(), b"\x00" * 100_000))
    with pytest.raises(InputError, match="too large"):
        Pool.load(tmp_path / "bomb")


def test_a_good_file_by_hand_is_read(tmp_path):
    (tmp_path / "pool").write_bytes(packed(header(), b"\x01\x48\x06\x02\x24\x00\x24\x02"))
    place = Pool.load(tmp_path / "pool").place
    assert (place[0] == 3).all()
    assert place[1].tolist() == [0] * 36 + [1] * 36
