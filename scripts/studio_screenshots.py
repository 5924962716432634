"""Take the pictures of docs/studio.md: python scripts/studio_screenshots.py. Needs Chromium; uses the built-in city only."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

IMAGES = Path(__file__).resolve().parent.parent / "docs" / "images"
"""Where the pictures go."""
QUALITY = 82
"""Of the JPEG files."""


def main() -> None:
    """Walk the whole way with the built-in city and keep a picture of every screen."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "murmurate", "studio", "--no-browser", "--ledger", f"sqlite:///{folder}/ledger.db"]
        studio = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        try:
            link = next(found.group(0) for line in studio.stdout or () if (found := re.search(r"http://\S+", line)))
            _walk(link)
        finally:
            studio.terminate()
            studio.wait()


def _walk(link: str) -> None:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        context = browser.new_context(viewport={"width": 1280, "height": 860})
        context.set_default_timeout(180_000)
        page = context.new_page()

        def keep(name: str, **options: object) -> None:
            page.wait_for_load_state("load")
            page.screenshot(path=IMAGES / f"studio-{name}.jpg", type="jpeg", quality=QUALITY, **options)  # type: ignore[arg-type]

        page.goto(link)
        page.wait_for_selector(".drop")
        keep("start")
        page.click("text=Try it on the built-in city")
        page.wait_for_selector("a#go")
        keep("file")
        page.click("a#go")
        page.fill("#limit", "6")
        keep("whom")
        page.click("button[value=trip]")
        page.check("[name=area_public]")
        keep("what")
        page.click("button[value=flock]")
        page.wait_for_selector("#slide")
        page.focus("#slide")
        page.keyboard.press("ArrowRight")
        keep("amount")
        page.goto(page.url.replace("/amount", "/compare"))
        keep("compare")
        page.goto(page.url.replace("/compare", "/amount"))
        small = browser.new_context(
            viewport={"width": 390, "height": 844}, color_scheme="dark", storage_state=context.storage_state()
        ).new_page()
        small.goto(page.url)
        small.screenshot(path=IMAGES / "studio-phone.jpg", type="jpeg", quality=QUALITY)
        page.click("#go")
        page.fill("#who", "Data officer")
        page.fill("#why", "Open data for planning")
        page.check("[name=understood]")
        keep("sign")
        page.click("#go")
        page.wait_for_selector("#charge")
        keep("run")
        page.wait_for_selector(".boxes")
        page.click("text=Measure and attack it")
        page.wait_for_selector(".verdict")
        keep("release", full_page=True)
        page.goto(page.url.split("/draft/")[0] + "/ledger")
        keep("ledger")
        browser.close()


if __name__ == "__main__":
    main()
