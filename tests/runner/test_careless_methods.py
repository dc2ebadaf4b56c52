"""A careless method spoils neither its own scores nor the runs of others."""

import asyncio
import multiprocessing
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import pytest
import torch
from torch import Tensor

from ddobench.check.promises import compare_records
from ddobench.contracts import Dataset, HiddenRows, Method, Privilege, Proposal, Space, Task
from ddobench.errors import UsageError
from ddobench.rng import Streams
from ddobench.runner.batches import Outcome, execute
from ddobench.runner.build import load_class
from ddobench.runner.process_state import restored_process
from ddobench.runner.run import run_seeds
from ddobench.store.checks import read_sample
from ddobench.store.records import Record
from ddobench.store.runs import Store, load
from tests.support.fakes import Climb, Sum, SumProblem, specify_fake


@dataclass(frozen=True, kw_only=True)
class SameRows(Sum):
    """Hands out the same tensors every time, and holds some rows out."""

    drawn: ClassVar[dict[tuple[int, ...], SumProblem]] = {}

    def _draw(self, rng: Streams) -> SumProblem:
        if rng.seeds not in self.drawn:
            problem = super()._draw(rng)
            x = problem.data.x
            rows = HiddenRows(x[:, :9] + 1, (x[:, :9] + 1).sum(dim=-1))
            self.drawn[rng.seeds] = replace(problem, hidden=x.clone(), held_out=rows)
        return self.drawn[rng.seeds]


class Privileged(Climb):
    """Asks for the hidden coordinates."""

    def privileges(self, space: Space) -> frozenset[Privilege]:  # noqa: ARG002
        """Ask for them."""
        return frozenset({"hidden"})

    def predict(self, x: Tensor) -> Tensor:
        """Predict in single precision."""
        return super().predict(x.float())


class ChangesAll(Privileged):
    """Changes in place all that it is handed, once it has no more use for it."""

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fit, then spoil the table."""
        super().fit(data, rng)
        assert data.privileged.hidden is not None
        data.privileged.hidden.visible.zero_()
        data.x.mul_(100)
        data.y.numpy()[:] = 0

    def predict(self, x: Tensor) -> Tensor:
        """Predict, then spoil the designs, except those that it proposes itself."""
        predicted = super().predict(x)
        if x.dtype == torch.float64:
            x.zero_()
        return predicted

    def insight(self, x: Tensor) -> list[Any]:
        """Spoil the designs."""
        x.zero_()
        return []


def run_fake(method: type[Method], task: type[Task] = Sum, **parameters: Any) -> list[Record]:
    """Run two seeds of a method."""
    spec = specify_fake(method, task=task, **parameters)
    return run_seeds(spec, *spec.build(), [0, 1], base={})


def test_a_method_that_changes_its_table_in_place_has_the_scores_of_one_that_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(SameRows, "drawn", {})
    expected = run_fake(Privileged, SameRows)
    problem = SameRows.drawn[0, 1]
    before = [tensor.clone() for tensor in tensors_of(problem)]
    for one, other in zip(expected, run_fake(ChangesAll, SameRows), strict=True):
        assert compare_records(one, other) is None
    assert all(map(torch.equal, before, tensors_of(problem)))


def tensors_of(problem: SumProblem) -> list[Tensor]:
    """Return what the next draw hands out again."""
    assert problem.hidden is not None
    assert problem.held_out is not None
    data, rows = problem.data, problem.held_out
    return [data.x, data.y, problem.hidden, rows.x, rows.y]


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Let no test change the process for others."""
    with restored_process():
        yield


class Moves(Climb):
    """Goes to another folder, and uses the cache there."""

    folder: ClassVar[Path]

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Move, then fit."""
        os.chdir(self.folder)
        self.cache.put("array", {}, rng.seeds[0], {"zeros": np.zeros(1)})
        super().fit(data, rng)


def test_a_method_that_changes_the_current_folder_is_stored_where_it_was_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Moves, "folder", tmp_path / "elsewhere", raising=False)
    Moves.folder.mkdir()
    monkeypatch.chdir(tmp_path)
    assert execute(specify_fake(Moves), [0, 1], Store("runs")) == Outcome(ok=2)
    assert Path.cwd() == tmp_path
    assert load(tmp_path / "runs")["status"].tolist() == ["ok", "ok"]
    assert list((tmp_path / "runs" / ".cache").rglob("seed-00000.npz"))
    assert not list(Moves.folder.iterdir())


def test_importing_a_class_does_not_change_the_current_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "moves_on_import.py").write_text("import os; os.chdir('/')\nclass Mine: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    load_class("moves_on_import.Mine", "method")
    del sys.modules["moves_on_import"]
    assert Path.cwd() == tmp_path


class ChangesProcess(Climb):
    """Changes a setting of PyTorch or NumPy while it fits."""

    change: ClassVar[Callable[[], object]]

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Change it after fitting."""
        super().fit(data, rng)
        type(self).change()


