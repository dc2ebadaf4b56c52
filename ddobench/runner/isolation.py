"""A method in a process of its own, which holds no oracle and can be lost (`isolate=true`).

The process is forked from a server that has imported the libraries and nothing else. It builds the
method and is sent the visible table; task, held-out rows and oracle stay here. A method that ends
its process or does not heed its time limit loses that process only. What comes back is read as
plain data, without pickle. A method that asks for hidden coordinates maps them by calls back to
here. Nothing else is kept from it: it has the user's rights, so it can read files and import tasks.
"""

import gc
import json
import multiprocessing
import os
import pickle
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from io import BytesIO
from multiprocessing import connection
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from types import ModuleType
from typing import Any, NoReturn

import torch
from hydra.errors import InstantiationException
from torch import Tensor

from ddobench.contracts import Dataset, Hidden, Insight, Method, Privilege, Proposal, Space
from ddobench.errors import (
    StorageError,
    UsageError,
    describe_error,
    format_trace,
    locate,
    read_message,
)
from ddobench.graphs import Graph
from ddobench.progress import active, report_to
from ddobench.rng import Streams
from ddobench.runner.build import build_method
from ddobench.runner.limits import NO_DEADLINE, Deadline, is_out_of_memory
from ddobench.store.cache import ArrayCache
from ddobench.store.records import to_json

_VALUE, _ERROR, _STEP, _MAP = "value", "error", "step", "map"  # kinds of messages
_POLL_SECONDS = 1.0  # between looks at a deadline
_RETRY_SECONDS = 0.2  # after which a server that was killed is started again
# What the server imports, so that no process has to: PyTorch's optimisers load the second, most
# methods the others.
_PRELOADED = [__name__, "torch._dynamo", "ddobench.parts.pipeline", "networkx", "scipy.stats"]
_KINDS: dict[str, type[Exception]] = {  # errors that the harness treats in ways of their own
    "storage": StorageError, "usage": UsageError, "build": InstantiationException,
    "memory": MemoryError,
}  # fmt: skip


class MethodError(Exception):
    """An error of a method in another process."""

    def __init__(self, reason: str, where: str = "", trace: str = "") -> None:
        super().__init__(reason)
        self.reason, self.where, self.trace = reason, where, trace


