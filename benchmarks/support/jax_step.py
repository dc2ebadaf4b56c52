"""The training step of `training.py` in JAX, under jit and vmap; prints microseconds as JSON.

Run by `training.py --jax` with an interpreter that has JAX, which is not a dependency of the
project. Minibatches are taken by row indices that were drawn before.
"""

import importlib
import json
import os
import time
from typing import Any

SEEDS, ROWS, BATCH, D = 10, 2000, 128, 41
RATE, FIRST, SECOND, TINY = 1e-3, 0.9, 0.999, 1e-8


def main() -> None:
    """Measure both widths on one thread."""
    os.environ["XLA_FLAGS"] = "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1"
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    jax: Any = importlib.import_module("jax")
    jnp = jax.numpy

    def draw(key: Any, width: int) -> list[tuple[Any, Any]]:
        layers = []
        for fan_in, fan_out in ((D, width), (width, width), (width, 1)):
            key, left, right = jax.random.split(key, 3)
            bound = fan_in**-0.5
            weight = jax.random.uniform(left, (fan_in, fan_out), minval=-bound, maxval=bound)
            layers.append((weight, jax.random.uniform(right, (fan_out,), minval=-bound)))
        return layers

    def loss(layers: Any, x: Any, y: Any) -> Any:
        for weight, bias in layers[:-1]:
            x = jax.nn.relu(x @ weight + bias)
        return (((x @ layers[-1][0] + layers[-1][1])[:, 0] - y) ** 2).mean()

    def adam(state: Any, x: Any, y: Any, rows: Any) -> Any:
        layers, first, second, step = state
        gradient, step = jax.grad(loss)(layers, x[rows], y[rows]), step + 1
        first = jax.tree.map(lambda m, g: FIRST * m + (1 - FIRST) * g, first, gradient)
        second = jax.tree.map(lambda v, g: SECOND * v + (1 - SECOND) * g * g, second, gradient)
        size, spread = RATE / (1 - FIRST**step), 1 / jnp.sqrt(1 - SECOND**step)
        layers = jax.tree.map(
            lambda p, m, v: p - size * m / (jnp.sqrt(v) * spread + TINY), layers, first, second
        )
        return layers, first, second, step

    update = jax.jit(jax.vmap(adam), donate_argnums=0)
    times = {}
    for width, repeats in ((256, 3), (64, 10)):
        keys = jax.random.split(jax.random.PRNGKey(0), SEEDS)
        layers = jax.vmap(lambda key, width=width: draw(key, width))(keys)
        zeros = [jax.tree.map(jnp.zeros_like, layers) for _ in range(2)]
        state = (layers, *zeros, jnp.zeros(SEEDS))
        x = jax.random.normal(keys[0], (SEEDS, ROWS, D))
        y = jax.random.normal(keys[1], (SEEDS, ROWS))
        batches = [
            jax.random.randint(key, (SEEDS, BATCH), 0, ROWS)
            for key in jax.random.split(keys[2], 10)
        ]
        state = jax.block_until_ready(update(state, x, y, batches[0]))
        best = float("inf")
        for _ in range(60):
            began = time.process_time()
            for repeat in range(repeats):
                state = update(state, x, y, batches[repeat])
            jax.block_until_ready(state)
            best = min(best, time.process_time() - began)
        times[str(width)] = best / repeats / SEEDS * 1e6
    print(json.dumps(times))


if __name__ == "__main__":
    main()
