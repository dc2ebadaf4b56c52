"""The command `python -m ddobench.check method=mine --config-dir FOLDER`."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ddobench import registry
from ddobench.cli.argv import CONFIG_DIR, complain, quiet_output, split
from ddobench.cli.main import use_plugins
from ddobench.errors import UsageError

if TYPE_CHECKING:
    from ddobench.check.promises import Finding

_USAGE = """\
usage: python -m ddobench.check method=NAME [--config-dir FOLDER] [KEY=VALUE ...] [--all]
       python -m ddobench.check task=NAME [--config-dir FOLDER] [KEY=VALUE ...] [--all]
       python -m ddobench.check --submission FOLDER [--all]

Check whether a method or a task keeps the promises that the harness relies on.

A method, or a method with a part of your own (method=ga latent=mine), is checked on every task, or
only on task=NAME. A task is checked by itself and with two methods. Any setting of a run may be
added: d=11 n=200 task.noise=0 search.rate=0.1. Runs are small by default (d=7, n=60, budget=tiny),
and nothing is stored.

A submission is a folder with submission.yaml, a method and its records (see examples/submission).
One seed of every cell is run again and compared, and what a reviewer would ask is listed. This runs
the code of the submission.

A broken promise is one line: what is promised, what was found, how to fix it. --all also lists the
promises that are kept. Exit code: 0 if all are kept, 1 if one is broken, 2 if the request is not
valid."""
_ALL = "--all"
_SUBMISSION = "--submission"


@quiet_output()
def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if any(word in ("-h", "--help") for word in typed):
        print(_USAGE)
        return 0
    list_all = _ALL in typed
    typed = [word for word in typed if word != _ALL]
    if _SUBMISSION in typed:
        return _check_submission(typed, list_all)
    try:
        use_plugins(typed)
        words = _check_words(typed)
        from ddobench.check.examination import examine  # imports PyTorch

        report = Report(list_all)
        with _one_thread():
            for title, findings in examine(words):
                report.add(title, findings)
    except UsageError as error:
        complain(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return report.finish()


def _check_submission(typed: list[str], list_all: bool) -> int:
    """Check the folder behind the option, which is all that may be typed."""
    try:
        if len(typed) != 2 or typed[0] != _SUBMISSION:
            raise UsageError(f"write {_SUBMISSION} FOLDER, and nothing else but {_ALL}")
        from ddobench.check.submission import ask, examine_submission, read_submission

        report, folder = Report(list_all), Path(typed[1])
        given = read_submission(folder)
        with _one_thread():
            for title, findings in examine_submission(given):
                report.add(title, findings)
    except UsageError as error:
        complain(str(error))
    print("a reviewer would ask:", *ask(given), sep="\n  - ")
    return report.finish()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Use one thread: small runs gain nothing from more, and are slow when the cores are busy."""
    import torch

    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _check_words(typed: list[str]) -> list[str]:
    words, options = split(typed)
    unknown = [name for name in options if name not in CONFIG_DIR]
    if unknown:
        raise UsageError(f"a check takes --config-dir, --all and key=value, got {unknown[0]!r}")
    keys = {word.partition("=")[0] for word in words}
    if not {"method", "task", *registry.PARTS} & keys:
        raise UsageError("give what to check, method=NAME or task=NAME; --help shows examples")
    if "seed" in keys:
        raise UsageError("a check chooses its own seeds; leave seed out")
    if "isolate" in keys:
        raise UsageError("a check watches the method in its own process; leave isolate out")
    return words


class Report:
    """Prints findings as they arrive, and counts them."""

    def __init__(self, list_all: bool) -> None:
        from rich.console import Console

        self.list_all = list_all
        self.counts: Counter[str] = Counter()
        self._console = Console(highlight=False, soft_wrap=True)

    def add(self, title: str, findings: Iterable["Finding"]) -> None:
        """Print the findings of one subject."""
        from rich.text import Text

        shown = []
        counts: Counter[str] = Counter()
        for finding in findings:
            counts[finding.state] += 1
            if self.list_all or finding.state == "broken":
                shown.append(Text(f"  {finding}", style="red" if finding.found else ""))
        summary = ", ".join(f"{count} {state}" for state, count in counts.items())
        self._console.print(Text(f"{title}: {summary}", style="bold"))
        for line in shown:
            self._console.print(line)
        self.counts += counts

    def finish(self) -> int:
        """Print the totals and return the exit code."""
        kept, broken = self.counts["kept"], self.counts["broken"]
        if not broken:
            print(f"all {kept} promises are kept" if kept > 1 else "the only promise is kept")
            return 0
        print(f"{broken} of {self.counts.total()} promises {'is' if broken == 1 else 'are'} broken")
        return 1


if __name__ == "__main__":
    sys.exit(main())
