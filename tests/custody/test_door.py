"""The door: what is refused before anything is spent, what is written after, and what a model may do."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import pytest

import murmurate as mm
from murmurate import noise
from murmurate.core.guarantee import DP, Unit
from murmurate.core.trips import Identity, Trips
from murmurate.custody.door import rehearse
from murmurate.custody.internal import Internal
from murmurate.errors import (
    GuaranteeRefused,
    InputError,
    LedgerError,
    OutputError,
    ParameterError,
    PopulationOverlap,
    VerifyError,
)


def trips(people: int = 8, shift: float = 0.0) -> Trips:
    rows = [
        (f"person{u}", t, 1_714_550_400 + t * 3600 + p * 15, 60.17 + u * 0.001 + shift, 24.94 + p * 1e-4)
        for u in range(people)
        for t in range(3)
        for p in range(6)
    ]
    frame = pl.DataFrame(rows, schema=["uid", "tid", "t", "lat", "lng"], orient="row")
    return mm.read(frame)


GEOIND = {"epsilon": 1.0, "radius_m": 100.0, "max_points": 6}


def geoind(**changes: Any) -> Any:
    return mm.GeoIndistinguishability(**{**GEOIND, **changes})


@dataclass(frozen=True, kw_only=True)
class Counter:
    """Learns the noisy number of trips; a sample is that many points at the origin of the plane."""

    name: ClassVar[str] = "counter"
    needs: ClassVar[frozenset[str]] = frozenset()
    emits: ClassVar[tuple[str, ...]] = ("lat", "lng")
    paired: ClassVar[bool] = False
    local: ClassVar[bool] = False
    example: ClassVar[dict[str, Any]] = {}
    epsilon: float = 1.0

    def guarantee(self):
        return DP(epsilon=self.epsilon, unit=Unit(name="trip"))

    def statement(self):
        return ("It counts trips.",)

    def expected_error(self):
        return "one or two trips"

    def fit(self, private, rng):
        noisy = noise.laplace_integers(np.array([private.n_trips]), scale=1 / self.epsilon, rng=rng)
        return CounterModel(int(noisy[0]))

    def load(self, path):
        return CounterModel(int(json.loads((path / "count.json").read_text())))

    def apply(self, private, rng):
        return self.fit(private, rng).sample(5, rng)


@dataclass(frozen=True)
class CounterModel:
    count: int

    def sample(self, n, rng):
        return Trips(pl.DataFrame({"uid": range(n), "tid": range(n), "lat": [0.0] * n, "lng": [0.0] * n}))

    def save(self, path):
        (path / "count.json").write_text(json.dumps(self.count))


@pytest.fixture
def ledger(tmp_path):
    with mm.Ledger(tmp_path / "ledger.sqlite") as book:
        yield book


def test_parts_and_whole_give_the_same_promise_and_points(tmp_path, ledger):
    private = trips()
    private.table.with_columns(pl.col("uid").cast(pl.String)).write_parquet(tmp_path / "trips.parquet")
    with mm.scan(tmp_path / "trips.parquet", points_per_partition=40) as parts:
        streamed = mm.release(geoind(), parts, ledger=ledger, out=tmp_path / "streamed", workers=2)
    whole = mm.release(geoind(), mm.read(tmp_path / "trips.parquet"), ledger=ledger, out=tmp_path / "whole")
    assert streamed.manifest.guarantee == whole.manifest.guarantee
    assert (streamed.trips.n_points, streamed.trips.n_trips) == (private.n_points, private.n_trips)
    moved = np.abs(np.sort(streamed.trips.lat) - np.sort(private.lat))
    assert 0 < moved.mean() < 0.01
    pairs = Internal(ledger, streamed.manifest.release_id).pairing()
    assert pairs is not None
    assert pairs.height == private.n_trips


def test_every_draw_is_fresh(tmp_path, ledger):
    one, two = (mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / name).trips for name in ("a", "b"))
    assert set(one.lat.tolist()).isdisjoint(two.lat.tolist()) or not np.array_equal(np.sort(one.lat), np.sort(two.lat))
    assert set(one.table["uid"].to_list()).isdisjoint(two.table["uid"].to_list())


@pytest.mark.parametrize("link", ["day", "user"])
def test_linked_trips_must_be_priced_together(tmp_path, ledger, link):
    with pytest.raises(ParameterError, match="unit="):
        mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out", link=link)
    assert [entry.what for entry in ledger.history()] == ["created"]
    unit = {"day": "user_day", "user": "user"}[link]
    made = mm.release(geoind(unit=unit, max_trips=3, max_points=18), trips(), ledger=ledger, out=tmp_path / "out", link=link)
    assert made.trips.n_users == 8


def test_a_known_people_under_another_name_gets_no_fresh_budget(tmp_path, ledger):
    mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "a")
    changed = trips(shift=1e-5)
    with pytest.raises(PopulationOverlap):
        mm.release(geoind(), changed, ledger=ledger, out=tmp_path / "b")
    with pytest.raises(PopulationOverlap):
        mm.release(geoind(), changed, ledger=ledger, out=tmp_path / "b", population="somebody else")
    known = ledger.populations()[0]
    mm.release(geoind(), changed, ledger=ledger, out=tmp_path / "b", population=known)
    assert ledger.spent(known)[0].n_charges == 2


def test_missing_content_is_refused_before_the_charge(tmp_path, ledger):
    cells = Trips(pl.DataFrame({"uid": ["a"], "tid": [1], "cell": [1]}))
    with pytest.raises(InputError, match="coordinates"):
        mm.release(geoind(), cells, ledger=ledger, out=tmp_path / "out")
    assert [entry.what for entry in ledger.history()] == ["created"]


def test_an_output_in_the_way_is_refused_before_the_charge(tmp_path, ledger):
    (tmp_path / "out").mkdir()
    with pytest.raises(OutputError):
        mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    assert [entry.what for entry in ledger.history()] == ["created"]


def test_kept_names_are_marked_and_pair_by_themselves(tmp_path, ledger):
    made = mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out", keep_ids=True)
    assert made.manifest.ids == "kept"
    assert "original identifiers" in (made.folder / "statement.md").read_text()
    assert made.trips.user_ids.to_list() == [f"person{u}" for u in range(8)]


def test_fit_is_charged_once_and_samples_are_free(tmp_path, ledger):
    fitted = mm.fit(Counter(), trips(), ledger=ledger, out=tmp_path / "model")
    population = ledger.populations()[0]
    spent = ledger.spent(population)
    for n in (3, 7):
        drawn = mm.sample(fitted, n_out=n, out=tmp_path / f"sample{n}", rebuild=lambda manifest: Counter())
        assert drawn.trips.n_trips == n
        assert drawn.manifest.model_of == fitted.manifest.release_id
        assert drawn.manifest.guarantee == fitted.manifest.guarantee
        assert drawn.manifest.parameters["n_out"] == n
    assert ledger.spent(population) == spent
    with pytest.raises(InputError, match="not a fitted model"):
        mm.sample(tmp_path / "sample3", n_out=1, out=tmp_path / "more")


def test_only_learners_fit(tmp_path, ledger):
    with pytest.raises(ParameterError, match="does not learn"):
        mm.fit(geoind(), trips(), ledger=ledger, out=tmp_path / "model")


def test_a_changed_model_is_not_sampled(tmp_path, ledger):
    fitted = mm.fit(Counter(), trips(), ledger=ledger, out=tmp_path / "model")
    (fitted.folder / "model" / "count.json").write_text("99")
    with pytest.raises(VerifyError, match="was changed"):
        mm.sample(tmp_path / "model", n_out=1, out=tmp_path / "sample")


@dataclass(frozen=True, kw_only=True)
class Unusable(mm.NGram):
    """A measured mechanism whose settings name something that is not here."""

    def budget(self):
        raise ParameterError("the library is not here; give its file.")


def test_settings_that_cannot_be_measured_spend_nothing(ledger):
    grid = mm.Grid(south=60.1, west=24.9, north=60.2, east=25.0, cell_m=1000)
    for run in (mm.release, mm.fit):
        with pytest.raises(ParameterError, match="not here") as refused:
            run(Unusable(space=grid, epsilon=1.0), trips(), ledger=ledger)
        assert refused.value.charged is None and [entry.what for entry in ledger.history()] == ["created"]


def test_rehearsals_cost_nothing_and_are_logged(ledger):
    rehearsal = rehearse(geoind(), trips(), ledger=ledger)
    assert isinstance(rehearsal.payload, Trips)
    assert rehearsal.payload.user_ids.to_list() == [f"person{u}" for u in range(8)]
    assert [entry.what for entry in ledger.history()][-1] == "rehearsal"
    assert all(spent.n_charges == 0 for name in ledger.populations() for spent in ledger.spent(name))


def test_a_failing_mechanism_keeps_its_debit_and_leaves_no_folder(tmp_path, ledger, monkeypatch):
    def explode(self, private, rng):
        raise RuntimeError("broken")

    monkeypatch.setattr(mm.GeoIndistinguishability, "apply", explode)
    with pytest.raises(RuntimeError):
        mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()
    assert [entry.what for entry in ledger.history()][-1] == "debit"


def test_verify_notices_another_promise(tmp_path, ledger):
    made = mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    assert mm.verify(made.folder, ledger=ledger)["debit"].startswith("charged to population")
    with mm.Ledger.in_memory() as other, pytest.raises(VerifyError, match=made.manifest.release_id):
        mm.verify(made.folder, ledger=other)


def test_seeds_are_for_demos(tmp_path, ledger):
    with pytest.raises(GuaranteeRefused, match="seed"):
        mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out", rng=noise.seeded(1))
    with mm.Ledger.in_memory() as demo:
        made = mm.release(geoind(), trips(), ledger=demo, out=tmp_path / "out", rng=noise.seeded(1))
    assert made.manifest.seeded


KILLED = """
import os, signal, sys
import murmurate as mm
from murmurate.releases import folder
sys.path.insert(0, {tests!r})
from test_door import geoind, trips
stop = {stop!r}
if stop == "apply":
    mm.GeoIndistinguishability.apply = lambda self, private, rng: os.kill(os.getpid(), signal.SIGKILL)
