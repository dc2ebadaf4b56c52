"""What is kept between runs, and what is not."""

import shutil
from pathlib import Path

import numpy as np
import pytest

from ddobench.store.cache import ArrayCache, Arrays
from tests.support.records import flip_bit

KEY = {"steps": 10, "rate": 0.1}
ARRAYS: Arrays = {"weights": np.arange(6, dtype=np.float32).reshape(2, 3), "losses": np.ones(4)}


def files(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_what_is_kept_comes_back_bit_by_bit(tmp_path: Path) -> None:
    ArrayCache(tmp_path, "task").put("vae", KEY, 3, ARRAYS)
    found = ArrayCache(tmp_path, "task").get("vae", dict(reversed(KEY.items())), 3)
    assert found is not None
    assert found.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


@pytest.mark.parametrize(
    ("task", "kind", "key", "seed"),
    [
        ("other", "vae", KEY, 3),
        ("task", "flow", KEY, 3),
        ("task", "vae", {**KEY, "steps": 11}, 3),
        ("task", "vae", KEY, 4),
    ],
)
def test_nothing_else_comes_back(
    tmp_path: Path, task: str, kind: str, key: dict[str, float], seed: int
) -> None:
    ArrayCache(tmp_path, "task").put("vae", KEY, 3, ARRAYS)
    assert ArrayCache(tmp_path, task).get(kind, key, seed) is None


def test_without_a_folder_nothing_is_kept() -> None:
    cache = ArrayCache()
    cache.put("vae", KEY, 3, ARRAYS)
    assert cache.get("vae", KEY, 3) is None


def test_files_are_whole_and_have_no_leftovers(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", KEY, 3, ARRAYS)
    cache.put("vae", KEY, 3, ARRAYS)
    assert [path.name for path in files(tmp_path)] == ["seed-00003.npz"]


def test_a_file_that_cannot_be_read_is_named_and_ignored(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", KEY, 3, ARRAYS)
    (path,) = files(tmp_path)
    for damage in (path.read_bytes()[:40], b"", b"no archive"):
        path.write_bytes(damage)
        caplog.clear()
        assert cache.get("vae", KEY, 3) is None
        assert f"{path} cannot be used and is made anew" in caplog.text


def test_nothing_that_needs_pickle_is_kept(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path, "task")
    with pytest.raises(ValueError, match="Object arrays cannot be saved"):
        cache.put("vae", KEY, 3, {"thing": np.array([{}], dtype=object)})
    assert files(tmp_path) == []


def only(folder: Path) -> Path:
    """Return the only file."""
    (path,) = files(folder)
    return path


def test_an_entry_copied_from_another_seed_or_task_is_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ArrayCache(tmp_path / "mine", "task")
    cache.put("vae", KEY, 3, ARRAYS)
    for task, key, seed in (("task", KEY, 4), ("other", KEY, 3), ("task", {"steps": 11}, 3)):
        foreign = tmp_path / f"{task}{seed}{len(key)}"
        ArrayCache(foreign, task).put("vae", key, seed, ARRAYS)
        shutil.copy(only(foreign), only(tmp_path / "mine"))
        caplog.clear()
        assert cache.get("vae", KEY, 3) is None
        assert f"cannot be used and is made anew: it is of {{'kind': 'vae', 'task': '{task}'" in (
            caplog.text
        )


def test_an_entry_that_does_not_fit_is_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", KEY, 3, ARRAYS)
    assert cache.get("vae", KEY, 3, {"weights": (2, 3), "losses": None}) is not None
    assert caplog.text == ""
    assert cache.get("vae", KEY, 3, {"weights": (3, 2)}) is None
    assert "its weights must have the shape (3, 2), got (2, 3)" in caplog.text
    assert cache.get("vae", KEY, 3, {"biases": None}) is None
    assert "it has no biases" in caplog.text


def test_an_entry_without_a_label_is_named_and_not_used(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", KEY, 3, ARRAYS)
    with only(tmp_path).open("wb") as file:
        np.savez(file, allow_pickle=False, **ARRAYS)
    assert cache.get("vae", KEY, 3) is None
    assert "it has no label" in caplog.text


def test_numbers_changed_behind_a_right_label_are_noticed(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", KEY, 3, ARRAYS)
    with np.load(only(tmp_path)) as kept:
        arrays = {name: kept[name] for name in kept.files}
    arrays["losses"] = arrays["losses"] + 1
    with only(tmp_path).open("wb") as file:
        np.savez(file, allow_pickle=False, **arrays)
    assert cache.get("vae", KEY, 3) is None
    assert "damaged: its arrays do not match their checksum" in caplog.text


def test_no_flipped_bit_changes_what_comes_back(tmp_path: Path) -> None:
    cache = ArrayCache(tmp_path, "task")
    cache.put("vae", KEY, 3, ARRAYS)
    path = only(tmp_path)
    for bit in range(0, 8 * path.stat().st_size, 7):
        flip_bit(path, bit)
        found = cache.get("vae", KEY, 3)
        assert found is None or all(np.array_equal(found[name], ARRAYS[name]) for name in ARRAYS)
        flip_bit(path, bit)
    assert cache.get("vae", KEY, 3) is not None