class IsolatedMethod(Method):
    """Passes every call on to a method in another process."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.deadline = NO_DEADLINE
        self.cpu_seconds = 0.0  # of the process so far
        self._hidden: Hidden | None = None
        self._sent: Dataset | None = None
        self._proposed: Tensor | None = None
        self._process, self._connection = _start_process()
        self._end = weakref.finalize(self, _end_process, self._process, self._connection)
        self._most = self._call("build", dict(config))

    @property
    def seeds_at_once(self) -> int | None:  # type: ignore[override]
        """The most seeds worth stacking."""
        return None if self._most is None else int(self._most)

    def close(self) -> None:
        """End the process."""
        self._end()

    def privileges(self, space: Space) -> frozenset[Privilege]:
        """Return the privileged knowledge that it asks for."""
        known: tuple[Privilege, ...] = ("graph", "hidden")
        asked = self._call("privileges", space)
        return frozenset(name for name in known if name in asked)

    def declines(self, data: Dataset) -> str | None:
        """Return why it cannot work on such data, or None."""
        self._send_table(data)
        reason = self._call("declines")
        return None if reason is None else str(reason)

    def working_bytes(self, n: int, d: int) -> float:
        """Return the memory that a fit takes once."""
        return float(self._call("working_bytes", n, d))

    def fit(self, data: Dataset, rng: Streams) -> None:
        """Learn from the visible table, there."""
        self._send_table(data)
        self._call("fit", rng, self.cache)

    def propose(self, starts: Tensor, rng: Streams) -> Iterator[Proposal]:
        """Yield the designs as they come."""
        self._call("propose", starts, rng)
        while (found := self._call("next")) is not None:
            designs, predicted, iteration = found
            self._proposed = designs
            yield Proposal(designs, predicted, iteration)

    def predict(self, x: Tensor) -> Tensor | None:
        """Return the model's values; the last proposal is there already."""
        found = self._call("predict", None if x is self._proposed else x)
        assert found is None or isinstance(found, Tensor)
        return found

    def insight(self, x: Tensor) -> Sequence[Insight | None]:
        """Return codes and graph of designs."""
        return [
            None if one is None else Insight(one[0], one[1], Graph(one[2], one[3]), one[4])
            for one in self._call("insight", x)
        ]

    def failures(self) -> Mapping[int, str]:
        """Return the seeds that broke down, and why."""
        return {int(seed): str(reason) for seed, reason in self._call("failures").items()}

    def diagnostics(self) -> Sequence[Mapping[str, Any]]:
        """Return what to store beside the scores."""
        found = json.loads(self._call("diagnostics"))
        assert isinstance(found, list)
        return found

    def _send_table(self, data: Dataset) -> None:
        if data is self._sent:
            return
        self._sent, self._hidden = data, data.privileged.hidden
        if self._hidden is not None:  # its maps belong to the problem, which has the oracle
            away = replace(self._hidden, observe=_AskHere("observe"), recover=_AskHere("recover"))
            data = replace(data, privileged=replace(data.privileged, hidden=away))
        self._call("table", data)

    def _call(self, name: str, *arguments: Any) -> Any:
        """Call a function of the process and wait for its result, however it ends."""
        self._transfer(lambda: self._connection.send_bytes(pickle.dumps((name, arguments))))
        while True:
            kind, value, self.cpu_seconds = self._transfer(self._receive)
            if kind == _VALUE:
                return value
            if kind == _ERROR:
                _raise_error(value)
            if kind == _STEP:
                active().step(*value)
            if kind == _MAP:
                self._map(*value)

    def _transfer(self, move: Callable[[], Any]) -> Any:
        """Send or receive; if the process is gone, raise with what became of it."""
        try:
            return move()
        except (OSError, EOFError):
            self._process.join(_POLL_SECONDS)
            raise MethodError(_describe_end(self._process.exitcode)) from None

    def _receive(self) -> tuple[str, Any, float]:
        while True:
            self.deadline.check()
            ready = connection.wait([self._connection, self._process.sentinel], _POLL_SECONDS)
            if self._connection in ready:
                content = BytesIO(self._connection.recv_bytes())
                return torch.load(content, weights_only=True)  # type: ignore[no-any-return]
            if ready:
                raise EOFError

    def _map(self, name: str, x: Tensor) -> None:
        """Answer a call back: hidden coordinates from designs, or the reverse."""
        if self._hidden is None or name not in ("observe", "recover"):
            raise MethodError(f"it asked for {name!r}, which it was not granted")
        answer = self._hidden.observe(x) if name == "observe" else self._hidden.recover(x)
        self._transfer(lambda: self._connection.send_bytes(pickle.dumps(answer)))


@contextmanager
def limited(method: Method, deadline: Deadline) -> Iterator[None]:
    """End the process of a method after the block or the deadline, if it has one."""
    if not isinstance(method, IsolatedMethod):
        yield
        return
    method.deadline = deadline
    try:
        yield
    finally:
        method.close()


def _raise_error(error: Mapping[str, str]) -> NoReturn:
    """Raise what a method has raised, as far as the harness knows it."""
    cause = MethodError(error["reason"], error["where"], error["trace"])
    if error["kind"] in _KINDS:
        raise _KINDS[error["kind"]](error["message"]) from cause
    raise cause


def _describe_end(code: int | None) -> str:
    if code is not None and code < 0:
        with suppress(ValueError):
            return f"its process was ended by {signal.Signals(-code).name}"
    return f"its process ended with exit code {code}" if code is not None else "its process hung up"


def _start_process() -> tuple[BaseProcess, Connection]:
    """Fork a process from a server that has imported this module."""
    kind = "forkserver" if "forkserver" in multiprocessing.get_all_start_methods() else "spawn"
    context = multiprocessing.get_context(kind)
    context.set_forkserver_preload(_PRELOADED)
    here, there = context.Pipe()
    try:
        for attempts_left in (2, 1, 0):
            process = context.Process(target=_serve, args=(there,), name="method")  # type: ignore[attr-defined]
            try:
                with _without_main():
                    process.start()
                return process, here
            except (OSError, EOFError, AssertionError) as error:  # the last of daemonic processes
                if not attempts_left:
                    raise UsageError(
                        f"isolate=true cannot start a process: {error}; allow more of them "
                        "(ulimit -u), or leave out isolate"
                    ) from error
                time.sleep(_RETRY_SECONDS)  # a method may have killed the server
        raise AssertionError
    finally:
        there.close()


@contextmanager
def _without_main() -> Iterator[None]:
    """Hide the main module, which a new process would run once more."""
    main = sys.modules["__main__"]
    sys.modules["__main__"] = ModuleType("__main__")
    try:
        yield
    finally:
        sys.modules["__main__"] = main


