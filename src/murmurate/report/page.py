"""Write the report of one release: what it promises, how it looks beside its originals, what it is good for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from murmurate.core.guarantee import NoGuarantee, short_promise
from murmurate.core.score import Score, number
from murmurate.judging.review import Review
from murmurate.judging.scoring import Evaluation
from murmurate.judging.verdict import GRADES, Verdict
from murmurate.releases import kind_of
from murmurate.releases.manifest import Manifest
from murmurate.report.charts import Chart, score_by_hour
from murmurate.report.figures import Shown, drawn
from murmurate.report.maps import Base
from murmurate.report.render import render, write_page
from murmurate.report.score_rows import attacks, families, floors, key_rows
from murmurate.report.weaknesses import known_weaknesses

NO_FIGURES: Mapping[str, Any] = {"atlas": None, "traffic": None, "lives": None, "zone_flows": None}
"""What the template is given where no figure of the kind fills it."""


@dataclass(frozen=True)
class Promise:
    """Hold what a manifest says, for the first screen of every page."""

    manifest: Manifest
    title: str
    words: str
    short: str
    protected: bool
    unit: str
    bounds: str
    weaknesses: tuple[str, ...]

    @classmethod
    def of(cls, manifest: Manifest) -> Promise:
        """Read the promise from public parameters alone."""
        guarantee = manifest.guarantee
        bounds = [
            f"at most {value:,} {what}"
            for what, value in (("trips", guarantee.unit.max_trips), ("points", guarantee.unit.max_points))
            if value is not None
        ]
        kind = kind_of(manifest)
        return cls(
            manifest,
            kind.title or kind.name.capitalize(),
            guarantee.words(),
            short_promise(guarantee),
            not isinstance(guarantee, NoGuarantee),
            guarantee.unit.words(),
            " and ".join(bounds),
            tuple(known_weaknesses(manifest.mechanism)),
        )


def write_report(
    path: str | Path,
    review: Review,
    evaluation: Evaluation,
    *,
    verdict: Verdict | None = None,
    public: bool = False,
    base: Base = None,
    overview: str = "",
) -> Path:
    """Write the internal report, or the public one, which is made from the release folder and `base` alone.

    `verdict` (`review.verdict`) leads the internal report; without it, the key scores do. `overview` is a page to lead back to.
    """
    values = _public(review, base) if public else _internal(review, evaluation, base)
    promise = Promise.of(review.release.manifest)
    judged = None if public else verdict
    return write_page(
        path,
        render("report.html.j2", public=public, promise=promise, verdict=judged, grades=GRADES, overview=overview, **values),
        public=public,
    )


def write_attack_report(path: str | Path, review: Review, result: Evaluation) -> Path:
    """Write what attacks found; there is no public edition of it."""
    return write_page(
        path,
        render(
            "attacks.html.j2",
            public=False,
            promise=Promise.of(review.release.manifest),
            attacks=attacks(result.scores),
            skipped=dict(result.skipped),
            note=review.note,
        ),
    )


def write_foreign_report(path: str | Path, name: str, title: str, result: Evaluation) -> Path:
    """Write what was measured of a table that another tool released; the page says that nothing is promised."""
    from murmurate.judging.foreign import NOTHING_PROMISED

    return write_page(
        path,
        render(
            "foreign.html.j2", name=name, title=title, note=NOTHING_PROMISED, attacks=attacks(result.scores),
            skipped=dict(result.skipped),
        ),
    )  # fmt: skip


def write_audit_report(path: str | Path, audit: Any) -> Path:
    """Write what an audit found; it was computed from made-up people, so anybody may read it."""
    return write_page(path, render("audit.html.j2", audit=audit, number=number), public=True)


def _public(review: Review, base: Base) -> dict[str, Any]:
    """Draw the public edition; nothing here may touch `review.original`, its pairing or the evaluation, not even its grid."""
    empty: dict[str, Any] = {"key": [], "families": [], "skipped": {}, "by_hour": [], "note": "", "counts": None}
    return {**empty, **NO_FIGURES, **drawn(Shown(review.release, base))}


def _internal(review: Review, evaluation: Evaluation, base: Base) -> dict[str, Any]:
    scores = evaluation.scores
    values = {
        "key": key_rows(scores, review.release.kind),
        "families": families(scores),
        "skipped": dict(evaluation.skipped),
        "by_hour": hour_charts(scores),
        "note": review.note,
        "counts": {"original_trips": review.original.n_trips, "original_points": review.original.n_points},
    }
    return {**values, **NO_FIGURES, **drawn(Shown(review.release, base, review.original, review.pairing, evaluation))}


def hour_charts(scores: Sequence[Score]) -> list[Chart]:
    """Draw what was measured hour by hour."""
    found = (
        score_by_hour("Difference in cells per trip", "Jensen-Shannon", scores, "trip_size"),
        score_by_hour("How far flows are misplaced", "m", scores, "od_emd", floors(scores).get("od_emd")),
    )
    return [chart for chart in found if chart is not None]
