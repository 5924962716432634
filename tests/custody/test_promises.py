"""Promises that would not hold for the people of a file are refused before anything is spent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import polars as pl
import pytest

import murmurate as mm
from murmurate.core.guarantee import DP, GeoInd, Unit
from murmurate.core.trips import Identity, Trips
from murmurate.custody.sources import open_private
from murmurate.errors import GuaranteeRefused, InputError
from murmurate.ingest.cleaning import Cleaning

NOON_S = 1_714_564_800


def trips(zone: str = "UTC") -> Trips:
    """One trip each of eight people, read with the days of a time zone."""
    rows = [(f"person{u}", 0, NOON_S + p * 15, 60.17 + u * 0.001, 24.94 + p * 1e-4) for u in range(8) for p in range(6)]
    return mm.read(pl.DataFrame(rows, schema=["uid", "tid", "t", "lat", "lng"], orient="row"), local_zone=zone)


def geoind(**changes: Any) -> Any:
    return mm.GeoIndistinguishability(**{"epsilon": 1.0, "radius_m": 100.0, "max_points": 6, "unit": "user_day", **changes})


def test_person_days_of_two_time_zones_are_not_added_up(tmp_path):
    """One day of Tokyo is part of two days of UTC: a limit on person-days would not hold for it."""
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        mm.release(geoind(), trips(), ledger=ledger)
        before = ledger.history()
        with pytest.raises(GuaranteeRefused, match=r"counted in UTC before, and now in Asia/Tokyo.*--local-zone UTC"):
            mm.release(geoind(), trips("Asia/Tokyo"), ledger=ledger)
        assert ledger.history() == before
        mm.release(geoind(), trips(), ledger=ledger)
        mm.release(geoind(unit="trip"), trips("Asia/Tokyo"), ledger=ledger)  # a trip is the same trip in every zone
    with mm.Ledger(tmp_path / "ledger.sqlite") as again, pytest.raises(GuaranteeRefused, match="counted in UTC before"):
        mm.release(geoind(), trips("Asia/Tokyo"), ledger=again)


def test_person_days_of_two_time_zones_are_not_added_up_over_populations():
    """A limit holds for each person, wherever that person is charged: also for one of the people of another file."""
    day, said = DP(epsilon=1.0, unit=Unit(name="user_day")), {"mechanism": "m", "parameters": {}}
    with mm.Ledger.in_memory() as ledger:
        ledger.attach(Identity("one", tuple(f"a{k}" for k in range(20))), "one", create=True)
        ledger.attach(Identity("two", ("a1", *(f"b{k}" for k in range(20)))), "two", create=True)
        ledger.charge("one", day, release_id="a", days_in="UTC", **said)
        with pytest.raises(GuaranteeRefused, match="counted in UTC before, and now in Asia/Tokyo"):
            ledger.charge("two", day, release_id="b", days_in="Asia/Tokyo", **said)
        ledger.charge("two", day, release_id="c", days_in="UTC", **said)


@pytest.mark.parametrize("zone", ["UTC", "Asia/Tokyo"])
def test_days_that_were_counted_in_two_zones_fit_no_zone(zone):
    """Two populations may meet after each was charged: to read the file in the zone of the other would be refused again."""
    day, said = DP(epsilon=1.0, unit=Unit(name="user_day")), {"mechanism": "m", "parameters": {}}
    with mm.Ledger.in_memory() as ledger:
        ledger.attach(Identity("one", tuple(f"a{k}" for k in range(20))), "one", create=True)
        ledger.attach(Identity("two", tuple(f"b{k}" for k in range(20))), "two", create=True)
        ledger.charge("one", day, release_id="a", days_in="UTC", **said)
        ledger.charge("two", day, release_id="b", days_in="Asia/Tokyo", **said)
        ledger.attach(Identity("three", ("a1", *(f"b{k}" for k in range(20)))), "two", create=True)
        with pytest.raises(GuaranteeRefused, match=r"in Asia/Tokyo, UTC before.*per person-day\. Promise unit=user\."):
            ledger.charge("two", day, release_id="c", days_in=zone, **said)
        ledger.charge("two", DP(epsilon=1.0, unit=Unit(name="user")), release_id="d", days_in=zone, **said)


def test_days_of_one_kind_do_not_bind_those_of_another(tmp_path):
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        name = ledger.population_of(trips().identity, create=True)
        day, said = Unit(name="user_day"), {"mechanism": "m", "parameters": {}}
        ledger.charge(name, DP(epsilon=1.0, unit=day), release_id="a", days_in="UTC", **said)
        ledger.charge(name, GeoInd(epsilon_per_m=0.1, unit=day), release_id="b", days_in="Asia/Tokyo", **said)
        ledger.charge(name, DP(epsilon=1.0, unit=day), release_id="c", **said)  # who does not say is believed
        with pytest.raises(GuaranteeRefused):
            ledger.charge(name, DP(epsilon=1.0, unit=day), release_id="d", days_in="Asia/Tokyo", **said)


def commute(stay_m: float, folder: Path) -> Path:
    """A drive, twenty minutes to and fro over so many metres, and another drive."""
    lat = [*(60.15 + k / 1000 for k in range(20)), *(60.17 + (k % 2) * stay_m / 111_195 for k in range(20))]
    lat += [60.17 + k / 1000 for k in range(1, 20)]
    path = folder / f"{stay_m}.csv"
    rows = [f"ann,{NOON_S + 60 * k},{place:.6f},24.94\n" for k, place in enumerate(lat)]
    path.write_text("uid,datetime,lat,lng\n" + "".join(rows))
    return path


def test_trips_are_not_cut_by_places_where_places_are_hidden(tmp_path):
    """Three metres, which the promise hides up to a factor of 1.02, would show in how many trips are released."""
    found = []
    for stay_m in (99, 102):
        cut = open_private(commute(stay_m, tmp_path), clean={"split_stay_s": 600})
        found.append(cut.n_trips)
        with mm.Ledger.in_memory() as ledger:
            by_hand = Cleaning(split_stay_s=600).apply(mm.read(commute(stay_m, tmp_path)))[0]
            for same in (cut, by_hand):
                with pytest.raises(InputError, match=r"split_stay_s looks at the exact places.*Nothing was charged"):
                    mm.release(geoind(epsilon=0.1), same, ledger=ledger)
            assert not ledger.populations()
            mm.release(geoind(), open_private(commute(stay_m, tmp_path), clean={"split_gap_s": 300}), ledger=ledger)
    assert found == [2, 1]


@pytest.mark.parametrize("other", [" 7", "007", "7.0", "7\u200b"])
def test_a_person_under_two_spellings_is_refused_for_people(other):
    """The ledger knows them as one, so they may not be bounded as two."""
    table = pl.DataFrame({"uid": ["7", other, "8"], "tid": [1, 1, 1], "lat": [60.1] * 3, "lng": [24.9] * 3})
    with mm.Ledger.in_memory() as ledger:
        with pytest.raises(InputError, match="two ways"):
            mm.release(geoind(unit="user"), Trips(table), ledger=ledger)
        assert not ledger.populations()
        mm.release(geoind(unit="trip"), Trips(table), ledger=ledger)
