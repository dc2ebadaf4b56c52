"""How much a score varies with a retrained VAE or surrogate: variance components of VAE-GA.

Each instance (a seed) has several trainings of each part, in all combinations; everything else in a
run is the same. A standard deviation is that of a score if only this source is redrawn. The runs
are those of `experiment=vae_spread`, about 6 CPU minutes.

Run: python benchmarks/vae_spread.py [RESULTS_DIR]
"""

import sys
from pathlib import Path

import numpy as np
import pandas as pd

import ddobench
from ddobench.stats.variance import components
from ddobench.variants import split_variant

PUBLISHED = Path(__file__).parent.parent / "results" / "paper" / "vae_spread"
SOURCES = ("instance", "VAE", "surrogate")


def main(folder: Path = PUBLISHED) -> None:
    """Print one line per random source and score."""
    runs = ddobench.load(folder)
    runs = runs[(runs["latent"] == "vae_reseeded") & (runs["status"] == "ok")]
    settings = [split_variant(text) for text in runs["method_variant"]]
    runs = runs.assign(
        vae=[int(one.get("latent.reseed", 0)) for one in settings],
        model=[int(one.get("surrogate.reseed", 0)) for one in settings],
    )
    print("| score | redrawn | sd | share of variance |\n|---|---|---:|---:|")
    for score in ("final_model", "best_oracle"):
        for name, variance, share in spread(runs, score):
            print(f"| {score} | {name} | {np.sqrt(variance):.2f} | {share:.0%} |")


def spread(runs: pd.DataFrame, score: str) -> list[tuple[str, float, float]]:
    """Return the variance that each source adds to a score, and its share; below 0 counts as 0."""
    axes = [sorted(set(runs[name])) for name in ("seed", "vae", "model")]
    table = runs.set_index(["seed", "vae", "model"])[score]
    values = table.reindex(pd.MultiIndex.from_product(axes)).to_numpy(dtype=np.float64)
    found = components(values.reshape([len(axis) for axis in axes]))
    variances = [max(one.variance, 0.0) for one in found]
    names = [" x ".join(SOURCES[axis] for axis in one.axes) for one in found]
    total = sum(variances)
    return [(n, v, v / total) for n, v in zip(names, variances, strict=True)]


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]))
