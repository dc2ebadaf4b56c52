"""Carries out runs: the one place that calls the oracle, and the one that catches their errors."""

import logging
import time
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Dataset, Method, Problem, Task
from ddobench.errors import StorageError
from ddobench.judging import HeldOut, Judged, LastDesigns, Reference, Spread, overlap_area
from ddobench.progress import active, track
from ddobench.rng import Streams
from ddobench.runner.border import (
    check_description,
    check_measurements,
    check_problem,
    find_better_than_optimum,
)
from ddobench.runner.diagnostics import describe_excess, diagnose
from ddobench.runner.failures import locate
from ddobench.runner.memory import fit_seeds, is_out_of_memory
from ddobench.runner.provenance import command_line, describe_machine
from ddobench.runner.scoring import conclude, find_non_finite, forget_values
from ddobench.runner.spec import Specification
from ddobench.runner.time_limit import NEVER, Deadline, TimeLimitError, time_limit
from ddobench.scores import compute_curves
from ddobench.seeds import format_seeds
from ddobench.store.cache import ArrayCache
from ddobench.store.records import Record, TaskSample
from ddobench.store.runs import Place, Store

log = logging.getLogger(__name__)

FIT, PROPOSE = "method/fit", "method/propose"  # the streams that a method is handed
PORTRAIT_ROWS = 1000
PORTRAIT_COORDINATES = 3


@dataclass
class Trajectory:
    """Designs and the method's own predictions at the recorded iterations, copied."""

    iterations: list[int] = field(default_factory=list)
    designs: list[Tensor] = field(default_factory=list)  # T tensors (S, K, d)
    predicted: list[Tensor | None] = field(default_factory=list)  # T tensors (S, K)


@dataclass(frozen=True)
class _Truth:
    """What is known of the designs of a batch, once all are made."""

    values: list[Tensor]  # T tensors (S, K), NaN where invalid
    measured: list[Mapping[str, Tensor]]  # T times, each (S, K)
    held_out: list[HeldOut]  # of each seed
    order: list[float]  # of the predictions of each seed's best visible rows
    known: bool  # whether designs have values at all


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


def execute(spec: Specification, seeds: Sequence[int], store: Store) -> Outcome:
    """Run the seeds that are not stored yet, in batches, and store each batch when it is done."""
    place = spec.place(store)
    missing = store.missing(place, seeds)
    if not missing:
        return Outcome()
    store.check_room(place)
    task, method = spec.build()
    size = _count_at_once(spec, method, len(missing))
    cache = store.cache(spec.task_digest)
    ready = [method]
    del method  # which nobody holds on to once its batch is over
    total = Outcome()
    for start in range(0, len(missing), size):
        batch = missing[start : start + size]
        active().begin(f"{spec.title} seed {format_seeds(batch)}")
        outcome = _run_batch(spec, task, _take_method(spec, cache, ready), batch, store, place)
        active().finish(outcome.runs)
        total += outcome
    return total


def paint(spec: Specification, task: Task, seed: int) -> TaskSample:
    """Show what a task looks like at one seed: its graph and some of its designs."""
    problem = task.problem([seed])
    check_problem(problem, task, 1)
    shown = min(problem.data.n, PORTRAIT_ROWS)
    description = check_description(task.describe())
    hidden = problem.hidden
    return TaskSample(
        task=spec.task,
        task_variant=spec.task_variant,
        d=spec.d,
        n=spec.n,
        seed=seed,
        title=description.title,
        formula=description.formula,
        text=description.text,
        edges=None if problem.graphs is None else list(problem.graphs[0].edges),
        observed=_corner(problem.data.x[0], shown),
        hidden=None if hidden is None else _corner(hidden[0], shown),
        y=problem.data.y[0, :shown].tolist(),
    )


def _corner(x: Tensor, rows: int) -> list[list[float]]:
    """Return the first rows and coordinates, rounded for a picture."""
    corner: list[list[float]] = x[:rows, :PORTRAIT_COORDINATES].to(torch.float64).tolist()
    return [[float(f"{value:.5g}") for value in row] for row in corner]