@pytest.mark.parametrize(
    ("change", "read"),
    [
        (lambda: torch.set_default_dtype(torch.float64), torch.get_default_dtype),
        (lambda: torch.set_default_device("meta"), torch.get_default_device),
        (lambda: torch.set_grad_enabled(False), torch.is_grad_enabled),
        (lambda: torch.set_num_threads(3), torch.get_num_threads),
        (lambda: torch.set_float32_matmul_precision("high"), torch.get_float32_matmul_precision),
        (lambda: torch.use_deterministic_algorithms(True), torch.get_deterministic_debug_mode),
        (lambda: np.seterr(all="raise"), np.geterr),
    ],
    ids=["dtype", "device", "grad", "threads", "matmul", "deterministic", "numpy"],
)
@pytest.mark.filterwarnings("ignore")
def test_a_setting_that_a_method_changes_is_restored_after_its_stack(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[], object],
    read: Callable[[], object],
) -> None:
    before = read()
    monkeypatch.setattr(ChangesProcess, "change", staticmethod(change), raising=False)
    execute(specify_fake(ChangesProcess), [0], Store(tmp_path))
    assert read() == before
    assert execute(specify_fake(Climb), [0], Store(tmp_path)) == Outcome(ok=1)


class DeepDiagnostics(Climb):
    """Nests the diagnostics of its first seed deeper than any reader follows."""

    def diagnostics(self) -> Sequence[Mapping[str, Any]]:
        """Nest them."""
        nested: list[Any] = []
        for _ in range(80):
            nested = [nested]
        return [{"nested": nested}, *({} for _ in self._weights[1:])]


def test_diagnostics_that_are_refused_make_a_failed_run_and_the_others_go_on(
    tmp_path: Path,
) -> None:
    assert execute(specify_fake(DeepDiagnostics), [0, 1], Store(tmp_path)) == Outcome(1, 0, 1)
    runs = load(tmp_path).set_index("seed")
    assert runs["status"].to_dict() == {0: "failed", 1: "ok"}
    assert runs["reason"][0].startswith("ValueError: the diagnostics of this run cannot be stored:")


class UnreadableError(RuntimeError):
    """An error without a message."""

    def __str__(self) -> str:
        raise GeneratorExit


