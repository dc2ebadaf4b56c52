"""What is wrong with an installation or a results folder: `python -m ddobench.doctor`."""

import argparse
import logging
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from importlib import metadata
from pathlib import Path

from ddobench.cli.argv import DEFAULT_RESULTS, SentenceParser, complain, quiet_output, read_folder
from ddobench.cli.workers import EXTRAS, how_to_install, is_installed
from ddobench.determinism import DEFAULT, TOO_LATE, VARIABLE
from ddobench.errors import StorageError, UsageError
from ddobench.progress import format_bytes, reporting_late, track
from ddobench.store.atomic import check_room
from ddobench.store.runs import RUN, attempt, list_files, read_runs, seed_of
from ddobench.store.sweeps import read_sweeps

LITTLE = 1e9  # bytes of free disk that a sweep soon fills
MANY_FILES = 1000  # of single runs that had better be folded
_NONE = "none"  # the version of what is not installed
_EPILOG = """\
One line for each thing that was looked at: "ok", "note" for what one may want to know, and "fix"
with what to do. Exit code: 0 if there is nothing to fix, 1 if there is, 2 if the request cannot be
understood. Nothing is changed, and nothing is sent anywhere."""


@dataclass(frozen=True)
class Finding:
    """What was seen of one thing, and what to do about it, if anything."""

    what: str
    seen: str
    fix: str = ""
    note: str = ""

    def __str__(self) -> str:
        state = "fix" if self.fix else "note" if self.note else "ok"
        advice = self.fix or self.note
        return f"{state:<5}{self.what}: {self.seen}" + (f"; {advice}" if advice else "")


def check_packages() -> Iterator[Finding]:
    """Look at Python and at the packages that ddobench requires."""
    from packaging.requirements import Requirement

    python = ".".join(map(str, sys.version_info[:3]))
    yield Finding("Python", python)
    try:
        lines = metadata.requires("ddobench") or []
        own = metadata.version("ddobench")
    except metadata.PackageNotFoundError:
        yield Finding("packages", "ddobench is not installed", fix="pip install -e . where it lies")
        return
    wanted = [Requirement(line) for line in lines if "extra ==" not in line]
    versions = {one.name: _find_version(one.name) for one in wanted}
    odd = [
        f"{one.name} {versions[one.name]} (wants {one.specifier or 'any'})"
        for one in wanted
        if versions[one.name] == _NONE
        or not one.specifier.contains(versions[one.name], prereleases=True)
    ]
    remedy = "pip install --constraint constraints.txt ddobench" if odd else ""
    seen = ", ".join(odd) or f"ddobench {own} and the {len(wanted)} that it requires"
    yield Finding("packages", seen, fix=remedy)


def _find_version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return _NONE


def check_products() -> Iterator[Finding]:
    """Look at the library for matrix products, its mode and its threads."""
    import torch

    from ddobench.runner.provenance import describe_machine

    machine = describe_machine()
    mode, asked = str(machine["mkl_mode"]), os.environ.get(VARIABLE, "")
    if mode == TOO_LATE:
        yield Finding("matrix products", "MKL began before its mode was set",
                      fix=f"set {VARIABLE}={DEFAULT} before Python starts")  # fmt: skip
    elif mode and mode != asked:
        yield Finding("matrix products", f"MKL ignores {VARIABLE}={asked}, which it or this CPU "
                      f"does not know, and takes {mode}",
                      fix=f"set {VARIABLE}={DEFAULT}, or leave it out")  # fmt: skip
    elif mode:
        yield Finding("matrix products", f"MKL with {VARIABLE}={mode}: a seed's bits depend on no "
                      "other seed")  # fmt: skip
    else:
        yield Finding("matrix products", "PyTorch has no MKL here",
                      note="a seed beside other seeds is the same up to rounding only")  # fmt: skip
    cores, threads = os.cpu_count() or 1, torch.get_num_threads()
    seen = f"{threads} of {cores} cores ({machine['cpu']})"
    busy = os.getloadavg()[0] if hasattr(os, "getloadavg") else 0.0
    if busy > cores:
        advice = f"{busy:.0f} processes want them now: OMP_NUM_THREADS=1 makes the most of that"
        yield Finding("threads", seen, note="" if threads == 1 else advice)
    else:
        yield Finding("threads", seen)
    gpu = str(machine["gpu"])
    yield Finding("device", f"cuda ({gpu})" if gpu else "cpu, as PyTorch sees no GPU")


