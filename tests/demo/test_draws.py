"""The demo's random numbers: the same bits everywhere, and random enough."""

from __future__ import annotations

import numpy as np

from murmurate.demo.draws import DAYS, PEOPLE, bells, choose, stream, uniform, uniforms


def test_bits_are_fixed_for_good():
    # Only integer arithmetic is used, so these hold on any machine and with any version of any library.
    assert [float(value).hex() for value in uniforms(1, PEOPLE, 0, 3)] == [
        "0x1.23537fe855d47p-1",
        "0x1.85b851775526ap-1",
        "0x1.ef16789b6476dp-1",
    ]


def test_streams_of_different_purpose_person_and_part_differ():
    states = {
        (seed, purpose, person, part): stream(seed, purpose, person, part)[0]
        for seed in (0, 1)
        for purpose in (PEOPLE, DAYS)
        for person in range(30)
        for part in range(30)
    }
    assert len(set(states.values())) == len(states)


def test_uniform_numbers_fill_the_unit_interval_evenly():
    drawn = uniforms(7, PEOPLE, 3, 200_000)
    assert drawn.min() >= 0
    assert drawn.max() < 1
    counts = np.histogram(drawn, bins=50, range=(0, 1))[0]
    assert ((counts - 4000) ** 2 / 4000).sum() < 100  # chi-square of 49 degrees
    assert abs(np.corrcoef(drawn[:-1], drawn[1:])[0, 1]) < 0.01


def test_bells_have_mean_zero_and_deviation_one():
    drawn = bells(7, PEOPLE, 4, 100_000)
    assert abs(drawn.mean()) < 0.015
    assert abs(drawn.std() - 1) < 0.015
    assert np.abs(drawn).max() < 4.25


def test_choose_follows_the_weights():
    state = stream(1, PEOPLE, 5, 0)
    picked = np.bincount([choose(state, np.array([1.0, 1.0, 4.0])) for _ in range(20_000)], minlength=3) / 20_000
    assert abs(picked - [0.25, 0, 0.75]).max() < 0.02


def test_a_stream_goes_on_where_it_stopped():
    state = stream(1, PEOPLE, 0, 0)
    assert [uniform(state) for _ in range(3)] == uniforms(1, PEOPLE, 0, 3).tolist()
