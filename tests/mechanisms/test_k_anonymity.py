"""k_anonymity: every released trip has its company, by a checker that knows nothing of how it was made."""

from __future__ import annotations

import dataclasses

import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import murmurate as mm
from companions import companions
from murmurate.core.guarantee import KAnonymity
from murmurate.core.trips import TIME, Trips
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.k_anonymity import KAnonymousTrips
from murmurate.mechanisms.k_anonymity.groups import group, shapes
from murmurate.noise import seeded
from murmurate.spaces.sphere import great_circle_m


@pytest.fixture(scope="module")
def town() -> Trips:
    return mm.demo.city(people=25, days=3, interval_s=60, seed=2).trips


def trips(rows) -> Trips:
    """Rows of (uid, tid, second, lat, lng)."""
    uid, tid, second, lat, lng = (list(column) for column in zip(*rows, strict=True))
    when = pl.Series("datetime", [int(s * 1e6) for s in second]).cast(TIME)
    return Trips(pl.DataFrame({"uid": uid, "tid": tid, "datetime": when, "lat": lat, "lng": lng}))


def commuters(n, *, lat=60.0, spread=0.0, late_s=0.0, seed=1):
    """People who go north for ten minutes, at different places and times."""
    rng = np.random.default_rng(seed)
    rows = []
    for person in range(n):
        dlat, dlng = rng.normal(0, spread, 2)
        start, points = rng.uniform(0, late_s) if late_s else 0.0, int(rng.integers(2, 12))
        rows += [
            (person, person, start + 600 * i / (points - 1), lat + dlat + 0.01 * i / (points - 1), 25.0 + dlng)
            for i in range(points)
        ]
    return trips(rows)


# -- the promise ------------------------------------------------------------------------------------------------------


def test_the_guarantee_is_company_and_says_that_it_is_not_more():
    mechanism = KAnonymousTrips(k=4, radius_m=250.0)
    guarantee = mechanism.guarantee()
    assert isinstance(guarantee, KAnonymity)
    assert (guarantee.k, guarantee.radius_m, guarantee.unit.name) == (4, 250.0, "trip")
    text = " ".join(mechanism.statement())
    assert "3 trips of as many other people" in text
    assert "not differential privacy" in text


@pytest.mark.parametrize(
    "changes",
    [{"k": 1}, {"k": 2.5}, {"radius_m": 0.0}, {"radius_m": 0.5}, {"radius_m": np.inf}, {"max_trash": 1.5}, {"max_trash": -0.1},
     {"time_cost_m_per_s": 0.0}],
)  # fmt: skip
def test_senseless_parameters_are_refused(changes):
    with pytest.raises(ParameterError):
        KAnonymousTrips(**{"k": 3, "radius_m": 300.0, **changes})


@pytest.mark.parametrize(("k", "radius_m", "max_trash"), [(2, 300.0, 0.1), (3, 500.0, 0.0), (5, 50.0, 0.3), (4, 5_000.0, 0.1)])
def test_every_released_trip_of_the_town_has_its_company(town, k, radius_m, max_trash):
    out = KAnonymousTrips(k=k, radius_m=radius_m, max_trash=max_trash).apply(town, seeded(1))
    assert companions(out, radius_m).min() >= k - 1
    assert out.n_trips >= (1 - max_trash) * town.n_trips
    pairs = set(town.table.select("uid", "tid").unique().iter_rows())
    assert set(out.table.select("uid", "tid").unique().iter_rows()) <= pairs


person = st.tuples(
    st.integers(0, 6),
    st.lists(st.tuples(st.floats(0, 5e4), st.floats(-89.5, 89.5), st.floats(-180, 180)), min_size=1, max_size=5),
)


@settings(max_examples=60)
@given(st.lists(person, min_size=8, max_size=20), st.sampled_from([2, 3]), st.sampled_from([1.0, 400.0, 1e5]))
def test_wild_trips_keep_company_too(people, k, radius_m):
    """All over the world, backwards, in no time, around the poles: the promise is the same."""
    rows = [
        (who, tid, second, lat, lng)
        for tid, (who, points) in enumerate(people)
        for second, lat, lng in sorted(points, key=lambda point: point[0])
    ]
    private = trips(rows)
    if private.n_users < k:
        with pytest.raises(InputError, match="people"):
            KAnonymousTrips(k=k, radius_m=radius_m).apply(private, seeded(1))
        return
    out = KAnonymousTrips(k=k, radius_m=radius_m).apply(private, seeded(1))
    # between two records, straight lines in degrees bend apart near the poles, so such leaps are checked at records
    assert _least_company_at_records(out, radius_m) >= k - 1


def _least_company_at_records(out: Trips, radius_m: float) -> int:
    least = out.n_trips
    spans = [slice(out.offsets[trip], out.offsets[trip + 1]) for trip in range(out.n_trips)]
    for one, mine in enumerate(spans):
        people = set()
        for other, theirs in enumerate(spans):
            if out.trip_user[one] != out.trip_user[other] and np.array_equal(out.time_us[mine], out.time_us[theirs]):
                apart = great_circle_m(out.lat[mine], out.lng[mine], out.lat[theirs], out.lng[theirs])
                if (apart <= radius_m).all():
                    people.add(out.trip_user[other])
        least = min(least, len(people))
    return least


# -- the checker and a broken twin ------------------------------------------------------------------------------------


