"""Studio, command line and Python say the same: one recipe, one manifest, and one sentence where it is refused."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import polars as pl
import pytest
from typer.testing import CliRunner

import murmurate as mm
from murmurate.cli import app
from murmurate.core.ledger import Ledger
from murmurate.custody.looking import WEAK_WORDS
from murmurate.custody.recipes import read_recipe
from murmurate.errors import MurmurateError
from murmurate.mechanisms import NAMES
from murmurate.spaces.road.write import write_roads
from murmurate.studio import tasks
from murmurate.studio.guard import Entrance
from murmurate.studio.products import first_parameters, products, promise_of
from murmurate.studio.room import Room
from murmurate.studio.same import same_elsewhere
from murmurate.studio.screens.sign import release_order

DIFFERS = ("release_id", "created", "at", "files", "made")
"""What may differ between two manifests of one recipe: time, ids and hashes."""


AS_SIGNED = ("--yes", "--confirm", WEAK_WORDS)
"""On the command line, what a signature confirms in the studio."""


@pytest.fixture(scope="module")
def city(tmp_path_factory):
    folder = tmp_path_factory.mktemp("same")
    found = mm.demo.city(people=60, days=2, interval_s=60, seed=3)
    found.trips.table.select("uid", "tid", "datetime", "lat", "lng").write_csv(folder / "city.csv")
    write_roads(found.network, folder / "roads.geojson")
    return folder, found.box


def plain(manifest: dict) -> dict:
    return {name: value for name, value in manifest.items() if name not in DIFFERS}


@pytest.fixture
def room(tmp_path):
    made = Room(f"sqlite:///{tmp_path / 'ledger.db'}", Entrance(1))
    yield made
    made.ledger.close()


def draft_of(room, city, name):
    folder, (south, west, north, east) = city
    unit = {"plausible": "user"}.get(name, "trip")
    area = {"south": south, "west": west, "north": north, "east": east, "cell_m": 1000.0}
    draft = room.drafts.new(name="city.csv", source=str(folder / "city.csv"), unit=unit, area=area, area_public=True,
                            roads=str(folder / "roads.geojson"), population="town", limit="1000:1e-3")  # fmt: skip
    parameters = first_parameters(draft, name)
    parameters |= {"n_out": 40} if "n_out" in parameters else {}
    parameters |= {"epsilon": 4.0} if "epsilon" in parameters else {"k": 2}
    return room.drafts.change(draft, mechanism=name, parameters=parameters, accept_no_guarantee=True)


@pytest.mark.parametrize("name", list(NAMES))
def test_one_recipe_one_manifest(room, city, tmp_path, name):
    draft = draft_of(room, city, name)
    if promise_of(name, draft.parameters).kind not in ("dp", "geoind"):
        draft = room.drafts.change(draft, limit=None)
    elif promise_of(name, draft.parameters).kind == "geoind":
        draft = room.drafts.change(draft, limit="1000")
    tasks.release(release_order(room, draft, unfit=True), lambda **_: None)
    by_studio = json.loads((draft.release_folder / "manifest.json").read_text())
    assert by_studio["release_id"] == draft.id and room.is_charged(draft)

    recipe = tmp_path / "recipe.toml"
    recipe.write_text(same_elsewhere(room, draft).recipe.replace(str(draft.release_folder), str(tmp_path / "by_cli")))
    told = CliRunner().invoke(
        app, ["release", str(recipe), "--ledger", str(tmp_path / "cli.db"), *AS_SIGNED], catch_exceptions=False
    )
    assert told.exit_code == 0, told.output
    by_cli = json.loads((tmp_path / "by_cli" / "manifest.json").read_text())

    script = same_elsewhere(room, draft).python.replace("'city.csv'", repr(draft.source))
    script = script.replace(repr(room.ledger.url), repr(str(tmp_path / "python.db"))).replace(
        'out="release"', f"out={str(tmp_path / 'by_python')!r}"
    )
    exec(compile(script, "same", "exec"), {})
    by_python = json.loads((tmp_path / "by_python" / "manifest.json").read_text())
    assert plain(by_studio) == plain(by_cli) == plain(by_python)


def test_every_mechanism_has_a_card():
    assert {item.mechanism for item in products()} == set(NAMES)


@pytest.mark.parametrize("change", [{"epsilon": -1}, {"epsilon": "much"}, {"n_out": 0}, {"unit": "family"}])
def test_one_refusal_one_sentence(room, city, tmp_path, change):
    draft = room.drafts.change(draft_of(room, city, "flock"), limit="4")
    draft = room.drafts.change(draft, parameters={**draft.parameters, **change})
    with pytest.raises(MurmurateError) as in_studio:
        promise_of("flock", draft.parameters)
    told = CliRunner().invoke(
        app, ["release", str(draft.folder / "recipe.toml"), "--ledger", str(tmp_path / "cli.db"), *AS_SIGNED]
    )
    with pytest.raises(MurmurateError) as in_python:
        mm.mechanisms.build("flock", dict(draft.parameters))
    assert str(told.exception) == str(in_studio.value) == str(in_python.value)


def test_over_the_limit_in_the_same_words(room, city, tmp_path):
    draft = room.drafts.change(draft_of(room, city, "flock"), limit="1")
    with pytest.raises(MurmurateError) as in_studio:
        tasks.release(release_order(room, draft, unfit=True), lambda **_: None)
    told = CliRunner().invoke(
        app, ["release", str(draft.folder / "recipe.toml"), "--ledger", str(tmp_path / "cli.db"), *AS_SIGNED]
    )
    assert str(told.exception) == str(in_studio.value) and "remain of the limit" in str(told.exception)
    assert not room.is_charged(draft) and not draft.release_folder.exists()


def test_a_repeated_order_is_charged_once_and_keeps_what_the_first_kept(room, city):
    draft = room.drafts.change(draft_of(room, city, "geoind"), limit="1000")
    order = release_order(room, draft, unfit=True)
    tasks.release(order, lambda **_: None)
    kept = sorted(path.name for path in (room.ledger.internal_folder / draft.id).iterdir())
    again = {**order, "recipe": {**order["recipe"], "out": str(draft.folder / "second")}}
    with pytest.raises(MurmurateError, match="charged already"):
        tasks.release(again, lambda **_: None)
    assert sorted(path.name for path in (room.ledger.internal_folder / draft.id).iterdir()) == kept
    assert len([entry for entry in room.ledger.history() if entry.what == "debit"]) == 1


def test_a_release_that_stopped_after_its_charge_goes_on_under_it(room, city, monkeypatch):
    draft = draft_of(room, city, "flock")

    def full(*_args, **_options):
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch, pytest.raises(MurmurateError):
        patch.setattr("murmurate.asking.samples.write_drawn", full)
        tasks.release(release_order(room, draft, unfit=True), lambda **_: None)
    assert room.is_charged(draft) and not draft.release_folder.exists()
    tasks.release(release_order(room, draft, unfit=True, resume=True), lambda **_: None)
    assert json.loads((draft.release_folder / "manifest.json").read_text())["release_id"] == draft.id
    assert len([entry for entry in room.ledger.history() if entry.what == "debit"]) == 1


def test_a_judged_release_has_a_sign_off_pack(room, city):
    draft = room.drafts.change(draft_of(room, city, "flock"), signed={"who": "Ann", "why": "planning", "second": "Bo"})
    tasks.release(release_order(room, draft, unfit=True), lambda **_: None)
    space = draft.parameters["space"]
    order = room.order(draft, task="judgement", release=str(draft.release_folder), space=space)
    tasks.judge(order, lambda **_: None)
    pack = room.ledger.internal_folder / draft.id / "dossier"
    internal = json.loads((pack / "internal" / "dossier.json").read_text())["internal"]
    assert [one["who"] for one in internal["approvals"]] == ["Ann", "Bo"] and internal["attacks"]
    assert "Ann" not in (pack / "public" / "dossier.json").read_text()


def test_a_draft_is_its_recipe(room, city):
    draft = draft_of(room, city, "flock")
    path = draft.folder / "recipe.toml"
    path.write_text(path.read_text().replace("epsilon = 4.0", "epsilon = 0.5"))
    assert room.drafts.get(draft.id).parameters["epsilon"] == 0.5, "edited by hand, read by the page"
    assert read_recipe(path).mechanism == "flock"
    copy = room.drafts.copy(draft)
    assert copy.id != draft.id and replace(copy, id="", folder=Path(), made="").parameters == draft.parameters


def test_it_is_what_the_command_line_prints(room, city):
    draft = draft_of(room, city, "flock")
    command = same_elsewhere(room, draft).command.replace("\\\n", " ").split()
    assert command[:3] == ["murmurate", "release", "flock"] and "epsilon=4.0" in command
    with Ledger(room.ledger_url) as other:
        assert other.url == room.ledger.url
    assert pl.read_csv(draft.source).height > 0
