"""`ddobench.evaluate`: a function or a regressor as a method, run like any other.

Its runs are ordinary records. The digest of a run contains what the function does (see
`fingerprints`), so that a changed function is another method.
"""

import copy
import inspect
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pandas as pd
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.api import run_all, specify_all
from ddobench.contracts import Dataset, Method, Proposal, Space
from ddobench.errors import OutputError, UsageError
from ddobench.fingerprints import fingerprint
from ddobench.parts.pipeline import Pipeline
from ddobench.parts.regressors import Regressor
from ddobench.registry import entries, read_choice
from ddobench.report.beside import check_beside, rank_beside
from ddobench.rng import Streams
from ddobench.runner.build import CARD, TARGET, build_method
from ddobench.runner.spec import Specification
from ddobench.seeds import parse_seeds
from ddobench.task_view import OwnSpecification, TaskView, name_of, to_numpy

_SIGNATURE = "(x, y, space, k, rng)"
_FUNCTION, _PIPELINE = "random", "forest"  # methods without and with parts, to be replaced


def evaluate(
    method: Any,
    task: str | TaskView | Sequence[str | TaskView] | None = None,
    d: int | Sequence[int] | None = None,
    n: int | Sequence[int] | None = None,
    seed: int | str | Sequence[int] | None = None,
    *,
    suite: str | None = None,
    search: str | None = None,
    name: str | None = None,
    version: int | None = None,
    beside: str | Path | Sequence[str | Path] | None = None,
    overrides: Sequence[str] = (),
    results_dir: str | Path = "results/runs",
    many: bool = False,
    **keys: object,
) -> pd.DataFrame:
    """Run a method of your own on a task or a suite, and return one row per run, as `load` does.

    `method` is a function `mine(x, y, space, k, rng)` or an object with `fit` and `predict`. The
    function gets the visible designs (N, d) and values (N,) as NumPy arrays, the space, how many
    designs to return, and a NumPy generator; it returns designs (k, d), best first, or designs and
    the values (k,) that it predicts for them. Designs of categories are whole numbers from 0. An
    object is fitted to the rows, and `search` looks for its maximum: one that needs no gradient,
    by default `evolution`.

    `suite="ddobench-1"` in place of a task runs every cell of that suite, on its seeds unless
    `seed` says otherwise; without a suite `seed` is 0.

    What is stored already is not run again. `name` replaces the name of the function; `version`
    replaces its content as its identity. `beside="published"` (or a folder of runs) returns a
    leaderboard of the method and those runs, on the same seeds, in place of the runs. Other
    arguments are those of `run`.
    """
    title = name or name_of(method)
    _check_name(title)
    cells = _read_cells(task, suite, d, n)
    axes: dict[str, object] = dict(keys)
    if seed is None:
        seed = 0 if suite is None else read_choice("suite", suite)["seeds"]
    if _is_regressor(method):
        _check_no_surrogate([*keys, *overrides])
        axes = {"method": _PIPELINE, "search": search or "evolution", **axes}
    else:
        _check_function(method, title)
        if search is not None:
            raise UsageError(f"search={search} has no effect on a function")
        axes = {"method": _FUNCTION, **axes}
    found = [spec for one, size in cells for spec in specify_all({**axes, **size}, one, overrides)]
    specs = [respecify(spec, method, title, version) for spec in found]
    if beside is None:
        return run_all(specs, seed, results_dir, many)
    sizes = [vars(spec) | {"task_variant": spec.task_variant} for spec in specs]
    check_beside(beside, sizes, parse_seeds(seed))
    return rank_beside(run_all(specs, seed, results_dir, many), beside)


