"""Promises of what is told of the luck of instances and trainings."""

from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.tables.spread import spread_markdown
from tests.support.synthetic_runs import Row, climb, evidence_of

LATENT = {(seed, number): float(x) for (seed, number), x in zip(
    product(range(4), range(3)), np.random.default_rng(0).normal(size=12), strict=True
)}  # fmt: skip


def trained(seed: int, latent: int, surrogate: int, **changes: Any) -> Row:
    """Return a run whose value is that of its instance, and of the luck of its latent."""
    variant = f"latent.reseed={latent} surrogate.reseed={surrogate}"
    value = 10.0 * seed + LATENT[seed, latent]
    return climb("vae_ga", seed=seed, method_variant=variant,
                 **{"final_model": value, "best_oracle": value + 1.0, **changes})  # fmt: skip


def config(latent: int, surrogate: int) -> dict[str, Any]:
    parts = {"latent": {"dim": 3, "reseed": latent}, "surrogate": {"reseed": surrogate}}
    return {"method": {"_target_": "pipeline", **parts}}


def crossed(*rows: Row) -> ReportData:
    """Return every combination of four instances, three latents and two surrogates, and rows."""
    places = [*product(range(4), range(3), range(2))]
    runs = [*(trained(*place) for place in places), *rows]
    numbers = {trained(*place)["digest"]: config(*place[1:]) for place in places}
    return replace(evidence_of(runs), configs=numbers).set_reseeded_apart()


def test_luck_is_found_where_it_was_put() -> None:
    table = crossed().spread.set_index(["score", "source"])
    own = table.loc["final_model"]
    assert list(own.index) == ["instance", "latent", "surrogate", "latent \u00d7 surrogate"]
    lucks = np.array([*LATENT.values()]).reshape(4, 3)
    assert own.loc["latent", "variance"] == pytest.approx(lucks.var(axis=1, ddof=1).mean())
    assert own.loc["surrogate", "sd"] == pytest.approx(0.0, abs=1e-6)
    assert own["share"].sum() == pytest.approx(1.0)
    assert own["share"].idxmax() == "instance"
    assert list(own["freedom"]) == [3, 8, 4, 8]
    assert table.loc[("best_oracle", "latent"), "sd"] == pytest.approx(own.loc["latent", "sd"])


def test_trainings_fill_no_other_table() -> None:
    stored = crossed(climb("naive", seed=0), climb("naive", seed=1))
    assert set(stored.scores["method"]) == {"naive"}
    assert set(stored.styles) == {("chain", "naive", "")}
    assert len(stored.reseeded) == 24
    assert stored.total == 2
    assert len(stored.spread) == 8


def test_runs_that_are_nothing_but_trainings_are_shown_as_any_others() -> None:
    assert len(crossed().runs) == 24


def test_a_training_that_most_instances_lack_is_left_out() -> None:
    stored = crossed()
    again = stored.runs["method_variant"].str.startswith("latent.reseed=2")
    fewer = replace(stored, runs=stored.runs[~(again & (stored.runs["seed"] > 0))])
    assert set(fewer.spread["runs"]) == {4 * 2 * 2}


def test_the_table_says_what_moves_a_score_and_how_far() -> None:
    text = spread_markdown(crossed(climb("naive")).spread)
    assert "24 runs on 4 instances. Means: final value" in text
    assert "| drawn anew | final value: sd | share of variance | best iteration: sd |" in text


def test_without_such_runs_there_is_a_table_without_lines() -> None:
    assert evidence_of([climb("naive")]).spread.empty
