"""The cost of `isolate=true`: the same runs with the method in a process of its own, and without.

Both are run in turns, and CPU seconds of both processes are counted, as clocks are of little use on
a busy machine. The server that processes are forked from starts once per command and is counted
apart.

Run: python benchmarks/isolation.py [--repeats 5]
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from statistics import median
from unittest import mock

from ddobench.cli.hooks import specify_points
from ddobench.runner.batches import execute
from ddobench.runner.isolation import IsolatedMethod
from ddobench.store.runs import Store

LIMIT = 1.1  # of the CPU time without
RUNS = {
    "ga on chain d=21 n=2000, 5 seeds": ("method=ga", "task=chain", "d=21", "n=2000"),
    "fgm on chain d=11 n=500, tiny, 5 seeds": (
        "method=fgm", "task=chain", "d=11", "n=500", "budget=tiny",
    ),
}  # fmt: skip
SEEDS = range(5)


def measure(words: tuple[str, ...], isolate: bool) -> float:
    """Run once and return the CPU seconds of all processes that belong to it."""
    (spec,) = specify_points([[*words, f"isolate={str(isolate).lower()}"]])
    others, end = [0.0], IsolatedMethod.close

    def close(method: IsolatedMethod) -> None:
        others.append(method.cpu_seconds)
        end(method)

    with (
        tempfile.TemporaryDirectory() as folder,
        mock.patch.object(IsolatedMethod, "close", close),
    ):
        began = time.process_time()
        outcome = execute(spec, [*SEEDS], Store(Path(folder)))
        assert outcome.ok == len(SEEDS)
    return time.process_time() - began + sum(others)


def main() -> int:
    """Print the ratio for each kind of run and return the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repeats", type=int, default=5)
    repeats = parser.parse_args().repeats
    worst = 0.0
    for name, words in RUNS.items():
        measure(words, False), measure(words, True)  # imports, and the server
        pairs = [(measure(words, False), measure(words, True)) for _ in range(repeats)]
        here, apart = (median(column) for column in zip(*pairs, strict=True))
        worst = max(worst, apart / here)
        print(f"{name}: {here:.2f} s here, {apart:.2f} s apart, ratio {apart / here:.3f}   "
              f"limit {LIMIT}")  # fmt: skip
    return int(worst > LIMIT)


if __name__ == "__main__":
    sys.exit(main())
