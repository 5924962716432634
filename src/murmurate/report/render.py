"""Templates into pages: everything is escaped, nothing is fetched, nothing runs; a page is there whole or not at all."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from murmurate import __version__
from murmurate.errors import OutputError
from murmurate.report.weaknesses import spans

TEMPLATES = Path(__file__).parent / "templates"


def render(template: str, **values: Any) -> str:
    """The text of a page."""
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
    return environment.get_template(template).render(**values)


def write_page(path: str | Path, text: str) -> Path:
    """Write a page beside its final name, then move it there."""
    target = Path(path)
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}-")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(text)
            Path(temporary).chmod(0o644)
            Path(temporary).replace(target)
        except BaseException:
            Path(temporary).unlink(missing_ok=True)
            raise
    except OSError as error:
        raise OutputError(f"{target} could not be written: {error.strerror or error}.") from error
    return target
