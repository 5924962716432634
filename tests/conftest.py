"""Fixtures every test may use."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# No test is timed, and a first call may compile a kernel; the same examples every time.
settings.register_profile("murmurate", deadline=None, derandomize=True)
settings.load_profile("murmurate")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """The folder of real data; tests that need it are skipped where it is absent."""
    folder = Path(os.environ.get("MURMURATE_DATA", ROOT.parent / "shared" / "data"))
    if not folder.is_dir():
        pytest.skip(f"the real data are not here: neither MURMURATE_DATA nor {folder.name} beside the project is a folder")
    return folder


@pytest.fixture(scope="session")
def browser():
    """One real browser for all tests of a process: two at once cannot share its event loop."""
    sync_api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    chromium = next((path for path in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if path), None)
    if chromium is None:
        pytest.skip("no Chromium is installed")
    with sync_api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox", "--disable-gpu"])
        yield started
        started.close()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With MURMURATE_NOTHING_SKIPPED (CI) a skipped test is a failure: there, everything is there."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if not os.environ.get("MURMURATE_NOTHING_SKIPPED") or reporter is None:
        return
    skipped = reporter.stats.get("skipped", [])
    if skipped and session.exitstatus == 0:
        reporter.write_line(f"{len(skipped)} tests were skipped where nothing may be skipped", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
