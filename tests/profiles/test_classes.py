"""Usage classes: places used alike fall together, wherever they lie."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import adjusted_mutual_info_score

import murmurate as mm
from murmurate.errors import InputError
from murmurate.papers.plausible.agreement import agreement
from murmurate.profiles import classes
from murmurate.profiles.classes import location_graph, separation, usage_classes
from murmurate.profiles.days import from_array
from murmurate.profiles.mobility import profiles_of, profiles_of_rows
from plausible_days import made_days


@pytest.fixture(scope="module")
def city():
    return mm.demo.city(people=200, days=10, seed=5, interval_s=600)


@pytest.fixture(scope="module")
def city_profiles(city):
    return profiles_of(from_array(city.daily.place, city.truth.places.height), periods=8)


@pytest.fixture(scope="module")
def graph(city_profiles):
    return location_graph(city_profiles)


def test_classes_are_what_places_are_used_for_and_not_where_they_lie(city, graph):
    labels = np.unique(city.truth.places["label"].to_numpy()[graph.place], return_inverse=True)[1]
    classes = usage_classes(graph)
    assert agreement(classes, labels) >= 0.5
    lat, lng = (city.daily.places[name].to_numpy()[graph.place] for name in ("lat", "lng"))
    quarter = 2 * (lat > np.median(lat)) + (lng > np.median(lng))
    assert agreement(classes, quarter) < 0.1


def test_adding_people_is_the_same_as_starting_over(city_profiles):
    few = made_days(8, 1).place
    all_of_them = profiles_of_rows(few, np.arange(9), 100)
    first = profiles_of_rows(few[:5], np.arange(6), 100)
    updated = location_graph(first).merged(location_graph(all_of_them, first=5))
    anew = location_graph(all_of_them)
    assert (updated.place == anew.place).all()
    assert updated.weight == pytest.approx(anew.weight)
    assert updated.chances == pytest.approx(anew.chances)
    assert updated.n_pairs == anew.n_pairs == 56


def test_all_pairs_are_compared_a_part_at_a_time(monkeypatch):
    made = profiles_of_rows(made_days(9, 1).place, np.arange(10), 100)
    whole = location_graph(made)
    monkeypatch.setattr(classes, "PAIRS_AT_ONCE", 20)
    parts = location_graph(made)
    assert parts.n_pairs == whole.n_pairs == 72
    assert parts.weight == pytest.approx(whole.weight)
    assert (parts.chances == whole.chances).all()


def test_sampled_pairs_estimate_the_graph(city_profiles, graph):
    sampled = location_graph(city_profiles, most_pairs=8000, seed=1)
    assert sampled.n_pairs == 8000
    whole = np.zeros_like(graph.weight)
    at = np.searchsorted(graph.place, sampled.place)
    whole[np.ix_(at, at)] = sampled.weight
    assert np.corrcoef(whole.ravel(), graph.weight.ravel())[0, 1] > 0.9


def test_moves_as_well_as_visits():
    made = profiles_of_rows(made_days(6, 1).place, np.arange(7), 100)
    graph = location_graph(made, level="moves")
    assert (graph.weight == graph.weight.T).all()
    assert graph.weight.sum() > 0


def test_agreement_is_adjusted_mutual_information():
    rng = np.random.default_rng(0)
    one = rng.integers(0, 4, 60)
    for other in (one, rng.integers(0, 3, 60), (one + (rng.random(60) < 0.3)) % 4):
        assert agreement(one, other) == pytest.approx(adjusted_mutual_info_score(one, other), abs=1e-9)


def test_separation_prefers_true_groups():
    affinity = np.kron(np.eye(3), np.ones((4, 4))) + 0.1
    true, mixed = np.repeat(np.arange(3), 4), np.tile(np.arange(3), 4)
    assert separation(affinity, true) > separation(affinity, mixed)


def test_too_little_to_compare_is_refused():
    with pytest.raises(InputError, match="2 people"):
        location_graph(profiles_of_rows(made_days(1, 1).place, np.arange(2), 100))
    still = np.zeros((3, 72), dtype=np.int32)
    with pytest.raises(InputError, match="2 visited places"):
        usage_classes(location_graph(profiles_of_rows(still, np.arange(4), 100)))