def _read_cells(
    task: Any, suite: str | None, d: Any, n: Any
) -> list[tuple[Any, dict[str, object]]]:
    """Return the tasks, each with its sizes and settings."""
    if (task is None) == (suite is None):
        given = "neither" if task is None else "both"
        raise UsageError(f"evaluate needs a task or a suite, got {given}")
    if suite is None:
        return [(task, {"d": d, "n": n})]
    if d is not None or n is not None:
        raise UsageError("the cells of a suite have their sizes; leave d and n out")
    known = [entry.name for entry in entries("suite")]
    if suite not in known:
        raise UsageError(f"there is no suite {suite!r}; there are {', '.join(known)}")
    cells: list[dict[str, object]] = [*read_choice("suite", suite)["cells"].values()]
    return [(cell["task"], {k: v for k, v in cell.items() if k != "task"}) for cell in cells]


def _check_name(name: str) -> None:
    if name in {entry.name for entry in entries("method")}:
        raise UsageError(f"there is a method {name!r} already; give name=, a name of its own")
    if not name or len(name) > 100 or not all(one.isalnum() or one in "_.-+" for one in name):
        raise UsageError(
            f"name must be of at most 100 letters, digits and any of _ . - +, got {name!r}"
        )


def respecify(
    spec: Specification, method: Any, name: str, version: int | None = None
) -> OwnSpecification:
    """Return a specification with a function or a regressor in place of its method."""
    replaced = _with_regressor if _is_regressor(method) else _with_function
    return replaced(spec, method, name, version)


def _is_regressor(method: Any) -> bool:
    if isinstance(method, type):
        title = method.__name__
        raise UsageError(f"method must be an object, got the class {title}; write {title}()")
    return all(callable(getattr(method, name, None)) for name in ("fit", "predict"))


def _check_no_surrogate(overrides: Sequence[str]) -> None:
    for word in overrides:
        if word.startswith("surrogate"):
            raise UsageError(f"{word} has no effect, as the surrogate is the one that is evaluated")


def _check_function(function: Any, name: str) -> None:
    if not callable(function):
        raise UsageError(
            f"method must be a function {_SIGNATURE} or have fit and predict, got {function!r}"
        )
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # of compiled code: it is called as it is
        return
    try:
        signature.bind(*"xyskr")
    except TypeError:
        raise UsageError(f"{name} must take {_SIGNATURE}, got {name}{signature}") from None


def _with_function(
    spec: Specification, function: Any, name: str, version: int | None
) -> OwnSpecification:
    settings = _plain_settings(function.keywords) if isinstance(function, partial) else {}
    config = {
        TARGET: "ddobench.evaluation.FunctionMethod",
        CARD: _card(function, name),
        **_identity(function, name, version),
        **settings,
    }
    wanted = spec.config["budget"]["top"]

    def make() -> FunctionMethod:
        return FunctionMethod(function=_copy(function), title=name, wanted=wanted)

    return OwnSpecification.of(
        spec,
        method=name,
        config={**spec.config, "method": config},
        method_departures={key: str(value) for key, value in settings.items()},
        parts={},
        make_method=make,
    )


def _with_regressor(
    spec: Specification, regressor: Any, name: str, version: int | None
) -> OwnSpecification:
    settings = _plain_settings(_changed_settings(regressor))
    surrogate: dict[str, Any] = {
        TARGET: "ddobench.parts.regressors.Regressor",
        **_identity(regressor, name, version),
        **settings,
    }
    own = {**spec.config["method"], CARD: _card(regressor, name), "surrogate": surrogate}
    kept = {k: v for k, v in spec.method_departures.items() if not k.startswith("surrogate")}

    empty = {TARGET: surrogate[TARGET], "regressor": None}

    def make() -> Pipeline:
        built = build_method({**own, "surrogate": empty})
        assert isinstance(built, Pipeline)
        return replace(built, surrogate=Regressor(regressor=regressor))

    return OwnSpecification.of(
        spec,
        method=name,
        config={**spec.config, "method": own},
        method_departures={**{key: str(value) for key, value in settings.items()}, **kept},
        parts={**spec.parts, "surrogate": name},
        make_method=make,
    )


def _identity(thing: Any, name: str, version: int | None) -> dict[str, Any]:
    if version is not None:
        return {"version": version}
    return {"content": fingerprint(thing, name)}