else:
    folder._settle = lambda path: os.kill(os.getpid(), signal.SIGKILL)
with mm.Ledger("ledger.sqlite") as ledger:
    mm.release(geoind(), trips(), ledger=ledger, out="out")
"""


@pytest.mark.parametrize("stop", ["apply", "rename"])
def test_kill_loses_the_release_never_the_debit(tmp_path, stop):
    script = KILLED.format(tests=str(Path(__file__).parent), stop=stop)
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env={**os.environ}, check=False, capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    assert not (tmp_path / "out").exists()
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger:
        assert [entry.what for entry in ledger.history()][-1] == "debit"
        assert ledger.verify().n_debits == 1


def test_a_closed_door_tells_which_ledger(tmp_path):
    (tmp_path / "ledger.sqlite").write_bytes(b"")
    with pytest.raises(LedgerError):
        mm.Ledger(tmp_path / "ledger.sqlite")


# -- what an examiner of this door once got through --------------------------------------------------------------------


def without_times() -> Trips:
    return mm.read(trips().table.drop("datetime"))


@pytest.mark.parametrize(
    ("change", "options"),
    [({"unit": "user_day"}, {}), ({"smooth": True}, {}), ({"unit": "user"}, {"link": "day"})],
)
def test_times_that_are_needed_are_asked_for_before_the_charge(tmp_path, ledger, change, options):
    with pytest.raises(InputError, match="carry no time"):
        mm.release(geoind(**change), without_times(), ledger=ledger, out=tmp_path / "out", **options)
    assert [entry.what for entry in ledger.history()] == ["created"]


def test_a_name_too_long_is_refused_before_the_charge(tmp_path, ledger):
    with pytest.raises(OutputError):
        mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / ("x" * 260))
    assert [entry.what for entry in ledger.history()] == ["created"]


def test_what_fails_after_the_charge_says_so(tmp_path, ledger):
    far = geoind(space=mm.Plane(0.0, 0.0))
    with pytest.raises(mm.errors.MurmurateError) as failed:
        mm.release(far, trips(), ledger=ledger, out=tmp_path / "out")
    assert failed.value.charged == ledger.history()[-1].details["release_id"]
    assert not (tmp_path / "out").exists()


def test_a_refused_charge_leaves_nothing_inside(tmp_path, ledger):
    population = ledger.population_of(trips().identity, create=True)
    ledger.limit(population, kind="geoind", unit="trip", epsilon_per_m=1e-6)
    with pytest.raises(mm.errors.InsufficientBudget):
        mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    assert list(ledger.internal_folder.iterdir()) == []


@pytest.mark.parametrize("step_m", [10_000.0, 50.0])
def test_a_lattice_coarser_than_its_noise_is_refused(step_m):
    with pytest.raises(ParameterError, match="lattice step"):
        geoind(space=mm.Plane(60.0, 25.0, step_m))


def test_demo_releases_are_marked(tmp_path):
    with mm.Ledger.in_memory() as demo:
        made = mm.release(geoind(), trips(), ledger=demo, out=tmp_path / "out")
        assert made.manifest.demo
        assert "demo" in mm.verify(made.folder, ledger=demo)["marks"]
    assert "This is a demo" in (made.folder / "statement.md").read_text()


def test_a_release_cannot_pass_for_a_sample(tmp_path, ledger):
    made = mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    values = json.loads((made.folder / "manifest.json").read_text())
    values.update(model_of=values["release_id"], release_id="00")
    (made.folder / "manifest.json").write_text(json.dumps(values))
    with pytest.raises(VerifyError, match="no such model"):
        mm.verify(made.folder, ledger=ledger)


def test_a_prettier_statement_does_not_verify(tmp_path, ledger):
    from dataclasses import replace

    from murmurate.releases.folder import seal

    made = mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    (made.folder / "manifest.json").unlink()
    (made.folder / "statement.md").unlink()
    seal(made.folder, replace(made.manifest, statement=("Nobody can ever be found.",)))
    with pytest.raises(VerifyError, match="statement"):
        mm.verify(made.folder)


@pytest.mark.parametrize("change", [{"files": []}, {"guarantee": []}, {"statement": 5}, {"files": 3}])
def test_odd_manifests_end_in_a_sentence(tmp_path, ledger, change):
    made = mm.release(geoind(), trips(), ledger=ledger, out=tmp_path / "out")
    values = json.loads((made.folder / "manifest.json").read_text())
    (made.folder / "manifest.json").write_text(json.dumps({**values, **change}))
    with pytest.raises(VerifyError):
        mm.verify(made.folder)


def test_a_person_in_two_parts_is_refused(tmp_path, ledger):
    class Twice:
        def __init__(self):
            self.whole = trips()
            self.identity, self.time_zone, self.n_points = self.whole.identity, "UTC", 2 * self.whole.n_points

        def carries(self):
            return self.whole.carries()

        def __iter__(self):
            return iter([self.whole, self.whole])

    with pytest.raises(GuaranteeRefused, match="two parts"):
        mm.release(geoind(unit="user", max_points=6), Twice(), ledger=ledger, out=tmp_path / "out")


def test_the_earliest_points_of_a_person_are_kept(tmp_path, ledger):
    frame = pl.DataFrame(
        {"uid": ["a", "a"], "tid": ["z", "b"], "t": [1_700_000_000, 1_700_600_000], "lat": [60.0, 61.0], "lng": [25.0, 25.0]}
    )
    made = mm.release(geoind(unit="user", max_points=1), mm.read(frame), ledger=ledger, out=tmp_path / "out")
    assert made.trips.lat[0] == pytest.approx(60.0, abs=0.1)


def test_seeds_cannot_be_hidden():
    rng = noise.seeded(1)
    with pytest.raises(AttributeError):
        rng.seeded = False


def informed_by(identity: Identity):
    """A counter that also reads what it was told is public."""
    return type("Informed", (Counter,), {"declared_public": (identity,)})()


def test_private_data_are_not_taken_for_public_ones(tmp_path, ledger):
    own, elsewhere = trips(), Identity("f" * 64, ("x1", "x2", "x3"))
    mm.release(informed_by(elsewhere), own, ledger=ledger, out=tmp_path / "fine")
    before = [line.n_charges for line in ledger.spent(ledger.populations()[0])]
    for private in (own.identity, Identity("e" * 64, own.identity.uids[:4])):
        with pytest.raises(GuaranteeRefused, match="given as public"):
            mm.release(informed_by(private), own, ledger=ledger, out=tmp_path / "out")
    assert [line.n_charges for line in ledger.spent(ledger.populations()[0])] == before and not (tmp_path / "out").exists()


def people_counts(**changes: Any) -> Any:
    from murmurate.mechanisms.flock import Flock

    grid = mm.Grid(60.0, 24.5, 60.5, 25.5, 1000)
    return Flock(**{"epsilon": 1.0, "delta": 1e-6, "unit": "user", "space": grid, **changes})


@pytest.mark.parametrize(
    ("people", "read", "changes", "says"),
    [
        (1, {}, {}, "one identifier"),
        (8, {"columns": {"uid": "ROW"}}, {}, "name no people"),
        (8, {"columns": {"uid": "trip_id"}}, {"unit": "user_day"}, "name no people"),
        (8, {"columns": {"uid": "fare", "tid": "fare"}}, {}, "name no people"),
    ],
)
def test_a_promise_to_people_who_are_not_named_is_refused_and_nothing_is_spent(people, read, changes, says, tmp_path):
    ledger = mm.Ledger(tmp_path / "ledger.sqlite")
    private = trips(people)
    identity = Identity(private.identity.fingerprint, private.identity.uids, made_with={"read": read})
    with pytest.raises(InputError, match=says):
        mm.release(people_counts(**changes), private.with_source(identity), ledger=ledger, out=tmp_path / "out")
    assert ledger.populations() == [] and not (tmp_path / "out").exists()


@pytest.mark.parametrize("changes", [{"people": 100, "delta": 0.01}, {"clip": 0.0}, {"clip": float("inf")}, {"people": -1}])
def test_senseless_bounds_are_refused_when_a_mechanism_is_made(changes):
    with pytest.raises(ParameterError, match=r"clip|people"):
        people_counts(**changes)
