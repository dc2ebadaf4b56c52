"""Promises of the results folder."""

import json
import logging
import os
import pickle
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ddobench.errors import StorageError, UsageError
from ddobench.store import runs as store_module
from ddobench.store.records import Record
from ddobench.store.runs import (
    Place,
    Store,
    load,
    load_curves,
    read_diagnostics,
    read_record,
    survey,
)
from tests.support.records import (
    change_run,
    empty,
    failed_row,
    record_of,
    row_of,
    truncate,
)

PROMISED = [
    "task", "method", "d", "n", "seed", "status", "best_visible", "optimum", "final_model",
    "final_oracle", "best_oracle", "regret_final", "invalid_final", "seconds_fit",
    "seconds_propose", "digest",
]  # fmt: skip
PROMISED_CURVES = [
    "task", "method", "d", "n", "seed", "digest", "iteration", "value_model", "value_oracle",
    "survivors", "invalid", "predicted",
]  # fmt: skip


def test_every_part_of_a_run_comes_back_as_it_was(store: Store, place: Place) -> None:
    record = record_of()
    found = read_record(store.write(place, record))
    assert found.row == record.row
    assert found.config == record.config
    assert found.provenance == record.provenance
    assert found.diagnostics == record.diagnostics
    assert found.curves.keys() == record.curves.keys()
    for name, curve in record.curves.items():
        assert np.array_equal(found.curves[name], curve)
    for name in ("values", "predictions", "designs"):
        stored, original = getattr(found, name), getattr(record, name)
        assert stored.dtype == np.float32
        assert np.array_equal(stored, original, equal_nan=True)


def test_parts_a_run_does_not_have_come_back_empty(store: Store, place: Place) -> None:
    record = Record(row=row_of(status="declined", reason="too wide"))
    found = read_record(store.write(place, record))
    assert found.row == record.row
    assert found.curves == {}
    assert found.diagnostics == {}
    assert [getattr(found, name) for name in ("values", "predictions", "designs")] == [None] * 3


def test_a_run_of_one_iteration_and_one_design_comes_back(store: Store, place: Place) -> None:
    designs = np.array([[1.0, 2.0, 3.0]], dtype=np.float32)
    record = Record(
        row=row_of(),
        curves={"iteration": np.zeros(1)},
        values=np.array([[np.nan]], dtype=np.float32),
        designs=designs,
    )
    found = read_record(store.write(place, record))
    stored = {name: getattr(found, name) for name in ("values", "predictions", "designs")}
    assert np.isnan(stored["values"]).tolist() == [[True]]
    assert stored["predictions"] is None
    assert np.array_equal(stored["designs"], designs)


def test_numbers_of_numpy_and_torch_are_stored_as_plain_ones(store: Store, place: Place) -> None:
    import torch

    record = Record(
        row=row_of(final_model=np.float32(0.5), n=np.int64(10)),
        curves={"iteration": np.zeros(1)},
        diagnostics={"rank": np.int64(3), "loss": torch.tensor([1.5]), "when": Path("x")},
    )
    found = read_record(store.write(place, record))
    assert (found.row["final_model"], found.row["n"]) == (0.5, 10)
    assert found.diagnostics == {"rank": 3, "loss": [1.5], "when": "x"}


def test_a_stored_seed_is_no_longer_missing(store: Store, place: Place) -> None:
    assert store.missing(place, [2, 0, 1]) == [2, 0, 1]
    store.write(place, record_of(0))
    assert store.missing(place, [2, 0, 1]) == [2, 1]


def test_a_declined_run_is_not_missing(store: Store, place: Place) -> None:
    store.write(place, Record(row=row_of(status="declined", reason="no")))
    assert store.missing(place, [0]) == []


