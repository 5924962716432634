"""The one table of classes."""

import pytest

from murmurate.spaces.road.classes import CLASS_SPEED_KMH, CLASS_WORDS, DRIVEN, ROADS, class_and_speed, lane_count, speed_kmh


def test_every_entry_is_a_class_and_a_speed():
    assert all(1 <= number <= 5 and 0 < speed <= 130 for number, speed in ROADS.values())
    assert set(CLASS_SPEED_KMH) == set(CLASS_WORDS) == {1, 2, 3, 4, 5}
    assert {ROADS[word][0] for word in DRIVEN} == {1, 2, 3, 4, 5}


@pytest.mark.parametrize("word", ["footway", "", "proposed", "S9999", "6", "[]"])
def test_what_no_car_uses_has_no_class(word):
    assert class_and_speed(word) is None


@pytest.mark.parametrize(("word", "number"), [("4", 4), ("4.0", 4), ("S1100", 1), ("trunk_link", 1), ("['residential']", 5)])
def test_known_words(word, number):
    found = class_and_speed(word)
    assert found is not None
    assert found[0] == number


@pytest.mark.parametrize(
    ("text", "kmh"),
    [
        ("30", 30),
        ("30;50", 30),
        ("['50', '30']", 30),
        ("20 mph", 32.18688),
        ("none", None),
        ("walk", None),
        ("0", None),
        ("-5", None),
    ],
)
def test_speeds(text, kmh):
    assert speed_kmh(text) == kmh


@pytest.mark.parametrize(("text", "lanes"), [("3", 3), ("1.5", 1), ("", 0), ("many", 0), ("['2', '4']", 4), ("1000", 99)])
def test_lanes(text, lanes):
    assert lane_count(text) == lanes
