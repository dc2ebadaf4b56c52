"""One small store with something for every kind of figure of a report."""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddobench.report import Written, write_report, writer
from ddobench.report.data import ReportData
from ddobench.report.figures import gallery
from ddobench.report.figures.figure import Figure
from ddobench.store.records import Record
from ddobench.store.runs import Store
from tests.support.pages import HOSTILE
from tests.support.synthetic_runs import Row, climb, curve_of, failed_row, run_row
from tests.support.synthetic_samples import task_sample
from tests.support.synthetic_stores import PROVENANCE, Details, place_of

SEEDS = 3
REACHED = {"naive": 4.0, "ga": 5.0, "fgm": 6.0, "units": 9.0}  # of an optimum of 10
RATES = {"ga": 0.05, "fgm": 0.005}
CHAINS = [(7, 100), (11, 100), (11, 200), (11, 400)]  # d and n
PARTS = {"axes": "identity", "graph": "complete", "surrogate": "mlp"}
CHOSEN: Details = {
    "chosen": "units",
    "candidates": [
        {"candidate": "units", "held_out_top_rank": 0.875, "held_out_error": 0.25, "chosen": True},
        {"candidate": HOSTILE, "held_out_top_rank": None, "reason": HOSTILE, "chosen": False},
    ],
}


@dataclass(frozen=True)
class VariedReport:
    """The report of such a store, the data behind it, and its figures."""

    data: ReportData
    written: Written
    figures: list[Figure]


def write_varied_report(folder: Path) -> VariedReport:
    """Write the store and its report; one family of each task has its own figures."""
    runs = varied_store(folder / "runs")
    with pytest.MonkeyPatch.context() as patch:
        made: list[tuple[ReportData, list[Figure]]] = []

        def make_figures(data: ReportData) -> list[Figure]:
            made.append((data, list(gallery.make_figures(data))))
            return made[0][1]

        patch.setattr(gallery, "MOST_FAMILIES", 1)  # further families only take time
        patch.setattr(writer, "make_figures", make_figures)
        written = write_report(runs, folder / "report", formats="svg,csv")
        ((data, figures),) = made
        return VariedReport(data, written, figures)


def varied_store(folder: Path) -> Path:
    """Write the store: chains, settings, a factorial, a task without iterations, failed runs."""
    store = Store(folder)
    for row, config, details in [
        *_chains(),
        *_settings(),
        *_factorial(),
        *_quadratic(),
        *_coverage(),
    ]:
        row["command"] = HOSTILE if row["method"] == "odd" else _command(row)
        steps = 0 if row["method"] == "naive" or row["task"] == "quadratic" else 4
        curve = curve_of(row, steps, stops=3 if row["method"] == "ga" else None)
        curve = curve.assign(predicted=curve["value_model"] + 30 * curve["iteration"])
        columns = {str(name): curve[name].to_numpy(dtype=float) for name in curve.columns[2:]}
        store.write(place_of(store, row), Record(row, config, PROVENANCE, columns,
                                                 diagnostics=details))  # fmt: skip
    for changes in (
        {"method": "ga", "d": 7, "task": "chain", "digest": "ga-chain-7-100--"},
        {"method": "coms", "d": 11, "n": 400, "task": "chain", "digest": "coms", "label": "COMS"},
        {"method": "odd", "digest": "odd-quadratic-10", "label": HOSTILE, "reason": HOSTILE},
    ):
        lost: Row = failed_row(seed=SEEDS, privileges="") | changes
        store.write_failure(place_of(store, lost), lost | {"command": _command(lost)}, "Traceback")
    toy = replace(task_sample(3, "toy3d", edges=[(0, 1), (1, 2)]), hidden=None)
    for shown in (task_sample(11), toy):
        store.write_sample(store.sample(shown.task, f"{shown.d}"), shown)
    return folder


def _command(row: Row) -> str:
    words = (f"{name}={row[name]}" for name in ("task", "task_variant", "method", "d", "n"))
    return " ".join(["python -m ddobench", *words, str(row["method_variant"])]).strip()


def _run(method: str, d: int, n: int, seed: int, config: Details | None = None, **changes: Any
         ) -> tuple[Row, Details]:  # fmt: skip
    """Return the row and the configuration of a run; its value grows with its rows."""
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
    details: dict[tuple[str, int], Details] = {
        ("fgm", 11): _graph_details(), ("units", 11): _unit_details(), ("units", 7): CHOSEN,
    }  # fmt: skip
    for method in REACHED:
        for d, n in CHAINS:
            for seed in range(SEEDS):
                parts: Details = {"graph": "stein", "latent": "vae"} if method == "fgm" else {}
                yield *_run(method, d, n, seed, **parts), details.get((method, d), {})