def check_launchers() -> Iterator[Finding]:
    """Look at the plug-ins that spread jobs."""
    there = [extra for package, extra in EXTRAS.items() if is_installed(package)]
    rest = [extra for extra in EXTRAS.values() if extra not in there]
    advice = ", ".join(f"for {extra}: {how_to_install(extra)}" for extra in rest)
    yield Finding("launchers", ", ".join(["basic", *there]), note=advice)


def check_folder(folder: Path) -> Iterator[Finding]:
    """Look at whether runs can be stored."""
    existing = next((one for one in (folder, *folder.absolute().parents) if one.exists()), folder)
    try:
        if folder.is_dir():
            check_room(folder)
        elif not existing.is_dir() or not os.access(existing, os.W_OK):
            raise StorageError(f"{folder} cannot be made in {existing}")
    except StorageError as error:
        yield Finding("results folder", str(error), fix="results_dir=FOLDER chooses another")
        return
    free = shutil.disk_usage(existing).free
    seen = f"{folder} can be written, {format_bytes(free)} free"
    yield Finding("results folder", seen, fix="make room" if free < LITTLE else "")


def check_store(folder: Path) -> Iterator[Finding]:
    """Look at every stored run."""
    damaged: dict[Path, str] = {}
    sound = alone = 0
    for path in track(list_files(folder, RUN), "checking runs"):
        read = partial(read_runs, path, lambda run, _: run.record(), left_out=damaged)
        sound += len(attempt(path, read, damaged) or ())
        alone += seed_of(path.name) is not None
    failed = sum(1 for _ in folder.glob("*/*.error.json"))
    seen = f"{sound} runs are whole"
    if damaged:
        yield Finding("store", f"{seen}, {len(damaged)} files or runs are damaged, named above",
                      fix="the sweeps that made them run them again")  # fmt: skip
    else:
        yield Finding("store", seen)
    if failed:
        yield Finding("failures", f"{failed} runs have failed",
                      note="the same commands try them again")  # fmt: skip
    if alone > MANY_FILES:
        yield Finding("files", f"{alone} runs have a file each",
                      note=f"python -m ddobench.compact {folder} folds them, to be read in a "
                      "quarter of the time")  # fmt: skip
    killed = [sweep.command for sweep, alive in read_sweeps(folder) if not alive]
    for command in killed:
        yield Finding("sweeps", f"one was killed: {command}", note="the same command continues it")


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.getLogger("ddobench").addHandler(logging.StreamHandler(sys.stderr))
    try:
        folder = read_folder(options.results_dir)
    except UsageError as error:
        complain(str(error))
    checks: list[Callable[[], Iterator[Finding]]] = [
        check_packages, check_products, check_launchers, lambda: check_folder(folder),
    ]  # fmt: skip
    if folder.is_dir():
        checks.append(lambda: check_store(folder))
    broken = 0
    try:
        with reporting_late():
            for check in checks:
                for finding in check():
                    broken += bool(finding.fix)
                    print(finding, flush=True)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    print(f"{broken} to fix" if broken else "nothing to fix")
    return int(broken > 0)


def _parser() -> argparse.ArgumentParser:
    parser = SentenceParser(
        prog="python -m ddobench.doctor",
        description="Say what is wrong with this installation or a results folder.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results_dir", nargs="?", default=DEFAULT_RESULTS,
                        help="the folder of runs (default: %(default)s)")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