def _run_batch(
    spec: Specification,
    task: Task,
    method: Method,
    seeds: Sequence[int],
    store: Store,
    place: Place,
) -> Outcome:
    base = _base_row(spec)
    try:
        with time_limit(spec.timeout, len(seeds)) as deadline:
            portrait = store.sample(spec.task, spec.task_digest)
            if not portrait.exists():
                store.write_sample(portrait, paint(spec, task, seeds[0]))
            records = run_seeds(spec, task, method, seeds, base, deadline)
    except StorageError:
        raise  # no failure of this run: no other could be stored either
    except (Exception, SystemExit, TimeLimitError) as error:
        reason = _reason(error)
        if len(seeds) > 1 and is_out_of_memory(error):
            half = len(seeds) // 2
            log.warning(
                "%s seed %s found no memory together, so %d and %d of them are tried: %s; "
                "memory_gb=GB or seeds_per_job=%d makes smaller batches from the start",
                spec.title, format_seeds(seeds), half, len(seeds) - half, reason, half,
            )  # fmt: skip
            parts = [seeds[:half], seeds[half:]]
        elif len(seeds) > 1:
            log.warning(
                "%s seed %s failed together, each is tried alone: %s",
                spec.title, format_seeds(seeds), reason,
            )  # fmt: skip
            parts = [[seed] for seed in seeds]
        else:
            failed = {"status": "failed", "reason": reason}
            record = Record({**base, "seed": seeds[0], **failed})
            return _store_one(spec, record, store, place, error)
    else:
        return sum((_store_one(spec, record, store, place) for record in records), Outcome())
    cache = method.cache
    del method  # as the error is: nothing holds on to the memory of this batch
    return _run_apart(spec, task, cache, parts, store, place)


def _store_one(
    spec: Specification,
    record: Record,
    store: Store,
    place: Place,
    error: BaseException | None = None,
) -> Outcome:
    """Store a run, or the error of one that has failed, if only while it was stored."""
    row = record.row
    row.update(_finished())
    if row["status"] != "failed":
        try:
            store.write(place, record)
        except StorageError:
            raise
        except Exception as broken:  # such as diagnostics that contain themselves
            row |= {"status": "failed", "reason": f"cannot be stored: {_reason(broken)}"}
            error = broken
    if row["status"] == "failed":
        trace = "" if error is None else "".join(traceback.format_exception(error))
        file = store.write_failure(place, row, trace)
        where = "" if error is None else f", at {locate(error)} (traceback in {file})"
        log.warning("%s seed %d failed: %s%s", spec.title, row["seed"], row["reason"], where)
    return Outcome(**{row["status"]: 1})


def _reason(error: BaseException) -> str:
    """Return the first line of an error, with its kind unless it is one of ours."""
    if isinstance(error, TimeLimitError):
        return str(error)
    return f"{type(error).__name__}: {error}".splitlines()[0]


def _run_apart(
    spec: Specification,
    task: Task,
    cache: ArrayCache,
    batches: Sequence[Sequence[int]],
    store: Store,
    place: Place,
) -> Outcome:
    """Run what a batch that broke down was split into, so that only those fail that must."""
    total = Outcome()
    for seeds in batches:
        total += _run_batch(spec, task, _take_method(spec, cache, []), seeds, store, place)
    return total


def _take_method(spec: Specification, cache: ArrayCache, ready: list[Method]) -> Method:
    """Return a fresh method for a batch, one that is ready if there is any."""
    method = ready.pop() if ready else spec.build_method()
    method.cache = cache
    return method


def _count_at_once(spec: Specification, method: Method, seeds: int) -> int:
    """Return how many of so many seeds make a batch; says so if memory is what limits them."""
    size = min(seeds, method.seeds_at_once or seeds)
    room = fit_seeds(spec.n, spec.d, spec.memory_gb, method.working_bytes(spec.n, spec.d))
    if room is None or room >= size:
        return size
    log.info("%s: %d seeds at a time, as memory has room for no more; memory_gb=GB says otherwise",
             spec.title, room)  # fmt: skip
    return room


