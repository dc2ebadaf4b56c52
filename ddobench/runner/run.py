"""One stack of seeds, from the drawn problem to the records: the only module that calls the oracle.

The order is fixed: the task draws, the method fits and proposes, and only when all proposals are
collected does the oracle value them. A method works on copies of the rows, and its scores are
computed from the rows themselves.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import networkx  # noqa: F401 - methods import this and the next where they need them, which
import numpy as np
import scipy.stats  # noqa: F401 - must not count as time of the first run
import torch
from torch import Tensor

from ddobench.contracts import Dataset, Method, Problem, Task
from ddobench.coverage import Terms
from ddobench.judging import (
    UNKNOWN_DESIGNS,
    HeldOut,
    Judged,
    LastDesigns,
    Reference,
    RunEnd,
    Spread,
    Values,
    overlap_area,
)
from ddobench.progress import track
from ddobench.rng import Streams
from ddobench.runner.diagnostics import describe_excess, describe_planes, diagnose
from ddobench.runner.isolation import IsolatedMethod
from ddobench.runner.limits import NO_DEADLINE, Deadline
from ddobench.runner.provenance import describe_machine, digest_rows
from ddobench.runner.spec import Specification
from ddobench.runner.task_checks import (
    check_description,
    check_measurements,
    check_problem,
    find_better_than_optimum,
)
from ddobench.scores import CURVES, GRAPH_DENSITY, HEADLINE, compute_curves, compute_scores
from ddobench.store.records import DATA, Record, TaskSample

FIT, PROPOSE = "method/fit", "method/propose"  # names of the random streams of a method
SAMPLE_ROWS = 1000  # of the stored sample of a task
SAMPLE_COORDINATES = 3


@dataclass
class Trajectory:
    """Designs and the method's own predictions at the recorded iterations, copied."""

    iterations: list[int] = field(default_factory=list)
    designs: list[Tensor] = field(default_factory=list)  # T tensors (S, K, d)
    predicted: list[Tensor | None] = field(default_factory=list)  # T tensors (S, K)


@dataclass(frozen=True)
class _Evaluation:
    """The values of a stack by the oracle, and how its predictions compare with known rows."""

    values: list[Tensor]  # T tensors (S, K), NaN where invalid
    measured: list[Mapping[str, Tensor]]  # T times, each (S, K)
    held_out: list[HeldOut]  # of each seed
    order: list[float]  # of the predictions of each seed's best visible rows
    has_values: bool  # whether new designs have values at all


