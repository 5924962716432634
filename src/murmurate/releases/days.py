"""Days: trips that are whole days of people who do not exist, one point for each step of the day.

In the manifest they are trips, which they are to whoever reads the file; only what a reader sees first differs, since the
length or duration of such a trip says nothing.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import ClassVar

from murmurate.releases.trips import TripsKind


class Days(TripsKind):
    """Whole days in `data.parquet`; the list of mechanisms says which make them."""

    name = "days"
    title = "Whole days"
    written_as = "trips"
    headline: ClassVar[Mapping[str, str]] = {
        "day_visits.kl": "Whole days: difference of visits, busiest place first",
        "day_visits.top50_coverage": "Whole days: kept of the 50 most visited cells",
        "day_mobility.visits_similarity": "Whole days: likeness of visits by part of the day",
        "day_mobility.moves_similarity": "Whole days: likeness of moves between places",
    }

    def key_scores(self, measured: Container[str]) -> Mapping[str, str]:
        """Scores of days, or those of trips where no score of days was measured."""
        return self.headline if any(name in measured for name in self.headline) else TripsKind.headline
