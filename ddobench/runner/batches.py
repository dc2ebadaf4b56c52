"""Which seeds of a specification run together, and what is stored of each.

The only module that catches the errors of a run.
"""

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ddobench.contracts import Method, Task
from ddobench.errors import (
    LONGEST_MESSAGE,
    OutputError,
    StorageError,
    UsageError,
    check_whole,
    describe_error,
    format_trace,
    locate,
)
from ddobench.progress import active
from ddobench.runner.isolation import MethodError, limited
from ddobench.runner.limits import TimeLimitError, fit_seeds, is_out_of_memory, time_limit
from ddobench.runner.process_state import exit_as_error, restored_process
from ddobench.runner.provenance import describe_machine
from ddobench.runner.run import run_seeds, sample_task
from ddobench.runner.spec import Specification
from ddobench.seeds import format_seeds
from ddobench.store.cache import ArrayCache
from ddobench.store.checks import read_sample
from ddobench.store.records import Record
from ddobench.store.runs import Place, Store

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Outcome:
    """How many runs ended in which way."""

    ok: int = 0
    declined: int = 0
    failed: int = 0

    def __add__(self, other: "Outcome") -> "Outcome":
        return Outcome(
            self.ok + other.ok, self.declined + other.declined, self.failed + other.failed
        )

    @property
    def runs(self) -> int:
        """All of them."""
        return self.ok + self.declined + self.failed


def execute(spec: Specification, seeds: Sequence[int], store: Store, command: str = "") -> Outcome:
    """Run the seeds that are not stored yet, in batches, and store each batch when it is done.

    `command` is what the user typed, for the records.
    """
    place = spec.place(store)
    missing = store.missing(place, seeds)
    if not missing:
        return Outcome()
    store.check_room(place)
    cache, base = store.cache(spec.task_digest), _base_row(spec, command)
    job = _Job(spec, spec.build_task(), store, place, cache, base)
    total = Outcome()
    try:
        job.unused.append(spec.build_method())
        with exit_as_error():
            size = _batch_size(spec, job.unused[0], len(missing))
    except BaseException as error:
        _raise_if_final(error)
        if isinstance(error, UsageError) and not job.unused:
            raise  # an error of the request
        return sum((job.fail(seed, error) for seed in missing), total)
    for start in range(0, len(missing), size):
        batch = missing[start : start + size]
        active().begin(f"{spec.title} seed {format_seeds(batch)}")
        outcome = job.run(batch)
        active().finish(outcome.runs)
        total += outcome
    return total


def _batch_size(spec: Specification, method: Method, seeds: int) -> int:
    """Return how many seeds run at once; log it if memory is the limit."""
    if method.seeds_at_once is not None:
        check_whole("seeds_at_once", method.seeds_at_once, 1)
    size = min(seeds, method.seeds_at_once or seeds)
    room = fit_seeds(spec.n, spec.d, spec.memory_gb, method.working_bytes(spec.n, spec.d))
    if room is None or room >= size:
        return size
    log.info(
        "%s: %d seeds at a time, as memory has room for no more; memory_gb=GB changes that",
        spec.title, room,
    )  # fmt: skip
    return room