def run_seeds(
    spec: Specification,
    task: Task,
    method: Method,
    seeds: Sequence[int],
    base: Mapping[str, Any],
    deadline: Deadline = NO_DEADLINE,
) -> list[Record]:
    """Run one stack of seeds and return their records, in order.

    `base` are the columns that all of their rows share.
    """
    problem = task.problem(seeds)
    check_problem(problem, task, len(seeds))
    references = _references(problem)
    provenance = {
        **describe_machine(),
        "device": spec.device,
        "dtype": "float64 data and oracle, float32 networks",
        "seeds_per_job": spec.stack,
        "batch": len(seeds),
        "isolated": spec.isolate,
    }
    data = _copy(problem.visible_to(method.privileges(problem.data.space)))
    base = {**base, "privileges": ",".join(sorted(data.privileged.granted))}
    tables = zip(problem.data.x.numpy(), problem.data.y.numpy(), references, strict=True)
    terms = find_terms(task, problem, seeds)
    rows = [
        {**base, **_landmarks(reference), DATA: digest_rows(x, y), **own.known}
        for (x, y, reference), own in zip(tables, terms, strict=True)
    ]
    refusal = method.declines(data)
    if refusal is not None:
        declined = {"status": "declined", "reason": refusal}
        return [
            Record({**row, "seed": seed, **declined}, spec.config, provenance)
            for seed, row in zip(seeds, rows, strict=True)
        ]

    starts = draw_starts(problem.data, spec.config["budget"]["designs"], task.streams(seeds))
    began, cpu_began = time.perf_counter(), _cpu_seconds(method)
    method.fit(data, Streams(seeds, FIT))
    fitted = time.perf_counter()
    trajectory = collect(method, starts, Streams(seeds, PROPOSE), deadline)
    proposed, cpu_proposed = time.perf_counter(), _cpu_seconds(method)
    evaluation = _evaluate(method, problem, trajectory, references)
    evaluated = time.perf_counter()

    share = 1 / len(seeds)
    seconds = {
        "seconds_fit": (fitted - began) * share,
        "seconds_propose": (proposed - fitted) * share,
        "seconds_evaluate": (evaluated - proposed) * share,
        "seconds_cpu": (cpu_proposed - cpu_began) * share,
    }
    visible = problem.evaluate(problem.data.best()[:, None])  # (S, 1)
    best = torch.cat([visible, *evaluation.values], dim=1)
    best = best.nan_to_num(-torch.inf).amax(dim=1)  # (S,)
    failures = {**find_better_than_optimum(problem, best), **method.failures()}
    diagnostics = diagnose(method, problem, problem.evaluate)
    scored = [
        _record_one(
            trajectory,
            evaluation,
            i,
            spec,
            references[i],
            task,
            problem.data,
            diagnostics[i].get(GRAPH_DENSITY.name, float("nan")),
        )
        for i in range(len(seeds))
    ]
    planes = describe_planes(problem, problem.evaluate, [first for _, first in scored])
    records = []
    for i, (row, (record, _)) in enumerate(zip(rows, scored, strict=True)):
        failed = {"status": "failed", "reason": str(failures[i])} if i in failures else {}
        records.append(
            Record(
                row={**row, **record.row, **seconds, "seed": seeds[i], **failed},
                config=spec.config,
                provenance=provenance,
                curves=record.curves,
                values=record.values,
                predictions=record.predictions,
                designs=record.designs,
                diagnostics={
                    **diagnostics[i],
                    **describe_excess(record.curves),
                    **planes[i],
                    **({"terms_absent": terms[i].absent} if terms[i].absent else {}),
                },
            )
        )
    return records


def _cpu_seconds(method: Method) -> float:
    """Return the CPU time so far, with that of the process of a method."""
    other = method.cpu_seconds if isinstance(method, IsolatedMethod) else 0.0
    return time.process_time() + other


def _copy(data: Dataset) -> Dataset:
    """Copy what a method is handed, as it may change it; it takes one more table for each seed."""
    privileged, hidden = data.privileged, data.privileged.hidden
    if hidden is not None:
        privileged = replace(privileged, hidden=replace(hidden, visible=hidden.visible.clone()))
    return replace(data, x=data.x.clone(), y=data.y.clone(), privileged=privileged)


def draw_starts(data: Dataset, count: int, rng: Streams) -> Tensor:
    """Draw the visible designs that every method of a seed starts from, (S, K, d)."""
    picked = rng.child("starts").sample(data.n, count)  # (S, K)
    return torch.take_along_dim(data.x, picked[..., None], dim=1)


def collect(
    method: Method, starts: Tensor, rng: Streams, deadline: Deadline = NO_DEADLINE
) -> Trajectory:
    """Copy every proposal as it is made, with the method's own prediction of it."""
    trajectory = Trajectory()
    for proposal in track(method.propose(starts, rng), "iteration"):
        deadline.check()
        designs = _check_real("a proposal", proposal.designs).detach().cpu().clone()
        _check_shape(designs, starts, trajectory)
        predicted = proposal.predicted
        if predicted is None:
            predicted = method.predict(proposal.designs)
        if predicted is not None and predicted.shape != designs.shape[:2]:
            raise ValueError(
                f"predictions must be (S, K) = {tuple(designs.shape[:2])}, "
                f"got {tuple(predicted.shape)}"
            )
        if predicted is not None:
            _check_real("a prediction", predicted)
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


def _check_real(name: str, numbers: Tensor) -> Tensor:
    """Return a method's numbers, or raise if they are complex: only real parts would be stored."""
    if numbers.is_complex():
        kind = str(numbers.dtype).removeprefix("torch.")
        raise ValueError(f"{name} must be of real numbers, got {kind}; return its .real part")
    return numbers


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


