"""road_counts: sensitivity held exactly, an audit with broken twins, useful and consistent counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from murmurate.asking.bounding import units_of_trips
from murmurate.attacks.audit import audit
from murmurate.core.accounting import compose
from murmurate.core.guarantee import Unit
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.road_counts import RoadCounts, tables
from murmurate.mechanisms.road_counts.believe import _smooth_day, believe_profiles
from murmurate.mechanisms.road_counts.budget import Spread, budget_of
from murmurate.mechanisms.road_counts.contributions import ONE, Contributions, noisy
from murmurate.mechanisms.road_counts.corridors import Corridors, successions
from murmurate.mechanisms.road_counts.neighbourhoods import usual_counts
from murmurate.mechanisms.road_counts.protected import public_zones, trimmed
from murmurate.mechanisms.road_counts.settings import Bounds
from murmurate.mechanisms.road_counts.zones import zones_of_links
from murmurate.noise import seeded
from murmurate.spaces.drives import drives_of
from murmurate.spaces.flows import LinkFlows
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(6)


@pytest.fixture(scope="module")
def cars() -> Trips:
    return traffic(TOWN)


def counts(**changes):
    return RoadCounts(**{"epsilon": 1.0, "space": TOWN, "unit": "trip", "zones": 4, **changes})


# -- the promise -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_the_tables_together_cost_what_is_charged(noise, unit):
    promise = counts(noise=noise, unit=unit, od=True, speeds=True, turns=True).guarantee()
    assert len(promise.events) == (7 if unit == "user" else 8)  # of a person nothing is asked by block
    assert 0.99 < compose(promise.events, delta=promise.delta) <= 1.0
    assert promise.delta == (1e-6 if noise == "gaussian" else 0.0)
    assert promise.unit.name == unit


def test_fewer_tables_get_more_each():
    every, few = (budget_of(kind="gaussian", unit="trip", epsilon=1.0, delta=1e-6, extras=x) for x in (("speeds", "paces"), ()))
    assert few["links"].multiplier < every["links"].multiplier
    assert [len(counts(unit=unit).guarantee().events) for unit in ("trip", "user_day", "user")] == [7, 7, 3]


def every_table(drives, unit, n_units, kind) -> dict[str, np.ndarray]:
    """The sums before noise, as they go into it, and the norm the noise is made for."""
    drawn: dict[str, tuple[np.ndarray, float]] = {}
    current = [""]

    def spy(sums, *, spread, clip, rng):
        drawn[current[0]] = (np.array(sums, dtype=np.int64).ravel(), clip)
        return np.zeros(np.shape(sums))

    names = ("links", "blocks", "hours", "size", "speeds", "paces", "turns", "od")
    reader = tables.Reader(
        drives=drives, unit=unit, n_units=n_units, bounds=Bounds(clip=2.0, hours=3.0, links=6, trips=1.0),
        spreads={name: Spread(kind, 1.0) for name in names}, rng=None,
    )  # fmt: skip
    zone = np.arange(TOWN.n_links) % 4
    into, out = successions(TOWN)
    from murmurate.mechanisms.road_counts.assemble import _succession_of

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(tables, "noisy", spy)
        for name, read in (
            ("links", reader.links), ("blocks", reader.blocks), ("hours", lambda: reader.hours(zone, 4)), ("size", reader.size),
            ("speeds", reader.speeds), ("paces", reader.paces),
            ("turns", lambda: reader.turns(_succession_of(drives, into, out), len(into))), ("od", lambda: reader.ends(zone, 4)),
        ):  # fmt: skip
            current[0] = name
            read()
    return drawn


@pytest.mark.parametrize("kind", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_one_unit_changes_no_table_by_more_than_its_clip(kind, unit, cars):
    of_trip = units_of_trips(cars, Unit(name=unit))
    drives = drives_of(cars, TOWN)
    whole = every_table(drives, of_trip[drives.trip], int(of_trip.max()) + 1, kind)
    assert set(whole) == {"links", "blocks", "hours", "size", "speeds", "paces", "turns", "od"}
    reached = 0.0
    for gone in (0, 7, int(of_trip.max())):
        keep = np.flatnonzero(of_trip != gone)
        others = cars.take_trips(keep)
        left = drives_of(others, TOWN)
        rest = every_table(left, of_trip[keep][left.trip], int(of_trip.max()) + 1, kind)
        for name, (sums, clip) in whole.items():
            change = (sums - rest[name][0]) / ONE
            norm = np.sqrt((change**2).sum()) if kind == "gaussian" else np.abs(change).sum()
            assert norm <= clip * (1 + 1e-12), name
            reached = max(reached, norm / clip)
    assert reached > 0.9  # the bound is used, so a wrong one would show


def test_a_trip_is_matched_as_if_it_were_alone(cars):
    together = drives_of(cars, TOWN)
    for k in (0, 31, 99):
        alone = drives_of(cars.take_trips([k]), TOWN)
        span = slice(together.offsets[k], together.offsets[k + 1])
        for name in ("link", "part", "hour", "day", "seconds"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(together, name)[span])


DELTA = 1e-3


def audited(*, clip_used: float, clip_noised: float, spread: Spread, n: int = 16_000) -> float:
    """A heavy unit on 16 links, in or out, projected on its own direction: the best statistic against Gaussian noise."""
    background = Contributions.of(np.repeat(np.arange(1, 30), 3), np.tile(np.arange(16), 6)[:87])
    target = Contributions.of(np.zeros(160, dtype=np.int64), np.tile(np.arange(16), 10))

    def outputs(neighbour, runs, rng):
        sums = background.sums(background.scales(30, clip=clip_used, kind="gaussian"), 16)
        if neighbour:
            sums = sums + target.sums(target.scales(1, clip=clip_used, kind="gaussian"), 16)
        drawn = noisy(np.tile(sums, runs), spread=spread, clip=clip_noised, rng=rng)
        return drawn.reshape(runs, 16).sum(axis=1)

    return audit(outputs, n=n, rng=seeded(3), delta=DELTA).value


def test_the_audit_stays_below_the_claim_and_catches_broken_twins():
    spread = budget_of(kind="gaussian", unit="trip", epsilon=2.0, delta=DELTA, extras=())["links"]
    claim = compose([spread.event()], delta=DELTA)
    assert 0.4 * claim < audited(clip_used=9.0, clip_noised=9.0, spread=spread) <= claim
    assert audited(clip_used=1e9, clip_noised=9.0, spread=spread) > claim  # nobody scaled the heavy unit down
    assert audited(clip_used=9.0, clip_noised=2.5, spread=spread) > claim  # noise for another clip


def test_zones_of_protection_are_public_and_trips_lose_their_ends(cars):
    drives = drives_of(cars, TOWN)
    zones = public_zones(TOWN, links=8)
    cut = trimmed(drives, zones)
    assert 0 < len(cut.link) < len(drives.link)
    before, after = drives.ends[0], cut.ends[0]
    first = before[np.isin(drives.driven, cut.driven)]
    away = np.hypot(zones.link_x[after] - zones.centre_x[first], zones.link_y[after] - zones.centre_y[first])
    assert (away > zones.radius_m[first]).all()


# -- what it is good for -----------------------------------------------------------------------------------------------


def test_with_little_noise_the_counts_are_those_of_the_trips(cars):
    drives = drives_of(cars, TOWN)
    truth = drives.counts()
    found = counts(epsilon=5_000.0, protect_links=0, threshold_sigmas=0.5).apply(cars, seeded(1))
    assert np.corrcoef(found.totals, truth.sum(axis=0))[0, 1] > 0.97
    assert np.corrcoef(found.by_hour.ravel(), truth.ravel())[0, 1] > 0.9
    assert found.by_hour.sum() == pytest.approx(truth.sum(), rel=0.05)
    shares = found.tables["turns"].group_by("from_link").agg(pl.col("share").sum())["share"]
    assert np.allclose(shares, 1.0)
    slowness = (found.table["travel_time_s"].to_numpy() / TOWN.time_s[found.table["link"].to_numpy()]).mean()
    assert 1.2 < slowness < 1.9  # everybody drives at two thirds of the limit


def test_counts_are_consistent_and_files_tell_the_threshold(cars, tmp_path):
    found = counts(epsilon=20.0, od=True).apply(cars, seeded(2))
    table = found.table
    assert (table["count"] >= 0).all() and (table["low"] <= table["count"]).all() and (table["count"] <= table["high"]).all()
    assert table.height == 24 * len(found.used)
    assert found.totals[found.used].min() >= found.about["threshold_trips"] * (1 - 1e-9)
    found.write(tmp_path)
    assert {"links.parquet", "turns.parquet", "od.parquet", "zones.parquet", "network.gpkg", "network.geojson"} <= {
        path.name for path in tmp_path.iterdir()
    }
    assert json.loads((tmp_path / "network.json").read_text())["threshold_trips"] > 0
    again = LinkFlows.read(tmp_path)
    np.testing.assert_allclose(again.by_hour, found.by_hour)
    assert found.tables["od"].height == 16


def test_links_within_their_own_error_are_not_published(cars):
    with pytest.MonkeyPatch.context() as patch:
        module = "murmurate.mechanisms.road_counts.assemble"
        patch.setattr(f"{module}.OWN_SIGMAS", 0.0)
        without = counts(epsilon=20.0).apply(cars, seeded(2))
        patch.setattr(f"{module}.OWN_SIGMAS", 2.9)
        with_it = counts(epsilon=20.0).apply(cars, seeded(2))
    assert set(with_it.used) < set(without.used)


def test_empty_streets_stay_empty_at_three_deviations(cars):
    nobody = cars.take_trips(np.arange(0))
    for seed in range(3):
        found = counts().apply(nobody, seeded(seed))
        assert len(found.used) <= 0.05 * TOWN.n_links


def test_smoothing_lowers_the_error_and_knows_what_is_left():
    generator = np.random.default_rng(1)
    row_traffic = np.repeat(np.arange(6) * 200.0, 6)  # nodes by row: traffic follows the rows
    truth = np.where(TOWN.road_class == 4, row_traffic[TOWN.link_from], 60.0)
    seen = truth + generator.normal(0, 100.0, TOWN.n_links)
    corridors = Corridors.of(TOWN)
    rough = corridors.fit(seen, 100.0)
    usual = usual_counts(TOWN, seen, rough.level, deviation=100.0)
    for field in (rough, corridors.fit(seen, 100.0, usual=usual)):
        error = np.sqrt(((field.level - truth) ** 2).mean())
        assert error < 0.8 * 100
        assert 0.5 < error / np.sqrt((field.left(generator) ** 2).mean()) < 2
    empty = corridors.fit(generator.normal(0, 100.0, TOWN.n_links), 100.0, usual=np.zeros(TOWN.n_links))
    assert np.quantile(empty.level, 0.9) < 0.3 * 100  # nothing around, so little is believed


def test_profiles_are_believed_by_what_rises_above_the_noise():
    generator = np.random.default_rng(2)
    morning, evening = (np.exp(-(((np.arange(24) - peak) / 3) ** 2)) + 0.1 for peak in (8, 17))
    mix = np.linspace(0, 1, 32)[:, None]
    truth = mix * morning / morning.sum() + (1 - mix) * evening / evening.sum()
    hours = 20_000 * truth + generator.normal(0, 300.0, truth.shape)
    believed = believe_profiles(hours, 300.0)
    raw = hours / hours.sum(axis=1, keepdims=True)
    assert np.abs(believed - truth).mean() < 0.6 * np.abs(raw - truth).mean()
    drowned = believe_profiles(20_000 * truth + generator.normal(0, 1e5, truth.shape), 1e5)
    assert np.ptp(drowned, axis=0).max() < 1e-9  # nobody differs from the city where noise is all there is
    assert np.allclose(believe_profiles(np.zeros((4, 24)), 1.0), 1 / 24)
    city = 20_000 * (morning + evening)[None, :]
    noisy = city + generator.normal(0, 5_000.0, city.shape)
    shape, believed = city / city.sum(), believe_profiles(noisy, 5_000.0)
    assert np.abs(believed - shape).sum() < np.abs(noisy / noisy.sum() - shape).sum()  # hours lean on their neighbours
    assert np.abs(believe_profiles(city, 1.0) - shape).max() < 1e-4


def test_zones_halve_the_traffic():
    traffic_of = np.where(np.arange(TOWN.n_links) < 20, 10.0, 1.0)
    zone = zones_of_links(TOWN, traffic_of, 4)
    mass = np.bincount(zone, weights=traffic_of, minlength=4)
    assert mass.min() > 0.1 * mass.sum()


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"unit": "household"}, "unit"), ({"noise": "uniform"}, "noise"), ({"delta": 0.0}, "delta"), ({"clip": -1.0}, "clip"),
        ({"zones": 12}, "power of two"), ({"threshold_sigmas": 0}, "threshold_sigmas"), ({"speeds": "yes"}, "speeds"),
        ({"max_trips": 3}, "unit='trip'"), ({"space": "road"}, "road network"), ({"protect_links": -1}, "protect_links"),
    ],
)  # fmt: skip
def test_senseless_parameters_are_refused(changes, says):
    with pytest.raises(ParameterError, match=says):
        counts(**changes)


def test_words_name_the_threshold_and_follow_the_parameters():
    words = " ".join(counts().statement())
    assert f"{counts().threshold:,.4g}" in words
    assert "19 times in 20" in words
    assert "not cut back" in " ".join(replace(counts(), protect_links=0).statement())
    assert "trips" in counts().expected_error()


@pytest.mark.data
def test_san_francisco_in_two_days(data_dir):
    from murmurate.spaces.road import read_roads

    table = pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet")
    trips = Trips(
        table.rename({"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"}), time_zone="America/Los_Angeles"
    )
    few = trips.take_trips(np.flatnonzero(trips.local_day[trips.offsets[:-1]] <= trips.local_day.min() + 1))
    network = read_roads(data_dir / "sf_osm2026_central_drive.graphml.gz")
    truth = drives_of(few, network).counts().sum(axis=0)
    found = RoadCounts(epsilon=1.0, space=network, unit="trip").apply(few, seeded(1))
    top = np.argsort(-truth)[:1000]
    assert np.corrcoef(found.totals[top], truth[top])[0, 1] > 0.8


def test_day_and_night_stand_apart_where_single_hours_drown_in_noise():
    hours = np.arange(24)
    true = 3000 + 2500 * np.sin((hours - 7) / 24 * 2 * np.pi)
    generator = np.random.default_rng(5)
    errors, flat = [], np.abs(true - true.mean()).mean()
    for _ in range(40):
        seen = true + 900 * generator.standard_normal(24)
        errors.append(np.abs(_smooth_day(seen, 900.0) - true).mean())
        assert _smooth_day(seen, 900.0).sum() == pytest.approx(seen.sum())
    assert np.mean(errors) < 0.6 * 900 * np.sqrt(2 / np.pi) and max(errors) < flat / 2
    nothing = np.ptp(_smooth_day(900 * generator.standard_normal(24), 900.0))
    assert nothing < 1500, "noise alone shows next to no hours"
    assert np.allclose(_smooth_day(true, 1e-6), true)
