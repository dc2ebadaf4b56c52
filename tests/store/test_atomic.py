"""Files are written whole or not at all; what killed writers left goes, what lives stays."""

import fcntl
import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ddobench.errors import StorageError
from ddobench.store import atomic
from ddobench.store.atomic import check_room, remove_leftovers, write_whole
from ddobench.store.runs import Store
from tests.support.records import record_of

LEFT = f".seed-00001.parquet.{'0' * 32}.tmp"  # as a writer calls its file until it is done


@contextmanager
def limited(size: int) -> Iterator[None]:
    """Let the system refuse every file larger than some bytes, as a full disk would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.fixture(autouse=True)
def _forget(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(atomic, "_largest_refused", 0)


def names(folder: Path) -> list[str]:
    """List a folder."""
    return sorted(path.name for path in folder.iterdir())


def test_a_file_for_which_there_is_no_room_leaves_the_older_one_and_one_sentence(
    tmp_path: Path,
) -> None:
    path = write_whole(tmp_path / "file", b"old")
    with limited(1000), pytest.raises(StorageError) as caught:
        write_whole(path, bytes(2000))
    assert str(caught.value) == (
        f"{path} cannot be written: File too large; "
        "make room or permit it there, or choose another folder"
    )
    assert path.read_bytes() == b"old"
    assert names(tmp_path) == ["file"]


def test_room_is_looked_for_before_it_is_needed(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "folder"
    check_room(folder)
    assert names(folder) == []
    with limited(atomic.ROOM - 1), pytest.raises(StorageError, match="folder cannot be written"):
        check_room(folder)
    assert names(folder) == []


def test_there_is_room_only_for_what_was_refused_before(tmp_path: Path) -> None:
    large = 2 * atomic.ROOM
    with limited(large - 1):
        check_room(tmp_path)
        with pytest.raises(StorageError, match="File too large"):
            write_whole(tmp_path / "file", bytes(large))
        with pytest.raises(StorageError, match="File too large"):
            check_room(tmp_path)
    check_room(tmp_path)


def test_a_file_in_the_way_of_a_folder_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(StorageError, match=r"file/folder cannot be written: Not a directory; make"):
        check_room(tmp_path / "file" / "folder")


def test_what_a_killed_writer_left_is_removed_by_whoever_looks_for_missing_runs(
    tmp_path: Path,
) -> None:
    store = Store(tmp_path)
    place = store.place("toy", "mine", 3, 10, "abc")
    store.write(place, record_of(0))
    cache = tmp_path / ".cache" / "vae-0"
    cache.mkdir(parents=True)
    for folder in (place.folder, tmp_path, cache):
        (folder / LEFT).write_bytes(b"half")
        (folder / ".mine.tmp").write_bytes(b"not of our making")
    assert store.missing(place, [0, 1]) == [1]
    store.check_room(place)
    assert sorted(path.name for path in tmp_path.rglob("*.tmp")) == [".mine.tmp"] * 3


def test_the_file_of_a_writer_at_work_stays(tmp_path: Path) -> None:
    with (tmp_path / LEFT).open("wb") as writer:
        fcntl.flock(writer, fcntl.LOCK_EX)
        remove_leftovers(tmp_path, [LEFT])
        assert names(tmp_path) == [LEFT]
    remove_leftovers(tmp_path, [LEFT])
    assert names(tmp_path) == []


def test_a_file_taken_for_a_leftover_before_it_was_locked_is_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lock, removed = fcntl.flock, list[str]()

    def come_second(handle: int, how: int) -> None:
        if how == fcntl.LOCK_EX and not removed:  # a writer, for the first time
            removed.extend(names(tmp_path))
            remove_leftovers(tmp_path, removed)
        lock(handle, how)

    monkeypatch.setattr(fcntl, "flock", come_second)
    write_whole(tmp_path / "file", "text")
    assert len(removed) == 1
    assert (tmp_path / "file").read_text() == "text"
    assert names(tmp_path) == ["file"]


def test_where_there_are_no_locks_files_are_written_and_leftovers_stay(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(95, "Operation not supported")

    monkeypatch.setattr(fcntl, "flock", refuse)
    write_whole(tmp_path / "file", "text")
    (tmp_path / LEFT).touch()
    remove_leftovers(tmp_path, [LEFT])
    assert names(tmp_path) == sorted(["file", LEFT])


def test_a_folder_that_goes_away_for_good_is_one_sentence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def vanish(*_: object) -> None:
        raise FileNotFoundError(2, "No such file or directory")

    monkeypatch.setattr(os, "replace", vanish)
    with pytest.raises(StorageError, match="file cannot be written: No such file or directory"):
        write_whole(tmp_path / "file", "text")
    assert names(tmp_path) == []


@pytest.mark.parametrize("name", ["run:1", "s3://x", "a?b=c", "%41", "ä ö", "hdfs:run"])
def test_a_folder_may_be_called_like_an_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.chdir(tmp_path)
    store = Store(name)
    place = store.place("toy", "mine", 3, 10, "abc")
    store.write(place, record_of(0))
    assert (tmp_path / name).is_dir()
    assert store.missing(place, [0, 1]) == [1]
    from ddobench.store.runs import load, load_curves, read_record

    assert load(name)["seed"].tolist() == [0]
    assert len(load_curves(name)) == 3
    assert read_record(place.file(0)).row["seed"] == 0
