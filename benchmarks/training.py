"""The efficiency of stacked training steps, relative to a large matrix product.

Every number is the least CPU time of interleaved rounds on one thread, so a busy machine hardly
changes the ratios. Where oneDNN multiplies (`ddobench.models.tensors`), each step is also measured
with MKL's products. Floating-point operations of matrix products are counted by PyTorch and
must equal the count by hand. With --jax, a Python that has JAX runs the same step by jit and vmap.

Run: python benchmarks/training.py [--jax /path/to/python] [--rounds 15]
"""

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch

import torch
from torch.utils.flop_counter import FlopCounterMode

from ddobench import determinism
from ddobench.baselines.coms import ConservativeStep
from ddobench.models import tensors
from ddobench.models.networks import Passes, StackedMLP
from ddobench.models.training import Minibatches, backprop_squared_error
from ddobench.rng import Streams
from ddobench.runner.provenance import describe_machine

SEEDS, ROWS, BATCH, D = 10, 2000, 128, 41
NEGATIVE_STEPS = 50
LARGE = 2048
LEAST_SHARE, GOAL_SHARE = 0.55, 0.70

Step = Callable[[], object]


def make_step(width: int, *, conservative: bool) -> Step:
    """Return a whole training step of the stack: minibatch, gradient, Adam."""
    rng = Streams(range(SEEDS), "benchmark")
    network = StackedMLP((D, width, width, 1), rng.child("weights"), torch.device("cpu"))
    tables = [rng.child("x").normal(ROWS, D), rng.child("y").normal(ROWS)]
    rows = torch.arange(ROWS).expand(SEEDS, ROWS)
    batches = Minibatches(tables, rows, BATCH, rng.child("minibatches"))
    optimiser = torch.optim.AdamW([network.flat], lr=1e-3, fused=True)
    passes = Passes(network)
    conserve = ConservativeStep(
        network,
        negative_steps=NEGATIVE_STEPS,
        negative_rate=0.05 * D**0.5,
        alpha=0.1,
        alpha_rate=0.01,
        limit=0.5,
    )

    def step() -> None:
        x, y = next(batches)
        _ = conserve(x, y) if conservative else backprop_squared_error(passes, x, y)
        optimiser.step()

    return step


def count_by_hand(width: int, *, conservative: bool) -> int:
    """Return the operations of the matrix products of one step and seed.

    The last layer has one output: the error goes back through it without a matrix product.
    """
    first, second, last = D * width, width * width, width  # multiply-adds of a row in each layer
    forward = weights = first + second + last
    fit = 2 * (forward + weights + second)  # without the gradient of the data
    if not conservative:
        return fit * BATCH
    climb = 2 * 2 * (first + second)  # up without the value, and down
    return 2 * fit * BATCH + climb * BATCH * NEGATIVE_STEPS


def count_by_torch(step: Step) -> int:
    """Return the operations PyTorch saw in one step, per seed."""
    with FlopCounterMode(display=False) as counter:
        step()
    flops: int = counter.get_total_flops()
    return flops // SEEDS


def cpu_seconds(work: Step, repeats: int) -> float:
    """Return the CPU seconds of one repeat."""
    began = time.thread_time()
    for _ in range(repeats):
        work()
    return (time.thread_time() - began) / repeats


def measure_jax(python: str) -> dict[str, float]:
    """Return microseconds per seed and step of JAX, by width."""
    script = Path(__file__).parent / "support" / "jax_step.py"
    answer = subprocess.run([python, str(script)], capture_output=True, text=True, check=True)
    times: dict[str, float] = json.loads(answer.stdout)
    return times


def main() -> int:
    """Measure, print the table, and return 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jax", help="a Python interpreter that can import JAX")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    torch.set_num_threads(1)

    left, right = torch.rand(2, LARGE, LARGE)
    product = torch.empty(LARGE, LARGE)

    def multiply() -> None:
        with tensors.fast_products(left, right):
            torch.mm(left, right, out=product)

    cases = {
        "ga, width 256": (make_step(256, conservative=False), 256, False, 3),
        "coms, width 256": (make_step(256, conservative=True), 256, True, 1),
        "ga, width 64": (make_step(64, conservative=False), 64, False, 10),
        "coms, width 64": (make_step(64, conservative=True), 64, True, 1),
    }
    best, by_mkl = (dict.fromkeys(cases, float("inf")) for _ in range(2))
    jax = {"256": float("inf"), "64": float("inf")}
    peak = 0.0
    for round_ in range(options.rounds):
        seconds = cpu_seconds(multiply, 1)
        peak = max(peak, 2 * LARGE**3 / seconds)
        for name, (step, _, _, repeats) in cases.items():
            for _ in range(5):
                best[name] = min(best[name], cpu_seconds(step, repeats))
                with patch.object(tensors, "_ONEDNN", False):
                    by_mkl[name] = min(by_mkl[name], cpu_seconds(step, repeats))
        if options.jax and round_ % 5 == 0:
            jax = {width: min(jax[width], us) for width, us in measure_jax(options.jax).items()}

    machine = describe_machine()
    print(f"{machine['cpu']}, 1 thread, torch {torch.__version__}, CPU time")
    print(
        f"{SEEDS} seeds, batch {BATCH}, d={D}; matrix product of {LARGE}: {peak / 1e9:.0f} GFLOP/s"
    )
    print(f"products: {'oneDNN' if determinism.prefers_onednn() else 'MKL'}")
    print(
        f"{'us per seed and step':<24}{'limit':>9}{'ours':>9}{'share':>8}{'by MKL':>9}{'ratio':>8}"
        f"{'JAX':>9}{'ahead':>8}"
    )
    met = True
    for name, (step, width, conservative, _) in cases.items():
        flops = count_by_hand(width, conservative=conservative)
        assert count_by_torch(step) == flops, "the count by hand is not PyTorch's"
        limit, ours = flops / peak * 1e6, best[name] / SEEDS * 1e6
        mkl = by_mkl[name] / SEEDS * 1e6
        line = (
            f"{name:<24}{limit:>9.0f}{ours:>9.0f}{limit / ours:>8.0%}{mkl:>9.0f}{mkl / ours:>8.2f}"
        )
        if options.jax and not conservative:
            theirs = jax[str(width)]
            line += f"{theirs:>9.0f}{theirs / ours:>7.2f}x"
            met &= theirs > ours
        if width == 256:
            line += f"   least {LEAST_SHARE:.0%}, goal {GOAL_SHARE:.0%}"
            met &= limit / ours >= LEAST_SHARE
        print(line)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
