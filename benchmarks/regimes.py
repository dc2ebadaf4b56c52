"""What few rows, poor rows, other starts and noise cost six methods: a table and a figure.

The runs are those of `experiment=regimes`. A number is the share of the optimum that a method's own
choice of 128 designs is worth, in per cent: 0 is the mean visible value, an invalid design counts
as the worst visible value. It writes `regimes.md` and `regimes.svg` below results/paper.

Run: python benchmarks/regimes.py [RESULTS_DIR]
"""

import sys
from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import pandas as pd
from matplotlib.axes import Axes

import ddobench
from ddobench.report.tables.formatting import format_digits
from ddobench.report.tables.select import share_of_optimum
from ddobench.stats.samples import mean_interval
from ddobench.variants import split_variant

PUBLISHED = Path(__file__).parent.parent / "results" / "paper"
SEEDS = range(40, 45)
VISIBLE = "best visible design"
TITLES = {"chain": "chain, d = 21", "nk": "NK landscape, d = 40", "tfbind8": "TFBind8"}
MOST_ROWS = {"chain": 2000, "nk": 5000, "tfbind8": 32768}
USUAL_ROWS = {**MOST_ROWS, "tfbind8": 3277}  # of the regimes that have one number of rows
LEVELS = {  # of each regime; the last one but for rows is that of no other regime
    "rows": ("1 %", "10 %", "all"),
    "rows from the lowest": ("20 %", "40 %", "60 %", "100 %"),
    "starts": ("random rows", "best rows"),
    "noise, sd": ("1", "0.3", "0"),
}
KEPT = ("task", "name", "color", "seed", "share")


def find_shares(runs: pd.DataFrame) -> pd.DataFrame:
    """Return one row per regime, level, task, method and seed, with its share of the optimum."""
    runs = runs[runs["seed"].isin(SEEDS) & (runs["budget"] == "few_designs")]
    runs = runs[(runs["status"] == "ok") & runs["task"].isin([*TITLES])]
    label = runs["label"].where(~runs["method"].isin(["naive"]), VISIBLE)
    runs = runs.assign(share=100 * share_of_optimum(runs), name=label)
    rows = [
        {"regime": regime, "level": level, **{key: run[key] for key in KEPT}}
        for run in runs.to_dict("records")
        for regime, level in _places(run)
    ]
    shares = pd.DataFrame(rows, columns=["regime", "level", *KEPT])
    several = shares.groupby(["regime", "task", "name"])["level"].transform("nunique") > 1
    return shares[several]  # others were not run in this regime


def _places(run: dict[Any, Any]) -> list[tuple[str, str]]:
    """Return where a run stands: a regime and its level, or several if nothing special was done."""
    task, settings = split_variant(run["task_variant"]), split_variant(run["method_variant"])
    start = settings.pop("search.begin_at", None)
    if set(settings) - {"graph"} or set(task) - {"truncate", "noise"}:
        return []  # of another experiment
    if start:
        return [("starts", "random rows")]
    if "truncate" in task:
        return [("rows from the lowest", f"{task['truncate']} %")]
    if "noise" in task:
        return [("noise, sd", f"{float(task['noise']):g}")]
    share = round(100 * run["n"] / MOST_ROWS[run["task"]])
    places = [("rows", "all" if share == 100 else f"{share} %")]
    if run["n"] == USUAL_ROWS[run["task"]]:
        places += [(regime, levels[-1]) for regime, levels in [*LEVELS.items()][1:]]
        if run["method"] == "naive":  # its design does not depend on where others start
            places.append(("starts", LEVELS["starts"][0]))
    return places


def main(folder: Path = PUBLISHED / "records") -> None:
    """Write the table and the figure."""
    shares = find_shares(ddobench.load(folder))
    means = shares.groupby("name")["share"].mean().sort_values(ascending=False)
    names = [VISIBLE, *(name for name in means.index if name != VISIBLE)]
    lines = [f"| task | regime | {' | '.join(names)} |", "|---|---|" + "---:|" * len(names)]
    for (task, title), (regime, levels) in product(TITLES.items(), LEVELS.items()):
        own = shares[(shares["task"] == task) & (shares["regime"] == regime)]
        for level in levels if regime == "rows" else levels[:-1]:
            cell = own[own["level"] == level]
            if len(cell):
                lines.append(f"| {title} | {regime} {level} | {' | '.join(_row(cell, names))} |")
    seeds = f"Mean over seeds {SEEDS[0]} to {SEEDS[-1]}, 95 % intervals by Student's t."
    (PUBLISHED / "regimes.md").write_text("\n".join([*lines, "", seeds, ""]), encoding="utf-8")
    print("\n".join(lines))
    draw(shares, names)


def _row(cell: pd.DataFrame, names: Sequence[str]) -> list[str]:
    texts = []
    for name in names:
        sample = cell.loc[cell["name"] == name, "share"]
        if sample.empty:
            texts.append("")
            continue
        ends = mean_interval(sample)
        low, mean, high = (
            format_digits(round(one), 0) for one in (ends.low, sample.mean(), ends.high)
        )
        texts.append(f"{mean} [{low}, {high}]")
    return texts


def draw(shares: pd.DataFrame, names: Sequence[str]) -> None:
    """Draw a panel for each regime and task: the share of the optimum against the level."""
    figure, axes = plt.subplots(
        len(LEVELS), len(TITLES), figsize=(11, 13), sharey="col", layout="constrained"
    )
    for panel, ((regime, levels), (task, title)) in zip(
        axes.flat, product(LEVELS.items(), TITLES.items()), strict=True
    ):
        own = shares[(shares["task"] == task) & (shares["regime"] == regime)]
        if own.empty:
            panel.set_axis_off()
            continue
        _draw_panel(panel, own, levels, names)
        panel.set(title=title, xlabel=regime, ylabel="share of the optimum [%]")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=5, frameon=False)
    figure.savefig(PUBLISHED / "regimes.svg", metadata={"Date": None})
    plt.close(figure)


def _draw_panel(
    panel: Axes, own: pd.DataFrame, levels: Sequence[str], names: Sequence[str]
) -> None:
    present = [level for level in levels if level in set(own["level"])]
    for i, name in enumerate(names):
        mine = own[own["name"] == name]
        samples = {x: mine.loc[mine["level"] == level, "share"] for x, level in enumerate(present)}
        known = [x for x, sample in samples.items() if len(sample)]
        if not known:
            continue
        middle = [samples[x].mean() for x in known]
        ends = [mean_interval(samples[x]) for x in known]
        below = [m - one.low for m, one in zip(middle, ends, strict=True)]
        above = [one.high - m for m, one in zip(middle, ends, strict=True)]
        look = (
            {"color": "black", "ls": ":"} if name == VISIBLE else {"color": mine["color"].iloc[0]}
        )
        shift = 0.04 * (i - len(names) / 2)
        panel.errorbar([x + shift for x in known], middle, yerr=[below, above], label=name,
                       marker="osD^vP*Xph"[i], ms=4, lw=1.2, elinewidth=0.6, **look)  # fmt: skip
    panel.set_xticks(range(len(present)), present)
    panel.grid(axis="y", lw=0.4, alpha=0.6)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
