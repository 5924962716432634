"""The audit stays below true claims and catches planted faults."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest
from scipy import stats

from murmurate.attacks.audit import _bound, audit, audit_per_metre, copies, epsilon_of_shift, runs_on_traces
from murmurate.core.trips import Trips
from murmurate.errors import ParameterError
from murmurate.mechanisms.geoind import GeoIndistinguishability
from murmurate.mechanisms.ngram import NGram
from murmurate.noise import laplace_integers, planar_laplace, seeded
from murmurate.noise.discrete import discrete_gaussian
from murmurate.spaces.grid import Grid
from murmurate.spaces.sphere import great_circle_m

N = 40_000


def trace(*places: tuple[float, float]) -> Trips:
    return Trips(pl.DataFrame({"uid": "a", "tid": 1, "lat": [p[0] for p in places], "lng": [p[1] for p in places]}))


HERE, THERE = (60.17, 24.94), (60.1705, 24.94)
APART_M = float(great_circle_m(*HERE, *THERE))  # 55.6 m


def nearer_there(points_each: int):
    """How much nearer to the second place a trip's reports lie, summed: the log-likelihood ratio but for a factor."""

    def statistic(released: Trips):
        gain = great_circle_m(*HERE, released.lat, released.lng) - great_circle_m(*THERE, released.lat, released.lng)
        return gain.reshape(-1, points_each).sum(axis=1)

    return statistic


def geoind(**changes):
    return GeoIndistinguishability(**{"epsilon": 1.0, "radius_m": 50.0, "max_points": 1, **changes})


def audited(mechanism, one: Trips, other: Trips, statistic, n: int = N) -> float:
    outputs = runs_on_traces(mechanism, (one, other), statistic)
    return audit_per_metre(outputs, distance_m=APART_M, n=n, rng=seeded(1)).value


def test_geoind_keeps_its_promise_and_the_bound_is_not_idle():
    found = audited(geoind(), trace(HERE), trace(THERE), nearer_there(1))
    claim = geoind().guarantee().epsilon_per_m
    assert 0.8 * claim < found <= claim


def test_geoind_keeps_its_promise_for_whole_traces():
    mechanism = geoind(max_points=3)
    found = audited(mechanism, trace(*[HERE] * 3), trace(*[THERE] * 3), nearer_there(3))
    claim = mechanism.guarantee().epsilon_per_m
    assert 0.5 * claim < found <= claim


def test_halved_noise_is_caught():
    twin = geoind(radius_m=25.0)
    assert audited(twin, trace(HERE), trace(THERE), nearer_there(1)) > 1.5 * geoind().guarantee().epsilon_per_m


def test_a_trace_priced_as_one_point_is_caught():
    spends = audited(geoind(max_points=5), trace(*[HERE] * 5), trace(*[THERE] * 5), nearer_there(5))
    assert spends > 1.5 * geoind().guarantee().epsilon_per_m


def equal_reports(released: Trips):
    pairs = np.column_stack([released.lat, released.lng]).reshape(-1, 2, 2)
    return (pairs[:, 0] == pairs[:, 1]).all(axis=1)


def test_memo_claimed_for_any_trace_is_caught_and_its_true_claim_holds():
    memo = geoind(max_points=2, memo=True)
    claim = memo.guarantee().epsilon_per_m
    returning, wandering = trace(HERE, HERE), trace(HERE, THERE)
    assert audited(memo, returning, wandering, equal_reports) > claim
    assert audited(geoind(max_points=2), returning, wandering, equal_reports) <= claim
    # the same pattern of returns elsewhere: what the guarantee speaks of, at the price of one draw
    elsewhere = trace(THERE, THERE)
    assert audited(memo, returning, elsewhere, nearer_there(2)) <= claim / 2
    assert any("pattern of returns" in line for line in memo.guarantee().assumptions)


def lowest_bit(values):
    """Exponent of the last binary digit of numbers near zero; others count as coarse."""
    mantissa, exponent = np.frexp(values)
    last = (mantissa * 2.0**53).astype(np.int64)
    trailing = np.log2(np.maximum(last & -last, 1).astype(np.float64))
    return np.where(np.abs(values) < 32, exponent - 53 + trailing, 0.0)


def test_float_noise_on_float_coordinates_is_caught_and_the_lattice_is_not():
    scale_m, apart_m = 100.0, 75.0

    def float_noise(neighbour, n, rng):
        radius = -scale_m * np.log(rng.uniforms(n) * rng.uniforms(n))
        return lowest_bit(neighbour * apart_m + radius * np.cos(2 * np.pi * rng.uniforms(n)))

    def lattice_noise(neighbour, n, rng):
        x = np.full(n, round(neighbour * apart_m / 0.1))
        moved, _ = planar_laplace(x, np.zeros_like(x), epsilon_per_step=0.1 / scale_m, rng=rng)
        return lowest_bit(moved * 0.1)

    assert audit_per_metre(float_noise, distance_m=apart_m, n=N, rng=seeded(2)).value > 3 / scale_m
    assert audit_per_metre(lattice_noise, distance_m=apart_m, n=N, rng=seeded(2)).value <= 1 / scale_m


