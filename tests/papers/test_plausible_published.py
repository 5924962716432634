"""as_published: the three tests are met by all that leaves, and refusals say which parameter to relax."""

from __future__ import annotations

import numpy as np
import pytest

from murmurate.core.guarantee import NoGuarantee, PlausibleDeniability
from murmurate.errors import InputError, ParameterError
from murmurate.mechanisms.plausible import Plausible
from murmurate.noise import seeded
from murmurate.papers.plausible.baselines import aggregate_iid, uniform_iid, walk_aggregate, walk_user
from murmurate.papers.plausible.decoding import decode_fakes, semantic_seed
from murmurate.papers.plausible.published import fill_pool, learn, with_more_seeds
from murmurate.profiles.mobility import profiles_of_rows
from murmurate.profiles.similarity import geographic, semantic_visits
from plausible_days import GRID, made_days, trips_of


def settings(**changes):
    return Plausible(**{"space": GRID, "n_out": 60, "variant": "as_published", "classes": 5, "seed_share": 0.4, **changes})


def published_days(people=60, seed=2):
    """Cells of the grid; the last ones are nobody's."""
    days = made_days(people, 2, seed=seed)
    return type(days)(days.person, days.day, days.place, days.coverage, GRID.n_cells)


@pytest.fixture(scope="module")
def learned():
    return learn(published_days(), settings(), seeded(1))


@pytest.fixture(scope="module")
def pool(learned):
    return fill_pool(learned, settings(k=3), seeded(2))


def test_all_that_leaves_passed_all_tests(pool, learned):
    made = profiles_of_rows(pool.place, np.arange(len(pool.place) + 1), learned.chosen.n_places)
    rows = np.arange(len(pool.place))
    assert geographic(made, learned.profiles)[rows, pool.seed].max() <= 0.1
    for fake, seed in zip(pool.place, pool.seed, strict=True):
        assert not set(fake.tolist()) & set(learned.seeds[seed].tolist())
    own = semantic_visits(learned.profiles, made)[pool.seed, rows]
    near = np.abs(semantic_visits(learned.alternative_profiles, made) - own) <= 0.1
    assert near.sum(axis=0).min() >= 3
    assert set(pool.passed) == {"similarity", "intersection", "deniability", "all"}
    assert pool.passed["all"] <= min(pool.passed.values()) + 1e-12
    assert np.isfinite(pool.log_likelihood).all()


def test_seeds_and_alternatives_are_different_people(learned):
    assert len(learned.seeds) + len(learned.alternatives) == 60
    assert len(learned.seeds) == 24


def test_seeds_are_capped(learned):
    pool = fill_pool(learned, settings(most_per_seed=3, n_out=50), seeded(2))
    assert np.bincount(pool.seed).max() <= 3
    with pytest.raises(InputError, match="most_per_seed"):
        fill_pool(learned, settings(most_per_seed=1, n_out=100), seeded(2))


def test_linkage_never_leaves():
    out = settings(n_out=20).apply(trips_of(published_days()), seeded(3))
    assert set(out.columns) == {"uid", "tid", "datetime", "lat", "lng", "cell"}
    assert out.n_trips == 20


def test_a_semantic_seed_is_its_class_without_itself():
    classes = np.array([0, 0, 0, 1, 1, -1])
    seed = np.repeat(np.array([0, 3], dtype=np.int32), 6)
    allowed = np.zeros((12, 6), dtype=bool)
    known = np.flatnonzero(classes >= 0)
    semantic_seed(seed, classes, known, allowed, 0.0, 1.0, 0.75, 0, np.random.default_rng(0))
    assert np.flatnonzero(allowed[0]).tolist() == [1, 2]
    assert np.flatnonzero(allowed[11]).tolist() == [4]
    semantic_seed(seed, classes, known, allowed, 0.0, 1.0, 1.0, 1, np.random.default_rng(0))
    assert np.flatnonzero(allowed[11]).tolist() == [1, 2, 4]  # par_m 1: everything persists
    semantic_seed(seed, classes, known, allowed, 0.0, 1.0, 1.0, 2, np.random.default_rng(0))
    assert allowed[11].sum() == 2  # one of each


def test_a_class_with_one_place_falls_back_to_where_the_seed_never_is():
    classes = np.array([0, 1, 1, 2])
    allowed = np.zeros((4, 4), dtype=bool)
    seed = np.array([0, 0, 1, 1], dtype=np.int32)
    semantic_seed(seed, classes, np.arange(4), allowed, 0.0, 1.0, 0.5, 0, np.random.default_rng(0))
    assert np.flatnonzero(allowed[0]).tolist() == [2, 3]


