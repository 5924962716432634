"""The examples on the pages about spaces and cleaning run and print what they say."""

import doctest
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["spaces.md", "cleaning.md"])
def test_the_page_runs(page):
    failed, tried = doctest.testfile(str(DOCS / page), module_relative=False)
    assert tried > 5
    assert failed == 0
