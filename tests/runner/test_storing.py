"""What cannot be stored is not computed in vain; what goes wrong while storing is a failed run."""

import resource
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

from ddobench.contracts import Dataset
from ddobench.errors import StorageError
from ddobench.rng import Streams
from ddobench.runner.batches import Outcome, execute
from ddobench.store import atomic
from ddobench.store.runs import Store, load
from tests.support.fakes import Climb, specify_fake

SMALL = 100  # bytes, fewer than any file of a run has


def limit_files(size: int) -> None:
    """Let the system refuse every file larger than some bytes, as a full disk would."""
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))


@pytest.fixture(autouse=True)
def _restored(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Lift every limit afterwards, and forget what was refused."""
    monkeypatch.setattr(atomic, "_largest_refused", 0)
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, before)


class Filling(Climb):
    """Two seeds at once; the disk is full from the third seed on."""

    name: ClassVar[str] = "filling"
    seeds_at_once: ClassVar[int | None] = 2
    fitted: ClassVar[list[int]] = []

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Note the seeds, and fill the disk."""
        self.fitted.extend(rng.seeds)
        if 2 in rng.seeds:
            limit_files(SMALL)
        super().fit(data, rng)


@pytest.fixture
def fitted(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Return the list of seeds that were fitted."""
    monkeypatch.setattr(Filling, "fitted", [])
    return Filling.fitted


def test_nothing_is_computed_for_a_full_disk(tmp_path: Path, fitted: list[int]) -> None:
    limit_files(SMALL)
    with pytest.raises(StorageError, match=r"cannot be written: File too large; make room or"):
        execute(specify_fake(Filling), range(6), Store(tmp_path))
    assert fitted == []


def test_the_first_failed_write_stops_the_sweep_and_keeps_what_is_stored(
    tmp_path: Path, fitted: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, spec = Store(tmp_path), specify_fake(Filling)
    with pytest.raises(StorageError, match=r"seed-00002.parquet cannot be written: File too large"):
        execute(spec, range(6), store)
    with pytest.raises(StorageError, match="cannot be written: File too large"):
        execute(spec, range(6), store)
    assert fitted == [0, 1, 2, 3], "the next job does not even begin"
    assert load(tmp_path)["status"].tolist() == ["ok", "ok"]
    assert not list(tmp_path.rglob("*.tmp"))
    limit_files(resource.getrlimit(resource.RLIMIT_FSIZE)[1])
    monkeypatch.setattr("tests.runner.test_storing.limit_files", lambda _: None)
    assert execute(spec, range(6), store) == Outcome(ok=4)


class Tangled(Climb):
    """Tells things of one seed that contain themselves."""

    name: ClassVar[str] = "tangled"

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Remember the seeds."""
        self.seeds = rng.seeds
        super().fit(data, rng)

    def diagnostics(self) -> Sequence[Mapping[str, Any]]:
        """Tangle the second seed."""
        diagnostics: list[dict[str, Any]] = [{} for _ in self.seeds]
        diagnostics[1]["itself"] = diagnostics[1]
        return diagnostics


def test_an_error_while_storing_is_a_failed_run_with_its_reason(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert execute(specify_fake(Tangled), [0, 1, 2], Store(tmp_path)) == Outcome(ok=2, failed=1)
    runs = load(tmp_path).set_index("seed")
    assert runs["status"].to_dict() == {0: "ok", 1: "failed", 2: "ok"}
    assert runs["reason"][1] == "cannot be stored: ValueError: Circular reference detected"
    assert "Traceback" in (tmp_path / runs["path"][1]).read_text()
    assert "seed 1 failed: cannot be stored: ValueError: Circular" in caplog.text


def test_a_folder_below_a_file_is_one_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match=r"results_dir must be a folder that can be read, got "):
        execute(specify_fake(Climb), [0], Store(tmp_path / "file" / "runs"))