def _card(thing: Any, name: str) -> dict[str, str]:
    text = inspect.getdoc(thing) or ""
    return {"label": name, "summary": text.partition("\n")[0][:200], "fidelity": "own"}


def _plain_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    plain = (bool, int, float, str)
    return {key: value for key, value in settings.items() if isinstance(value, plain)}


def _changed_settings(regressor: Any) -> dict[str, Any]:
    """Return the settings of an estimator that are not its defaults, {} if nobody knows."""
    with suppress(Exception):  # of a class that is not ours
        usual = type(regressor)().get_params(deep=False)
        given = regressor.get_params(deep=False)
        return {key: value for key, value in given.items() if value != usual.get(key)}
    return {}


def _copy(function: Any) -> Any:
    """Return a copy, so that what an object remembers of one seed does not reach the next."""
    try:
        return copy.deepcopy(function)
    except Exception:  # of a class that is not ours
        return function


@dataclass(kw_only=True)
class FunctionMethod(Method):
    """A function of NumPy arrays as a method, one seed at a time."""

    name: ClassVar[str] = "function"
    seeds_at_once: ClassVar[int | None] = 1

    function: Any
    title: str
    wanted: int  # designs

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002 - all is done by `propose`
        """Keep the rows."""
        self._data = data

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Call the function, and check what it returns."""
        space = self._data.space
        k = min(self.wanted, starts.shape[1])
        x = to_numpy(self._data.x[0], space)
        returned = self.function(x, self._data.y[0].numpy(), space, k, rng.rows[0].generator)
        designs, predicted = read_output(returned, self.title, space, k)
        yield Proposal(designs[None], None if predicted is None else predicted[None])


def read_output(
    returned: Any, name: str, space: Space, k: int
) -> tuple[Tensor, Tensor | None]:  # (k, d), (k,)
    """Return designs and predictions, or raise one sentence about what is wrong with them."""
    pair = isinstance(returned, tuple) and len(returned) == 2
    designs = _read_array(returned[0] if pair else returned, f"{name} must return designs")
    if designs.shape != (k, space.d):
        raise OutputError(
            f"{name} must return k={k} designs of d={space.d} variables, an array {(k, space.d)}, "
            f"got {designs.shape}"
        )
    predicted = None
    if pair and returned[1] is not None:
        predicted = _read_array(returned[1], f"{name} must return predictions second")
        if predicted.shape != (k,):
            raise OutputError(
                f"{name} must return k={k} predictions second, an array {(k,)}, "
                f"got {predicted.shape}"
            )
        _check_finite(predicted, f"{name} must return finite predictions", predicted)
    _check_finite(designs, f"{name} must return finite designs", designs)
    tensor = torch.from_numpy(designs)
    inside = space.contains(tensor).numpy()
    if not inside.all():
        lost, most = designs[~inside], max(space.sizes or (0,))
        raise ValueError(
            f"{name} must return designs of whole categories from 0 to below the size of each "
            f"variable (at most {most}), got {len(lost)} of {k} others, such as "
            f"{lost[0][:8].tolist()}"
        )
    return tensor, None if predicted is None else torch.from_numpy(predicted)


def _read_array(given: Any, wanted: str) -> NDArray[np.float64]:
    if hasattr(given, "detach"):
        given = given.detach().cpu().numpy()
    try:
        array = np.asarray(given)
    except ValueError:  # rows of different lengths
        raise OutputError(
            f"{wanted} as an array of numbers, got rows of different lengths"
        ) from None
    if array.dtype.kind not in "fiub":
        kind = type(given).__name__ if array.ndim == 0 else f"an array of {array.dtype}"
        raise OutputError(f"{wanted} as an array of real numbers, got {kind}")
    return array.astype(np.float64)


def _check_finite(array: NDArray[np.float64], wanted: str, of: NDArray[np.float64]) -> None:
    bad = ~np.isfinite(array).reshape(len(of), -1).all(axis=1)
    if bad.any():
        raise ValueError(f"{wanted}, got NaN or infinity in {int(bad.sum())} of {len(of)}")
