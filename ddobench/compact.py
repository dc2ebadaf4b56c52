"""Folding finished runs into few files, and publishing them: `python -m ddobench.compact`."""

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path

from ddobench.cli.argv import DEFAULT_RESULTS, SentenceParser, complain, quiet_output, read_folder
from ddobench.errors import UsageError
from ddobench.progress import format_bytes, reporting_late
from ddobench.store.folding import PARTS, Folded, compact, publish

_EPILOG = """\
Without options, the finished runs of a results folder are folded into one file for each
specification (and 500 seeds), without loss: sweeps, reports and comparisons read both forms alike.
It may be interrupted at any moment and run again, also while a sweep goes on.

--publish writes a copy that is small enough for git and leaves the results folder as it is. What is
left out of it are the values and predictions of every design at every iteration, the designs of the
last one, and samples of designs and codes of all seeds but the first of each specification. A
report of the copy has the same figures and tables; each record says what it was left without."""


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = _parser().parse_args(arguments)
    logging.getLogger("ddobench").addHandler(logging.StreamHandler(sys.stderr))
    try:
        folder = read_folder(options.results_dir)
        if not folder.is_dir():
            raise UsageError(f"there is no folder {folder}; give one that runs were stored in")
        if options.without is not None and options.publish is None:
            raise UsageError("--without is for a copy; name its folder with --publish FOLDER")
        with reporting_late():
            if options.publish is None:
                print(_describe(compact(folder), folder))
            else:
                target = read_folder(options.publish, "--publish")
                without = PARTS if options.without is None else options.without.split(",")
                print(_describe(publish(folder, target, without), target))
    except UsageError as error:
        complain(str(error))
    except KeyboardInterrupt:
        print("interrupted; nothing is lost, and the same command continues", file=sys.stderr)
        return 130
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = SentenceParser(
        prog="python -m ddobench.compact",
        description="Fold finished runs into few files, or publish a small copy of them.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("results_dir", nargs="?", default=DEFAULT_RESULTS,
                        help="the folder of runs (default: %(default)s)")  # fmt: skip
    parser.add_argument("--publish", metavar="FOLDER", help="write a small copy into this folder")
    every = ",".join(PARTS)
    parser.add_argument("--without", metavar="PARTS",
                        help=f"what the copy is left without (default: {every})")  # fmt: skip
    return parser


def _describe(folded: Folded, folder: Path) -> str:
    """Return one line on what became of the runs."""
    left = f"{len(folded.left)} files stay as they are, named above" if folded.left else ""
    if not folded.runs:
        return "; ".join(filter(None, [f"there are no finished runs to fold in {folder}", left]))
    each = folded.bytes_folded / folded.runs
    size = f"{format_bytes(folded.bytes_folded)}, {format_bytes(each)} a run"
    return "; ".join(filter(None, [
        f"{folded.runs} runs are in {folded.files} files of {folder}, {size}",
        f"{folded.single} of them were read from {format_bytes(folded.bytes_single)}"
        if folded.single else "",
        left,
    ]))  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
