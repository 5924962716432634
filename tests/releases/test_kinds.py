"""The kind of a release decides how it is read, and where its space is found."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from multiprocessing import get_context
from typing import Any, ClassVar

import pytest

import murmurate as mm
from murmurate import noise
from murmurate.core.guarantee import NoGuarantee
from murmurate.core.parameters import public_parameters
from murmurate.errors import InputError, VerifyError
from murmurate.judging.review import review
from murmurate.releases import KINDS, kind_named, kind_of
from murmurate.spaces.road import RoadNetwork, load, save
from road_town import grid_town
from town_traffic import traffic

TOWN = grid_town(5)


@dataclass(frozen=True, kw_only=True)
class OnRoads:
    """Trips on a road network, as they are."""

    name: ClassVar[str] = "on_roads"
    needs: ClassVar[frozenset[str]] = frozenset({"coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("datetime", "lat", "lng")
    paired: ClassVar[bool] = True
    local: ClassVar[bool] = True
    example: ClassVar[Mapping[str, Any]] = {}
    space: RoadNetwork

    def guarantee(self):
        return NoGuarantee(why="it is a test")

    def statement(self):
        return ()

    def expected_error(self):
        return "none"

    def apply(self, private, rng):
        return private


@pytest.fixture(scope="module")
def cars():
    return traffic(TOWN)


@pytest.fixture
def made(cars, tmp_path):
    ledger = mm.Ledger.in_memory()
    mechanism = OnRoads(space=load(save(TOWN, tmp_path / "town.npz")))
    return mm.release(mechanism, cars, ledger=ledger, out=tmp_path / "out", accept_no_guarantee=True, rng=noise.seeded(1))


def test_trips_on_roads_say_which_file_they_need(made, cars, tmp_path, monkeypatch):
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    with pytest.raises(InputError, match=r"(?s)the file town\.npz .*--space road:FILE"):
        mm.evaluate(made.folder, cars, metrics=["visits"])
    given = mm.evaluate(made.folder, cars, metrics=["visits"], space=TOWN)
    known = mm.evaluate(made, cars, metrics=["visits"])  # a release made here knows its network
    assert given.to_json() == known.to_json() and given["visits.jsd"].value < 1e-9
    monkeypatch.chdir(tmp_path)
    assert review(made.folder, cars).release.space.n_links == TOWN.n_links


def test_a_mechanism_on_roads_goes_to_another_process_with_its_network():
    mechanism = mm.DPANI(epsilon=1.0, space=TOWN)
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as fresh:
        assert fresh.submit(public_parameters, mechanism).result() == public_parameters(mechanism)
        assert fresh.submit(mm.DPANI.guarantee, mechanism).result() == mechanism.guarantee()


def test_whole_days_are_trips_to_whoever_reads_the_manifest(made):
    days = replace(made.manifest, mechanism="plausible")
    assert days.kind == "trips" and kind_of(days).name == "days" and kind_of(days).scores == kind_named("trips").scores
    assert kind_of(replace(days, kind="model")).name == "model"
    assert kind_of(made.manifest).name == "trips", "a mechanism nobody knows makes what its manifest says"


def test_days_without_a_score_of_days_are_read_as_trips():
    days = kind_named("days")
    assert days.key_scores({"visits.jsd", "day_visits.kl"}) is days.headline
    assert days.key_scores({"visits.jsd"}) is kind_named("trips").headline


@pytest.mark.parametrize("kind", ["model", "pool"])
def test_what_holds_no_trips_says_so(made, cars, kind):
    other = replace(made, manifest=replace(made.manifest, kind=kind))
    assert other.kind.scores == () and other.kind.attacks == () and other.kind.figures == ()
    with pytest.raises(VerifyError, match=f"of kind '{kind}', which has no trips"):
        _ = other.data


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_knows_itself(name):
    kind = kind_named(name)
    assert kind.name == name and kind.written_as in KINDS and kind.__doc__
    assert kind.attacks or kind.no_attack
