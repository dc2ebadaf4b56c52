"""`ddobench.propose` returns the designs of the benchmark, with their predictions and distances."""

import importlib
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.spatial.distance import pdist

import ddobench
from ddobench.cli.hooks import specify_points
from ddobench.errors import UsageError
from ddobench.judging import Judged, Reference
from ddobench.runner.run import run_seeds
from ddobench.tabular.files import read_table

TINY = ["budget=tiny"]
ADDED = [
    "predicted",
    "gain",
    "trust",
    "distance",
    "distance_ratio",
    "column_distance",
    "off_surface",
    "columns_outside",
]
INTERVAL = ["gain_low", "gain_high"]  # with the check


def table(rows: int = 60, seed: int = 0) -> pd.DataFrame:
    """Return rows with every kind of column; the best have a large a and the metal zinc."""
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
    """Propose with a quick model and without warnings."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        quick: dict[str, Any] = {"method": "linear", "overrides": TINY, "k": 5, "check": False}
        settings = quick | options
        return ddobench.propose(x, y, **settings)


@pytest.mark.parametrize(
    ("method", "n", "others"),
    [
        ("ga", 60, []),
        ("rwr", 60, []),
        ("random", 60, []),  # without a model
        # enough rows to compare candidates, and any rank correlation is accepted
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
    found = propose(rows, method=method, seed=4, k=top, overrides=settings, same=True)

    assert record.designs is not None
    predictions = record.predictions
    predicted = None if predictions is None else predictions[-1:].astype(np.float64)
    any_value = np.zeros((1, len(record.designs)))
    reference = Reference.of(rows["y"].to_numpy(), float("nan"))
    judged = Judged.of(any_value, predicted, top, reference)
    designs = found.drop(columns=ADDED).to_numpy()
    benchmark = pd.DataFrame(record.designs[judged.chosen[0]]).drop_duplicates().to_numpy()
    np.testing.assert_array_equal(designs.astype(np.float32), benchmark)
    if len(benchmark) < top:  # copies of a design are returned once
        return
    true = ddobench.example_values(found, "chain", d=7, n=n, seed=4).to_numpy()
    score = Judged.of(np.asarray(true[None], np.float64), None, top, reference).punished.mean()
    assert score == pytest.approx(record.row["final_model"], rel=1e-6)
    if predicted is not None:
        mean = reference.standardise(found["predicted"].to_numpy()).mean()
        assert mean == pytest.approx(record.row["predicted_final"], rel=1e-5, abs=1e-5)


def test_the_candidates_of_a_method_are_in_attrs_for_every_seed() -> None:
    few = table(30)  # too few to compare candidates, which is quick
    alone = propose(few, method="auto").attrs["candidates"]
    assert {"candidate", "held_out_error", "held_out_top_rank", "chosen"} <= set(alone[0])
    together = propose(few, method="auto", seed="0-1").attrs["candidates"]
    assert [one["seed"] for one in together] == [0] * len(alone) + [1] * len(alone)


def test_a_method_that_chooses_no_candidate_returns_the_best_row_and_warns() -> None:
    rows = table(30).drop(columns="site")
    with pytest.warns(UserWarning, match=r".") as caught:
        found = ddobench.propose(rows, "y", k=1)
    assert found["predicted"].tolist() == pytest.approx([rows["y"].max()], rel=1e-5)
    assert found["gain"].tolist() == [0.0]
    assert [str(one.message).partition(";")[0] for one in caught] == [
        "auto trusts none of its candidates on these rows (fewer than 20 rows to judge by, or to "
        "be fitted to), so it proposes only the best row",
    ]


def test_sixty_rows_are_enough_to_choose_a_candidate() -> None:
    found = propose(table(), method="auto", same=True)
    assert sum(one["chosen"] for one in found.attrs["candidates"]) == 1
    assert len(found) == 5


@pytest.mark.slow
def test_several_seeds_propose_what_each_proposes_alone() -> None:
    rows = ddobench.example_table("chain", d=7, n=60)
    together = propose(rows, method="ga", seed="0-2", k=6, same=True)
    names = [f"x{i}" for i in range(7)]
    for seed in (0, 1, 2):
        alone = propose(rows, method="ga", seed=seed, k=6, same=True)[names].to_numpy()
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


def test_every_kind_of_column_keeps_its_kind() -> None:
    found = propose(table())
    assert found.columns.tolist() == ["a", "count", "metal", "site", *ADDED]
    assert found["count"].dtype == np.int64
    assert set(found["metal"]) <= {"iron", "tin", "zinc"}
    assert set(found["site"]) == {"here"}
    assert not found.duplicated(["a", "count", "metal"]).any()


def test_designs_are_apart_and_in_order_of_promise() -> None:
    rows = ddobench.example_table("chain", d=7, n=60)
    names = [f"x{i}" for i in range(7)]
    for least in (1.0, 0.5, 0.0):
        found = propose(rows, method="ga", min_distance=least, k=8)
        places = found[names].to_numpy() / rows[names].to_numpy().std(axis=0)
        assert pdist(places).min() >= least * found.attrs["typical_distance"] * (1 - 1e-6)
        assert found["predicted"].is_monotonic_decreasing
        assert (found["distance"] > 0).all()
    pd.testing.assert_frame_equal(
        propose(rows, method="ga", k=8, min_distance=1.0), propose(rows, method="ga", k=8)
    )
    same = propose(rows, method="ga", k=8, same=True)
    assert same["predicted"].iloc[0] == found["predicted"].iloc[0]


def test_fewer_designs_that_are_far_enough_apart_are_a_warning() -> None:
    found = propose(table(), min_distance=20)
    assert len(found) == 1
    (sentence,) = [one for one in found.attrs["warnings"] if "fewer than" in one]
    assert "linear proposes 1 design that may gain, at least 20 times the typical dis" in sentence


def test_columns_with_few_numbers_keep_to_them() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"sex": rng.choice([1.0, 2.0], 60), "dose": rng.choice([0, 10, 30], 60)})
    rows = rows.assign(age=rng.normal(50, 10, 60).round(1), y=rows.sum(axis=1))
    found = propose(rows, min_distance=0)
    assert set(found["sex"]) <= {1.0, 2.0}
    assert set(found["dose"]) <= {0, 10, 30}
    assert found["dose"].dtype == np.int64
    assert (found["age"] == found["age"].round(1)).all()
    assert "keep to them: sex (1, 2), dose (0, 10, 30); continuous" in found.attrs["notes"][-1]
    free = propose(rows, min_distance=0, continuous=["dose"], levels={"age": [40, 45.5]})
    assert not set(free["dose"]) <= {0, 10, 30}
    assert set(free["age"]) <= {40, 45.5}
    low = propose(rows, min_distance=0, bounds={"dose": (None, 20)}, inside=True)
    assert set(low["dose"]) <= {0, 10}


def test_designs_are_rounded_as_the_rows_are() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(60, 3)) * [1, 1e3, 1]
    rows = pd.DataFrame(x, columns=["fine", "coarse", "exact"])
    rows = rows.assign(fine=rows["fine"].round(2), coarse=rows["coarse"].round(-1), y=x[:, 0])
    found = propose(rows)
    np.testing.assert_array_equal(found["fine"], found["fine"].round(2))
    np.testing.assert_array_equal(found["coarse"], found["coarse"].round(-1))
    assert (found["exact"] != found["exact"].round(6)).any()


def test_linear_constraints_hold_with_bounds_levels_and_whole_numbers() -> None:
    rng = np.random.default_rng(0)
    rows = pd.DataFrame(rng.dirichlet(np.ones(3), 80).round(2), columns=["water", "oil [%]", "c"])
    rows["c"] = (1 - rows["water"] - rows["oil [%]"]).round(2)
    rows = rows.assign(
        n=rng.integers(1, 99, 80), step=rng.choice([0, 10, 20, 30], 80), y=rows["water"] - rows["c"]
    )
    found = propose(
        rows, k=8, min_distance=0.1, inside=True, bounds={"c": (0.1, None)}, fixed={"oil [%]": 0.2},
        constraints=["water + oil [%] + c = 1", "2*step + n <= 60", "n - 1e2 c >= -70"],
    )  # fmt: skip
    assert len(found) > 1
    np.testing.assert_allclose(found[["water", "oil [%]", "c"]].sum(axis=1), 1, atol=1e-9)
    assert (2 * found["step"] + found["n"] <= 60).all()
    assert (found["n"] - 100 * found["c"] >= -70 - 1e-6).all()
    assert (found["c"] >= 0.1).all()
    assert (found["oil [%]"] == 0.2).all()
    assert set(found["step"]) <= {0, 10, 20, 30}
    np.testing.assert_array_equal(found["water"], found["water"].round(2))


@pytest.mark.parametrize("minimise", [False, True])
def test_a_gain_is_over_the_value_of_the_best_row_and_has_an_interval(minimise: bool) -> None:
    rows = table()
    found = propose(rows, check=True, minimise=minimise)
    assert found.columns.tolist()[4:8] == ["predicted", "gain", *INTERVAL]
    best = rows["y"].min() if minimise else rows["y"].max()
    assert found.attrs["best_value"] == best
    assert rows["y"][found.attrs["best_row"]] == best
    gain = (best - found["predicted"]) if minimise else (found["predicted"] - best)
    assert found["gain"].to_numpy() == pytest.approx(gain.to_numpy(), abs=1e-4)
    assert (found["gain_low"] < found["gain"]).all()
    assert (found["gain_high"] > found["gain"]).all()
    assert set(found["trust"]) <= {"high", "some", "little", "none"}


def test_constraints_hold_and_the_model_predicts_the_constrained_designs() -> None:
    free = propose(table())
    found = propose(
        table(), bounds={"a": (None, 0.5), "count": (2, 4)}, fixed={"metal": "tin"}, k=5
    )
    assert found["a"].max() <= 0.5
    assert set(found["count"]) <= {2, 3, 4}
    assert set(found["metal"]) == {"tin"}
    assert found["predicted"].max() < free["predicted"].max()
    inside = propose(table(), inside=True)
    assert (inside["columns_outside"] == 0).all()


def test_bounds_hold_inside_the_range_of_the_rows_too() -> None:
    both = propose(table(), bounds={"a": (-0.1, 0.1), "count": (None, 100)}, inside=True)
    assert both["a"].between(-0.1, 0.1).all()
    assert (both["columns_outside"] == 0).all()
    whole = propose(table(), whole=["a"], inside=True)
    assert (whole["a"] == whole["a"].round()).all()
    with pytest.raises(
        UsageError, match=r"'a', 5 to inf, are outside .* rows, -2.3\d* to 1.9\d*; "
    ):
        propose(table(), bounds={"a": (5, None)}, inside=True)


def test_a_table_of_categories_suits_a_method_for_categories() -> None:
    rng = np.random.default_rng(0)
    bits = pd.DataFrame(rng.choice(["no", "yes"], (80, 4)), columns=list("abcd"))
    y = (bits == "yes").sum(axis=1).astype(float)
    found = propose(bits, y, method="full_quadratic")
    assert found[list("abcd")].iloc[0].tolist() == ["yes"] * 4
    assert found["predicted"].tolist() == pytest.approx([4.0])
    assert propose(bits, y, method="linear")["a"].iloc[0] == "yes"


@pytest.mark.parametrize("method", ["auto", "ga"])
def test_categories_are_proposed_and_all_levels_are_equally_distant(method: str) -> None:
    rng = np.random.default_rng(0)
    letters = pd.DataFrame(rng.choice(list("ACGT"), (300, 3)), columns=list("abc"))
    y = (letters == "G").sum(axis=1) + 2.0 * ((letters["a"] == "A") & (letters["b"] == "C"))
    found = propose(letters, y, method=method, k=4)
    assert set(found[list("abc")].to_numpy().ravel()) <= set("ACGT")
    one_apart = np.sqrt(2) / np.sqrt(0.25 * 0.75)  # two of the four one-hot columns differ
    assert set((found["distance"] / one_apart).round(1)) <= {0.0, 1.0, 1.4, 1.7}


def test_a_method_that_declines_the_table_gives_its_reason() -> None:
    with pytest.raises(
        UsageError, match=r"^full_quadratic declines this table: full_quadratic wor"
    ):
        propose(table(), method="full_quadratic")
    with pytest.raises(
        UsageError, match=r"^ga declines this table: latent=oracle needs hidden coo"
    ):
        propose(table(), method="ga", overrides=[*TINY, "latent=oracle"])


def test_distances_are_to_the_nearest_row_and_relative_to_that_between_rows() -> None:
    grid = np.array([[i, j] for i in range(6) for j in range(6)], dtype=float)
    found = propose(grid, grid.sum(axis=1), whole=[])
    step = 1 / grid[:, 0].std()
    assert found.attrs["typical_distance"] == pytest.approx(step)
    np.testing.assert_allclose(found["distance_ratio"], found["distance"] / step)
    nearest = np.sqrt(((found[["x0", "x1"]].to_numpy()[:, None] - grid) ** 2).sum(axis=2)).min(
        axis=1
    )
    np.testing.assert_allclose(found["distance"], nearest * step)
    gaps = np.abs(found[["x0", "x1"]].to_numpy()[..., None] - np.arange(6)).min(axis=2).max(axis=1)
    np.testing.assert_allclose(found["column_distance"], gaps * step, atol=1e-12)
    outside = (found[["x0", "x1"]] > 5).sum(axis=1) + (found[["x0", "x1"]] < 0).sum(axis=1)
    assert found["columns_outside"].tolist() == outside.tolist()


def test_fewer_designs_than_requested_are_a_warning() -> None:
    rows = table().drop(columns="site")
    with pytest.warns(UserWarning, match=r".") as caught:
        found = ddobench.propose(rows, "y", method="naive", k=5, same=True)
    assert [str(one.message) for one in caught] == [
        "Columns with few different numbers keep to them: count (0, 1, 2, 3, 4, 5, 6, 7, 8, 9); "
        "continuous (--continuous NAME) allows others.",
        "1 of 1 proposals are already rows of the table.",
        "naive proposes 1 different design, fewer than the 5 requested.",
    ]
    best = rows.sort_values("y").iloc[-1]
    assert found[["a", "metal"]].iloc[0].tolist() == [best["a"], best["metal"]]
    assert found.loc[0, "predicted"] == pytest.approx(best["y"], rel=1e-5)
    assert found.loc[0, "distance"] == 0


def test_notes_on_the_rows_are_warnings_at_the_line_of_the_caller() -> None:
    rows = table()
    rows.loc[3, "a"] = np.nan
    with pytest.warns(UserWarning, match=r".") as caught:
        found = ddobench.propose(rows, "y", method="naive", k=1)
    sentences = [str(one.message) for one in caught]
    assert "1 row with missing entries left out, in column 'a'." in sentences
    assert "Constant columns keep their value in every proposal: site." in sentences
    assert [*found.attrs["notes"], *found.attrs["warnings"]] == sentences
    assert {one.filename for one in caught} == {__file__}


def test_a_column_of_the_table_keeps_its_name_and_ours_gets_a_prefix() -> None:
    rows = table().rename(columns={"a": "distance"})
    found = propose(rows)
    assert found.columns.tolist()[:2] == ["distance", "count"]
    assert "ddobench_distance" in found
    twice = propose(rows.assign(ddobench_distance=rows["distance"] ** 2))
    assert "ddobench_ddobench_distance" in twice


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"method": "gaa"}, r"^there is no method 'gaa' \(did you mean 'ga'\?\); there are "),
        ({"k": 0}, r"^k must be a whole number of at least 1, got 0$"),
        ({"k": 10**9}, r"^k must be at most 10000, as every two designs are compared, got 1000"),
        ({"overrides": ["budget.designs=1000000000"]}, r"^the search would start from 1000000000 "),
        ({"drop": "site"}, r"^drop must be a list, got 'site'; write \['site'\]$"),
        ({"drop": ["y"]}, r"^'y' is the column of values; leave it out of drop and categorical$"),
        ({"bounds": {"a": (np.inf, np.inf)}}, r"^the bounds of 'a' must be low <= high, got \(inf"),
        ({"bounds": {"n": (1e300, None)}}, r"^column 'n' has whole numbers; give bounds"),
        ({"bounds": {"count": (20, None)}}, r"^the bounds of 'count', 20 to inf, contain none of"),
        ({"fixed": {"a": np.inf}}, r"^column 'a' must be fixed at a number within its bounds,"),
        ({"fixed": {"n": 10**400}}, r"^column 'n' must be fixed at a whole number up to 9"),
        ({"fixed": {"count": 10**400}}, r"^column 'count' can only be fixed at an entry of the r"),
        ({"fixed": {"a": 3}, "bounds": {"a": (0, 1)}}, r"^column 'a' must be .* bounds, 0 to 1, "),
        ({"seed": "3-1"}, r"^the seed range 3-1 runs backwards; write seed=1-3$"),
        ({"seed": "0-50"}, r"^seed must be at most 50 seeds to compare, got 51$"),
        ({"overrides": ["task=chain"]}, r"^task cannot be an override here; use the argument ins"),
        ({"overrides": ["surrogate.rigde=1"]}, r"^there is no key 'surrogate.rigde'"),
        ({"bounds": {"b": (0, 1)}}, r"^there is no column 'b' to constrain; there are a, cou"),
        ({"bounds": {"a": (1, 0)}}, r"^the bounds of 'a' must be low <= high, got \(1, 0\)$"),
        ({"bounds": {"a": 3}}, r"^the bounds of 'a' must be two numbers \(low, high\), got 3$"),
        ({"bounds": {"metal": (0, 1)}}, r"^column 'metal' is a category and has no bounds; use f"),
        ({"bounds": {"n": (0.5, 2)}}, r"^column 'n' has whole numbers; give whole bounds"),
        ({"bounds": "visible"}, r"^bounds must be a mapping with an item for each column,"),
        ({"fixed": {"metal": "gold"}}, r"^column 'metal' can only be fixed at an entry of the r"),
        ({"fixed": {"site": "there"}}, r"^column 'site' can only be fixed at an entry of the ro"),
        ({"fixed": {"a": "big"}}, r"^column 'a' must be fixed at a number within its bounds, got "),
        ({"fixed": {"n": 1.5}}, r"^column 'n' must be fixed at a whole number up to"),
        ({"fixed": {"count": 1.5}}, r"got 1\.5; continuous \(--continuous NAME\) allows other nu"),
        ({"fixed": {"count": 1}, "bounds": {"count": (2, 5)}}, r"^column 'count' must be .*2 to 5"),
        ({"levels": ["metal"]}, r"^column 'metal' is a category; leave it out of levels$"),
        ({"continuous": ["metal"]}, r"^column 'metal' is a category; leave it out of continuous$"),
        ({"levels": ["z"]}, r"^there is no column 'z'; the columns are a, count, metal, site, n$"),
        ({"levels": ["a"], "whole": ["a"]}, r"^column 'a' has levels; leave it out of continuous "),
        ({"levels": {"a": [1]}}, r"^the levels of 'a' must be two or more numbers, got \[1\]$"),
        ({"levels": {"a": ["p", "q"]}}, r"^the levels of 'a' must be two or more numbers, got \["),
        ({"min_distance": -1}, r"^min_distance must be a number of at least 0, got -1$"),
        ({"min_distance": 1, "same": True}, r"^same \(--same\) has no least distance; leave out "),
        ({"constraints": "a <= 1"}, r"^constraints must be a list, got 'a <= 1'; write "),
        ({"constraints": ["a + z <= 1"]}, r"^--constraint 'a \+ z <= 1': there is no column 'z';"),
        ({"constraints": ["a + metal <= 1"]}, r"column 'metal' is a category; use --fixed$"),
        ({"constraints": ["a < 1"]}, r"^--constraint must be a sum of columns and a limit, .* 'a"),
        ({"constraints": ["a"]}, r"^--constraint must be a sum of columns and a limit, .* got '"),
        ({"constraints": ["a <= 1 <= 2"]}, r"got two relations in 'a <= 1 <= 2'$"),
        ({"constraints": ["a - a = 0"]}, r"got no column in 'a - a = 0'$"),
        ({"constraints": ["a >= 2"], "bounds": {"a": (None, 1)}}, r"^no design satisfies 'a >= 2"),
        ({"whole": ["z"]}, r"^there is no column 'z'; the columns are a, count, metal, site, n$"),
        ({"drop": ["z"]}, r"^there is no column 'z'; the columns are a, count, metal, site, n$"),
    ],
)  # fmt: skip
def test_an_invalid_request_is_one_sentence(options: dict[str, Any], sentence: str) -> None:
    rows = table()
    rows.insert(4, "n", np.arange(60))
    with pytest.raises(UsageError, match=sentence):
        propose(rows, **options)


@pytest.fixture
def not_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forget that the package was imported; monkeypatch restores it."""
    monkeypatch.delattr(ddobench, "propose")
    for name in [name for name in sys.modules if name.startswith("ddobench.propose")]:
        monkeypatch.delitem(sys.modules, name)


@pytest.mark.usefixtures("not_imported")
@pytest.mark.parametrize("import_first", [False, True])
def test_the_package_of_the_same_name_can_be_called(import_first: bool) -> None:
    if import_first:
        importlib.import_module("ddobench.propose")
    x = np.arange(8.0)[:, None]
    for _ in range(2):
        assert propose(x, x[:, 0], method="naive", k=1)["x0"].tolist() == [7.0]
