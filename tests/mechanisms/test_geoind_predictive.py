"""geoind_predictive: never spends more than its budget, whatever the input, and buys more for it than geoind."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

import murmurate as mm
from murmurate.asking.bounding import bound, new_key
from murmurate.attacks.audit import audit_per_metre, runs_on_traces
from murmurate.core.trips import Trips
from murmurate.errors import GuaranteeRefused, InputError, ParameterError
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.mechanisms.geoind_predictive import PredictiveGeoIndistinguishability, budgets
from murmurate.mechanisms.geoind_predictive.kernel import distance_m
from murmurate.metrics.hausdorff import paired
from murmurate.noise import seeded
from murmurate.noise.steps import sines
from murmurate.spaces import Grid, Plane
from murmurate.spaces.sphere import great_circle_m

PLANE = Plane(60.17, 24.94)


def predictive(**changes):
    return PredictiveGeoIndistinguishability(**{"epsilon": 1.0, "radius_m": 300.0, "max_points": 200, "stride": 1.0, **changes})


def traces(*places_m, interval_s=None) -> Trips:
    """Trips of places in metres (east, north) around a town."""
    rows = [(trip, *point) for trip, points in enumerate(places_m) for point in points]
    trip, x, y = (np.array(column, dtype=np.float64) for column in zip(*rows, strict=True))
    lat, lng = PLANE.from_xy(x, y)
    table = pl.DataFrame({"uid": trip.astype(int), "tid": trip.astype(int), "lat": lat, "lng": lng})
    if interval_s:
        when = pl.Series("datetime", np.arange(len(rows)) * int(interval_s * 1e6)).cast(pl.Datetime("us", "UTC"))
        table = table.with_columns(when)
    return Trips(table)


def hausdorff(private, released) -> float:
    every = np.arange(private.n_trips)
    track, other = ((trips.lat, trips.lng, trips.offsets) for trips in (private, released))
    return float(paired(track, every, other, every).mean())


# -- the promise ------------------------------------------------------------------------------------------------------


def test_a_unit_costs_all_its_points_and_the_published_variant_what_it_really_spends():
    assert predictive().guarantee().epsilon_per_m == pytest.approx(200 / 300)
    published = {"variant": "as_published", "stride": None}
    assert predictive(**published).guarantee().epsilon_per_m == pytest.approx(200.1 / 300)
    assert predictive(**published, unit="user", max_trips=5).guarantee().epsilon_per_m == pytest.approx(200.5 / 300)
    assert predictive(**published, unit="user").guarantee().epsilon_per_m == pytest.approx((200 + 200 * 0.1) / 300)
    assert any("really spent" in words for words in predictive(**published).guarantee().assumptions)
    assert "epsilon 200 at 300 m" in " ".join(predictive().statement())


@pytest.mark.parametrize(
    "changes",
    [
        {"epsilon": 0},
        {"radius_m": -1.0},
        {"max_points": 0},
        {"max_points": 10**9},
        {"unit": "point"},
        {"variant": "published"},
        {"predictor": "oracle"},
        {"last_k": 0},
        {"last_k": 17},
        {"manager": "fixed"},
        {"manager": "fixed_utility"},
        {"accuracy_m": 100.0},
        {"manager": "fixed_utility", "accuracy_m": 0.0},
        {"manager": "fixed_utility", "accuracy_m": 2.0},  # its first point alone would cost 300
        {"stride": 0.5},
        {"manager": "skipping"},  # with a stride
        {"manager": "skipping", "stride": None, "accuracy_m": 50.0},
        {"stride": math.nan},
        {"eta": 0.0},
        {"gamma": -1.0},
        {"c_theta": 1e6, "c_N": 1e-3},
        {"running_rate": 1},
        {"variant": "as_published"},  # with a stride
        {"variant": "as_published", "stride": None, "predictor": "linear"},
        {"radius_m": 1e6, "epsilon": 0.1},
        {"space": Grid(60.1, 24.8, 60.3, 25.2, 250)},
        {"smooth": "yes"},
        {"speed_kmh": 0.0},
        {"roads": PLANE},
    ],
)
def test_senseless_parameters_are_refused_at_construction(changes):
    with pytest.raises(ParameterError):
        predictive(**changes)


def test_units_beyond_their_bound_are_refused_and_the_door_cuts_them():
    private = traces([(0.0, 10.0 * i) for i in range(30)])
    mechanism = predictive(max_points=20)
    with pytest.raises(GuaranteeRefused):
        mechanism.apply(private, seeded(1))
    assert mechanism.apply(bound(private, mechanism.guarantee().unit, new_key(seeded(1))), seeded(1)).n_points == 20


def test_a_pace_needs_times_or_an_interval():
    private = traces([(0.0, 0.0), (5.0, 5.0)])
    with pytest.raises(InputError, match="interval_s"):
        predictive(stride=None).apply(private, seeded(1))
    assert predictive(stride=None, interval_s=15.0).apply(private, seeded(1)).n_points == 2


# -- never more than the budget ---------------------------------------------------------------------------------------


def spends(mechanism, private, seed):
    """What each trip spent, after checking that its draws alone, read off their noise, cost no more."""
    _, _, scale_m, spent = mechanism.run(private, seeded(seed))
    drawn = np.where(np.isfinite(scale_m), mechanism.radius_m / scale_m, 0.0)
    draws = np.add.reduceat(drawn, private.offsets[:-1])
    assert (draws <= spent * (1 + 1e-12)).all()
    return spent


places = st.lists(
    st.tuples(st.floats(-5e4, 5e4, allow_nan=False), st.floats(-5e4, 5e4, allow_nan=False)) | st.just((0.0, 0.0)),
    min_size=1,
    max_size=60,
)
settings_of_all_kinds = st.fixed_dictionaries(
    {
        "epsilon": st.sampled_from([0.01, 0.1, 0.7, 1.0, 3.3, 50.0]),
        "radius_m": st.sampled_from([1.0, 77.0, 300.0, 2_000.0]),
        "stride": st.sampled_from([1.0, 1.7, 4.0, 100.0]),
        "predictor": st.sampled_from(["parrot", "linear", "last_k"]),
        "running_rate": st.booleans(),
        "eta": st.sampled_from([0.01, 0.5, 1.0, 10.0]),
        "gamma": st.sampled_from([0.2, 0.8, 1.0, 5.0]),
        "c_theta": st.sampled_from([0.05, 0.3, 1.6]),
        "space": st.sampled_from([None, PLANE]),
    }
)


@given(places, settings_of_all_kinds, st.integers(0, 10**6))
def test_no_input_and_no_setting_spends_more_than_the_budget(points, changes, seed):
    mechanism = predictive(**changes)
    assert spends(mechanism, traces(points), seed)[0] <= len(points) * mechanism.epsilon


@given(places, st.sampled_from([20.0, 400.0, 3_000.0]), st.booleans(), st.integers(0, 10**6))
def test_fixed_utility_stops_at_the_budget_too(points, accuracy_m, tests_dear, seed):
    mechanism = predictive(manager="fixed_utility", accuracy_m=accuracy_m, c_theta=2.0 if tests_dear else 0.3)
    assert spends(mechanism, traces(points), seed)[0] <= len(points)


@given(places, st.sampled_from([0.1, 1.0, 2.0]), st.integers(0, 10**6))
def test_the_published_variant_stays_within_its_real_price(points, epsilon, seed):
    mechanism = predictive(variant="as_published", stride=None, epsilon=epsilon)
    assert spends(mechanism, traces(points), seed)[0] <= len(points) * epsilon + 0.1 + 1e-6


def test_an_adversary_who_first_stands_and_then_leaps_gets_the_budget_and_no_more():
    """Passes make the running rate generous; leaps then take all that is left."""
    points = [(0.0, 0.0)] * 30 + [(20_000.0 * (-1) ** i, 20_000.0) for i in range(30)]
    spent = spends(predictive(running_rate=True, c_theta=1.0), traces(*[points] * 200), 3)
    assert (spent <= 60.0).all()
    assert spent.mean() > 59


def test_at_the_end_of_the_budget_the_last_report_is_repeated():
    """At 100 m, a draw costs 6 of the 40: six or seven of them, and never another."""
    private = traces(*[[(9_000.0 * i, 0.0) for i in range(40)]] * 100)
    x, _, scale_m, spent = predictive(manager="fixed_utility", accuracy_m=100.0).run(private, seeded(3))
    drawn = np.isfinite(scale_m).reshape(100, 40)
    assert set(drawn.sum(axis=1)) <= {5, 6, 7}
    assert (spent <= 40.0).all()
    ends = x.reshape(100, 40)[:, 20:]
    assert (ends == ends[:, :1]).all()


def test_the_study_spends_what_the_notes_found():
    """Mean spend over epsilon n on Tony-900, over the radii of the study."""
    skaters = mm.demo.tony900(skaters=400)
    for epsilon, wanted in ((0.1, 1.068), (0.5, 0.963), (2.0, 0.905)):
        ratios = [
            predictive(variant="as_published", stride=None, epsilon=epsilon, radius_m=radius_m, space=skaters.space)
            .run(skaters, seeded(1))[3]
            .sum()
            / (epsilon * skaters.n_points)
            for radius_m in (25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0)
        ]
        assert np.mean(ratios) == pytest.approx(wanted, abs=0.012)


def test_the_study_lengthens_trips_as_printed():
    """Table 3, Tony-900: metres of length added for each metre of radius, by least squares through the origin."""
    skaters = mm.demo.tony900(skaters=2_000)
    radii = np.array([25.0, 50.0, 100.0, 150.0, 200.0, 300.0, 400.0, 500.0])
    within = skaters.point_trip[1:] == skaters.point_trip[:-1]

    def mean_length(x, y):
        return np.hypot(np.diff(x), np.diff(y))[within].sum() / skaters.n_trips

    before = mean_length(*skaters.space.to_xy(skaters.lat, skaters.lng))
    for epsilon, printed in ((0.1, 526.58), (0.5, 40.479), (1.0, 14.581), (2.0, 5.2622)):
        added = []
        for radius_m in radii:
            mechanism = predictive(
                variant="as_published", stride=None, epsilon=epsilon, radius_m=float(radius_m), space=skaters.space
            )
            x, y, _, _ = mechanism.run(skaters, seeded(int(radius_m)))
            added.append(mean_length(*skaters.space.unsnap(x, y)) - before)
        assert radii @ np.array(added) / (radii @ radii) == pytest.approx(printed, rel=0.02)


# -- what it does -----------------------------------------------------------------------------------------------------


def test_at_a_stride_reports_are_repeated_and_draws_share_the_whole_budget():
    private = traces(*[[(100.0 * i, 0.0) for i in range(21)]] * 50)
    mechanism = predictive(stride=5.0, c_theta=1e-3)  # tests that cost next to nothing and never help
    x, _, scale_m, spent = mechanism.run(private, seeded(4))
    drawn = np.isfinite(scale_m).reshape(50, 21)
    assert not drawn[:, np.arange(21) % 5 != 0].any()
    repeated = x.reshape(50, 21)
    assert (repeated[:, 1:5] == repeated[:, :1]).all()
    assert spent.mean() > 0.999 * 21 * (drawn.sum(axis=1) == 5).mean()


def test_skipping_draws_once_for_each_radius_travelled():
    """300 m at 30 km/h take 36 s: with a point every 12 s every third one is drawn, ends included."""
    private = traces([(0.0, 100.0 * k) for k in range(31)], interval_s=12)
    mechanism = predictive(manager="skipping", stride=None, radius_m=300.0, speed_kmh=30.0)
    x, y, scale_m, spent = mechanism.run(private, seeded(1))
    drawn = np.flatnonzero(np.isfinite(scale_m))
    assert drawn.tolist() == list(range(0, 31, 3))
    assert scale_m[drawn] == pytest.approx(300.0 * 11 / 31, rel=1e-6)
    assert (np.diff(x)[np.setdiff1d(np.arange(30), drawn[1:] - 1)] == 0).all()
    assert (np.diff(y)[np.setdiff1d(np.arange(30), drawn[1:] - 1)] == 0).all()
    assert spent[0] <= 31.0


def test_people_who_stand_still_pass_tests_and_people_who_leap_do_not():
    still, leaping = traces(*[[(0.0, 0.0)] * 40] * 100), traces(*[[(9_000.0 * i, 0.0) for i in range(40)]] * 100)
    mechanism = predictive(epsilon=2.0, c_theta=2.0, c_N=4.0)
    repeats = []
    for private in (still, leaping):
        x, _, _, _ = mechanism.run(private, seeded(5))
        repeats.append((np.diff(x.reshape(100, 40)) == 0).mean())
    assert repeats[0] > 0.6
    assert repeats[1] < 0.1


def test_predictors_look_ahead_as_they_say():
    """With a noise of centimetres the free reports between draws show the prediction."""
    private = traces([(100.0 * i, 0.0) for i in range(9)])
    found = {}
    for name in ("parrot", "linear", "last_k"):
        mechanism = predictive(predictor=name, last_k=2, stride=2.0, epsilon=1e4, radius_m=50.0, c_theta=1e-3, space=PLANE)
        found[name] = mechanism.run(private, seeded(6))[0] * PLANE.step_m
    assert found["parrot"][[3, 5]] == pytest.approx([200, 400], abs=1)
    assert found["linear"][[3, 5]] == pytest.approx([300, 500], abs=1)
    assert found["last_k"][[3, 5]] == pytest.approx([100, 300], abs=1)


def test_where_noise_is_small_beside_a_step_it_is_geoind():
    private = traces(*[[(2_000.0 * i, 0.0) for i in range(10)]] * 200, interval_s=60)
    _, _, scale_m, spent = predictive(stride=None, radius_m=20.0).run(private, seeded(7))
    assert scale_m == pytest.approx(np.full(2_000, 20.0))
    assert spent == pytest.approx(np.full(200, 10.0))


@pytest.mark.parametrize("space", [None, PLANE])
def test_released_points_lie_on_the_lattice_and_only_places_change(space):
    private = traces([(10.0 * i, 0.0) for i in range(20)], [(0.0, 3.0)], interval_s=15).with_columns({"speed": [1.0] * 21})
    out = predictive(stride=None, space=space).apply(private, seeded(8))
    assert out.columns == ["uid", "tid", "datetime", "lat", "lng"]
    assert out.table.select("uid", "tid", "datetime").equals(private.table.select("uid", "tid", "datetime"))
    steps = np.array([out.lat, out.lng]) * 1e6 if space is None else np.array(space.to_xy(out.lat, out.lng)) / space.step_m
    assert np.abs(steps - np.rint(steps)).max() < 1e-3


def test_nothing_single_points_poles_and_the_date_line():
    nothing = traces([(0.0, 0.0)]).take_points(np.zeros(1, dtype=bool))
    assert predictive().apply(nothing, seeded(1)).n_points == 0
    table = pl.DataFrame({"uid": 1, "tid": 1, "lat": [90.0, -90.0, 0.0, 0.0], "lng": [10.0, 0.0, 180.0, -180.0]})
    for name in ("parrot", "linear", "last_k"):
        out = predictive(predictor=name, epsilon=40.0).apply(Trips(table), seeded(2))
        assert great_circle_m(table["lat"], table["lng"], out.lat, out.lng).max() < 3_000


def test_the_kernels_distance_is_the_great_circle():
    rng = np.random.default_rng(1)
    lng, lat = rng.integers(-180_000_000, 180_000_000, 400), rng.integers(-90_000_000, 90_000_000, 400)
    for reach in (3, 10_000, 1_500_000, 90_000_000):
        other_lng = lng + rng.integers(-reach, reach + 1, 400)
        other_lat = np.clip(lat + rng.integers(-reach, reach + 1, 400), -90_000_000, 90_000_000)
        here = zip(lng, lat, *sines(lat), strict=True)
        found = [distance_m(place, *there) for place, *there in zip(here, other_lng, other_lat, strict=True)]
        wanted = great_circle_m(lat / 1e6, lng / 1e6, other_lat / 1e6, other_lng / 1e6)
        assert found == pytest.approx(wanted, rel=1e-7, abs=1e-6)


# -- worth its price --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("radius_m", "epsilon"), [(300.0, 0.5), (300.0, 1.0), (300.0, 2.0), (500.0, 0.5), (1000.0, 2.0)])
def test_it_beats_geoind_at_equal_spent_budget_on_15_s_trips(radius_m, epsilon):
    trips = mm.demo.city(people=12, days=4, interval_s=15).trips
    mechanism = predictive(epsilon=epsilon, radius_m=radius_m, stride=None)
    simple = GeoIndistinguishability(epsilon=epsilon, radius_m=radius_m, max_points=200)
    assert (mechanism.run(trips, seeded(9))[3] <= np.diff(trips.offsets) * epsilon).all()
    ours, theirs = (hausdorff(trips, one.apply(trips, seeded(9))) for one in (mechanism, simple))
    assert ours < 0.6 * theirs


# -- audits -----------------------------------------------------------------------------------------------------------

HERE, NORTH = [(0.0, 0.0), (0.0, 0.0)], [(0.0, 0.0), (0.0, 300.0)]


def how_far_north_the_repeated_report_lies(released: Trips):
    """Metres north of the origin where both reports are one; far south where they differ."""
    y = PLANE.to_xy(released.lat, released.lng)[1].reshape(-1, 2)
    return np.where(released.lat.reshape(-1, 2).std(axis=1) == 0, y[:, 1], -1e6)


def first_report(released: Trips):
    return PLANE.to_xy(released.lat, released.lng)[1][released.offsets[:-1]]


def audited(mechanism, one, other, statistic, distance_m=300.0):
    outputs = runs_on_traces(mechanism, (traces(one), traces(other)), statistic)
    return audit_per_metre(outputs, distance_m=distance_m, n=40_000, rng=seeded(1)).value


def test_the_audit_accepts_the_test():
    mechanism = predictive(epsilon=0.8, max_points=2, c_theta=1.0)
    found = audited(mechanism, HERE, NORTH, how_far_north_the_repeated_report_lies)
    assert 0 < found <= mechanism.guarantee().epsilon_per_m


@dataclasses.dataclass(frozen=True, kw_only=True)
class SureOfItself(PredictiveGeoIndistinguishability):
    """A broken twin: its test compares without noise."""

    def apply(self, private, rng):
        grains, decisions, tests = self.plan(np.full(private.n_trips, 2.0), np.zeros(private.n_trips))
        x, y, _, _ = self.run_planned(private, (grains, decisions, ~tests), rng)
        true_x, true_y = self._snapped(private.lat, private.lng)
        near = np.hypot((true_x - np.roll(x, 1)) * 0.0554, (true_y - np.roll(y, 1)) * 0.111) < 300.0
        second = near & (np.arange(len(x)) % 2 == 1)
        return self._released(private, *self._degrees(np.where(second, np.roll(x, 1), x), np.where(second, np.roll(y, 1), y)))


@dataclasses.dataclass(frozen=True, kw_only=True)
class Spendthrift(PredictiveGeoIndistinguishability):
    """A broken twin: it takes three times the budget it states."""

    def plan(self, points, steps_m):
        grains, decisions, tests = super().plan(points, steps_m)
        return 3 * grains, decisions, tests


def test_a_test_without_noise_is_caught():
    twin = SureOfItself(epsilon=0.8, radius_m=300.0, max_points=2, stride=1.0)
    assert audited(twin, HERE, NORTH, how_far_north_the_repeated_report_lies) > twin.guarantee().epsilon_per_m


def test_a_spendthrift_is_caught_and_the_honest_one_is_not():
    ends = [(0.0, 0.0)], [(0.0, 300.0)]
    terms = {"epsilon": 0.5, "radius_m": 300.0, "max_points": 1, "stride": 1.0}
    claim = 0.5 / 300
    assert 0.3 * claim < audited(PredictiveGeoIndistinguishability(**terms), *ends, first_report) <= claim
    assert audited(Spendthrift(**terms), *ends, first_report) > claim


def test_grains_hold_a_hundred_million_points_exactly():
    assert 10**8 * budgets.GRAINS < 2**53


def test_the_two_readings_of_the_first_test_are_priced_as_they_spend():
    """A unit of one trip of 200 points at epsilon 0.5: 100, and 0.1 or a tenth of epsilon more."""
    published = {"variant": "as_published", "stride": None, "epsilon": 0.5, "radius_m": 100.0}
    assert predictive(**published).budget == pytest.approx(100.1)
    assert predictive(**published, published_test="share").budget == pytest.approx(100.05)
    with pytest.raises(ParameterError):
        predictive(**published, published_test="relative")
    private = traces([(0.0, 40.0 * k) for k in range(200)])
    assert spends(predictive(**published, published_test="share"), private, 1) <= 100.05 + 1e-9
