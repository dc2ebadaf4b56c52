"""Promises of `ddobench.propose`: the benchmark's own designs, and what is told of them."""

import subprocess
import sys
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch

import ddobench
from ddobench.cli.composition import specify_points
from ddobench.errors import UsageError
from ddobench.judging import Judged, Reference
from ddobench.runner.execute import run_seeds
from ddobench.tabular.files import read_table
from tests.support.processes import PATIENCE

TINY = ["budget=tiny"]
TOLD = ["predicted", "distance", "distance_ratio", "columns_outside"]


def table(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """Return rows of every kind whose best are those of large a and metal zinc."""
    rng = np.random.default_rng(seed)
    drawn = pd.DataFrame(
        {
            "a": rng.normal(size=rows),
            "count": rng.integers(0, 10, rows),
            "metal": rng.choice(["iron", "tin", "zinc"], rows),
            "site": "here",
        }
    )
    return drawn.assign(y=drawn["a"] + 0.1 * drawn["count"] + (drawn["metal"] == "zinc"))


def propose(x: Any, y: Any = "y", **options: Any) -> pd.DataFrame:
    """Propose by the quickest model, without a word."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        asked: dict[str, Any] = {"method": "linear", "overrides": TINY, "k": 5} | options
        return ddobench.propose(x, y, **asked)


@pytest.mark.parametrize(
    ("method", "n", "others"),
    [
        *(
            (name, 60, [])
            for name in ("additive", "ga", "linear", "rwr", "coms", "naive", "random")
        ),
        pytest.param("units", 250, [], marks=pytest.mark.slow),  # fewer, and it predicts a constant
        # enough rows for it to choose by, and not so proud as to trust nothing
        pytest.param("auto", 250, ["method.chance=-100"], marks=pytest.mark.slow),
        pytest.param("fgm", 60, [], marks=pytest.mark.slow),
    ],
)
def test_an_exported_table_gets_the_designs_and_the_score_of_the_benchmark(
    method: str, n: int, others: list[str], tmp_path: Path
) -> None:
    settings = [*TINY, "device=cpu", *others]
    (spec,) = specify_points([["task=chain", f"method={method}", "d=7", f"n={n}", *settings]])
    (record,) = run_seeds(spec, *spec.build(), [4], base={})
    ddobench.example_table("chain", d=7, n=n, seed=4).to_csv(tmp_path / "t.csv", index=False)
    rows = read_table(tmp_path / "t.csv")
    top = spec.config["budget"]["top"]
    found = propose(rows, method=method, seed=4, k=top, overrides=settings)

    assert record.designs is not None
    predictions = record.predictions
    predicted = None if predictions is None else predictions[-1:].astype(np.float64)
    any_value = np.zeros((1, len(record.designs)))
    reference = Reference.of(rows["y"].to_numpy(), float("nan"))
    judged = Judged.of(any_value, predicted, top, reference)
    designs = found.drop(columns=TOLD).to_numpy()
    np.testing.assert_array_equal(designs.astype(np.float32), record.designs[judged.chosen[0]])
    true = ddobench.example_values(found, "chain", d=7, n=n, seed=4).to_numpy()
    score = Judged.of(np.asarray(true[None], np.float64), None, top, reference).punished.mean()
    assert score == pytest.approx(record.row["final_model"], rel=1e-6)
    if predicted is not None:
        told = reference.standardise(found["predicted"].to_numpy()).mean()
        assert told == pytest.approx(record.row["predicted_final"], rel=1e-5)


def test_what_a_method_compared_is_told_seed_by_seed() -> None:
    few = table(30)  # too few to choose by, which is quick
    alone = propose(few, method="auto").attrs["candidates"]
    assert {"candidate", "held_out_error", "held_out_top_rank", "chosen"} <= set(alone[0])
    together = propose(few, method="auto", seed="0-1").attrs["candidates"]
    assert [one["seed"] for one in together] == [0] * len(alone) + [1] * len(alone)


def test_a_method_that_trusts_nothing_says_why() -> None:
    rows = table(30).drop(columns="site")
    with pytest.warns(UserWarning, match=r".") as told:
        found = ddobench.propose(rows, "y", k=1)
    assert found["predicted"].tolist() == [rows["y"].max()]
    assert [str(one.message).partition(";")[0] for one in told] == [
        "auto trusts none of its candidates on these rows (fewer than 20 rows to judge by, or to "
        "be fitted to), so that it proposes nothing beyond them",
        "1 of 1 proposals are rows of the table already.",
    ]


def test_sixty_rows_are_enough_to_choose_by() -> None:
    found = propose(table(), method="auto")
    assert sum(one["chosen"] for one in found.attrs["candidates"]) == 1
    assert len(found) == 5


@pytest.mark.slow
def test_several_seeds_propose_what_each_proposes_alone() -> None:
    rows = ddobench.example_table("chain", d=7, n=60)
    together = propose(rows, method="ga", seed="0-2", k=6)
    names = [f"x{i}" for i in range(7)]
    for seed in (0, 1, 2):
        alone = propose(rows, method="ga", seed=seed, k=6)[names].to_numpy()
        theirs = together.loc[together["seed"] == seed, names].to_numpy()
        nearest = np.abs(theirs[:, None] - alone[None]).max(axis=2).min(axis=1)
        assert (nearest < 1e-4).all()
    assert len(together) == 6
    assert together["predicted"].is_monotonic_decreasing
    assert (together["predicted_sd"] > 0).all()
    assert -1 <= together.attrs["agreement"] <= 1


def test_arrays_frames_and_tensors_get_the_same_designs() -> None:
    rows = ddobench.example_table("chain", d=7, n=60)
    x, y = rows.drop(columns="y").to_numpy(), rows["y"].to_numpy()
    expected = propose(rows)
    pd.testing.assert_frame_equal(propose(x, y), expected)
    pd.testing.assert_frame_equal(propose(torch.tensor(x), torch.tensor(y)), expected)
    renamed = propose(rows.rename(columns={"x0": "zero"}))
    assert renamed.columns[0] == "zero"


def test_minimising_is_maximising_the_negative() -> None:
    rows = ddobench.example_table("chain", d=7, n=60)
    least = propose(rows, minimise=True)
    most = propose(rows.assign(y=-rows["y"]))
    np.testing.assert_array_equal(least["predicted"], -most["predicted"])
    pd.testing.assert_frame_equal(least.drop(columns="predicted"), most.drop(columns="predicted"))
    assert least["predicted"].is_monotonic_increasing


def test_every_kind_of_column_comes_back_as_it_was() -> None:
    found = propose(table())
    assert found.columns.tolist() == ["a", "count", "metal", "site", *TOLD]
    assert found["count"].dtype == np.int64
    assert set(found["metal"]) <= {"iron", "tin", "zinc"}
    assert set(found["site"]) == {"here"}
    assert not found.duplicated(["a", "count", "metal"]).any()


def test_limits_are_kept_and_the_model_looks_again() -> None:
    free = propose(table())
    found = propose(
        table(), bounds={"a": (None, 0.5), "count": (2, 4)}, fixed={"metal": "tin"}, k=5
    )
    assert found["a"].max() <= 0.5
    assert set(found["count"]) <= {2, 3, 4}
    assert set(found["metal"]) == {"tin"}
    assert found["predicted"].max() < free["predicted"].max()
    inside = propose(table(), bounds="visible")
    assert (inside["columns_outside"] == 0).all()


def test_categories_alone_go_to_a_method_for_categories() -> None:
    rng = np.random.default_rng(0)
    bits = pd.DataFrame(rng.choice(["no", "yes"], (80, 4)), columns=list("abcd"))
    y = (bits == "yes").sum(axis=1).astype(float)
    found = propose(bits, y, method="full_quadratic")
    assert found[list("abcd")].iloc[0].tolist() == ["yes"] * 4
    assert found["predicted"].tolist() == pytest.approx([4.0])
    assert propose(bits, y, method="linear")["a"].iloc[0] == "yes"


@pytest.mark.parametrize("method", ["auto", "fgm", "ga", "quadratic_ridge"])
def test_categories_are_proposed_as_categories_and_their_numbers_mean_nothing(method: str) -> None:
    rng = np.random.default_rng(0)
    letters = pd.DataFrame(rng.choice(list("ACGT"), (300, 3)), columns=list("abc"))
    y = (letters == "G").sum(axis=1) + 2.0 * ((letters["a"] == "A") & (letters["b"] == "C"))
    found = propose(letters, y, method=method, k=4)
    assert set(found[list("abc")].to_numpy().ravel()) <= set("ACGT")
    one_apart = np.sqrt(2) / np.sqrt(0.25 * 0.75)  # two columns of the four, in their deviations
    assert set((found["distance"] / one_apart).round(1)) <= {0.0, 1.0, 1.4, 1.7}


def test_a_method_that_cannot_take_a_table_says_why() -> None:
    with pytest.raises(
        UsageError, match=r"^full_quadratic declines this table: full_quadratic wor"
    ):
        propose(table(), method="full_quadratic")
    with pytest.raises(
        UsageError, match=r"^ga declines this table: latent=oracle needs hidden coo"
    ):
        propose(table(), method="ga", overrides=[*TINY, "latent=oracle"])


def test_distances_are_told_beside_what_is_typical() -> None:
    grid = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)
    found = propose(grid, grid.sum(axis=1), whole=[])
    step = 1 / grid[:, 0].std()
    assert found.attrs["typical_distance"] == pytest.approx(step)
    np.testing.assert_allclose(found["distance_ratio"], found["distance"] / step)
    nearest = np.sqrt(((found[["x0", "x1"]].to_numpy()[:, None] - grid) ** 2).sum(axis=2)).min(
        axis=1
    )
    np.testing.assert_allclose(found["distance"], nearest * step)
    outside = (found[["x0", "x1"]] > 5).sum(axis=1) + (found[["x0", "x1"]] < 0).sum(axis=1)
    assert found["columns_outside"].tolist() == outside.tolist()


def test_fewer_designs_than_asked_for_come_with_a_warning() -> None:
    rows = table().drop(columns="site")
    with pytest.warns(UserWarning, match=r".") as told:
        found = ddobench.propose(rows, "y", method="naive", k=5)
    assert [str(one.message) for one in told] == [
        "naive proposes 1 different design, fewer than the 5 asked for.",
        "1 of 1 proposals are rows of the table already.",
    ]
    best = rows.sort_values("y").iloc[-1]
    assert found[["a", "metal"]].iloc[0].tolist() == [best["a"], best["metal"]]
    assert found.loc[0, "predicted"] == best["y"]
    assert found.loc[0, "distance"] == 0


def test_what_was_odd_about_the_rows_is_a_warning_too() -> None:
    rows = table()
    rows.loc[3, "a"] = np.nan
    with pytest.warns(UserWarning, match=r".") as told:
        found = ddobench.propose(rows, "y", method="naive", k=1)
    sentences = [str(one.message) for one in told]
    assert "1 row with missing entries left out, in column 'a'." in sentences
    assert "Columns that never change are kept as they are: site." in sentences
    assert found.attrs["warnings"] == sentences
    assert {one.filename for one in told} == {__file__}


def test_names_of_the_table_come_before_ours() -> None:
    rows = table().rename(columns={"a": "distance"})
    found = propose(rows)
    assert found.columns.tolist()[:2] == ["distance", "count"]
    assert "ddobench_distance" in found


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "gaa"}, r"^there is no method 'gaa' \(did you mean 'ga'\?\); there are "),
        ({"k": 0}, r"^k must be a whole number of at least 1, got 0$"),
        ({"seed": "3-1"}, r"^the seed range 3-1 runs backwards; write seed=1-3$"),
        ({"seed": "0-50"}, r"^seed must be at most 50 seeds to compare, got 51$"),
        ({"overrides": ["task=chain"]}, r"^task cannot be an override here; see the other argumen"),
        ({"overrides": ["surrogate.rigde=1"]}, r"^there is no key 'surrogate.rigde'"),
        ({"bounds": {"b": (0, 1)}}, r"^there is no column 'b' to limit; there are a, count, "),
        ({"bounds": {"a": (1, 0)}}, r"^the bounds of 'a' must be low <= high, got \(1, 0\)$"),
        ({"bounds": {"a": 3}}, r"^the bounds of 'a' must be two numbers \(low, high\), got 3$"),
        ({"bounds": {"metal": (0, 1)}}, r"^column 'metal' is a category and has no bounds; use f"),
        ({"bounds": {"count": (0.5, 2)}}, r"^column 'count' has whole numbers; give whole bounds"),
        ({"bounds": "all"}, r"^bounds must be 'visible' or a mapping of columns, got 'all'$"),
        ({"fixed": {"metal": "gold"}}, r"^column 'metal' can only be fixed at what the rows show "),
        ({"fixed": {"site": "there"}}, r"^column 'site' can only be fixed at what the rows show "),
        ({"fixed": {"a": "big"}}, r"^column 'a' must be fixed at a number within its bounds, got "),
        ({"fixed": {"count": 1.5}}, r"^column 'count' has whole numbers, got 1.5$"),
        ({"whole": ["z"]}, r"^there is no column 'z'; the columns are a, count, metal, site$"),
        ({"drop": ["z"]}, r"^there is no column 'z'; the columns are a, count, metal, site$"),
    ],
)  # fmt: skip
def test_a_wrong_request_gets_a_sentence(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        propose(table(), **options)


@pytest.fixture
def without_module() -> Iterator[None]:
    """Forget that the module of the same name was imported."""

    def forget() -> None:
        sys.modules.pop("ddobench.propose", None)
        vars(ddobench).pop("propose", None)

    forget()
    yield
    forget()


@pytest.mark.usefixtures("without_module")
@pytest.mark.parametrize("module_first", [False, True])
def test_function_and_module_of_one_name_can_be_used_in_any_order(module_first: bool) -> None:
    import importlib

    grid = np.arange(8.0)[:, None]

    def call() -> pd.DataFrame:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ddobench.propose(grid, grid[:, 0], method="naive", k=1)

    if not module_first:
        first = call()
    module = importlib.import_module("ddobench.propose")
    assert callable(module.main)
    second = call()
    assert second["x0"].tolist() == [7.0]
    if not module_first:
        pd.testing.assert_frame_equal(first, second)


@pytest.mark.slow
def test_the_readmes_line_runs_as_a_program(tmp_path: Path) -> None:
    for words in (
        ["--example", "chain", "d=7", "n=60", "--out", "table.csv"],
        ["table.csv", "--target", "y", "--method", "linear", "budget=tiny", "--k", "9"],
    ):
        subprocess.run(
            [sys.executable, "-m", "ddobench.propose", *words],
            cwd=tmp_path, check=True, capture_output=True, timeout=PATIENCE,
        )  # fmt: skip
    assert len(pd.read_csv(tmp_path / "proposals.csv")) == 9
    assert (tmp_path / "proposals.html").exists()
