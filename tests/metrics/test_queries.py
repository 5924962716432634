"""OD queries against counting by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from murmurate.metrics.compare import compare
from murmurate.metrics.comparison import NotMeasurable
from murmurate.metrics.queries import SANITY_BOUND, od_queries
from murmurate.metrics.rectangles import count_between, random_rectangles
from small_town import GRID


def test_counts_are_those_of_brute_force():
    rng = np.random.default_rng(1)
    ends = rng.integers(0, 20, (500, 4))
    boxes = random_rectangles(20, 20, 200, rng).reshape(100, 8)  # more than the bits of a word
    by_hand = [
        sum(r0 <= a < r1 and c0 <= b < c1 and s0 <= c < s1 and d0 <= d < d1 for a, b, c, d in ends)
        for r0, r1, c0, c1, s0, s1, d0, d1 in boxes
    ]
    assert count_between(ends, boxes).tolist() == by_hand
    assert max(by_hand) > 0


def test_rectangles_lie_in_the_box_and_are_never_empty():
    for low_row, high_row, low_column, high_column in random_rectangles(3, 40, 500, np.random.default_rng(2)):
        assert 0 <= low_row < high_row <= 3
        assert 0 <= low_column < high_column <= 40


def test_half_of_the_trips_drawn_at_random_answer_nearly_as_well(original):
    half = original.take_trips(np.random.default_rng(3).random(original.n_trips) < 0.5)
    mean, median = od_queries(compare(half, original, grid=GRID))
    assert 0 < mean.value < 1.0
    assert median.value <= mean.value
    assert mean.low <= mean.value <= mean.high


def test_a_query_that_nothing_answers_is_off_by_all(original):
    """Trips that turn round: from rectangle A to B become those from B to A."""
    turned = original.with_columns({"lat": original.lat[::-1], "lng": original.lng[::-1]})
    bounded = od_queries(compare(turned, original, grid=GRID), sanity_bound=SANITY_BOUND)[0].value
    strict = od_queries(compare(turned, original, grid=GRID), sanity_bound=0.05)[0].value
    assert bounded > strict > 0


def test_trips_outside_are_told(original):
    both = compare(original, original, grid=GRID)
    away = original.with_columns({"lat": original.lat - 10})
    with pytest.raises(NotMeasurable):
        od_queries(replace(both, released=replace(both.released, trips=away)))
