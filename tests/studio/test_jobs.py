"""Jobs in a real browser: cancelled before and after the charge, killed, reloaded; and rehearsals on the own file."""

from __future__ import annotations

import os
import signal

import pytest

from murmurate.core.ledger import Ledger
from murmurate.studio.drafts import Drafts

from .conftest import start
from .walking import Person, debits, violations

pytestmark = pytest.mark.browser

AREA = {"south": 60.2, "west": 24.9, "north": 60.25, "east": 25.0, "cell_m": 500.0}


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("jobs")
    (folder / "tmp").mkdir()
    running = start(folder)
    yield running
    running.end()


@pytest.fixture(scope="module")
def person(browser, studio):
    someone = Person(browser, studio, link=studio.link)
    someone.page.wait_for_selector(".drop")
    yield someone
    someone.close()


def ordered(studio, person, town_csv, **parameters):
    """A draft as the pages leave it before signing, opened at the signature."""
    with Ledger(studio.ledger) as ledger:
        given = {"epsilon": 2.0, "unit": "trip", "space": "grid:60.2,24.9,60.25,25:500", **parameters}
        draft = Drafts(ledger).new(
            name="town.csv", source=str(town_csv), unit="trip", area=AREA, area_public=True, population="jobs", limit="100",
            mechanism="flock", parameters=given,
        )  # fmt: skip
    person.page.goto(f"{studio.origin}/draft/{draft.id}/sign")
    return draft


def of(studio, draft):
    return [entry for entry in debits(studio) if entry.details["release_id"] == draft.id]


def test_cancelled_before_the_charge_nothing_is_spent(studio, person, town_csv):
    draft = ordered(studio, person, town_csv, epsilon=20.0, n_out=100)  # so much that noise leaves something to release
    person.sign()
    person.page.click("form[action$='/cancel'] button")
    person.page.wait_for_selector("main:has-text('Nothing was spent.')")
    assert of(studio, draft) == [] and not draft.release_folder.exists()
    person.page.click("text=Back to check and sign")
    person.sign()
    person.page.wait_for_selector(".boxes, .fault")
    assert person.page.query_selector(".boxes"), person.page.text_content("main")
    assert len(of(studio, draft)) == 1, "the same draft can be released after all"


def test_cancelled_after_the_charge_the_debit_stands(studio, person, town_csv):
    draft = ordered(studio, person, town_csv, n_out=20_000_000)
    person.sign()
    person.page.wait_for_selector("#charge:has-text('Charged.')")
    person.page.reload()
    person.page.wait_for_selector("#charge:has-text('Charged.')")
    person.page.click("form[action$='/cancel'] button")
    person.page.wait_for_selector("main:has-text('The charge stands.')")
    assert f"the debit of release {draft.id} stands" in person.page.text_content(".fault")
    assert len(of(studio, draft)) == 1 and not draft.release_folder.exists()
    assert not list(draft.folder.glob(".release-*")), "nothing half-made is left"
    person.page.goto(f"{studio.origin}/draft/{draft.id}/sign")
    assert person.page.url.endswith("/run"), "what was charged cannot be signed again"


def test_a_killed_child_is_told_apart_by_the_ledger(studio, person, town_csv):
    draft = ordered(studio, person, town_csv, n_out=20_000_000)
    person.sign()
    person.page.wait_for_selector("#charge:has-text('Charged.')")
    (child,) = studio.children()
    os.kill(child, signal.SIGKILL)
    person.page.wait_for_selector("main:has-text('The charge stands.')")
    assert len(of(studio, draft)) == 1
    assert not (draft.folder / "work").exists() and not list(draft.folder.glob(".release-*")), "swept before it is told"
    assert violations(person.page) == []
    person.page.click("text=Go on under this charge")
    person.page.wait_for_selector("#charge:has-text('Charged.')")
    assert violations(person.page) == []
    person.page.click("form[action$='/cancel'] button")
    person.page.wait_for_selector("main:has-text('The charge stands.')")
    assert len(of(studio, draft)) == 1, "going on costs nothing"
    person.page.click("text=New draft with the same settings")
    person.page.wait_for_selector(".dial")
    assert person.draft != draft.id


def test_data_that_look_unfit_are_asked_about_before_the_charge(studio, person, town_csv):
    draft = ordered(studio, person, town_csv, space="grid:60.2,24.9,60.204,24.904:100", n_out=10)
    person.sign()
    person.page.wait_for_selector("main:has-text('Nothing was spent.')")
    asked = person.page.text_content(".fault")
    assert "touch the space" in asked and "Fix this, or sign again" in asked and of(studio, draft) == []
    person.page.click("text=Back to check and sign")
    assert person.page.input_value("#who") == "Ann", "nothing typed is lost"
    person.page.check("[name=unfit]")
    person.sign()
    person.page.wait_for_selector(".boxes, .fault")  # noise may leave nothing to release; the debit stands either way
    assert len(of(studio, draft)) == 1, person.page.text_content("main")


def test_rehearsals_run_on_the_own_file_and_are_noted(studio, person, town_csv):
    draft = ordered(studio, person, town_csv, n_out=100)
    person.page.goto(f"{studio.origin}/draft/{draft.id}/amount")
    person.page.click("text=Rehearse on my file")
    person.page.wait_for_selector("h3:has-text('History of rehearsals')")
    assert person.page.is_checked("[name=source][value=own]")
    with Ledger(studio.ledger) as ledger:
        noted = [entry for entry in ledger.history() if entry.what == "rehearsal" and entry.details["mechanism"] == "flock"]
    assert len(noted) >= 3 * 5, "five runs of each stop; the lowest may be refused at the first"
    assert of(studio, draft) == []
    person.page.goto(f"{studio.origin}/draft/{draft.id}/sign")
    assert "Rehearsals on this file" in person.page.text_content("main")
