"""The whole way in a real browser: mouse, keyboard alone, without script, on a phone; faults; one debit whatever is clicked."""

from __future__ import annotations

import io
import zipfile

import polars as pl
import pytest

from murmurate.judging.checking import verify

from .conftest import start
from .walking import Person, debits, spent, violations

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def studio(tmp_path_factory):
    folder = tmp_path_factory.mktemp("way")
    (folder / "tmp").mkdir()
    running = start(folder)
    yield running
    running.end()


@pytest.fixture(scope="module")
def first(browser, studio):
    person = Person(browser, studio, link=studio.link)
    person.page.wait_for_selector(".drop")
    yield person
    person.close()


@pytest.fixture(scope="module")
def state(first):
    """The cookie of who was let in, for other windows of the same browser."""
    return first.context.storage_state()


def renamed(path, folder, prefix):
    """The same town with other people, so that it is another population."""
    target = folder / f"{prefix}.csv"
    pl.read_csv(path).with_columns(user_id=pl.lit(f"{prefix}-") + pl.col("user_id")).write_csv(target)
    return target


def check_pages(browser, state, studio, paths):
    """No violation on any screen, in light and dark, wide and narrow, and nothing wider than the window."""
    found = []
    for scheme, width in (("light", 1280), ("dark", 1280), ("light", 390)):
        person = Person(browser, studio, state=state, color_scheme=scheme, viewport={"width": width, "height": 900})
        for path in paths:
            person.page.goto(studio.origin + path)
            person.page.wait_for_load_state("load")
            person.page.evaluate("document.querySelectorAll('details').forEach(one => one.open = true)")
            if width > 390:
                found += [(path, scheme, *item) for item in violations(person.page)]
            wide, window = person.page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
            found += [(path, width, "wider than the window")] if wide > window else []
        found += [(line,) for line in person.said]
        person.close()
    assert found == []


def test_from_a_csv_to_a_public_package_by_mouse(browser, studio, first, state, town_csv, tmp_path):
    person = first
    person.to_amount(renamed(town_csv, tmp_path, "mouse"), population="mice")
    amount = person.page.url
    person.page.focus("#slide")
    person.page.keyboard.press("ArrowRight")
    assert person.page.text_content("#stop-out") == "2"
    person.click("#go")
    person.page.wait_for_selector("#sign-form")
    check_pages(browser, state, studio, ["/", "/ledger", "/releases", *(f"/draft/{person.draft}/{word}" for word in
                                         ("file", "whom", "what", "amount", "compare", "sign"))])  # fmt: skip
    person.sign()
    person.page.wait_for_selector(".boxes")
    with person.page.expect_download() as waiting:
        person.click("a#go")
    package = zipfile.ZipFile(io.BytesIO(waiting.value.path().read_bytes()))
    folder = tmp_path / "out"
    package.extractall(folder)
    assert verify(folder)["files"].endswith("match their hashes")
    assert person.clicks <= 9, person.clicks
    assert spent(studio, "mice") > 0 and len([entry for entry in debits(studio) if entry.population == "mice"]) == 1
    check_pages(browser, state, studio, [f"/draft/{person.draft}/release", "/ledger", "/"])
    assert {url.split("/")[2] for url in person.asked} == {f"127.0.0.1:{studio.port}"}, "no request leaves the machine"
    assert all("secret" not in url and "mice" not in url for url in person.asked), "no private value in an address"
    stored = person.page.evaluate("[localStorage.length, sessionStorage.length, document.cookie, document.title]")
    assert stored[:3] == [0, 0, ""] and "mouse" not in stored[3] and "mice" not in stored[3]
    assert person.said == []
    person.page.goto(amount)
    assert person.page.url.endswith("/release"), "what was charged is not changed any more"


def press_to(page, selector, key="Tab", most=120):
    """Go by keyboard until an element has the focus."""
    for _ in range(most):
        if page.evaluate("s => document.activeElement && document.activeElement.matches(s)", selector):
            return
        page.keyboard.press(key)
    raise AssertionError(f"{selector} is not reached by keyboard")


