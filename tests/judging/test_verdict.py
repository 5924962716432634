"""The verdict: uses by a second real sample, attacks by chance, in words with numbers."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from murmurate.core.guarantee import DP, GeoInd, NoGuarantee, Unit
from murmurate.core.score import Score
from murmurate.core.trips import Trips
from murmurate.judging.attack_words import attack_label, attack_sentence
from murmurate.judging.scoring import Evaluation
from murmurate.judging.second_sample import MIN_PEOPLE, halves, second_sample
from murmurate.judging.uses import CARE_TIMES, GOOD_TIMES, USES
from murmurate.judging.verdict import MAX_HEADLINES, verdict
from murmurate.metrics import METRICS
from murmurate.releases import kind_named

PERSON = Unit(name="user")


def scored(**values):
    return Evaluation(tuple(Score(name=name.replace("__", "."), value=value) for name, value in values.items()))


def attack(name="reidentify.timed.top1_k1", value=0.58, chance=0.001, low=None, better="closer_to_chance", **more):
    return Score(name=name, value=value, chance=chance, low=low, better=better, **more)


def towns(people, trips=4, seed=3):
    draw = np.random.default_rng(seed)
    n = people * trips
    rows = {
        "uid": np.repeat(np.arange(people), trips * 2),
        "tid": np.repeat(np.arange(n), 2),
        "lat": 60.1 + draw.random(2 * n) / 50,
        "lng": 24.9 + draw.random(2 * n) / 50,
    }
    return Trips(pl.DataFrame(rows))


@pytest.mark.parametrize(
    ("value", "second", "grade"),
    [
        (0.015, None, "good"),  # within the tolerance, whatever a sample says
        (0.03, None, "care"),
        (0.2, None, "not"),
        (0.05, 0.05 / GOOD_TIMES, "good"),
        (0.15, 0.15 / CARE_TIMES + 0.001, "care"),
        (0.15, 0.15 / CARE_TIMES - 0.001, "not"),
        (0.4, 0.3, "care"),  # as near as a second sample, which is itself far off
        (0.9, 0.3, "not"),  # within four times a sample of few data, and useless all the same
    ],
)
def test_uses_are_graded_against_a_second_sample(value, second, grade):
    beside = None if second is None else scored(visits__jsd=second)
    found = verdict(scored(visits__jsd=value), second=beside).headlines[0]
    assert found.grade == grade
    assert ("second sample" in found.beside) == (second is not None)


def test_a_kept_share_loses_what_is_missing():
    assert verdict(scored(top_places__coverage_50=0.95)).headlines[0].grade == "good"
    low = verdict(scored(top_places__coverage_50=0.1), second=scored(top_places__coverage_50=0.9))
    assert low.headlines[0].grade == "not" and "10 %" in low.paragraph and "90 %" in low.paragraph


def test_flows_are_judged_by_the_length_of_trips():
    flows = {"od_emd": 500.0, "od_emd_whole": 100.0}
    assert [line.grade for line in verdict(scored(**flows)).headlines] == ["open"]
    judged = verdict(scored(**flows, length__original_mean=10_000.0))
    assert [(line.score.name, line.grade) for line in judged.headlines] == [("od_emd", "good")]


def test_the_paragraph_says_what_for_what_not_and_who_learns_what():
    scores = scored(visits__jsd=0.001, range_queries=0.2, length__relative_mean_change=2.3)
    found = verdict(scores, attacked=Evaluation((attack(),)), guarantee=DP(epsilon=1.0, unit=PERSON))
    text = found.paragraph
    assert text.index("Good for maps") < text.index("With care for counts") < text.index("Not for how far")
    assert " 230 %" in text and "per person: epsilon = 1" in text
    assert "knows 1 place of a trip and when it was there finds it in 58 % of attempts (by chance 0.1 %)" in text
    assert found.broken == ("reidentify.timed.top1_k1",) and found.to_json()["attacked"] is True


def test_attacks_count_from_twice_chance_and_beyond_their_interval():
    assert verdict(scored(), attacked=Evaluation((attack(value=0.19, chance=0.1),))).broken == ()
    assert verdict(scored(), attacked=Evaluation((attack(value=0.21, chance=0.1, low=0.12),))).broken
    assert verdict(scored(), attacked=Evaluation((attack(value=0.21, chance=0.1, low=0.05),))).broken == ()
    wrong = attack("localise.rhythm", value=0.5, chance=10 / 11, better="higher", high=0.6)
    assert verdict(scored(), attacked=Evaluation((wrong,))).broken == ("localise.rhythm",)
    metres = attack("average.error_1", value=5.0, chance=900.0, unit="m")
    assert "No attack could be run" in verdict(scored(), attacked=Evaluation((metres,))).paragraph


def test_what_was_not_attacked_is_said():
    assert "No attack was run" in verdict(scored()).paragraph
    none = Evaluation((), {"reidentify": "released trips are not paired with originals"})
    assert "not paired" in verdict(scored(), attacked=none).paragraph
    safe = verdict(scored(), attacked=Evaluation((attack(value=0.001),)))
    assert "None of 1 attack results" in safe.paragraph and safe.headlines[0].grade == "safe"


def test_promises_that_mean_nothing_are_called_that():
    far = GeoInd(epsilon_per_m=1.0, radius_m=100.0, unit=Unit(name="trip"))
    assert "e^100, is too large" in verdict(scored(), guarantee=far).paragraph
    assert "too large" not in verdict(scored(), guarantee=DP(epsilon=2.0, unit=PERSON)).paragraph
    assert "no privacy guarantee" in verdict(scored(), guarantee=NoGuarantee(why="a test")).paragraph


def test_at_most_eight_scores_come_first():
    everything = Evaluation(tuple(Score(name=use.score, value=0.01) for use in USES))
    attacks = Evaluation(tuple(attack(f"{name}.x", value=0.5) for name in ("reidentify", "average", "membership")))
    found = verdict(everything, attacked=attacks)
    assert len(found.headlines) == MAX_HEADLINES and all(line.meaning for line in found.headlines)
    assert sum(line.grade == "broken" for line in found.headlines) == 2 and "1 more attack result is" in found.paragraph


def test_every_use_names_a_metric_and_has_ordered_limits():
    assert {use.score.split(".")[0] for use in USES} <= set(METRICS)
    assert all(0 < use.good < use.care and use.meaning.endswith(".") for use in USES)


@pytest.mark.parametrize("people", [6, MIN_PEOPLE + 4])
def test_halves_share_no_trip_and_with_many_people_nobody(people):
    original = towns(people)
    first, other = halves(original)
    assert first.n_trips + other.n_trips == original.n_trips
    ids = [set(half.trip_ids.to_list()) for half in (first, other)]
    assert not ids[0] & ids[1] and abs(len(ids[0]) - len(ids[1])) <= 8
    if people >= MIN_PEOPLE:
        assert not set(first.user_ids.to_list()) & set(other.user_ids.to_list())


def test_a_second_sample_takes_only_what_is_judged():
    original = towns(50)
    original = original.with_columns({"hour": np.full(original.n_points, 8)})
    kind = kind_named("trips")
    judged = tuple(Score(name=name, value=0.0) for name in ("visits.jsd", "od_emd", "gyration.x"))
    found = second_sample(kind, original, original, judged)
    assert found["visits.jsd"].value > 0 and {score.name.split(".")[0] for score in found.scores} == {"visits", "od_emd"}
    assert found["od_emd"].value > 0 and "od_emd.floor" not in {score.name for score in found.scores}
    assert not second_sample(kind_named("model"), None, original, found.scores).scores


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("reidentify.places.top1_k1", "Trip found from 1 known place"),
        ("reidentify.timed.top5_k2", "Trip among the first 5 guesses from 2 known places with time"),
        ("average.found_10", "Place found by averaging 10 reports"),
        ("average.error_all", "Error of averaging all reports of a place"),
        ("localise.hmm_own_profile", "True day found among fakes by: hmm own profile"),
        ("membership.person_auc", "Membership: person auc"),
    ],
)
def test_attacks_have_words(name, words):
    assert attack_label(name) == words and attack_sentence(Score(name=name, value=0.0))
