"""What a results folder costs under an array of 1,000 jobs, and when it holds 100,000 runs.

The runs are synthetic, without designs and their values, which no summary reads. First each has a
file of its own, as sweeps leave them; then they are folded by `compact`. The resume check is what a
sweep over all runs asks the store before it launches anything: every file is read whole.

The array stores more runs in the same folder. A job does what a real one asks of the store, and
sleeps where a real one computes; the main process follows the progress of all of them. Jobs are
threads of 50 processes, so that they fit into memory. The wait for a lock is that for the whole
call of `flock`, so it contains what the machine is busy with.

Run: python benchmarks/store.py [--runs N] [--jobs N] [--keep FOLDER]
"""

import argparse
import fcntl
import json
import multiprocessing
import random
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from unittest import mock

import numpy as np

from ddobench.cli.job import find_missing
from ddobench.progress import Silent, following
from ddobench.runner.provenance import describe_machine
from ddobench.scores import curve_names, stored_names
from ddobench.seeds import parse_seeds
from ddobench.store import atomic
from ddobench.store.folding import compact
from ddobench.store.parquet import to_bytes, to_stored
from ddobench.store.records import Record
from ddobench.store.runs import Place, Store, load, survey
from ddobench.store.sweeps import announce

SEEDS, ITERATIONS = 50, 51
WANTED = parse_seeds(f"0-{SEEDS - 1}")
LIMIT_RESUME, LIMIT_SUMMARY = 5.0, 30.0  # CPU seconds, which other work on a machine disturbs less
LIMIT_LOCK = 1.0  # seconds
LIMIT_GB = 4.0
PROCESSES, SLEEP = 50, 1.0  # of the array; seconds before each run, up to twice as many
OF_A_JOB = 5  # runs; ten jobs share a folder


def make_record(seed: int, digest: str = "") -> Record:
    """Return a record with curves and scores of its own."""
    rng = np.random.default_rng(seed)
    row = {
        "task": "chain", "task_variant": "", "method": "mine", "method_variant": digest, "d": 41,
        "n": 10_000, "seed": seed, "budget": "full", "digest": digest, "status": "ok", "reason": "",
        "label": "Mine", "color": "#332288", "command": "python -m ddobench -m method=mine",
        "revision": "0" * 40, "privileges": "", "finished": "2026-01-01T00:00:00+00:00",
        **{name: float(rng.normal()) for name in stored_names()},
    }  # fmt: skip
    config = {"task": {"d": 41}, "method": {"width": 64}, "budget": {"designs": 1024}}
    curves = {name: rng.normal(size=ITERATIONS) for name in curve_names()}
    curves["iteration"] = np.arange(ITERATIONS, dtype=float)
    return Record(row, config, describe_machine(), curves)


