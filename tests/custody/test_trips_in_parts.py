"""Releases of many points by a mechanism that works person by person: a folder of files, made by workers part by part."""

from __future__ import annotations

import hashlib
import os
import pickle
import signal

import polars as pl
import pyarrow.parquet as pq
import pytest

import murmurate as mm
from murmurate import noise
from murmurate.asking.rounds import Held
from murmurate.core.trips import Trips
from murmurate.custody import trips_in_parts
from murmurate.custody.internal import Internal
from murmurate.custody.trips_in_parts import TripsInParts
from murmurate.engine import Serial, engine
from murmurate.errors import GuaranteeRefused
from murmurate.judging.checking import verify
from small_town import town

GEOIND = mm.GeoIndistinguishability(epsilon=1.0, radius_m=100.0, max_points=20)
EMITS = ("datetime", "lat", "lng")


@pytest.fixture(autouse=True)
def small_files(tmp_path, monkeypatch):
    monkeypatch.setenv("MURMURATE_STATE", str(tmp_path / "state"))
    monkeypatch.setattr(trips_in_parts, "ONE_FILE_POINTS", 500)
    monkeypatch.setattr(trips_in_parts, "POINTS_PER_FILE", 300)


@pytest.fixture(scope="module")
def private():
    return town(200)


def moved(trips: Trips, rng: noise.Randomness) -> Trips:
    return GEOIND.apply(trips, rng)


def as_they_are(trips: Trips, _: noise.Randomness) -> Trips:
    return trips


def few(trips: Trips, _: noise.Randomness) -> Trips:
    return trips.take_trips(trips.trip_ids.to_numpy() % 4 == 0)


def in_parts(private: Trips, work=moved, running=None, seed=5, **options) -> TripsInParts:
    sources = [Held(part) for part in private.partitions(200)]
    return TripsInParts(sources, work, noise.seeded(seed), running or Serial(), options.pop("read", None), **options)


