"""od_counts: sums that agree, intervals that hold, figures left out by noisy values, and what trips and days cost."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import noise
from murmurate.asking.meter import spent_share
from murmurate.asking.rounds import fitted
from murmurate.asking.table import Answer
from murmurate.core.trips import Trips
from murmurate.custody.recipes import Recipe
from murmurate.custody.releasing import prepare
from murmurate.engine import Serial
from murmurate.errors import ParameterError
from murmurate.mechanisms.od_counts import ODCounts
from murmurate.mechanisms.od_counts.clip import EDGES, MAX_LOSS, Norms, count_norms
from murmurate.mechanisms.od_counts.counting import CountTrips, Weighing
from murmurate.mechanisms.od_counts.publish import apportion
from murmurate.metrics.zone_flows import Truth
from murmurate.spaces.grid import Grid
from murmurate.spaces.zone_flows import REST, ZoneFlows
from murmurate.spaces.zone_trips import ZoneTrips

SF = Grid(37.6017, -122.5158, 37.8112, -122.3527, 2000)
"""500 m cells grouped by four by four: 96 zones."""


@pytest.fixture(scope="module")
def city():
    return mm.demo.city(people=400, days=7, seed=5, interval_s=120)


@pytest.fixture(scope="module")
def zones(city):
    return city.grid(1500.0)


def ends_only(trips: Trips) -> Trips:
    """The first and last point of every trip, which is all that the zones see: the same counts at a fraction of the cost."""
    keep = np.zeros(trips.n_points, dtype=bool)
    keep[trips.offsets[:-1]] = keep[trips.offsets[1:] - 1] = True
    return trips.take_points(keep)


@pytest.mark.parametrize(
    "options", [{}, {"max_error": 0}, {"unit": "user_day", "epsilon": 8.0}, {"unit": "user", "noise": "laplace"}]
)
def test_all_sums_agree_and_nothing_is_negative(city, zones, options, tmp_path):
    mechanism = ODCounts(**{"epsilon": 1.0, "space": zones, **options})
    flows = fitted(mechanism, city.trips, noise.seeded(3))
    assert flows.disagreements() == []
    assert (flows.od["trips"].fill_null(0) >= 0).all() and flows.od.filter(pl.col("destination") == REST).height
    flows.write(tmp_path)
    again = ZoneFlows.read(tmp_path, zones)
    assert all(getattr(again, name).equals(getattr(flows, name)) for name in ("zones", "od", "classes"))
    if mechanism.max_error == 0:
        assert not flows.zones["trips"].null_count()
        whole = flows.matrix()
        assert np.allclose(whole.sum(axis=1), flows.totals("departures", time="day")[:, 0])


def test_a_sum_that_does_not_agree_is_noticed(city, zones):
    flows = fitted(ODCounts(epsilon=1.0, space=zones, max_error=0), city.trips, noise.seeded(3))
    for name, of in (("zones", "departures of"), ("od", "pairs of"), ("classes", "do not add up to the city")):
        table = getattr(flows, name)
        wrong = table.with_columns(trips=pl.col("trips") + (pl.int_range(pl.len()) == table["trips"].arg_max()))
        assert any(of in fault for fault in replace(flows, **{name: wrong}).disagreements())


def test_with_a_huge_budget_the_figures_are_the_counts(city, zones):
    flows = fitted(ODCounts(epsilon=1e6, space=zones, max_error=0), city.trips, noise.seeded(3))
    both = Truth(flows, city.trips)
    for table in (both.zones, both.od, both.classes):
        assert (table["trips"] == table["true"]).all()
    assert both.trips.trip.size == flows.about["trips"] == flows.matrix().sum()


def test_intervals_hold_the_true_count_as_often_as_they_say(city, zones):
    """Fifty releases; of all figures that are published, and of those of each table."""
    private, held, shown = ends_only(city.trips), {}, {}
    first = None
    for seed in range(50):
        flows = fitted(ODCounts(epsilon=4.0, space=zones, max_error=0.3), private, noise.seeded(seed))
        both = Truth(flows, private)
        if first is not None:
            both.__dict__["trips"] = first
        first = both.trips
        for name in ("zones", "od", "classes"):
            rows = getattr(both, name).filter(pl.col("trips").is_not_null())
            inside = rows["true"].is_between(rows["low"], rows["high"])
            held[name], shown[name] = held.get(name, 0) + int(inside.sum()), shown.get(name, 0) + rows.height
    assert all(count > 500 for count in shown.values())
    assert sum(held.values()) / sum(shown.values()) == pytest.approx(0.95, abs=0.02)
    assert held["zones"] / shown["zones"] == pytest.approx(0.95, abs=0.02)
    assert held["od"] / shown["od"] == pytest.approx(0.95, abs=0.02)


def test_figures_are_left_out_by_noisy_values_and_say_less_than_promised(city, zones):
    flows = fitted(ODCounts(epsilon=1.0, space=zones, max_error=0.2), city.trips, noise.seeded(3))
    rows = Truth(flows, city.trips).zones
    hidden = rows.filter(pl.col("trips").is_null())
    assert hidden.height and not hidden["se"].count() and not hidden["low"].count()
    kept = rows.filter(pl.col("trips").is_not_null(), pl.col("area") == "zone")
    far = ((kept["trips"] - kept["true"]).abs() > 0.2 * kept["trips"]).mean()
    assert kept.height > 30 and far <= 0.06


def test_a_declared_column_is_counted_and_other_values_together(city, zones):
    modes = pl.Series(np.where(city.trips.trip_user % 3 == 0, "bus", "=cmd()"))
    private = city.trips.with_columns({"mode": modes.gather(city.trips.point_trip)})
    mechanism = ODCounts(epsilon=1e5, space=zones, max_error=0, column="mode", categories=("car", "bus"))
    found = fitted(mechanism, private, noise.seeded(1)).classes.filter(of="mode")
    assert found["label"].to_list() == ["car", "bus", "other"] and found["trips"][0] == 0 < found["trips"][1]
    without = fitted(mechanism, city.trips, noise.seeded(1)).classes.filter(of="mode")
    assert without["trips"].to_list()[:2] == [0, 0]  # a column that is not there says nothing


def test_a_declared_column_of_a_large_file_is_counted(city, tmp_path, monkeypatch):
    modes = pl.Series(np.where(city.trips.trip_user % 3 == 0, "bus", "car"))
    city.trips.with_columns({"mode": modes.gather(city.trips.point_trip)}).table.write_parquet(tmp_path / "trips.parquet")
    settings = {"epsilon": 100, "space": "grid:44.9613,-30.0547,45.0387,-29.9452:2000", "max_error": 0, "seed": 1}
    asked = Recipe(
        mechanism="od_counts",
        source=str(tmp_path / "trips.parquet"),
        out=str(tmp_path / "out"),
        ledger="demo",
        parameters={**settings, "column": "mode", "categories": ["bus", "car"]},
        read={"time_zone": "UTC"},
    )
    found = []
    for rows in (10**9, 100):
        monkeypatch.setattr("murmurate.ingest.stream._STREAM_ROWS", rows)
        ready = prepare(asked, Serial())
        assert isinstance(ready.private, Trips) == (rows > 100)
        found.append(fitted(ready.mechanism, ready.private, noise.seeded(1)).classes.filter(of="mode"))
    assert found[0].equals(found[1]) and min(found[0]["trips"].to_list()[:2]) > 0


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"column": "mode"}, "column and categories go together"),
        ({"categories": ("a",)}, "column and categories go together"),
        ({"column": "pairs", "categories": ("a",)}, "name of a table"),
        ({"column": "mode", "categories": ("a", "a")}, "different values"),
        ({"max_trips": 3}, "with unit='trip' there is one"),
        ({"clip": 2.0}, "with unit='trip' each adds one count"),
        ({"space": mm.Plane(60, 25)}, "space must be zones"),
        ({"max_error": -0.1}, "max_error"),
        ({"level": 1.0}, "level"),
        ({"unit": "user", "delta": 0.0}, "delta"),
    ],
)
def test_bad_parameters_are_refused(zones, wrong, words):
    with pytest.raises(ParameterError, match=words):
        ODCounts(**{"epsilon": 1.0, "space": zones, **wrong})


def test_no_pair_above_its_threshold_is_no_fault(zones):
    lat, lng = zones.centre([0, 5])
    table = pl.DataFrame({"uid": ["a", "a"], "tid": [1, 1], "datetime": [0, 600_000_000], "lat": lat, "lng": lng}).with_columns(
        pl.col("datetime").cast(pl.Datetime("us", "UTC"))
    )
    flows = fitted(ODCounts(epsilon=0.5, space=zones), Trips(table), noise.seeded(2))
    assert flows.disagreements() == [] and not flows.pairs(area="zone").height


def test_whole_numbers_keep_totals():
    weights = np.random.default_rng(1).random((50, 7)) * np.array([1, 0, 5, 0, 0.1, 3, 9])
    totals = np.arange(50)
    found = apportion(weights, totals)
    assert (found.sum(axis=1) == totals).all() and (found >= 0).all() and (found[:, [1, 3]] == 0).all()
    assert np.abs(found - weights / weights.sum(axis=1, keepdims=True) * totals[:, None]).max() < 1


class Twice(CountTrips):
    """The planted fault: a trip counts where it begins and, once more, where it ends."""

    def __call__(self, prepared):
        found = super().__call__(prepared)
        rows = found["departures"]
        both = [
            np.concatenate([a, b])
            for a, b in zip((rows.unit, rows.bin, rows.weight), (rows.unit, found["arrivals"].bin, rows.weight), strict=True)
        ]
        return {**found, "departures": type(rows)(*both)}


def test_a_trip_that_counts_twice_is_caught(city, zones, monkeypatch):
    from murmurate.asking import clipping
    from murmurate.mechanisms.od_counts import mechanism

    everyone, last = city.trips, city.trips.n_trips - 1
    without = everyone.take_trips(np.arange(last))
    honest = ODCounts(epsilon=1.0, space=zones)
    assert 0.5 < sum(spent_share(honest, everyone, without, noise.seeded(1)).values()) <= 1
    monkeypatch.setattr(mechanism, "CountTrips", Twice)
    assert sum(spent_share(honest, everyone, without, noise.seeded(1)).values()) <= 1  # the clip holds whatever is contributed
    monkeypatch.setattr(clipping, "_clip", lambda unit, bins, weight, limit, squared: (bins, weight, 0))
    assert sum(spent_share(honest, everyone, without, noise.seeded(1)).values()) > 1


def test_one_weight_of_a_unit_keeps_every_round_within_its_limit(city, zones):
    found = ZoneTrips.of(city.trips, zones)
    unit = city.trips.trip_user[found.trip]
    shares = {"departures": 0.3, "arrivals": 0.3, "districts": 0.2, "lengths": 0.1, "durations": 0.1}
    weighing = Weighing(district=zones.districts(), shares=shares, limit=3.0, laplace=False)
    weight = weighing.weights(unit, found)
    assert (weight < 1).any() and len(np.unique(np.column_stack([unit, weight]), axis=0)) == len(np.unique(unit))
    for bins in (weighing.pair(found),):
        summed = (
            pl.DataFrame({"u": unit, "b": bins, "w": weight})
            .group_by("u", "b")
            .sum()
            .group_by("u")
            .agg((pl.col("w") ** 2).sum())
        )
        assert summed["w"].max() <= 9.0
    alone = unit == unit[-1]
    mine = replace(
        found,
        **{name: getattr(found, name)[alone] for name in ("trip", "origin", "destination", "departure", "arrival")},
        classes={k: v[alone] for k, v in found.classes.items()},
    )
    assert np.array_equal(weighing.weights(unit[alone], mine), weight[alone])


@pytest.mark.data
def test_taxis_per_trip_and_per_day(data_dir):
    table = pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet").select(
        uid=pl.col("user_id").cast(pl.String), tid="trip_id", datetime="t", lat="lat", lng="lon"
    )
    private = Trips(table, time_zone="America/Los_Angeles")
    flows = fitted(ODCounts(epsilon=1.0, space=SF, max_error=0), private, noise.seeded(1))
    both = Truth(flows, private)
    assert flows.disagreements() == []
    assert busy_error(both.zones.filter(area="zone", time="hour")) <= 0.05
    assert busy_error(both.od.filter(area="zone", time="day")) <= 0.10
    true = np.zeros((96, 96, 24))
    np.add.at(true, (both.trips.origin, both.trips.destination, both.trips.departure), 1)
    assert (true.sum(axis=2) >= 100).sum() <= both.od.filter(
        pl.col("area") == "zone", pl.col("time") == "day", pl.col("true") >= 100
    ).height
    ours = sum(np.abs(flows.matrix(time="hour", period=hour) - true[:, :, hour]).sum() for hour in range(24))
    plain = np.abs(np.maximum(true + np.random.default_rng(1).laplace(size=true.shape), 0) - true).sum()
    assert 3 * ours < plain
    days = fitted(ODCounts(epsilon=2.0, space=SF, unit="user_day", max_error=0), private, noise.seeded(1))
    assert days.disagreements() == [] and busy_error(Truth(days, private).zones.filter(area="zone", time="hour")) <= 0.15


def busy_error(rows: pl.DataFrame) -> float:
    busy = rows.filter(pl.col("true") >= 100)
    return float(((busy["trips"] - busy["true"]).abs() / busy["true"]).median())


def norms_of(units: np.ndarray, deviation: float = 1e-3) -> Norms:
    noisy = units + deviation * np.random.default_rng(1).standard_normal(len(units))
    return Norms(Answer(noisy=noisy, deviation=deviation), laplace=False)


def test_the_clip_loses_few_trips_and_does_not_follow_noise():
    bins = np.arange(len(EDGES))
    bell = 1000 * np.exp(-((bins - 12) ** 2) / 8)
    found = norms_of(bell, 1.0)
    limit = found.limit()
    assert EDGES[12] < limit < EDGES[20] and found.loss(limit) <= MAX_LOSS < found.loss(limit / 1.2)
    assert found.loss(1e9) == 0 and found.loss(EDGES[8]) > 0.3
    # a bin far beyond all others is noise more often than not, and empty tables have a clip too
    stray = bell.copy()
    stray[60] = 5.0
    assert norms_of(stray, 1.0).limit() == limit
    assert 1 <= norms_of(np.zeros(len(EDGES)), 1.0).limit() <= 8 * EDGES[-1]


def test_the_estimated_loss_is_that_of_the_units(city, zones):
    found = ZoneTrips.of(city.trips, zones)
    unit = city.trips.trip_user[found.trip]
    mechanism = ODCounts(epsilon=1.0, space=zones, unit="user")
    weighing = Weighing(district=zones.districts(), shares=mechanism._shares, limit=6.0, laplace=False)
    counted = count_norms(unit, weighing.norms(unit, found))
    assert len(counted.unit) == len(np.unique(unit)) and (counted.weight == counted.weight[0]).all()
    units = np.bincount(counted.bin, minlength=len(EDGES)).astype(np.float64)
    assert norms_of(units).loss(6.0) == pytest.approx(1 - weighing.weights(unit, found).mean(), abs=0.03)


@pytest.mark.parametrize("unit", ["user_day", "user"])
def test_intervals_of_days_and_people_hold_the_true_count(city, zones, unit):
    """Five releases of fixed seeds; most figures of small data are of large areas, so the margin is wide."""
    private, held, shown = ends_only(city.trips), 0, 0
    for seed in range(5):
        flows = fitted(ODCounts(epsilon=20.0, space=zones, unit=unit, max_error=0.3), private, noise.seeded(seed))
        for rows in (Truth(flows, private).zones, Truth(flows, private).od):
            rows = rows.filter(pl.col("trips").is_not_null())
            held, shown = held + int(rows["true"].is_between(rows["low"], rows["high"]).sum()), shown + rows.height
    assert shown > 500 and 0.91 < held / shown < 0.99
