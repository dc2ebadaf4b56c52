"""A method in a process of its own: the same numbers, no oracle, and nothing else is lost."""

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest
from torch import Tensor

from ddobench.check.promises import compare_records
from ddobench.cli.hooks import specify_points
from ddobench.contracts import Dataset, Insight, Method, Problem, Proposal, Task
from ddobench.errors import UsageError
from ddobench.graphs import Graph
from ddobench.rng import Streams
from ddobench.runner.batches import Outcome, execute
from ddobench.runner.isolation import IsolatedMethod
from ddobench.runner.run import run_seeds
from ddobench.runner.spec import Specification
from ddobench.store.records import Record, to_json
from ddobench.store.runs import Store, load
from tests.support.fakes import Climb, specify_fake

pytestmark = pytest.mark.slow
SHORT = 0.2  # seconds, of a limit that is meant to be passed


def apart(spec: Specification) -> Specification:
    """Return a specification whose method runs in a process of its own."""
    return replace(spec, isolate=True)


def run_both(spec: Specification, seeds: Sequence[int]) -> Iterator[tuple[Record, Record]]:
    """Yield the records of each seed without and with isolation."""
    here, there = (run_seeds(one, *one.build(), seeds, base={}) for one in (spec, apart(spec)))
    yield from zip(here, there, strict=True)


@pytest.mark.bits
@pytest.mark.parametrize(
    "words",
    [
        ["method=fgm"],
        ["method=fgm", "latent=oracle", "graph=true"],  # both privileges
        ["method=ga"],
        ["method=naive"],
    ],
    ids=" ".join,
)
def test_isolated_runs_are_the_same_to_the_bit(words: list[str]) -> None:
    (spec,) = specify_points([[*words, "task=chain", "d=5", "n=60", "budget=tiny"]])
    for here, there in run_both(spec, [0, 3]):
        assert compare_records(here, there) is None
        assert here.row["privileges"] == there.row["privileges"]
        assert repr(here.diagnostics) == repr(there.diagnostics)
        assert not here.provenance["isolated"]
        assert there.provenance["isolated"]


class Speaks(Climb):
    """Answers everything that a method can be asked."""

    def predict(self, x: Tensor) -> Tensor:
        """Predict with a gradient, which cannot be sent."""
        return super().predict(x.float()).requires_grad_()

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Give the designs themselves for all seeds but the first."""
        graph = Graph.from_edges(3, [(0, 2)])
        return [None, *(Insight(one, one, graph) for one in x[1:])]

    def failures(self) -> Mapping[int, str]:
        """Let the last seed fail."""
        return {1: "it broke down"}

    def diagnostics(self) -> Sequence[Mapping[str, Any]]:
        """Return arrays and numbers that only JSON makes plain."""
        return [{"mean": self._weights[i].mean(), "none": float("nan")} for i in range(2)]


def test_everything_that_a_method_answers_comes_back() -> None:
    for here, there in run_both(specify_fake(Speaks), [0, 1]):
        stored = replace(here, diagnostics=json.loads(to_json(here.diagnostics)))
        assert compare_records(stored, there) is None
        assert here.row["status"] == there.row["status"]
        assert here.row["reason"] == there.row["reason"]


@dataclass(kw_only=True)
class Ends(Climb):
    """Ends its process, in one way or another, at seed 1."""

    name: ClassVar[str] = "ends"
    way: str = "exit"

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Print something, then end."""
        super().fit(data, rng)
        if 1 in rng.seeds:
            if self.way != "close" and os.fork() == 0:
                time.sleep(3600)  # a process that holds the connection open
            if self.way == "exit":
                os._exit(0)
            if self.way == "close":
                os.closerange(3, 100)
            else:
                os.kill(os.getpid() if self.way == "kill" else os.getppid(), signal.SIGKILL)
            time.sleep(3600)


@pytest.mark.parametrize(
    ("way", "reason"),
    [
        ("exit", "its process ended with exit code 0"),
        ("kill", "its process was ended by SIGKILL"),
        ("server", "its process ended with exit code 255"),
        ("close", "its process hung up"),
    ],
)
def test_a_method_that_ends_its_process_is_a_failed_run(
    tmp_path: Path, way: str, reason: str
) -> None:
    spec = apart(specify_fake(Ends, way=way))
    assert execute(spec, [0, 1], Store(tmp_path)) == Outcome(ok=1, failed=1)
    runs = load(tmp_path).set_index("seed")
    assert runs["reason"][1] == reason
    assert not {reason for seed, reason in runs["reason"].items() if seed != 1} - {""}


class Raises(Climb):
    """Raises when it is fitted."""

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        """Raise."""
        raise KeyboardInterrupt("mine")


