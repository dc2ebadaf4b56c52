"""What a suite costs: CPU seconds a seed and peak memory of each method, and the sum.

CPU seconds are those of the published runs of the suite, a mean over its cells. Peak memory is
measured here: a process with all seeds of the largest cell, where training is cut to 2 %, as steps
repeat themselves. About ten CPU minutes.

Run: python benchmarks/costs.py [suite=ddobench-1]
"""

import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence

import pandas as pd

import ddobench
from ddobench import registry
from ddobench.report.tables.matrix import Suite, read_suite
from ddobench.report.tables.select import BY_SIZE
from ddobench.scores import SECONDS_CPU

HOURS = 14.0  # of CPU time for all methods, at most
GIGABYTES = 4.0  # of a method with all seeds, at most


def find_costs(suite: Suite) -> pd.DataFrame:
    """Return the mean CPU seconds a seed of each published method (rows) in each cell (columns)."""
    runs = ddobench.published()
    runs = runs[(runs["status"] == "ok") & (runs["method_variant"] == "")]
    cells = pd.DataFrame([*suite.cells.values()], columns=BY_SIZE).assign(cell=[*suite.cells])
    own = runs[runs["seed"].isin([*suite.seeds])].merge(cells, on=BY_SIZE)
    return own.pivot_table(SECONDS_CPU.name, "method", "cell")


def measure_memory(method: str, words: Sequence[str]) -> float | None:
    """Return the gigabytes that a command needs at its peak, or None if it fails."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ddobench", f"method={method}", *words]
        process = subprocess.Popen(
            [*command, f"results_dir={folder}"],
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return usage.ru_maxrss / 2**20 if process.returncode == 0 else None


def main(choice: str = "suite=ddobench-1") -> int:
    """Print a row for each method and the sum, and return the exit code."""
    suite = read_suite(choice.removeprefix("suite="))
    largest = max(suite.cells, key=lambda name: size_of(suite, name))
    task, _, n, _, d = suite.cells[largest]
    words = [f"task={task}", f"d={d}", f"n={n}", f"seed={suite.seeds}", "budget.training=0.02"]
    print(f"| method | CPU s a seed | cells | GB, {largest} |\n|---|---:|---:|---:|")
    costs, hours, most = find_costs(suite), 0.0, 0.0
    for entry in registry.entries("method"):
        own = costs.reindex([entry.name]).T[entry.name].dropna()
        memory = measure_memory(entry.name, words)
        print(
            f"| {entry.label} | {own.mean():.3g} | {len(own)} | {memory or math.nan:.2f} |",
            flush=True,
        )
        hours += float(own.sum()) * len(suite.seeds) / 3600
        most = max(most, memory or 0.0)
    print(f"{hours:.1f} CPU hours (limit {HOURS:g}), {most:.2f} GB (limit {GIGABYTES:g})")
    return int(hours > HOURS or most > GIGABYTES)


def size_of(suite: Suite, cell: str) -> int:
    """Return the number of entries of the table of a cell."""
    _, _, n, _, d = suite.cells[cell]
    return int(n) * int(d)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:2]))
