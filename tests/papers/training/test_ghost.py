from __future__ import annotations

import numpy as np
import pytest

from murmurate.papers.dp_loc.initialiser_vae import EndsVAE
from murmurate.papers.dp_loc.networks import PublishedNet, RelativeNet
from murmurate.papers.training.ghost import clipped_sum, plain_sum
from small_network import SmallNet

UNITS, GRAMS = 6, 5


def case(name):
    import jax.numpy as jnp

    generator = np.random.default_rng(1)
    network, sizes = {
        "small": (SmallNet(), {"a": 6, "b": 6, "c": 6, "y": 3}),
        "published": (PublishedNet(20, 9, 24, 7, 11), {"cell": 20, "destination": 20, "hour": 24, "offset": 9}),
        "relative": (RelativeNet(5, 6, 9, 24, 8), {"from": 5, "to": 5, "hour": 24, "way": 6, "offset": 9}),
        "vae": (EndsVAE(15, 24, 6, 4), {"source": 15, "destination": 15, "hour": 24}),
    }[name]
    columns = {column: generator.integers(0, n, (UNITS, GRAMS)).astype(np.int32) for column, n in sizes.items()}
    weight = generator.random((UNITS, GRAMS)).astype(np.float32)
    weight[2, 3:] = 0
    weight[5] = 0  # a unit of padding
    return network, {name: jnp.asarray(value) for name, value in network.start(generator).items()}, columns, weight


def per_unit_gradients(network, params, columns, weight, key):
    """Brute force: each unit's gradient by ordinary differentiation of its own loss."""
    import jax

    gradient = jax.jit(lambda alone: plain_sum(network, params, columns, alone, key)[0])
    found = []
    for unit in range(UNITS):
        alone = np.zeros_like(weight)
        alone[unit] = weight[unit]
        found.append({name: np.asarray(value, dtype=np.float64) for name, value in gradient(alone).items()})
    return found


def clipped(network, params, columns, weight, key):
    """The sum as a compiled function of the weights and the clipping norm."""
    import jax

    return jax.jit(lambda weight, clip: clipped_sum(network, params, columns, weight, key, clip=clip))


@pytest.mark.parametrize("name", ["small", "published", "relative", "vae"])
def test_clipped_sums_are_those_of_brute_force(name):
    import jax

    network, params, columns, weight = case(name)
    key = jax.random.key(3)
    gradients = per_unit_gradients(network, params, columns, weight, key)
    norms = np.array([sum((part**2).sum() for part in gradient.values()) for gradient in gradients])
    ours = clipped(network, params, columns, weight, key)
    for clip in (0.05, 0.5, 1e6):
        sums, squared, _ = ours(weight, clip)
        assert np.asarray(squared) == pytest.approx(norms, rel=1e-5, abs=1e-9)
        factors = np.minimum(1.0, clip / np.sqrt(np.maximum(norms, 1e-30)))
        assert set(sums) == set(params)
        for layer, value in sums.items():
            wanted = sum(gradient[layer] * factor for gradient, factor in zip(gradients, factors, strict=True))
            assert np.asarray(value) == pytest.approx(wanted, rel=1e-4, abs=1e-6 * max(1, np.abs(wanted).max()))


@pytest.mark.parametrize("name", ["small", "relative"])
def test_clipped_sums_are_those_of_jax_privacy(name):
    import jax
    from jax_privacy.clipping import clipped_grad

    network, params, columns, weight = case(name)
    key = jax.random.key(3)

    def unit_loss(given, batch):
        taps = {layer.name: 0.0 for layer in network.layers}
        losses, _ = network.losses(given, taps, {name: value[None] for name, value in batch["columns"].items()}, key)
        return (losses[0] * batch["weight"]).sum()

    theirs = jax.jit(clipped_grad(unit_loss, l2_clip_norm=0.1, keep_batch_dim=False))(
        params, {"columns": columns, "weight": weight}
    )
    ours, _, _ = clipped(network, params, columns, weight, key)(weight, 0.1)
    for layer, value in ours.items():
        assert np.asarray(value) == pytest.approx(np.asarray(theirs[layer]), rel=1e-4, abs=1e-7)


def test_a_unit_never_moves_the_sum_by_more_than_the_clipping_norm():
    import jax

    network, params, columns, weight = case("small")
    key = jax.random.key(3)
    ours = clipped(network, params, columns, weight, key)
    whole, _, _ = ours(weight, 0.05)
    for unit in range(UNITS):
        without = weight.copy()
        without[unit] = 0
        rest, _, _ = ours(without, 0.05)
        moved = np.sqrt(sum(((np.asarray(whole[name]) - np.asarray(rest[name])) ** 2).sum() for name in whole))
        assert moved <= 0.05 * (1 + 1e-4)


def test_an_overflowing_unit_adds_nothing():
    import jax

    network, params, columns, weight = case("small")
    weight[0, 0] = np.float32(3e38)
    sums, _, _ = clipped(network, params, columns, weight, jax.random.key(1))(weight, 0.5)
    assert all(np.isfinite(np.asarray(value)).all() for value in sums.values())


def test_a_unit_whose_activations_overflow_adds_nothing():
    """Its inputs to inner layers are infinite, and zero times infinity would be no number."""
    import jax

    network, params, columns, weight = case("vae")
    columns["source"][1:] = columns["source"][1:] % 14
    columns["source"][0] = 14  # a place nobody else starts from
    params["source.w"] = params["source.w"].at[14].set(1e30)
    sums, squared, _ = clipped(network, params, columns, weight, jax.random.key(1))(weight, 0.5)
    without = weight.copy()
    without[0] = 0
    rest, _, _ = clipped(network, params, columns, weight, jax.random.key(1))(without, 0.5)
    assert not np.isfinite(np.asarray(squared)[0])
    for name, value in sums.items():
        assert np.isfinite(np.asarray(value)).all()
        assert np.asarray(value) == pytest.approx(np.asarray(rest[name]), abs=1e-5)
