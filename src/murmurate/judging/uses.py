"""List what releases are used for: the score that judges each use, and how far off it may be."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import Literal

from murmurate.core.score import Score
from murmurate.releases.kind import Kind

GOOD_TIMES = 1.5
"""A use is good up to this multiple of what a second real sample scores. The two halves of the originals differ by about 1.4
times as much as two full samples would, so this is about twice the difference of two full samples."""
CARE_TIMES = 4.0
"""Beyond this multiple of a second real sample's score a use is advised against. Set by hand."""
NEVER_TIMES = 2.0
"""Beyond this multiple of its own limit of care a use is advised against, however little a second sample of few data says."""


@dataclass(frozen=True, kw_only=True)
class Use:
    """Hold one use of a release and the loss of its score up to which it is good, or needs care.

    A loss is what is missing to a perfect score: the value itself where lower is better, 1 minus the value where higher is
    better, the size of a relative change. A release that is as near as a second sample is never advised against; it needs care
    where the second sample itself is off by more than `care`, as with few data.
    """

    score: str
    use: str
    """What somebody wants to do, as a phrase behind "good for"."""
    label: str
    meaning: str
    good: float
    care: float
    perfect: Literal["zero", "one"] = "zero"
    percent: bool = False
    """Whether the value is a share that is written in per cent."""
    length_share: bool = False
    """Whether the limits are shares of the mean length of original trips."""
    instead_of: str = ""
    """A score that answers the same question with less; it is left out where this one was measured."""

    def grade(self, loss: float, second: float, unit: float = 1.0) -> Literal["good", "care", "not"]:
        """Grade a loss beside that of a second sample; `unit` is what the limits are shares of."""
        good, care = self.good * unit, self.care * unit
        as_a_sample = loss <= GOOD_TIMES * second
        if loss <= good or (as_a_sample and loss <= care):
            return "good"
        near = loss <= min(CARE_TIMES * second, NEVER_TIMES * care)
        return "care" if as_a_sample or near or loss <= care else "not"

    def loss(self, score: Score) -> float:
        """Return what is missing to a perfect score."""
        return abs(1.0 - score.value) if self.perfect == "one" else abs(score.value)


