"""Promises of the Python interface."""

import logging
from collections.abc import Callable
from pathlib import Path

import pandas as pd
import pytest

import ddobench
from ddobench.errors import UsageError
from ddobench.store.runs import Store

TINY = ["budget=tiny"]


def stamps(folder: Path) -> dict[str, int]:
    """Return when each file was written."""
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.parquet")}


def test_a_run_returns_exactly_the_asked_rows(tmp_path: Path) -> None:
    ddobench.run("naive", d=6, seed="0-4", overrides=TINY, results_dir=tmp_path)
    runs = ddobench.run(
        method=["fgm", "naive"], task="quadratic", d=[6, 8], seed="1,3", overrides=TINY,
        results_dir=tmp_path,
    )  # fmt: skip
    asked = {(m, d, s) for m in ("fgm", "naive") for d in (6, 8) for s in (1, 3)}
    assert set(zip(runs["method"], runs["d"], runs["seed"], strict=True)) == asked
    assert len(runs) == len(asked)
    assert runs.index.tolist() == list(range(len(asked)))
    assert set(runs["status"]) == {"ok"}


def test_a_second_call_runs_nothing_and_returns_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask() -> pd.DataFrame:
        return ddobench.run("naive", d=6, n=30, seed=[0, 1], overrides=TINY, results_dir=tmp_path)

    first = ask()
    before = stamps(tmp_path)
    assert len(before) == 2
    capsys.readouterr()

    def refuse(*_: object) -> None:
        raise AssertionError("written again")

    monkeypatch.setattr(Store, "write", refuse)
    pd.testing.assert_frame_equal(ask(), first)
    assert stamps(tmp_path) == before
    assert capsys.readouterr() == ("", "")


def test_only_missing_seeds_are_run(tmp_path: Path) -> None:
    ddobench.run("naive", d=6, seed=0, overrides=TINY, results_dir=tmp_path)
    before = stamps(tmp_path)
    ddobench.run("naive", d=6, seed="0-2", overrides=TINY, results_dir=tmp_path)
    after = stamps(tmp_path)
    assert len(after) == 3
    assert before.items() <= after.items()


def test_overrides_reach_the_run(tmp_path: Path) -> None:
    runs = ddobench.run(
        "fgm", d=6, overrides=["method.ridge=0.5", "task.signs=random"], results_dir=tmp_path
    )
    assert runs["method_variant"].tolist() == ["ridge=0.5"]
    assert runs["task_variant"].tolist() == ["signs=random"]


@pytest.mark.parametrize("name", ["with space", "a,b", "x=1", "(1)", "[0]", "ä"])
def test_any_folder_can_hold_results(tmp_path: Path, name: str) -> None:
    runs = ddobench.run("naive", d=6, overrides=TINY, results_dir=tmp_path / name)
    assert len(ddobench.load(tmp_path / name)) == len(runs) == 1


def test_a_failed_run_is_returned_as_failed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    from ddobench.baselines.naive import Naive

    def fail(*_: object) -> None:
        raise ArithmeticError("no luck")

    monkeypatch.setattr(Naive, "fit", fail)
    runs = ddobench.run("naive", d=6, overrides=TINY, results_dir=tmp_path)
    assert runs["status"].tolist() == ["failed"]
    assert runs["reason"].tolist() == ["ArithmeticError: no luck"]
    assert [record.levelno for record in caplog.records] == [logging.WARNING]


def test_nothing_runs_when_one_of_the_points_is_impossible(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"^d must be a whole number of at least 4, got 3; "):
        ddobench.run("naive", d=[6, 3], overrides=TINY, results_dir=tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"method": "fmg"}, r"^there is no method 'fmg' \(did you mean 'fgm'\?\); there are "),
        ({"task": "cubic"}, r"^there is no task 'cubic'; there are "),
        ({"overrides": ["method.rigde=1"]}, r"^there is no key 'method.rigde'"),
        ({"seed": "9-3"}, r"^the seed range 9-3 runs backwards; write seed=3-9$"),
        ({"budgte": "tiny"}, r"^there is no key 'budgte' \(did you mean 'budget'\?\)"),
        (
            {"experiment": "regret"},
            r"^experiment is for the command line; write run\(method=\.\.\.",
        ),
        ({"overrides": ["plan=true"]}, r"^plan is for the command line"),
        ({"seed": "0-99999999"}, r"^100000000 runs are more than 10000; plan=true lists them"),
        ({"results_dir": 5}, r"^results_dir must be a folder, got 5; write results_dir=FOLDER"),
        ({"overrides": ["hydra.run.dir=x"]}, r"^hydra.run.dir is not for the command line"),
        ({"overrides": ["method=naive"]}, r"^method is an argument of its own; write run\(method="),
        ({"overrides": ["seed=3"]}, r"^seed is an argument of its own; write run\(seed=\.\.\.\)$"),
        (
            {"overrides": ["results_dir=x"]},
            r"^results_dir is an argument of its own; write run\(results_dir=\.\.\.\)$",
        ),
    ],
)
def test_a_wrong_request_gets_the_sentence_of_the_command_line(
    tmp_path: Path, arguments: dict[str, str], sentence: str
) -> None:
    with pytest.raises(UsageError, match=sentence):
        ddobench.run(**{"results_dir": tmp_path, **arguments})  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_any_key_of_the_command_line_is_an_argument(tmp_path: Path) -> None:
    runs = ddobench.run(
        "ga", "rbf", d=5, n=30, budget="tiny", latent=["identity", "pca"], device="cpu",
        results_dir=tmp_path, overrides=["surrogate.width=8"],
    )  # fmt: skip
    assert runs["budget"].tolist() == ["tiny", "tiny"]
    assert sorted(runs["latent"]) == ["identity", "pca"]


def test_a_folder_of_the_home_folder_is_found(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    ddobench.run("naive", d=6, budget="tiny", results_dir="~/runs")
    assert len(ddobench.load(tmp_path / "runs")) == len(ddobench.load("~/runs")) == 1


@pytest.mark.parametrize("read", [ddobench.load, ddobench.load_curves])
def test_a_folder_that_is_not_there_is_no_empty_table(
    read: Callable[[Path], pd.DataFrame], tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match=f"^there is no folder {tmp_path}/nowhere; give one"):
        read(tmp_path / "nowhere")
    assert read(tmp_path).empty


def test_the_paths_of_returned_runs_start_at_the_results_folder(tmp_path: Path) -> None:
    runs = ddobench.run("naive", d=6, overrides=TINY, results_dir=tmp_path)
    assert (tmp_path / runs["path"][0]).is_file()


def test_the_package_offers_nothing_it_does_not_have() -> None:
    with pytest.raises(AttributeError, match="module 'ddobench' has no attribute 'lod'"):
        _ = ddobench.lod
    assert {name for name in ddobench.__all__ if callable(getattr(ddobench, name))} == {
        "evaluate", "example_table", "example_values", "load", "load_curves", "propose",
        "published", "run", "task",
    }  # fmt: skip
