"""The published scores, which are part of the package: one row per run, as `load` returns them.

`python -m ddobench.store.published RECORDS` writes them again from the published records (`make
tables` does so). Curves, designs and settings are in the records only.
"""

import sys
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd

from ddobench.scores import unstored_curves
from ddobench.store.runs import survey

PUBLISHED = "published"  # in place of a folder of runs
_FILE = "published.parquet"
_RECORDS = "results/paper/records"
_LEFT_OUT = ("path", "revision", "seconds_fit", "seconds_propose", "seconds_evaluate", "finished")


def published() -> pd.DataFrame:
    """Return the published scores, one row per run, with the columns of `load`.

    A run of the same task, settings, size and seed sees the same rows on any machine, so that runs
    of your own can be paired with these by seed.
    """
    with resources.files("ddobench.store").joinpath(_FILE).open("rb") as file:
        return pd.read_parquet(file)


def summarise(records: Path) -> pd.DataFrame:
    """Return the scores of stored runs, those at the ends of their curves included."""
    found = survey(records)
    runs = found.runs.drop(columns=[*_LEFT_OUT], errors="ignore")
    for name, curve in unstored_curves().items():
        ends = found.curves.dropna(subset=[curve]).groupby(["digest", "seed"])[curve].last()
        runs = runs.merge(ends.rename(name), on=["digest", "seed"], how="left")
    numbers = runs.select_dtypes("float").columns
    return runs.astype(dict.fromkeys(numbers, np.float32))


def write(records: Path, target: Path) -> None:
    """Write the scores of stored runs as the published ones."""
    summarise(records).to_parquet(target, index=False, compression="zstd", compression_level=19)


if __name__ == "__main__":
    write(Path(sys.argv[1] if sys.argv[1:] else _RECORDS), Path(__file__).with_name(_FILE))