def test_the_checker_counts_people_who_stay_near_all_along():
    def one(uid, tid, leave=0.0, start=0, end=600):
        return [(uid, tid, start, 60.0, 25.0), (uid, tid, 300, 60.0 + leave, 25.0), (uid, tid, end, 60.0, 25.0)]

    private = trips(one(1, 1) + one(2, 2) + one(2, 3) + one(3, 4, leave=0.01) + one(4, 5, start=100) + one(5, 6, end=900))
    # 2 (twice, once counted) and 5 (stays longer) are with 1; 3 leaves for a while and 4 comes late
    assert companions(private, 100.0)[0] == 2
    assert companions(private, 2_000.0)[0] == 3
    # for the one who comes late, 1, 2 and 5 are there all along
    assert companions(private, 100.0)[4] == 3


@dataclasses.dataclass(frozen=True, kw_only=True)
class TooWide(KAnonymousTrips):
    """A broken twin: its cylinder is half as wide again as it says."""

    def apply(self, private, rng):
        return KAnonymousTrips(k=self.k, radius_m=1.5 * self.radius_m).apply(private, rng)


@dataclasses.dataclass(frozen=True, kw_only=True)
class TooFew(KAnonymousTrips):
    """A broken twin: its companies are one short."""

    def apply(self, private, rng):
        return KAnonymousTrips(k=self.k - 1, radius_m=self.radius_m).apply(private, rng)


@pytest.mark.parametrize("twin", [TooWide, TooFew])
def test_broken_twins_are_caught(town, twin):
    out = twin(k=4, radius_m=200.0).apply(town, seeded(1))
    assert companions(out, 200.0).min() < 3


def test_trips_of_one_person_are_no_company():
    rows = [(0, tid, second, 60.0, 25.0) for tid in range(9) for second in (0, 600)]
    rows += [(1, 20, second, 60.01, 25.0) for second in (0, 600)]
    with pytest.raises(InputError, match="at least 3 people"):
        KAnonymousTrips(k=3, radius_m=500.0).apply(trips(rows), seeded(1))
    out = KAnonymousTrips(k=2, radius_m=500.0).apply(trips(rows), seeded(1))
    assert companions(out, 500.0).min() >= 1


# -- moved as little as needed ----------------------------------------------------------------------------------------


def test_company_that_is_near_already_stays_where_it_is():
    rows = [
        (person, person, second, 60.0 + 1e-5 * second + 1e-4 * person, 25.0) for person in range(4) for second in (0, 60, 120)
    ]
    private = trips(rows)
    out = KAnonymousTrips(k=4, radius_m=200.0).apply(private, seeded(1))
    assert great_circle_m(private.lat, private.lng, out.lat, out.lng).max() < 0.2
    assert out.table["datetime"].equals(private.table["datetime"])


def test_others_move_to_the_edge_and_no_farther():
    private = trips([(person, person, second, 60.0 + 0.01 * person, 25.0) for person in range(2) for second in (0, 60)])
    out = KAnonymousTrips(k=2, radius_m=400.0).apply(private, seeded(1))
    apart = great_circle_m(out.lat[:2], out.lng[:2], out.lat[2:], out.lng[2:])
    assert apart == pytest.approx([400.0, 400.0], abs=1.0)
    assert apart.max() <= 400.0


def test_members_take_the_pivots_times_at_equal_shares_of_their_ways():
    private = commuters(6, late_s=3_000.0)
    out = KAnonymousTrips(k=6, radius_m=300.0, max_trash=0.0).apply(private, seeded(1))
    times = {out.time_us[out.offsets[t] : out.offsets[t + 1]].tobytes() for t in range(6)}
    assert len(times) == 1
    assert times <= {private.time_us[private.offsets[t] : private.offsets[t + 1]].tobytes() for t in range(6)}
    shares = (out.time_us - out.time_us.min()) / np.ptp(out.time_us)
    assert out.lat == pytest.approx(60.0 + 0.01 * shares, abs=2e-6)  # all went the same way at the same pace


def test_a_stranger_goes_to_the_trash_and_the_bin_is_bounded():
    rows = [(person, person, second, 60.0 + 1e-4 * person, 25.0) for person in range(9) for second in (0, 600)]
    rows += [(99, 99, second, -33.0, 151.0) for second in (0, 600)]
    out = KAnonymousTrips(k=3, radius_m=200.0, max_trash=0.1).apply(trips(rows), seeded(1))
    assert 99 not in out.user_ids.to_list()
    assert out.n_trips == 9
    out = KAnonymousTrips(k=3, radius_m=200.0, max_trash=0.0).apply(trips(rows), seeded(1))
    assert out.n_trips == 10


def test_nothing_in_nothing_out(town):
    assert (
        KAnonymousTrips(k=2, radius_m=300.0).apply(town.take_points(np.zeros(town.n_points, dtype=bool)), seeded(1)).n_trips
        == 0
    )


def test_groups_hold_k_people_within_the_width():
    private = commuters(60, spread=0.01, late_s=7_200.0)
    seconds = private.time_us / 1e6
    these = shapes(private.offsets, seconds, private.lat, private.lng, private.trip_user)
    member, pivots = group(these, k=4, most_apart_m=1_500.0, time_cost_m_per_s=0.1, order=seeded(1).permutation(60))
    for one, pivot in enumerate(pivots):
        inside = np.flatnonzero(member == one)
        assert pivot in inside
        assert len(set(private.trip_user[inside])) >= 4
        apart = np.linalg.norm(these.place_m[inside] - these.place_m[pivot], axis=2).mean(axis=1)
        late = np.abs(these.start_s[inside] - these.start_s[pivot]) + np.abs(these.end_s[inside] - these.end_s[pivot])
        assert (apart + 0.1 * late / 2 <= 1_500.0).all()
