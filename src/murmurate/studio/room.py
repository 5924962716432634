"""Hold what all screens share: the ledger, the drafts, the jobs, and how a page is made."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import jinja2
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from murmurate import __version__
from murmurate.core.ledger import Ledger
from murmurate.core.ledger.records import default_who
from murmurate.errors import LedgerError, MurmurateError
from murmurate.report.weaknesses import spans
from murmurate.studio.drafts import Draft, Drafts
from murmurate.studio.guard import Entrance
from murmurate.studio.jobs import Job, Jobs
from murmurate.studio.products import PER, UNITS, dial, product

TEMPLATES = Path(__file__).parent / "templates"
"""Folder of the templates."""
STEPS = (
    ("file", "File"),
    ("whom", "Whom to protect"),
    ("what", "What to publish"),
    ("amount", "How much"),
    ("sign", "Check and sign"),
    ("release", "Release"),
)
"""The steps of a release, with the word of each in addresses."""


@dataclass(frozen=True)
class Step:
    """Hold one entry of the line of steps: done, current or to come."""

    word: str
    title: str
    done: bool
    current: bool
    chosen: str
    number: int


class NotThere(Exception):
    """A draft, a job or a page that does not exist."""


class Room:
    """Serve as the one place that screens ask for anything."""

    def __init__(self, ledger_url: str | None, entrance: Entrance) -> None:
        self.ledger_url = ledger_url
        self.ledger = Ledger(ledger_url)
        self.drafts = Drafts(self.ledger)
        self.entrance = entrance
        self.jobs = Jobs(self.settle)
        self.quit: Any = lambda: None
        self._pages = jinja2.Environment(
            loader=jinja2.FileSystemLoader(TEMPLATES),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        self._pages.filters |= {"spans": spans, "amount": amount, "json_data": json_data}
        self._pages.globals |= {"version": __version__, "per": PER, "units": UNITS}

    def page(self, template: str, *, status: int = 200, **values: Any) -> Response:
        """Return a page."""
        common = {"token": self.entrance.form_token, "draft": None, "error": None, "steps": ()}
        text = self._pages.get_template(template).render({**common, **values})
        return HTMLResponse(text, status_code=status)

    def draft(self, request: Request) -> Draft:
        """Return the draft that an address names."""
        found = self.drafts.get(request.path_params["draft"])
        if found is None:
            raise NotThere
        return found

    def steps(self, draft: Draft, current: str) -> list[Step]:
        """Return the line of steps of a draft; those already decided can be gone back to."""
        chosen = {
            "file": draft.name,
            "whom": UNITS.get(draft.unit, ""),
            "what": product(draft.mechanism).title if draft.mechanism else "",
            "amount": self.dial_words(draft),
        }
        words = [word for word, _ in STEPS]
        reached = words.index(self.furthest(draft))
        closed = self.is_charged(draft)  # what was charged is not changed any more
        return [
            Step(
                word,
                title,
                number < max(words.index(current), reached),
                word == current,
                "" if closed and word != "release" else chosen.get(word, ""),
                number + 1,
            )
            for number, (word, title) in enumerate(STEPS)
        ]

    def dial_words(self, draft: Draft) -> str:
        """Write where the slider stands, as `ε = 2`."""
        if not draft.mechanism:
            return ""
        parameter, _ = dial(draft.mechanism)
        return f"{'ε' if parameter == 'epsilon' else parameter} = {amount(draft.parameters.get(parameter, 0))}"

    def furthest(self, draft: Draft) -> str:
        """Return the first step that is not decided yet."""
        job = self.jobs.find(draft, "release")
        if job is not None and (not job.over or job.charged):
            return "release"
        if draft.mechanism:
            return "amount"
        inspected = draft.internal("inspection")
        if not inspected or not inspected["readable"]:
            return "file"
        return "what" if draft.unit else "whom"

    def is_charged(self, draft: Draft) -> bool:
        """Return whether the ledger was charged for this draft."""
        try:
            self.ledger.debit(draft.id)
        except LedgerError:
            return False
        return True

    def settle(self, job: Job) -> dict[str, Any]:
        """Say how a job ended that was stopped: what the ledger holds decides, not what the child could still say."""
        if job.task != "release":
            return {"state": "cancelled" if job.stopping else "failed", "message": job.message or "Cancelled."}
        state: Any = "cancelled" if job.stopping else "failed"
        if not self.is_charged(job.draft):
            return {
                "state": state,
                "charged": False,
                "message": f"{job.message} Nothing was charged.".strip(),
            }
        if self.ledger.debit(job.draft.id).manifest_hash is not None:
            return {"state": "done", "charged": True, "message": ""}
        stands = f"The ledger had been charged: the debit of release {job.draft.id} stands, and nothing was released."
        return {"state": state, "charged": True, "message": f"{job.message} {stands}".strip()}

    def order(self, draft: Draft, **values: Any) -> dict[str, Any]:
        """Return what every child is told, with what this one needs more."""
        who = draft.signed.get("who")
        return {
            "signed": [draft.signed[name] for name in ("who", "second") if draft.signed.get(name)],
            "draft": draft.id,
            "folder": str(draft.folder),
            "source": draft.source,
            "read": dict(draft.read),
            "clean": dict(draft.clean),
            "ledger": self.ledger_url,
            "who": f"{who} ({default_who()})" if who else default_who(),
            **values,
        }

    def said(self, draft: Draft, error: MurmurateError | str) -> str:
        """Return a message with the file under the name the person knows."""
        text = str(error)
        if draft.source and draft.name:  # messages about a file that is read name it without its folder
            text = text.replace(draft.source, draft.name).replace(Path(draft.source).name, draft.name)
        return text


def amount(value: Any) -> str:
    """Write a number as short as it is.

    >>> amount(2.0), amount(0.25), amount(1234567.0)
    ('2', '0.25', '1,234,567')
    """
    number = float(value)
    return f"{number:,.0f}" if abs(number) >= 1000 else f"{number:.4g}"


def json_data(value: Any) -> str:
    """Write values for a data block of a page: no character in it can end the block."""
    from markupsafe import Markup

    text = json.dumps(value, separators=(",", ":"))
    return Markup(text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026"))  # noqa: S704  escaped here


def go(path: str) -> Response:
    """Lead on after a form, so that a reload sends nothing again."""
    return RedirectResponse(quote(path, safe="/#"), status_code=303)


def field(request: Request, name: str, default: str = "") -> str:
    """Return one field of the form."""
    form: dict[str, list[str]] = request.scope["state"].get("form", {})
    return form.get(name, [default])[0].strip()
