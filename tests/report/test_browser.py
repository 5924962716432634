"""Pages in a real browser: silent, alone, drawn, and inside their window on desktops and phones, by day and by night."""

from __future__ import annotations

import io
from itertools import pairwise

import pytest

from murmurate.judging.study import study
from murmurate.report.compare import Entry, write_comparison
from murmurate.report.page import write_attack_report, write_report
from murmurate.report.study import write_study_report

pytestmark = pytest.mark.browser

WINDOWS = {
    "desktop": (1280, 900, "light"),
    "phone": (390, 844, "light"),
    "dark": (1280, 900, "dark"),
    "night": (390, 844, "dark"),
}


@pytest.fixture(scope="module")
def pages(judged, tmp_path_factory):
    folder = tmp_path_factory.mktemp("browser")
    verdict = judged.review.verdict(judged.evaluation, attacked=judged.attacked)
    entry = Entry(judged.review.release, judged.evaluation, judged.attacked, verdict)
    grid = judged.town.grid(400)
    skating = {
        "name": "skating",
        "metrics": ["hausdorff"],
        "attacks": ["reidentify"],
        "datasets": {"tony900": {"skaters": 12}},
        "seed": 1,
        "repeats": 2,
        "mechanisms": [{"name": "geoind", "label": "simple", "sweep": {"epsilon": [0.5, 1], "radius_m": [50, 200]}}],
        "regression": {"baseline": "simple"},
    }
    return {
        "study": write_study_report(study(skating, out=folder / "study"), folder / "study.html"),
        "internal": write_report(folder / "internal.html", judged.review, judged.evaluation, verdict=verdict, base=judged.base),
        "no_roads": write_report(folder / "no_roads.html", judged.review, judged.evaluation),
        "public": write_report(folder / "public.html", judged.review, judged.evaluation, base=judged.base, public=True),
        "attacks": write_attack_report(folder / "attacks.html", judged.review, judged.attacked),
        "comparison": write_comparison(folder / "c.html", [entry], judged.town.trips, grid=grid, base=judged.base, demo=True),
    }


def opened(browser, path, window):
    """The page in a window, what it said, and what it asked for beside itself."""
    width, height, scheme = WINDOWS[window]
    context = browser.new_context(viewport={"width": width, "height": height}, color_scheme=scheme)
    page = context.new_page()
    said, asked = [], []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))

    def gate(route):
        if route.request.url == path.as_uri():
            route.continue_()
        elif not route.request.url.startswith("data:"):
            asked.append(route.request.url)
            route.abort()

    page.route("**/*", gate)
    page.goto(path.as_uri())
    return page, said, asked


@pytest.mark.parametrize("window", list(WINDOWS))
@pytest.mark.parametrize("name", ["internal", "public", "attacks", "comparison"])
def test_pages_are_silent_alone_and_inside_their_window(browser, pages, name, window):
    page, said, asked = opened(browser, pages[name], window)
    inside, width = page.evaluate("[document.documentElement.scrollWidth, window.innerWidth]")
    broken = page.evaluate(
        "[...document.querySelectorAll('figure, .cards li, .promise, h1, h2, h3, p, li')]"
        ".filter(e => e.getBoundingClientRect().right > window.innerWidth + 1).map(e => e.textContent.slice(0, 60))"
    )
    background = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.context.close()
    assert (said, asked, broken) == ([], [], []) and inside <= width
    dark = sum(int(part) for part in background[4:-1].split(",")) < 200
    assert dark == (WINDOWS[window][2] == "dark")


@pytest.mark.parametrize("window", ["desktop", "night"])
@pytest.mark.parametrize("name", ["internal", "no_roads", "public", "comparison"])
def test_no_map_is_blank(browser, pages, name, window):
    page, _, _ = opened(browser, pages[name], window)
    maps = page.locator("svg.map")
    assert maps.count() >= (2 if name == "comparison" else 3)
    colours = [colours_of(maps.nth(k).screenshot()) for k in range(maps.count())]
    page.context.close()
    assert all(count > 20 for count in colours), colours