def test_by_keyboard_alone(browser, studio, state, town_csv, tmp_path):
    person = Person(browser, studio, state=state)
    page = person.page

    def go(selector, key="Enter"):
        """Act on an element by keyboard: what a click is to the mouse."""
        press_to(page, selector)
        person.clicks += 1
        page.keyboard.press(key)

    page.set_input_files("#file", str(renamed(town_csv, tmp_path, "keys")))
    page.wait_for_selector("a#go")
    go("a#go")
    page.wait_for_selector("#population")
    press_to(page, "#population")
    page.keyboard.type("keys")
    press_to(page, "#limit")
    page.keyboard.type("4")
    go("button[value=trip]")
    page.wait_for_selector("[name=area_public]")
    go("[name=area_public]", "Space")
    go("button[value=flock]")
    page.wait_for_selector("#slide")
    press_to(page, "#slide")
    page.keyboard.press("ArrowRight")
    assert page.text_content("#stop-out") == "2"
    press_to(page, "svg.map.out")
    page.keyboard.press("ArrowUp")
    assert "would leave" in page.text_content("#cell-words")
    go("button#go")
    page.wait_for_selector("#who")
    press_to(page, "#who")
    page.keyboard.type("Kay")
    press_to(page, "#why")
    page.keyboard.type("keyboard")
    go("[name=understood]", "Space")
    go("button#go")
    page.wait_for_selector(".boxes")
    with page.expect_download():
        go("a#go")
    assert person.clicks <= 9, person.clicks
    (debit,) = [entry for entry in debits(studio) if entry.population == "keys"]
    assert "Kay" in debit.who
    person.close()


def test_without_script_and_on_a_phone(browser, studio, state, town_csv, tmp_path):
    person = Person(browser, studio, state=state, java_script_enabled=False, viewport={"width": 390, "height": 844})
    page = person.page
    page.set_input_files("#file", str(renamed(town_csv, tmp_path, "plain")))
    page.click("text=Look into it")
    page.wait_for_selector("a#go")  # the page comes anew by itself
    page.click("a#go")
    page.fill("#population", "plain")
    page.fill("#limit", "4")
    page.click("button[value=trip]")
    page.check("[name=area_public]")
    page.click("button[value=flock]")
    page.check("#stops input[value='2']")
    page.click("text=Show this setting")
    assert page.text_content("#stop-out") == "2"
    page.click("#go")
    page.fill("#who", "Phil")
    page.fill("#why", "no script")
    page.check("[name=understood]")
    page.click("#go")
    page.wait_for_selector(".boxes")
    assert len([entry for entry in debits(studio) if entry.population == "plain"]) == 1
    person.close()


def test_a_wrong_file_gets_its_faults_beside_it_and_nothing_is_lost(browser, studio, state, town_csv, tmp_path):
    person = Person(browser, studio, state=state)
    wrong = tmp_path / "wrong.csv"
    wrong.write_text("uid,tid,datetime,lat,lng\n1,1,2024-01-01T00:00,95,24\n1,1,yesterday,60,24\n")
    person.drop(wrong)
    person.read()
    fault = person.page.text_content(".fault")
    assert "row" in fault and "wrong.csv" in fault and "studio" not in fault and "nothing was spent" in fault
    from murmurate.ingest.inspect import inspect

    for line in inspect(str(wrong)).faults:
        assert line.removeprefix(str(tmp_path) + "/") in fault, "the same messages as the command line"
    before = len(debits(studio))
    person.drop(renamed(town_csv, tmp_path, "refused"))
    person.read()
    person.page.click("a#go")
    person.page.fill("#population", "refused")
    person.page.fill("#limit", "lots")
    person.page.click("button[value=trip]")
    assert "--limit takes a number" in person.page.text_content("#fault")
    assert person.page.input_value("#population") == "refused" and person.page.input_value("#limit") == "lots"
    person.page.fill("#limit", "1")
    person.page.click("button[value=trip]")
    person.page.click("button[value=flock]")
    assert "declared public" in person.page.text_content("#fault")
    person.page.check("[name=area_public]")
    person.page.click("button[value=flock]")
    person.page.wait_for_selector("#slide")
    person.page.focus("#slide")
    person.page.keyboard.press("End")
    assert "Refused: it asks for 8" in person.page.text_content("#purse-words")
    assert person.page.get_attribute("#go", "aria-disabled") == "true"
    person.page.goto(f"{studio.origin}/draft/{person.draft}/sign")
    person.sign(who="")
    assert "say who signs" in person.page.text_content("#fault") and person.page.input_value("#why") == "planning"
    assert len(debits(studio)) == before, "nothing was spent"
    person.close()


def test_one_debit_on_double_click_two_tabs_back_and_reload(browser, studio, state, town_csv, tmp_path):
    person = Person(browser, studio, state=state)
    person.to_amount(renamed(town_csv, tmp_path, "twice"), population="twice")
    person.page.click("#go")
    person.page.wait_for_selector("#sign-form")
    tabs = [person.page, person.context.new_page()]
    tabs[1].goto(person.page.url)
    for tab in tabs:
        tab.fill("#who", "Ann")
        tab.fill("#why", "twice")
        tab.check("[name=understood]")
    tabs[0].evaluate("() => { const go = document.getElementById('go'); go.click(); go.click(); }")
    tabs[1].click("#go")
    tabs[0].wait_for_selector(".boxes")
    tabs[1].wait_for_selector(".boxes")
    tabs[0].reload()
    tabs[0].go_back()
    tabs[0].wait_for_selector("main")
    token = tabs[1].get_attribute("input[name=token]", "value")
    draft = person.draft
    answer = person.context.request.post(
        f"{studio.origin}/draft/{draft}/sign",
        form={"token": token, "who": "Ann", "why": "again", "understood": "1"},
        headers={"Origin": studio.origin},
    )
    assert answer.status == 200 and answer.url.endswith("/release")
    assert len([entry for entry in debits(studio) if entry.population == "twice"]) == 1
    person.close()


