"""A task at one seed, to look at: the visible rows, what is known of it, and its oracle."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray

from ddobench.cli.hooks import specify_points
from ddobench.contracts import Problem, Space, Task
from ddobench.coverage import TERMS
from ddobench.errors import UsageError, check_whole
from ddobench.fingerprints import fingerprint
from ddobench.registry import entries
from ddobench.runner.build import build_task
from ddobench.runner.run import evaluate_designs, find_terms
from ddobench.runner.spec import Specification, digest

_BLACK_BOX = "black_box"


def task(
    task: "str | Callable[[NDArray[np.float64]], Any]",
    low: float | Sequence[float] | None = None,
    high: float | Sequence[float] | None = None,
    *,
    d: int | None = None,
    n: int | None = None,
    seed: int = 0,
    name: str | None = None,
    version: int | None = None,
    overrides: Sequence[str] = (),
    **keys: object,
) -> "TaskView":
    """Return a task at one seed: `x`, `y`, `space`, `best_visible`, `optimum`, and its oracle.

    `task` is a name, or a function of your own: it takes designs (K, d) in the box from `low` to
    `high` and returns K values, NaN for an invalid design. What is returned can be given to
    `evaluate` and `run` in place of a name, where `seed` is that of their own argument. `keys` and
    `overrides` are settings of the task as on the command line (`optimum=0.0`,
    `overrides=["task.noise=0.1"]`).
    """
    check_whole("seed", seed, 0)
    words = [f"{key}={format_value(value)}" for key, value in keys.items()]
    if isinstance(task, str):
        if low is not None or high is not None:
            raise UsageError(f"low and high are for a function of your own, got task={task!r}")
        sizes = [f"{key}={size}" for key, size in (("d", d), ("n", n)) if size is not None]
        return TaskView([f"task={task}", *sizes, *words, *overrides], seed)
    if not callable(task):
        raise UsageError(f"task must be a name or a function, got {task!r}")
    if low is None or high is None:
        raise UsageError("a function needs the box of its designs; write task(f, low=0, high=1)")
    bounds = [np.asarray(bound, dtype=float).reshape(-1).tolist() for bound in (low, high)]
    variables = d or max(map(len, bounds))
    if d is None and max(np.ndim(low), np.ndim(high)) == 0:
        raise UsageError("give d, the number of variables, or low and high as lists")
    title = name or name_of(task)
    known = {entry.name for entry in entries("task")}
    if title in known:
        raise UsageError(f"there is a task {title!r} already; give name=, a name of its own")
    content = f"version {version}" if version is not None else fingerprint(task, title)
    box = [f"{key}={one}" for key, one in zip(("low", "high"), bounds, strict=True)]
    sizes = [f"d={variables}", *([] if n is None else [f"n={n}"])]
    return TaskView(
        [f"task={_BLACK_BOX}", *box, *sizes, *words, *overrides], seed,
        OwnTask(task, title, content),
    )  # fmt: skip


def format_value(value: object) -> str:
    """Write a Python value as on the command line."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def name_of(function: Any) -> str:
    """Return the name of a function, of what a partial calls, or of a bound method's class."""
    inner = function
    while hasattr(inner, "func"):
        inner = inner.func
    name = str(getattr(inner, "__name__", type(inner).__name__)).strip("<>")
    owner = getattr(inner, "__self__", None)
    bound = owner is not None and not isinstance(owner, type) and not hasattr(owner, "__spec__")
    return f"{type(owner).__name__}.{name}" if bound else name


@dataclass(frozen=True)
class OwnTask:
    """A function in place of the one that a configuration names."""

    function: Callable[[NDArray[np.float64]], Any]
    name: str
    content: str  # for the digest

    def describe(self, config: dict[str, Any]) -> dict[str, Any]:
        """Return the configuration of the task as it is stored."""
        return {**config, "function": self.name, "content": self.content}

    def build(self, config: dict[str, Any]) -> Task:
        """Build the task around the function."""
        return build_task({**config, "function": self.function})


