"""Through how many modules of ours one run passes, and one figure of a report.

A module is imported, or passed: one of its functions was called. Each part is a process of its own.

Run: python benchmarks/hops.py [--list]
"""

import inspect
import multiprocessing
import sys
import tempfile
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from io import StringIO
from pathlib import Path
from types import FrameType
from typing import Any

SWEEP = [
    "method=fgm", "task=chain", "d=5", "n=60", "budget=tiny", "-m", "seed=0-1",
]  # fmt: skip


def sweep(folder: str) -> None:
    """Run the user's main command, small."""
    from ddobench.cli.main import main

    sys.argv = ["ddobench", *SWEEP, f"results_dir={folder}"]
    main()


def draw(folder: str) -> None:
    """Draw the first figure of the report."""
    from ddobench.report.data import ReportData
    from ddobench.report.figures.gallery import make_figures

    next(make_figures(ReportData.read(Path(folder)))).render("svg")


def count(work: Callable[[str], None], folder: str) -> tuple[set[str], set[str]]:
    """Return the modules that a piece of work imports and those that it passes."""
    passed: set[str] = set()

    def note(frame: FrameType, event: str, _: Any) -> None:
        # bodies of modules and classes, which run on import, are not functions
        if event == "call" and frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            passed.add(str(frame.f_globals.get("__name__", "")))

    with redirect_stdout(StringIO()), redirect_stderr(StringIO()):
        sys.setprofile(note)
        try:
            work(folder)
        finally:
            sys.setprofile(None)
    ours = [{n for n in names if n.startswith("ddobench")} for names in (sys.modules, passed)]
    return ours[0], ours[1]


def main() -> None:
    """Print the counts, and with --list the names."""
    context = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        for name, work in (("one run", sweep), ("one figure", draw)):
            with context.Pool(1) as pool:
                imported, passed = pool.apply(count, (work, folder))
            print(f"{name:<12}{len(imported):>4} modules imported{len(passed):>5} passed")
            if "--list" in sys.argv:
                print(*sorted(passed), sep="\n")


if __name__ == "__main__":
    main()