def _end_process(process: BaseProcess, here: Connection) -> None:
    """Kill a process and what it has started."""
    here.close()
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid or 0, signal.SIGKILL)
    process.kill()  # if it has not come to make a group of its own
    process.join()


# In the other process.


@dataclass
class _AskHere:
    """A map of hidden coordinates that the process of the harness computes."""

    name: str

    def __call__(self, x: Tensor) -> Tensor:
        return _server[0].ask(self.name, x)


class _Server:
    """Holds a method and answers calls."""

    method: Method
    data: Dataset
    proposals: Iterator[Proposal]
    last: Proposal

    def __init__(self, connection: Connection) -> None:
        self.connection = connection

    def send(self, kind: str, value: object) -> None:
        """Send plain data and tensors."""
        content = BytesIO()
        torch.save((kind, value, time.process_time()), content)
        self.connection.send_bytes(content.getbuffer())

    def ask(self, name: str, x: Tensor) -> Tensor:
        """Let the harness map designs."""
        self.send(_MAP, (name, x.detach()))
        answer = pickle.loads(self.connection.recv_bytes())
        assert isinstance(answer, Tensor)
        return answer

    def answer(self) -> None:
        """Answer one call."""
        name, arguments = pickle.loads(self.connection.recv_bytes())
        try:
            value = getattr(self, name)(*arguments)
            sys.stdout.flush()  # this process may be killed at any time
            self.send(_VALUE, value)
        except BaseException as error:  # sending may fail, too: what is sent is the method's
            self.send(_ERROR, _describe_error(error))

    def build(self, config: Mapping[str, Any]) -> int | None:
        self.method = build_method(config)
        return self.method.seeds_at_once

    def table(self, data: Dataset) -> None:
        self.data = data

    def privileges(self, space: Space) -> list[str]:
        return [*map(str, self.method.privileges(space))]

    def declines(self) -> str | None:
        return self.method.declines(self.data)

    def working_bytes(self, n: int, d: int) -> float:
        return float(self.method.working_bytes(n, d))

    def fit(self, rng: Streams, cache: ArrayCache) -> None:
        self.method.cache = cache
        self.method.fit(self.data, rng)

    def propose(self, starts: Tensor, rng: Streams) -> None:
        self.proposals = iter(self.method.propose(starts, rng))

    def next(self) -> tuple[Tensor, Tensor | None, int | None] | None:
        found = next(self.proposals, None)
        if found is None:
            return None
        self.last = found
        iteration = None if found.iteration is None else int(found.iteration)
        return found.designs.detach().cpu(), _plain(found.predicted), iteration

    def predict(self, x: Tensor | None) -> Tensor | None:
        return _plain(self.method.predict(self.last.designs if x is None else x))

    def insight(self, x: Tensor) -> list[tuple[Any, ...] | None]:
        return [
            None if one is None else (
                _plain(one.codes), _plain(one.reconstructed), one.graph.d,
                tuple(tuple(map(int, clique)) for clique in one.graph.cliques),
                _plain(one.directions),
            )
            for one in self.method.insight(x)
        ]  # fmt: skip

    def failures(self) -> dict[int, str]:
        return {int(seed): str(reason) for seed, reason in self.method.failures().items()}

    def diagnostics(self) -> str:
        return to_json([dict(one) for one in self.method.diagnostics()])


def _plain(tensor: Tensor | None) -> Tensor | None:
    return None if tensor is None else tensor.detach().cpu()


def _describe_error(error: BaseException) -> dict[str, str]:
    kinds = (name for name, kind in _KINDS.items() if isinstance(error, kind))
    kind = next(kinds, "memory" if is_out_of_memory(error) else "")
    return {
        "kind": kind,
        "message": read_message(error),
        "reason": describe_error(error),
        "where": locate(error),
        "trace": format_trace(error),
    }


def _serve(there: Connection) -> None:
    """Answer calls until the other end is closed; end at once if the harness is killed."""
    with suppress(OSError):
        os.setpgid(0, 0)  # Ctrl-C reaches the harness only, which ends this process
    gc.freeze()  # what the server has imported need not be searched for garbage
    threading.Thread(target=_end_with_parent, daemon=True).start()
    _server.append(_Server(there))
    report_to(lambda *step: _server[0].send(_STEP, step))
    with suppress(EOFError, OSError):
        while True:
            _server[0].answer()


def _end_with_parent() -> None:
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os.killpg(0, signal.SIGKILL)


_server: list[_Server] = []  # one, in the process of a method
