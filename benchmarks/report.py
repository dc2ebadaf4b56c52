"""How long a report over ten thousand stored runs takes, and how much memory.

The runs are synthetic but written by the real store, as large as those of a full budget: two tasks,
five methods, four dimensions, 51 iterations of 1024 designs each. Flushing each file to disk is
left out, as nobody needs these after a power cut. The report runs in a process of its own, the
files fresh in the cache of the system.

Run: python benchmarks/report.py [--runs 10000] [--keep FOLDER]
"""

import argparse
import contextlib
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import yaml

from ddobench.runner.provenance import describe_machine
from ddobench.store.records import Record, TaskSample
from ddobench.store.runs import Store

LIMIT_SECONDS = 60.0
LIMIT_GB = 2.0
TASKS = {"chain": 0.3, "ladder": 0.0}  # the share of invalid designs at the end
METHODS = {"fgm": "#0072B2", "ga": "#E69F00", "rwr": "#009E73", "coms": "#D55E00", "vae_ga": ""}
DIMENSIONS = (11, 21, 31, 41)
ITERATIONS, DESIGNS, ROWS = 51, 1024, 2000
SAMPLE = 500  # designs of a task sample
CONF = Path(__file__).parent.parent / "conf"

rng = np.random.default_rng(0)
VALUES = rng.normal(size=(ITERATIONS, DESIGNS)).astype(np.float32)
PREDICTIONS = rng.normal(size=(ITERATIONS, DESIGNS)).astype(np.float32)
CLIMB = 1 - np.exp(-np.arange(ITERATIONS) / 12)


def make_diagnostics(d: int) -> dict[str, Any]:
    """Return what a method that finds a graph has to tell of one run."""
    hessian = rng.exponential(size=(d, d))
    return {
        "training_loss": rng.exponential(size=50).tolist(),
        "held_out_r2": 0.5,
        "predicted": (3 * CLIMB).tolist(),
        "edges": [[i, j] for i in range(d) for j in range(i) if hessian[i, j] > 2.5],
        "pseudo_hessian": ((hessian + hessian.T) / 2).tolist(),
        "overestimation": CLIMB.tolist(),
    }


def make_record(task: str, method: str, d: int, seed: int, shared: dict[str, Any]) -> Record:
    """Return one run with curves of its own; the large arrays are those of all runs."""
    skill = 0.5 + 0.3 * list(METHODS).index(method) + rng.normal(0, 0.3)
    value = 3.0 + skill * CLIMB + rng.normal(0, 0.02, ITERATIONS)
    invalid = TASKS[task] * rng.uniform(0.5, 1.0) * CLIMB
    curves = {
        "iteration": np.arange(ITERATIONS),
        "value_model": value - 3 * invalid,
        "value_oracle": value,
        "survivors": value + 0.4,
        "invalid": invalid,
        "predicted": value + CLIMB,
        "median": value - 1.5,
        "best": value + 1.0,
    }
    optimum = 6.0 + 0.1 * d + rng.normal(0, 0.2)
    final = float(curves["value_model"][-1])
    row = {
        "task": task, "task_variant": "", "method": method, "method_variant": "", "latent": "vae",
        "axes": "identity", "graph": "discovered", "d": d, "n": ROWS, "budget": "full",
        "digest": f"{task}{method}{d}", "label": method.upper(), "color": METHODS[method],
        "command": f"python -m ddobench -m task={task} method={method} d={d} seed=0-999",
        "revision": "0" * 40, "finished": "2026-01-01T00:00:00+00:00", "privileges": "",
        "best_visible": 3.0, "optimum": optimum, "y_mean": 0.1, "y_sd": 0.04, "y_min": 0.0,
        "y_max": 0.3, "status": "ok", "reason": "", "final_model": final,
        "final_oracle": float(value[-1]), "best_oracle": float(value.max()),
        "regret_final": optimum - final, "regret_unit": "sd", "invalid_final": float(invalid[-1]),
        "predicted_final": float(curves["predicted"][-1]), "iterations": 50, "designs": DESIGNS,
        "seconds_fit": 80.0, "seconds_propose": 10.0, "seconds_evaluate": 0.2, "seed": seed,
    }  # fmt: skip
    return Record(row=row, curves=curves, values=VALUES, predictions=PREDICTIONS, **shared)


