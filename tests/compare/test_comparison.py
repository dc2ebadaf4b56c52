"""Two sets of stored runs are matched, compared to the bit, and summarised."""

import os
import runpy
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.compare.__main__ import format_change, list_differences, main, summarise
from ddobench.compare.comparison import Comparison, changed_settings, compare
from ddobench.compare.sides import read_sides
from ddobench.errors import UsageError
from ddobench.store.records import Record
from tests.support.processes import PATIENCE
from tests.support.synthetic_stores import store_records

OLD, NEW = "a" * 40, "b" * 40
CONFIG = {"method": {"width": 256, "training": {"steps": 1000}}}
WIDER = {"method": {"width": 512, "training": {"steps": 1000}, "depth": 2}}
CURVES = ("value_model", "value_oracle", "survivors", "invalid", "predicted")


def record_of(seed: int = 0, shift: float = 0.0, **changes: Any) -> Record:
    """Return a run whose values are shifted."""
    rng = np.random.default_rng(seed)
    config = changes.pop("config", CONFIG)
    curves = {"iteration": np.arange(3.0)} | {name: rng.normal(size=3) for name in CURVES}
    curves["value_model"] = curves["value_model"] + shift
    final = float(curves["value_model"][-1])
    row = {
        "task": "toy", "task_variant": "", "method": "mine", "method_variant": "", "d": 3,
        "n": 10, "seed": seed, "budget": "full", "digest": "abc", "status": "ok", "reason": "",
        "revision": OLD, "final_model": final, "final_oracle": 1.0, "best_oracle": 1.5,
        "regret_final": 4.0 - final, "invalid_final": 0.25, "best_visible": 1.0, "optimum": 4.0,
    }  # fmt: skip
    provenance = {"packages": {"torch": "2.0"}, "revision": row["revision"]}
    return Record(row=row | changes, config=config, provenance=provenance, curves=curves)


def compare_folders(a: Path, b: Path, score: str = "final_model", **filters: Any) -> Comparison:
    """Compare two folders."""
    return compare(*read_sides([str(a), str(b)], a, filters), score)


@pytest.fixture
def old(tmp_path: Path) -> Path:
    """Return a store of six runs."""
    return store_records(tmp_path / "old", (record_of(seed) for seed in range(6)))


def test_equal_stores_are_identical_to_the_bit(old: Path, tmp_path: Path) -> None:
    new = store_records(tmp_path / "new", (record_of(seed) for seed in range(6)))
    found = compare_folders(old, new)
    assert summarise(found)[-1] == (
        "All 6 runs that both have are identical to the bit in scores and curves."
    )
    assert (found.compared, found.changed) == (6, 0)
    assert found.table["difference"].tolist() == [0.0]
    assert not any(list_differences(found).values())


@pytest.mark.parametrize("score", ["final_model", "regret_final"])
def test_the_last_bit_of_one_score_is_a_change(old: Path, tmp_path: Path, score: str) -> None:
    records = [record_of(seed) for seed in range(6)]
    records[2].row[score] = float(np.nextafter(records[2].row[score], 9))
    found = compare_folders(old, store_records(tmp_path / "new", records), score)
    line = found.table.iloc[0]
    assert (line["pairs"], line["identical"], line["changed"]) == (6, 5, 1)
    assert 0 < line["largest_change"] < 1e-15
    assert format_change(line["largest_change"]) != "0"


def test_a_bit_in_the_middle_of_a_curve_is_a_change(old: Path, tmp_path: Path) -> None:
    records = [record_of(seed) for seed in range(6)]
    records[4].curves["survivors"][1] = np.nextafter(records[4].curves["survivors"][1], 9)
    found = compare_folders(old, store_records(tmp_path / "new", records))
    assert found.changed == 1
    assert found.table["largest_change"].tolist() == [0.0]


def test_curve_values_that_swapped_iterations_are_a_change(old: Path, tmp_path: Path) -> None:
    records = [record_of(seed) for seed in range(6)]
    records[0].curves["predicted"] = records[0].curves["predicted"][::-1].copy()
    assert compare_folders(old, store_records(tmp_path / "new", records)).changed == 1