def evaluate_designs(problem: Problem, x: Tensor) -> Tensor:  # (S, K, d) -> (S, K)
    """Return the true values of designs outside of any run, NaN where one is invalid."""
    return problem.evaluate(x)


def _evaluate(
    method: Method,
    problem: Problem,
    trajectory: Trajectory,
    references: Sequence[Reference],
) -> _Evaluation:
    """Value all collected designs, and compare the fitted model with held-out and visible rows."""
    held_out = _score_held_out(method, problem, references)
    order = _score_best_rows(method, problem.data, trajectory)
    values: list[Tensor] = []
    measured: list[Mapping[str, Tensor]] = []
    for designs in trajectory.designs:
        values.append(problem.evaluate(designs))
        first = measured[0] if measured else None
        measured.append(check_measurements(problem.measure(designs), designs, first))
    return _Evaluation(values, measured, held_out, order, problem.measures)


def _score_held_out(
    method: Method, problem: Problem, references: Sequence[Reference]
) -> list[HeldOut]:
    """Score predictions of the rows that the task has held out, if it has any, for each seed."""
    rows = problem.held_out
    predicted = None if rows is None else method.predict(rows.x.clone())
    if rows is None or predicted is None:
        return [HeldOut() for _ in references]
    guesses = (
        _check_real("a prediction", predicted).detach().cpu().to(torch.float64).numpy()
    )  # (S, H)
    return [
        HeldOut.of(y.numpy(), guesses[i], reference)
        for i, (y, reference) in enumerate(zip(rows.y, references, strict=True))
    ]


