"""One small store with something for every kind of figure of a report."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ddobench.store.records import Record
from ddobench.store.runs import Store
from tests.support.synthetic_portraits import portrait
from tests.support.synthetic_runs import Row, climb, curve_of, failed_row, run_row
from tests.support.synthetic_stores import PROVENANCE, Details, place_of

SEEDS = 3
REACHED = {"naive": 4.0, "ga": 5.0, "fgm": 6.0, "units": 9.0}  # of an optimum of 10
RATES = {"ga": 0.05, "fgm": 0.005}
CHAINS = [(7, 100), (11, 100), (11, 200), (11, 400)]  # d and n
PARTS = {"axes": "identity", "graph": "complete", "surrogate": "mlp"}


def varied_store(folder: Path) -> Path:
    """Write the store: chains, settings, a factorial, a task without steps, a failed run."""
    store = Store(folder)
    for row, config, details in [*_chains(), *_settings(), *_factorial(), *_quadratic()]:
        row |= {"command": _command(row)}
        steps = 0 if row["method"] == "naive" or row["task"] == "quadratic" else 4
        curve = curve_of(row, steps, stops=3 if row["method"] == "ga" else None)
        curve = curve.assign(predicted=curve["value_model"] + 30 * curve["iteration"])
        columns = {str(name): curve[name].to_numpy(dtype=float) for name in curve.columns[2:]}
        store.write(place_of(store, row), Record(row, config, PROVENANCE, columns,
                                                 diagnostics=details))  # fmt: skip
    lost = failed_row(method="ga", d=7, seed=SEEDS, task="chain", digest="ga-chain-7-100--")
    store.write_failure(place_of(store, lost), lost | {"command": _command(lost)}, "Traceback")
    toy = replace(portrait(3, "toy3d", edges=[(0, 1), (1, 2)]), hidden=None)
    for shown in (portrait(11), toy):
        store.write_portrait(store.portrait(shown.task, f"{shown.d}"), shown)
    return folder


def _command(row: Row) -> str:
    words = (f"{name}={row[name]}" for name in ("task", "task_variant", "method", "d", "n"))
    return " ".join(["python -m ddobench", *words, str(row["method_variant"])]).strip()


def _run(method: str, d: int, n: int, seed: int, config: Details | None = None, **changes: Any
         ) -> tuple[Row, Details]:  # fmt: skip
    """Return the row and the configuration of a run; what it reaches grows with its rows."""
    reached = REACHED[method] * float(np.tanh(n / d**2)) + 0.2 * seed
    row = climb(method, d, seed, **{
        "n": n, "final_model": reached, "best_oracle": reached + 0.5, "regret_final": 10 - reached,
        "invalid_final": 0.0 if method == "naive" else 0.3, "seconds_fit": 2.0 + seed,
        "seconds_propose": 0.1, "seconds_cpu": 3.0, "label": method.upper(), **changes,
    })  # fmt: skip
    digest = (method, row["task"], d, n, row["task_variant"], row["method_variant"])
    search = {"_target_": "a.Ascent", "optimiser": "gradient", "prior": 0, "rate": RATES[method]} \
        if method in RATES else {}  # fmt: skip
    usual = {"search": search, "graph": {"alpha": 0.05}}
    settings = {"task": {"noise": 0.0}, "method": usual} | (config or {})
    return row | {"digest": "-".join(map(str, digest))}, settings


def _chains() -> Iterator[tuple[Row, Details, Details]]:
    details: dict[str, Any] = {"fgm": _tell_graph(), "units": _tell_units()}
    for method in REACHED:
        for d, n in CHAINS:
            for seed in range(SEEDS):
                parts = {"graph": "stein", "latent": "vae"} if method == "fgm" else {}
                yield *_run(method, d, n, seed, **parts), details.get(method, {}) if d == 11 else {}


def _settings() -> Iterator[tuple[Row, Details, Details]]:
    """Yield noise of a task, and two levels of a test of edges beside the usual one."""
    for seed in range(SEEDS):
        for method in ("naive", "ga"):
            noisy = {"task": {"noise": 0.5}, "method": {}}
            yield *_run(method, 7, 100, seed, noisy, task_variant="noise=0.5"), {}
        for alpha in (0.001, 0.5):
            level = {"task": {"noise": 0.0}, "method": {"graph": {"alpha": alpha}}}
            variant = f"graph.alpha={alpha}"
            yield *_run("fgm", 7, 100, seed, level, method_variant=variant), {}


def _factorial() -> Iterator[tuple[Row, Details, Details]]:
    """Yield every combination of two latents and two searches, and what one latent encodes."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    codes = {"codes_sample": rng.normal(size=(40, 3)).tolist(), "designs_sample": x.tolist(),
             "decoded_sample": (x + 0.1).tolist(), "values_sample": x.sum(axis=1).tolist()}  # fmt: skip
    for latent in ("identity", "vae"):
        for search in ("ascent", "cma"):
            variant = f"latent={latent} search={search}"
            variant = "" if variant == "latent=identity search=ascent" else variant
            for seed in range(SEEDS):
                parts = {**PARTS, "latent": latent, "search": search}
                yield *_run("ga", 3, 100, seed, task="toy3d", method_variant=variant,
                            final_model=len(latent) + len(search) * seed,
                            **parts), codes if latent == "vae" else {}  # fmt: skip


def _quadratic() -> Iterator[tuple[Row, Details, Details]]:
    """Yield a task of categories, where nothing takes steps and one method knows the graph."""
    for method in ("naive", "fgm"):
        for d in (10, 20):
            for seed in range(SEEDS):
                yield run_row(method, d, seed, y_sd=2.0, digest=f"{method}-quadratic-{d}"), {}, {}


def _tell_graph() -> Details:
    """Return what a method stores that found two edges among eleven codes."""
    hessian = np.full((11, 11), 0.01)
    for a, b in ((0, 1), (2, 5)):
        hessian[a, b] = hessian[b, a] = -0.3
    return {"edges": [[0, 1], [2, 5]], "cliques": 9, "pseudo_hessian": hessian.tolist()}


def _tell_units() -> Details:
    """Return what is stored of two units, each inside of one true clique."""
    energy = np.zeros((2, 11))
    energy[0, 4:7], energy[1, :3] = 1 / 3, 1 / 3
    edges = [[0, 1], [0, 2], [1, 2], [4, 5], [4, 6], [5, 6]]
    return {"units": 2, "units_graph": {"edges": edges, "energy": energy.tolist()}}