def test_the_difference_is_b_minus_a_paired_by_seed(old: Path, tmp_path: Path) -> None:
    shifted = (record_of(seed, shift=0.5 + 0.01 * seed, digest="xyz") for seed in range(6))
    line = compare_folders(old, store_records(tmp_path / "new", shifted)).table.iloc[0]
    assert line["difference"] == pytest.approx(0.525)
    assert line["mean_b"] - line["mean_a"] == pytest.approx(0.525)
    assert 0.5 < line["low"] < 0.525 < line["high"] < 0.55
    assert line["interval"] == "t"
    assert line["largest_change"] == pytest.approx(0.55)


def test_runs_match_without_their_digest_and_changed_settings_are_listed(
    old: Path, tmp_path: Path
) -> None:
    new = store_records(
        tmp_path / "new", (record_of(seed, digest="xyz", config=WIDER) for seed in range(6))
    )
    found = compare_folders(old, new)
    assert (found.compared, found.changed) == (6, 0)
    assert list_differences(found)["Settings that differ"] == [
        "method.depth: missing \u2192 2 (toy mine; d = 3)",
        "method.width: 256 \u2192 512 (toy mine; d = 3)",
    ]


def test_another_digest_of_equal_settings_is_another_version(old: Path, tmp_path: Path) -> None:
    new = store_records(tmp_path / "new", (record_of(seed, digest="xyz") for seed in range(6)))
    (line,) = list_differences(compare_folders(old, new))["Settings that differ"]
    assert line.startswith("the version of a class: abc \u2192 xyz")


def test_changed_versions_are_listed(old: Path, tmp_path: Path) -> None:
    record = record_of()
    record.provenance["packages"] = {"torch": "3.0"}
    found = compare_folders(old, store_records(tmp_path / "new", [record]))
    (line,) = list_differences(found)["Versions and machines that differ"]
    assert line == "packages.torch: 2.0 \u2192 3.0"


def test_many_values_of_a_setting_are_shortened() -> None:
    before = [{"a": {"b": value}} for value in range(5)]
    assert changed_settings(before, [{"a": {"b": 9}}]) == [("a.b", "0 or 1 or 2 or 2 others", "9")]


def test_a_run_that_fails_now_is_a_change(old: Path, tmp_path: Path) -> None:
    records = [record_of(seed) for seed in range(5)]
    failed = record_of(5, status="failed", reason="no")
    for name in ("final_model", "regret_final"):
        del failed.row[name]
    line = compare_folders(old, store_records(tmp_path / "new", [*records, failed])).table.iloc[0]
    assert (line["pairs"], line["scored"], line["changed"]) == (6, 5, 1)
    assert line["status_changes"] == "1 ok \u2192 failed"


def test_seeds_of_one_side_only_are_counted(old: Path, tmp_path: Path) -> None:
    found = compare_folders(
        old, store_records(tmp_path / "new", (record_of(seed) for seed in range(4, 8)))
    )
    line = found.table.iloc[0]
    assert (line["pairs"], line["only_a"], line["only_b"]) == (2, 4, 2)
    assert summarise(found)[-2:] == [
        "4 runs are only in A, in 1 line of the table.",
        "2 runs are only in B, in 1 line of the table.",
    ]


def test_columns_that_one_store_lacks_are_not_a_change(old: Path, tmp_path: Path) -> None:
    new = []
    for seed in range(6):
        record = record_of(seed, predicted_final=1.0, label="Mine", color="#000000")
        record.curves["median"] = np.zeros(3)
        new.append(record)
    (old / "toy-mine-d3-n10-abc" / "seed-00000.parquet").unlink()
    first = record_of(0)
    del first.curves["predicted"], first.row["revision"]
    store_records(old, [first])
    assert compare_folders(old, store_records(tmp_path / "new", new)).changed == 0


