"""Following sweeps from another terminal: `python -m ddobench.watch [RESULTS_DIR]`."""

import argparse
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.progress import TaskID

from ddobench.cli.argv import DEFAULT_RESULTS, SentenceParser, complain, quiet_output, read_folder
from ddobench.errors import UsageError
from ddobench.progress import bars, format_seconds
from ddobench.store.sweeps import Sweep, read_sweeps

_EPILOG = """\
Shown are the runs done of all that were missing when a sweep began, how many a minute, and how long
the rest may take. All of it is read from the store, so it is the same for every launcher and on
every machine that sees the folder. It ends with the sweeps; --once prints the state and exits."""


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        folder = read_folder(options.results_dir)
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}; give one that runs are stored in")
        sweeps = read_sweeps(folder)
        if not sweeps:
            print(f"no sweep is under way in {folder}")
        elif options.once:
            print("\n".join(describe(sweep, folder, alive) for sweep, alive in sweeps))
        elif sys.stdout.isatty():
            _draw(folder, options.every)
        else:
            _print(folder, options.every)
    except UsageError as error:
        complain(str(error))
    except KeyboardInterrupt:
        return 130
    return 0


def describe(sweep: Sweep, folder: Path, alive: bool) -> str:
    """Return one line on the progress of a sweep."""
    done = sweep.count_done(folder)
    spent = max(time.time() - sweep.began, 1e-9)
    progress = f"{done} of {sweep.runs} runs"
    if not alive:
        return f"{progress}, killed: the same command continues ({sweep.command})"
    if done:
        left = spent / done * (sweep.runs - done)
        progress += f", {60 * done / spent:.3g} a minute, about {format_seconds(left)} left"
    return f"{progress} ({sweep.command})"


def _follow(folder: Path, every: float) -> Iterator[list[tuple[Sweep, bool]]]:
    """Yield the sweeps of a folder every few seconds, until none is running."""
    while True:
        sweeps = read_sweeps(folder)
        yield sweeps
        if not any(alive for _, alive in sweeps):
            break
        time.sleep(every)
    print(f"no sweep is under way in {folder} any more")


def _print(folder: Path, every: float) -> None:
    """Print a line for every sweep that has made progress."""
    printed: dict[float, str] = {}  # the last progress, by the start of a sweep
    for sweeps in _follow(folder, every):
        for sweep, alive in sweeps:
            line = describe(sweep, folder, alive)
            done = line.partition(" runs")[0]
            if printed.get(sweep.began) != done:
                printed[sweep.began] = done
                print(line, flush=True)


def _draw(folder: Path, every: float) -> None:
    """Show a bar for every sweep."""
    shown: dict[float, TaskID] = {}  # by the start of the sweep
    with bars() as progress:
        for sweeps in _follow(folder, every):
            for sweep, _ in sweeps:
                if sweep.began not in shown:
                    shown[sweep.began] = progress.add_task(sweep.command, total=sweep.runs)
                progress.update(shown[sweep.began], completed=sweep.count_done(folder))


def _parser() -> argparse.ArgumentParser:
    parser = SentenceParser(
        prog="python -m ddobench.watch",
        description="Follow the sweeps of a results folder.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results_dir", nargs="?", default=DEFAULT_RESULTS,
                        help="the folder of runs (default: %(default)s)")  # fmt: skip
    parser.add_argument("--once", action="store_true", help="print the state once and exit")
    parser.add_argument("--every", type=float, default=1.0, metavar="SECONDS",
                        help="seconds between updates (default: %(default)s)")  # fmt: skip
    return parser


if __name__ == "__main__":
    sys.exit(main())
