"""Hundreds of damaged files: what they cost is named, nothing else changes, and a rerun mends it.

A small store has single runs, folded files, a task sample and cached arrays. For each case one of
its files is damaged in one way. Then every run must be read as it was or be named as damaged, the
doctor's exit code must tell, `compact` must keep the others, and the same sweep must end with the
store of an undisturbed one. A case is the same whenever it is tried.

Run: python benchmarks/damage.py [--cases 500] [--state FILE]
"""

import argparse
import contextlib
import io
import logging
import os
import random
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the tests' own modules

import pandas as pd

from ddobench.cli import main as cli
from ddobench.compact import main as compact
from ddobench.doctor import check_store
from ddobench.scores import HEADLINE
from ddobench.store.records import Record
from ddobench.store.runs import RUN, list_files, load, load_curves, read_runs
from tests.support.records import same_record
from tests.support.tally import Tally

SWEEP = [
    "-m", "method=naive,vae_ga", "task=chain", "d=5", "n=40", "budget=tiny", "seed=0-3",
    "latent.width=4", "latent.training.steps=2", "surrogate.width=4", "surrogate.training.steps=2",
]  # fmt: skip
RUNS = 8
TIMES = ("finished", "seconds_fit", "seconds_propose", "seconds_evaluate", "seconds_cpu", "command")
Runs = dict[tuple[str, int], Record]
Damage = Callable[[Path, random.Random], None]


def _rewrite(change: Callable[[bytes, random.Random], bytes]) -> Damage:
    def damage(path: Path, rng: random.Random) -> None:
        path.write_bytes(change(path.read_bytes(), rng))

    return damage


