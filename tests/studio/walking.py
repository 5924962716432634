"""Steps that several browser tests take, and a count of the clicks they need."""

from __future__ import annotations

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe

from murmurate.core.ledger import Ledger

PATIENCE_MS = 240_000


class Person:
    """Somebody at the studio: a page, what it said, what it asked for, and how often they clicked."""

    def __init__(self, browser, studio, *, link=None, state=None, **options):
        self.studio = studio
        self.context = browser.new_context(storage_state=state, **{"viewport": {"width": 1280, "height": 900}, **options})
        self.context.set_default_timeout(PATIENCE_MS)
        self.page = self.context.new_page()
        self.said: list[str] = []
        self.asked: list[str] = []
        self.clicks = 0
        self.page.on("console", lambda message: self.said.append(f"{message.text} {message.location['url']}"))
        self.page.on("pageerror", lambda error: self.said.append(str(error)))
        self.context.on("request", lambda request: self.asked.append(request.url))
        self.page.goto(link or studio.origin + "/")
        self.page.wait_for_selector("main")

    def click(self, selector):
        self.clicks += 1
        self.page.click(selector)

    def drop(self, path: Path):
        self.page.goto(self.studio.origin + "/")
        self.page.set_input_files("#file", str(path))
        self.page.wait_for_url("**/draft/*/file")

    def read(self):
        """Wait until the file is looked into."""
        self.page.wait_for_selector("a#go, .fault")

    @property
    def draft(self) -> str:
        return self.page.url.split("/draft/")[1].split("/")[0]

    def to_amount(self, path, *, population, limit="4", unit="trip", mechanism="flock"):
        self.drop(path)
        self.read()
        self.click("a#go")
        if self.page.query_selector("#population:not([type=hidden])"):
            self.page.fill("#population", population)
        self.page.fill("#limit", limit)
        self.click(f"button[value={unit}]")
        self.page.wait_for_selector("[name=area_public]")
        self.click("[name=area_public]")
        self.click(f"button[value={mechanism}]")
        self.page.wait_for_selector(".dial")

    def sign(self, *, who="Ann", why="planning"):
        self.page.wait_for_selector("#sign-form")
        self.page.fill("#who", who)
        self.page.fill("#why", why)
        self.click("[name=understood]")
        self.click("#go")

    def close(self):
        self.context.close()


def violations(page) -> list:
    """Everything that axe finds on a page."""
    found = Axe().run(page).response["violations"]
    return [(item["id"], [node["html"][:120] for node in item["nodes"][:3]]) for item in found]


def debits(studio) -> list:
    with Ledger(studio.ledger) as ledger:
        return [entry for entry in ledger.history() if entry.what == "debit"]


def spent(studio, population) -> float:
    with Ledger(studio.ledger) as ledger:
        return max((float(account.spent) for account in ledger.spent(population)), default=0.0)
