"""The size and landmarks of every task, in `docs/tasks.md`: `python -m ddobench.cards` writes them.

The numbers are those of seed 0 at the size of the task's file. A task whose data or package is not
here keeps the line it has.
"""

import re
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.contracts import Problem
from ddobench.runner.run import evaluate_designs

FILE = Path("docs/tasks.md")
TIMED = ("ga", "fgm")  # methods whose seconds are shown
_HEAD = """\
| task | d, n | designs | best visible | random | best known | 0 and 1 | s: ga, fgm |
|---|---|---|---|---|---|---|---|
"""
PLACE = re.compile(r"(?<=written by python -m ddobench.cards -->\n).*?(?=<!-- end -->)", re.DOTALL)


def write_cards(file: Path = FILE) -> None:
    """Write the cards of all tasks into their page."""
    page = file.read_text(encoding="utf-8")
    (table,) = PLACE.findall(page)
    lines = []
    for entry in registry.entries("task"):
        head = f"| [`{entry.name}`](#{entry.name}) |"
        old = next((line for line in table.splitlines() if line.startswith(head)), "")
        if entry.missing_dependency:
            lines.append(old or f"{head} {' | '.join('?' * 7)} |")
        else:
            lines.append(f"{head} {' | '.join(describe_task(entry.name))} |")
    new = _HEAD + "\n".join(lines) + "\n"
    file.write_text(page.replace(table, new), encoding="utf-8")


def describe_task(name: str) -> list[str]:
    """Return the cells of a task in the table."""
    spec = specify_points([[f"task={name}", "method=naive"]])[0]
    problem = spec.build_task().problem((0,))
    kind = "numbers"
    if (sizes := problem.data.space.sizes) is not None:
        least, most = min(sizes), max(sizes)
        kind = f"{least} categories" if least == most else f"{least} to {most} categories"
    values, scale = find_landmarks(problem)
    seconds = ", ".join(_find_seconds(name, method, spec.d, spec.n) for method in TIMED)
    return [f"{spec.d}, {spec.n}", kind, *values, scale, seconds]


def find_landmarks(problem: Problem) -> tuple[list[str], str]:
    """Return the best visible, the mean visible and the best known value, and the range of data."""
    if not problem.measures:
        return ["hidden rows", "", "unknown"], ""
    best = float(evaluate_designs(problem, problem.data.best()[:, None])[0, 0])
    random = float(evaluate_designs(problem, problem.data.x).nanmean())
    known, bound = problem.optimum, problem.lower_bound
    top = float(known[0]) + 0.0 if known is not None else np.nan  # no -0
    scale, low, high = "", random, top
    if problem.full_range is not None:
        low, high = problem.full_range[0].tolist()
        scale = f"{low:.4g} and {high:.4g}"

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
