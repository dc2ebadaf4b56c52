"""Folded runs are what they were, for every reader, and a compaction loses nothing."""

import os
import re
import shutil
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from ddobench.compact import main
from ddobench.errors import StorageError, UsageError
from ddobench.store import folding
from ddobench.store import runs as store_module
from ddobench.store.atomic import write_whole
from ddobench.store.folding import PARTS, compact, publish
from ddobench.store.parquet import COLUMNS, SCHEMA, open_runs
from ddobench.store.records import SAMPLES, Record
from ddobench.store.runs import (
    FOLDED,
    Place,
    Store,
    load,
    load_curves,
    load_samples,
    read_diagnostics,
    read_record,
    survey,
)
from tests.support.killed import Killed, Mortal
from tests.support.records import (
    change_run,
    failed_row,
    flip_bit,
    record_of,
    row_of,
    same_record,
    truncate,
)
from tests.support.synthetic_samples import task_sample

SEEDS = 6


@pytest.fixture
def full(store: Store, place: Place) -> Store:
    """Return a store with runs of different lengths, one of them declined."""
    for seed in range(SEEDS - 1):
        store.write(place, record_of(seed, length=1 + seed % 3))
    store.write(place, Record(row=row_of(SEEDS - 1, status="declined", reason="no")))
    return store


def frames(folder: Path) -> list[pd.DataFrame]:
    """Return all that is summarised of a folder."""
    found = survey(folder)
    return [load(folder), load_curves(folder), found.runs, found.curves]


def names(folder: Path) -> list[str]:
    """Return the names of the files in a folder."""
    return sorted(path.name for path in folder.iterdir())


def damage(path: Path, seed: int, column: str) -> None:
    """Turn a bit in one column of one run."""
    with open_runs(path) as file:
        group = file.parquet.metadata.row_group(file.places[seed])
        chunk = group.column(COLUMNS.names.index(column))
    flip_bit(path, 8 * (chunk.data_page_offset + chunk.total_compressed_size - 1))


def test_a_compacted_folder_gives_every_reader_what_it_gave_before(
    full: Store, place: Place
) -> None:
    records = [read_record(place.file(seed)) for seed in range(SEEDS)]
    before, whole = frames(full.folder), survey(full.folder)
    folded = compact(full.folder)
    assert (folded.runs, folded.files, folded.single, folded.left) == (SEEDS, 1, SEEDS, [])
    assert names(place.folder) == ["seeds-00000.parquet"]
    for one, other in zip(before, frames(full.folder), strict=True):
        pd.testing.assert_frame_equal(one, other)
    now = survey(full.folder)
    assert (now.configs, now.provenance, now.left_out) == (
        whole.configs, whole.provenance, whole.left_out,
    )  # fmt: skip
    for seed, record in enumerate(records):
        assert same_record(read_record(place.file(seed)), record)
        assert read_record(place.file(seed)).provenance == record.provenance
        assert read_diagnostics(place.file(seed)) == record.diagnostics
    assert full.missing(place, range(SEEDS + 1)) == [SEEDS]
    assert sorted(place.seeds()) == [*range(SEEDS)]


def test_later_runs_are_folded_into_the_same_file(full: Store, place: Place) -> None:
    compact(full.folder)
    full.write(place, record_of(SEEDS))
    full.write(place, record_of(FOLDED))
    folded = compact(full.folder)
    assert (folded.runs, folded.single) == (SEEDS + 2, 2)
    assert names(place.folder) == ["seeds-00000.parquet", "seeds-00500.parquet"]
    assert set(load(full.folder)["seed"]) == {*range(SEEDS + 1), FOLDED}


def test_a_second_compaction_changes_nothing(full: Store, place: Place) -> None:
    compact(full.folder)
    before = place.folded(0).stat().st_mtime_ns
    assert compact(full.folder).single == 0
    assert place.folded(0).stat().st_mtime_ns == before


def test_a_file_beside_a_folded_one_counts_before_it(full: Store, place: Place) -> None:
    compact(full.folder)
    full.write(place, record_of(0, final_model=9.0))
    assert load(full.folder)["final_model"][0] == 9.0
    assert read_record(place.file(0)).row["final_model"] == 9.0
    compact(full.folder)
    assert load(full.folder)["final_model"][0] == 9.0
    assert len(load(full.folder)) == SEEDS