def test_a_foreign_release_is_judged(browser, studio, state, town_csv, tmp_path):
    person = Person(browser, studio, state=state)
    person.drop(renamed(town_csv, tmp_path, "judged"))
    person.read()
    draft = person.draft
    person.page.goto(f"{studio.origin}/releases")
    person.page.set_input_files(f"#f-{draft}", str(town_csv))
    person.page.click(f"form[action*='{draft}'] button")
    person.page.wait_for_selector("table, .fault")
    text = person.page.text_content("main")
    assert "nothing is promised" in text and "What attacks found" in text
    assert violations(person.page) == []
    person.close()


def test_the_ledger_page_sets_limits_checks_and_backs_up(browser, studio, state, town_csv, tmp_path):
    person = Person(browser, studio, state=state)
    person.to_amount(renamed(town_csv, tmp_path, "books"), population="books")  # its own debit: it may run alone
    person.page.click("#go")
    person.sign()
    person.page.wait_for_selector(".boxes, .fault")  # noise may leave nothing to release; the debit stands either way
    assert len([entry for entry in debits(studio) if entry.population == "books"]) == 1, person.page.text_content("main")
    person.page.goto(f"{studio.origin}/ledger")
    assert "debit" in person.page.text_content(".history")
    person.page.select_option("#lp", "books")
    person.page.select_option("#lu", "user")
    person.page.fill("#le", "9")
    person.page.click("text=Set the limit")
    assert "say why" in person.page.text_content("#fault") and person.page.input_value("#le") == "9"
    person.page.fill("#lw", "agreed with the board")
    person.page.click("text=Set the limit")
    person.page.wait_for_selector("main:not(:has(#fault))")
    assert "9 per user" in person.page.text_content("main")
    person.page.click("text=Check every line")
    assert "debits hold" in person.page.text_content(".good")
    with person.page.expect_download() as waiting:
        person.page.click("text=Download a backup")
    from murmurate.core.ledger import Ledger

    saved = tmp_path / "backup.sqlite"
    waiting.value.save_as(saved)
    with Ledger(saved) as copy:
        assert "books" in copy.populations()
    person.close()


def test_a_page_on_another_port_gets_nothing(browser, studio, state, tmp_path):
    """The cookie of 127.0.0.1 goes to every port, so a page there could try; only the studio's own pages are answered."""
    import functools
    import threading
    from http.server import HTTPServer, SimpleHTTPRequestHandler

    (tmp_path / "evil.html").write_text(
        f"""<form id=f method=post action="{studio.origin}/demo"><input name=token value=x></form>"""
    )

    class Quiet(SimpleHTTPRequestHandler):
        def log_message(self, *_):
            pass

    server = HTTPServer(("127.0.0.1", 0), functools.partial(Quiet, directory=str(tmp_path)))
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    person = Person(browser, studio, state=state)
    with_drafts = person.page.content().count("Delete")
    page = person.context.new_page()
    page.goto(f"http://127.0.0.1:{server.server_port}/evil.html")
    reading = "url => fetch(url + '/ledger', {credentials: 'include'}).then(a => a.status, e => 'blocked')"
    sending = """url => fetch(url + '/demo', {method: 'POST', mode: 'no-cors', credentials: 'include',
        body: new URLSearchParams('token=x')}).then(a => a.type, e => 'blocked')"""
    read, sent = page.evaluate(reading, studio.origin), page.evaluate(sending, studio.origin)
    assert read == "blocked" and sent in ("blocked", "opaque")
    with page.expect_navigation() as moving:
        page.evaluate("document.getElementById('f').submit()")
    assert moving.value.status == 403
    page.goto(f"http://127.0.0.1:{server.server_port}/evil.html")
    page.evaluate("url => { const f = document.createElement('iframe'); f.src = url; document.body.append(f); }", studio.origin)
    page.wait_for_timeout(300)
    assert all("Publish mobility data" not in frame.content() for frame in page.frames)
    person.page.reload()
    assert person.page.content().count("Delete") == with_drafts, "no draft was made"
    page.close()
    person.close()
    server.shutdown()
    server.server_close()
    thread.join()
