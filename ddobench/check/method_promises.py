"""What every method promises on every task that it accepts."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import lru_cache
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ddobench.check.promises import (
    Promise,
    Subject,
    compare_records,
    compare_starts,
    watch_generators,
)
from ddobench.contracts import Problem
from ddobench.rng import Streams
from ddobench.runner.run import collect
from ddobench.scores import HEADLINE, INVALID_FINAL, REGRET_FINAL
from ddobench.store.records import Record
from ddobench.store.runs import Store, read_record

_SEEDS = (0, 1)
_DESIGNS = 8
_SHORTEST_REASON = 10  # characters


def completeness(subject: Subject) -> str | None:
    """Run two seeds and check their records."""
    for record in subject.records:
        row, curves = record.row, record.curves
        if _exceeds_optimum(row):
            continue  # see `regret`
        if row["status"] != "ok":
            return f"seed {row['seed']} {row['status']}: {row['reason']}"
        steps = len(curves["iteration"])
        if record.designs is None:
            return "no designs were recorded"
        if not subject.problem(*_SEEDS).measures:
            if record.values is None:
                continue
            return "values were recorded although the task has no oracle"
        if record.values is None:
            return "no values were recorded"
        if record.values.shape != (steps, len(record.designs)):
            return f"values {record.values.shape} for {steps} iterations"
        if not np.isfinite(row[HEADLINE.name]):
            return f"the {HEADLINE.label} of seed {row['seed']} is {row[HEADLINE.name]}"
        share = row[INVALID_FINAL.name]
        if share != np.isnan(record.values[-1]).mean():
            return f"a share of {share} is recorded as invalid"
    return None


def regret(subject: Subject) -> str | None:
    """Check whether a run is better than the optimum of its task."""
    rows = [record.row for record in subject.records]
    worst = [row[REGRET_FINAL.name] for row in rows if _exceeds_optimum(row)]
    return f"a regret of {min(worst):.3g}" if worst else None


def _exceeds_optimum(row: Mapping[str, Any]) -> bool:
    return float(row.get(REGRET_FINAL.name, 0.0)) < -1e-9  # False for NaN, where it is unknown


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
    return None if found.row["seed"] == 0 else "the record that was read back has another seed"


def repetition(subject: Subject) -> str | None:
    """Run the same batch twice."""
    return compare_records(subject.records[1], _run_again(subject)[0][1])


def companions(
    subject: Subject,
    stack: Sequence[int] = (7, 3, 5, 0, 1, 2, 4, 6, 8, 9),
    others: Sequence[Sequence[int]] = ((3,), (8, 3), (5, 0, 1, 3, 2)),
) -> str | None:
    """Run seed 3 in stacks of several sizes, at several places."""
    if subject.method().seeds_at_once == 1:
        return None  # it is never stacked with others
    # Without MKL bits are not promised, but the data and the starts are the same.
    compare = compare_records if has_mkl() else compare_starts
    among = subject.run(*stack)[stack.index(3)]
    for other in others:
        difference = compare(among, subject.run(*other)[other.index(3)])
        if difference:
            return f"{difference}, in stacks of {len(stack)} and {len(other)} seeds"
    return None


def has_mkl() -> bool:
    """Return whether results are promised to the bit here, whatever the stack."""
    return bool(torch.backends.mkl.is_available())  # type: ignore[no-untyped-call]


def global_generators(subject: Subject) -> str | None:
    """Check which global generators a run uses."""
    _, used = _run_again(subject)
    return f"{', '.join(used)} was used" if used else None


def oracle(subject: Subject) -> str | None:
    """Check whether fitting or proposing calls the oracle by its public method.

    Other ways to it, such as the frames of the caller, are not watched.
    """
    calls, _ = _fit_and_propose(subject)
    return f"it was called {calls} times" if calls else None


@contextmanager
def _watch_oracle() -> Iterator[list[int]]:
    """Yield a list that receives the number of designs of every call of Problem.evaluate."""
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
    """Check whether a method changes the table or the starts."""
    _, changed = _fit_and_propose(subject)
    return f"{' and '.join(changed)} changed" if changed else None


def refusal(subject: Subject) -> str | None:
    """Run a method on a task that it declines, and read its reason."""
    records = subject.run(*_SEEDS)
    others = [record.row["status"] for record in records if record.row["status"] != "declined"]
    if others:
        return f"it declines, but the status of a run is {others[0]}"
    reason = records[0].row["reason"]
    short = not isinstance(reason, str) or len(reason) < _SHORTEST_REASON
    return f"the reason is {reason!r}" if short else None


@lru_cache(maxsize=1)  # promises about one subject are checked one after the other
def _run_again(subject: Subject) -> tuple[list[Record], list[str]]:
    """Run the batch of `Subject.records` again; return records and global generators used."""
    with watch_generators() as used:
        records = subject.run(*_SEEDS)
    return records, used


@lru_cache(maxsize=1)
def _fit_and_propose(subject: Subject) -> tuple[int, list[str]]:
    """Return how often a method calls Problem.evaluate, and which of its inputs it changes."""
    method = subject.method()
    seeds = _SEEDS[: method.seeds_at_once]
    problem = subject.task().problem(seeds)  # outside the watch: a task may call its oracle here
    data = problem.visible_to(method.privileges(problem.data.space))
    inputs = {"x": data.x, "y": data.y, "starts": data.x[:, :_DESIGNS].clone()}
    before = {name: tensor.clone() for name, tensor in inputs.items()}
    with _watch_oracle() as calls:
        method.fit(data, Streams(seeds, "method"))
        collect(method, inputs["starts"], Streams(seeds, "method/propose"))
    changed = [name for name, tensor in inputs.items() if not torch.equal(tensor, before[name])]
    return len(calls), changed


METHOD_PROMISES = (
    Promise(
        "a run gives a complete record with a finite score",
        "let propose() yield Proposal((S, at most K, d)) at least once, always in the same shape, "
        "and predict() return (S, K) or None; python -m ddobench with the same settings shows more",
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
        "let diagnostics() return a dictionary of numbers, strings and lists for each seed",
        storage,
    ),
    Promise(
        "the same seed gives the same result",
        "draw from rng only, and keep no state between runs outside the method's own fields",
        repetition,
    ),
    Promise(
        "a seed's result does not depend on the seeds beside it",
        "never reduce over S, multiply by ddobench.models.tensors.multiply, and draw with "
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
        "Problem.evaluate is not called while a method fits and proposes",
        "learn from data.x and data.y only",
        oracle,
    ),
    Promise(
        "the visible table and the starts are not changed",
        "clone() tensors before changing them, and avoid in-place operations such as add_()",
        visible_table,
    ),
)
RUN_PROMISES = METHOD_PROMISES[:2]  # those that a task can break
REFUSAL_PROMISES = (
    Promise(
        "a method that declines a task gives a reason",
        "let declines() return a sentence about the data, or None",
        refusal,
    ),
)