def make_portrait(task: str, d: int) -> TaskSample:
    """Return what a task looks like: a chain."""
    hidden = rng.normal(size=(SAMPLE, 3))
    return TaskSample(
        task=task, task_variant="", d=d, n=ROWS, seed=0, title=f"A synthetic {task}, d={d}",
        formula="f(x) = 0", text="Nothing but noise.", edges=[(i, i + 1) for i in range(d - 1)],
        observed=np.log1p(np.exp(hidden)).tolist(), hidden=hidden.tolist(),
        y=rng.normal(size=SAMPLE).tolist(),
    )  # fmt: skip


def fill(folder: Path, runs: int) -> int:
    """Store so many runs, or the fewest more that are the same for all series; return how many."""
    store = Store(folder)
    seeds = -(-runs // (len(TASKS) * len(METHODS) * len(DIMENSIONS)))
    config = {
        "task": yaml.safe_load((CONF / "task" / "chain.yaml").read_text(encoding="utf-8")),
        "method": yaml.safe_load((CONF / "method" / "fgm.yaml").read_text(encoding="utf-8")),
    }
    with mock.patch("os.fsync"):
        for d in DIMENSIONS:
            shared = {
                "config": config,
                "provenance": describe_machine() | {"seeds_per_job": 50, "batch": 5},
                "designs": rng.normal(size=(DESIGNS, d)).astype(np.float32),
                "diagnostics": make_diagnostics(d),
            }
            for task in TASKS:
                store.write_sample(store.sample(task, str(d)), make_portrait(task, d))
                for method in METHODS:
                    place = store.place(task, method, d, ROWS, f"{task}{method}{d}")
                    for seed in range(seeds):
                        store.write(place, make_record(task, method, d, seed, shared))
    return seeds * len(TASKS) * len(METHODS) * len(DIMENSIONS)


def shared_memory(parent: int) -> float:
    """Return the GB that a process and its children hold together, 0 where nobody tells.

    Pages that several of them share count once.
    """
    total = 0
    for folder in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError, IndexError, ValueError):
            after_name = (folder / "stat").read_text().rpartition(")")[2].split()
            if parent in (int(folder.name), int(after_name[1])):
                rollup = (folder / "smaps_rollup").read_text()
                total += int(rollup.partition("\nPss:")[2].split()[0])
    return total / 1024**2


def measure(source: Path, target: Path) -> tuple[float, float, str]:
    """Return the seconds and the peak GB of one report, and what it said."""
    words = [f"results_dir={source}", f"report_dir={target}"]
    began, peak = time.perf_counter(), 0.0
    with tempfile.TemporaryFile("w+", encoding="utf-8") as said:
        report = subprocess.Popen(
            [sys.executable, "-m", "ddobench.report", *words], stdout=said, stderr=said
        )
        while report.poll() is None:
            peak = max(peak, shared_memory(report.pid))
            time.sleep(0.2)
        seconds = time.perf_counter() - began
        said.seek(0)
        text = said.read().strip()
    if report.returncode:
        raise SystemExit(f"the report failed:\n{text}")
    unit = 1024**3 if sys.platform == "darwin" else 1024**2
    largest = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / unit
    return seconds, max(peak, largest), text


def cpu_seconds() -> float:
    """Return the CPU seconds of all processes started here, which a busy machine disturbs less."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> int:
    """Fill a store, measure its report, print the numbers beside their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=10_000)
    parser.add_argument("--keep", type=Path, help="fill this folder, or measure what it holds")
    arguments = parser.parse_args()
    folder = arguments.keep or Path(tempfile.mkdtemp(prefix="ddobench-report-"))
    try:
        source = folder / "runs"
        if not source.exists():
            print(f"{fill(source, arguments.runs)} runs stored")
        size = sum(path.stat().st_size for path in source.rglob("*.parquet")) / 1024**3
        seconds, memory, said = measure(source, folder / "report")
    finally:
        if not arguments.keep:
            shutil.rmtree(folder)
    machine = describe_machine()
    print(f"{machine['cpu']}, Python {machine['python']}, {size:.1f} GB of runs")
    print(said)
    print(f"{'report':<24}{'measured':>10}")
    print(f"{'wall seconds':<24}{seconds:>10.1f}   limit {LIMIT_SECONDS:.0f}")
    print(f"{'CPU seconds':<24}{cpu_seconds():>10.1f}")
    print(f"{'peak memory, GB':<24}{memory:>10.2f}   limit {LIMIT_GB:.0f}")
    return 0 if seconds <= LIMIT_SECONDS and memory <= LIMIT_GB else 1


if __name__ == "__main__":
    sys.exit(main())
