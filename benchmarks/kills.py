"""A sweep that is killed repeatedly must end with the same store as an undisturbed one.

Sweeps of 60 runs (three methods, two of which share their trained latents, 20 seeds) are killed
with kill -9 at random times and started again. Whenever one finishes, and after the last kill, its
store is compared with an undisturbed one, record by record, and must have no temporary files; then
the next one starts with an empty folder. Each sweep is a process, forked after all imports. Time is
counted from its first write, as nothing can be lost before. Kills after something new was stored
are counted: if there are few, the test shows little.

Run: python benchmarks/kills.py [--kills 200] [--seed 0]
"""

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from unittest import mock

import numpy as np

import ddobench.baselines.fgm
import ddobench.baselines.naive
import ddobench.parts.pipeline
import ddobench.parts.vae
import ddobench.runner.batches
import ddobench.tasks.rbf  # noqa: F401 - all of these before the first fork
from ddobench.cli.main import main
from ddobench.scores import repeatable_names
from ddobench.store.records import Record
from ddobench.store.runs import Place, Store, read_record

SWEEP = [
    "-m", "method=naive,fgm,vae_ga", "task=chain", "d=5", "n=60", "budget=tiny", "seed=0-19",
    "seeds_per_job=4", "latent.width=8", "latent.training.steps=20", "surrogate.width=8",
    "surrogate.training.steps=20",
]  # fmt: skip
RUNS = 60
SHARE = 12  # kills per finished sweep, on average
LEAST = 0.3  # share of kills that must come after something new was stored
ERRORS = "errors.txt"  # the error output of the last sweep
PARTS = ("values", "predictions", "designs")


def start(folder: Path) -> tuple[int, float]:
    """Start a sweep; return its process id and the time of its first write, or of its end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        return child, time.monotonic()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(folder.with_name(ERRORS), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), 2)
    write, signalled = Store.write, list[int]()

    def begin(store: Store, place: Place, record: Record) -> Path:
        if not signalled:
            signalled.append(os.write(writer, b"."))
        return write(store, place, record)

    sys.argv = ["ddobench", *SWEEP, f"results_dir={folder}"]
    code = 1
    try:
        with mock.patch.object(Store, "write", begin):
            main()
        code = 0
    finally:
        os._exit(code)


def finish(folder: Path) -> float:
    """Run a sweep to its end and return the seconds since its first write."""
    child, began = start(folder)
    check(os.waitpid(child, 0)[1], folder)
    return time.monotonic() - began


def check(status: int, folder: Path) -> None:
    """Exit with the error output of a sweep that failed by itself."""
    if status:
        sys.exit(f"a sweep that was not killed has failed: {folder.with_name(ERRORS).read_text()}")


def kill_after(seconds: float, folder: Path) -> bool:
    """Start a sweep and kill it after some time; return whether it was still running."""
    child, began = start(folder)
    while time.monotonic() < began + seconds:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            check(status, folder)
            return False
        time.sleep(0.0005)
    os.kill(child, signal.SIGKILL)
    return os.WIFSIGNALED(os.waitpid(child, 0)[1])


def differences(folder: Path, expected: dict[str, Record]) -> Iterator[str]:
    """Yield the differences of a store from an undisturbed one."""
    found = read_all(folder)
    yield from (f"{name} is missing or extra" for name in sorted(found.keys() ^ expected.keys()))
    for name in sorted(found.keys() & expected.keys()):
        if not same(found[name], expected[name]):
            yield f"{name} differs"
    yield from (f"{path} is left" for path in folder.rglob("*.tmp"))


def read_all(folder: Path) -> dict[str, Record]:
    """Read every record, by its name."""
    return {str(path.relative_to(folder)): read_record(path) for path in folder.rglob("*.parquet")}


def same(one: Record, other: Record) -> bool:
    """Return whether two records are equal to the bit, except for times."""
    arrays = [[r.curves[name] for name in sorted(one.curves)] for r in (one, other)]
    details = [[getattr(r, name) for name in PARTS] for r in (one, other)]
    scores = [[r.row.get(name, np.nan) for name in repeatable_names()] for r in (one, other)]
    return one.curves.keys() == other.curves.keys() and all(
        np.array_equal(a, b, equal_nan=True)
        for a, b in zip(
            [*arrays[0], *details[0], scores[0]], [*arrays[1], *details[1], scores[1]], strict=True
        )
        if a is not None or b is not None
    )


def count(folder: Path, ending: str) -> int:
    """Count the files with an ending."""
    return sum(1 for _ in folder.rglob(f"*{ending}"))


def kill_sweeps(kills: int, seed: int, work: Path) -> int:
    """Kill sweeps, compare what they leave, print the result and return the exit code."""
    length = finish(work / "undisturbed")
    expected = read_all(work / "undisturbed")
    assert len(expected) == RUNS
    rng = random.Random(seed)
    folder, done, finished, torn, useful, stored = work / "killed", 0, 0, 0, 0, 0
    problems: list[str] = []
    while done < kills:
        if kill_after(rng.uniform(0, 2 * length / SHARE), folder):
            done += 1
            torn += count(folder, ".tmp")
            before, stored = stored, count(folder, ".parquet")
            useful += stored > before
            continue
        finished += 1
        problems += differences(folder, expected)
        shutil.rmtree(folder)
        stored = 0
    finish(folder)
    problems += differences(folder, expected)
    print("\n".join(problems), end="\n" if problems else "")
    print(f"{done} kills over {finished + 1} sweeps of {RUNS} runs, each writes for {length:.1f} s")
    print(f"kills after something new was stored: {useful}   limit {LEAST * done:.0f}")
    print(f"temporary files left by kills: {torn}")
    print(f"differences from an undisturbed store after the last rerun of each: {len(problems)}")
    return 1 if problems or useful < LEAST * done else 0


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=200)
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        sys.exit(kill_sweeps(options.kills, options.seed, Path(place)))