def run_seeds(
    spec: Specification,
    task: Task,
    method: Method,
    seeds: Sequence[int],
    base: Mapping[str, Any],
    deadline: Deadline = NEVER,
) -> list[Record]:
    """Run one batch of seeds and return their records, in order."""
    problem = task.problem(seeds)
    check_problem(problem, task, len(seeds))
    references = _references(problem)
    provenance = {
        **describe_machine(),
        "device": spec.device,
        "dtype": "float64 data and oracle, float32 networks",
        "seeds_per_job": spec.stack,
        "batch": len(seeds),
    }
    data = problem.visible_to(method.privileges(problem.data.space))
    base = {**base, "privileges": ",".join(sorted(data.privileged.told))}
    refusal = method.declines(data)
    if refusal is not None:
        return [
            Record(
                row={**base, **_reference_row(references[i]), "seed": seed,
                     "status": "declined", "reason": refusal},
                config=spec.config,
                provenance=provenance,
            )
            for i, seed in enumerate(seeds)
        ]  # fmt: skip

    starts = draw_starts(data, spec.config["budget"]["designs"], task.streams(seeds))
    began, busy = time.perf_counter(), time.process_time()
    method.fit(data, Streams(seeds, FIT))
    fitted = time.perf_counter()
    trajectory = collect(method, starts, Streams(seeds, PROPOSE), deadline)
    proposed, done = time.perf_counter(), time.process_time()
    truth = _measure(
        trajectory,
        problem,
        judge_hidden_rows(method, problem, references),
        judge_best_rows(method, data, trajectory),
    )
    evaluated = time.perf_counter()

    share = 1 / len(seeds)
    seconds = {
        "seconds_fit": (fitted - began) * share,
        "seconds_propose": (proposed - fitted) * share,
        "seconds_evaluate": (evaluated - proposed) * share,
        "seconds_cpu": (done - busy) * share,
    }
    visible = problem.evaluate(data.best()[:, None])  # (S, 1)
    best = torch.cat([visible, *truth.values], dim=1).nan_to_num(-torch.inf).amax(dim=1)  # (S,)
    failures = {**find_better_than_optimum(problem, best), **method.failures()}
    diagnostics = diagnose(method, problem, problem.evaluate)
    records = []
    for i, seed in enumerate(seeds):
        record = _record_one(trajectory, truth, i, spec, references[i], task, data)
        row = {**base, **_reference_row(references[i]), **record.row, **seconds, "seed": seed}
        if i in failures:
            row |= {"status": "failed", "reason": failures[i]}
        records.append(
            Record(
                row=row,
                config=spec.config,
                provenance=provenance,
                curves=record.curves,
                values=record.values,
                predictions=record.predictions,
                designs=record.designs,
                diagnostics={**diagnostics[i], **describe_excess(record.curves)},
            )
        )
    return records


