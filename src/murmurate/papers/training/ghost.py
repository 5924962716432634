"""Exact per-unit gradient norms and clipped gradient sums without per-unit gradients.

Every layer of a network adds a *tap*, an array of zeros, to what it puts out; the gradient with respect to the taps is what
flows back to each gram. For a dense layer with inputs a_j and flows g_j the squared norm of a unit's gradient is
sum over pairs (a_j.a_k + 1)(g_j.g_k), for a table looked up at i_j it is sum over pairs [i_j = i_k] g_j.g_k. The clipped sum
follows from the same arrays with the flows scaled unit by unit, so nothing is computed twice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, Protocol

from numpy.typing import NDArray

Array = Any
"""A jax array."""
Params = dict[str, Any]
"""jax arrays by name."""
Arrays = dict[str, NDArray[Any]]
"""Parameters as plain arrays by name."""


@dataclass(frozen=True)
class Layer:
    """A dense layer (parameters `name.w`, `name.b`) or a table of rows (`name.w`)."""

    name: str
    kind: Literal["dense", "table"]
    width: int
    looks: int = 1
    """How many rows of a table one gram looks up."""


class Network(Protocol):
    """What private training needs to know of a network; it must be hashable, as it is compiled for."""

    @property
    def layers(self) -> tuple[Layer, ...]:
        """Return the layers that have parameters."""
        ...

    def losses(self, params: Params, taps: Params, columns: Params, key: Array) -> tuple[Array, Params]:
        """Return the loss of each gram [units, grams], and what each layer was given: inputs (dense) or rows (table)."""
        ...


def clipped_sum(
    network: Network, params: Params, columns: Params, weight: Array, key: Array, *, clip: float
) -> tuple[Params, Array, Array]:
    """Return the sum over units of clipped gradients, the squared norms before clipping, and the summed loss."""
    import jax
    import jax.numpy as jnp

    def total(taps: Params) -> tuple[Array, Params]:
        losses, given = network.losses(params, taps, columns, key)
        return jnp.sum(losses * weight), given

    taps = {layer.name: jnp.zeros(_tap_shape(layer, weight.shape), jnp.float32) for layer in network.layers}
    (loss, given), flows = jax.value_and_grad(total, has_aux=True)(taps)
    squared = sum(_squared_norm(layer, given[layer.name], flows[layer.name]) for layer in network.layers)
    factor = jnp.minimum(1.0, clip / jnp.sqrt(jnp.maximum(squared, 1e-30)))
    whole = jnp.isfinite(squared)
    factor = jnp.where(whole, factor, 0.0)

    def cleaned(values: Params) -> Params:
        return {
            name: jnp.where(whole.reshape(-1, *[1] * (array.ndim - 1)), array, jnp.zeros((), array.dtype))
            for name, array in values.items()
        }

    # a unit whose gradient overflowed adds nothing: no single unit may turn the sum into something else than numbers,
    # and neither zero times what it was given nor zero times what flows back is zero there
    flows, given = cleaned(flows), cleaned(given)
    sums: Params = {}
    for layer in network.layers:
        sums |= _gradient(layer, given[layer.name], flows[layer.name], factor, params)
    return sums, squared, loss


def plain_sum(network: Network, params: Params, columns: Params, weight: Array, key: Array) -> tuple[Params, Array]:
    """Return the same sum without clipping, by ordinary differentiation: what a non-private user would run."""
    import jax
    import jax.numpy as jnp

    def total(given: Params) -> Array:
        taps = {layer.name: jnp.zeros((), jnp.float32) for layer in network.layers}
        return jnp.sum(network.losses(given, taps, columns, key)[0] * weight)

    loss, sums = jax.value_and_grad(total)(params)
    return sums, loss


def _tap_shape(layer: Layer, grams: tuple[int, int]) -> tuple[int, ...]:
    return (*grams, layer.width) if layer.looks == 1 else (*grams, layer.looks, layer.width)


def _squared_norm(layer: Layer, given: Array, flow: Array) -> Array:
    import jax.numpy as jnp

    units = flow.shape[0]
    flat = flow.reshape(units, -1, layer.width)
    if layer.kind == "table":
        rows = given.reshape(units, -1)
        if rows.shape[1] == 1:
            return jnp.sum(flat * flat, axis=(1, 2))
        alike = rows[:, :, None] == rows[:, None, :]
    else:
        inputs = given.reshape(units, -1, given.shape[-1])
        if inputs.shape[1] == 1:
            return (jnp.sum(inputs * inputs, axis=(1, 2)) + 1.0) * jnp.sum(flat * flat, axis=(1, 2))
        alike = jnp.einsum("uji,uki->ujk", inputs, inputs) + 1.0
    return jnp.sum(alike * jnp.einsum("ujo,uko->ujk", flat, flat), axis=(1, 2))


def _gradient(layer: Layer, given: Array, flow: Array, factor: Array, params: Params) -> Params:
    """Sum what flows back over units, each unit's times its factor; the narrower side is the one that is scaled."""
    import jax.numpy as jnp

    scale = jnp.repeat(factor, flow.size // flow.shape[0] // layer.width, total_repeat_length=flow.size // layer.width)[:, None]
    flat = flow.reshape(-1, layer.width)
    if layer.kind == "table":
        return {f"{layer.name}.w": jnp.zeros_like(params[f"{layer.name}.w"]).at[given.reshape(-1)].add(flat * scale)}
    inputs = given.reshape(-1, given.shape[-1])
    if inputs.shape[1] < layer.width:
        return {f"{layer.name}.w": (inputs * scale).T @ flat, f"{layer.name}.b": scale[:, 0] @ flat}
    scaled = flat * scale
    return {f"{layer.name}.w": inputs.T @ scaled, f"{layer.name}.b": jnp.sum(scaled, axis=0)}
