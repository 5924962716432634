"""road_counts: sensitivity held exactly, an audit with broken twins, useful and consistent counts."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import polars as pl
import pytest

from asked import exact_sums, privacy_used
from murmurate.asking import STEPS, Answer, Budget, Contributions, Table
from murmurate.asking.bounding import units_of_trips
from murmurate.asking.clipping import clipped_sums, dense
from murmurate.asking.rounds import fitted, part_of
from murmurate.asking.table import once
from murmurate.attacks.audit import audit
from murmurate.core.accounting import compose
from murmurate.core.events import Gaussian
from murmurate.core.guarantee import Unit
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.road_counts import RoadCounts, counting
from murmurate.mechanisms.road_counts.corridors import Corridors
from murmurate.mechanisms.road_counts.estimate import _smooth_day, estimate_profiles
from murmurate.mechanisms.road_counts.protected import public_zones, trimmed
from murmurate.mechanisms.road_counts.settings import shares_of
from murmurate.mechanisms.road_counts.zones import usual_counts, zones_of_links
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


EVERY = ("links", "blocks", "day", "hours", "size", "speeds", "paces", "turns", "od")


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_the_tables_together_cost_what_is_charged(noise, unit):
    mechanism = counts(noise=noise, unit=unit, od=True, speeds=True, turns=True)
    promise = mechanism.guarantee()
    assert len(promise.events) == 1
    assert 0.99 < compose(promise.events, delta=promise.delta) <= 1.0
    assert promise.delta == (1e-6 if noise == "gaussian" else 0.0)
    assert promise.unit.name == unit
    assert mechanism.budget().norm == ("l2" if noise == "gaussian" else "l1")


@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_shares_add_up_to_the_budget_and_fewer_tables_get_more_each(unit):
    every, few = shares_of(unit, ("speeds", "paces", "turns", "od")), shares_of(unit, ())
    assert set(every) == set(EVERY) - ({"blocks"} if unit == "user" else set())  # of a person nothing is measured by block
    assert sum(every.values()) == pytest.approx(1.0) == sum(few.values())
    assert few["links"] > every["links"]


@pytest.mark.parametrize("noise", ["gaussian", "laplace"])
@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
@pytest.mark.parametrize("bounds", [{"clip": 2.0, "max_links": 6}, {}], ids=["tight", "default"])
def test_one_unit_uses_no_more_than_the_budget(noise, unit, bounds, cars):
    """Exact sums with and without a unit, zones held fixed by fixed answers; what the change costs adds up to at most one."""
    mechanism = counts(noise=noise, unit=unit, od=True, speeds=True, turns=True, **bounds)
    of_trip = units_of_trips(cars, Unit(name=unit))
    whole = exact_sums(mechanism, cars)
    measured = {"units"} if noise == "gaussian" and unit != "trip" else set()
    assert set(whole) == set(EVERY) - ({"blocks"} if unit == "user" else set()) | measured
    used = []
    for gone in (0, 7, int(of_trip.max())):
        rest = exact_sums(mechanism, cars.take_trips(np.flatnonzero(of_trip != gone)))
        used.append(privacy_used(mechanism, whole, rest))
    assert max(used) <= 1 + 1e-12
    if bounds:
        assert max(used) > 0.5  # the bounds are reached, so wrong ones would show


@pytest.mark.parametrize("parts", [3, 8])
@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_sums_do_not_depend_on_the_number_of_parts(unit, parts, cars):
    mechanism = counts(unit=unit, clip=2.0, od=True, speeds=True, turns=True)
    whole, found = (exact_sums(mechanism, cars, part_points=cars.n_points // k) for k in (1, parts))
    for name, (_, sums) in whole.items():
        np.testing.assert_array_equal(found[name][1], sums, err_msg=name)


@pytest.mark.parametrize("unit", ["trip", "user"])
def test_sums_do_not_depend_on_the_pieces_that_are_counted_at_once(unit, cars, monkeypatch):
    mechanism = counts(unit=unit, clip=2.0, od=True, speeds=True, turns=True)
    whole = exact_sums(mechanism, cars)
    monkeypatch.setattr(counting, "PIECE_LINKS", 20)
    drives = mechanism.ask({}, None).prepare(part_of(cars, Unit(name=unit), b""))
    pieces = list(drives.pieces())
    assert len(pieces) > 5
    assert np.concatenate([piece.link for piece in pieces]).tolist() == drives.link.tolist()
    for name, (_, sums) in exact_sums(mechanism, cars).items():
        np.testing.assert_array_equal(sums, whole[name][1], err_msg=name)


def test_unit_drives_are_compact_and_in_the_order_of_units(cars):
    mechanism = counts(unit="user_day")
    first = mechanism.ask({}, None).tables[0]
    asked = mechanism.ask({"units": Answer(np.full(first.n_bins, 5.0), 1.0)}, None)
    part = part_of(cars, Unit(name="user_day"), b"")
    drives = asked.prepare(part)
    assert drives.link.itemsize + drives.hour.itemsize + drives.slowness.itemsize + drives.follows.itemsize == 8
    assert (np.diff(drives.trip_unit) >= 0).all() and (np.diff(drives.trip_offsets) > 0).all()
    rows = asked.contribute(drives)
    assert int(rows["size"].weight.sum()) == int(rows["links"].weight.sum()) == len(drives.link) * STEPS
    for name, one in rows.items():
        order = np.lexsort((one.bin, one.unit))
        assert (order == np.arange(len(order))).all(), name  # sorted as the core wants them, so that it need not sort


def test_a_trip_is_matched_as_if_it_were_alone(cars):
    together = drives_of(cars, TOWN)
    for k in (0, 31, 99):
        alone = drives_of(cars.take_trips([k]), TOWN)
        span = slice(together.offsets[k], together.offsets[k + 1])
        for name in ("link", "part", "hour", "day", "seconds"):
            np.testing.assert_array_equal(getattr(alone, name), getattr(together, name)[span])


DELTA = 1e-3


def audited(*, clip_used: float, clip_noised: float, n: int = 60_000) -> float:
    """A heavy unit on 16 links, in or out, projected on its own direction: the best statistic against Gaussian noise."""
    background = once(np.repeat(np.arange(1, 30), 3), np.tile(np.arange(16), 6)[:87])
    target = once(np.zeros(160, dtype=np.int64), np.tile(np.arange(16), 10))
    both = Contributions(
        *(np.concatenate([getattr(x, name) for x in (target, background)]) for name in ("unit", "bin", "weight"))
    )
    used = Table(name="links", n_bins=16, share=0.5, limit=clip_used)

    def outputs(neighbour, runs, rng):
        sums = dense(clipped_sums(used, both if neighbour else background, "l2"), 16)
        noised = Table(name="links", n_bins=16 * runs, share=0.5, limit=clip_noised)
        drawn = Budget(epsilon=2.0, delta=DELTA).draw(noised, np.tile(sums, runs), rng).noisy
        return drawn.reshape(runs, 16).sum(axis=1)

    return audit(outputs, n=n, rng=seeded(3), delta=DELTA).value


def test_the_audit_stays_below_the_claim_and_catches_broken_twins():
    claim = compose([Gaussian(noise_multiplier=Budget(epsilon=2.0, delta=DELTA).scale(0.5))], delta=DELTA)
    assert 0.4 * claim < audited(clip_used=9.0, clip_noised=9.0) <= claim
    assert audited(clip_used=1e9, clip_noised=9.0) > claim  # nobody scaled the heavy unit down
    assert audited(clip_used=9.0, clip_noised=2.5) > claim  # noise for another clip


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
    found = fitted(counts(epsilon=5_000.0, protect_links=0, threshold_sigmas=0.5), cars, seeded(1))
    assert np.corrcoef(found.totals, truth.sum(axis=0))[0, 1] > 0.97
    assert np.corrcoef(found.by_hour.ravel(), truth.ravel())[0, 1] > 0.9
    assert found.by_hour.sum() == pytest.approx(truth.sum(), rel=0.05)
    shares = found.tables["turns"].group_by("from_link").agg(pl.col("share").sum())["share"]
    assert np.allclose(shares, 1.0)
    slowness = (found.table["travel_time_s"].to_numpy() / TOWN.time_s[found.table["link"].to_numpy()]).mean()
    assert 1.2 < slowness < 1.9  # everybody drives at two thirds of the limit


def test_counts_are_consistent_and_files_tell_the_threshold(cars, tmp_path):
    found = fitted(counts(epsilon=20.0, od=True), cars, seeded(2))
    table = found.table
    assert (table["count"] >= 0).all() and (table["low"] <= table["count"]).all() and (table["count"] <= table["high"]).all()
    assert table.height == 24 * len(found.used)
    assert found.about["threshold_trips"] > found.about["link_error_trips"] > 0
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
        patch.setattr(f"{module}.SIGMAS", 0.5)
        without = fitted(counts(epsilon=20.0), cars, seeded(2))
        patch.setattr(f"{module}.SIGMAS", 2.9)
        with_it = fitted(counts(epsilon=20.0), cars, seeded(2))
    assert set(with_it.used) < set(without.used)


def test_empty_streets_stay_empty_at_three_deviations(cars):
    nobody = cars.take_trips(np.arange(0))
    for seed in range(3):
        found = fitted(counts(), nobody, seeded(seed))
        assert len(found.used) <= 0.05 * TOWN.n_links


def test_smoothing_lowers_the_error_and_estimates_what_remains():
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
        assert 0.5 < error / np.sqrt((field.standard_error(seen, 100.0) ** 2).mean()) < 2
    empty = corridors.fit(generator.normal(0, 100.0, TOWN.n_links), 100.0, usual=np.zeros(TOWN.n_links))
    assert np.quantile(empty.level, 0.9) < 0.3 * 100  # nothing around, so little is estimated


def test_profiles_show_what_rises_above_the_noise():
    generator = np.random.default_rng(2)
    morning, evening = (np.exp(-(((np.arange(24) - peak) / 3) ** 2)) + 0.1 for peak in (8, 17))
    mix = np.linspace(0, 1, 32)[:, None]
    truth = mix * morning / morning.sum() + (1 - mix) * evening / evening.sum()
    hours = 20_000 * truth + generator.normal(0, 300.0, truth.shape)
    day = Answer(hours.sum(axis=0), 300.0)
    estimate = estimate_profiles(hours, 300.0, day)
    raw = hours / hours.sum(axis=1, keepdims=True)
    assert np.abs(estimate - truth).mean() < 0.6 * np.abs(raw - truth).mean()
    drowned = estimate_profiles(20_000 * truth + generator.normal(0, 1e5, truth.shape), 1e5, day)
    assert np.ptp(drowned, axis=0).max() < 1e-9  # nobody differs from the city where noise is all there is
    assert np.allclose(estimate_profiles(np.zeros((4, 24)), 1.0, Answer(np.zeros(24), 1.0)), 1 / 24)
    city = 20_000 * (morning + evening)[None, :]
    noisy = city + generator.normal(0, 5_000.0, city.shape)
    shape, estimate = city / city.sum(), estimate_profiles(noisy, 5_000.0, Answer(noisy[0], 5_000.0))
    assert (
        np.abs(estimate - shape).sum() < np.abs(noisy / noisy.sum() - shape).sum()
    )  # hours are smoothed over their neighbours
    assert np.abs(estimate_profiles(city, 1.0, Answer(city[0], 1.0)) - shape).max() < 1e-4


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
        ({"max_trips": 3}, "unit='trip'"), ({"clip": 0.0}, "clip"), ({"clip": float("inf")}, "clip"),
        ({"people": 100, "delta": 0.01}, "1 over the number of people"), ({"people": 0}, "people"), ({"trips": 0}, "trips"),
        ({"space": 5}, "road network"), ({"protect_links": -1}, "protect_links"),
    ],
)  # fmt: skip
def test_senseless_parameters_are_refused(changes, says):
    with pytest.raises(ParameterError, match=says):
        counts(**changes)


def test_words_name_the_threshold_and_follow_the_parameters():
    words = " ".join(counts().statement())
    assert f"{counts().threshold:,.4g}" in words
    assert "95 % intervals" in words
    assert "not cut back" in " ".join(replace(counts(), protect_links=0).statement())
    assert "trips" in counts().expected_error()
    assert "days is more than n times as large" in " ".join(counts(unit="user_day").statement())
    assert "days is n times as large" in " ".join(counts(unit="user_day", noise="laplace").statement())


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
    found = fitted(RoadCounts(epsilon=1.0, space=network, unit="trip"), few, seeded(1))
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


def test_hours_of_persons_keep_the_morning_peak():
    """The city's hours are counted by themselves; summed over zones, their noise left one broad hump around noon."""
    hours = np.arange(24)
    city = 0.3 + np.exp(-(((hours - 8) / 2) ** 2)) + 0.5 * np.exp(-(((hours - 17) / 2) ** 2))
    groups = 100_000 * np.outer(np.full(64, 1 / 64), city / city.sum())
    generator = np.random.default_rng(3)
    peaks, summed = [], []
    for _ in range(20):
        noisy = groups + generator.normal(0, 1_000.0, groups.shape)
        day = Answer(groups.sum(axis=0) + generator.normal(0, 1_200.0, 24), 1_200.0)
        peaks.append(estimate_profiles(noisy, 1_000.0, day)[0].argmax())
        summed.append(estimate_profiles(noisy, 1_000.0, Answer(noisy.sum(axis=0), 8_000.0))[0].argmax())
    assert np.isin(peaks, (7, 8, 9)).all()
    assert not np.isin(summed, (7, 8, 9)).all(), "the sum of all zones would not tell the peak"