def test_runs_of_equal_names_are_distinguished_by_digest(old: Path, tmp_path: Path) -> None:
    alike = [record_of(seed, shift=1.0, digest="xyz") for seed in range(6)]
    new = store_records(tmp_path / "new", [*(record_of(seed) for seed in range(6)), *alike])
    found = compare_folders(old, new)
    assert found.table["method_variant"].tolist() == ["digest=abc", "digest=xyz"]
    assert found.table["pairs"].tolist() == [6, 0]
    assert found.changed == 0


def test_without_a_common_run_the_runs_of_both_sides_are_listed(old: Path, tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert summarise(compare_folders(old, empty))[2:] == [
        "No run is on both sides, so nothing can be compared.",
        "A has toy, mine, n = 10, d = 3, seeds 0\u20135",
        "B has no runs.",
    ]
    assert compare_folders(empty, empty).table.empty


def test_the_value_of_a_filter_must_occur_on_at_least_one_side(old: Path, tmp_path: Path) -> None:
    other = [record_of(seed, method="other", digest="xyz") for seed in range(2)]
    new = store_records(tmp_path / "new", [*(record_of(seed) for seed in range(6)), *other])
    assert compare_folders(old, new, method=["other"]).table["only_b"].tolist() == [2]
    assert compare_folders(old, new, seed="0-1").compared == 2
    with pytest.raises(UsageError, match="method must be one of mine, other"):
        compare_folders(old, new, method=["absent"])


def git(folder: Path, *words: str) -> str:
    """Run git in a folder, with any author."""
    who = ["-c", "user.name=x", "-c", "user.email=x@example.org"]
    command = ["git", "-C", str(folder), *who, *words]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=PATIENCE)
    return done.stdout.strip()


@pytest.mark.slow
def test_revisions_are_resolved_by_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    git(tmp_path, "init", "--quiet", "--initial-branch=work")
    hashes = []
    for message in ("one", "two"):
        git(tmp_path, "commit", "--quiet", "--allow-empty", "--message", message)
        hashes.append(git(tmp_path, "rev-parse", "HEAD"))
    git(tmp_path, "tag", "-m", "the first", "v1", hashes[0])
    runs = store_records(
        tmp_path / "runs",
        [
            *(record_of(seed, revision=hashes[0]) for seed in range(3)),
            *(record_of(seed, 0.5, revision=hashes[1], digest="xyz") for seed in range(3)),
        ],
    )
    monkeypatch.chdir(tmp_path)
    for words in (["v1", "work"], [hashes[0][:7], "HEAD"], ["rev:v1", "rev:work"]):
        a, b = read_sides(words, runs)
        assert (len(a.runs), len(b.runs)) == (3, 3)
        assert compare(a, b, "final_model").table["difference"].tolist() == [pytest.approx(0.5)]
    (tmp_path / "v1").mkdir()
    assert [len(side.runs) for side in read_sides(["v1", "rev:v1"], runs)] == [0, 3]


def test_stored_revisions_are_resolved_without_git(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    runs = store_records(
        tmp_path / "runs", [record_of(0), record_of(0, revision=NEW, digest="xyz")]
    )
    monkeypatch.chdir(tmp_path)
    a, b = read_sides(["aaaa", "bbbbbb"], runs)
    assert a.name == f"revision {'a' * 12} in {runs}"
    assert compare(a, b, "final_model").compared == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["dir:nowhere", "old"], "nowhere is not a folder; give a folder of stored runs"),
        (["old", "./nowhere"], "nowhere is not a folder; give a folder of stored runs"),
        (["old", "typo"], "'typo' is neither a folder nor a revision known to git or old; "
                          "the revisions stored there: aaaaaaaaaaaa"),
        (["old", "old", "colour=red"], "a filter must be task=, method="),
        (["old", "old", "d=large"], "d must be whole numbers joined by commas, got 'large'"),
        (["old", "old", "--output", "x.pdf"], "--output must end in .csv or .md, got x.pdf"),
        (["old"], "the following arguments are required: B; --help shows"),
    ],
)  # fmt: skip
def test_an_invalid_request_is_one_sentence_and_exit_code_2(
    old: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    message: str,
) -> None:
    monkeypatch.chdir(old.parent)
    with pytest.raises(SystemExit, match=r"^2$"):
        main([*words, "--results-dir", "old"])
    printed = capsys.readouterr().err
    assert printed.startswith("ddobench: ")
    assert message in printed
    assert printed.count("\n") == 1


