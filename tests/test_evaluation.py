"""Promises of `ddobench.evaluate`: functions and regressors are methods like others."""

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

import ddobench
from ddobench import evaluation
from ddobench.errors import UsageError
from ddobench.report.tables.matrix import read_suite
from ddobench.report.tables.select import BY_SIZE
from ddobench.store.runs import Store

SMALL = {"d": 5, "n": 40, "budget": "tiny"}


def top_rows(x: Any, y: Any, space: Any, k: int, rng: Any, *, noise: float = 0.0) -> Any:  # noqa: ARG001
    """Return the best rows, moved a little."""
    top = x[np.argsort(-y)[:k]]
    return top + noise * rng.normal(size=top.shape)


class Mover:
    """An object with a method that can be evaluated, which remembers how often it was called."""

    def __init__(self, step: float) -> None:
        self.step = step
        self.calls = 0

    def move(self, x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG002
        """Move rows by what the object remembers."""
        self.calls += 1
        return x[:k] + self.step * self.calls


class Mean:
    """A regressor without settings."""

    def fit(self, x: Any, y: Any) -> None:
        self.mean = y.mean()
        assert x.ndim == 2

    def predict(self, x: Any) -> Any:
        return np.full(len(x), self.mean) - np.square(x).sum(axis=1)


def evaluate(method: Any, folder: Path, **settings: Any) -> pd.DataFrame:
    """Evaluate on a small task."""
    return ddobench.evaluate(method, **{"task": "rbf", **SMALL, "results_dir": folder, **settings})


def test_a_function_leaves_ordinary_records(tmp_path: Path) -> None:
    runs = evaluate(top_rows, tmp_path, seed="0-2")
    assert runs["status"].tolist() == ["ok"] * 3
    assert set(runs["method"]) == {"top_rows"}
    stored = ddobench.load(tmp_path)
    pd.testing.assert_frame_equal(stored[["seed", "final_model"]], runs[["seed", "final_model"]])
    best = ddobench.run("naive", "rbf", seed="0-2", results_dir=tmp_path, **SMALL)  # type: ignore[arg-type]
    assert runs["data_digest"].tolist() == best["data_digest"].tolist()
    assert runs["data_digest"].nunique() == 3


def test_a_function_runs_in_every_cell_of_a_suite(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    suite = read_suite("ddobench-1-lite")
    runs = ddobench.evaluate(
        top_rows, suite=suite.name, seed=3, budget="tiny", results_dir=tmp_path
    )
    found = set(runs[[*BY_SIZE]].assign(budget="full").itertuples(index=False, name=None))
    assert found == set(suite.cells.values())
    assert runs["status"].tolist() == ["ok"] * 4
    monkeypatch.setattr(evaluation, "run_all", lambda specs, seed, *_: (len(specs), seed))
    assert ddobench.evaluate(top_rows, suite=suite.name) == (4, str(suite.seeds))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({}, "a task or a suite, got neither"),
        ({"task": "rbf", "suite": "ddobench-1"}, "a task or a suite, got both"),
        ({"suite": "ddobench-1", "d": 5}, "leave d and n out"),
        ({"suite": "lite"}, "there is no suite 'lite'; there are ddobench-1, ddobench-1-lite"),
    ],
)
def test_a_suite_stands_in_place_of_a_task(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(UsageError, match=message):
        ddobench.evaluate(top_rows, **wrong)


def test_a_second_call_runs_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = evaluate(top_rows, tmp_path, seed="0-1")

    def refuse(*_: object) -> None:
        raise AssertionError("written again")

    monkeypatch.setattr(Store, "write", refuse)
    pd.testing.assert_frame_equal(evaluate(top_rows, tmp_path, seed="0-1"), first)


def test_a_changed_function_is_another_method(tmp_path: Path) -> None:
    def make(shift: float) -> Callable[..., Any]:
        def mine(x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG001
            return x[:k] + shift

        return mine

    digests = [evaluate(make(shift), tmp_path)["digest"][0] for shift in (0.0, 0.1, 0.1)]
    assert digests[0] != digests[1] == digests[2]
    versions = [evaluate(make(0.0), tmp_path, version=v)["digest"][0] for v in (1, 2, 2)]
    assert versions[0] != versions[1] == versions[2]


def test_lambdas_partials_and_bound_methods_are_methods(tmp_path: Path) -> None:
    noisy = evaluate(functools.partial(top_rows, noise=0.1), tmp_path)
    assert noisy[["method", "method_variant"]].to_numpy().tolist() == [["top_rows", "noise=0.1"]]
    bound = evaluate(Mover(0.1).move, tmp_path, seed="0-1")
    assert set(bound["method"]) == {"Mover.move"}
    alone = evaluate(Mover(0.1).move, tmp_path / "alone", seed=1)
    assert bound["final_model"][1] == alone["final_model"][0]  # a seed remembers no other
    named = evaluate(lambda x, y, space, k, rng: x[:k], tmp_path, name="first")  # noqa: ARG005
    assert named["method"].tolist() == ["first"]


def test_predictions_rank_the_designs(tmp_path: Path) -> None:
    def ranked(x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG001
        return x[:k], y[:k]

    runs = evaluate(ranked, tmp_path)
    assert np.isfinite(runs["predicted_final"]).all()


def test_categories_are_whole_numbers(tmp_path: Path) -> None:
    seen: list[Any] = []

    def look(x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG001
        seen.append((x.dtype.kind, space.sizes))
        return x[:k]

    runs = evaluate(look, tmp_path, task="nk", d=7, version=1)
    assert runs["status"].tolist() == ["ok"]
    assert [(kind, len(sizes)) for kind, sizes in seen] == [("i", 7)]


ROWS = np.zeros((1000, 5))
RETURNS: dict[str, tuple[Callable[[int], Any], str]] = {
    "too few": (lambda k: ROWS[: k - 1], r"k=\d+ designs of d=5 variables, an array .*, got \("),
    "too wide": (lambda k: np.zeros((k, 6)), r"an array \(\d+, 5\), got \(\d+, 6\)"),
    "nothing": (lambda k: ROWS[k:k].any() or None, r"an array of real numbers, got NoneType"),
    "words": (lambda k: [["a"] * 5] * k, r"real numbers, got an array of <U1"),
    "ragged": (lambda k: [[1.0]] + [[1.0, 2.0]] * (k - 1), r"got rows of different lengths"),
    "complex": (lambda k: ROWS[:k] + 1j, r"real numbers, got an array of complex128"),
    "predictions": (lambda k: (ROWS[:k], np.zeros(3)), r"k=\d+ predictions second, .* got \(3,\)"),
}


@pytest.mark.parametrize("name", RETURNS)
def test_a_wrong_shape_or_type_stops_with_one_sentence(name: str, tmp_path: Path) -> None:
    make, sentence = RETURNS[name]

    def wrong(x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG001
        return make(k)

    with pytest.raises(UsageError, match=f"^wrong must return .*{sentence}"):
        evaluate(wrong, tmp_path, seed="0-3", version=1)
    assert ddobench.load(tmp_path).empty


@pytest.mark.parametrize(
    ("task", "value", "sentence"),
    [
        ("rbf", np.nan, "wrong must return finite designs, got NaN or infinity in 1 of"),
        ("nk", 99, "wrong must return designs of whole categories from 0 to below the size"),
        ("nk", 0.5, "wrong must return designs of whole categories"),
    ],
)
def test_a_design_outside_the_space_fails_its_seed_with_one_sentence(
    task: str, value: float, sentence: str, tmp_path: Path
) -> None:
    def wrong(x: Any, y: Any, space: Any, k: int, rng: Any) -> Any:  # noqa: ARG001
        designs = x[:k].astype(float)
        designs[0, 0] = value
        return designs

    runs = evaluate(wrong, tmp_path, task=task, version=1)
    assert runs["status"].tolist() == ["failed"]
    assert runs["reason"][0].startswith(f"ValueError: {sentence}")


@pytest.mark.parametrize(
    ("method", "settings", "sentence"),
    [
        (len, {}, r"^len must take \(x, y, space, k, rng\), got len\(obj, /\)$"),
        (3, {}, r"^method must be a function .* or have fit and predict, got 3$"),
        (Mean, {}, r"^method must be an object, got the class Mean; write Mean\(\)$"),
        (top_rows, {"name": "ga"}, r"^there is a method 'ga' already; give name="),
        (top_rows, {"name": "a/b"}, r"^name must be of at most 100 letters"),
        (Mean(), {"overrides": ["surrogate.width=3"]}, r"^surrogate.width=3 has no effect"),
        (top_rows, {"search": "cma"}, r"^search=cma has no effect on a function$"),
        (top_rows, {"seed": "3-1"}, r"^the seed range 3-1 runs backwards"),
        (
            top_rows,
            {
                "beside": "published",
                "task": "quadratic",
                "d": 20,
                "n": 100,
                "budget": "full",
                "seed": "90-91",
            },
            r"^beside=published has seeds 0-49 of quadratic d=20 n=100 budget=full, got 90-91$",
        ),
        (top_rows, {"beside": "published"}, r"^beside=published has no runs of rbf d=5 n=40"),
    ],
)
def test_a_wrong_request_gets_one_sentence(
    method: Any, settings: dict[str, Any], sentence: str, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=sentence):
        evaluate(method, tmp_path, **settings)


def test_a_regressor_is_searched_without_gradients(tmp_path: Path) -> None:
    for task, d in (("rbf", 5), ("nk", 7)):
        runs = evaluate(Mean(), tmp_path, task=task, d=d, seed="0-1")
        assert runs["status"].tolist() == ["ok", "ok"]
        assert (
            runs[["method", "surrogate", "search"]].to_numpy().tolist()
            == [["Mean", "Mean", "evolution"]] * 2
        )
    refused = evaluate(Mean(), tmp_path, search="ascent")
    assert refused["status"].tolist() == ["declined"]
    assert refused["reason"][0].endswith("; use search=evolution, tangent, cma, reinforce or rwr")


def test_tangent_searches_a_regressor_by_random_steps(tmp_path: Path) -> None:
    runs = evaluate(Mean(), tmp_path, search="tangent", seed="0-1")
    assert runs["status"].tolist() == ["ok", "ok"]
    assert (runs["invalid_final"] == 0).all()


def test_an_object_of_python_cannot_be_isolated(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="isolate=true is for methods with a configuration file"):
        evaluate(Mean(), tmp_path, isolate=True)


def test_settings_of_an_estimator_are_its_variant(tmp_path: Path) -> None:
    linear = pytest.importorskip("sklearn.linear_model")
    runs = pd.concat([evaluate(linear.Ridge(alpha), tmp_path) for alpha in (1.0, 2.0)])
    assert runs["method_variant"].tolist() == ["", "alpha=2.0"]
    assert runs["digest"].nunique() == 2


def test_runs_beside_others_are_ranked_and_paired_by_seed(tmp_path: Path) -> None:
    size = {"task": "chain", "d": 11, "n": 2000}
    board = ddobench.evaluate(
        top_rows,
        seed="0-2",
        results_dir=tmp_path,
        beside="published",
        **size,  # type: ignore[arg-type]
    )
    known = ddobench.published()
    naive = known[
        (known["method"] == "naive") & (known["task"] == "chain") & (known["d"] == 11)
        & (known["n"] == 2000) & (known["task_variant"] == "") & known["seed"].isin([0, 1, 2])
    ]  # fmt: skip
    row = board.set_index("method").loc["naive"]
    own = board.set_index("method").loc["top_rows"]
    assert row["value"] == pytest.approx(naive["final_model"].mean(), abs=1e-4)
    assert row["above"] == pytest.approx(own["value"] - row["value"], abs=1e-6)
    assert row["above_low"] <= row["above"] <= row["above_high"]
    assert own["above"] == 0
    assert set(board["pairs"]) == {3}
    assert board["rank"].dropna().is_monotonic_increasing