def test_errors_grow_where_neighbours_differ_more_than_the_field_expects():
    """On a network whose links have nothing to do with each other, smoothing errs by more than its own draws say."""
    generator = np.random.default_rng(4)
    corridors = Corridors.of(TOWN)
    alike = np.full(TOWN.n_links, 1_000.0)
    unlike = generator.permutation(np.where(np.arange(TOWN.n_links) % 2, 1_900.0, 100.0))
    found = []
    for truth in (alike, unlike):
        seen = truth + generator.normal(0, 200.0, TOWN.n_links)
        field = corridors.fit(seen, 200.0)
        found.append((np.sqrt(((field.level - truth) ** 2).mean()), np.sqrt((field.standard_error(seen, 200.0) ** 2).mean())))
    (small, small_told), (large, large_told) = found
    assert large > 1.5 * small and large_told > 1.5 * small_told
    assert 0.6 < large / large_told < 1.6


@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_the_custodian_is_told_before_the_charge_that_a_release_would_be_empty(unit, cars):
    from murmurate.custody.looking import findings

    poor, rich = counts(unit=unit, epsilon=0.001), counts(unit=unit, epsilon=50.0)
    assert [one for one in findings(poor, cars) if "empty release" in one.words and one.remedy]
    assert not findings(rich, cars)


@pytest.mark.parametrize("unit", ["trip", "user_day", "user"])
def test_a_release_that_would_be_empty_is_refused_before_anything_is_charged(unit):
    needed = counts(unit=unit)._least_trips
    assert f"{needed:,.0f}" in counts(unit=unit).expected_error()
    with pytest.raises(ParameterError, match="would be empty"):
        counts(unit=unit, trips=max(1, int(needed / 3)))
    assert counts(unit=unit, trips=int(needed) + 1).trips


def test_bounds_of_persons_follow_from_noisy_links_per_unit():
    mechanism = counts(unit="user", epsilon=50.0)
    table = mechanism.ask({}, None).tables[0]
    assert table.name == "units" and not table.joint
    few, many = (np.zeros(table.n_bins), np.zeros(table.n_bins))
    few[10], many[20] = 100.0, 100.0
    small, large = (mechanism._bounds({"units": Answer(noisy, 1.0)}) for noisy in (few, many))
    assert small.clip < large.clip and small.links < large.links
    asked = mechanism.ask({"units": Answer(few, 1.0)}, None)
    assert {one.name for one in asked.tables if not one.joint} == {"size"}
