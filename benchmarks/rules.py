"""What a rule that chooses settings by visible rows loses against the oracle's choice.

A method with `select=RULE` chooses among the settings of conf/select/RULE.yaml. Each of these was
also run by itself on the same seeds, so the oracle can choose afterwards. The runs are those
of `experiment=rules`, about 15 CPU minutes.

Run: python benchmarks/rules.py [RESULTS_DIR]
"""

import sys
from pathlib import Path

import pandas as pd

import ddobench
from ddobench.registry import read_choice
from ddobench.stats.samples import mean_interval
from ddobench.variants import format_variant, split_variant

PUBLISHED = Path(__file__).parent.parent / "results" / "paper" / "records"
CELL = ["task", "d", "n", "budget", "method"]


def main(folder: Path = PUBLISHED) -> None:
    """Print the loss of each rule, and of other choices, for each task and size."""
    runs = ddobench.load(folder)
    runs = runs[(runs["status"] == "ok") & (runs["task_variant"] == "")]
    print("| task | method | rule | the rule | usual settings | best visible design | candidates |")
    print("|---|---|---|---:|---:|---:|---:|")
    ruled = runs[runs["method_variant"].str.contains("select=")]
    for key, own in ruled.groupby([*CELL, "method_variant"], sort=True):
        cell = runs[(runs[CELL] == list(key[:-1])).all(axis=1)]
        settings = split_variant(str(key[-1]))
        rule = settings.pop("select")
        alone = candidates(cell, settings, set(read_choice("select", rule)["grid"]))
        best = alone.max(axis=1)
        chosen = own.set_index("seed")["final_model"]
        ways = (chosen, alone[format_variant(settings)], own.set_index("seed")["best_visible"])
        losses = " | ".join(describe((best - way).dropna()) for way in ways)
        name = f"{key[4]} {format_variant(settings)}".strip()
        print(f"| {key[0]} d={key[1]} n={key[2]} | {name} | {rule} | {losses} | {alone.shape[1]} |")


def candidates(cell: pd.DataFrame, fixed: dict[str, str], grid: set[str]) -> pd.DataFrame:
    """Return the values of runs that differ only in settings of the grid, by seed and variant."""

    def fits(variant: str) -> bool:
        settings = split_variant(variant)
        rest = {name: value for name, value in settings.items() if name not in grid}
        return rest == fixed

    own = cell[cell["method_variant"].map(fits)]
    return own.pivot_table("final_model", "seed", "method_variant").dropna(axis=1)


def describe(losses: "pd.Series[float]") -> str:
    """Format a mean loss in sd of the visible values with its 95 % interval."""
    ends = mean_interval(losses)
    return f"{losses.mean():.2f} [{ends.low:.2f}, {ends.high:.2f}]"


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