def _flip(data: bytes, rng: random.Random, bits: int = 1) -> bytes:
    changed = bytearray(data)
    for _ in range(bits):
        changed[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return bytes(changed)


def _blank(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + bytes(min(64, len(data) - at)) + data[at + 64 :]


def _insert(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + rng.randbytes(rng.randrange(1, 9)) + data[at:]


def _drop(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(len(data))
    return data[:at] + data[at + rng.randrange(1, 9) :]


def _swap(data: bytes, rng: random.Random) -> bytes:
    at = rng.randrange(1, len(data))
    return data[at:] + data[:at]


def _copy_other(path: Path, rng: random.Random) -> None:
    files = path.parent.parent.rglob(f"*{path.suffix}")
    others = [one for one in files if one.parent != path.parent and one.is_file()]
    if others:
        shutil.copy(rng.choice(sorted(others)), path)
    else:
        path.write_bytes(b"{}")


def _replace_by(make: Callable[[Path], None]) -> Damage:
    def damage(path: Path, _: random.Random) -> None:
        path.unlink()
        make(path)

    return damage


DAMAGES: dict[str, Damage] = {
    "one bit flipped": _rewrite(_flip),
    "a hundred bits flipped": _rewrite(lambda data, rng: _flip(data, rng, 100)),
    "64 bytes zero": _rewrite(_blank),
    "bytes inserted": _rewrite(_insert),
    "bytes missing": _rewrite(_drop),
    "cut": _rewrite(lambda data, rng: data[: rng.randrange(len(data))]),
    "doubled": _rewrite(lambda data, _: data + data),
    "parts swapped": _rewrite(_swap),
    "random bytes": _rewrite(lambda data, rng: rng.randbytes(len(data))),
    "empty": _rewrite(lambda _, __: b""),
    "another file of its kind": _copy_other,
    "a folder": _replace_by(Path.mkdir),
    "a named pipe": _replace_by(os.mkfifo),
    "a link to itself": _replace_by(lambda path: path.symlink_to(path.name)),
    "a link to nowhere": _replace_by(lambda path: path.symlink_to("nowhere")),
    "a link to a device": _replace_by(lambda path: path.symlink_to("/dev/zero")),
}


def call(main: Callable[[], object], *words: str) -> tuple[int, str]:
    """Run a command line here; return its exit code and all that it printed."""
    out = io.StringIO()
    log = logging.getLogger("ddobench")
    with (
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(out),
        mock.patch.object(sys, "argv", ["ddobench", *words]),
        mock.patch.object(log, "handlers", [logging.StreamHandler(out)]),
    ):
        try:
            code = main()
        except SystemExit as end:
            code = end.code
    return code if isinstance(code, int) else int(code is not None), out.getvalue()


def read_all(folder: Path) -> Runs:
    """Read every run that is sound, by folder and seed."""
    found: Runs = {}
    for path in list_files(folder, RUN):
        with contextlib.suppress(Exception):
            for own, record in read_runs(path, lambda run, _: run.record()).items():
                found[own.parent.name, int(record.row["seed"])] = record
    return found


def make_store(folder: Path) -> Runs:
    """Make the store that is damaged, half of it folded; return its runs."""
    first = ["seed=0-1" if word.startswith("seed=") else word for word in SWEEP]
    call(cli.main, *first, f"results_dir={folder}")
    call(lambda: compact([str(folder)]))
    call(cli.main, *SWEEP, f"results_dir={folder}")
    runs = read_all(folder)
    assert len(runs) == RUNS, len(runs)
    return runs


def try_case(case: int, store: Path, expected: Runs, work: Path) -> tuple[str, list[str]]:
    """Damage one file of a copy; return what was done and what is wrong."""
    rng = random.Random(case)
    folder = work / "runs"
    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(store, folder)
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    wanted = rng.choice(["run", "run", "folded file", "JSON", "cached array"])
    path = rng.choice([path for path in files if _describe(path) == wanted])
    kind = rng.choice(list(DAMAGES))
    DAMAGES[kind](path, rng)
    gone = not path.exists()  # a link to nowhere is a run that was never made
    problems = examine(folder, expected, path, gone)
    if case % 3 == 0:
        code, out = call(lambda: compact([str(folder)]))
        problems += [f"compact: {code} {out}"] * (code not in (0, 1) or "Traceback" in out)
        problems += [f"after compact: {one}" for one in examine(folder, expected, path, gone)]
    code, out = call(cli.main, *SWEEP, f"results_dir={folder}")
    obstacle = not path.is_file() and os.path.lexists(path)
    if "Traceback" in out or (code != 0 and not obstacle):
        problems.append(f"the sweep again: exit code {code}: {out}")
    if code == 0 and (lost := expected.keys() - read_all(folder).keys()):
        problems.append(f"still missing after the sweep: {sorted(lost)}")
    problems += [f"after the sweep: {one}" for one in examine(folder, expected, path, gone)]
    return f"{_describe(path)}, {kind}", [f"{path.name}: {one}" for one in problems]


def _describe(path: Path) -> str:
    kinds = {"seeds-": "folded file", "seed-": "run", ".npz": "cached array", ".json": "JSON"}
    if path.suffix in kinds:
        return kinds[path.suffix]
    return next((kind for start, kind in kinds.items() if path.name.startswith(start)), "other")


def examine(folder: Path, expected: Runs, damaged: Path, gone: bool) -> list[str]:
    """Return what readers make of a folder that they should not."""
    problems: list[str] = []
    with warnings_into(messages := list[str]()):
        found, rows, curves = read_all(folder), load(folder), load_curves(folder)
        findings = [*check_store(folder)]
    for key, record in found.items():
        if key not in expected:
            problems.append(f"invented {key}")
        elif not same_record(record, expected[key], TIMES):
            problems.append(f"misread {key}")
    # A table needs neither curves nor arrays, so it also has runs of which only these are damaged.
    if not {*found} <= {*listed(rows)} <= {*expected}:
        problems.append(f"load has {sorted(listed(rows))}, sound are {sorted(found)}")
    with_curves = curves.groupby(["method", "seed"]).ngroups
    if not len(found) <= with_curves <= len(listed(rows)):
        problems.append(f"load has {len(listed(rows))} runs, load_curves {with_curves}")
    for key, score in listed(rows).items():
        if key in expected and score != expected[key].row[HEADLINE.name]:
            problems.append(f"load has a wrong score of {key}: {score}")
    missing = expected.keys() - found.keys()
    if missing and not gone:
        names = {damaged.name, *(f"seed-{seed:05d}{RUN}" for _, seed in missing)}
        if not any(name in message for message in messages for name in names):
            problems.append(f"no reader names {damaged.name}, which costs {sorted(missing)}")
        if not any(finding.fix for finding in findings):
            problems.append(f"the doctor has nothing to fix, {sorted(missing)} are missing")
    return problems


def listed(rows: pd.DataFrame) -> dict[tuple[str, int], float]:
    """Return the scores of finished runs in a table, by folder and seed."""
    ok = rows[rows["status"] == "ok"]
    return {
        (str(path).rpartition("/")[0], int(seed)): float(value)
        for path, seed, value in zip(ok["path"], ok["seed"], ok[HEADLINE.name], strict=True)
    }


@contextlib.contextmanager
def warnings_into(messages: list[str]) -> Iterator[None]:
    """Collect the warnings of the package."""

    class Collect(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            messages.append(record.getMessage())

    log = logging.getLogger("ddobench")
    with (
        mock.patch.object(log, "handlers", [Collect()]),
        mock.patch.object(log, "propagate", False),
    ):
        yield


def main() -> int:
    """Try the cases that are left and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=500)
    parser.add_argument("--state", type=Path, help="where outcomes are kept, to be continued")
    options = parser.parse_args()
    tally = Tally(options.state)
    with tempfile.TemporaryDirectory() as place:
        store = Path(place, "store")
        expected = make_store(store)
        for case in tally.rest(options.cases):
            kind, problems = try_case(case, store, expected, Path(place))
            tally.add(case, kind, problems)
    return tally.print("damaged files", "with a run lost, misread or not named, or a traceback")


if __name__ == "__main__":
    sys.exit(main())
