"""A command that is killed repeatedly must end with the same store as an undisturbed one.

In each episode one command is killed at random times and started again until it finishes by
itself; then its store is compared with an undisturbed one, record by record, and must have no
temporary files. The commands: a sweep of 30 runs (three methods, two of which share their trained
latents), the same with isolate=true, the same where the process of a method is killed and not the
sweep, and `compact`. Each is a process, forked after all imports. Kills after something new was
stored are counted: if there are few, the test shows little.

Run: python benchmarks/kills.py [--kills 300] [--state FILE]
"""

import argparse
import itertools
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the tests' own modules

import ddobench.baselines.fgm
import ddobench.baselines.naive
import ddobench.parts.pipeline
import ddobench.parts.vae
import ddobench.runner.batches
import ddobench.tasks.rbf  # noqa: F401 - all of these before the first fork
from ddobench.cli.main import main
from ddobench.compact import main as compact
from ddobench.runner import isolation
from ddobench.store.records import Record
from ddobench.store.runs import RUN, Place, Store, list_files, read_runs
from tests.support.records import same_record
from tests.support.tally import Tally

SWEEP = [
    "-m", "method=naive,fgm,vae_ga", "task=chain", "d=5", "n=60", "budget=tiny", "seed=0-9",
    "seeds_per_job=2", "latent.width=8", "latent.training.steps=20", "surrogate.width=8",
    "surrogate.training.steps=20",
]  # fmt: skip
RUNS = 30
KINDS = (
    "sweep", "compact", "sweep", "compact", "sweep", "compact", "sweep", "isolated", "sweep",
    "method",
)  # fmt: skip
SHARE = 8  # kills per episode, on average
COMPACT = 1.2  # as most of its time it only reads
LEAST = 0.3  # share of kills that must come after something new was stored
ERRORS = "errors.txt"  # the error output of the last command
PIDS = "pids.txt"  # of the processes of methods
PATIENCE = 600.0  # seconds
TIMES = ("finished", "seconds_fit", "seconds_propose", "seconds_evaluate", "seconds_cpu", "command")
Runs = dict[tuple[str, int], Record]


def start(kind: str, folder: Path) -> tuple[int, float]:
    """Start a command; return its process id and the time of its first write, or of its end."""
    reader, writer = os.pipe()
    child = os.fork()
    if child:
        os.close(writer)
        os.read(reader, 1)
        os.close(reader)
        return child, time.monotonic()
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    os.dup2(os.open(folder.with_name(ERRORS), os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o666), 2)
    write, started, signalled = Store.write, isolation._start_process, list[int]()

    def begin(store: Store, place: Place, record: Record) -> Path:
        if not signalled:
            signalled.append(os.write(writer, b"."))
        return write(store, place, record)

    def note() -> Any:
        process, here = started()
        with folder.with_name(PIDS).open("a") as file:
            file.write(f"{process.pid}\n")
        return process, here

    code = 1
    try:
        if kind == "compact":
            os.write(writer, b".")
            code = compact([str(folder)])
        else:
            isolate = ["isolate=true"] if kind in ("isolated", "method") else []
            sys.argv = ["ddobench", *SWEEP, *isolate, f"results_dir={folder}"]
            with (
                mock.patch.object(Store, "write", begin),
                mock.patch.object(isolation, "_start_process", note),
            ):
                main()
            code = 0
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 1
    finally:
        os._exit(code)


def finish(kind: str, folder: Path) -> float:
    """Run a command to its end and return the seconds since its first write."""
    child, began = start(kind, folder)
    status = os.waitpid(child, 0)[1]
    if status:
        sys.exit(f"{kind}, not killed, has failed: {folder.with_name(ERRORS).read_text()}")
    return time.monotonic() - began


