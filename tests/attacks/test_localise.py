"""Localise: what observers find where it is easy, what chance gives where it is not, and that they are told apart."""

from __future__ import annotations

from itertools import pairwise, product

import numpy as np
import pytest

from murmurate.attacks.localise import CLAIMED, KNOWLEDGE, Scene, hide, link_sets, localise, overhead, scores
from murmurate.attacks.localise_hmm import decode_marginals, decode_viterbi
from murmurate.attacks.localise_pool import localise_pool
from murmurate.errors import InputError, ParameterError
from murmurate.judging.review import attack
from murmurate.mechanisms.plausible.model import as_trips
from murmurate.papers.plausible.baselines import uniform_iid
from murmurate.profiles.aggregate import Aggregate
from plausible_days import GRID, made_days, trips_of

N = GRID.n_cells


@pytest.fixture(scope="module")
def days():
    return made_days(60, 2, seed=4)


@pytest.fixture(scope="module")
def aggregate(days):
    return Aggregate.of(days.place, GRID, N, person=days.person)


def small_model(seed, places=4):
    rng = np.random.default_rng(seed)
    step = rng.random((places, places)) + 0.05
    visit = rng.random(places)
    return np.log(step / step.sum(axis=1, keepdims=True)), np.log(visit / visit.sum())


@pytest.mark.parametrize("seed", range(5))
def test_decoding_equals_brute_force(seed):
    log_step, log_visit = small_model(seed)
    sent = np.random.default_rng(seed + 50).integers(0, 4, (1, 4, 3)).astype(np.int32)
    paths = {}
    for picks in product(range(3), repeat=4):
        path = [sent[0, q, k] for q, k in enumerate(picks)]
        paths[picks] = log_visit[path[0]] + sum(log_step[a, b] for a, b in pairwise(path))
    best = max(paths, key=paths.get)
    decoded = decode_viterbi(sent, log_step, log_visit)[0]
    value = log_visit[decoded[0]] + sum(log_step[a, b] for a, b in pairwise(decoded))
    assert value == pytest.approx(paths[best])
    marginals = decode_marginals(sent, log_step, log_visit)[0]
    for query in range(4):
        mass = {}
        different = {tuple(sent[0, q, k] for q, k in enumerate(picks)): log_p for picks, log_p in paths.items()}
        for path, log_p in different.items():  # a place sent twice is one place
            mass[path[query]] = mass.get(path[query], 0.0) + np.exp(log_p)
        assert mass[marginals[query]] == pytest.approx(max(mass.values()))


def test_the_order_of_a_set_tells_nothing(days, aggregate):
    generator = np.random.default_rng(1)
    fakes = uniform_iid(60 * 4, 72, N, generator).reshape(60, 4, 72)
    scene = hide(days.nth_days(1).place, fakes, generator=generator)
    at = (scene.sent == scene.true[:, :, None]).argmax(axis=2)
    assert np.bincount(at.ravel(), minlength=5).std() < 6 * np.sqrt(at.size / 5)
    assert sorted(scene.sent[3, 7]) == sorted([scene.true[3, 7], *fakes[3, :, 14]])


def test_jumping_fakes_are_seen_through(days, aggregate):
    generator = np.random.default_rng(1)
    fakes = uniform_iid(60 * 4, 72, N, generator).reshape(60, 4, 72)
    scene = hide(days.nth_days(1).place, fakes, generator=generator)
    found = {part.name: part for part in localise(scene, aggregate)}
    assert found["hmm_marginals"].wrong.mean() < 0.1
    assert found["fewest_moves"].wrong.mean() < 0.3
    assert found["most_moves"].wrong.mean() > 0.8
    assert "another_day" not in found
    assert found["hmm_viterbi"].error_m.mean() < found["hmm_viterbi"].blind_m


def test_real_days_of_others_hide_and_another_day_finds(days, aggregate):
    generator = np.random.default_rng(1)
    people = days.nth_days(1).place
    others = np.stack([np.roll(people, k, axis=0) for k in range(1, 5)], axis=1)
    found = localise(hide(people, others, generator=generator), aggregate, other_day=days.nth_days(0).place)
    wrong = {part.name: part.wrong.mean() for part in found}
    assert wrong["classifier"] > 0.5
    assert wrong["another_day"] < 0.15
    assert wrong["hmm_own_profile"] < wrong["hmm_marginals"]


