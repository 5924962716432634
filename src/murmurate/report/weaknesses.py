"""Read the known weaknesses of a mechanism from its documentation page, which travels with the package."""

from __future__ import annotations

import re
from pathlib import Path

SECTION = "## Known weaknesses"
"""Heading of the section that reports quote."""
_FOLDERS = (Path(__file__).parent / "mechanism_pages", Path(__file__).parents[3] / "docs" / "mechanisms")
"""Where the pages are: packaged, or in a clone of the repository."""


def known_weaknesses(mechanism: str) -> list[str]:
    """Return the bullets of the page's section, one sentence or more each; none where there is no page."""
    if not re.fullmatch(r"[a-z0-9_]+", mechanism):  # a manifest's word is not trusted to be a file name
        return []
    for folder in _FOLDERS:
        page = folder / f"{mechanism}.md"
        if page.is_file():
            return _bullets(page.read_text(encoding="utf-8"))
    return []


def _bullets(page: str) -> list[str]:
    _, found, rest = page.partition(SECTION)
    if not found:
        return []
    section = rest.split("\n## ", 1)[0]
    bullets: list[str] = []
    for line in section.splitlines():
        text = line.strip()
        if text.startswith(("|", "```")):  # a table or a block of code is not a sentence
            continue
        if text.startswith("- ") and not line.startswith("  "):
            bullets.append(text[2:])
        elif text and bullets and not text.startswith("#"):
            bullets[-1] += f" {text.removeprefix('- ')}"
        elif text and not text.startswith("#"):
            bullets.append(text)
    return [re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", bullet) for bullet in bullets]


def spans(text: str) -> list[tuple[bool, str]]:
    """Cut a sentence at its backticks: (is code, text).

    >>> spans("set `memo` off")
    [(False, 'set '), (True, 'memo'), (False, ' off')]
    """
    return [(bool(k % 2), part) for k, part in enumerate(text.split("`")) if part]