def test_decoding_without_perturbation_is_the_likeliest_path(learned):
    log_step, log_visit = np.log(learned.aggregate.steps), learned.aggregate.log_visits()
    plain = decode_fakes(learned.seeds, learned.classes, log_step, log_visit, 0.0, 1.0, 0.0, 1.0, 0, np.random.default_rng(1))
    wild = decode_fakes(learned.seeds, learned.classes, log_step, log_visit, 0.0, 1.0, 0.0, 4.0, 0, np.random.default_rng(1))
    likely = learned.aggregate.log_likelihood
    assert (likely(plain) >= likely(wild) - 1e-9).all()
    assert (likely(plain) > likely(wild)).any()


def test_adding_seeds_is_learning_anew(learned):
    more = learned.seeds[:3][:, ::-1].copy()
    updated = with_more_seeds(learned, more, settings())
    assert len(updated.seeds) == 27
    assert updated.aggregate.counts.sum() == learned.aggregate.counts.sum() + 3 * 71
    assert updated.graph.n_pairs == 27 * 26
    assert fill_pool(updated, settings(n_out=10), seeded(1)).place.shape == (10, 72)


@pytest.mark.parametrize(
    ("days", "changes", "words"),
    [
        (published_days(2), {}, "seed_share"),
        (published_days(10), {"k": 50}, "lower k"),
        (published_days(12), {"delta_d": 0.0, "k": 5}, "delta_d"),
    ],
)
def test_refusals_say_what_to_relax(days, changes, words):
    with pytest.raises(InputError) as refused:
        chosen = settings(n_out=5, **changes)
        fill_pool(learn(days, chosen, seeded(1)), chosen, seeded(1))
    assert words in str(refused.value)
    assert any(digit in str(refused.value) for digit in "0123456789")


def test_people_with_one_place_each():
    still = np.repeat(np.arange(12, dtype=np.int32)[:, None], 72, axis=1)
    days = type(published_days())(np.arange(12), np.zeros(12, np.int64), still, np.ones(12), GRID.n_cells)
    pool = fill_pool(learn(days, settings(n_out=5, classes=2), seeded(1)), settings(n_out=5, classes=2), seeded(1))
    assert len(pool.place) == 5


def test_promises_and_words():
    guarantee = settings(k=4).guarantee()
    assert isinstance(guarantee, PlausibleDeniability)
    assert guarantee.k == 4
    assert "not differential privacy" in " ".join(settings().statement())
    seeded_variant = settings(variant="own-seeded")
    assert isinstance(seeded_variant.guarantee(), NoGuarantee)
    assert "promises nothing" in " ".join(seeded_variant.statement())
    assert settings().expected_error() != seeded_variant.expected_error()


# -- baselines --------------------------------------------------------------------------------------------------------


def test_baselines(learned):
    generator = np.random.default_rng(0)
    n = learned.chosen.n_places
    uniform = uniform_iid(200, 72, n, generator)
    assert np.bincount(uniform.ravel(), minlength=n).min() > 60
    by_popularity = aggregate_iid(200, 72, learned.aggregate, generator)
    assert np.corrcoef(np.bincount(by_popularity.ravel(), minlength=n), learned.aggregate.visited)[0, 1] > 0.98
    walked = walk_aggregate(50, 72, learned.aggregate, generator)
    stays = [(part[:, 1:] == part[:, :-1]).mean() for part in (by_popularity, walked)]
    assert stays[1] > 0.8 > stays[0]
    own = walk_user(learned.seeds, 4, generator)
    assert own.shape == (24, 4, 72)
    for person in range(24):
        assert set(own[person].ravel().tolist()) <= set(learned.seeds[person].tolist())


@pytest.mark.parametrize("changes", [{"distance": "emd", "delta_s": 0.3}, {"graph": "moves"}])
def test_the_other_readings_run_and_their_tests_hold(changes):
    chosen = settings(n_out=30, **changes)
    found = learn(published_days(), chosen, seeded(1))
    pool = fill_pool(found, chosen, seeded(2))
    assert len(pool.place) == 30
    for fake, seed in zip(pool.place, pool.seed, strict=True):
        assert not set(fake.tolist()) & set(found.seeds[seed].tolist())


def test_the_mapping_by_moves_makes_other_classes(learned):
    by_moves = learn(published_days(), settings(graph="moves"), seeded(1))
    assert not np.array_equal(by_moves.graph.weight, learned.graph.weight)


@pytest.mark.parametrize("changes", [{"distance": "euclid"}, {"graph": "places"}])
def test_unknown_readings_are_refused(changes):
    with pytest.raises(ParameterError):
        settings(**changes)