def written(parts: TripsInParts, path, link="none") -> dict[str, bytes]:
    hashes = parts.write_to(path, emits=EMITS, link=link, keep_ids=False, pairing=None)
    if path.is_file():
        assert hashes == {}
        return {"": path.read_bytes()}
    files = {file.name: file.read_bytes() for file in path.iterdir()}
    assert hashes == {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
    return files


def traces(table: pl.DataFrame) -> list[tuple]:
    """Return the points of every trip, in any order of the trips."""
    grouped = table.group_by("uid", "tid", maintain_order=True)
    return sorted(tuple(zip(*(trip[name].to_list() for name in EMITS), strict=True)) for _, trip in grouped)


def test_every_trip_arrives_once_and_whole_ordered_by_random_names(private, tmp_path):
    files = written(in_parts(private, as_they_are), tmp_path / "data.parquet")
    assert sorted(files) == [f"part-0000{k}.parquet" for k in range(8)]  # 1,449 points, at most about 300 each
    table = pl.read_parquet(sorted((tmp_path / "data.parquet").iterdir()))
    assert traces(table) == traces(private.table)
    names = table.unique(["uid", "tid"], maintain_order=True)["uid"]
    assert names.is_sorted() and names.n_unique() == private.n_trips
    assert list((tmp_path / "state" / "work").glob("*")) == []


@pytest.mark.parametrize("read", [None, 5_000, 10**9])
def test_the_layout_follows_from_what_leaves_alone(private, tmp_path, read):
    """The same files whatever number of points was read before bounds cut them; few points are one file."""
    assert len(written(in_parts(private, as_they_are, read=read), tmp_path / "many")) == 8
    assert list(written(in_parts(private, few, read=read), tmp_path / "few")) == [""]
    assert traces(pl.read_parquet(tmp_path / "few")) == traces(few(private, noise.seeded(0)).table)


@pytest.mark.parametrize("work_in", ["memory://released", "none"])
def test_files_are_the_same_wherever_work_files_lie(private, tmp_path, work_in):
    expected = written(in_parts(private, work_in=tmp_path / "work"), tmp_path / "one")
    assert written(in_parts(private, work_in=work_in), tmp_path / "two") == expected


def test_linked_trips_stand_together(private, tmp_path):
    written(in_parts(private, as_they_are), tmp_path / "data.parquet", link="user")
    files = [pl.read_parquet(file)["uid"].unique().to_list() for file in sorted((tmp_path / "data.parquet").iterdir())]
    assert sum(map(len, files)) == len({uid for names in files for uid in names}) == private.n_users


class Twice(Serial):
    """Runs every part twice, as a cluster may, and uses the second result."""

    def __init__(self) -> None:
        self.seen = []

    def map(self, function, items):
        for item in items:
            sent = pickle.dumps((function, item))
            results = [call(given) for call, given in (pickle.loads(sent), pickle.loads(sent))]
            self.seen.append(results)
            yield results[1]


def test_a_part_that_runs_twice_is_released_once_and_its_noise_is_its_own(private, tmp_path, monkeypatch):
    running = Twice()
    parts = TripsInParts([Held(part) for part in private.partitions(200)], moved, noise.secure(), running, None)
    drawn: list[set[tuple[float, float]]] = []
    write_spill = trips_in_parts.write_spill

    def spy(files, name, part, *rest):
        drawn.append(set(part.table.select("lat", "lng").iter_rows()))
        return write_spill(files, name, part, *rest)

    monkeypatch.setattr(trips_in_parts, "write_spill", spy)
    written(parts, tmp_path / "data.parquet")
    released = pl.read_parquet(tmp_path / "data.parquet")
    assert released["tid"].n_unique() == private.n_trips and released.height == private.n_points
    places = set(released.select("lat", "lng").iter_rows())
    used, unused = set().union(*drawn[1::2]), set().union(*drawn[::2])
    assert places == used
    assert len(places & unused) < 0.05 * len(places)  # two draws may end at one place by chance


class _DiesOnce:
    """A part whose first worker is killed."""

    def __init__(self, trips, mark):
        self.trips, self.mark = trips, mark

    def load(self):
        if not self.mark.exists():
            self.mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return self.trips


def test_a_killed_worker_costs_nothing(private, tmp_path):
    first, *others = private.partitions(200)
    sources = [_DiesOnce(first, tmp_path / "died"), *map(Held, others)]
    with engine(2) as running:
        written(TripsInParts(sources, as_they_are, noise.secure(), running, None), tmp_path / "data.parquet")
    assert (tmp_path / "died").exists()
    assert traces(pl.read_parquet(tmp_path / "data.parquet")) == traces(private.table)


def test_a_person_in_two_parts_is_refused(private, tmp_path):
    parts = TripsInParts([Held(private), Held(private)], moved, noise.secure(), Serial(), None)
    with pytest.raises(GuaranteeRefused, match="two parts"):
        written(parts, tmp_path / "data.parquet")
    assert not (tmp_path / "data.parquet").exists()


def test_a_release_by_workers_is_charged_paired_and_verified_as_any_other(private, tmp_path):
    private.table.write_parquet(tmp_path / "trips.parquet", row_group_size=300)
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger, engine(2) as running:
        with mm.scan(tmp_path / "trips.parquet", points_per_partition=300, engine=running) as parts:
            made = mm.release(GEOIND, parts, ledger=ledger, out=tmp_path / "out", engine=running)
        internal = Internal(ledger, made.manifest.release_id)
        pairs = internal.pairing()
        assert sorted(path.name for path in internal.folder.iterdir()) == ["pairing.parquet", "source.json"]
        original = mm.read(tmp_path / "trips.parquet")
        found = mm.evaluate(made.folder, against=original, ledger=ledger, metrics=["point_displacement"])
    assert verify(made.folder)["files"] == "9 match their hashes"
    assert pq.read_table(made.folder / "data.parquet").num_rows == private.n_points
    originals = set(pairs.select("original_uid", "original_tid").iter_rows())
    assert len(originals) == pairs.height == private.n_trips
    average = {score.name: score.value for score in found.scores}["point_displacement.average.mean"]
    assert 150 < average < 250  # metres, if every trip is compared with its own original
