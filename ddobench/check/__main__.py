"""The command line of the checks: `python -m ddobench.check method=mine --config-dir FOLDER`."""

import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from ddobench import registry
from ddobench.cli.argv import CONFIG_DIR, split
from ddobench.cli.main import use_plugins
from ddobench.errors import UsageError

if TYPE_CHECKING:
    from ddobench.check.promises import Finding

_USAGE = """\
usage: python -m ddobench.check method=NAME [--config-dir FOLDER] [KEY=VALUE ...] [--all]
       python -m ddobench.check task=NAME [--config-dir FOLDER] [KEY=VALUE ...] [--all]

Examine whether a method or a task keeps the promises that the harness relies on.

A method, or a line-up with a part of your own (method=ga latent=mine), is examined on every task,
or on that of task=NAME. A task is examined by itself and with two methods. Any key of a run may
follow: d=11 n=200 task.noise=0 search.rate=0.1. Runs are small (d=7, n=60, budget=tiny) unless you
say otherwise, and nothing is stored.

A broken promise is one line: what was promised, what was seen, what to do. --all lists those that
are kept as well. Exit code: 0 if all are kept, 1 if one is broken, 2 if the request cannot be
understood."""
_ALL = "--all"
_METHODS = ("random", "ga")  # what a task meets: one that only draws, one that learns and climbs


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    typed = list(sys.argv[1:] if arguments is None else arguments)
    if any(word in ("-h", "--help") for word in typed):
        print(_USAGE)
        return 0
    listed = _ALL in typed
    typed = [word for word in typed if word != _ALL]
    try:
        use_plugins(typed)
        words = _check_words(typed)
        from ddobench.check.examination import examine  # which needs PyTorch

        report = Report(listed)
        with _one_thread():
            for title, findings in examine(words, _METHODS):
                report.add(title, findings)
    except UsageError as error:
        _complain(str(error))
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        return 130
    return report.conclude()


@contextmanager
def _one_thread() -> Iterator[None]:
    """Keep small runs on one thread: several gain nothing, and crawl where the cores are busy."""
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
        raise UsageError("say what to check, method=NAME or task=NAME; --help shows how")
    if "seed" in keys:
        raise UsageError("a check chooses its own seeds; leave seed out")
    return words


class Report:
    """Prints findings as they come, and counts them."""

    def __init__(self, listed: bool) -> None:
        from rich.console import Console

        self.listed = listed
        self.counts: Counter[str] = Counter()
        self._console = Console(highlight=False, soft_wrap=True)

    def add(self, title: str, findings: Iterable["Finding"]) -> None:
        """Print what was found of one subject."""
        from rich.text import Text

        shown = []
        counts: Counter[str] = Counter()
        for finding in findings:
            counts[finding.state] += 1
            if self.listed or finding.state == "broken":
                shown.append(Text(f"  {finding}", style="red" if finding.seen else ""))
        told = ", ".join(f"{count} {state}" for state, count in counts.items())
        self._console.print(Text(f"{title}: {told}", style="bold"))
        for line in shown:
            self._console.print(line)
        self.counts += counts

    def conclude(self) -> int:
        """Print how it ended and return the exit code."""
        kept, broken = self.counts["kept"], self.counts["broken"]
        if not broken:
            print(f"all {kept} promises are kept" if kept > 1 else "the only promise is kept")
            return 0
        print(f"{broken} of {self.counts.total()} promises {'is' if broken == 1 else 'are'} broken")
        return 1


def _complain(sentence: str) -> NoReturn:
    print(f"ddobench: {sentence}", file=sys.stderr)
    raise SystemExit(2) from None


if __name__ == "__main__":
    sys.exit(main())