def fill(store: Store, runs: int) -> None:
    """Store so many runs, or the fewest more that fill the last folder."""
    shared = [to_stored(make_record(seed)) for seed in range(SEEDS)]
    for number in range(-(-runs // SEEDS)):
        place = name_place(store, f"{number:016x}")
        place.folder.mkdir(parents=True)
        for run in shared:
            changed = {"digest": place.digest, "method_variant": place.digest}
            row = run.metadata()["row"] | changed
            cells = run.cells | {"row": json.dumps(list(row.values()))}
            place.file(run.seed).write_bytes(to_bytes([replace(run, cells=cells)]))


def name_place(store: Store, digest: str) -> Place:
    """Return the place of a specification."""
    return store.place("chain", "mine", 41, 10_000, digest)


def check_all(store: Store, places: list[Place]) -> int:
    """Return how many runs are missing."""
    return sum(len(find_missing(store, place, WANTED)) for place in places)


class Waits:
    """Stands for `fcntl` in a module and remembers the longest call of `flock`."""

    LOCK_EX, LOCK_NB = fcntl.LOCK_EX, fcntl.LOCK_NB
    longest, calls = 0.0, 0
    alone = threading.Lock()

    def flock(self, handle: int, how: int) -> None:
        """Lock a file."""
        began = time.perf_counter()
        try:
            fcntl.flock(handle, how)
        finally:
            with self.alone:
                self.longest = max(self.longest, time.perf_counter() - began)
                self.calls += 1


def run_jobs(folder: Path, jobs: list[int]) -> tuple[float, int]:
    """Run some jobs side by side; return the longest wait for a lock and the number of waits."""
    waits = Waits()
    with mock.patch.object(atomic, "fcntl", waits), ThreadPoolExecutor(len(jobs)) as pool:
        [*pool.map(lambda job: run_job(Store(folder), job), jobs)]
    return waits.longest, waits.calls


def run_job(store: Store, job: int) -> None:
    """Do with the store what a job does."""
    (place, seeds), rng = name_job(store, job), random.Random(job)
    time.sleep(SLEEP * rng.random())
    missing = store.missing(place, seeds)
    store.check_room(place)
    for seed in missing:
        time.sleep(2 * SLEEP * rng.random())
        store.write(place, make_record(seed, place.digest))


def name_job(store: Store, job: int) -> tuple[Place, range]:
    """Return the place of a job and its seeds."""
    share = SEEDS // OF_A_JOB
    first = job % share * OF_A_JOB
    return name_place(store, f"array{job // share:011x}"), range(first, first + OF_A_JOB)


def run_array(store: Store, jobs: int) -> tuple[float, int, int]:
    """Run an array of jobs; return the longest wait for a lock, the locks, and the missing runs."""
    places = list(dict.fromkeys(name_job(store, job)[0] for job in range(jobs)))
    shares = [list(range(first, jobs, PROCESSES)) for first in range(min(jobs, PROCESSES))]
    with (
        multiprocessing.get_context("fork").Pool(len(shares)) as pool,  # before there are threads
        announce(store, "array", [(place, WANTED) for place in places]) as sweep,
        following(lambda: sweep.count_done(store.folder), Silent()),
    ):
        ended = pool.starmap(run_jobs, [(store.folder, share) for share in shares], chunksize=1)
    left = len(places) * SEEDS - jobs * OF_A_JOB  # of a last folder that is not full
    missing = check_all(store, places) - left
    return max(wait for wait, _ in ended), sum(calls for _, calls in ended), missing


def measure(work: Callable[[], object]) -> float:
    """Return the CPU seconds of some work."""
    began = time.process_time()
    work()
    return time.process_time() - began


def main() -> int:
    """Fill a store, look at it, print the numbers beside their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--jobs", type=int, default=1000)
    parser.add_argument("--keep", type=Path, help="fill this folder, or measure what it holds")
    options = parser.parse_args()
    folder = options.keep or Path(tempfile.mkdtemp(prefix="ddobench-store-"))
    store = Store(folder / "runs")
    machine = describe_machine()
    print(f"{machine['cpu']}, Python {machine['python']}, {options.runs:,} runs", flush=True)
    misses = 0

    def show(what: str, found: float, limit: float | None = None) -> None:
        nonlocal misses
        misses += limit is not None and found > limit
        beside = "" if limit is None else f"   limit {limit:.0f}"
        print(f"{what:<44}{found:>10.3f}{beside}", flush=True)

    try:
        if not store.folder.exists():
            fill(store, options.runs)
        places = store.places()
        show(
            "resume check, single files, CPU s",
            measure(lambda: check_all(store, places)),
            LIMIT_RESUME,
        )
        longest, calls, missing = run_array(store, options.jobs)
        show(f"longest of {calls:,} waits for a lock, s", longest, LIMIT_LOCK)
        show(f"runs missing after {options.jobs:,} jobs", missing, 0)
        compact(store.folder)
        show("resume check, folded, CPU s", measure(lambda: check_all(store, places)), LIMIT_RESUME)
        show("rows (load), CPU s", measure(lambda: load(store.folder)))
        show("all summaries (survey), CPU s", measure(lambda: survey(store.folder)), LIMIT_SUMMARY)
    finally:
        if not options.keep:
            shutil.rmtree(folder)
    unit = 1024**3 if sys.platform == "darwin" else 1024**2
    memory = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / unit
    show("peak memory, GB", memory, LIMIT_GB)
    return 1 if misses else 0


if __name__ == "__main__":
    sys.exit(main())
