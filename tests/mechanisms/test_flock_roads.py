"""flock on a road network: one budget for cells and links, trips that keep to the streets, a twin with a raw table caught."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import noise
from murmurate.asking import STEPS, Budget
from murmurate.asking.meter import counted, spent_share
from murmurate.asking.rounds import fitted
from murmurate.attacks.audit import audit
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.mechanisms.flock import Flock, fitting, road_model
from murmurate.mechanisms.flock.roads import Kerbs, grid_over, groups_of
from murmurate.mechanisms.flock.rounds import LINKS_SHARE
from murmurate.spaces.grid import Grid
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(16, one_way_rows=(3, 9))


@pytest.fixture(scope="module")
def cars() -> Trips:
    return traffic(TOWN, people=60, trips_each=5)


@pytest.fixture(autouse=True)
def small_pools(monkeypatch):
    monkeypatch.setattr(fitting, "ENDS_POOL_TRIPS", (10_000, 10_000))
    monkeypatch.setattr(fitting, "POOL_TRIPS", (2_000, 2_000))
    monkeypatch.setattr(road_model, "CALIBRATION_TRIPS", 300)


def mechanism(**options):
    return Flock(**{"epsilon": 4.0, "space": TOWN, **options})


@pytest.mark.parametrize("delta", [0.0, 1e-6])
@pytest.mark.parametrize(("unit", "most"), [("trip", None), ("user", 5)])
def test_cells_and_links_together_cost_what_is_promised(cars, delta, unit, most):
    asked = mechanism(delta=delta, unit=unit, max_trips=most)
    gone = cars.table["tid"][0] if most is None else cars.table["uid"][0]
    without = Trips(cars.table.filter(pl.col("tid" if most is None else "uid") != gone))
    costs = spent_share(asked, cars, without, noise.seeded(1))
    assert sum(costs.values()) <= 1
    assert 0.9 * LINKS_SHARE < costs["links"] <= LINKS_SHARE or most is not None
    assert costs["links"] > 0


@pytest.mark.parametrize("stamp", ["1900-01-01", "1989-05-01", "2200-01-01"])
def test_the_time_of_one_trip_moves_no_other_trip(cars, stamp):
    """One clock for all trips once let a single early time move the links of thousands of others."""
    few = cars.take_trips(np.arange(60))
    odd = few.take_trips([0]).table
    shift = pl.lit(stamp).str.to_datetime(time_unit="us", time_zone="UTC") - odd["datetime"][0]
    odd = odd.with_columns(
        pl.col("datetime") + shift, uid=pl.lit("10000000").cast(odd.schema["uid"]), tid=pl.col("tid") + 10**6
    )
    costs = spent_share(mechanism(epsilon=20.0), Trips(pl.concat([few.table, odd])), few, noise.seeded(1))
    assert sum(costs.values()) <= 1


@pytest.mark.parametrize("broken", [False, True])
def test_audit_of_the_link_table_and_a_twin_that_reads_it_raw(cars, broken):
    """An adversary who knows every trip but one and sees the noisy use of links."""
    few = cars.take_trips(np.arange(40))
    tables = counted(mechanism(epsilon=30.0), (few, few.take_trips(np.arange(1, 40))), noise.seeded(1))
    links = next(one for one in tables if one.table.name == "links")
    exact = [links.exact(side) / STEPS for side in (0, 1)]

    def outputs(side, n, rng):
        ratios = []
        for _ in range(n):
            seen = exact[side] if broken else Budget(epsilon=8.0).draw(links.table, links.exact(side), rng).noisy
            ratios.append(float((np.abs(seen - exact[1]) - np.abs(seen - exact[0])).sum()))
        return np.round(ratios, 6)

    bound = audit(outputs, n=400, rng=noise.seeded(3), confidence=0.95).value
    assert bound > 8.0 * LINKS_SHARE if broken else bound < 8.0 * LINKS_SHARE


def test_released_trips_keep_to_the_streets_and_their_directions(cars):
    released = mm.rehearse(mechanism(n_out=300, epsilon=20.0), cars, rng=noise.seeded(2)).payload
    assert released.n_trips == 300 and (np.diff(released.offsets) >= 2).all()
    assert set(released.columns) == {"uid", "tid", "datetime", "hour", "lat", "lng", "link"}
    assert (TOWN.index.nearest(released.lat, released.lng, radius_m=5.0)[2] < 0.5).all()
    same = np.diff(released.point_trip) == 0
    assert (np.diff(released.time_us)[same] >= 0).all()
    assert np.isin(released.table["hour"].to_numpy(), [8, 17]).mean() > 0.6


def test_routes_follow_links_that_meet_and_one_ways(cars):
    model = fitted(mechanism(epsilon=20.0), cars, noise.seeded(2))
    generator = np.random.default_rng(1)
    tracks = model._tracks(200, model.fitted.base.ends, generator)
    routes = model.router.route(tracks, model.fitted.base.frame, generator)
    inner = np.diff(np.repeat(np.arange(200), np.diff(routes.offsets))) == 0
    assert (TOWN.link_to[routes.link[:-1]] == TOWN.link_from[routes.link[1:]])[inner].all()
    sums = np.add.reduceat(TOWN.length_m[routes.link], routes.offsets[:-1][np.diff(routes.offsets) > 0])
    assert np.allclose(sums, routes.length_m[np.diff(routes.offsets) > 0])


def test_busy_links_become_cheap(cars):
    """Everybody takes one street: its links cost less than their time says, the others more."""
    lat = TOWN.node_lat.reshape(16, 16)[7, 0]
    one_street = cars.table.filter(pl.col("lat").is_between(lat - 1e-4, lat + 1e-4))
    one_street = Trips(one_street.filter(pl.len().over("tid") > 3))
    many = [one_street.table.with_columns(tid=pl.col("tid") + 10_000 * k) for k in range(40)]
    model = fitted(mechanism(epsilon=50.0), Trips(pl.concat(many)), noise.seeded(2))
    on = np.abs(TOWN.midpoint[0] - lat) < 1e-5
    assert model.router.factor[on].mean() < model.router.factor[~on].mean()


def test_a_model_on_roads_is_saved_loaded_and_sampled(tmp_path, cars):
    asked = mechanism()
    model = fitted(asked, cars, noise.seeded(3))
    model.save(tmp_path)
    again = asked.load(tmp_path)
    one, other = (side.sample(50, noise.seeded(5)) for side in (model, again))
    assert one.n_trips == other.n_trips == 50
    morning = again.sample(30, noise.seeded(5), hour=8)
    assert set(morning.table["hour"]) == {8}
    (tmp_path / "factors.npy").write_bytes(b"nothing")
    with pytest.raises(InputError, match="on roads"):
        asked.load(tmp_path)


def test_without_times_and_through_the_door(tmp_path, cars):
    private = Trips(cars.table.drop("datetime"))
    released = mm.rehearse(mechanism(n_out=40), private, rng=noise.seeded(1)).payload
    assert set(released.columns) == {"uid", "tid", "lat", "lng", "link"}
    found = mm.release(mechanism(n_out=40), cars, ledger=mm.Ledger(f"sqlite:///{tmp_path}/l.db"), out=tmp_path / "out")
    assert found.manifest.to_json()["guarantee"]["epsilon"] == 4.0
    assert pl.read_parquet(tmp_path / "out" / "data.parquet")["tid"].n_unique() == 40


def test_a_model_is_sampled_where_the_network_file_is_not(tmp_path, monkeypatch, cars):
    """The manifest names the file without its folder; the model carries the roads."""
    monkeypatch.chdir(tmp_path)
    ledger = mm.Ledger(f"sqlite:///{tmp_path}/l.db")
    made = mm.fit(mechanism(), cars, ledger=ledger, out=tmp_path / "model")
    drawn = mm.sample(made.folder, n_out=20, out=tmp_path / "drawn")
    assert pl.read_parquet(drawn.folder / "data.parquet")["tid"].n_unique() == 20


def test_groups_are_finer_for_more_trips():
    sizes = [int(groups_of(TOWN, n, 2**0.5).max()) + 1 for n in (100, 1_000, 100_000)]
    assert sizes == sorted(sizes) and sizes[0] < sizes[-1] == TOWN.n_links


def test_kerbs_lie_on_roads_in_their_cells():
    grid = grid_over(TOWN, 10_000)
    kerbs = Kerbs.along(TOWN, grid)
    drawn = kerbs.draw(np.arange(grid.n_cells), np.random.default_rng(1))
    own = np.diff(kerbs.offsets) > 0
    assert (grid.locate(kerbs.lat[drawn], kerbs.lng[drawn])[own] == np.flatnonzero(own)).all()
    assert isinstance(grid, Grid) and (grid.locate(TOWN.node_lat, TOWN.node_lng) >= 0).all()
    assert grid_over(TOWN, 10).n_cells <= 10