def test_the_classifier_learns_what_gives_fakes_away(days, aggregate):
    """Fakes that never return home are told by it, though their moves and likelihood are those of real days."""
    generator = np.random.default_rng(3)
    people = days.nth_days(1).place
    fakes = np.stack([np.roll(people, k, axis=0) for k in range(1, 5)], axis=1).copy()
    fakes[:, :, 60:] = (fakes[:, :, 60:] + 7) % 100
    wrong = {part.name: part.wrong.mean() for part in localise(hide(people, fakes, generator=generator), aggregate)}
    assert wrong["classifier"] < 0.35
    assert wrong["classifier"] < wrong["most_likely"]


def test_the_rhythm_gives_fakes_away_that_live_by_night(days, aggregate):
    generator = np.random.default_rng(3)
    people = days.nth_days(1).place
    fakes = np.stack([np.roll(np.roll(people, k, axis=0), 36, axis=1) for k in range(1, 5)], axis=1)
    rhythms = days.nth_days(0).place, np.roll(days.nth_days(0).place, 36, axis=1)
    found = localise(hide(people, fakes, generator=generator), aggregate, rhythms=rhythms)
    wrong = {part.name: part.wrong.mean() for part in found}
    assert wrong["rhythm_ratio"] < 0.3
    assert wrong["classifier"] < 0.3
    assert wrong["most_moves"] > 0.6


def test_linking_follows_those_who_stay(aggregate):
    still = np.tile(np.array([5, 50, 90], dtype=np.int32)[None, :, None], (1, 1, 72))
    scene = hide(still[:, 0], still[:, 1:], generator=np.random.default_rng(0))
    linked = link_sets(scene.sent, aggregate.log_steps(2))
    assert (linked == linked[:, :, :1]).all()


def test_scores_stand_beside_chance(days, aggregate):
    fakes = np.stack([np.roll(days.nth_days(1).place, 1, axis=0)], axis=1)
    found = scores(localise(hide(days.nth_days(1).place, fakes, generator=np.random.default_rng(0)), aggregate), 1)
    assert all(score.chance is not None and score.note for score in found)
    assert found[0].chance == 0.5
    assert {score.name.split(".")[1] for score in found} <= set(KNOWLEDGE)
    assert "another_day" not in CLAIMED


def test_sporadic_queries_and_overhead(days):
    people = days.nth_days(1).place
    fakes = np.repeat(people[:, None, :], 3, axis=1)
    generator = np.random.default_rng(0)
    scene = hide(people, fakes, every=4, generator=generator, choose=generator.random(72))
    assert 8 < len(scene.query) < 30
    classes = np.arange(N) % 5
    assert overhead(scene, classes) == (1.0, 1.0)
    spread = Scene(scene.true, scene.sent + np.arange(4, dtype=np.int32), scene.query)
    assert overhead(spread, classes)[0] == 4.0
    assert overhead(spread)[1] is None
    with pytest.raises(ParameterError, match="no step"):
        hide(people, fakes, generator=generator, choose=np.ones(72))
    with pytest.raises(InputError, match="like the"):
        hide(people, fakes[:, :, :5], generator=generator)


def test_a_release_is_attacked_by_name(days, tmp_path):
    released = as_trips(made_days(300, 1, seed=9).place, GRID, "UTC")
    library = tmp_path / "days.parquet"
    trips_of(made_days(120, 2, seed=9)).table.write_parquet(library)
    options = {"localise": {"grid": GRID, "library": str(library)}}
    found = attack(released, trips_of(made_days(60, 3, seed=4)), attacks=["localise"], options=options)
    assert 0 < found["localise.known_library"].value < 1
    assert found["localise.hmm_marginals"].chance == pytest.approx(10 / 11)
    assert found["localise.another_day"].value < found["localise.most_moves"].value
    short = released.take_points(np.arange(released.n_points) % 2 == 0)
    assert "whole days" in attack(short, trips_of(days), attacks=["localise"]).skipped["localise"]


def test_too_few_people_or_fakes_are_refused(days):
    with pytest.raises(InputError, match="two full days"):
        localise_pool(made_days(3, 2), days.place, GRID)
    with pytest.raises(InputError, match="pool of at least"):
        localise_pool(days, days.place[:5], GRID)
