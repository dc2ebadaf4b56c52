"""The published scores of the package are those of the published records."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import ddobench
from ddobench.store.published import summarise, write
from tests.support.records import PUBLISHED, needs_published, record_of
from tests.support.synthetic_stores import store_records


def test_scores_are_written_and_read_as_they_are(tmp_path: Path) -> None:
    store_records(tmp_path / "runs", [record_of(seed) for seed in (0, 1)])
    loaded = ddobench.load(tmp_path / "runs")
    write(tmp_path / "runs", tmp_path / "scores.parquet")
    found = pd.read_parquet(tmp_path / "scores.parquet")
    assert found["seed"].tolist() == [0, 1]
    assert found["digest"].tolist() == loaded["digest"].tolist()
    assert np.allclose(found["final_model"], loaded["final_model"], equal_nan=True)
    assert "p50" in found  # at the end of a curve
    assert "path" not in found


def test_the_package_has_scores_of_every_task_of_the_paper() -> None:
    found = ddobench.published()
    assert {"chain", "quadratic", "tfbind8"} <= set(found["task"])
    assert found.loc[found["status"] == "ok", "final_model"].notna().all()
    assert not found.duplicated(["digest", "seed"]).any()


@pytest.mark.slow
@needs_published
def test_the_scores_of_the_package_are_those_of_the_records() -> None:
    found, records = ddobench.published(), summarise(PUBLISHED)
    keys = ["digest", "seed", "final_model"]
    assert found[keys].equals(records[keys]), "write them again: make tables"
