"""Side results of DP-Loc (tables 4 and 5, section 8.3.2): how well networks predict the next cell, and with which inputs.

Called by dp_loc_paper.py. The recurrent network exists for this comparison only.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, replace

import numpy as np

from murmurate import noise
from murmurate.mechanisms.dp_loc import DPLoc
from murmurate.mechanisms.dp_loc.routes import CountRouter
from murmurate.mechanisms.dp_loc.settings import VARIANTS
from murmurate.mechanisms.dp_loc.tables import Read, read
from murmurate.papers.dp_loc.initialiser_vae import EndsVAE
from murmurate.papers.dp_loc.moves_net import plan_of
from murmurate.papers.dp_loc.net_router import PublishedRouter
from murmurate.papers.dp_loc.networks import PublishedNet, cross_entropy, dense_start
from murmurate.papers.training.ghost import Layer, plain_sum
from murmurate.papers.training.sampling import Grouped, chunks, group_by_unit
from murmurate.papers.training.train import compiled, train
from murmurate.synthesis.moves import Grams, Neighbourhood, grams
from murmurate.synthesis.shortest import step_costs

MOST = 50_000
EPOCHS = 1.5


def chosen_grams(found: Read, around: Neighbourhood) -> tuple[Grams, np.ndarray]:
    """Some steps of the trips, drawn alike in every run; arrivals and steps out of reach are none."""
    steps = grams(found.trips, around)
    usable = np.flatnonzero((steps.offset >= 0) & (steps.offset != around.stop))
    return steps, np.random.default_rng(1).choice(usable, min(MOST, len(usable)), replace=False)


def told(log_probability: np.ndarray, wanted: np.ndarray, around: Neighbourhood, cell_m: float) -> dict:
    """Loss, accuracy of the most probable step, and the mean distance between its cell and the true one."""
    guess = log_probability.argmax(axis=1)
    down, right = np.divmod(guess, around.side)
    wanted_down, wanted_right = np.divmod(wanted, around.side)
    error = np.hypot(down - wanted_down, right - wanted_right) * cell_m
    return {
        "loss": -float(log_probability[np.arange(len(wanted)), wanted].mean()),
        "accuracy_percent": 100 * float((guess == wanted).mean()),
        "error_m": float(error.mean()),
    }


def log_softmax(logits: np.ndarray) -> np.ndarray:
    shifted = logits - logits.max(axis=1, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis=1, keepdims=True))


def next_cell_scores(router: PublishedRouter | CountRouter, found: Read, around: Neighbourhood, cell_m: float) -> dict:
    """Table 5 for a fitted model, on steps of the trips it was trained on."""
    steps, chosen = chosen_grams(found, around)
    trip, wanted = steps.trip[chosen], steps.offset[chosen]
    destinations, hours = found.trips.destinations[trip], found.trips.hours[trip]
    if isinstance(router, PublishedRouter):
        logits = np.asarray(router.net.logits(router.params, steps.cell[chosen], destinations, hours))
        return told(log_softmax(logits), wanted, around, cell_m)
    known = np.empty((len(chosen), around.n_offsets), dtype=np.float32)
    order = np.argsort(destinations, kind="stable")
    for part in np.split(order, np.flatnonzero(np.diff(destinations[order])) + 1):
        known[part] = -step_costs(int(destinations[part[0]]), router.weights, around)[steps.cell[chosen[part]]]
    return told(np.maximum(known, np.log(1e-9)), wanted, around, cell_m)


def vae_losses(network: EndsVAE, params: dict, found: Read) -> dict:
    """Table 4: what the trained autoencoder costs on trips it was trained on, whole and by its parts."""
    import jax
    import jax.numpy as jnp

    chosen = np.random.default_rng(1).choice(found.trips.n, min(MOST, found.trips.n), replace=False)
    columns = {"source": found.trips.sources, "destination": found.trips.destinations, "hour": found.trips.hours}
    totals = []
    params = {name: jnp.asarray(value) for name, value in params.items()}
    cost = jax.jit(lambda columns, weight, key: plain_loss(network, params, columns, weight, key))
    for part in np.array_split(chosen, max(1, len(chosen) // 2000)):
        given = {name: values[part][:, None].astype(np.int32) for name, values in columns.items()}
        totals.append(float(cost(given, np.full((len(part), 1), 1 / len(part), np.float32), jax.random.key(1))))
    return {"loss": float(np.mean(totals))}


def plain_loss(network, params: dict, columns: dict, weight, key):
    import jax.numpy as jnp

    taps = {layer.name: jnp.zeros((), jnp.float32) for layer in network.layers}
    return jnp.sum(network.losses(params, taps, columns, key)[0] * weight)


# -- with and without inputs, and with a memory ------------------------------------------------------------------------


@dataclass(frozen=True)
class RecurrentNet:
    """The published inputs through a gated recurrent layer along the trip, instead of one dense layer a step."""

    n_cells: int
    n_offsets: int
    hours: int
    embedding: int = 50
    hidden: int = 100

    @property
    def layers(self) -> tuple[Layer, ...]:
        return (
            Layer("place", "table", self.embedding, looks=2),
            Layer("seen", "dense", 3 * self.hidden),
            Layer("state", "dense", 3 * self.hidden),
            Layer("out", "dense", self.n_offsets),
        )

    def start(self, generator: np.random.Generator) -> dict:
        return {
            "place.w": generator.uniform(-0.05, 0.05, (self.n_cells, self.embedding)).astype(np.float32),
            **dense_start(generator, "seen", 2 * self.embedding + 1, 3 * self.hidden),
            **dense_start(generator, "state", self.hidden, 3 * self.hidden),
            **dense_start(generator, "out", self.hidden, self.n_offsets),
        }

    def losses(self, params, taps, columns, key):
        logits, given = self.run(params, taps, columns)
        return cross_entropy(logits, columns["offset"]), given

    def run(self, params, taps, columns):
        """Logits [trips, steps, offsets] and what each layer was given; ghost norms need no more than that."""
        import jax
        import jax.numpy as jnp

        rows = jnp.stack([columns["cell"], columns["destination"]], axis=-1)
        place = params["place.w"][rows] + taps["place"]
        hour = columns["hour"][..., None].astype(jnp.float32) / self.hours
        inputs = jnp.concatenate([place[..., 0, :], place[..., 1, :], hour], axis=-1)
        seen = inputs @ params["seen.w"] + params["seen.b"] + taps["seen"]
        state_taps = jnp.broadcast_to(taps["state"], seen.shape)

        def step(memory, now):
            from_input, tap = now
            from_memory = memory @ params["state.w"] + params["state.b"] + tap
            (a, b, c), (p, q, r) = jnp.split(from_input, 3, axis=-1), jnp.split(from_memory, 3, axis=-1)
            keep = jax.nn.sigmoid(a + p)
            new = keep * memory + (1 - keep) * jnp.tanh(c + jax.nn.sigmoid(b + q) * r)
            return new, (memory, new)

        along = (seen.swapaxes(0, 1), state_taps.swapaxes(0, 1))
        _, (before, after) = jax.lax.scan(step, jnp.zeros((rows.shape[0], self.hidden)), along)
        before, after = before.swapaxes(0, 1), after.swapaxes(0, 1)
        logits = after @ params["out.w"] + params["out.b"] + taps["out"]
        return logits, {"place": rows, "seen": inputs, "state": before, "out": after}


def side_results(private, asked: DPLoc) -> dict:
    """Accuracy with and without destination and hour, and with a recurrent network: all steps of a trip, few epochs."""
    around = asked.around()
    found = read(private, grid=asked.space, unit=asked.bounds(), slot_s=asked.slot_s, hours=asked.hours)
    steps = grams(found.trips, around)
    kept = (steps.offset >= 0) & (steps.offset != around.stop)
    trip = steps.trip[kept]
    columns = {
        "cell": steps.cell[kept], "destination": found.trips.destinations[trip], "hour": found.trips.hours[trip],
        "offset": steps.offset[kept],
    }  # fmt: skip
    columns = {name: values.astype(np.int32) for name, values in columns.items()}
    training = replace(VARIANTS["own"].moves_training, epochs=EPOCHS)
    budget = replace(asked, variant="own", next_cell="net", epochs=EPOCHS).network_budget()
    plan = plan_of(training, budget.moves_noise_multiplier)
    sizes = (around.n_cells, around.n_offsets, asked.hours)
    nets = {"feed-forward": PublishedNet(*sizes), "recurrent": RecurrentNet(*sizes)}
    blind = {
        "all": (),
        "without hour": ("hour",),
        "without destination": ("destination",),
        "without both": ("hour", "destination"),
    }
    runs = [("feed-forward", words, True) for words in blind] + [("feed-forward", "all", False)]
    runs += [("recurrent", "all", True), ("recurrent", "all", False)]
    results = []
    for name, words, with_noise in runs:
        given = columns | {column: np.zeros_like(columns[column]) for column in blind[words]}
        grouped = group_by_unit(given, found.unit[trip])
        used = plan if with_noise else replace(plan, noise_multiplier=1e-9, clip=1e3)
        net = nets[name]
        start = time.process_time()
        params, _ = train(
            net, net.start(np.random.default_rng(1)), grouped, plan=used, n_expected=found.trips.n, rng=noise.secure()
        )
        spent = time.process_time() - start
        scores = predicted(net, params, grouped, around, asked.space.cell_m)
        results.append({"net": name, "inputs": words, "private": with_noise, "cpu_s": spent, **scores})
        print(results[-1], flush=True)
    speed = {name: slower(net, group_by_unit(columns, found.unit[trip])) for name, net in nets.items()}
    return {"networks": results, "private_over_plain": speed, "epochs": EPOCHS, "noise_multiplier": plan.noise_multiplier}


def predicted(net, params: dict, grouped: Grouped, around: Neighbourhood, cell_m: float) -> dict:
    """Scores on whole trips drawn alike for every network."""
    import jax
    import jax.numpy as jnp

    taps = {layer.name: jnp.zeros((), jnp.float32) for layer in net.layers}
    params = {name: jnp.asarray(value) for name, value in params.items()}

    @jax.jit
    def logits(columns):
        if isinstance(net, RecurrentNet):
            return net.run(params, taps, columns)[0]
        return net.logits(params, columns["cell"], columns["destination"], columns["hour"])

    units = np.sort(np.random.default_rng(1).choice(grouped.n_units, min(8_000, grouped.n_units), replace=False))
    known, wanted = [], []
    for chunk in chunks(grouped, units, np.random.default_rng(1)):
        real = chunk.weight > 0
        known.append(np.asarray(logits(chunk.columns))[real])
        wanted.append(chunk.columns["offset"][real])
    return told(log_softmax(np.concatenate(known)), np.concatenate(wanted), around, cell_m)


def slower(net, grouped: Grouped, repeats: int = 10) -> float:
    """Clipped sums over plain ones, CPU time of one chunk of eight steps a trip."""
    import jax

    params = net.start(np.random.default_rng(1))
    chunk = next(chunks(grouped, np.arange(grouped.n_units), np.random.default_rng(1)))
    ordinary = jax.jit(lambda p, c, w, k: plain_sum(net, p, c, w, k))
    spent: dict[str, list[float]] = {"private": [], "plain": []}
    for _ in range(repeats + 1):
        for name, function in (("private", compiled(net, 1.0)), ("plain", ordinary)):
            start = time.process_time()
            jax.block_until_ready(function(params, chunk.columns, chunk.weight, jax.random.key(1)))
            spent[name].append(time.process_time() - start)
    return float(np.median(spent["private"][1:]) / np.median(spent["plain"][1:]))