class BreaksForOne(Climb):
    """Raises for seed 1."""

    error: ClassVar[BaseException] = ArithmeticError()

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Raise, or fit."""
        if 1 in rng.seeds:
            raise self.error
        super().fit(data, rng)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (asyncio.CancelledError("stopped"), "CancelledError: stopped"),
        (GeneratorExit("left"), "GeneratorExit: left"),
        (SystemExit(0), "SystemExit: 0"),
        (
            BaseExceptionGroup("both", [GeneratorExit(), asyncio.CancelledError()]),
            "BaseExceptionGroup: both (2 sub-exceptions)",
        ),
        (UnreadableError(), "UnreadableError: its message cannot be read"),
        (ArithmeticError("x" * 20_000_000), "ArithmeticError: " + "x" * 1983),
    ],
    ids=lambda value: type(value).__name__,
)
def test_any_error_of_a_method_is_a_failed_run_and_the_others_go_on(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    error: BaseException,
    reason: str,
) -> None:
    monkeypatch.setattr(BreaksForOne, "error", error)
    assert execute(specify_fake(BreaksForOne), [0, 1, 2], Store(tmp_path)) == Outcome(2, 0, 1)
    runs = load(tmp_path).set_index("seed")
    assert runs["status"].to_dict() == {0: "ok", 1: "failed", 2: "ok"}
    assert runs["reason"][1] == reason
    trace = (tmp_path / runs["path"][1]).read_text()
    assert "in fit" in trace
    assert len(trace) < 100_000
    assert max(map(len, caplog.messages)) < 10_000


@pytest.mark.parametrize(
    "error", [KeyboardInterrupt(), BaseExceptionGroup("", [ValueError(), KeyboardInterrupt()])]
)
def test_an_interrupt_ends_a_sweep(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    monkeypatch.setattr(BreaksForOne, "error", error)
    with pytest.raises(KeyboardInterrupt):
        execute(specify_fake(BreaksForOne), [0, 1, 2], Store(tmp_path))
    assert not list(tmp_path.rglob("*.error.json"))


class EndsTheProcess(Climb):
    """Ends a process of its own, and then the one that it runs in."""

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        """End them."""
        child = multiprocessing.get_context("fork").Process(target=os._exit, args=(3,))
        child.start()
        child.join()
        assert child.exitcode == 3
        os._exit(0)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # forking beside threads
def test_a_method_that_ends_the_process_is_a_failed_run(tmp_path: Path) -> None:
    end = os._exit
    assert execute(specify_fake(EndsTheProcess), [0], Store(tmp_path)) == Outcome(failed=1)
    assert load(tmp_path)["reason"].tolist() == ["SystemExit: os._exit(0) was called"]
    assert os._exit is end


class Miscounts(Climb):
    """Gives wrong facts about itself."""

    facts: ClassVar[Callable[[], float]]

    def working_bytes(self, n: int, d: int) -> float:  # noqa: ARG002
        """Give one of them."""
        return type(self).facts()


@pytest.mark.parametrize(
    ("facts", "at_once", "reason"),
    [
        (lambda: 1 / 0, None, "ZeroDivisionError: division by zero"),
        (lambda: float("nan"), None, "ValueError: cannot convert float NaN to integer"),
        (lambda: os._exit(0), None, "SystemExit: os._exit(0) was called"),
        (lambda: 0.0, -1, "UsageError: seeds_at_once must be a whole number of at least 1, got -1"),
    ],
)
def test_a_method_that_miscounts_its_memory_or_seeds_fails_alone(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    facts: Callable[[], float],
    at_once: int | None,
    reason: str,
) -> None:
    monkeypatch.setattr(Miscounts, "facts", staticmethod(facts), raising=False)
    monkeypatch.setattr(Miscounts, "seeds_at_once", at_once)
    assert execute(specify_fake(Miscounts), [0, 1], Store(tmp_path)) == Outcome(failed=2)
    assert load(tmp_path)["reason"].tolist() == [reason] * 2


@pytest.mark.parametrize("line", ["os._exit(0)", "import posix; posix._exit(0)"])
def test_a_plug_in_that_ends_the_process_when_imported_is_an_error_of_the_request(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "ends_on_import.py").write_text(f"import os; {line}\nclass Mine: ...\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError, match=r"cannot be imported: SystemExit: os\._exit\(0\) was"):
        load_class("ends_on_import.Mine", "method")


class Complex(Climb):
    """Proposes or predicts complex numbers."""

    predicts: ClassVar[bool] = False

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Add an imaginary part to the proposals."""
        for proposal in super().propose(starts, rng):
            yield proposal if self.predicts else Proposal(proposal.designs + 1j)

    def predict(self, x: Tensor) -> Tensor:
        """Add an imaginary part."""
        return super().predict(x) + 1j


@pytest.mark.parametrize(("predicts", "what"), [(False, "a proposal"), (True, "a prediction")])
def test_complex_numbers_are_refused(
    monkeypatch: pytest.MonkeyPatch, predicts: bool, what: str
) -> None:
    monkeypatch.setattr(Complex, "predicts", predicts)
    sentence = rf"^{what} must be of real numbers, got complex64; return its \.real part$"
    with pytest.raises(ValueError, match=sentence):
        run_fake(Complex)


def test_a_damaged_sample_of_a_task_is_made_anew(tmp_path: Path) -> None:
    store, spec = Store(tmp_path), specify_fake(Climb)
    execute(spec, [0], store)
    path = store.sample(spec.task, spec.task_digest)
    sound = path.read_text()
    path.write_text(sound.replace("sum", "mus"))
    execute(spec, [1], store)
    assert read_sample(path).title == "sum"
    kept = path.stat().st_mtime_ns
    execute(spec, [2], store)
    assert path.stat().st_mtime_ns == kept
    path.unlink()
    os.mkfifo(path)  # reading it would wait for a writer
    execute(spec, [3], store)
    assert read_sample(path).title == "sum"
