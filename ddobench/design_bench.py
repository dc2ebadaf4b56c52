"""Our tasks in the shape of Design-Bench (Trabucco, Geng, Kumar, Levine 2022), for its scripts.

A script runs with its import line changed:

    import ddobench.design_bench as design_bench  # was: import design_bench
    task = design_bench.make("TFBind8-Exact-v0")

`make` takes the names of Design-Bench that we have, and the names of our own tasks with sizes:
`make("nk", d=40, n=5000, seed=3)`. Arrays have the types of Design-Bench: x of float32, or of int32
if designs are categories, y of float32 (N, 1). There are two differences. The rows of TFBind8 have
each sequence once (there palindromes are twice), in an order that depends on the seed. An invalid
design, which Design-Bench does not have, gets the least visible value, as it does in our scores.

Tried with main.py of github.com/GGchen1997/parallel_mentoring (Tri-mentoring), of which only the
import line was changed: `--mode train --epochs 3 --lr 1e-3`, then `--mode design`. On TFBind8 its
128 designs went from a best of 0.439 to 0.917, and to a median of 0.519. (Its file with the
extremes of y is not in its repository and had to be made.)
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddobench.errors import UsageError
from ddobench.task_view import TaskView
from ddobench.task_view import task as view_task

NAMES = {"TFBind8-Exact-v0": "tfbind8"}  # of Design-Bench
_PERCENTILE, _SAMPLES = "max_percentile", "max_samples"  # of `dataset_kwargs`
_MIXED = 0.6  # share of the one-hot code in what logits are taken of; the rest is uniform

Array = NDArray[Any]


def make(
    task_name: str,
    dataset_kwargs: Mapping[str, Any] | None = None,
    oracle_kwargs: Mapping[str, Any] | None = None,  # noqa: ARG001 - our oracles are exact
    *,
    d: int | None = None,
    n: int | None = None,
    seed: int = 0,
    overrides: Sequence[str] = (),
    relabel: bool = False,  # noqa: ARG001 - visible values are those of the oracle
) -> "Task":
    """Return a task by its name in Design-Bench or here.

    Of `dataset_kwargs`, `max_samples` is n and `max_percentile` is `task.truncate`.
    """
    name = NAMES.get(task_name, task_name)
    if name not in _own_names():
        raise UsageError(
            f"there is no task {task_name!r} here; there are {', '.join([*NAMES, *_own_names()])}"
        )
    given = {key: value for key, value in (dataset_kwargs or {}).items() if value is not None}
    unknown = sorted(set(given) - {_PERCENTILE, _SAMPLES})
    if unknown:
        raise UsageError(
            f"dataset_kwargs may have {_PERCENTILE} and {_SAMPLES}, got {unknown[0]!r}"
        )
    words = [*overrides]
    if _PERCENTILE in given:
        percentile = given[_PERCENTILE]
        words.append(f"task.truncate={'null' if percentile >= 100 else percentile}")
    rows = given.get(_SAMPLES, n)
    return Task(view_task(name, d=d, n=rows, seed=seed, overrides=words), task_name)


def _own_names() -> list[str]:
    from ddobench.registry import entries

    return [entry.name for entry in entries("task") if not entry.missing_dependency]


class Task:
    """The visible rows and the oracle of a task, by the names of Design-Bench."""

    def __init__(self, view: TaskView, name: str) -> None:
        self.view = view
        self.dataset_name = name
        self.oracle_name = "exact"
        self.is_logits = self.is_normalized_x = self.is_normalized_y = False
        kind = np.int32 if self.is_discrete else np.float32
        self._x = view.x.astype(kind)  # (N, d)
        self._y = view.y.astype(np.float32)[:, None]  # (N, 1)
        real = self.to_logits(self._x) if self.is_discrete else self._x
        self._x_mean, self._x_scale = _moments(real)
        self._y_mean, self._y_scale = _moments(self._y)

    @property
    def is_discrete(self) -> bool:
        """Whether designs are categories."""
        return self.view.space.categorical

    @property
    def num_classes(self) -> int:
        """The number of categories of each variable."""
        sizes = set(self.view.space.sizes or ())
        if len(sizes) != 1:
            raise ValueError(
                f"num_classes needs variables of one number of categories, got {sizes}"
            )
        return int(sizes.pop())

    @property
    def x(self) -> Array:
        """The visible designs: as they are, or as logits, or normalised."""
        x = self.to_logits(self._x) if self.is_logits else self._x
        return self.normalize_x(x) if self.is_normalized_x else x.copy()

    @property
    def y(self) -> Array:  # (N, 1)
        """The visible values, normalised or not."""
        return self.normalize_y(self._y) if self.is_normalized_y else self._y.copy()

    @property
    def dataset(self) -> "Task":
        """The task itself, which has the names of its dataset too."""
        return self

    @property
    def dataset_size(self) -> int:
        """The number of visible rows."""
        return len(self._x)

    @property
    def dataset_min_output(self) -> float:
        """The least visible value."""
        return float(self._y.min())

    @property
    def dataset_max_output(self) -> float:
        """The largest visible value."""
        return float(self._y.max())

    @property
    def input_shape(self) -> tuple[int, ...]:
        """The shape of a design."""
        return tuple(self.x.shape[1:])

    @property
    def input_size(self) -> int:
        """The number of entries of a design."""
        return int(np.prod(self.input_shape))

    @property
    def input_dtype(self) -> Any:
        """The type of designs."""
        return self.x.dtype

    @property
    def output_shape(self) -> tuple[int, ...]:
        """The shape of a value."""
        return (1,)

    @property
    def output_size(self) -> int:
        """The number of entries of a value."""
        return 1

    @property
    def output_dtype(self) -> Any:
        """The type of values."""
        return self._y.dtype

    def map_to_logits(self) -> None:
        """Turn the designs of `x` into logits."""
        self._check_discrete("map_to_logits")
        self.is_logits = True

    def map_to_integers(self) -> None:
        """Turn the designs of `x` into categories."""
        self._check_discrete("map_to_integers")
        self.is_logits = self.is_normalized_x = False

    def map_normalize_x(self) -> None:
        """Normalise the designs of `x`."""
        if self.is_discrete and not self.is_logits:
            raise ValueError("cannot normalize discrete design values; call map_to_logits first")
        self.is_normalized_x = True

    def map_denormalize_x(self) -> None:
        """Undo `map_normalize_x`."""
        self.is_normalized_x = False

    def map_normalize_y(self) -> None:
        """Normalise the values of `y`."""
        self.is_normalized_y = True

    def map_denormalize_y(self) -> None:
        """Undo `map_normalize_y`."""
        self.is_normalized_y = False

    def to_logits(self, x: Array) -> Array:  # (K, d) -> (K, d, categories - 1)
        """Return categories as logits of their one-hot codes mixed with a uniform distribution."""
        self._check_discrete("to_logits")
        if not np.issubdtype(x.dtype, np.integer):
            raise ValueError(f"to_logits needs whole numbers, got {x.dtype}")
        one_hot = np.eye(self.num_classes)[x]
        mixed = np.log(_MIXED * one_hot + (1 - _MIXED) / self.num_classes)
        return (mixed[..., 1:] - mixed[..., :1]).astype(np.float32)

    def to_integers(self, x: Array) -> Array:  # (K, d, categories - 1) -> (K, d)
        """Return the most likely categories of logits."""
        self._check_discrete("to_integers")
        if not np.issubdtype(x.dtype, np.floating):
            raise ValueError(f"to_integers needs real numbers, got {x.dtype}")
        first = np.zeros((*x.shape[:-1], 1), x.dtype)
        whole: Array = np.concatenate([first, x], axis=-1).argmax(axis=-1).astype(np.int32)
        return whole

    def normalize_x(self, x: Array) -> Array:
        """Return designs (or logits) with mean 0 and deviation 1 over the visible rows."""
        if not np.issubdtype(x.dtype, np.floating):
            raise ValueError("cannot normalize discrete design values; call to_logits first")
        return (x - self._x_mean) / self._x_scale

    def denormalize_x(self, x: Array) -> Array:
        """Undo `normalize_x`."""
        return x * self._x_scale + self._x_mean

    def normalize_y(self, y: Array) -> Array:
        """Return values with mean 0 and deviation 1 over the visible rows."""
        return (y - self._y_mean) / self._y_scale

    def denormalize_y(self, y: Array) -> Array:
        """Undo `normalize_y`."""
        return y * self._y_scale + self._y_mean

    def predict(self, x_batch: Array, **_: Any) -> Array:  # -> (K, 1)
        """Return the true values of designs, which are in the form that `x` has: the oracle."""
        x = np.asarray(x_batch)
        if self.is_normalized_x:
            x = self.denormalize_x(x)
        if self.is_logits:
            x = self.to_integers(x)
        values = self.view.oracle(x)
        y = np.where(np.isnan(values), self.dataset_min_output, values).astype(np.float32)[:, None]
        return self.normalize_y(y) if self.is_normalized_y else y

    def iterate_batches(
        self,
        batch_size: int,
        return_x: bool = True,
        return_y: bool = True,
        drop_remainder: bool = False,
    ) -> Iterator[Any]:
        """Yield the visible rows in order, some at a time."""
        x, y = self.x, self.y
        end = len(x) - len(x) % batch_size if drop_remainder else len(x)
        for first in range(0, end, batch_size):
            rows = slice(first, first + batch_size)
            yield (x[rows], y[rows]) if return_x and return_y else (x if return_x else y)[rows]

    def iterate_samples(self, return_x: bool = True, return_y: bool = True) -> Iterator[Any]:
        """Yield the visible rows in order."""
        for x, y in zip(self.x, self.y, strict=True):
            yield (x, y) if return_x and return_y else (x if return_x else y)

    def _check_discrete(self, name: str) -> None:
        if not self.is_discrete:
            raise ValueError(
                f"{name} is for designs of categories, and those of this task are real"
            )


def _moments(rows: Array) -> tuple[Array, Array]:
    """Return the mean and the standard deviation over the rows, which is 1 where they are equal."""
    scale = rows.std(axis=0, keepdims=True)
    return rows.mean(axis=0, keepdims=True), np.where(scale == 0, 1, scale).astype(rows.dtype)
