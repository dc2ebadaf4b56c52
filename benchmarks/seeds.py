"""Ten seeds in one batch, compared with ten processes of a plain PyTorch loop with the same steps.

Compares CPU seconds, all on one thread and each measured once: of the training alone at two widths
(after a warm-up on either side), and of the whole command with its start-up, data, optimum, ascent
and storing.

Run: python benchmarks/seeds.py [--seeds 10] [--steps 500]
"""

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

from ddobench.models.training import Training
from ddobench.parts.coordinates import OwnAxes
from ddobench.parts.discovery import Complete
from ddobench.parts.latents import Identity
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.search import Ascent
from ddobench.parts.surrogates import MLP
from ddobench.rng import Streams
from ddobench.runner.provenance import describe_machine
from ddobench.tasks.rbf import RBF

ONE_THREAD = {**os.environ, "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
LIMITS = {256: 1.3, 64: 2.5}
LIMIT_COMMAND = 3.0


def children_seconds() -> float:
    """Return the CPU seconds of all finished child processes so far."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def measure_processes(width: int, seeds: int, steps: int) -> tuple[float, float]:
    """Return the CPU seconds of training and of everything, over one process per seed."""
    script = Path(__file__).parent / "support" / "plain_loop.py"
    before, training = children_seconds(), 0.0
    for seed in range(seeds):
        command = [sys.executable, str(script), str(seed), str(width), str(steps)]
        answer = subprocess.run(command, capture_output=True, text=True, check=True, env=ONE_THREAD)
        training += float(answer.stdout)
    return training, children_seconds() - before


def measure_batch(width: int, seeds: int, steps: int) -> float:
    """Return the CPU seconds of training all seeds together, as the method does it."""
    data = RBF(d=41, n=2000, family="chain", map="orthogonal").problem(range(seeds)).data
    method = Pipeline(
        latent=Identity(), axes=OwnAxes(), graph=Complete(), search=Ascent(), device="cpu",
        surrogate=MLP(training=Training(steps=steps), width=width),
    )  # fmt: skip
    began = time.process_time()
    method.fit(data, Streams(range(seeds), "method"))
    return time.process_time() - began


def measure_command(seeds: int, steps: int) -> float:
    """Return the CPU seconds of the sweep a user would type."""
    before = children_seconds()
    with tempfile.TemporaryDirectory() as folder:
        command = [
            sys.executable, "-m", "ddobench", "method=ga", "task=chain", "d=41", "n=2000",
            f"surrogate.training.steps={steps}", "device=cpu", f"results_dir={folder}",
            "-m", f"seed=0-{seeds - 1}",
        ]  # fmt: skip
        subprocess.run(command, capture_output=True, check=True, env=ONE_THREAD)
    return children_seconds() - before


def main() -> int:
    """Measure, print the table, and return 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--steps", type=int, default=500)
    options = parser.parse_args()
    torch.set_num_threads(1)
    print(f"{describe_machine()['cpu']}, 1 thread, torch {torch.__version__}, CPU seconds")
    print(f"{options.seeds} seeds of ga on chain d=41, N=2000, {options.steps} steps")
    print(f"{'':<24}{'processes':>12}{'one batch':>12}{'ratio':>8}")
    measure_batch(256, 2, 10)  # warm-up
    met, whole = True, 0.0
    for width, limit in LIMITS.items():
        plain, everything = measure_processes(width, options.seeds, options.steps)
        stacked = measure_batch(width, options.seeds, options.steps)
        whole = whole or everything  # of the first width, the one of the command
        met &= report(f"training, width {width}", plain, stacked, limit)
    met &= report(
        "whole command", whole, measure_command(options.seeds, options.steps), LIMIT_COMMAND
    )
    return 0 if met else 1


def report(name: str, plain: float, ours: float, limit: float) -> bool:
    """Print a line and return whether its limit is met."""
    print(f"{name:<24}{plain:>12.2f}{ours:>12.2f}{plain / ours:>7.1f}x   limit {limit}")
    return plain / ours >= limit


if __name__ == "__main__":
    sys.exit(main())
