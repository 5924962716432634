"""Name how the nouns of this package are shown and handed to other tools; what does it is imported when first used."""

from __future__ import annotations

from typing import Any

from murmurate.core.registry import Entry, Registry

VIEWS: Registry[Entry] = Registry(
    "view",
    {
        "trips.to_pandas": Entry("murmurate.ingest.export:to_pandas"),
        "trips.to_geopandas": Entry("murmurate.ingest.export:to_geopandas"),
        "trips.plot": Entry("murmurate.report.display:plot_trips"),
        "trips.html": Entry("murmurate.report.display:trips_html"),
        "release.plot": Entry("murmurate.report.display:plot_release"),
        "release.html": Entry("murmurate.report.display:release_html"),
        "guarantee.html": Entry("murmurate.report.display:guarantee_html"),
        "evaluation.html": Entry("murmurate.report.display:evaluation_html"),
        "verdict.html": Entry("murmurate.report.display:verdict_html"),
        "study.html": Entry("murmurate.report.display:study_html"),
    },
)
"""Name -> module:function. The functions lie in modules above those whose things they show."""


def view(name: str, thing: Any, **options: Any) -> Any:
    """Return a thing as the view of this name makes it."""
    return VIEWS.load(name)(thing, **options)
