"""The Python way in: what the command line does, from a notebook."""

import itertools
from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd

from ddobench.cli.composition import specify_points
from ddobench.errors import UsageError
from ddobench.progress import reporting
from ddobench.runner.execute import execute
from ddobench.seeds import parse_seeds
from ddobench.store.runs import Store, load


def run(
    method: str | Sequence[str] = "fgm",
    task: str | Sequence[str] = "quadratic",
    d: int | Sequence[int] | None = None,
    n: int | Sequence[int] | None = None,
    seed: int | str | Sequence[int] = 0,
    overrides: Sequence[str] = (),
    results_dir: str | Path = "results/runs",
) -> pd.DataFrame:
    """Run every combination that is not stored yet and return the rows of `load` for all of them.

    `seed` takes the spellings of the command line ("0-9"), `overrides` any of its `key=value`.
    """
    _check_overrides(overrides)
    seeds = parse_seeds(seed)
    store = Store(results_dir)
    axes = {"method": method, "task": task, "d": d, "n": n}
    values = [_overrides_for(key, value) for key, value in axes.items()]
    points = [[*filter(None, point), *overrides] for point in itertools.product(*values)]
    specs = specify_points(points)
    missing = [store.missing(spec.place(store), seeds) for spec in specs]
    for spec, todo in zip(specs, missing, strict=True):
        if todo:
            spec.build()  # so that all errors come before the first run
    with reporting(sum(map(len, missing))):
        for spec, todo in zip(specs, missing, strict=True):
            if todo:
                execute(spec, todo, store)
    runs = pd.concat([_load(spec.place(store).folder) for spec in specs], ignore_index=True)
    return runs[runs["seed"].isin(seeds)].reset_index(drop=True)


def _check_overrides(overrides: Sequence[str]) -> None:
    """Raise for a key that has an argument of its own and would be passed over here."""
    for key in ("seed", "results_dir"):
        if any(word.lstrip("+").startswith(f"{key}=") for word in overrides):
            raise UsageError(f"{key} is an argument of its own; write run({key}=...)")


def _load(folder: Path) -> pd.DataFrame:
    """Return the rows of one specification, with paths that start at the results folder."""
    runs = load(folder)
    return runs.assign(path=f"{folder.name}/" + runs["path"])


def _overrides_for(key: str, value: object) -> list[str]:
    if value is None:
        return [""]
    many = value if isinstance(value, Iterable) and not isinstance(value, str) else [value]
    return [f"{key}={one}" for one in many]
