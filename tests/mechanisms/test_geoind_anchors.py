"""geoind_anchors: the budget of all points on few of them, and never worse than geoind smoothed."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate.attacks.audit import audit_per_metre, runs_on_traces
from murmurate.core.trips import TIME, Trips
from murmurate.errors import GuaranteeRefused, ParameterError
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.mechanisms.geoind_anchors import AnchoredGeoIndistinguishability
from murmurate.metrics.hausdorff import paired
from murmurate.noise import seeded
from murmurate.spaces import Plane
from murmurate.spaces.sphere import great_circle_m


def anchors(**changes):
    return AnchoredGeoIndistinguishability(**{"epsilon": 1.0, "radius_m": 300.0, "max_points": 200, **changes})


def straight(n_trips, points, *, step_deg=0.001, seconds=15):
    row = np.arange(n_trips * points)
    when = pl.Series("datetime", row * seconds * 1_000_000).cast(TIME)
    return Trips(
        pl.DataFrame(
            {"uid": row // points, "tid": row // points, "datetime": when, "lat": 60 + step_deg * (row % points), "lng": 25.0}
        )
    )


def hausdorff(private, released) -> float:
    every = np.arange(private.n_trips)
    track, other = ((trips.lat, trips.lng, trips.offsets) for trips in (private, released))
    return float(paired(track, every, other, every).mean())


# -- the promise ------------------------------------------------------------------------------------------------------


def test_it_costs_what_geoind_costs():
    for changes in ({}, {"unit": "user", "max_trips": 4}, {"space": Plane(60.0, 25.0)}, {"smooth": False}, {"stride": 7.0}):
        mine = anchors(**changes)
        terms = {name: changes[name] for name in ("unit", "max_trips", "space") if name in changes}
        theirs = GeoIndistinguishability(epsilon=1.0, radius_m=300.0, max_points=200, **terms)
        assert dataclasses.replace(mine.guarantee(), point_epsilon_per_m=1 / 300) == theirs.guarantee()


def test_a_single_point_is_promised_nothing_that_an_anchor_would_break():
    assert "One of its points alone" in GeoIndistinguishability(epsilon=1.0, radius_m=300.0).guarantee().words()
    assert "One of its points alone" not in anchors().guarantee().words()
    assert "costs several times epsilon" in " ".join(anchors().statement())


@pytest.mark.parametrize(
    "changes",
    [{"epsilon": 0}, {"radius_m": 0.0}, {"unit": "point"}, {"stride": 0.9}, {"speed_kmh": -3.0}, {"interval_s": 0.0},
     {"smooth": 1}, {"max_points": 10**9}],
)  # fmt: skip
def test_senseless_parameters_are_refused(changes):
    with pytest.raises(ParameterError):
        anchors(**changes)


def test_units_beyond_their_bound_are_refused():
    with pytest.raises(GuaranteeRefused):
        anchors(max_points=20).apply(straight(2, 21), seeded(1))


# -- what it does -----------------------------------------------------------------------------------------------------


def drawn(mechanism, private, seed=1):
    """Which points were drawn, and with how much: what run_planned gives, as apply calls it."""
    seen = {}
    kind = type(mechanism._draws())
    plain = kind.run_planned

    def watched(self, trips, plan, rng):
        out = plain(self, trips, plan, rng)
        seen["scale_m"], seen["spent"] = out[2], out[3]
        return out

    kind.run_planned = watched
    try:
        mechanism.apply(private, seeded(seed))
    finally:
        kind.run_planned = plain
    return seen["scale_m"], seen["spent"]


def test_the_budget_of_all_points_goes_to_the_anchors():
    private = straight(20, 41)
    scale_m, spent = drawn(anchors(stride=5.0), private)
    at = np.isfinite(scale_m).reshape(20, 41)
    assert (at == (np.arange(41) % 5 == 0)).all()
    assert spent == pytest.approx(np.full(20, 41.0))
    assert (spent <= 41.0).all()
    assert scale_m[np.isfinite(scale_m)] == pytest.approx(300 * 9 / 41, rel=1e-5)


def test_the_stride_follows_from_public_numbers_alone():
    near = anchors(radius_m=10.0, interval_s=60.0)
    assert near.strides(np.array([500.0])) == pytest.approx([1.0])
    assert anchors(radius_m=500.0).strides(np.array([500.0])) == pytest.approx([4.0])
    assert anchors(radius_m=500.0, epsilon=0.25).strides(np.array([500.0])) == pytest.approx([8.0])
    slow, fast = straight(5, 40, step_deg=1e-6), straight(5, 40, step_deg=1e-2)
    for one, other in zip(drawn(anchors(), slow), drawn(anchors(), fast), strict=True):
        assert np.array_equal(one, other)  # where people were does not enter
    assert np.isfinite(drawn(anchors(), straight(5, 40, seconds=3600))[0]).all()
    assert np.isfinite(drawn(anchors(), straight(5, 40, seconds=1))[0]).mean() < 0.2


def test_points_between_anchors_are_not_read():
    private = straight(3, 41)
    lat = private.lat.copy()
    lat[np.arange(len(lat)) % 41 % 5 != 0] = -33.0
    elsewhere = private.with_columns({"lat": lat})
    for smooth in (True, False):
        one, other = (anchors(stride=5.0, smooth=smooth).apply(trips, seeded(2)) for trips in (private, elsewhere))
        assert one.table.equals(other.table)


def test_without_smoothing_lines_join_the_anchors():
    private = straight(10, 21)
    out = anchors(stride=4.0, smooth=False, epsilon=1e4).apply(private, seeded(3))
    assert great_circle_m(private.lat, private.lng, out.lat, out.lng).max() < 5
    table = pl.DataFrame({"uid": 1, "tid": 1, "lat": np.zeros(5), "lng": [179.999, 179.9995, -180.0, -179.9995, -179.999]})
    out = anchors(stride=4.0, smooth=False, epsilon=1e4).apply(Trips(table), seeded(3))
    assert great_circle_m(np.zeros(5), table["lng"], out.lat, out.lng).max() < 5


def test_nothing_and_single_points():
    private = straight(2, 1)
    assert anchors().apply(private, seeded(1)).n_points == 2
    assert anchors().apply(private.take_points(np.zeros(2, dtype=bool)), seeded(1)).n_points == 0


# -- worth its price --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("interval_s", [15, 60])
@pytest.mark.parametrize(
    ("radius_m", "epsilon"), [(10.0, 1.0), (35.0, 1.0), (50.0, 1.0), (100.0, 1.0), (300.0, 0.5), (500.0, 2.0)]
)
def test_it_is_never_worse_than_geoind_smoothed(interval_s, radius_m, epsilon):
    trips = mm.demo.city(people=30, days=5, interval_s=interval_s).trips
    simple = GeoIndistinguishability(epsilon=epsilon, radius_m=radius_m, max_points=200, smooth=True)
    mine, theirs = (
        np.mean([hausdorff(trips, mechanism.apply(trips, seeded(seed))) for seed in (1, 2)])
        for mechanism in (anchors(epsilon=epsilon, radius_m=radius_m), simple)
    )
    assert mine <= 1.03 * theirs


TAXI = {
    (25.0, 1.0): 95, (100.0, 0.5): 384, (100.0, 1.0): 269, (300.0, 0.5): 673, (300.0, 1.0): 472, (500.0, 0.5): 871,
    (500.0, 2.0): 432,
}  # fmt: skip
"""Metres that a first simulation reached with the best stride (the first: with smoothing alone)."""


@pytest.mark.data
def test_taxi_trips_reach_what_the_best_stride_reached(data_dir):
    table = pl.read_parquet(data_dir / "sf_taxi_dploc200_trips.parquet")
    table = table.rename({"user_id": "uid", "trip_id": "tid", "t": "datetime", "lon": "lng"})
    table = table.with_columns(pl.col("uid").cast(pl.String), pl.col("datetime").cast(TIME))
    table = table.filter(pl.len().over("uid", "tid") == 11)
    chosen = table.select("uid", "tid").unique(maintain_order=True).sample(1_500, seed=1)
    taxis = Trips(table.join(chosen, on=["uid", "tid"]))
    assert (taxis.n_trips, taxis.n_points) == (1_500, 16_500)
    for (radius_m, epsilon), wanted in TAXI.items():
        out = anchors(radius_m=radius_m, epsilon=epsilon).apply(taxis, seeded(1))
        assert hausdorff(taxis, out) <= wanted, (radius_m, epsilon)


# -- audit ------------------------------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True, kw_only=True)
class PaysTwice(AnchoredGeoIndistinguishability):
    """A broken twin: as many anchors as points, each with the budget of two."""

    def _draws(self):
        return dataclasses.replace(super()._draws(), epsilon=4 * self.epsilon)


def test_the_audit_accepts_it_and_catches_a_twin_that_pays_too_much():
    one, other = straight(1, 4, step_deg=0.0), straight(1, 4, step_deg=0.0)
    other = other.with_columns({"lat": other.lat + 0.0005})
    apart_m = float(great_circle_m(60.0, 25.0, 60.0005, 25.0))
    terms = {"epsilon": 0.5, "radius_m": 55.6, "max_points": 4, "stride": 3.0, "smooth": False}

    def nearer(released):
        gain = great_circle_m(60.0, 25.0, released.lat, released.lng)
        gain -= great_circle_m(60.0005, 25.0, released.lat, released.lng)
        return gain.reshape(-1, 4)[:, [0, 3]].sum(axis=1)

    found = [
        audit_per_metre(runs_on_traces(kind(**terms), (one, other), nearer), distance_m=apart_m, n=40_000, rng=seeded(1)).value
        for kind in (AnchoredGeoIndistinguishability, PaysTwice)
    ]
    claim = AnchoredGeoIndistinguishability(**terms).guarantee().epsilon_per_m
    assert 0.5 * claim < found[0] <= claim < found[1]
