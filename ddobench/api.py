"""The command line from Python: run sweeps and load their results."""

import itertools
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import pandas as pd

from ddobench.errors import UsageError
from ddobench.store import runs as stored

if TYPE_CHECKING:
    from ddobench.runner.spec import Specification  # these need Hydra, which takes a second
    from ddobench.task_view import TaskView

_ARGUMENTS = ("method", "task", "d", "n", "seed", "results_dir", "many")  # of `run`, by name
_COMMAND_LINE = ("experiment", "suite", "plan")  # of sweeps, which are loops here


def run(
    method: str | Sequence[str] = "fgm",
    task: "str | TaskView | Sequence[str | TaskView]" = "quadratic",
    d: int | Sequence[int] | None = None,
    n: int | Sequence[int] | None = None,
    seed: int | str | Sequence[int] = 0,
    overrides: Sequence[str] = (),
    results_dir: str | Path = "results/runs",
    *,
    many: bool = False,
    **keys: object,
) -> pd.DataFrame:
    """Run every combination that is not stored yet and return the rows of `load` for all of them.

    `seed` takes the notation of the command line ("0-9"), `keys` any of its keys (`budget="tiny"`,
    `latent=["vae", "pca"]`), `overrides` any of its `key=value`. A task is a name or what
    `ddobench.task` returns.
    """
    specs = specify_all({"method": method, "d": d, "n": n, **keys}, task, overrides)
    return run_all(specs, seed, results_dir, many)


def specify_all(
    axes: dict[str, object], task: object, overrides: Sequence[str]
) -> "list[Specification]":
    """Return the specification of every combination of values; None leaves a key out."""
    from ddobench.cli.hooks import specify_points
    from ddobench.task_view import TaskView, format_value

    _check_overrides([*overrides, *(f"{key}=" for key in axes if key not in _ARGUMENTS)])
    tasks = [task] if isinstance(task, str | TaskView) or not isinstance(task, Iterable) else task
    specs: list[Specification] = []
    for one in tasks:
        words = one.words if isinstance(one, TaskView) else [f"task={format_value(one)}"]
        values = [_overrides_for(key, value) for key, value in axes.items()]
        points = [
            [*words, *filter(None, point), *overrides] for point in itertools.product(*values)
        ]
        specified = specify_points(points)
        specs += map(one.own, specified) if isinstance(one, TaskView) else specified
    return specs


def run_all(
    specs: "Sequence[Specification]",
    seed: int | str | Sequence[int],
    results_dir: str | Path,
    many: bool = False,
) -> pd.DataFrame:
    """Run the seeds that are not stored yet and return the rows of all of them."""
    from ddobench.cli.argv import Settings, read_folder
    from ddobench.cli.job import find_missing
    from ddobench.progress import reporting
    from ddobench.runner.batches import execute
    from ddobench.seeds import parse_seeds

    seeds = parse_seeds(seed)
    settings = Settings(read_folder(results_dir), plan=False, many=many)
    store = stored.Store(settings.results)
    missing = [find_missing(store, spec.place(store), seeds) for spec in specs]
    settings.check_number(sum(map(len, missing)))
    for spec, todo in zip(specs, missing, strict=True):
        if todo:
            spec.build()  # so that all errors come before the first run
    with reporting(sum(map(len, missing))):
        for spec, todo in zip(specs, missing, strict=True):
            for batch in todo.split(spec.stack):
                execute(spec, [*batch], store, " ".join(sys.argv))
    runs = pd.concat([_load(spec.place(store).folder) for spec in specs], ignore_index=True)
    return runs[[seed in seeds for seed in runs["seed"]]].reset_index(drop=True)


def load(folder: str | Path) -> pd.DataFrame:
    """Return one row per run, failed ones included; unreadable files are named in a warning."""
    return stored.load(_existing(folder))


def load_curves(folder: str | Path) -> pd.DataFrame:
    """Return one row per run and recorded iteration."""
    return stored.load_curves(_existing(folder))


def _existing(folder: str | Path) -> Path:
    path = Path(folder).expanduser()
    if not path.is_dir():
        raise UsageError(f"there is no folder {path}; give one that runs were stored in")
    return path


def _check_overrides(overrides: Sequence[str]) -> None:
    """Raise for a key that has an argument of its own, or that only the command line knows."""
    for word in overrides:
        key = word.lstrip("+").partition("=")[0]
        if key in _ARGUMENTS:
            raise UsageError(f"{key} is an argument of its own; write run({key}=...)")
        if key in _COMMAND_LINE:
            raise UsageError(f"{key} is for the command line; write run(method=..., task=...)")


def _load(folder: Path) -> pd.DataFrame:
    """Return the rows of one specification, with paths that start at the results folder."""
    runs = stored.load(folder)
    return runs.assign(path=f"{folder.name}/" + runs["path"])


def _overrides_for(key: str, value: object) -> list[str]:
    from ddobench.task_view import format_value

    if value is None:
        return [""]
    many = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    return [f"{key}={format_value(one)}" for one in many]