@dataclass(frozen=True)
class _Job:
    """The runs of one specification that go into one place of a store."""

    spec: Specification
    task: Task
    store: Store
    place: Place
    cache: ArrayCache
    base: dict[str, Any]  # what all rows have in common
    # The method of the first batch. Each has its own, whose memory is free when the batch is over.
    unused: list[Method] = field(default_factory=list)

    def run(self, seeds: Sequence[int]) -> Outcome:
        """Run a batch and store its records; a batch that fails is split and tried again."""
        try:
            records = self._try(seeds)
        except BaseException as error:  # SystemExit too: signals arrive as KeyboardInterrupt
            _raise_if_final(error)
            if len(seeds) == 1:
                return self.fail(seeds[0], error)
            parts = self._split(seeds, error)
        else:
            return sum((self._store(record) for record in records), Outcome())
        # After the except block the error is gone, and with it the memory of this batch.
        return sum((self.run(part) for part in parts), Outcome())

    def fail(self, seed: int, error: BaseException) -> Outcome:
        """Store the error of a run that has no record."""
        failed = {"seed": seed, "status": "failed", "reason": _reason(error)}
        return self._store(Record({**self.base, **failed}), error)

    def _try(self, seeds: Sequence[int]) -> list[Record]:
        limit = time_limit(self.spec.timeout, len(seeds))
        with restored_process(), exit_as_error(), limit as deadline:
            sample = self.store.sample(self.spec.task, self.spec.task_digest)
            if not _is_readable(sample):
                self.store.write_sample(sample, sample_task(self.spec, self.task, seeds[0]))
            method = self.unused.pop() if self.unused else self.spec.build_method()
            method.cache = self.cache
            with limited(method, deadline):
                return run_seeds(self.spec, self.task, method, seeds, self.base, deadline)

    def _split(self, seeds: Sequence[int], error: BaseException) -> list[Sequence[int]]:
        """Return the batches to try after one has failed: halves if memory ran out."""
        title, reason = f"{self.spec.title} seed {format_seeds(seeds)}", _reason(error)
        if not is_out_of_memory(error):
            log.warning("%s failed together, retrying each alone: %s", title, reason)
            return [[seed] for seed in seeds]
        half = len(seeds) // 2
        log.warning(
            "%s: out of memory with %d seeds, retrying %d and %d: %s; "
            "memory_gb=GB or seeds_per_job=%d makes smaller batches from the start",
            title, len(seeds), half, len(seeds) - half, reason, half,
        )  # fmt: skip
        return [seeds[:half], seeds[half:]]

    def _store(self, record: Record, error: BaseException | None = None) -> Outcome:
        """Store a run, or the error of one that has failed, also if storing it has failed."""
        row = record.row
        row["finished"] = datetime.now(UTC).isoformat(timespec="seconds")
        if row["status"] != "failed":
            try:
                self.store.write(self.place, record)
            except BaseException as broken:  # such as diagnostics that contain themselves
                _raise_if_final(broken)
                reason = _reason(broken)
                if "cannot be stored" not in reason:
                    reason = f"cannot be stored: {reason}"
                row |= {"status": "failed", "reason": reason}
                error = broken
        if row["status"] == "failed":
            row["reason"] = row["reason"][:LONGEST_MESSAGE]
            at, trace = _locate(error)
            file = self.store.write_failure(self.place, row, trace)
            where = f", at {at} (traceback in {file})" if at else ""
            log.warning(
                "%s seed %d failed: %s%s", self.spec.title, row["seed"], row["reason"], where
            )
        return Outcome(**{row["status"]: 1})


def _is_readable(sample: Path) -> bool:
    """Return whether the sample of a task is stored and sound."""
    try:
        read_sample(sample)
    except Exception:  # a damaged file may be wrong in any way
        return False
    return True


def _raise_if_final(error: BaseException) -> None:
    """Raise an error that ends a sweep: an interrupt, or that no further run can be made."""
    if isinstance(error, StorageError | OutputError | KeyboardInterrupt):
        raise error
    if isinstance(error, BaseExceptionGroup) and error.subgroup(KeyboardInterrupt):
        raise KeyboardInterrupt from error


def _reason(error: BaseException) -> str:
    """Return the first line of an error, with its type unless it is a time limit."""
    if isinstance(error, TimeLimitError):
        return str(error)
    return error.reason if isinstance(error, MethodError) else describe_error(error)


def _locate(error: BaseException | None) -> tuple[str, str]:
    """Return where an error was raised, here or in the process of a method, and its traceback."""
    cause = None if error is None else error.__cause__
    for origin in (error, cause):
        if isinstance(origin, MethodError):
            return origin.where, origin.trace
    return ("", "") if error is None else (locate(error), format_trace(error))


def _base_row(spec: Specification, command: str) -> dict[str, Any]:
    """Return the columns that all runs of a specification share."""
    card = spec.card
    return {
        "task": spec.task,
        "task_variant": spec.task_variant,
        "method": spec.method,
        "method_variant": spec.method_variant,
        **spec.parts,
        "d": spec.d,
        "n": spec.n,
        "budget": spec.budget,
        "digest": spec.digest,
        "label": card.get("label", spec.method),
        "color": card.get("color", ""),
        "command": command,
        "revision": describe_machine()["revision"],
    }