def _settings() -> Iterator[tuple[Row, Details, Details]]:
    """Yield noise of a task, and two levels of a test of edges beside the default."""
    for seed in range(SEEDS):
        for method in ("naive", "ga"):
            noisy = {"task": {"noise": 0.5}, "method": {}}
            yield *_run(method, 7, 100, seed, noisy, task_variant="noise=0.5"), {}
        for alpha in (0.001, 0.5):
            level = {"task": {"noise": 0.0}, "method": {"graph": {"alpha": alpha}}}
            variant = f"graph.alpha={alpha}"
            yield *_run("fgm", 7, 100, seed, level, method_variant=variant), {}


def _factorial() -> Iterator[tuple[Row, Details, Details]]:
    """Yield every combination of two latents and two searches, with codes of one latent."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(40, 3))
    samples = {"codes": rng.normal(size=(40, 3)), "designs": x, "decoded": x + 0.1,
               "values": x.sum(axis=1)}  # fmt: skip
    codes = {f"{name}_sample": sample.tolist() for name, sample in samples.items()}
    for latent in ("identity", "vae"):
        for search in ("ascent", "cma"):
            variant = f"latent={latent} search={search}"
            variant = "" if variant == "latent=identity search=ascent" else variant
            for seed in range(SEEDS):
                parts: Details = {**PARTS, "latent": latent, "search": search}
                yield *_run("ga", 3, 100, seed, task="toy3d", method_variant=variant,
                            final_model=len(latent) + len(search) * seed,
                            **parts), codes if latent == "vae" else {}  # fmt: skip


def _quadratic() -> Iterator[tuple[Row, Details, Details]]:
    """Yield a task of categories without iterations, with one privileged method."""
    for method in ("naive", "fgm", "odd"):
        hostile = {"label": HOSTILE} if method == "odd" else {}
        for d in (10, 20):
            for seed in range(SEEDS):
                digest = f"{method}-quadratic-{d}"
                row = run_row(method, d, seed, y_sd=2.0, digest=digest, **hostile)
                yield row, {"method": {"note": hostile.get("label", "plain")}}, {}
    declined = {"status": "declined", "reason": "too large", "digest": "naive-quadratic-10"}
    yield run_row("naive", 10, SEEDS, **declined), {}, {}


def _coverage() -> Iterator[tuple[Row, Details, Details]]:
    """Yield a task whose terms are known, at three sizes, the first of them a plane."""
    steps = np.linspace(-1.0, 1.0, 5)
    grid = np.stack(np.meshgrid(steps, steps), axis=-1).reshape(-1, 2)
    plane = {"grid": grid.tolist(), "values": (-(grid**2).sum(axis=1)).tolist(),
             "rows": (grid[::3] / 2).tolist(), "best_visible": [[0.5, 0.0]],
             "proposed": [[0.1, 0.1]], "optimum": [[0.0, 0.0]]}  # fmt: skip
    for method, variant in (("naive", ""), ("ga", ""), ("fgm", ""), ("fgm", "graph=true")):
        for d in (2, 4, 6):
            for seed in range(SEEDS):
                known: Details = {"privileges": "graph", "graph": "true"} if variant else {}
                terms: Details = {"log10_coverage": 4.0 * d, "log10_clique_coverage": 1.5,
                         "clique_correlation": 0.1 * d}  # fmt: skip
                row, config = _run(method, d, 100, seed, task="coverage",
                                   method_variant=variant, **known, **terms)  # fmt: skip
                yield row, config, {"plane": plane} if d == 2 else {}


def _graph_details() -> Details:
    """Return the diagnostics of a method that found two edges among eleven codes."""
    hessian = np.full((11, 11), 0.01)
    for a, b in ((0, 1), (2, 5)):
        hessian[a, b] = hessian[b, a] = -0.3
    return {"edges": [[0, 1], [2, 5]], "cliques": 9, "pseudo_hessian": hessian.tolist()}


def _unit_details() -> Details:
    """Return the diagnostics of two units, each within one true clique."""
    energy = np.zeros((2, 11))
    energy[0, 4:7], energy[1, :3] = 1 / 3, 1 / 3
    edges = [[0, 1], [0, 2], [1, 2], [4, 5], [4, 6], [5, 6]]
    return {"units": 2, "units_graph": {"edges": edges, "energy": energy.tolist()}}
