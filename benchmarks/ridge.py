"""What the dual saves a ridge regression whose features outnumber its rows.

Both forms of the equations fit the same table in turns: four ridges on nine tenths of the rows, one
on all. The default is `method=additive` on `task=nk d=64 task.q=3 n=5000`, whose 192 codes have
11,520 features. The least CPU time of each form counts, and how far their weights are apart.

Run: python benchmarks/ridge.py [--rows 5000] [--features 11520] [--rounds 1]
"""

import argparse
import sys
import time

import torch
from torch import Tensor

from ddobench.models.least_squares import NormalEquations, ridge_equations

LIMIT_SHARE, LIMIT_APART = 0.5, 1e-8
RIDGES = (1.0, 10.0, 100.0, 1000.0)


def fit_primal(table: Tensor, y: Tensor, trained: Tensor) -> Tensor:
    """Return the weights by the products of features."""
    some = NormalEquations.of(table[trained], y[trained])
    for ridge in RIDGES:
        some.solve(ridge)
    return NormalEquations.of(table, y).solve(RIDGES[1])


def fit_dual(table: Tensor, y: Tensor, trained: Tensor) -> Tensor:
    """Return the weights by the products of rows."""
    equations = ridge_equations(table)
    some = equations(trained, y[trained])
    for ridge in RIDGES:
        some.solve(ridge)
    return equations(slice(None), y).solve(RIDGES[1])


def main() -> int:
    """Print the CPU seconds of both; return 1 if a limit is passed."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rows", type=int, default=5000)
    parser.add_argument("--features", type=int, default=11_520)
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    torch.set_num_threads(1)
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(options.rows, options.features, generator=generator, dtype=torch.float64)
    y = torch.randn(options.rows, generator=generator, dtype=torch.float64)
    trained = torch.randperm(options.rows, generator=generator)[options.rows // 10 :]
    seconds: dict[str, list[float]] = {"primal": [], "dual": []}
    weights = {}
    for _ in range(options.rounds):
        for name, fit in (("dual", fit_dual), ("primal", fit_primal)):
            began = time.process_time()
            weights[name] = fit(table, y, trained)
            seconds[name].append(time.process_time() - began)
    for name, taken in seconds.items():
        print(f"{name:8} {min(taken):8.2f}   CPU seconds")
    share = min(seconds["dual"]) / min(seconds["primal"])
    apart = float((weights["dual"] - weights["primal"]).abs().max() / weights["primal"].abs().max())
    print(f"share    {share:8.3f}   limit {LIMIT_SHARE}")
    print(f"apart    {apart:8.1e}   limit {LIMIT_APART}   (of the largest weight)")
    return int(share > LIMIT_SHARE or apart > LIMIT_APART)


if __name__ == "__main__":
    sys.exit(main())
