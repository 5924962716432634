"""Scores in words: every metric has some, numbers have units, and bars are full where a score is perfect."""

from __future__ import annotations

import math

import pytest

from murmurate import mechanisms
from murmurate.core.guarantee import DP, GeoInd, KAnonymity, NoGuarantee, PlausibleDeniability, Unit, short_promise
from murmurate.core.score import Score, number
from murmurate.metrics import METRICS
from murmurate.releases import KINDS, kind_named
from murmurate.report.score_rows import attacks, families, key_rows, row
from murmurate.report.weaknesses import known_weaknesses, spans
from murmurate.report.words import FAMILIES, MEANINGS


def test_every_metric_has_its_words():
    assert set(MEANINGS) == set(METRICS), "a metric needs one line of plain words in report/words.py"
    assert all(meaning.title and meaning.asks and meaning.good for meaning in MEANINGS.values())


@pytest.mark.parametrize("kind", KINDS)
def test_the_first_scores_of_a_kind_are_measured_of_it(kind):
    assert {name.split(".")[0] for name in kind_named(kind).headline} <= set(kind_named(kind).scores)


def test_every_family_is_named(judged):
    assert {score.family for score in judged.evaluation.scores} <= set(FAMILIES)


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (0.04567, "", "0.0457"),
        (12345.6, "m", "12,346 m"),
        (math.inf, "nats", "infinite"),
        (math.nan, "m", "–"),
        (None, "", "–"),
    ],
)
def test_numbers(value, unit, text):
    assert number(value, unit) == text


def test_relative_changes_are_per_cent():
    shown = row(Score(name="length.relative_mean_change", value=1.5, low=1.0, high=2.0, better="lower"))
    assert (shown.value, shown.interval) == ("150 %", "100 to 200 %")
    assert row(Score(name="length.mean_change", value=1.5, unit="m")).value == "1.5 m"


@pytest.mark.parametrize(
    ("name", "value", "better", "quality"),
    [
        ("visits.jsd", 0.0, "lower", 1.0),
        ("visits.jsd", 1.0, "lower", 0.0),
        ("top_places.coverage_50", 0.25, "higher", 0.25),
        ("time_of_day.departures_jsd", 0.5, "lower", 0.5),
        ("trip_size", 0.25, "lower", 0.75),
        ("adatrace_trip", math.log(2), "lower", 0.0),
        ("dpmobility_od.jsd", math.sqrt(math.log(2)), "lower", 0.0),
        ("visits.kl_by_label", 0.5, "lower", None),
        ("range_queries", 0.5, "lower", None),
        ("visits.jsd", math.nan, "lower", None),
    ],
)
def test_a_full_bar_is_perfect(name, value, better, quality):
    unit = "nats" if name == "adatrace_trip" else ""
    found = row(Score(name=name, value=value, better=better, unit=unit)).quality
    assert found is None if quality is None else found == pytest.approx(quality)


def test_every_score_stands_in_one_family(judged):
    shown = [item.name for family in families(judged.evaluation.scores) for group in family.groups for item in group.rows]
    assert sorted(shown) == sorted(score.name for score in judged.evaluation.scores)


def test_a_family_nobody_named_is_shown_all_the_same():
    (family,) = families([Score(name="new_metric.part", value=1.0, family="new")])
    assert family.title == "new" and family.groups[0].title == "new metric"


def test_key_scores_come_in_their_order_and_without_what_is_not_a_number():
    scores = [Score(name="trip_size", value=0.1), Score(name="visits.jsd", value=0.2), Score(name="od_emd", value=math.nan)]
    assert [item.name for item in key_rows(scores, kind_named("trips"))] == ["visits.jsd", "trip_size"]


def test_attacks_stand_beside_chance(judged):
    groups = attacks(judged.attacked.scores)
    assert {"Averaging many reports of one place", "Finding a trip by known places"} <= {group.title for group in groups}
    assert not [item.label for group in groups for item in group.rows if "_" in item.label or "top1" in item.label]
    assert all(item.chance and item.note for group in groups for item in group.rows)


@pytest.mark.parametrize("name", list(mechanisms.NAMES))
def test_every_mechanism_tells_its_weaknesses(name):
    told = known_weaknesses(name)
    assert told and all(sentence and not sentence.startswith(("-", "#")) and "|" not in sentence for sentence in told)


@pytest.mark.parametrize("name", ["../../README", "no_such_mechanism", "", "geoind.md", "geoind/../geoind"])
def test_a_manifest_cannot_name_a_file(name):
    assert known_weaknesses(name) == []


def test_spans_of_code():
    assert spans("a `b` c") == [(False, "a "), (True, "b"), (False, " c")]


def test_promises_in_short():
    user = Unit(name="user", max_trips=3)
    assert short_promise(DP(epsilon=1.0, unit=user)) == "differential privacy per person: epsilon = 1"
    assert "delta = 1e-06" in short_promise(DP(epsilon=1.0, delta=1e-6, unit=user))
    assert "per metre (2 at 200 m)" in short_promise(GeoInd(epsilon_per_m=0.01, radius_m=200.0, unit=user))
    assert "not differential privacy" in short_promise(KAnonymity(k=3, radius_m=100.0))
    assert "not differential privacy" in short_promise(PlausibleDeniability(k=5))
    assert short_promise(NoGuarantee(why="a test")) == "no privacy guarantee"
