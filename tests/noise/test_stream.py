"""The stream: uniform, repeatable only when seeded, never the same twice when secure."""

from __future__ import annotations

import copy
import multiprocessing
import pickle

import numpy as np
import pytest
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes
from scipy import stats

from brackets import assert_bracketed, half_normal_law
from murmurate.errors import ParameterError
from murmurate.noise import Randomness, secure, seeded

MOST_UNLIKELY = 1e-6


def test_words_are_the_key_stream():
    key = bytes(range(32))
    whole = Cipher(algorithms.AES(key), modes.CTR(bytes(16))).encryptor().update(bytes(8 * 1000))
    rng = Randomness(key)
    parts = np.concatenate([rng.words(3), rng.words(0), rng.words(997)])
    assert parts.tobytes() == whole


def test_a_stream_longer_than_its_block_goes_on():
    whole = seeded(1).words(400_000)
    rng = seeded(1)
    assert np.array_equal(np.concatenate([rng.words(131_073), rng.words(268_927)]), whole)
    assert np.unique(whole).size == whole.size


def test_seeded_repeats_and_secure_does_not():
    assert np.array_equal(seeded(4).words(50), seeded(4).words(50))
    assert not np.array_equal(seeded(4).words(50), seeded(5).words(50))
    assert not np.array_equal(secure().words(50), secure().words(50))
    assert (seeded(4).seeded, secure().seeded) == (True, False)


def test_no_copy_of_a_secure_stream_repeats_it():
    rng = secure()
    copies = [rng, pickle.loads(pickle.dumps(rng)), copy.copy(rng), copy.deepcopy(rng), *rng.spawn(2)]
    assert len({copied.words(4).tobytes() for copied in copies}) == len(copies)
    assert not any(copied.seeded for copied in copies)
    assert b"secure" in pickle.dumps(rng)  # only the way to make another one travels, no key


def test_spawned_seeded_streams_repeat_and_differ():
    first, again = seeded(9).spawn(3), seeded(9).spawn(3)
    words = [rng.words(4).tobytes() for rng in first]
    assert words == [rng.words(4).tobytes() for rng in again]
    assert len({*words, seeded(9).words(4).tobytes()}) == 4
    assert all(rng.seeded for rng in first)


def _child(connection, rng):
    connection.send_bytes(rng.words(4).tobytes())


@pytest.mark.filterwarnings("ignore:.*fork.*")
def test_forked_children_do_not_share_noise():
    rng = secure()
    rng.words(1)
    context = multiprocessing.get_context("fork")
    seen = []
    for _ in range(2):
        here, there = context.Pipe()
        process = context.Process(target=_child, args=(there, rng))
        process.start()
        seen.append(here.recv_bytes())
        process.join()
    assert len({*seen, rng.words(4).tobytes()}) == 3


def test_repr_tells_no_key():
    rng = Randomness(bytes(range(32)))
    assert repr(rng) == "<Randomness, seeded: for tests and demos only>"
    assert repr(secure()) == "<Randomness, secure>"


def test_uniforms_are_uniform_and_open():
    draws = seeded(2).uniforms(200_000)
    assert draws.min() > 0
    assert draws.max() < 1
    assert stats.kstest(draws, "uniform").pvalue > MOST_UNLIKELY


@pytest.mark.parametrize(("low", "high"), [(0, 6), (-3, 4), (5, 6)])
def test_integers_fall_evenly(low, high):
    draws = seeded(3).integers(low, high, 60_000)
    counts = np.bincount(draws - low, minlength=high - low)
    assert len(counts) == high - low
    assert high - low == 1 or stats.chisquare(counts).pvalue > MOST_UNLIKELY


def test_integers_have_no_modulo_bias():
    # with a span of 3/4 of 2^63 plain remainders would fall into the lower part 2/3 of the time, not half
    span = 3 * 2**61
    draws = seeded(3).integers(0, span, 20_000)
    assert abs((draws < span // 2).mean() - 0.5) < 6 * 0.5 / np.sqrt(20_000)
    wide = seeded(3).integers(-(2**62), 2**62, 1000)
    assert wide.min() < 0 < wide.max()


@pytest.mark.parametrize(("low", "high"), [(3, 3), (4, 3), (0, 2**64), (-(2**64), 0)])
def test_impossible_ranges_are_refused(low, high):
    with pytest.raises(ParameterError, match="low < high"):
        seeded(1).integers(low, high, 1)


@pytest.mark.parametrize("seed", [-1, 1.5, "7", True])
def test_odd_seeds_are_refused(seed):
    with pytest.raises(ParameterError, match="seed"):
        seeded(seed)


def test_permutations_fall_evenly():
    rng = seeded(6)
    codes = [int("".join(map(str, rng.permutation(3)))) for _ in range(6000)]
    _, counts = np.unique(codes, return_counts=True)
    assert len(counts) == 6
    assert stats.chisquare(counts).pvalue > MOST_UNLIKELY
    assert sorted(rng.permutation(1000)) == list(range(1000))


def test_normals_are_normal_also_in_the_tail():
    draws = seeded(8).normals(2_000_000)
    assert stats.kstest(draws[:500_000], "norm").pvalue > MOST_UNLIKELY
    for edge in (1.0, 3.0, 3.6541528853610088, 4.2):  # the third is where the ziggurat's tail begins
        expected = 2 * stats.norm.sf(edge)
        assert abs((np.abs(draws) > edge).mean() - expected) < 6 * np.sqrt(expected / draws.size)
    assert abs((draws > 0).mean() - 0.5) < 6 * 0.5 / np.sqrt(draws.size)


def test_normals_are_bracketed():
    rng = secure()
    assert_bracketed(lambda scale: np.abs(rng.normals(20_000) * scale), half_normal_law(), 1.0)


def test_generators_follow_their_stream():
    assert seeded(1).generator().random() == seeded(1).generator().random()
    assert secure().generator().random() != secure().generator().random()
