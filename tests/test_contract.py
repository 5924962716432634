"""The contract every registered mechanism keeps; each clause is shown to catch a mechanism that breaks it."""

from __future__ import annotations

import ast
import json
from dataclasses import FrozenInstanceError, dataclass, fields, is_dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import polars as pl
import polars.selectors as cs
import pytest

import murmurate as mm
from exploding import Guarded, TouchedTooEarly
from murmurate import mechanisms, noise
from murmurate.core.guarantee import DP, GeoInd, NoGuarantee, Unit, from_json, to_json
from murmurate.core.parameters import public_parameters
from murmurate.core.trips import Trips
from murmurate.errors import MurmurateError, ParameterError
from murmurate.releases.manifest import read_manifest
from murmurate.spaces.road import RoadNetwork

DOCS = Path(__file__).resolve().parent.parent / "docs" / "mechanisms"
HEADINGS = (
    "Claim",
    "Unit",
    "Assumptions",
    "Algorithm",
    "Parameters and commands",
    "Cost",
    "Known weaknesses",
    "Where we differ from the paper",
)
SIGN = "Zebedee-"
"""Begins every uid and tid of the trips whose identifiers must not leave; nothing else says it."""

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


def signed(trips: Trips) -> Trips:
    """The same trips under identifiers that cannot be mistaken for anything else."""
    names = (pl.format(SIGN + word + "-of-the-roundabout-{}", pl.col(word)).alias(word) for word in ("uid", "tid"))
    return Trips(trips.table.with_columns(names), trips.space, trips.time_zone)


def leaking_files(folder: Path) -> list[str]:
    """The files of a release in which an identifier of `signed` trips stands, read through whatever packs them."""
    return [
        path.relative_to(folder).as_posix()
        for path in sorted(folder.rglob("*"))
        if path.is_file() and SIGN.encode() in unpacked(path) + path.name.encode()
    ]


def unpacked(path: Path) -> bytes:
    if path.suffix == ".parquet":
        frame = pl.read_parquet(path)
        packed = [frame[name].to_list() for name, kind in frame.schema.items() if kind == pl.Binary]  # geometries
        text = frame.select((~cs.binary()).cast(pl.String)).write_csv().encode()
        return text + b"".join(value for values in packed for value in values)
    if path.suffix == ".npz":
        with np.load(path, allow_pickle=False) as arrays:
            return b"".join(array.tobytes() for array in arrays.values())
    return path.read_bytes()


def faults_of_page(page: str) -> list[str]:
    """Headings that a mechanism's page lacks, or that have nothing below them."""
    sections = {part.partition("\n")[0].strip(): part.partition("\n")[2] for part in f"\n{page}".split("\n## ")[1:]}
    missing = [f"no heading {heading!r}" for heading in HEADINGS if heading not in sections]
    return missing + [f"nothing under {heading!r}" for heading, text in sections.items() if not _says_something(text)]


def _says_something(section: str) -> bool:
    return any(line.strip() and not line.lstrip().startswith("#") for line in section.splitlines())


def asserts_something(source: str) -> bool:
    """Whether every test function of a file asserts, or expects an error."""
    tests = [
        node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    return bool(tests) and all(_asserts(test, source) for test in tests)


def _asserts(test: ast.FunctionDef, source: str) -> bool:
    text = ast.get_source_segment(source, test) or ""
    return any(isinstance(node, ast.Assert) for node in ast.walk(test)) or "raises(" in text or "assert_" in text


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
    plain = json.loads(json.dumps(public_parameters(mechanism)))
    if isinstance(getattr(mechanism, "space", None), RoadNetwork):  # its words name a file; the network itself is given
        assert plain["space"] == mechanism.space.spec()
        plain["space"] = mechanism.space
    assert mechanisms.build(name, plain).guarantee() == guarantee


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
    folder = release(make(name), signed(city.trips), tmp_path / "out").folder
    assert leaking_files(folder) == []
    path = folder / "data.parquet"
    if path.exists():
        assert set(pl.read_parquet_schema(path)) <= {"uid", "tid", "geometry", *mechanisms.mechanism_class(name).emits}


@every_mechanism
def test_a_release_verifies(name, make, city, tmp_path):
    ledger = mm.Ledger.in_memory()
    made = release(make(name), city.trips, tmp_path / "out", ledger=ledger)
    assert "charged to population" in mm.verify(made.folder, ledger=ledger)["debit"]
    assert read_manifest(made.folder).guarantee == make(name).guarantee()


@every_mechanism
def test_has_its_page(name):
    assert faults_of_page((DOCS / f"{name}.md").read_text(encoding="utf-8")) == []


@every_mechanism
def test_has_its_tests(name):
    folder = Path(__file__).parent / "mechanisms"
    files = [*folder.glob(f"test_{name}*.py"), *(folder / name).glob("test_*.py")]
    assert files
    assert [path.name for path in files if not asserts_something(path.read_text(encoding="utf-8"))] == []


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
    assert pl.read_parquet(folder / "data.parquet").columns == ["uid", "tid", "lat", "lng", "geometry"]


@dataclass(frozen=True)
class UidTable:
    """A payload that names people, packed so that the bytes of the file do not show it."""

    kind: ClassVar[str] = "uids"
    uids: pl.Series

    def write(self, folder):
        pl.DataFrame({"who": self.uids}).write_parquet(folder / "who.parquet", compression="zstd")


class Naming(Leaky):
    """Publishes who was there."""

    def statement(self):
        return ()

    def apply(self, private, rng):
        return UidTable(private.table["uid"])


def test_identifiers_that_leave_are_caught(city, tmp_path):
    named = release(Naming(), signed(city.trips), tmp_path / "named").folder
    assert leaking_files(named) == ["who.parquet"]
    kept = release(Leaky(), signed(city.trips), tmp_path / "kept", keep_ids=True).folder
    assert leaking_files(kept) == ["data.parquet"]
    assert leaking_files(release(Leaky(), signed(city.trips), tmp_path / "renamed").folder) == []


def test_a_page_without_words_is_caught():
    whole = "# x\n" + "".join(f"\n## {heading}\nWords.\n" for heading in HEADINGS)
    assert faults_of_page(whole) == []
    assert faults_of_page(whole.replace("## Cost\nWords.\n", "## Cost\n\n### Part\n")) == ["nothing under 'Cost'"]
    assert faults_of_page(whole.replace("## Claim\n", "## Claims\n")) == ["no heading 'Claim'"]


@pytest.mark.parametrize("source", ["", "def test_x():\n    release()", "def test_x():\n    assert 1\ndef test_y():\n    pass"])
def test_a_test_file_without_an_assertion_is_caught(source):
    assert not asserts_something(source)
    assert asserts_something("def test_x():\n    assert release()")


def test_no_guarantee_needs_acceptance(city, tmp_path):
    with pytest.raises(MurmurateError, match="accept-no-guarantee"):
        mm.release(Leaky(), city.trips, ledger=mm.Ledger.in_memory(), out=tmp_path / "out", rng=noise.seeded(1))
