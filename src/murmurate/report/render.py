"""Turn templates into pages: everything is escaped, nothing is fetched, nothing runs; a page is there whole or not at all."""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from murmurate import __version__
from murmurate.judging.study.table import whole_file
from murmurate.report.weaknesses import spans

if TYPE_CHECKING:
    import jinja2

TEMPLATES = Path(__file__).parent / "templates"
"""Folder of the templates and style sheets."""


def render(template: str, **values: Any) -> str:
    """Return the text of a page."""
    return str(_environment().get_template(template).render(**values))


@cache
def _environment() -> jinja2.Environment:
    """Return the environment of all pages, kept so that a template is compiled once in a process."""
    import jinja2  # here, so that the command line starts fast

    environment = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters["spans"] = spans
    environment.globals["version"] = __version__
    return environment


def write_page(path: str | Path, text: str, *, public: bool = False) -> Path:
    """Write a page beside its final name, then move it there; others may read it only where it is `public`."""
    target = Path(path)
    with whole_file(target) as temporary:
        temporary.write_text(text, encoding="utf-8")
        temporary.chmod(0o644 if public else 0o600)
    return target
