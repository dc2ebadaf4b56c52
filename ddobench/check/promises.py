"""A promise that a task or a method makes, what it is checked on, and how two results differ."""

import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Method, Problem, Task
from ddobench.errors import locate, read_message
from ddobench.runner.build import build_task
from ddobench.runner.process_state import exit_as_error, restored_process
from ddobench.runner.run import run_seeds
from ddobench.runner.spec import Specification
from ddobench.store.records import Record

State = Literal["kept", "broken", "not checked"]
_UNUSUAL_SEED = 271828182


class Subject:
    """A task and a method of one specification, built again for each use."""

    def __init__(self, spec: Specification) -> None:
        self.spec = spec
        self._problems: dict[tuple[int, ...], Problem] = {}

    def task(self) -> Task:
        """Build a new task."""
        return build_task(self.spec.config["task"])

    def method(self) -> Method:
        """Build a new method."""
        return self.spec.build_method()

    def problem(self, *seeds: int) -> Problem:
        """Return the instances of some seeds, drawn once."""
        if seeds not in self._problems:
            self._problems[seeds] = self.task().problem(seeds)
        return self._problems[seeds]

    def visible(self, method: Method, *seeds: int) -> Dataset:
        """Return what a method sees of some seeds."""
        problem = self.problem(*seeds)
        return problem.visible_to(method.privileges(problem.data.space))

    def refusal(self) -> str | None:
        """Return why the method declines the task, None if it does not."""
        method = self.method()
        return method.declines(self.visible(method, 0))

    @cached_property
    def records(self) -> list[Record]:
        """The records of seeds 0 and 1, run once."""
        return self.run(0, 1)

    def run(self, *seeds: int) -> list[Record]:
        """Run seeds as the harness does, in batches that the method accepts, without storing."""
        size = self.method().seeds_at_once or len(seeds)
        batches: Sequence[Sequence[int]] = [
            seeds[start : start + size] for start in range(0, len(seeds), size)
        ]
        return [
            record
            for batch in batches
            for record in run_seeds(self.spec, self.task(), self.method(), batch, base={})
        ]


@dataclass(frozen=True)
class Promise:
    """What is promised, how to check it, and what to do if it is broken."""

    text: str
    remedy: str
    check: Callable[[Subject], str | None]  # returns what was found instead, None if kept
    first: bool = False  # if it is broken, the others cannot be checked
    bits: bool = False  # it is about equality to the bit

    def __str__(self) -> str:
        return self.text

    def examine(self, subject: Subject) -> "Finding":
        """Check whether a subject keeps the promise; an exception breaks it."""
        try:
            with restored_process(), exit_as_error():
                found = self.check(subject)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            message = " ".join(f"{type(error).__name__}: {read_message(error)}".split())
            found = f"{message} (at {locate(error)})"
        return Finding(self, "kept" if found is None else "broken", found or "")


@dataclass(frozen=True)
class Finding:
    """The result of checking a promise."""

    promise: Promise
    state: State
    found: str = ""

    def __str__(self) -> str:
        if self.state != "broken":
            return f"{self.state}: {self.promise.text}"
        return f"broken: {self.promise.text}; found: {self.found}; fix: {self.promise.remedy}"


def examine_all(subject: Subject, promises: Sequence[Promise]) -> Iterator[Finding]:
    """Check promises in order, until one breaks that the others depend on."""
    stopped = False
    for promise in promises:
        finding = Finding(promise, "not checked") if stopped else promise.examine(subject)
        stopped = stopped or (promise.first and finding.state == "broken")
        yield finding


def compare_records(one: Record, other: Record) -> str | None:
    """Compare everything in two records but their times, bit for bit."""
    return _first_difference(_record_parts(one), _record_parts(other))


def compare_starts(one: Record, other: Record) -> str | None:
    """Compare the values before any step, which agree up to rounding where bits do not."""
    if one.values is None or other.values is None:
        return None if one.values is other.values else "only one of them has values"
    first, second = one.values[0], other.values[0]
    same = np.allclose(first, second, rtol=1e-3, atol=1e-3, equal_nan=True)
    return None if same else f"the first values are {first[:3]} and {second[:3]}"


def compare_instances(one: Problem, i: int, other: Problem, j: int) -> str | None:
    """Compare instance i of one draw with instance j of another, bit for bit."""
    return _first_difference(_instance_parts(one, i), _instance_parts(other, j))


def _record_parts(record: Record) -> Mapping[str, Any]:
    row = {name: x for name, x in record.row.items() if not name.startswith("seconds")}
    matrices = {name: getattr(record, name) for name in ("values", "designs", "predictions")}
    return {**row, **record.curves, **matrices, "diagnostics": record.diagnostics}


def _instance_parts(problem: Problem, i: int) -> Mapping[str, Any]:
    return {
        "x": problem.data.x[i],
        "y": problem.data.y[i],
        "optimum": None if problem.optimum is None else problem.optimum[i],
        "graph": None if problem.graphs is None else problem.graphs[i],
        "hidden": None if problem.hidden is None else problem.hidden[i],
    }


def _first_difference(one: Mapping[str, Any], other: Mapping[str, Any]) -> str | None:
    """Describe the first part that differs, None if all are equal."""
    if one.keys() != other.keys():
        return f"only one of them has {min(one.keys() ^ other.keys())}"
    for name in one:
        try:
            np.testing.assert_equal(_as_array(one[name]), _as_array(other[name]))
        except AssertionError:
            return f"{name} is {_shorten(one[name])} and {_shorten(other[name])}"
    return None


def _as_array(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def _shorten(value: Any) -> str:
    """Return the beginning of a value, short enough for a message."""
    plain = _as_array(value)
    if isinstance(plain, np.ndarray) and plain.ndim:
        flat: NDArray[Any] = plain.ravel()
        shown = ", ".join(f"{x:.6g}" for x in flat[:3].tolist())
        return f"[{shown}{', ...' if flat.size > 3 else ''}]"
    text = str(plain)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def watch_generators() -> Iterator[list[str]]:
    """Yield a list that, at the end, names the global generators that were used or seeded.

    Meanwhile they have an unusual seed, so that seeding them is noticed; then they are restored.
    """
    used: list[str] = []
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(_UNUSUAL_SEED)
    np.random.seed(_UNUSUAL_SEED)  # noqa: NPY002
    torch.manual_seed(_UNUSUAL_SEED)
    try:
        before = _generator_states()
        yield used
        after = _generator_states()
        used += [name for name in before if not np.array_equal(before[name], after[name])]
    finally:
        random.setstate(kept[0])
        np.random.set_state(kept[1])  # noqa: NPY002
        torch.set_rng_state(kept[2])


def _generator_states() -> dict[str, NDArray[Any]]:
    state: Any = np.random.get_state()  # noqa: NPY002
    return {
        "random": np.array(random.getstate()[1]),
        "numpy.random": np.array([*state[1], state[2]]),
        "torch": torch.get_rng_state().numpy(),
    }
