"""The contract every registered mechanism keeps; each clause is shown to catch a mechanism that breaks it."""

from __future__ import annotations

import json
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import polars as pl
import pytest

import murmurate as mm
from exploding import Guarded, TouchedTooEarly
from murmurate import mechanisms, noise
from murmurate.core.guarantee import DP, GeoInd, NoGuarantee, Unit, from_json, to_json
from murmurate.core.parameters import public_parameters
from murmurate.core.trips import Trips
from murmurate.errors import MurmurateError, ParameterError
from murmurate.releases.manifest import read_manifest

DOCS = Path(__file__).resolve().parent.parent / "docs" / "mechanisms"
HEADINGS = ("Claim", "Unit", "Assumptions", "Algorithm", "Cost", "Known weaknesses", "Where we differ from the paper")

every_mechanism = pytest.mark.parametrize("name", list(mechanisms.NAMES))


@pytest.fixture(scope="session")
def city() -> Any:
    return mm.demo.city(people=30, days=4, seed=3, interval_s=60)


@pytest.fixture(scope="session")
def other_city_trips(city: Any) -> Trips:
    """Other people in the same public city."""
    return mm.demo.city(people=24, days=5, seed=4, interval_s=60).trips


@pytest.fixture
def make(city: Any) -> Any:
    return lambda name: mechanisms.example(name, city.spaces())


def release(mechanism: Any, private: Any, out: Path, **options: Any) -> Any:
    options.setdefault("ledger", mm.Ledger.in_memory())
    return mm.release(mechanism, private, out=out, accept_no_guarantee=True, rng=noise.seeded(5), **options)


@every_mechanism
def test_is_a_frozen_keyword_only_dataclass(name, make):
    kind = mechanisms.mechanism_class(name)
    assert is_dataclass(kind) and kind.name == name
    assert all(field.kw_only for field in fields(kind))
    with pytest.raises(FrozenInstanceError):
        setattr(make(name), fields(kind)[0].name, 1)


@every_mechanism
@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf"), "much", None])
def test_absurd_numbers_are_refused_at_construction(name, make, value):
    good = make(name)
    for field in ("epsilon", "radius_m", "max_points", "k", "n_out"):
        if hasattr(good, field) and not (value is None and field in ("max_points", "n_out")):
            with pytest.raises(ParameterError, match=field):
                replace(good, **{field: value})


@every_mechanism
def test_guarantee_follows_from_parameters_alone(name, make):
    mechanism = make(name)
    guarantee = mechanism.guarantee()
    assert guarantee == mechanism.guarantee()
    assert from_json(json.loads(json.dumps(to_json(guarantee)))) == guarantee
    rebuilt = mechanisms.build(name, json.loads(json.dumps(public_parameters(mechanism))))
    assert rebuilt.guarantee() == guarantee


@every_mechanism
def test_speaks_before_it_spends(name, make):
    mechanism = make(name)
    assert mechanism.expected_error().strip()
    assert all(sentence.strip() for sentence in mechanism.statement())


@every_mechanism
def test_charged_before_touched(name, make, city, tmp_path):
    ledger = mm.Ledger.in_memory()
    private = Guarded(city.trips, lambda: any(entry.what == "debit" for entry in ledger.history()))
    release(make(name), private, tmp_path / "out", ledger=ledger)


def test_the_guard_catches_a_door_that_reads_first(city):
    with pytest.raises(TouchedTooEarly):
        list(Guarded(city.trips, lambda: False))


@every_mechanism
def test_an_empty_budget_reads_nothing(name, make, city, tmp_path):
    mechanism = make(name)
    guarantee = mechanism.guarantee()
    if not isinstance(guarantee, (DP, GeoInd)):
        return  # listed, never summed: no limit can refuse it
    ledger = mm.Ledger.in_memory()
    population = ledger.population_of(city.trips.identity, create=True)
    tiny = {"epsilon": 1e-9} if isinstance(guarantee, DP) else {"epsilon_per_m": 1e-15}
    ledger.limit(population, kind=guarantee.kind, unit=guarantee.unit.name, **tiny)
    with pytest.raises(mm.errors.InsufficientBudget) as refused:
        release(mechanism, Guarded(city.trips, lambda: False), tmp_path / "out", ledger=ledger)
    assert float(refused.value.requested) > float(refused.value.remaining)
    assert not (tmp_path / "out").exists()


@every_mechanism
def test_input_is_left_as_it_was(name, make, city, tmp_path):
    before = city.trips.table.clone()
    release(make(name), city.trips, tmp_path / "out")
    assert city.trips.table.equals(before)