def test_a_folder_that_cannot_be_read_is_one_sentence_and_exit_code_2(
    old: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    scan, look = os.scandir, Path.is_dir

    def refuse(path: Any) -> Any:
        if Path(path) == old:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    def refuse_below(path: Path) -> bool:
        if path.parent == old:
            raise PermissionError(13, "Permission denied", str(path))
        return look(path)

    monkeypatch.setattr(os, "scandir", refuse)
    monkeypatch.setattr(Path, "is_dir", refuse_below)
    for folder, sentence in ((old, "(Permission denied)"), (old / "x", "is not a folder")):
        with pytest.raises(SystemExit) as ended:
            main([str(folder), str(folder)])
        assert ended.value.code == 2
        printed = capsys.readouterr()
        assert sentence in printed.err
        assert len(printed.err.splitlines()) == 1
        assert printed.out == ""


@pytest.mark.parametrize("kind", ["file", "dir:file", "./file"])
def test_a_file_is_no_side_of_a_comparison(
    old: Path, kind: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(old.parent)
    Path("file").write_text("not a folder")
    with pytest.raises(SystemExit, match="2"):
        main([kind, "old", "--results-dir=old"])
    assert "folder" in capsys.readouterr().err


def test_the_exit_code_is_1_for_a_change_only_if_requested(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    new = store_records(tmp_path / "new", (record_of(seed, shift=0.5) for seed in range(6)))
    (tmp_path / "empty").mkdir()
    same, changed = [str(old), str(old)], [str(old), str(new)]
    nothing = [str(old), str(tmp_path / "empty")]
    assert [main(words) for words in (same, changed, nothing)] == [0, 0, 0]
    codes = [main([*words, "--fail-on-change"]) for words in (same, changed, nothing)]
    assert codes == [0, 1, 1]
    assert "6 of the 6 runs that both have changed" in capsys.readouterr().out


def test_the_command_prints_aligned_text_and_writes_files(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store_records(
        tmp_path / "new",
        [
            *(record_of(seed, shift=0.5) for seed in range(6)),
            *(record_of(seed, method="a|b", digest="xyz") for seed in range(2)),
        ],
    )
    store_records(old, (record_of(seed, method="a|b", digest="xyz") for seed in range(2)))
    for words in (["--output", "out.csv"], ["--output", "out.md", "--all"]):
        main([str(old), str(tmp_path / "new"), *words[:1], str(tmp_path / words[1]), *words[2:]])
    head, line = capsys.readouterr().out.splitlines()[5:7]
    assert head.split()[:6] == ["task", "method", "n", "d", "pairs", "identical"]
    assert line.split()[:6] == ["toy", "mine", "10", "3", "6", "0"]
    assert head.index("identical") + len("identical") == line.index(" 0 ") + 2
    written = pd.read_csv(tmp_path / "out.csv")
    assert written["difference"].tolist() == [pytest.approx(0.5)]
    markdown = (tmp_path / "out.md").read_text(encoding="utf-8")
    assert "| toy | a\\|b | 10 | 3 | 2 | 2 |" in markdown
    assert "6 of the 8 runs that both have changed, in 1 of 2 lines" in markdown


def test_a_terminal_gets_a_table(
    old: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    new = store_records(tmp_path / "new", (record_of(seed, shift=0.5) for seed in range(6)))
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    for width in ("160", "100"):
        monkeypatch.setenv("COLUMNS", width)
        main([str(old), str(new)])
        printed = capsys.readouterr().out
        assert "95 % interval" in printed
        assert "\u2026" not in printed


@pytest.mark.filterwarnings("ignore:'ddobench.compare.__main__' found in sys.modules")
def test_the_package_runs_as_a_program(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["compare", "--help"])
    with pytest.raises(SystemExit, match=r"^0$"):
        runpy.run_module("ddobench.compare", run_name="__main__")
    assert capsys.readouterr().out.startswith("usage: python -m ddobench.compare")
