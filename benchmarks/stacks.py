"""Stacking seeds must not change a seed's result, nor make a single seed slow.

Runs fgm at full budget on a chain of 11 variables in stacks of 1, 2, 5 and 10 seeds, with two sizes
of minibatch, and compares every array, score and diagnostic of the seed they share to the bit. Then
compares the CPU seconds of a lone run with a seed's share of a run of two, the least of several.

Run: python benchmarks/stacks.py [--rows 2000] [--repeats 3] [--threads 1]
"""

import argparse
import sys
import time
from collections.abc import Sequence

import numpy as np
import torch
from hydra import compose, initialize_config_module

from ddobench.cli import hooks
from ddobench.runner.provenance import describe_machine
from ddobench.runner.run import run_seeds
from ddobench.runner.spec import Specification, specify
from ddobench.store.records import Record

SHARED = 3  # the seed that is in every stack
STACKS = [(3,), (8, 3), (5, 0, 1, 3, 2), (7, 3, 5, 0, 1, 2, 4, 6, 8, 9)]
BATCHES = (128, 127)
LIMIT_COST = 1.1


def specification(rows: int, *overrides: str) -> Specification:
    """Compose fgm on the small chain."""
    words = ["method=fgm", "task=chain", "d=11", f"n={rows}", "device=cpu", *overrides]
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        cfg = compose("run", overrides=words, return_hydra_config=True)
    return specify(cfg, cfg.hydra.runtime.choices)


def run(spec: Specification, seeds: Sequence[int]) -> tuple[list[Record], float]:
    """Run a stack; return its records and the CPU seconds it took."""
    began = time.process_time()
    records = run_seeds(spec, *spec.build(), seeds, base={})
    return records, time.process_time() - began


def differences(one: Record, other: Record) -> list[str]:
    """Name what of a result is not the same to the bit."""
    pairs = {name: (curve, other.curves[name]) for name, curve in one.curves.items()}
    for name in ("values", "designs", "predictions"):
        pairs[name] = getattr(one, name), getattr(other, name)
    differing = [name for name, (a, b) in pairs.items() if not np.array_equal(a, b, equal_nan=True)]
    try:
        np.testing.assert_equal(one.diagnostics, other.diagnostics)
    except AssertionError:
        differing.append("diagnostics")
    return differing


def compare_stacks(rows: int, batch: int) -> bool:
    """Run every stack, print differences, and return whether there are none."""
    words = [f"surrogate.training.batch={batch}", f"latent.training.batch={batch}"]
    spec = specification(rows, *words)
    reference: Record | None = None
    met = True
    for seeds in STACKS:
        record = run(spec, seeds)[0][seeds.index(SHARED)]
        reference = reference or record
        differing = differences(reference, record)
        met &= not differing
        verdict = f"differs in {', '.join(differing)}" if differing else "the same to the bit"
        print(f"minibatches of {batch}, stack of {len(seeds):>2}: {verdict}")
    return met


def compare_costs(rows: int, repeats: int) -> bool:
    """Print the cost of a lone run and of one seed of two; return whether the limit is met."""
    spec = specification(rows, "budget=small")
    run(spec, (0,))  # warm-up
    lone = min(run(spec, (0,))[1] for _ in range(repeats))
    share = min(run(spec, (0, 1))[1] / 2 for _ in range(repeats))
    print(f"a lone run {lone:.2f} CPU s, its share of a run of two {share:.2f}: "
          f"ratio {lone / share:.2f}, limit {LIMIT_COST}")  # fmt: skip
    return lone / share <= LIMIT_COST


def main() -> int:
    """Measure, print the table, and return 1 if a limit is not met."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    hooks.register()
    machine = describe_machine()
    print(f"{machine['cpu']}, {options.threads} threads, MKL mode {machine['mkl_mode']}")
    met = compare_costs(options.rows, options.repeats)
    for batch in BATCHES:
        met &= compare_stacks(options.rows, batch)
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