@every_mechanism
def test_manifest_and_statement_say_nothing_of_the_data(name, make, city, other_city_trips, tmp_path):
    manifests, statements = [], []
    for k, private in enumerate((city.trips, other_city_trips)):
        folder = release(make(name), private, tmp_path / f"out{k}").folder
        values = json.loads((folder / "manifest.json").read_text())
        for varying in ("created", "release_id"):
            values.pop(varying)
        values["files"] = sorted(values["files"])
        manifests.append(values)
        statements.append((folder / "statement.md").read_bytes())
    assert manifests[0] == manifests[1]
    assert statements[0] == statements[1]


@every_mechanism
def test_same_rng_same_output(name, make, city, tmp_path):
    contents = []
    for k in range(2):
        folder = release(make(name), city.trips, tmp_path / f"out{k}").folder
        contents.append({path.name: path.read_bytes() for path in sorted(folder.iterdir()) if path.suffix == ".parquet"})
    assert contents[0] == contents[1]


@every_mechanism
def test_originals_do_not_leave(name, make, city, tmp_path):
    folder = release(make(name), city.trips, tmp_path / "out").folder
    content = b"".join(path.read_bytes() for path in folder.rglob("*") if path.is_file())
    for uid in city.trips.user_ids.cast(pl.String).to_list()[:5]:
        assert str(uid).encode() not in content or len(str(uid)) < 4
    path = folder / "data.parquet"
    if path.exists():
        assert set(pl.read_parquet_schema(path)) <= {"uid", "tid", *mechanisms.mechanism_class(name).emits}


@every_mechanism
def test_a_release_verifies(name, make, city, tmp_path):
    ledger = mm.Ledger.in_memory()
    made = release(make(name), city.trips, tmp_path / "out", ledger=ledger)
    assert "charged to population" in mm.verify(made.folder, ledger=ledger)["debit"]
    assert read_manifest(made.folder).guarantee == make(name).guarantee()


@every_mechanism
def test_has_its_page_and_its_tests(name):
    page = (DOCS / f"{name}.md").read_text(encoding="utf-8")
    missing = [heading for heading in HEADINGS if f"## {heading}" not in page]
    assert missing == []
    tests = list((Path(__file__).parent / "mechanisms").glob(f"test_{name}*.py"))
    assert tests or (Path(__file__).parent / "mechanisms" / name).is_dir()


@every_mechanism
def test_a_real_ledger_refuses_seeds(name, make, city, tmp_path):
    with mm.Ledger(tmp_path / "ledger.sqlite") as ledger, pytest.raises(mm.errors.GuaranteeRefused):
        release(make(name), city.trips, tmp_path / "out", ledger=ledger)
    assert not (tmp_path / "out").exists()


# -- the clauses catch what they are for -------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class Leaky:
    """Returns its input untouched, carried columns and all, and its statement counts the private points."""

    name: ClassVar[str] = "leaky"
    needs: ClassVar[frozenset[str]] = frozenset({"coordinates"})
    emits: ClassVar[tuple[str, ...]] = ("lat", "lng")
    paired: ClassVar[bool] = True
    local: ClassVar[bool] = False
    example: ClassVar[dict[str, Any]] = {}
    seen: ClassVar[list[int]] = [0]

    def guarantee(self):
        return NoGuarantee(why="it is a test", unit=Unit(name="trip"))

    def statement(self):
        return (f"{self.seen[0]} points were read",)

    def expected_error(self):
        return "none"

    def apply(self, private, rng):
        self.seen[0] = private.n_points
        return private


def test_a_talkative_statement_is_caught(city, other_city_trips, tmp_path):
    texts = [
        (release(Leaky(), private, tmp_path / f"out{k}").folder / "statement.md").read_text()
        for k, private in enumerate((city.trips, other_city_trips))
    ]
    assert texts[0] != texts[1]


def test_carried_columns_are_dropped_whatever_a_mechanism_returns(city, tmp_path):
    private = city.trips.with_columns({"secret": ["x"] * city.trips.n_points})
    folder = release(Leaky(), private, tmp_path / "out").folder
    assert pl.read_parquet(folder / "data.parquet").columns == ["uid", "tid", "lat", "lng"]


def test_no_guarantee_needs_acceptance(city, tmp_path):
    with pytest.raises(MurmurateError, match="accept-no-guarantee"):
        mm.release(Leaky(), city.trips, ledger=mm.Ledger.in_memory(), out=tmp_path / "out", rng=noise.seeded(1))