@dataclass(frozen=True)
class OwnSpecification(Specification):
    """A specification whose task or method is an object and not a configuration alone."""

    own_task: OwnTask | None = field(default=None, kw_only=True)
    make_method: Callable[[], Any] | None = field(default=None, kw_only=True)

    @classmethod
    def of(cls, spec: Specification, **changes: Any) -> "OwnSpecification":
        """Return a specification with changes, and the digests that belong to them."""
        if spec.isolate and "make_method" in changes:
            raise UsageError(
                "isolate=true is for methods with a configuration file, got a function or an "
                "object; leave out isolate"
            )
        own = cls(**{**vars(spec), **changes})
        chosen = {"task": own.task, "method": own.method}
        return replace(
            own,
            digest=digest({**own.config, "chosen": chosen}),
            task_digest=digest({"task": own.config["task"]}),
        )

    def build_task(self) -> Task:
        """Build the task."""
        own = self.own_task
        return super().build_task() if own is None else own.build(self.config["task"])

    def build_method(self) -> Any:
        """Build a fresh method."""
        return super().build_method() if self.make_method is None else self.make_method()


@dataclass(frozen=True)
class TaskView:
    """The visible rows of a task at one seed, what is known of it, and its oracle."""

    words: list[str]  # that choose the task on a command line
    seed: int = 0
    function: OwnTask | None = None

    def __post_init__(self) -> None:
        _ = self._problem  # so that errors come now

    @property
    def x(self) -> NDArray[Any]:  # (N, d)
        """The visible designs: whole numbers if they are categories."""
        return to_numpy(self._problem.data.x[0], self.space)

    @property
    def y(self) -> NDArray[np.float64]:  # (N,)
        """The visible values; larger is better."""
        values: NDArray[np.float64] = self._problem.data.y[0].numpy().copy()
        return values

    @property
    def space(self) -> Space:
        """The space of designs: `d`, and `sizes`, the categories of each variable, or None."""
        return self._problem.data.space

    @property
    def best_visible(self) -> float:
        """The largest visible value."""
        return float(self._problem.data.y.max())

    @property
    def optimum(self) -> float | None:
        """The largest value of any valid design, None where nobody knows it."""
        known = self._problem.optimum
        return None if known is None else float(known[0])

    @property
    def terms(self) -> dict[str, float | str]:
        """The terms of the paper's theorem; a text says why one is unknown."""
        (found,) = find_terms(self._task, self._problem, [self.seed])
        return {name: found.known.get(name, found.absent.get(name, "")) for name in TERMS}

    def oracle(self, x: ArrayLike) -> NDArray[np.float64]:  # (K, d) -> (K,)
        """Return the true values of designs, NaN where one is invalid; not for methods."""
        designs = np.asarray(x, dtype=np.float64)
        if designs.ndim != 2 or designs.shape[1] != self.space.d:
            raise UsageError(f"designs must be (K, {self.space.d}), got {designs.shape}")
        values = evaluate_designs(self._problem, torch.tensor(designs)[None])[0]
        found: NDArray[np.float64] = values.numpy()
        return found

    def predict(self, x: ArrayLike) -> NDArray[np.float64]:  # (K, d) -> (K,)
        """Return the true values of designs: the oracle, by the name it has in Design-Bench."""
        return self.oracle(x)

    def own(self, spec: Specification) -> Specification:
        """Return a specification of this task; nothing changes unless it is a function."""
        if self.function is None:
            return spec
        config = {**spec.config, "task": self.function.describe(spec.config["task"])}
        kept = {
            k: v for k, v in spec.task_departures.items() if k not in ("function", "low", "high")
        }
        return OwnSpecification.of(
            spec, task=self.function.name, config=config, task_departures=kept,
            own_task=self.function,
        )  # fmt: skip

    @cached_property
    def _task(self) -> Task:
        (spec,) = specify_points([[*self.words, "method=naive"]])
        config = spec.config["task"]
        return build_task(config) if self.function is None else self.function.build(config)

    @cached_property
    def _problem(self) -> Problem:
        return self._task.problem([self.seed])

    def __repr__(self) -> str:
        rows, d = self._problem.data.x.shape[1:]
        name = self.function.name if self.function else self.words[0].partition("=")[2]
        return f"<task {name} d={d} n={rows} seed={self.seed}>"


def to_numpy(x: torch.Tensor, space: Space) -> NDArray[Any]:  # (K, d)
    """Return designs as a copy for a user: whole numbers if they are categories."""
    return x.to(torch.int64).numpy() if space.categorical else x.numpy().copy()
