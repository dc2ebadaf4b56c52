"""Methods run on every form of the bump tasks, and on noisy or correlated tables."""

import numpy as np
import pytest

from ddobench.exact.terms import TERMS
from ddobench.runner.run import run_seeds, sample_task
from ddobench.store.records import Record
from tests.support.catalogue import specification

CHEAP = ("ga", "rwr")  # a climb and a random walk
FORMS = [
    ("chain", "task.bump=laplace"),
    ("chain", "task.bump=cauchy"),
    ("chain", "task.bump=network"),
    ("rbf", "task.bump=laplace"),
    ("mixture", "task.bump=cauchy"),
    ("toy3d", "task.bump=network"),
    ("chain", "task.correlation=0.8"),
    ("chain", "task.noise=1.0"),
]


def run(task: str, method: str, *settings: str) -> list[Record]:
    spec = specification(task, method, *settings)
    return run_seeds(spec, *spec.build(), (0, 1), base={})


@pytest.mark.slow
@pytest.mark.parametrize("method", CHEAP)
@pytest.mark.parametrize(("task", "setting"), FORMS)
def test_a_method_runs_and_stays_below_the_optimum(task: str, setting: str, method: str) -> None:
    for record in run(task, method, setting):
        assert record.row["status"] == "ok", record.row["reason"]
        assert np.isfinite(record.row["final_model"])
        assert record.row["regret_final"] >= -1e-9
        assert record.values is not None
        finite = record.values[np.isfinite(record.values)]
        optimum = record.row["optimum"] * record.row["y_sd"] + record.row["y_mean"]
        assert (finite <= optimum + 1e-6).all()  # stored in single precision


@pytest.mark.parametrize("bump", TERMS)
def test_a_portrait_names_the_form(bump: str) -> None:
    spec = specification("chain", "naive", f"task.bump={bump}")
    sample = sample_task(spec, spec.build()[0], 0)
    assert TERMS[bump].noun.capitalize() in sample.title
    assert TERMS[bump].formula in sample.formula


def test_a_form_has_digests_of_its_own() -> None:
    settings = ["task.bump=gaussian", "task.bump=laplace", "task.correlation=0.5"]
    plain, *others = (specification("chain", "naive", s) for s in settings)
    assert plain.task_digest == specification("chain", "naive").task_digest
    assert len({plain.task_digest, *(other.task_digest for other in others)}) == 3
    assert [other.task_variant for other in others] == ["bump=laplace", "correlation=0.5"]


def test_the_best_row_of_a_noisy_table_has_its_noise_free_value() -> None:
    clean, noisy = (run("chain", "naive", f"task.noise={sd}", "n=500") for sd in (0.0, 3.0))
    for truth, record in zip(clean, noisy, strict=True):
        assert record.values is not None
        assert record.row["y_max"] > 1.5 * record.values.max()  # a lucky row
        assert record.values.max() <= truth.row["y_max"] + 1e-6
        assert record.row["y_mean"] == pytest.approx(truth.row["y_mean"], rel=0.5)


def test_noise_may_lift_a_visible_value_over_the_optimum_but_no_regret_below_zero() -> None:
    for record in run("chain", "naive", "task.noise=10.0", "d=3"):
        assert record.row["best_visible"] > record.row["optimum"]
        assert record.row["regret_final"] >= 0.0
