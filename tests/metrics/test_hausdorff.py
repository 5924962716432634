"""Hausdorff distances against shapely and against brute force."""

from __future__ import annotations

import numpy as np
import pytest
import shapely
from hypothesis import given, settings
from hypothesis import strategies as st

from murmurate.judging.review import evaluate
from murmurate.metrics.compare import compare
from murmurate.metrics.hausdorff import nearest, paired
from murmurate.spaces.sphere import METRES_PER_DEGREE


def walks(n, seed, spread=3000.0):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, 12, n)
    offsets = np.concatenate([[0], np.cumsum(sizes)])
    x, y = (np.concatenate([rng.normal(0, spread) + np.cumsum(rng.normal(0, 200, size)) for size in sizes]) for _ in range(2))
    return x, y, offsets


def line(x, y, offsets, k):
    points = np.column_stack([x, y])[offsets[k] : offsets[k + 1]]
    return shapely.Point(points[0]) if len(points) == 1 else shapely.LineString(points)


def test_pairs_agree_with_shapely():
    one, other = walks(200, 0), walks(200, 1)
    degrees = [(x / METRES_PER_DEGREE, y / METRES_PER_DEGREE, offsets) for x, y, offsets in (one, other)]
    order = np.random.default_rng(2).permutation(200)
    got = paired(degrees[0], order, degrees[1], np.arange(200))
    expected = [shapely.hausdorff_distance(line(*one, order[k]), line(*other, k)) for k in range(200)]
    # degrees are scaled at the latitude of the original, at most 0.1 N here
    assert got == pytest.approx(np.array(expected), rel=2e-6)


def test_degrees_are_scaled_at_the_latitude_of_the_original():
    lat, lng = np.full(4, 60.0), np.array([24.0, 24.01, 24.0, 24.02])
    ends = np.array([0, 2])
    got = paired((lat[:2], lng[:2], ends), np.array([0]), (lat[2:], lng[2:], ends), np.array([0]))
    assert got[0] == pytest.approx(0.01 * METRES_PER_DEGREE * np.cos(np.radians(60)))


def test_a_vertex_is_held_against_the_segment_not_its_ends():
    ends = np.array([0, 2])
    flat, raised = (np.array([0.0, 100.0]), np.zeros(2), ends), (np.array([50.0, 50.0]), np.array([10.0, 10.0]), ends)
    # from the raised point 10 m to the segment; from the segment's ends hypot(50, 10) back
    assert nearest(flat, raised, np.array([0]))[0] == pytest.approx(np.hypot(50, 10))


@settings(max_examples=25, deadline=None)
@given(seed=st.integers(0, 2**31), spread=st.sampled_from([10.0, 1000.0, 30000.0]))
def test_nearest_is_exact(seed, spread):
    originals, releases = walks(40, seed, spread), walks(8, seed + 1, spread)
    got = nearest(originals, releases, np.arange(8))
    expected = [min(shapely.hausdorff_distance(line(*releases, k), line(*originals, j)) for j in range(40)) for k in range(8)]
    assert got == pytest.approx(np.array(expected), rel=1e-9)


def test_nearest_of_a_copy_is_zero_and_never_above_its_own_original(original, noise):
    comparison = compare(noise, original)
    free = nearest(comparison.original.lines, comparison.released.lines, np.arange(noise.n_trips))
    own = paired(comparison.original.track, np.arange(noise.n_trips), comparison.released.track, np.arange(noise.n_trips))
    assert (free <= own * 1.001).all()
    assert nearest(comparison.original.lines, comparison.original.lines, np.arange(50)).max() == 0


def test_a_sample_is_named(original):
    found = evaluate(original, original, metrics=["hausdorff_nearest"])
    assert found["hausdorff_nearest.mean"].note == ""
    from murmurate.metrics.hausdorff import hausdorff_nearest

    some = hausdorff_nearest(compare(original, original), sampled=100)
    assert some[0].n == 100
    assert "100 of 600" in some[0].note
