"""Outcomes of numbered cases of a long benchmark, kept in a file so that it can be continued."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Tally:
    """What came of each case; without a file nothing is kept."""

    file: Path | None = None
    cases: dict[int, tuple[str, int, list[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.file is not None and self.file.exists():
            for line in self.file.read_text().splitlines():
                case, kind, count, problems = json.loads(line)
                self.cases[case] = (kind, count, problems)

    def rest(self, number: int) -> Iterator[int]:
        """Yield the cases that are still to be tried."""
        return (case for case in range(number) if case not in self.cases)

    def add(self, case: int, kind: str, problems: list[str], count: int = 1) -> None:
        """Keep the outcome of a case that stands for `count` trials, and print its problems."""
        self.cases[case] = (kind, count, problems)
        for problem in problems:
            print(f"case {case}, {kind}: {problem}", flush=True)
        if self.file is not None:
            with self.file.open("a") as file:
                file.write(json.dumps([case, kind, count, problems]) + "\n")

    @property
    def count(self) -> int:
        """All trials."""
        return sum(count for _, count, _ in self.cases.values())

    @property
    def wrong(self) -> int:
        """Cases with a problem."""
        return sum(bool(problems) for _, _, problems in self.cases.values())

    def print(self, what: str, limit: str) -> int:
        """Print a table by kind; return the exit code."""
        trials, wrong = Counter[str](), Counter[str]()
        for kind, count, problems in self.cases.values():
            trials[kind] += count
            wrong[kind] += bool(problems)
        for kind in sorted(trials):
            print(f"  {kind:<40}{trials[kind]:>6}{wrong[kind]:>6} wrong")
        print(f"{self.count} {what}; {limit}: {self.wrong}   limit 0")
        return int(self.wrong > 0)
