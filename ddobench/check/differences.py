"""How two results differ, in words; None where they are the same."""

import random
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Problem
from ddobench.store.records import Record

Parts = Mapping[str, Any]
_ODD_SEED = 271828182


def compare_records(one: Record, other: Record) -> str | None:
    """Compare all that a result consists of but its seconds, bit for bit."""
    return _first_difference(_parts(one), _parts(other))


def compare_starts(one: Record, other: Record) -> str | None:
    """Compare what agrees up to rounding even where bits do not: values before any step."""
    if one.values is None or other.values is None:
        return None if one.values is other.values else "only one of them has values"
    first, second = one.values[0], other.values[0]
    same = np.allclose(first, second, rtol=1e-3, atol=1e-3, equal_nan=True)
    return None if same else f"the first values are {first[:3]} and {second[:3]}"


def compare_instances(one: Problem, i: int, other: Problem, j: int) -> str | None:
    """Compare instance i of one draw with instance j of another, bit for bit."""
    return _first_difference(_instance(one, i), _instance(other, j))


def _parts(record: Record) -> Parts:
    row = {name: x for name, x in record.row.items() if not name.startswith("seconds")}
    matrices = {name: getattr(record, name) for name in ("values", "designs", "predictions")}
    return {**row, **record.curves, **matrices, "diagnostics": record.diagnostics}


def _instance(problem: Problem, i: int) -> Parts:
    return {
        "x": problem.data.x[i],
        "y": problem.data.y[i],
        "optimum": None if problem.optimum is None else problem.optimum[i],
        "graph": None if problem.graphs is None else problem.graphs[i],
        "hidden": None if problem.hidden is None else problem.hidden[i],
    }


def _first_difference(one: Parts, other: Parts) -> str | None:
    if one.keys() != other.keys():
        odd = sorted(one.keys() ^ other.keys())
        return f"only one of them has {odd[0]}"
    for name in one:
        try:
            np.testing.assert_equal(_plain(one[name]), _plain(other[name]))
        except AssertionError:
            return f"{name} is {_shorten(one[name])} and {_shorten(other[name])}"
    return None


def _plain(value: Any) -> Any:
    return value.detach().cpu().numpy() if isinstance(value, Tensor) else value


def _shorten(value: Any) -> str:
    """Return the beginning of a value, as much as a message has room for."""
    plain = _plain(value)
    if isinstance(plain, np.ndarray) and plain.ndim:
        flat: NDArray[Any] = plain.ravel()
        shown = ", ".join(f"{x:.6g}" for x in flat[:3].tolist())
        return f"[{shown}{', ...' if flat.size > 3 else ''}]"
    text = str(plain)
    return text if len(text) <= 60 else f"{text[:57]}..."


@contextmanager
def watching_generators() -> Iterator[list[str]]:
    """Fill the list, at the end, with the global generators that were used or seeded meanwhile.

    They are in a state of their own meanwhile, which nobody would seed them to, and then again as
    they were.
    """
    used: list[str] = []
    kept = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    random.seed(_ODD_SEED)
    np.random.seed(_ODD_SEED)  # noqa: NPY002
    torch.manual_seed(_ODD_SEED)
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
