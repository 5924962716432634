"""Show trips, releases, guarantees, scores and studies in notebooks: small tables, and maps in a frame of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any

from murmurate.core.guarantee import Guarantee, NoGuarantee, short_promise
from murmurate.core.score import number
from murmurate.core.space import Places
from murmurate.core.trips import Trips
from murmurate.errors import InputError
from murmurate.judging.scoring import Evaluation
from murmurate.judging.study import StudyResult
from murmurate.judging.verdict import GRADES, Verdict
from murmurate.releases.folder import Release
from murmurate.report.figures import Shown, drawn
from murmurate.report.maps import Base, atlas, grid_around
from murmurate.report.page import NO_FIGURES
from murmurate.report.render import render, write_page
from murmurate.report.score_rows import BETTER

ROWS = 8
"""Rows of a table in a notebook."""
HEIGHT = 620
"""Height of the frame of maps, in pixels; it scrolls."""


@dataclass(frozen=True)
class Picture:
    """Hold maps as a page of their own; a notebook shows it, `save` writes it."""

    page: str

    def _repr_html_(self) -> str:
        style = "border:0;background:#fff"
        return f'<iframe srcdoc="{escape(self.page)}" width="100%" height="{HEIGHT}" style="{style}" title="Maps"></iframe>'

    def __repr__(self) -> str:
        return f"Picture({len(self.page):,} characters; show it in a notebook, or .save('maps.html'))"

    def save(self, path: str | Path) -> Path:
        """Write the page; it needs no other file."""
        return write_page(path, self.page)


def plot_trips(trips: Trips, *, base: Base = None, title: str = "Trips") -> Picture:
    """Draw where the points of trips are, where trips go, and a few of them. Private trips make a private picture."""
    if not trips.n_trips:
        raise InputError("there is no trip to draw.", "read or release some first.")
    grid = trips.space if isinstance(trips.space, Places) else grid_around(trips)
    return _picture(title, {**NO_FIGURES, "atlas": atlas(grid, {title: trips}, base=base)})


def plot_release(release: Release, *, base: Base = None) -> Picture:
    """Draw what a release holds, from the release alone."""
    values = {**NO_FIGURES, **drawn(Shown(release, base))}
    if not any(values[name] for name in NO_FIGURES):
        raise InputError(f"a release of kind {release.manifest.kind!r} has no picture.", "sample a model first.")
    return _picture(release.manifest.mechanism, values)


def _picture(title: str, values: dict[str, Any]) -> Picture:
    return Picture(render("picture.html.j2", title=title, public=True, **values))


def trips_html(trips: Trips) -> str:
    """Return a short description of trips and their first rows."""
    zone = f", hours in {trips.time_zone}" if trips.has_time else ", without times"
    words = f"{trips.n_trips:,} trips of {trips.n_users:,} people, {trips.n_points:,} points{zone}"
    return _boxed("Trips", words) + _table(trips.columns, trips.table.head(ROWS).rows())


def release_html(release: Release) -> str:
    """Return what a release holds and promises."""
    manifest = release.manifest
    marks = [
        "A test or demo release: its noise came from a seed and protects nobody." if manifest.seeded else "",
        "It keeps the original identifiers: for internal studies." if manifest.ids == "kept" else "",
    ]
    title = f"{release.kind.title or release.kind.name.capitalize()} released by {manifest.mechanism}"
    files = ", ".join(manifest.files)
    return _boxed(title, manifest.guarantee.words(), *filter(None, marks), f"In {release.folder}: {files}.")


def guarantee_html(guarantee: Guarantee) -> str:
    """Return a promise in words."""
    title = "No guarantee" if isinstance(guarantee, NoGuarantee) else short_promise(guarantee)
    return _boxed(title[0].upper() + title[1:], guarantee.words(), *guarantee.assumptions)


def evaluation_html(evaluation: Evaluation) -> str:
    """Return the scores as a table."""
    rows = [
        (
            score.name,
            number(score.value, score.unit),
            "" if score.low is None or score.high is None else f"{number(score.low)} to {number(score.high)}",
            "" if score.chance is None else number(score.chance),
            BETTER[score.better],
        )
        for score in evaluation.scores
    ]
    words = f"{len(rows):,} scores; {len(evaluation.skipped):,} not measured. Internal: computed from private data."
    return _boxed("Scores", words) + _table(("score", "value", "95 % interval", "chance", "better"), rows)


def verdict_html(verdict: Verdict) -> str:
    """Return the paragraph and the scores to read first."""
    rows = [(line.label, line.value, line.beside, GRADES[line.grade]) for line in verdict.headlines]
    return _boxed("Verdict", verdict.paragraph) + _table(("score", "value", "beside", "grade"), rows)


def study_html(study: StudyResult) -> str:
    """Return what a study measured, and its first rows."""
    words = f"{study.table.height:,} values; {len(study.skipped):,} left out, {len(study.failed):,} refused. Internal."
    shown = [name for name in ("dataset", "mechanism", "setting", "repeat", "metric", "value") if name in study.table.columns]
    return _boxed(f"Study {study.spec.name}", words) + _table(shown, study.table.select(shown).head(ROWS).rows())


def _boxed(title: str, *sentences: str) -> str:
    text = "".join(f"<p style='margin:4px 0'>{escape(sentence)}</p>" for sentence in sentences)
    return f"<div style='max-width:80ch'><b>{escape(title)}</b>{text}</div>"


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    head = "".join(f"<th scope='col' style='text-align:left'>{escape(str(name))}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td style='text-align:left'>{escape(_cell(value))}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)
