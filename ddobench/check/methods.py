"""What every method promises on every task that it takes on."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ddobench.check.differences import compare_records, compare_starts, watching_generators
from ddobench.check.promises import Promise
from ddobench.check.subject import Subject
from ddobench.contracts import Dataset, Method, Problem
from ddobench.rng import Streams
from ddobench.runner.execute import collect
from ddobench.scores import HEADLINE, INVALID_FINAL, REGRET_FINAL
from ddobench.store.records import Record
from ddobench.store.runs import Store, read_record

_SEEDS = (0, 1)
_DESIGNS = 8
_SHORTEST_REASON = 10  # characters


def completeness(subject: Subject) -> str | None:
    """Run two seeds and look at what comes of it."""
    for record in subject.records:
        row, curves = record.row, record.curves
        if _exceeds_optimum(row):
            continue  # a promise of its own
        if row["status"] != "ok":
            return f"seed {row['seed']} {row['status']}: {row['reason']}"
        steps = len(curves["iteration"])
        if record.designs is None:
            return "no designs were recorded"
        if not subject.problem(*_SEEDS).measures:
            if record.values is None:
                continue
            return "values were recorded that nobody measured"
        if record.values is None:
            return "no values were recorded"
        if record.values.shape != (steps, len(record.designs)):
            return f"values {record.values.shape} for {steps} iterations"
        if not np.isfinite(row[HEADLINE.name]):
            return f"the {HEADLINE.label} of seed {row['seed']} is {row[HEADLINE.name]}"
        share = row[INVALID_FINAL.name]
        if share != np.isnan(record.values[-1]).mean():
            return f"a share of {share} is called invalid"
    return None


def regret(subject: Subject) -> str | None:
    """Look whether a run is better than what its task calls best."""
    rows = [record.row for record in subject.records]
    worst = [row[REGRET_FINAL.name] for row in rows if _exceeds_optimum(row)]
    return f"a regret of {min(worst):.3g}" if worst else None


def _exceeds_optimum(row: Mapping[str, Any]) -> bool:
    return float(row.get(REGRET_FINAL.name, 0.0)) < -1e-9  # false where it is unknown, NaN


def storage(subject: Subject) -> str | None:
    """Store a run and read it back."""
    spec = subject.spec
    names = {"task": spec.task, "method": spec.method, "d": spec.d, "n": spec.n,
             "task_variant": "", "method_variant": "", "budget": spec.budget,
             "digest": spec.digest}  # fmt: skip
    record = subject.records[0]
    record = replace(record, row={**record.row, **names})
    with TemporaryDirectory() as folder:
        store = Store(folder)
        found = read_record(store.write(spec.place(store), record))
    return None if found.row["seed"] == 0 else "another seed came back"


def repetition(subject: Subject) -> str | None:
    """Compare two runs of a batch."""
    return compare_records(subject.records[1], _run_again(subject).records[1])


def companions(
    subject: Subject,
    stack: Sequence[int] = (7, 3, 5, 0, 1, 2, 4, 6, 8, 9),
    others: Sequence[Sequence[int]] = ((3,), (8, 3), (5, 0, 1, 3, 2)),
) -> str | None:
    """Run seed 3 in stacks of several sizes, at several places."""
    if subject.method().seeds_at_once == 1:
        return None  # it has no companions
    # Without MKL nothing is promised to the bit, but the data and the starts are the same.
    compare = compare_records if has_mkl() else compare_starts
    among = subject.run(*stack)[stack.index(3)]
    for other in others:
        difference = compare(among, subject.run(*other)[other.index(3)])
        if difference:
            return f"{difference}, in stacks of {len(stack)} and {len(other)} seeds"
    return None


def has_mkl() -> bool:
    """Tell whether bits beside other companions are promised here."""
    return bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]


def global_generators(subject: Subject) -> str | None:
    """Look at the global generators that a run has used."""
    used = _run_again(subject).generators
    return f"{', '.join(used)} was used" if used else None


def oracle(subject: Subject) -> str | None:
    """Look whether the oracle was asked by fitting and proposing."""
    calls = _try_out(subject).oracle_calls
    return f"the oracle was asked {len(calls)} times before the end" if calls else None


@contextmanager
def watching_oracle() -> Iterator[list[int]]:
    """Count the designs of every call of the oracle."""
    calls: list[int] = []
    original = Problem.evaluate

    def watched(self: Problem, x: Tensor) -> Tensor:
        calls.append(x.shape[1])
        return original(self, x)

    Problem.evaluate = watched  # type: ignore[method-assign]
    try:
        yield calls
    finally:
        Problem.evaluate = original  # type: ignore[method-assign]


def visible_table(subject: Subject) -> str | None:
    """Look whether the table and the starts are as they were."""
    changed = _try_out(subject).changed
    return f"{' and '.join(changed)} changed" if changed else None


def refusal(subject: Subject) -> str | None:
    """Run a method on a task that it declines."""
    records = subject.run(*_SEEDS)
    others = [record.row["status"] for record in records if record.row["status"] != "declined"]
    if others:
        return f"it declines, and then a run is {others[0]}"
    reason = records[0].row["reason"]
    short = not isinstance(reason, str) or len(reason) < _SHORTEST_REASON
    return f"the reason is {reason!r}" if short else None


@dataclass(frozen=True)
class _Trial:
    """A fresh method and what it is handed, for one batch."""

    method: Method
    seeds: tuple[int, ...]
    problem: Problem  # as near as in a run
    data: Dataset
    starts: Tensor  # (S, K, d)

    @classmethod
    def of(cls, subject: Subject) -> "_Trial":
        """Draw all of it anew."""
        method = subject.method()
        seeds = _SEEDS[: method.seeds_at_once]
        problem = subject.task().problem(seeds)
        data = problem.visible_to(method.privileges(problem.data.space))
        return cls(method, seeds, problem, data, data.x[:, :_DESIGNS].clone())

    def run(self) -> None:
        """Let the method fit and propose."""
        self.method.fit(self.data, Streams(self.seeds, "method"))
        collect(self.method, self.starts, Streams(self.seeds, "method/propose"))


@dataclass(frozen=True)
class _Again:
    """The batch of `Subject.records`, run a second time."""

    records: list[Record]
    generators: list[str]  # global ones that were used meanwhile


@dataclass(frozen=True)
class _Tried:
    """What happened while a method fitted and proposed."""

    oracle_calls: list[int]  # the designs of each
    changed: list[str]  # of what it was handed


@lru_cache(maxsize=1)  # promises about one subject follow each other
def _run_again(subject: Subject) -> _Again:
    with watching_generators() as used:
        records = subject.run(*_SEEDS)
    return _Again(records, used)


@lru_cache(maxsize=1)
def _try_out(subject: Subject) -> _Tried:
    trial = _Trial.of(subject)  # a task may ask its own oracle while it draws
    handed = {"x": trial.data.x, "y": trial.data.y, "starts": trial.starts}
    before = {name: tensor.clone() for name, tensor in handed.items()}
    with watching_oracle() as calls:
        trial.run()
    changed = [name for name, tensor in handed.items() if not torch.equal(tensor, before[name])]
    return _Tried(calls, changed)


METHOD_PROMISES = (
    Promise(
        "a run gives a complete record with a finite score",
        "let propose() yield Proposal((S, at most K, d)) at least once, always in the same shape, "
        "and predict() return (S, K) or None; python -m ddobench with the same words shows more",
        completeness,
        first=True,
    ),
    Promise(
        "no run is better than the optimum of its task",
        "let the task set optimum to the largest value that any valid design has, or to None",
        regret,
    ),
    Promise(
        "a run can be stored and read back",
        "let diagnostics() return plain numbers, texts, lists and dictionaries, one for each seed",
        storage,
    ),
    Promise(
        "the same seed gives the same result",
        "draw from rng alone, and keep nothing between runs outside the method's own fields",
        repetition,
    ),
    Promise(
        "a seed's result does not depend on the seeds beside it",
        "reduce over other axes than S, multiply by ddobench.models.products.multiply, and take "
        "rng.normal(...), which has a stream for each seed; or derive from OneSeedMethod",
        companions,
        bits=True,
    ),
    Promise(
        "no global generator is used",
        "draw from rng instead, e.g. rng.child('weights').normal(d, width)",
        global_generators,
    ),
    Promise(
        "the oracle is not asked while a method fits and proposes",
        "learn from data.x and data.y alone",
        oracle,
    ),
    Promise(
        "the visible table and the starts are left as they were",
        "clone() what you change, and avoid operations that end in an underscore",
        visible_table,
    ),
)
RUN_PROMISES = METHOD_PROMISES[:2]  # what a task owes to methods as well
REFUSAL_PROMISES = (
    Promise(
        "a method that declines a task says why",
        "let declines() return a sentence about the data, or None",
        refusal,
    ),
)
