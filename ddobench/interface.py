"""The Python way in: what the command line does, from a notebook."""

import itertools
from collections.abc import Sequence
from pathlib import Path

import pandas as pd
from hydra import compose, initialize_config_module

from ddobench import plugins
from ddobench.execution import execute, place_of
from ddobench.progress import reporting
from ddobench.seeds import parse_seeds
from ddobench.specification import Specification, specify
from ddobench.store import Store, load


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
    plugins.register()
    seeds = parse_seeds(seed)
    store = Store(results_dir)
    axes = {"method": method, "task": task, "d": d, "n": n}
    values = [_spellings(key, value) for key, value in axes.items()]
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        specs = [
            _specify([*filter(None, point), *overrides]) for point in itertools.product(*values)
        ]
    for spec in specs:
        spec.build()
    missing = [store.missing(place_of(store, spec), seeds) for spec in specs]
    with reporting(sum(map(len, missing))):
        for spec, todo in zip(specs, missing, strict=True):
            if todo:
                execute(spec, todo, store)
    runs = pd.concat([load(place_of(store, spec).folder) for spec in specs], ignore_index=True)
    return runs[runs["seed"].isin(seeds)].reset_index(drop=True)


def _specify(overrides: list[str]) -> Specification:
    cfg = compose("run", overrides=overrides, return_hydra_config=True)
    return specify(cfg, cfg.hydra.runtime.choices)


def _spellings(key: str, value: object) -> list[str]:
    if value is None:
        return [""]
    many = value if isinstance(value, Sequence) and not isinstance(value, str) else [value]
    return [f"{key}={one}" for one in many]