def disturb(kind: str, seconds: float, folder: Path) -> tuple[bool, bool, str]:
    """Start a command and kill it, or its method, after some time.

    Return whether it was killed in time, whether it came to its end, and what was wrong with that.
    """
    child, began = start(kind, folder)
    hit = False
    while True:
        ended, status = os.waitpid(child, os.WNOHANG)
        if ended:
            break
        if not hit and time.monotonic() >= began + seconds:
            hit = True
            if kind != "method":
                os.kill(child, signal.SIGKILL)
                return os.WIFSIGNALED(os.waitpid(child, 0)[1]), False, ""
            hit = kill_method(folder)
        time.sleep(0.0005)
    errors = folder.with_name(ERRORS).read_text()
    code = os.waitstatus_to_exitcode(status)
    if kind == "method" and hit and code == 1 and " failed: its process was ended by" in errors:
        return True, False, ""  # named and missing; the same command tries again
    if code or "Traceback" in errors:
        return hit, True, f"{kind} ended with exit code {code}: {errors[-2000:]}"
    return hit, True, ""


def kill_method(folder: Path) -> bool:
    """Kill the process of the last method that was started; return whether there was one."""
    pids = folder.with_name(PIDS).read_text().split() if folder.with_name(PIDS).exists() else []
    try:
        os.kill(int(pids[-1]), signal.SIGKILL)
    except (IndexError, ProcessLookupError):
        return False
    return True


def differences(folder: Path, expected: Runs) -> Iterator[str]:
    """Yield the differences of a store from an undisturbed one."""
    found = read_all(folder)
    yield from (f"{name} is missing or extra" for name in sorted(found.keys() ^ expected.keys()))
    for name in sorted(found.keys() & expected.keys()):
        if not same_record(found[name], expected[name], TIMES):
            yield f"{name} differs"
    yield from (f"{path} is left" for path in folder.rglob("*.tmp"))


def read_all(folder: Path) -> Runs:
    """Read every run, single or folded, by folder and seed; a damaged one raises."""
    return {
        (own.parent.name, int(record.row["seed"])): record
        for path in list_files(folder, RUN)
        for own, record in read_runs(path, lambda run, _: run.record()).items()
    }


def try_episode(
    case: int, work: Path, expected: Runs, lengths: dict[str, float]
) -> tuple[str, int, int, list[str]]:
    """Return the kind of an episode, its kills, those after new runs, and what is wrong."""
    rng = random.Random(case)
    kind, folder = KINDS[case % len(KINDS)], work / "killed"
    shutil.rmtree(folder, ignore_errors=True)
    folder.with_name(PIDS).unlink(missing_ok=True)
    if kind == "compact":
        shutil.copytree(work / "undisturbed", folder)
    kills = useful = 0
    before, problems = folded(folder), list[str]()
    while True:
        seconds = rng.uniform(0, 2 * lengths[kind] / (COMPACT if kind == "compact" else SHARE))
        killed, ended, wrong = disturb(kind, seconds, folder)
        problems += filter(None, [wrong])
        kills += killed
        useful += killed and folded(folder) != before
        before = folded(folder)
        if ended:
            break
    return kind, kills, useful, [*problems, *differences(folder, expected)]


def folded(folder: Path) -> tuple[int, int]:
    """Count the files of runs and their bytes, to see whether anything was stored."""
    files = [path for path in folder.rglob("*.parquet") if path.is_file()]
    return len(files), sum(path.stat().st_size for path in files)


def kill_commands(kills: int, work: Path, tally: Tally) -> int:
    """Kill commands, compare what they leave, print the result and return the exit code."""
    lengths = {"sweep": finish("sweep", work / "undisturbed")}
    expected = read_all(work / "undisturbed")
    assert len(expected) == RUNS
    useful = 0
    for case in itertools.count():
        if tally.count >= kills:
            break
        if case in tally.cases:
            continue
        kind = KINDS[case % len(KINDS)]
        if kind not in lengths:
            shutil.rmtree(work / "timed", ignore_errors=True)
            if kind == "compact":
                shutil.copytree(work / "undisturbed", work / "timed")
            lengths[kind] = finish(kind, work / "timed")
        kind, count, new, problems = try_episode(case, work, expected, lengths)
        if new < LEAST * count and kind != "method":
            print(f"case {case}, {kind}: only {new} of {count} kills after something was stored")
        useful += new
        tally.add(case, kind, problems, count)
    print(f"{len(tally.cases)} episodes; kills after something new was stored, this time: {useful}")
    return tally.print("kills", "episodes that ended with another store, or with a traceback")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--kills", type=int, default=300)
    parser.add_argument("--state", type=Path, help="where outcomes are kept, to be continued")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        sys.exit(kill_commands(options.kills, Path(place), Tally(options.state)))
