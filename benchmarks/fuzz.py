"""Thousands of random command lines: no traceback, no stray file, no run that was not requested.

The lines are made as in the tests (`tests/support`), from another random stream. Each runs in an
empty folder; the work inside a run is skipped.

Run: python benchmarks/fuzz.py [LINES]
"""

import collections
import multiprocessing
import shlex
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))  # for the tests' own modules

from tests.support.attempts import attempt, judge
from tests.support.command_lines import Maker, write_plugins

LINES = 5000
STREAM = 2024
PROCESSES = 2


def try_out(words: list[str]) -> tuple[int, int, list[str]]:
    """Return the exit code of a command line, how many runs it made and what is wrong with it."""
    sys.dont_write_bytecode = True
    tried = attempt(words)
    complaints = [f"{shlex.join(words)[:300]}\n  {complaint}" for complaint in judge(tried)]
    return tried.code, sum(len(seeds) for _, seeds in tried.ran), complaints


def main() -> int:
    """Run the lines and print the outcomes; return 1 if anything is wrong."""
    number = int(sys.argv[1]) if len(sys.argv) > 1 else LINES
    began = time.perf_counter()
    codes: collections.Counter[int] = collections.Counter()
    ran = runs = wrong = 0
    with tempfile.TemporaryDirectory() as folder, multiprocessing.Pool(PROCESSES) as pool:
        write_plugins(Path(folder))
        maker = Maker(STREAM, Path(folder))
        lines = [maker.line() for _ in range(number)]
        for code, made, complaints in pool.imap_unordered(try_out, lines, chunksize=20):
            codes[code] += 1
            ran += made > 0
            runs += made
            wrong += bool(complaints)
            print(*complaints, sep="\n", end="\n" * bool(complaints), flush=True)
    print(f"{number} command lines in {time.perf_counter() - began:.0f} s: "
          f"{codes[2]} ended with one sentence, {ran} made {runs} runs")  # fmt: skip
    print(f"with a traceback, a stray file or a wrong run: {wrong}   limit 0")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
