"""Stacks of seeds are as large as memory has room for, and one that finds none is halved."""

from dataclasses import replace
from pathlib import Path
from typing import ClassVar

import pytest
import torch

from ddobench.baselines.ridge import AdditiveRidge
from ddobench.contracts import Dataset
from ddobench.errors import UsageError
from ddobench.parts.search import Ascent
from ddobench.rng import Streams
from ddobench.runner import limits
from ddobench.runner.batches import Outcome, execute
from ddobench.runner.limits import check_memory, fit_seeds, is_out_of_memory
from ddobench.store.runs import Store, load
from tests.support.fakes import Climb, specify_fake
from tests.support.lineups import assemble, ga

TORCH = RuntimeError(
    "[enforce fail at alloc_cpu.cpp:121] err == 0. DefaultCPUAllocator: can't allocate memory: you "
    "tried to allocate 800000000000 bytes. Error code 12 (Cannot allocate memory)"
)


class Greedy(Climb):
    """Finds no memory for more than a few seeds at once."""

    name: ClassVar[str] = "greedy"
    room: ClassVar[int] = 2
    error: ClassVar[BaseException] = TORCH
    tried: ClassVar[list[list[int]]] = []

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Raise what PyTorch would."""
        self.tried.append([*rng.seeds])
        if len(rng.seeds) > self.room:
            raise self.error
        super().fit(data, rng)


@pytest.mark.parametrize("error", [TORCH, MemoryError(), torch.OutOfMemoryError("CUDA")])
def test_a_stack_that_finds_no_memory_is_halved_and_says_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
) -> None:
    monkeypatch.setattr(Greedy, "error", error)
    monkeypatch.setattr(Greedy, "tried", [])
    assert execute(specify_fake(Greedy), range(7), Store(tmp_path)) == Outcome(ok=7)
    assert Greedy.tried == [
        [0, 1, 2, 3, 4, 5, 6], [0, 1, 2], [0], [1, 2], [3, 4, 5, 6], [3, 4], [5, 6],
    ]  # fmt: skip
    assert "seed 0-6: out of memory with 7 seeds, retrying 3 and 4" in caplog.text
    assert "memory_gb=GB or seeds_per_job=3 makes smaller batches from the start" in caplog.text
    assert load(tmp_path)["status"].eq("ok").all()


def test_a_lone_seed_that_finds_no_memory_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Greedy, "room", 0)
    assert execute(specify_fake(Greedy), [0, 1], Store(tmp_path)) == Outcome(failed=2)
    assert load(tmp_path)["reason"].str.contains("can't allocate memory").all()


def test_a_real_allocation_that_is_too_large_is_known_as_one() -> None:
    with pytest.raises(RuntimeError, match="alloc") as caught:
        torch.empty(2**55)
    assert is_out_of_memory(caught.value)
    assert not is_out_of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))
    assert not is_out_of_memory(ValueError("out of memory"))


def test_stacks_are_as_large_as_memory_gb_has_room_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(Greedy, "tried", [])
    monkeypatch.setattr(Greedy, "room", 9)
    monkeypatch.setattr(limits, "PROGRAM_BYTES", 0.0)
    one = limits.seed_bytes(n=20, d=3)
    spec = replace(specify_fake(Greedy), memory_gb=3.5 * one / 1e9)
    caplog.set_level("INFO", "ddobench")
    assert execute(spec, range(7), Store(tmp_path)) == Outcome(ok=7)
    assert Greedy.tried == [[0, 1, 2], [3, 4, 5], [6]]
    assert "3 seeds at a time, as memory has room for no more" in caplog.text
    assert spec.digest == specify_fake(Greedy).digest


def test_a_stack_may_take_half_of_what_is_free_and_workers_share_that(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    one = limits.seed_bytes(n=1000, d=10)
    monkeypatch.delenv(limits.WORKERS, raising=False)
    monkeypatch.setattr(limits, "free_memory", lambda: 40.5 * one)
    assert fit_seeds(1000, 10, None) == 20
    monkeypatch.setenv(limits.WORKERS, "4")
    assert fit_seeds(1000, 10, None) == 5
    monkeypatch.setattr(limits, "free_memory", lambda: 0.0)
    assert fit_seeds(1000, 10, None) == 1  # which is tried, at least
    monkeypatch.setattr(limits, "free_memory", lambda: None)
    assert fit_seeds(1000, 10, None) is None


@pytest.mark.parametrize("value", [0, -1, True, "much", float("nan"), float("inf")])
def test_memory_is_a_number_of_gigabytes(value: object) -> None:
    with pytest.raises(UsageError, match="memory_gb must be a number above 0, or null"):
        check_memory(value)


def test_what_is_free_is_something_where_the_system_says() -> None:
    free = limits.free_memory()
    assert free is None or free > 0


def test_a_container_has_what_its_limit_leaves_but_for_files_that_are_merely_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    messages = {
        "memory.max": "1000\n",
        "memory.current": "900\n",
        "memory.stat": "anon 300\nfile 600\n",
    }
    for name, text in messages.items():
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(limits, "_CGROUP", tmp_path)
    assert limits.free_memory() == 700
    (tmp_path / "memory.max").write_text("max\n")
    free = limits.free_memory()
    assert free is None or free > 1000


def test_a_job_of_a_cluster_has_what_it_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_MEM_PER_NODE", "3")
    assert limits.free_memory() == 3 * 1024**2


def test_what_a_fit_takes_once_leaves_less_for_seeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "PROGRAM_BYTES", 0.0)
    one = limits.seed_bytes(n=1000, d=10)
    room = 10.5 * one / 1e9
    assert fit_seeds(1000, 10, room) == 10
    assert fit_seeds(1000, 10, room, once=4 * one) == 6
    assert fit_seeds(1000, 10, room, once=40 * one) == 1


def test_a_ridge_says_what_its_table_of_features_takes() -> None:
    ridge = AdditiveRidge()
    features = ridge.count_features(61)
    assert ridge.working_bytes(100_000, 61) == pytest.approx(1.9 * 8 * 100_000 * features)
    lined_up = assemble(ridge, Ascent(steps=6))
    assert lined_up.working_bytes(100_000, 61) == ridge.working_bytes(100_000, 61)
    assert ga().working_bytes(100_000, 61) == 0