USES = (
    Use(
        score="visits.jsd",
        use="maps of where people are",
        label="Difference of the maps of visits",
        meaning="0: every cell holds the same share of the points; 1: no cell in common.",
        good=0.02,
        care=0.1,
    ),
    Use(
        score="od_emd",
        use="hourly flows between places",
        label="Flows misplaced by, hour by hour",
        meaning="How far trip ends must be moved, start and end together, until the flows of each hour agree.",
        good=0.1,
        care=0.3,
        length_share=True,
        instead_of="od_emd_whole",
    ),
    Use(
        score="od_emd_whole",
        use="flows between places",
        label="Flows misplaced by, whole day",
        meaning="How far trip ends must be moved, start and end together, until the flows agree.",
        good=0.1,
        care=0.3,
        length_share=True,
    ),
    Use(
        score="time_of_day.departures_jsd",
        use="when people travel",
        label="Difference of departure times",
        meaning="0: the same share of trips begins in every hour; 1: no hour in common.",
        good=0.01,
        care=0.05,
    ),
    Use(
        score="length.relative_mean_change",
        use="how far people travel",
        label="Change of the mean trip length",
        meaning="By how much the average trip is longer or shorter than in the originals.",
        good=0.05,
        care=0.15,
        percent=True,
    ),
    Use(
        score="range_queries",
        use="counts of areas",
        label="Mean error of counts in areas",
        meaning="By how much the number of points in an area is off on average.",
        good=0.1,
        care=0.25,
        percent=True,
    ),
    Use(
        score="top_places.coverage_50",
        use="finding the busiest places",
        label="Kept of the 50 busiest cells",
        meaning="100 %: the same fifty cells are the busiest; 0 %: none of them.",
        good=0.1,
        care=0.3,
        perfect="one",
        percent=True,
    ),
    Use(
        score="patterns.f1_100",
        use="which routes are frequent",
        label="Kept of the 100 most frequent routes",
        meaning="100 %: the same hundred sequences of cells are the most frequent; 0 %: none of them.",
        good=0.2,
        care=0.4,
        perfect="one",
        percent=True,
    ),
    Use(
        score="day_visits.kl",
        use="how popular places are over whole days",
        label="Whole days: difference of visits",
        meaning="0: the visits of a day are divided among places as in the originals; there is no upper bound.",
        good=0.05,
        care=0.3,
    ),
    Use(
        score="day_visits.top50_coverage",
        use="finding the places where most time is spent",
        label="Whole days: kept of the 50 most visited cells",
        meaning="100 %: the same fifty cells are the most visited; 0 %: none of them.",
        good=0.1,
        care=0.3,
        perfect="one",
        percent=True,
    ),
    Use(
        score="day_mobility.visits_similarity",
        use="where people are in each part of the day",
        label="Whole days: likeness of visits by part of the day",
        meaning="1: alike; 0: nothing in common.",
        good=0.1,
        care=0.3,
        perfect="one",
    ),
    Use(
        score="day_mobility.moves_similarity",
        use="how people move between places",
        label="Whole days: likeness of moves between places",
        meaning="1: alike; 0: nothing in common.",
        good=0.1,
        care=0.3,
        perfect="one",
    ),
    Use(
        score="network_links.correlation",
        use="telling busy roads from quiet ones",
        label="Correlation of the traffic of links",
        meaning="1: traffic of the busiest original roads rises and falls together in both.",
        good=0.05,
        care=0.2,
        perfect="one",
    ),
    Use(
        score="network_links.relative_error",
        use="traffic counts of busy roads",
        label="Error of the busiest links that are shown",
        meaning="Median error of the counts of the busiest original roads, among those that the release shows.",
        good=0.1,
        care=0.25,
        percent=True,
    ),
    Use(
        score="network_links.shown",
        use="traffic on all busy roads",
        label="Shown of the busiest links",
        meaning="100 %: every one of the busiest original roads has a count in the release.",
        good=0.05,
        care=0.3,
        perfect="one",
        percent=True,
    ),
    Use(
        score="network_length.lost",
        use="knowing which roads are driven at all",
        label="Roads lost, by length",
        meaning="Share of the driven roads that the release does not show.",
        good=0.1,
        care=0.3,
        percent=True,
    ),
    Use(
        score="network_hours.profile",
        use="the hours of traffic",
        label="Traffic at other hours",
        meaning="Share of the traffic that would have to move to another hour.",
        good=0.05,
        care=0.15,
        percent=True,
    ),
    Use(
        score="network_speeds.relative_error",
        use="speeds on roads",
        label="Error of speeds",
        meaning="Median error of the mean speed on roads where both have one.",
        good=0.1,
        care=0.2,
        percent=True,
    ),
    Use(
        score="zone_totals.relative_error_median",
        use="the published counts of busy zones by hour",
        label="Error of busy zones, hour by hour",
        meaning="Median error of the published counts of zones and hours with at least 100 trips in the originals.",
        good=0.1,
        care=0.25,
        percent=True,
    ),
    Use(
        score="zone_totals.published",
        use="departures and arrivals of every busy zone",
        label="Busy zones and hours that are published",
        meaning="100 %: every zone and hour with at least 100 trips in the originals has a published count.",
        good=0.05,
        care=0.3,
        perfect="one",
        percent=True,
    ),
    Use(
        score="zone_pairs.relative_error_median",
        use="the published flows between busy pairs of zones",
        label="Error of busy pairs of zones that are listed",
        meaning="Median error of the counts of listed pairs with at least 100 trips in the originals.",
        good=0.1,
        care=0.25,
        percent=True,
    ),
    Use(
        score="zone_pairs.listed",
        use="knowing which pairs of zones are busy",
        label="Busy pairs that are listed",
        meaning="100 %: every pair of zones with at least 100 trips in the originals is listed.",
        good=0.05,
        care=0.3,
        perfect="one",
        percent=True,
    ),
)
"""Uses in the order of a verdict. One entry a use; limits were set by hand from what each score means."""


def uses_of(measured: Mapping[str, Score], kind: Kind | None = None) -> list[Use]:
    """Return the uses whose scores were measured and stand first for this kind; of two that answer one question, the finer."""
    first: Container[str] = measured if kind is None else kind.key_scores(measured)
    there = [use for use in USES if use.score in measured and use.score in first]
    answered = {use.instead_of for use in there}
    return [use for use in there if use.score not in answered]