def test_a_damaged_file_beside_a_folded_one_is_named_and_the_folded_run_is_read(
    full: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    compact(full.folder)
    full.write(place, record_of(0))
    truncate(place.file(0))
    assert len(load(full.folder)) == SEEDS
    assert f"{place.file(0)} is not a readable run" in caplog.text
    assert read_diagnostics(place.file(0)) == record_of(0).diagnostics
    assert full.missing(place, [0]) == []


@pytest.mark.parametrize("read", [load, load_curves, survey])
def test_a_run_damaged_in_a_folded_file_is_left_out_by_name_and_the_others_are_read(
    full: Store, place: Place, caplog: pytest.LogCaptureFixture, read: Callable[[Path], Any]
) -> None:
    compact(full.folder)
    damage(place.folded(0), seed=2, column="row")
    found = read(full.folder)
    rows = found.runs if read is survey else found
    assert 2 not in set(rows["seed"])
    assert {0, 1, 3, 4} <= set(rows["seed"])
    assert f"{place.file(2)} is not a readable run and is left out: " in caplog.text


def test_a_damaged_run_is_run_again_and_folded_over_the_damage(full: Store, place: Place) -> None:
    compact(full.folder)
    damage(place.folded(0), seed=1, column="arrays")
    assert full.missing(place, range(SEEDS)) == [1]
    full.write(place, record_of(1))
    assert full.missing(place, range(SEEDS)) == []
    compact(full.folder)
    assert names(place.folder) == ["seeds-00000.parquet"]
    assert full.missing(place, range(SEEDS)) == []
    assert same_record(read_record(place.file(1)), record_of(1))


def test_a_folded_file_with_a_damaged_run_is_not_written_anew_without_it(
    full: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    compact(full.folder)
    damage(place.folded(0), seed=1, column="arrays")
    before = place.folded(0).read_bytes()
    full.write(place, record_of(SEEDS))
    assert compact(full.folder).left == [place.folded(0)]
    assert f"{place.folded(0)} is not a readable run" in caplog.text
    assert place.folded(0).read_bytes() == before
    assert place.file(SEEDS).exists()


def test_what_cannot_be_folded_is_named_and_stays(
    full: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    truncate(place.file(0))
    change_run(place.file(1), schema=SCHEMA + 1)
    folded = compact(full.folder)
    stay = [place.file(seed) for seed in range(2)]
    assert folded.left == stay
    assert all(f"{path} is not a readable run" in caplog.text for path in stay)
    assert names(place.folder) == [*(path.name for path in stay), "seeds-00000.parquet"]


def test_failures_and_samples_stay(full: Store, place: Place) -> None:
    full.write_failure(place, failed_row(SEEDS), "Traceback")
    before = load(full.folder)
    compact(full.folder)
    pd.testing.assert_frame_equal(load(full.folder), before)
    assert names(place.folder) == ["seed-00006.error.json", "seeds-00000.parquet"]


def test_nothing_is_removed_if_a_folded_file_does_not_hold_what_was_written(
    full: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:

    def write_badly(path: Path, content: bytes) -> None:
        write_whole(path, content)
        damage(path, seed=0, column="curves")

    monkeypatch.setattr(folding, "write_whole", write_badly)
    with pytest.raises((StorageError, ValueError), match=r"does not hold what|damaged"):
        compact(full.folder)
    assert all(place.file(seed).exists() for seed in range(SEEDS))


def test_a_file_that_changed_since_it_was_read_is_not_removed(
    full: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = folding._flush

    def flush_while_a_run_ends(folder: Path) -> None:
        flush(folder)
        full.write(place, record_of(0, final_model=9.0))

    monkeypatch.setattr(folding, "_flush", flush_while_a_run_ends)
    compact(full.folder)
    assert names(place.folder) == ["seed-00000.parquet", "seeds-00000.parquet"]
    assert load(full.folder)["final_model"][0] == 9.0


def test_one_compaction_at_a_time_works_in_a_folder(full: Store) -> None:
    with folding._alone(full.folder), pytest.raises(UsageError, match="another compaction"):
        compact(full.folder)


def test_readers_find_every_run_while_files_are_folded(
    full: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = store_module.list_files

    def list_then_fold(root: Path, ending: str) -> list[Path]:
        found = files(root, ending)
        if ending == ".parquet" and found:
            monkeypatch.setattr(store_module, "list_files", files)
            compact(full.folder)
        return found

    monkeypatch.setattr(store_module, "list_files", list_then_fold)
    assert len(load(full.folder)) == SEEDS
    assert names(place.folder) == ["seeds-00000.parquet"]


def test_a_compaction_killed_at_any_moment_loses_nothing_and_is_continued(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [record_of(seed) for seed in range(3)]

    def check() -> None:
        assert store.missing(place, range(3)) == []
        for seed, record in enumerate(records):
            assert same_record(read_record(place.file(seed)), record)

    moments = 0
    for moment in count():
        for record in records:
            store.write(place, record)
        with monkeypatch.context() as patched:
            system = Mortal(moment, patched)
            with suppress(Killed):
                compact(store.folder)
            system.close_files()
        check()
        if system.left:  # it was done before
            break
        moments += 1
        compact(store.folder)
        check()
        assert names(place.folder) == ["seeds-00000.parquet"]
        shutil.rmtree(store.folder)
    assert moments > 10


SAMPLED = {name: [[0.1, 0.2]] for name in SAMPLES} | {"values_sample": [0.5], "edges": [[0, 1]]}


def sampled_record(seed: int) -> Record:
    """Return a run with samples of its designs and codes."""
    record = record_of(seed)
    return Record(**{**vars(record), "diagnostics": SAMPLED})


@pytest.fixture
def published(store: Store, place: Place, tmp_path: Path) -> Path:
    """Return a copy of runs with samples, of which the first was declined and one failed."""
    store.write(place, Record(row=row_of(0, status="declined", reason="no")))
    for seed in range(1, 4):
        store.write(place, sampled_record(seed))
    store.write_failure(place, failed_row(4), "Traceback of this machine")
    store.write_sample(store.sample("toy", "abc"), task_sample(task="toy"))
    publish(store.folder, tmp_path / "published")
    return tmp_path / "published"


def test_a_published_copy_has_what_a_report_reads_and_leaves_the_runs_alone(
    store: Store, place: Place, published: Path
) -> None:
    for one, other in zip(frames(store.folder), frames(published), strict=True):
        pd.testing.assert_frame_equal(one, other)
    assert survey(published).configs == survey(store.folder).configs
    assert survey(published).provenance == survey(store.folder).provenance
    assert load_samples(published) == load_samples(store.folder)
    assert same_record(read_record(place.file(1)), sampled_record(1))
    assert "Traceback" not in "".join(
        path.read_text() for path in published.rglob("*.error.json")
    )  # fmt: skip


def test_a_published_record_says_what_it_was_left_without(published: Path) -> None:
    (folder,) = (path for path in published.iterdir() if path.is_dir())
    declined, first, second, _ = (
        read_record(folder / f"seed-{seed:05d}.parquet") for seed in range(4)
    )
    assert declined.left_out == ()
    assert first.left_out == ("designs", "predictions", "values")
    assert second.left_out == ("designs", "predictions", "samples", "values")
    assert [vars(second)[name] for name in ("values", "predictions", "designs")] == [None] * 3
    assert first.diagnostics == SAMPLED
    assert second.diagnostics == {"edges": [[0, 1]], "left_out": list(SAMPLES)}


def test_a_published_command_names_no_folder_of_this_machine(
    store: Store, place: Place, tmp_path: Path
) -> None:
    typed = {
        "python -m ddobench -m task=nk results_dir=/home/me/my runs seed=0": "task=nk seed=0",
        "python -m ddobench -m results_dir=runs +designs=8 seed=1": "+designs=8 seed=1",
        "python -m ddobench task=nk results_dir=runs -m seed=2": "task=nk -m seed=2",
        "python -m ddobench -m seed=3 results_dir=../my runs": "seed=3",
    }
    for seed, command in enumerate(typed):
        record = record_of(seed)
        store.write(place, Record(**{**vars(record), "row": {**record.row, "command": command}}))
    publish(store.folder, tmp_path / "copy")
    found = load(tmp_path / "copy").set_index("seed")["command"]
    for seed, rest in enumerate(typed.values()):
        assert found[seed].removeprefix("python -m ddobench ").removeprefix("-m ") == rest


def test_the_parts_to_leave_out_may_be_named(store: Store, place: Place, tmp_path: Path) -> None:
    store.write(place, sampled_record(0))
    publish(store.folder, tmp_path / "copy", ["values"])
    found = read_record(tmp_path / "copy" / place.folder.name / "seed-00000.parquet")
    assert found.left_out == ("values",)
    kept = [name for name in ("values", "predictions", "designs") if vars(found)[name] is not None]
    assert kept == ["predictions", "designs"]
    with pytest.raises(UsageError, match=f"can be left out is {', '.join(PARTS)}, got 'curves'"):
        publish(store.folder, tmp_path / "copy", ["curves"])


def test_a_copy_of_folded_runs_is_that_of_their_files_to_the_byte(
    store: Store, published: Path, tmp_path: Path
) -> None:
    compact(store.folder)
    publish(store.folder, tmp_path / "again")
    found = {path.relative_to(published): path.read_bytes()
             for path in published.rglob("*") if path.is_file()}  # fmt: skip
    again = tmp_path / "again"
    assert found == {path.relative_to(again): path.read_bytes()
                     for path in again.rglob("*") if path.is_file()}  # fmt: skip
    publish(store.folder, published)  # over what is there
    assert found == {path.relative_to(published): path.read_bytes()
                     for path in published.rglob("*") if path.is_file()}  # fmt: skip


def test_runs_of_several_folders_are_published_in_one(published: Path, tmp_path: Path) -> None:
    other = Store(tmp_path / "other")
    other.write(other.place("toy", "mine", 3, 10, "abc"), sampled_record(7))
    publish(other.folder, published)
    assert load(published)["seed"].tolist() == [0, 1, 2, 3, 4, 7]


def test_the_command_line_says_what_became_of_the_runs(
    full: Store, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copy = tmp_path / "copy"
    assert main([str(full.folder), "--publish", str(copy)]) == 0
    assert re.fullmatch(
        rf"{SEEDS} runs are in 1 files of {re.escape(str(copy))}, [\d.]+ KB, [\d.]+ K?B a run; "
        rf"{SEEDS} of them were read from [\d.]+ KB\n", capsys.readouterr().out,
    )  # fmt: skip
    assert main([str(full.folder)]) == 0
    assert f"{SEEDS} runs are in 1 files of {full.folder}" in capsys.readouterr().out
    assert main([str(full.folder)]) == 0
    assert "read from" not in capsys.readouterr().out
    (tmp_path / "empty").mkdir()
    assert main([str(tmp_path / "empty")]) == 0
    assert "there are no finished runs to fold" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["nowhere"], "there is no folder nowhere; give one that runs were stored in"),
        (["{folder}", "--without", "values"], "--without is for a copy; name its folder"),
        (["{folder}", "--publish", "{folder}"], "runs are published in another folder than"),
        (["{folder}", "--publish", "x", "--without", "rows"], "what can be left out is values,"),
    ],
)
def test_a_request_that_makes_no_sense_is_answered_in_one_sentence(
    full: Store, capsys: pytest.CaptureFixture[str], words: list[str], said: str
) -> None:
    with pytest.raises(SystemExit, match="2"):
        main([word.format(folder=full.folder) for word in words])
    assert capsys.readouterr().err.startswith(f"ddobench: {said}")


def replace_by_pipe(path: Path) -> None:
    """Put something there that waits for a writer once it is opened."""
    path.unlink()
    os.mkfifo(path)


@pytest.mark.parametrize("damage", [truncate, replace_by_pipe])
def test_a_folder_whose_only_file_is_damaged_is_named_and_skipped(
    store: Store,
    place: Place,
    caplog: pytest.LogCaptureFixture,
    capsys: pytest.CaptureFixture[str],
    damage: Callable[[Path], object],
) -> None:
    other = store.place("toy", "another", 3, 10, "xyz")
    store.write(other, record_of(0, method="another", digest="xyz"))
    damage(store.write(place, record_of(0)))
    assert main([str(store.folder)]) == 0
    assert f"{place.file(0)} is not a readable run" in caplog.text
    assert "1 runs are in 1 files" in capsys.readouterr().out
    damage(place.file(0).rename(place.folded(0)))
    assert main([str(store.folder)]) == 0


def test_a_run_in_the_wrong_file_is_named_with_that_file(
    full: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    compact(full.folder)
    other = full.place("another", "method", 3, 20, "0" * 16)
    other.folder.mkdir()
    shutil.copy(place.folder / "seeds-00000.parquet", other.folder)
    load(full.folder)
    assert "another run than its name says, in seeds-00000.parquet" in caplog.text