def _score_best_rows(method: Method, data: Dataset, trajectory: Trajectory) -> list[float]:
    """Return how well a fitted method orders the best visible tenth, NaN without predictions.

    It predicts in the precision of its own designs.
    """
    best = data.y.argsort(dim=1, descending=True, stable=True)[:, : max(2, data.n // 10)]
    rows = torch.take_along_dim(data.x, best[..., None], dim=1)  # (S, N / 10, d)
    predicts = trajectory.predicted[-1] is not None
    predicted = method.predict(rows.to(trajectory.designs[-1].dtype)) if predicts else None
    if predicted is None:
        return [float("nan")] * len(best)
    guesses = _check_real("a prediction", predicted).detach().cpu().to(torch.float64).numpy()
    truth = torch.take_along_dim(data.y, best, dim=1).numpy()
    return [overlap_area(guess, y) for guess, y in zip(guesses, truth, strict=True)]


def _record_one(
    trajectory: Trajectory,
    evaluation: _Evaluation,
    i: int,
    spec: Specification,
    reference: Reference,
    task: Task,
    data: Dataset,
    density: float,
) -> tuple[Record, Values]:
    """Score one seed of a stack; return also the designs that are ranked first, (top, d)."""
    values = torch.stack([value[i] for value in evaluation.values]).numpy()  # (T, K)
    known = [predicted[i] for predicted in trajectory.predicted if predicted is not None]
    predicted = (
        torch.stack(known).to(torch.float64).numpy() if len(known) == len(values) else None
    )  # (T, K)
    judged = Judged.of(values, predicted, spec.config["budget"]["top"], reference)
    scored = compute_curves(judged)
    curves = {
        "iteration": np.asarray(trajectory.iterations),
        **(scored if evaluation.has_values else mask_unmeasured(scored)),
        **{
            name: torch.stack([step[name][i].mean() for step in evaluation.measured]).numpy()
            for name in evaluation.measured[0]
        },
    }
    first = trajectory.designs[-1][i].to(torch.float64).numpy()[judged.chosen[-1]]  # (top, d)
    spread = Spread.of(first, data.x[i].numpy(), data.space.categorical)
    last = LastDesigns.of(judged, reference, evaluation.order[i], first, spread)
    last = last if evaluation.has_values else last.mask_unmeasured()
    held_out = evaluation.held_out[i]
    scores = final_scores(curves, reference, task.regret_unit, held_out, last, density)
    reason = find_non_finite(curves, scores, evaluation.has_values)
    row = {
        "status": "failed" if reason else "ok",
        "reason": reason or "",
        **{name: number if np.isfinite(number) else np.nan for name, number in scores.items()},
        "regret_unit": task.regret_unit,
        "iterations": int(curves["iteration"][-1]),
        "designs": values.shape[1],
    }
    with np.errstate(over="ignore"):  # predictions may be of any size
        stored = None if predicted is None else predicted.astype(np.float32)
    record = Record(
        row=row,
        curves=curves,
        values=values.astype(np.float32) if evaluation.has_values else None,
        predictions=stored,
        designs=trajectory.designs[-1][i].to(torch.float32).numpy(),
    )
    return record, first


def mask_unmeasured(curves: Mapping[str, Values]) -> dict[str, Values]:
    """Replace the curves of unmeasured designs by NaN, except those of predictions."""
    predicted = {curve.name for curve in CURVES if curve.predicted}
    return {
        name: curve if name in predicted else np.full(len(curve), np.nan)
        for name, curve in curves.items()
    }


def final_scores(
    curves: Mapping[str, Values],
    reference: Reference,
    regret_unit: str,
    held_out: HeldOut = HeldOut(),  # noqa: B008 - frozen
    last: LastDesigns = UNKNOWN_DESIGNS,
    density: float = float("nan"),
) -> dict[str, float]:
    """Return one number for each score of a run."""
    landmarks = np.asarray([reference.optimum, reference.worst, reference.best])
    optimum, worst, best = reference.standardise(landmarks).tolist()
    scale = reference.sd if regret_unit == "raw" else 1.0
    return compute_scores(
        RunEnd(dict(curves), optimum, scale, held_out, worst, best, last, density)
    )


def find_non_finite(
    curves: Mapping[str, Values], scores: Mapping[str, float], measured: bool = True
) -> str | None:
    """Return which number of a run is infinite, or that the headline is NaN; None if all is well.

    Elsewhere NaN is allowed and means unknown.
    """
    if measured and np.isnan(scores[HEADLINE.name]):
        return f"{HEADLINE.name} is nan, and every run must have it"
    single = {name: np.asarray([number]) for name, number in scores.items()}
    for name, numbers in {**curves, **single}.items():
        infinite = numbers[np.isinf(numbers)]
        if len(infinite):
            return f"{name} is {infinite[0]}, and a score must be finite"
    return None


def _references(problem: Problem) -> list[Reference]:
    unknown = torch.full((len(problem.data.y), 2), torch.nan)
    optima = unknown[:, 0] if problem.optimum is None else problem.optimum
    ranges = unknown if problem.full_range is None else problem.full_range
    return [
        Reference.of(y.numpy(), float(optimum), (float(low), float(high)))
        for y, optimum, (low, high) in zip(problem.data.y, optima, ranges, strict=True)
    ]


def find_terms(task: Task, problem: Problem, seeds: Sequence[int]) -> list[Terms]:
    """Return the terms of the paper's theorem of each seed of a task, whatever the method."""
    streams = task.streams(seeds).child("terms").rows
    found = zip(problem.theory(), streams, strict=True)
    return [instance.terms(stream.generator) for instance, stream in found]


def _landmarks(reference: Reference) -> dict[str, float]:
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


def sample_task(spec: Specification, task: Task, seed: int) -> TaskSample:
    """Return what a task looks like at one seed: its graph and some of its designs."""
    problem = task.problem([seed])
    check_problem(problem, task, 1)
    rows = min(problem.data.n, SAMPLE_ROWS)
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
        observed=_first_coordinates(problem.data.x[0], rows),
        hidden=None if hidden is None else _first_coordinates(hidden[0], rows),
        y=problem.data.y[0, :rows].tolist(),
    )


def _first_coordinates(x: Tensor, rows: int) -> list[list[float]]:
    """Return the first rows and coordinates with five significant digits."""
    corner: list[list[float]] = x[:rows, :SAMPLE_COORDINATES].to(torch.float64).tolist()
    return [[float(f"{value:.5g}") for value in row] for row in corner]
