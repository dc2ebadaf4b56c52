"""The overhead of a sweep per seed, compared with plain Hydra.

Both sweeps run the same 50 seeds in this process, after all imports. The work is what happens
from drawing the problem to its records; everything else is overhead: composing, planning,
launching, writing files.

Run: python benchmarks/sweep.py
"""

import contextlib
import io
import sys
import tempfile
import time
from typing import Any
from unittest import mock

from ddobench.cli.main import main
from ddobench.runner.provenance import describe_machine
from ddobench.runner.run import run_seeds

SEEDS = 50
LIMIT_MS = 5.0
LIMIT_RATIO = 20.0


def cpu_seconds(batches: int = 1) -> tuple[float, float]:
    """Return the CPU seconds of a sweep in so many batches and of the work inside it."""
    work, ran = 0.0, 0

    def timed(*arguments: object) -> object:
        nonlocal work, ran
        ran += 1
        began = time.process_time()
        try:
            return run_seeds(*arguments)  # type: ignore[arg-type]
        finally:
            work += time.process_time() - began

    with tempfile.TemporaryDirectory() as folder:
        sys.argv = [
            "ddobench", "method=naive", "task=quadratic", "d=20", "-m",
            f"seed=choice({','.join(map(str, range(SEEDS)))})", f"results_dir={folder}",
        ]  # fmt: skip
        began = time.process_time()
        with (
            contextlib.redirect_stdout(io.StringIO()),
            contextlib.redirect_stderr(io.StringIO()),
            mock.patch("ddobench.runner.batches.run_seeds", timed),
        ):
            main()
        spent = time.process_time() - began
    assert ran == batches, f"expected {batches} batches, got {ran}"
    return spent, work


def measure(repeats: int, batches: int = 1) -> float:
    """Return the machinery's CPU milliseconds per seed, the least of some repeats."""
    costs = []
    for _ in range(repeats):
        total, work = cpu_seconds(batches)
        costs.append((total - work) / SEEDS * 1e3)
    return min(costs)


if __name__ == "__main__":
    cpu_seconds()
    ours = measure(repeats=5)
    from ddobench.cli.sweeper import SeedSweeper  # which Hydra has made its own by now

    def sweep_plainly(self: Any, arguments: list[str]) -> Any:
        others = [word for word in arguments if not word.startswith("seed=")]
        return BasicSweeper.sweep(self, [*others, f"seed=range(0,{SEEDS})"])

    BasicSweeper: Any = SeedSweeper.__base__
    SeedSweeper.setup, SeedSweeper.sweep = BasicSweeper.setup, sweep_plainly  # type: ignore
    plain = measure(repeats=2, batches=SEEDS)
    machine = describe_machine()
    print(f"{machine['cpu']}, Python {machine['python']}, {SEEDS} seeds of quadratic d=20")
    print(f"{'sweeper':<24}{'CPU ms per seed':>16}")
    print(f"{'ddobench seeds':<24}{ours:>16.2f}   limit {LIMIT_MS:.0f}")
    print(f"{'Hydra basic':<24}{plain:>16.2f}")
    print(f"{'ratio':<24}{plain / ours:>16.1f}   limit {LIMIT_RATIO:.0f}")
    sys.exit(0 if ours < LIMIT_MS and plain / ours >= LIMIT_RATIO else 1)
