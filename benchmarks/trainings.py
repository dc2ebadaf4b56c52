"""What COMs' training, the default of the paper's methods, changes in the final value.

Beside it: 1,000 steps at 1e-3 (COMs at 3e-4), as first published here.

The runs are those of `experiment=training`. Values are in sd of the visible values, by the method's
own ranking: paired differences over seeds with their 95 % interval. FGM's card shows them.

Run: python benchmarks/trainings.py [RESULTS_DIR]
"""

import sys
from pathlib import Path

import ddobench
from ddobench.stats.samples import mean_interval

PUBLISHED = Path(__file__).parent.parent / "results" / "paper" / "records"
FIRST = {
    "ga": "surrogate=mlp",
    "coms": "training=adam",
    "vae_ga": "surrogate=mlp",
    "fgm": "training=adam",
}
SEEDS = 10


def main(folder: Path = PUBLISHED) -> None:
    """Print a row for each method, number of rows and dimension."""
    runs = ddobench.load(folder)
    runs = runs[(runs["status"] == "ok") & (runs["task"] == "chain") & (runs["task_variant"] == "")]
    runs = runs[(runs["budget"] == "full") & (runs["seed"] < SEEDS)]
    print("| method | rows | d | 1,000 steps | COMs' training | difference | best visible design |")
    print("|---|---:|---:|---:|---:|---:|---:|")
    for (method, n, d), own in runs.groupby(["method", "n", "d"], sort=True):
        values = own.pivot_table("final_model", "seed", "method_variant")
        first = FIRST.get(str(method))
        if not {first, ""} <= {*values}:
            continue
        both = values[[first, ""]].dropna().set_axis(["first", "now"], axis=1)
        change = both["now"] - both["first"]
        ends = mean_interval(change)
        print(f"| {method} | {n} | {d} | {both['first'].mean():.2f} | {both['now'].mean():.2f} | "
              f"{change.mean():.2f} [{ends.low:.2f}, {ends.high:.2f}] | "
              f"{own['best_visible'].mean():.2f} |")  # fmt: skip


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
