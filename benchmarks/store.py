"""A results folder of 100,000 runs: what it costs to resume a sweep, and to summarise it.

The runs are synthetic and folded as `python -m ddobench.compact` leaves them, without designs and
their values, which no summary reads. The resume check is what a sweep over all runs asks the store
before it launches anything; it reads every run whole. With --single each run has a file of its own,
as a sweep leaves it. There are no limits for these: all costs grow with the number of files, so
2,000 files are enough to extrapolate.

Run: python benchmarks/store.py [--runs N] [--keep FOLDER] [--single]
"""

import argparse
import json
import resource
import shutil
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np

from ddobench.runner.provenance import describe_machine
from ddobench.scores import curve_names, stored_names
from ddobench.seeds import parse_seeds
from ddobench.store.parquet import StoredRun, to_bytes, to_stored
from ddobench.store.records import Record
from ddobench.store.runs import Store, load, survey

SEEDS, ITERATIONS = 50, 51
WANTED = parse_seeds(f"0-{SEEDS - 1}")
LIMIT_RESUME, LIMIT_SUMMARY = 30.0, 30.0  # CPU seconds, which other work on a machine disturbs less
LIMIT_GB = 4.0


def make_run(seed: int) -> StoredRun:
    """Return a run with curves and scores of its own."""
    rng = np.random.default_rng(seed)
    row = {
        "task": "chain", "task_variant": "", "method": "mine", "method_variant": "", "d": 41,
        "n": 10_000, "seed": seed, "budget": "full", "digest": "", "status": "ok", "reason": "",
        "label": "Mine", "color": "#332288", "command": "python -m ddobench -m method=mine",
        "revision": "0" * 40, "privileges": "", "finished": "2026-01-01T00:00:00+00:00",
        **{name: float(rng.normal()) for name in stored_names()},
    }  # fmt: skip
    config = {"task": {"d": 41}, "method": {"width": 64}, "budget": {"designs": 1024}}
    curves = {name: rng.normal(size=ITERATIONS) for name in curve_names()}
    return to_stored(
        Record(
            row,
            config,
            describe_machine(),
            {"iteration": np.arange(ITERATIONS, dtype=float), **curves},
        )
    )


def fill(store: Store, runs: int, single: bool) -> None:
    """Store so many runs, or the fewest more that fill the last file."""
    shared = [make_run(seed) for seed in range(SEEDS)]
    for number in range(-(-runs // SEEDS)):
        digest = f"{number:016x}"
        place = store.place("chain", "mine", 41, 10_000, digest)
        place.folder.mkdir(parents=True)
        members = []
        for run in shared:
            row = run.metadata()["row"] | {"digest": digest, "method_variant": f"width={number}"}
            cells = run.cells | {"row": json.dumps(list(row.values()))}
            members.append(replace(run, cells=cells))
        if not single:
            place.folded(0).write_bytes(to_bytes(members))
            continue
        for run in members:
            place.file(run.seed).write_bytes(to_bytes([run]))


def check_all(store: Store) -> int:
    """Return how many runs are missing: 0."""
    return sum(len(store.missing(place, list(WANTED))) for place in store.places())


def measure(work: Callable[[], object]) -> float:
    """Return the CPU seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> int:
    """Fill a store, look at it, print the numbers beside their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--keep", type=Path, help="fill this folder, or measure what it holds")
    parser.add_argument("--single", action="store_true", help="a file for each run")
    options = parser.parse_args()

    def limit(seconds: float) -> float | None:
        return None if options.single else seconds

    folder = options.keep or Path(tempfile.mkdtemp(prefix="ddobench-store-"))
    store = Store(folder / "runs")
    try:
        if not store.folder.exists():
            fill(store, options.runs, options.single)
        files = [path for path in folder.rglob("seed*") if path.is_file()]
        size = sum(path.stat().st_size for path in files)
        costs = {
            "resume check": (measure(lambda: check_all(store)), limit(LIMIT_RESUME)),
            "rows (load)": (measure(lambda: load(store.folder)), None),
            "all summaries (survey)": (measure(lambda: survey(store.folder)), limit(LIMIT_SUMMARY)),
        }
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    unit = 1024**3 if sys.platform == "darwin" else 1024**2
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    machine = describe_machine()
    print(f"{machine['cpu']}, Python {machine['python']}, {options.runs:,} runs, "
          f"{len(files):,} files, {size / 1e6:.0f} MB")  # fmt: skip
    for name, (seconds, most) in costs.items():
        beside = "" if most is None else f"   limit {most:.0f}"
        print(f"{name + ', CPU s':<32}{seconds:>8.2f}{beside}")
    print(f"{'peak memory, GB':<32}{memory:>8.2f}   limit {LIMIT_GB:.0f}")
    within = all(most is None or seconds <= most for seconds, most in costs.values())
    return 0 if within and memory <= LIMIT_GB else 1


if __name__ == "__main__":
    sys.exit(main())