def counts(difference: int, scale: float, add=laplace_integers):
    return lambda neighbour, n, rng: add(np.full(n, 10 + neighbour * difference), scale=scale, rng=rng)


def test_laplace_keeps_its_promise_and_a_wrong_sensitivity_is_caught():
    assert 0.85 < audit(counts(1, 1.0), n=N, rng=seeded(3)).value <= 1.0
    assert audit(counts(3, 1.0), n=N, rng=seeded(3)).value > 2.0  # three trips of one person, priced as one
    assert audit(counts(3, 3.0), n=N, rng=seeded(3)).value <= 1.0


def test_gaussian_noise_is_judged_at_its_delta():
    delta = 1e-3
    epsilon = 1.0
    scale = 2.7  # enough for (1, 0.001) by the exact curve of the Gaussian mechanism
    claim = stats.norm.cdf(0.5 / scale - epsilon * scale) - np.exp(epsilon) * stats.norm.cdf(-0.5 / scale - epsilon * scale)
    assert claim < delta
    assert audit(counts(1, scale, discrete_gaussian), n=N, rng=seeded(4), delta=delta).value <= epsilon
    assert audit(counts(1, scale / 3, discrete_gaussian), n=N, rng=seeded(4), delta=delta).value > epsilon


def test_equal_inputs_give_no_bound():
    score = audit(counts(0, 1.0), n=N, rng=seeded(5))
    assert score.value < 0.05
    assert (score.better, score.chance, score.low) == ("lower", 0.0, score.value)
    assert audit(lambda neighbour, n, rng: np.zeros(n), n=100, rng=seeded(5)).value == 0.0


def test_the_bound_holds_as_often_as_it_says():
    """Right in at least 90 of 100 audits at 90 %: overfitting the choice of the event would show here."""
    over = sum(audit(counts(1, 1.0), n=400, rng=seeded(100 + k), confidence=0.9).value > 1.0 for k in range(100))
    assert over <= 10


def test_a_mechanism_that_reads_noisy_tables_is_fitted_for_every_output():
    grid = Grid(south=60.1, west=24.9, north=60.2, east=25.0, cell_m=5000)
    mechanism = NGram(space=grid, epsilon=30.0)
    outputs = runs_on_traces(
        mechanism, (trace((60.11, 24.91)), trace((60.19, 24.99))), lambda drawn: drawn.cell[drawn.offsets[:-1]]
    )
    drawn = outputs(0, 40, seeded(1))
    assert drawn.shape == (40,) and len(np.unique(drawn)) > 1
    assert audit(outputs, n=100, rng=seeded(1)).value <= 30


def test_bounds_are_those_of_clopper_and_pearson():
    low, high = stats.binomtest(40, 100).proportion_ci(0.99), stats.binomtest(10, 100).proportion_ci(0.99)
    assert float(_bound(40, 10, 100, delta=0.0, confidence=0.99)) == pytest.approx(np.log(low.low / high.high))
    assert float(_bound(0, 10, 100, delta=0.0, confidence=0.99)) == -np.inf
    assert float(_bound(100, 100, 100, delta=0.0, confidence=0.99)) < 0


def test_a_gaussian_claim_is_bounded_closely_and_half_its_noise_is_seen():
    """Mean 1 over deviation 2 at delta 1e-6 is epsilon 2.16: 4,000 outputs show most of it."""

    def counts(deviation):
        return lambda side, n, rng: rng.generator().normal(side, deviation, n)

    claim = epsilon_of_shift(0.5, 1e-6)
    found = audit(counts(2.0), n=4_000, rng=seeded(1), delta=1e-6, gaussian=True).value
    assert 0.5 * claim < found < claim
    assert audit(counts(1.0), n=4_000, rng=seeded(1), delta=1e-6, gaussian=True).value > claim
    assert audit(counts(2.0), n=4_000, rng=seeded(1), delta=1e-6).value < 0.5 * found


def test_copies_are_different_people():
    many = copies(trace(HERE, THERE), 5)
    assert (many.n_users, many.n_trips, many.n_points) == (5, 5, 10)
    assert many.lat.tolist() == [HERE[0], THERE[0]] * 5


def test_senseless_audits_are_refused():
    with pytest.raises(ParameterError, match="one number for each"):
        audit(lambda neighbour, n, rng: np.zeros(3), n=100, rng=seeded(1))
    with pytest.raises(ParameterError, match="one number for each"):
        audit(lambda neighbour, n, rng: np.full(n, np.nan), n=100, rng=seeded(1))
    with pytest.raises(ParameterError, match="n must be"):
        audit(counts(1, 1.0), n=5, rng=seeded(1))
    with pytest.raises(ParameterError, match="one trip"):
        runs_on_traces(geoind(), (copies(trace(HERE), 2), trace(HERE)), equal_reports)