def test_an_error_has_the_reason_and_the_place_that_it_has_elsewhere(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    assert execute(apart(specify_fake(Raises)), [0], Store(tmp_path)) == Outcome(failed=1)
    assert load(tmp_path)["reason"].tolist() == ["KeyboardInterrupt: mine"]
    assert f"at {__file__}:" in caplog.text
    trace = next(tmp_path.rglob("*.error.json")).read_text()
    assert 'raise KeyboardInterrupt(\\"mine\\")' in trace


class Deaf(Climb):
    """Never ends, and heeds no error."""

    def fit(self, data: Dataset, rng: Streams) -> None:  # noqa: ARG002
        """Hang."""
        while True:
            with suppress(BaseException):
                time.sleep(0.01)


@pytest.mark.parametrize("threaded", [False, True])
def test_a_time_limit_holds_against_a_method_that_catches_everything(
    tmp_path: Path, threaded: bool
) -> None:
    spec, found = replace(apart(specify_fake(Deaf)), timeout=SHORT), list[Outcome]()
    work: Callable[[], None] = lambda: found.append(execute(spec, [0], Store(tmp_path)))  # noqa: E731
    if threaded:  # where there is no alarm
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    else:
        work()
    assert found == [Outcome(failed=1)]
    assert load(tmp_path)["reason"].tolist() == [f"took longer than timeout={SHORT:g} s"]


class Snoops(Climb):
    """Looks for an oracle in all frames and among all objects of its process."""

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Fail if there is one."""
        import gc

        super().fit(data, rng)
        frame: Any = sys._getframe()
        while frame is not None:
            found = [v for v in frame.f_locals.values() if isinstance(v, Problem | Task)]
            assert not found, found
            frame = frame.f_back
        assert not [one for one in gc.get_objects() if isinstance(one, Problem | Task)]


def test_there_is_no_oracle_in_the_process_of_a_method(tmp_path: Path) -> None:
    assert execute(specify_fake(Snoops), [0], Store(tmp_path / "here")) == Outcome(failed=1)
    assert execute(apart(specify_fake(Snoops)), [0], Store(tmp_path)) == Outcome(ok=1)


class Plants:
    """Runs code where it is unpickled."""

    def __init__(self, file: str) -> None:
        self.file = file

    def __reduce__(self) -> tuple[Any, ...]:
        return Path.touch, (Path(self.file),)


@dataclass(kw_only=True)
class Sends(Climb):
    """Proposes an object instead of an iteration."""

    name: ClassVar[str] = "sends"
    file: str

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:  # noqa: ARG002
        """Send it by the server's own means."""
        from ddobench.runner import isolation

        isolation._server[0].send("value", Plants(self.file))
        yield Proposal(starts)


def test_what_a_method_sends_runs_no_code(tmp_path: Path) -> None:
    spec = apart(specify_fake(Sends, file=str(tmp_path / "planted")))
    assert execute(spec, [0], Store(tmp_path / "runs")) == Outcome(failed=1)
    assert "Weights only load failed" in load(tmp_path / "runs")["reason"][0]
    assert not (tmp_path / "planted").exists()


def test_a_method_that_cannot_be_built_is_an_error_of_the_request() -> None:
    with pytest.raises(UsageError, match=r"^method has no parameter 'nope'; it has steps, rate$"):
        apart(specify_fake(Climb, nope=1)).build()


@dataclass(kw_only=True)
class Unbuildable(Climb):
    """Ends its process when it is built."""

    name: ClassVar[str] = "unbuildable"

    def __post_init__(self) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def test_a_process_that_is_lost_while_a_method_is_built_costs_these_runs(tmp_path: Path) -> None:
    spec = apart(specify_fake(Unbuildable))
    with pytest.raises(UsageError, match=r"cannot be built: its process was ended by SIGKILL$"):
        spec.build()
    assert execute(spec, [0, 1], Store(tmp_path)) == Outcome(failed=2)


def test_a_process_ends_with_its_method_and_with_the_harness() -> None:
    method = apart(specify_fake(Climb)).build_method()
    assert isinstance(method, IsolatedMethod)
    process = method._process
    assert process.is_alive()
    del method
    assert not process.is_alive()
    script = (
        "import os, signal; from tests.runner.test_isolation import apart, specify_fake, Climb\n"
        "method = apart(specify_fake(Climb)).build_method(); print(method._process.pid)\n"
        "import sys; sys.stdout.flush(); os.kill(os.getpid(), signal.SIGKILL)\n"
    )  # without a guard: the process of a method does not run it again
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == -signal.SIGKILL, done.stderr
    while Path(f"/proc/{int(done.stdout)}").exists():
        time.sleep(0.02)


def test_memory_that_runs_out_there_makes_smaller_stacks(tmp_path: Path) -> None:
    spec = apart(specify_fake(Hungry))
    assert execute(spec, [0, 1], Store(tmp_path)) == Outcome(ok=2)


class Hungry(Climb):
    """Has memory for one seed."""

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Raise as PyTorch does."""
        if len(rng.seeds) > 1:
            raise RuntimeError("DefaultCPUAllocator: can't allocate memory")
        super().fit(data, rng)


def test_the_contract_is_passed_on_whole() -> None:
    own = {name for name in vars(Method) if callable(getattr(Method, name)) and name[0] != "_"}
    assert own <= {*vars(IsolatedMethod)}
