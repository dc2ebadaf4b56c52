"""How often `propose` is right, in its intervals and its words of trust, where the truth is known.

Every table is a task at one seed; 16 designs are proposed by `method=auto`. A gain is that over the
visible value of the best row. "Better" designs are truly better than that row truly is.

Run: python benchmarks/calibration.py [SEEDS]

Five seeds, 1000-1004, take some 15 CPU minutes.
"""

import sys
import warnings

import pandas as pd

import ddobench
from ddobench.seeds import parse_seeds

TABLES = {
    "surface, 3,000 x 30": {"task": "surface"},
    "chain, 2,000 x 21": {"task": "chain", "d": 21, "n": 2000},
    "chain, noise 1": {"task": "chain", "d": 21, "n": 2000, "overrides": ["task.noise=1"]},
    "rbf, 2,000 x 21": {"task": "rbf", "d": 21, "n": 2000},
    "mixture, 2,000 x 21": {"task": "mixture", "d": 21, "n": 2000},
    "classic, 2,000 x 20": {"task": "classic", "n": 2000},
    "classic, 200 x 6": {"task": "classic", "d": 6, "n": 200},
    "rbf, 300 x 11": {"task": "rbf", "d": 11, "n": 300},
}


def propose_on(table: str, seed: int) -> pd.DataFrame:
    """Return the designs that are proposed for one table, with what they are truly worth."""
    task = ddobench.task(seed=seed, **TABLES[table])  # type: ignore[arg-type]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = ddobench.propose(task.x, task.y, k=16, seed=seed)
    true = task.oracle(found.iloc[:, : task.space.d])
    best = task.oracle(task.x[[task.y.argmax()]])[0]
    gain = true - task.y.max()
    columns = {
        "table": table,
        "seed": seed,
        "first": found.index == found.index[0],
        "promised": found["gain"] / task.y.std(),
        "true": gain / task.y.std(),
        "better": true > best,
        "covered": (gain >= found["gain_low"]) & (gain <= found["gain_high"])
        if "gain_low" in found
        else float("nan"),
        "trust": found["trust"],
    }
    return pd.DataFrame(columns)


def main(seeds: str = "1000-1004") -> None:
    """Print both tables."""
    rows = []
    for table in TABLES:
        for seed in parse_seeds(seeds):
            rows.append(propose_on(table, seed))
            print(table, seed, "done", file=sys.stderr)
    found = pd.concat(rows, ignore_index=True)
    numbers = ["promised", "true", "better", "covered"]
    kinds = found.astype({"better": float, "covered": float})
    for title, of in (("all designs", kinds), ("the first design", kinds[kinds["first"]])):
        for by in ("table", "trust"):
            means = of.groupby(by)[numbers].mean().assign(designs=of.groupby(by).size())
            print(f"\n{title} by {by}\n{means.round(2).to_string()}")


if __name__ == "__main__":
    main(*sys.argv[1:2])