def evaluate_designs(problem: Problem, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
    """Return the true values of designs outside of any run, NaN where one is invalid."""
    return problem.evaluate(x)


def collect(method: Method, starts: Tensor, rng: Streams, deadline: Deadline = NEVER) -> Trajectory:
    """Copy every proposal as it is made, with the method's own prediction of it."""
    trajectory = Trajectory()
    for proposal in track(method.propose(starts, rng), "iteration"):
        deadline.check()
        designs = proposal.designs.detach().cpu().clone()
        _check_shape(designs, starts, trajectory)
        predicted = proposal.predicted
        if predicted is None:
            predicted = method.predict(proposal.designs)
        if predicted is not None and predicted.shape != designs.shape[:2]:
            raise ValueError(
                f"predictions must be (S, K) = {tuple(designs.shape[:2])}, "
                f"got {tuple(predicted.shape)}"
            )
        last = trajectory.iterations[-1] if trajectory.iterations else -1
        iteration = last + 1 if proposal.iteration is None else proposal.iteration
        if iteration <= last:
            raise ValueError(f"iterations must increase, got {iteration} after {last}")
        trajectory.iterations.append(iteration)
        trajectory.designs.append(designs)
        trajectory.predicted.append(None if predicted is None else predicted.detach().cpu().clone())
    if not trajectory.designs:
        raise ValueError("the method proposed nothing; propose() must yield at least once")
    return trajectory


def _check_shape(designs: Tensor, starts: Tensor, trajectory: Trajectory) -> None:
    seeds, most, d = starts.shape
    shape = tuple(designs.shape)
    if len(shape) != 3 or shape[0] != seeds or not 1 <= shape[1] <= most or shape[2] != d:
        raise ValueError(f"a proposal must be (S={seeds}, at most K={most}, d={d}), got {shape}")
    if trajectory.designs and trajectory.designs[0].shape != designs.shape:
        raise ValueError(
            f"every proposal must have the shape of the first, "
            f"{tuple(trajectory.designs[0].shape)}, got {shape}"
        )


def draw_starts(data: Dataset, count: int, rng: Streams) -> Tensor:
    """Draw the visible designs every method of a seed starts from, (S, K, d)."""
    picked = rng.child("starts").sample(data.n, count)  # (S, K)
    return torch.take_along_dim(data.x, picked[..., None], dim=1)


def judge_hidden_rows(
    method: Method, problem: Problem, references: Sequence[Reference]
) -> list[HeldOut]:
    """Ask a fitted method of the rows it was not shown, where a task has any, seed by seed."""
    rows = problem.held_out
    predicted = None if rows is None else method.predict(rows.x)
    if rows is None or predicted is None:
        return [HeldOut() for _ in references]
    told = predicted.detach().cpu().to(torch.float64).numpy()  # (S, H)
    return [
        HeldOut.of(y.numpy(), told[i], reference)
        for i, (y, reference) in enumerate(zip(rows.y, references, strict=True))
    ]


def judge_best_rows(method: Method, data: Dataset, trajectory: Trajectory) -> list[float]:
    """Return how well a fitted method orders the best visible tenth, NaN if it predicts nothing.

    It is asked in the precision of its own designs.
    """
    best = data.y.argsort(dim=1, descending=True, stable=True)[:, : max(2, data.n // 10)]
    rows = torch.take_along_dim(data.x, best[..., None], dim=1)  # (S, N / 10, d)
    silent = trajectory.predicted[-1] is None
    predicted = None if silent else method.predict(rows.to(trajectory.designs[-1].dtype))
    if predicted is None:
        return [float("nan")] * len(best)
    told = predicted.detach().cpu().to(torch.float64).numpy()
    truth = torch.take_along_dim(data.y, best, dim=1).numpy()
    return [overlap_area(guess, y) for guess, y in zip(told, truth, strict=True)]


def _measure(
    trajectory: Trajectory, problem: Problem, held_out: list[HeldOut], order: list[float]
) -> _Truth:
    values = [problem.evaluate(designs) for designs in trajectory.designs]
    measured: list[Mapping[str, Tensor]] = []
    for designs in trajectory.designs:
        first = measured[0] if measured else None
        measured.append(check_measurements(problem.measure(designs), designs, first))
    return _Truth(values, measured, held_out, order, problem.measures)


def _record_one(
    trajectory: Trajectory,
    truth: _Truth,
    i: int,
    spec: Specification,
    reference: Reference,
    task: Task,
    data: Dataset,
) -> Record:
    """Score one seed of a batch."""
    values = torch.stack([value[i] for value in truth.values]).numpy()  # (T, K)
    known = [predicted[i] for predicted in trajectory.predicted if predicted is not None]
    predicted = (
        torch.stack(known).to(torch.float64).numpy() if len(known) == len(values) else None
    )  # (T, K)
    judged = Judged.of(values, predicted, spec.config["budget"]["top"], reference)
    scored = compute_curves(judged)
    curves = {
        "iteration": np.asarray(trajectory.iterations),
        **(scored if truth.known else forget_values(scored)),
        **{
            name: torch.stack([step[name][i].mean() for step in truth.measured]).numpy()
            for name in truth.measured[0]
        },
    }
    first = trajectory.designs[-1][i].to(torch.float64).numpy()[judged.chosen[-1]]  # (top, d)
    spread = Spread.of(first, data.x[i].numpy(), data.space.categorical)
    last = LastDesigns.of(judged, reference, truth.order[i], spread)
    last = last if truth.known else last.forget_values()
    scores = conclude(curves, reference, task.regret_unit, truth.held_out[i], last)
    reason = find_non_finite(curves, scores, truth.known)
    row = {
        "status": "failed" if reason else "ok",
        "reason": reason or "",
        **{name: number if np.isfinite(number) else np.nan for name, number in scores.items()},
        "regret_unit": task.regret_unit,
        "iterations": int(curves["iteration"][-1]),
        "designs": values.shape[1],
    }
    return Record(
        row=row,
        curves=curves,
        values=values.astype(np.float32) if truth.known else None,
        predictions=None if predicted is None else _shorten(predicted),
        designs=trajectory.designs[-1][i].to(torch.float32).numpy(),
    )


def _shorten(predicted: NDArray[np.float64]) -> NDArray[np.float32]:
    with np.errstate(over="ignore"):  # whatever a method predicts
        return predicted.astype(np.float32)


def _references(problem: Problem) -> list[Reference]:
    unknown = torch.full((len(problem.data.y), 2), torch.nan)
    optima = unknown[:, 0] if problem.optimum is None else problem.optimum
    ranges = unknown if problem.full_range is None else problem.full_range
    return [
        Reference.of(y.numpy(), float(optimum), (float(low), float(high)))
        for y, optimum, (low, high) in zip(problem.data.y, optima, ranges, strict=True)
    ]


def _reference_row(reference: Reference) -> dict[str, float]:
    """Return the landmarks of a seed: two in standard deviations, the rest raw."""
    best, optimum = reference.standardise(np.asarray([reference.best, reference.optimum]))
    return {
        "best_visible": float(best),
        "optimum": float(optimum),
        "y_mean": reference.mean,
        "y_sd": reference.sd,
        "y_min": reference.worst,
        "y_max": reference.best,
    }


def _base_row(spec: Specification) -> dict[str, Any]:
    """Return what all runs of a specification have in common."""
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
        "command": command_line(),
        "revision": describe_machine()["revision"],
    }


def _finished() -> dict[str, str]:
    return {"finished": datetime.now(UTC).isoformat(timespec="seconds")}