def test_a_file_appears_whole_or_not_at_all(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = os.write

    def write_half(handle: int, data: bytes) -> int:
        write(handle, data[: len(data) // 2])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", write_half)
    with pytest.raises(StorageError, match=r"seed-00000.parquet cannot be written: No space left"):
        store.write(place, record_of())
    assert list(place.folder.iterdir()) == []


def test_a_write_that_fails_leaves_the_older_file(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(place, record_of(final_model=1.0))

    def refuse(*_: object) -> None:
        raise OSError("no rename")

    monkeypatch.setattr(os, "replace", refuse)
    with pytest.raises(StorageError, match="no rename"):
        store.write(place, record_of(final_model=2.0))
    assert [path.name for path in place.folder.iterdir()] == ["seed-00000.parquet"]
    assert read_record(place.file(0)).row["final_model"] == 1.0


def test_a_file_is_flushed_to_disk_before_it_gets_its_name(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []
    monkeypatch.setattr(os, "fsync", lambda _: there.append(place.file(0).exists()))
    store.write(place, record_of())
    assert there == [False]


def test_what_a_killed_writer_left_behind_is_no_run(store: Store, place: Place) -> None:
    store.write(place, record_of(0))
    (place.folder / ".seed-00001.parquet.0123.tmp").write_bytes(b"half")
    assert store.missing(place, [0, 1]) == [1]
    assert load(store.folder)["seed"].tolist() == [0]


def replace_by_foreign_table(path: Path) -> None:
    """Put a table there that is not ours."""
    pq.write_table(pa.table({"seed": [1]}), path)


def replace_by_pipe(path: Path) -> None:
    """Put something there that waits for a writer once it is opened."""
    path.unlink()
    os.mkfifo(path)


DAMAGE = {
    "truncated": (truncate, "damaged, or not a Parquet file: "),
    "empty": (empty, "damaged, or not a Parquet file: "),
    "foreign": (replace_by_foreign_table, "its footer has no metadata of ddobench"),
    "a pipe": (replace_by_pipe, "it is a named pipe, not a file"),
    "incomplete row": (
        lambda path: change_run(path, {"seed": 1, "digest": "abc"}),
        "its row lacks task, task_variant, method, method_variant, d, n, budget, status",
    ),
    "another seed": (
        lambda path: change_run(path, row_of(7)),
        "it holds another run than its name says",
    ),
    "another digest": (
        lambda path: change_run(path, row_of(1, digest="xyz")),
        "it holds another run than its name says",
    ),
    "row of another kind": (
        lambda path: change_run(path, [1, 2]),
        "its row must have a value for each of its names",
    ),
}


@pytest.mark.parametrize(("damage", "reason"), DAMAGE.values(), ids=DAMAGE)
def test_an_unsound_file_is_named_left_out_and_counts_as_missing(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture, damage: Any, reason: str
) -> None:
    for seed in (0, 1):
        store.write(place, record_of(seed))
    damage(place.file(1))
    looks: list[Callable[[], bool]] = [
        lambda: load(store.folder)["seed"].tolist() == [0],
        lambda: set(load_curves(store.folder)["seed"]) == {0},
        lambda: store.missing(place, [0, 1]) == [1],
    ]
    for look in looks:
        caplog.clear()
        assert look()
        assert [record.levelno for record in caplog.records] == [logging.WARNING]
        expected = f"{place.file(1)} is not a readable run and is left out: {reason}"
        assert expected in caplog.text


def test_a_run_copied_under_another_seed_is_not_counted_twice(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    store.write(place, record_of(0))
    shutil.copy(place.file(0), place.file(1))
    assert load(store.folder)["seed"].tolist() == [0]
    assert str(place.file(1)) in caplog.text


def test_an_unsound_file_is_replaced_by_the_next_run(store: Store, place: Place) -> None:
    store.write(place, record_of(0))
    truncate(place.file(0))
    store.write(place, record_of(0))
    assert store.missing(place, [0]) == []


def test_a_failed_run_is_listed_is_missing_and_vanishes_after_success(
    store: Store, place: Place
) -> None:
    store.write(place, record_of(1))
    store.write_failure(place, failed_row(0), "Traceback: all of it")
    runs = load(store.folder)
    assert runs["status"].tolist() == ["failed", "ok"]
    assert runs["reason"][0] == "ValueError: no"
    assert np.isnan(runs["final_model"][0])
    assert store.missing(place, [0, 1]) == [0]
    assert "Traceback: all of it" in json.loads(place.error(0).read_text())["trace"]

    store.write(place, record_of(0))
    assert load(store.folder)["status"].tolist() == ["ok", "ok"]
    assert not place.error(0).exists()


def test_a_failure_beside_a_result_does_not_count(store: Store, place: Place) -> None:
    store.write(place, record_of(0))
    store.write_failure(place, failed_row(0), "")
    assert load(store.folder)["status"].tolist() == ["ok"]
    assert store.missing(place, [0]) == []


@pytest.mark.parametrize("text", ["{", "[]", '{"row": {"seed": 0}, "trace": ""}'])
def test_an_unreadable_failure_is_named_and_left_out(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    store.write_failure(place, failed_row(0), "")
    place.error(0).write_text(text)
    assert load(store.folder).empty
    assert str(place.error(0)) in caplog.text


def test_files_that_come_and_go_while_a_folder_is_read_are_no_matter(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for seed in (0, 1):
        store.write(place, record_of(seed))
    store.write_failure(place, failed_row(2), "")
    listed = store_module.list_files

    def list_then_change(root: Path, ending: str) -> list[Path]:
        found = listed(root, ending)
        place.file(1).unlink(missing_ok=True)
        store.write(place, record_of(2))  # which removes the failure
        return found

    monkeypatch.setattr(store_module, "list_files", list_then_change)
    found = survey(store.folder)
    assert found.runs["seed"].tolist() == [0]
    assert found.curves["seed"].unique().tolist() == [0]
    assert set(load(store.folder)["seed"]) == {0, 2}
    assert read_diagnostics(place.file(1)) == {}
    assert caplog.text == ""


def test_runs_of_several_versions_are_read_together(store: Store, place: Place) -> None:
    older = record_of(0)
    for name in ("final_oracle", "regret_final"):
        del older.row[name]
    for name in ("predicted", "survivors"):
        del older.curves[name]
    store.write(place, older)
    store.write(place, record_of(1, label="Mine", graph="discovered"))
    found = survey(store.folder)
    assert found.runs["regret_final"].isna().tolist() == [True, False]
    assert found.runs["label"].isna().tolist() == [True, False]
    assert found.curves["predicted"].isna().tolist() == [True] * 3 + [False] * 3
    assert found.curves["iteration"].tolist() == [0, 1, 2, 0, 1, 2]


def test_the_promised_columns_are_there_whatever_is_stored(store: Store, place: Place) -> None:
    store.folder.mkdir()
    frames = [load(store.folder)]
    curves = [load_curves(store.folder)]
    store.write_failure(place, failed_row(0), "")
    frames.append(load(store.folder))
    store.write(place, Record(row=failed_row(1) | {"status": "declined"}))
    frames.append(load(store.folder))
    curves.append(load_curves(store.folder))
    store.write(place, record_of(2))
    frames.append(load(store.folder))
    curves.append(load_curves(store.folder))
    for frame in frames:
        assert set(PROMISED) <= set(frame.columns)
    for frame in curves:
        assert set(PROMISED_CURVES) <= set(frame.columns)
    assert [len(frame) for frame in frames] == [0, 1, 2, 3]
    assert [len(frame) for frame in curves] == [0, 0, 3]


def test_a_missing_folder_holds_no_runs(store: Store) -> None:
    assert load(store.folder).empty
    assert load_curves(store.folder).empty
    assert not store.folder.exists()


def test_a_file_in_place_of_the_folder_is_refused(store: Store, place: Place) -> None:
    store.folder.write_text("not a folder")
    with pytest.raises(UsageError, match=r"^results_dir must be a folder that can be read, got "):
        store.missing(place, [0])


def test_runs_are_sorted_and_say_where_they_are(store: Store, place: Place) -> None:
    other = store.place("toy", "another", 3, 10, "xyz")
    for seed in (2, 0, 10):
        store.write(place, record_of(seed))
    store.write(other, record_of(1, method="another", digest="xyz"))
    runs = load(store.folder)
    assert runs["method"].tolist() == ["another", "mine", "mine", "mine"]
    assert runs["seed"].tolist() == [1, 0, 2, 10]
    assert all((store.folder / path).is_file() for path in runs["path"])


def test_curves_have_one_row_per_run_and_iteration(store: Store, place: Place) -> None:
    records = {seed: record_of(seed, length=seed + 2) for seed in (1, 0)}
    for record in records.values():
        store.write(place, record)
    curves = load_curves(store.folder)
    assert curves["seed"].tolist() == [0, 0, 1, 1, 1]
    assert curves["iteration"].tolist() == [0, 1, 0, 1, 2]
    for seed, record in records.items():
        mine = curves[curves["seed"] == seed]
        assert np.array_equal(mine["value_model"], record.curves["value_model"])
    assert not {"values", "predictions", "designs", "diagnostics"} & set(curves.columns)


def test_curves_that_only_some_runs_have_are_empty_for_the_others(
    store: Store, place: Place
) -> None:
    extra = record_of(0)
    extra.curves["residual"] = np.ones(3)
    store.write(place, extra)
    store.write(place, record_of(1))
    residual = load_curves(store.folder).groupby("seed")["residual"].sum(min_count=1)
    assert residual[0] == 3.0
    assert np.isnan(residual[1])


def test_nothing_is_pickled(store: Store, place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("pickled")

    for name in ("dump", "dumps", "load", "loads"):
        monkeypatch.setattr(pickle, name, refuse)
    path = store.write(place, record_of())
    read_record(path)
    load(store.folder)
    load_curves(store.folder)
    assert b"pickle" not in path.read_bytes()
    assert "pickle" not in vars(store_module)


def _write_often(folder: Path, final: float) -> None:
    store = Store(folder)
    place = store.place("toy", "mine", 3, 10, "abc")
    for _ in range(25):
        store.write(place, record_of(0, final_model=final))


def test_two_writers_of_one_run_leave_one_whole_file(store: Store, place: Place) -> None:
    with ThreadPoolExecutor() as pool:
        writers = [pool.submit(_write_often, store.folder, value) for value in (1.0, 2.0)]
        while not all(writer.done() for writer in writers):
            if place.file(0).exists():
                assert read_record(place.file(0)).row["final_model"] in (1.0, 2.0)
    for writer in writers:
        writer.result()
    assert [path.name for path in place.folder.iterdir()] == ["seed-00000.parquet"]


def test_writers_on_two_hosts_with_one_process_id_use_different_names(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    names: list[str] = []
    replace = os.replace

    def note(old: Path, new: Path) -> None:
        names.append(old.name)
        replace(old, new)

    monkeypatch.setattr(os, "replace", note)
    store.write(place, record_of())
    store.write(place, record_of())
    assert len(set(names)) == 2
    assert all(name.startswith(".") for name in names)


def test_a_frame_survives_a_concatenation_of_finished_and_declined_runs(
    store: Store, place: Place
) -> None:
    other = store.place("toy", "another", 3, 10, "xyz")
    store.write(place, record_of(0))
    declined = failed_row(0) | {"status": "declined", "method": "another", "digest": "xyz"}
    store.write(other, Record(row=declined))
    both = pd.concat([load(place.folder), load(other.folder)], ignore_index=True)
    assert both["status"].tolist() == ["ok", "declined"]
    assert both["final_model"].dtype == np.float64


def test_a_folder_that_cannot_be_read_does_not_count_as_empty(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(place, record_of(0))
    scan = os.scandir

    def refuse(path: Any) -> Any:
        if Path(path) == place.folder:
            raise PermissionError(13, "Permission denied", str(path))
        return scan(path)

    monkeypatch.setattr(os, "scandir", refuse)
    for read in (load, load_curves, survey):
        with pytest.raises(UsageError, match=r"must be a folder that can be read, got .*abc \(Per"):
            read(store.folder)


def test_a_file_in_the_place_of_a_results_folder_is_named(tmp_path: Path) -> None:
    (tmp_path / "runs").write_text("not a folder")
    with pytest.raises(UsageError, match=r"must be a folder that can be read, got .*runs \(Not a"):
        load(tmp_path / "runs")


def deep_list() -> list[Any]:
    """Return lists in lists, deeper than any reader follows."""
    nested: list[Any] = []
    for _ in range(80):
        nested = [nested]
    return nested


@pytest.mark.parametrize(
    ("diagnostics", "reason"),
    [({"text": "x" * 20_000_001}, "longer than"), ({"deep": deep_list()}, "nested deeper")],
    ids=["long", "deep"],
)
def test_diagnostics_that_no_reader_accepts_are_refused_when_they_are_stored(
    store: Store, place: Place, diagnostics: dict[str, Any], reason: str
) -> None:
    record = Record(row_of(), diagnostics=diagnostics)
    with pytest.raises(ValueError, match=f"the diagnostics of this run cannot be stored.*{reason}"):
        store.write(place, record)
    assert not place.folder.exists()


def test_a_huge_error_is_cut_and_stays_readable(store: Store, place: Place) -> None:
    store.write_failure(place, failed_row(0) | {"reason": "x" * 30_000_000}, "y" * 30_000_000)
    (reason,) = load(store.folder)["reason"]
    assert set(reason) == {"x"}
    assert place.error(0).stat().st_size < 2_000_000