def test_a_blank_map_would_be_noticed(browser, pages, tmp_path):
    text = pages["internal"].read_text(encoding="utf-8")
    for drawn in ("<use ", "<path ", "<text ", "<circle "):
        text = text.replace(drawn, "<desc ")
    text = text.replace("</text>", "</desc>")
    blank = tmp_path / "blank.html"
    blank.write_text(text, encoding="utf-8")
    page, _, _ = opened(browser, blank, "desktop")
    count = colours_of(page.locator("svg.map").first.screenshot())
    page.context.close()
    assert count <= 20


def test_both_sides_share_one_colour_scale(browser, pages):
    page, _, _ = opened(browser, pages["internal"], "desktop")
    fills = page.evaluate(
        "[...document.querySelectorAll('.density')].map(g => Object.fromEntries([...g.querySelectorAll('path')]"
        ".map(p => [p.querySelector('title').textContent, getComputedStyle(p).fill])))"
    )
    page.context.close()
    original, released = fills
    common = original.keys() & released.keys()
    assert len(common) >= 4 and all(original[label] == released[label] for label in common)


def test_people_who_do_not_see_the_figures_hear_them(browser, pages):
    page, _, _ = opened(browser, pages["internal"], "desktop")
    silent = page.evaluate(
        "[...document.querySelectorAll('figure > svg')]"
        ".filter(e => !e.getAttribute('aria-label') || e.getAttribute('role') !== 'img').length"
    )
    levels = page.evaluate("[...document.querySelectorAll('h1, h2, h3')].map(e => Number(e.tagName[1]))")
    page.context.close()
    assert silent == 0 and levels[0] == 1 and levels.count(1) == 1
    assert all(after - before <= 1 for before, after in pairwise(levels))


@pytest.mark.parametrize("window", ["desktop", "phone", "night"])
@pytest.mark.parametrize("name", ["internal", "public", "attacks", "comparison", "study"])
def test_pages_are_accessible(browser, pages, name, window):
    from axe_playwright_python.sync_playwright import Axe

    page, _, _ = opened(browser, pages[name], window)
    found = Axe().run(page).response["violations"]
    page.context.close()
    assert not [(rule["id"], [node["html"][:120] for node in rule["nodes"][:3]]) for rule in found]


def test_an_inaccessible_page_would_be_noticed(browser, pages, tmp_path):
    from axe_playwright_python.sync_playwright import Axe

    text = pages["internal"].read_text(encoding="utf-8").replace('role="img" aria-label=', 'role="img" data-label=')
    (tmp_path / "mute.html").write_text(text, encoding="utf-8")
    page, _, _ = opened(browser, tmp_path / "mute.html", "desktop")
    found = {rule["id"] for rule in Axe().run(page).response["violations"]}
    page.context.close()
    assert "svg-img-alt" in found


def test_the_overview_stays_short_on_a_phone(browser, pages):
    page, _, _ = opened(browser, pages["comparison"], "phone")
    height = page.evaluate("document.documentElement.scrollHeight")
    page.context.close()
    assert height < 4_000, "one release; eleven of them were 28,000 pixels once"


def test_it_prints(browser, pages, tmp_path):
    page, _, _ = opened(browser, pages["internal"], "dark")
    made = page.pdf(format="A4")
    page.context.close()
    assert made.startswith(b"%PDF") and len(made) > 20_000


def colours_of(png: bytes) -> int:
    """How many different colours the middle of a screenshot has, away from the frame."""
    image = pytest.importorskip("PIL.Image", reason="Pillow is not installed").open(io.BytesIO(png)).convert("RGB")
    width, height = image.size
    middle = image.crop((width // 10, height // 10, width * 9 // 10, height * 9 // 10))
    return len(middle.getcolors(maxcolors=2**24))
