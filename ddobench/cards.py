"""A card for every task, in `tasks/README.md`: `python -m ddobench.cards` writes it.

The numbers are those of seed 0 at the size of the task's file. A task whose data or package is not
here keeps the card it has.
"""

from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.contracts import Problem
from ddobench.datasets import SETS
from ddobench.runner.run import evaluate_designs

FILE = Path("tasks/README.md")
TIMED = ("ga", "fgm")  # methods whose seconds are shown
_HEAD = """\
# Tasks

Written by `python -m ddobench.cards`, from seed 0 at the size of each task's file. **Best visible**
and **random** are what the best visible design and a random visible one are worth to the oracle,
**best known** is the optimum, or a lower bound (≥) where nobody knows it. In parentheses: the same
on a scale where 0 and 1 are the least and the largest value of all data or, if there is no such
data, the visible mean and the optimum. Seconds are CPU seconds of one published seed.
TFBind10 is not among the tasks: `benchmarks/tfbind10.py` shows why.

| task | d, n | designs | source; licence | best visible | random | best known | 0, 1 | s: ga, fgm |
|---|---|---|---|---|---|---|---|---|
"""


def write_cards(file: Path = FILE) -> None:
    """Write the cards of all tasks."""
    known = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    lines = []
    for entry in registry.entries("task"):
        old = next((line for line in known if line.startswith(f"| `{entry.name}` |")), "")
        if entry.missing_dependency:
            lines.append(old or f"| `{entry.name}` | {' | '.join('?' * 8)} |")
        else:
            lines.append(describe_task(entry.name))
    file.write_text(_HEAD + "\n".join(lines) + "\n", encoding="utf-8")


def describe_task(name: str) -> str:
    """Return the card of a task as a row of a table."""
    spec = specify_points([[f"task={name}", "method=naive"]])[0]
    card = spec.config["task"]["card"]
    problem = spec.build_task().problem((0,))
    kind = "numbers"
    if (sizes := problem.data.space.sizes) is not None:
        least, most = min(sizes), max(sizes)
        kind = f"{least} categories" if least == most else f"{least} to {most} categories"
    source = card.get("source", "computed; MIT")
    if "data" in card:
        source = f"{SETS[card['data']].citation}; {SETS[card['data']].licence}"
    values, scale = find_landmarks(problem)
    seconds = ", ".join(_find_seconds(name, method, spec.d, spec.n) for method in TIMED)
    cells = [f"`{name}`", f"{spec.d}, {spec.n}", kind, source, *values, scale, seconds]
    return f"| {' | '.join(cells)} |"


def find_landmarks(problem: Problem) -> tuple[list[str], str]:
    """Return the best visible, the mean visible and the best known value, and their scale."""
    if not problem.measures:
        return ["hidden rows", "", "unknown"], ""
    best = float(evaluate_designs(problem, problem.data.best()[:, None])[0, 0])
    random = float(evaluate_designs(problem, problem.data.x).nanmean())
    known, bound = problem.optimum, problem.lower_bound
    top = float(known[0]) + 0.0 if known is not None else np.nan  # no -0
    scale, low, high = "visible mean and optimum", random, top
    if problem.full_range is not None:
        low, high = problem.full_range[0].tolist()
        scale = f"{low:.4g} and {high:.4g}, of all data"
    elif known is None:
        scale = ""

    def write(value: float) -> str:
        share = (value - low) / (high - low)
        return f"{value:.4g} ({share:.3f})" if np.isfinite(share) else f"{value:.4g}"

    shown = write(best)
    if not problem.exact:
        shown += f", measured {write(float(problem.data.y.max()))}"
    if known is not None:
        return [shown, write(random), write(top)], scale
    return [
        shown,
        write(random),
        "unknown" if bound is None else f"≥ {write(float(bound[0]))}",
    ], scale


def _find_seconds(task: str, method: str, d: int, n: int) -> str:
    with resources.files("ddobench.cli").joinpath("published_costs.csv").open() as file:
        costs = pd.read_csv(file)
    same = (costs["task"] == task) & (costs["method"] == method) & (costs["budget"] == "full")
    own = costs[same & (costs["d"] == d) & (costs["n"] == n)]
    return f"{own['cpu'].iloc[0]:.3g}" if len(own) else "?"


if __name__ == "__main__":
    write_cards()
