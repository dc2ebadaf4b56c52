"""What every task promises."""

from dataclasses import FrozenInstanceError, replace
from itertools import combinations

import torch
from torch import Tensor

from ddobench.check.promises import Promise, Subject, compare_instances, watch_generators
from ddobench.contracts import Description, Problem

SEEDS = (0, 1, 2)
_NOT_FINITE = (float("nan"), float("inf"), -float("inf"))
_ROWS = 16  # at which interactions are computed
_PAIRS = 60  # of variables, at most about twice as many
_TOLERANCE = 1e-6  # of an interaction, relative to the spread of visible values


def shapes(subject: Subject) -> str | None:
    """Check the shapes and types of everything that is drawn."""
    task, drawn = subject.task(), subject.problem(*SEEDS)
    if not isinstance(drawn, Problem):
        return f"_draw returned a {type(drawn).__name__}"
    x, y = drawn.data.x, drawn.data.y
    seeds = len(SEEDS)
    wanted = (seeds, task.n)
    if x.shape[:2] != wanted or y.shape != wanted:
        return f"x {tuple(x.shape)} and y {tuple(y.shape)} for S={seeds} and N={task.n}"
    if x.dtype != torch.float64 or y.dtype != torch.float64:
        return f"x is {x.dtype} and y is {y.dtype}"
    if drawn.graphs is not None and len(drawn.graphs) != seeds:
        return f"{len(drawn.graphs)} graphs for {seeds} seeds"
    if drawn.optimum is not None and drawn.optimum.shape != (seeds,):
        return f"an optimum of the shape {tuple(drawn.optimum.shape)} for {seeds} seeds"
    if drawn.lower_bound is not None and drawn.lower_bound.shape != (seeds,):
        return f"a lower bound of the shape {tuple(drawn.lower_bound.shape)} for {seeds} seeds"
    if drawn.hidden is not None and drawn.hidden.shape[:2] != wanted:
        return f"hidden coordinates of the shape {tuple(drawn.hidden.shape)}"
    return None


def evaluated_shape(subject: Subject) -> str | None:
    """Check the shape of values for one design and for several."""
    drawn = subject.problem(*SEEDS)
    for count in (1, 5):
        designs = drawn.data.x[:, :count]
        values = drawn.evaluate(designs)
        if values.shape != designs.shape[:2] or values.dtype != torch.float64:
            return f"{values.dtype} {tuple(values.shape)} for designs {tuple(designs.shape)}"
    return None


def visible_values(subject: Subject) -> str | None:
    """Compare the oracle with the visible values."""
    drawn = subject.problem(*SEEDS)
    values, y = drawn.evaluate(drawn.data.x), drawn.data.y
    if values.isnan().any():
        return f"{int(values.isnan().sum())} of {values.numel()} visible designs are invalid"
    off = (values - y).abs() > 1e-9 + 1e-6 * y.abs()
    if drawn.exact and off.any():
        seed, row = off.nonzero()[0].tolist()
        return (
            f"row {row} of seed {SEEDS[seed]} has the visible value {y[seed, row]:.6g}, "
            f"and the oracle returns {values[seed, row]:.6g}"
        )
    return None


def optimum(subject: Subject) -> str | None:
    """Compare the visible values with the optimum, where it is known."""
    drawn = subject.problem(*SEEDS)
    if drawn.optimum is None:
        return None
    if not torch.isfinite(drawn.optimum).all():
        return f"the optimum is {drawn.optimum.tolist()}"
    best = drawn.data.y.max(dim=1).values
    for seed, top, known in zip(SEEDS, best.tolist(), drawn.optimum.tolist(), strict=True):
        if top > known + 1e-9:
            return f"seed {seed} has a visible value of {top:.6g} and an optimum of {known:.6g}"
    return None


def graph_nodes(subject: Subject) -> str | None:
    """Check the number of variables of the graphs."""
    drawn = subject.problem(*SEEDS)
    known = drawn.data.x if drawn.hidden is None else drawn.hidden
    sizes = {graph.d for graph in drawn.graphs or ()}
    return f"graphs on {sizes} variables" if sizes - {known.shape[2]} else None


def missing_edges(subject: Subject) -> str | None:
    """Look for interactions that are not in the graph."""
    return find_missing_edge(subject.problem(*SEEDS))


def find_missing_edge(problem: Problem) -> str | None:
    """Return a pair of variables that interacts without an edge, None if there is none.

    Without an interaction, the effect of changing one variable does not depend on the other:
    f(a', b') - f(a', b) - f(a, b') + f(a, b) = 0. New values of a variable are those of other
    rows, so this holds for numbers and for categories.
    """
    if problem.graphs is None:
        return None
    known = problem.data.x if problem.hidden is None else problem.hidden  # (S, N, d)
    base, others = known[:, :_ROWS], known[:, _ROWS : 2 * _ROWS]
    rows = min(base.shape[1], others.shape[1])
    base, others = base[:, :rows], others[:, :rows]
    spread = problem.data.y.std(dim=1)  # (S,)
    edges = [set(graph.edges) for graph in problem.graphs]
    pairs = [
        pair
        for pair in combinations(range(known.shape[2]), 2)
        if any(pair not in own for own in edges)
    ]
    for a, b in pairs[:: max(1, len(pairs) // _PAIRS)]:
        mixed = _mixed_difference(problem, base, others, a, b).abs()  # (S, rows)
        for seed, own in enumerate(edges):
            worst = float(mixed[seed].nan_to_num(0).max())
            if (a, b) not in own and worst > _TOLERANCE * (1 + float(spread[seed])):
                return (
                    f"variables {a} and {b} of instance {seed} interact ({worst:.3g}), "
                    "but no edge joins them"
                )
    return None


def _mixed_difference(problem: Problem, base: Tensor, others: Tensor, a: int, b: int) -> Tensor:
    """Return how much the effect of one variable depends on the other, (S, rows)."""
    total = torch.zeros(base.shape[:2], dtype=torch.float64)
    for changed, sign in (((a, b), 1), ((a,), -1), ((b,), -1), ((), 1)):
        x = base.clone()
        x[..., list(changed)] = others[..., list(changed)]
        total += sign * problem.evaluate(problem.observe(x))
    return total


def hidden_coordinates(subject: Subject) -> str | None:
    """Convert hidden coordinates to designs and back."""
    drawn = subject.problem(*SEEDS)
    if drawn.hidden is None:
        return None
    if not torch.allclose(drawn.observe(drawn.hidden), drawn.data.x, rtol=1e-6, atol=1e-6):
        return "observe(hidden) is not the visible designs"
    if not torch.allclose(drawn.recover(drawn.data.x), drawn.hidden, rtol=1e-4, atol=1e-4):
        return "recover(x) is not the hidden coordinates"
    return None


def invalid_designs(subject: Subject) -> str | None:
    """Check the value of a design that is not finite, and of the designs beside it."""
    drawn = subject.problem(*SEEDS)
    expected = drawn.evaluate(drawn.data.x[:, :4])
    for entry in _NOT_FINITE:
        designs = drawn.data.x[:, :4].clone()
        designs[1, 2, 0] = entry
        values = drawn.evaluate(designs)
        if not values[1, 2].isnan():
            return f"a design that begins with {entry} has the value {float(values[1, 2]):.6g}"
        values[1, 2] = expected[1, 2]
        if not torch.equal(values, expected):
            return f"a design that begins with {entry} changes the values of others"
    return None


def wrong_shapes(subject: Subject) -> str | None:
    """Evaluate designs of the wrong shape."""
    drawn = subject.problem(*SEEDS)
    for designs in (drawn.data.x[:, :, :-1], drawn.data.x[0]):
        try:
            drawn.evaluate(designs)
        except ValueError as error:
            if "designs must be" in str(error):
                continue
            return f"designs {tuple(designs.shape)} give another error: {error}"
        return f"designs {tuple(designs.shape)} are evaluated"
    return None


def rows_apart(subject: Subject) -> str | None:
    """Evaluate a design with others and alone."""
    drawn = subject.problem(*SEEDS)
    together = drawn.evaluate(drawn.data.x)
    alone = drawn.evaluate(drawn.data.x[:, 3:4])
    if torch.allclose(together[:, 3:4], alone, rtol=1e-9, atol=1e-12, equal_nan=True):
        return None
    return f"{float(together[0, 3]):.6g} with others and {float(alone[0, 0]):.6g} alone"


def measurements(subject: Subject) -> str | None:
    """Check the shapes of further measurements."""
    drawn = subject.problem(*SEEDS)
    designs = drawn.data.x[:, :4]
    for name, numbers in drawn.measure(designs).items():
        if numbers.shape != designs.shape[:2]:
            return f"{name} is {tuple(numbers.shape)} for designs {tuple(designs.shape)}"
    return None


def companions(subject: Subject) -> str | None:
    """Draw a seed with others and alone."""
    return compare_instances(subject.problem(4, 9, 2), 1, subject.problem(9), 0)


def repetition(subject: Subject) -> str | None:
    """Draw a seed twice, from two builds of the task."""
    return compare_instances(subject.task().problem([5]), 0, subject.task().problem([5]), 0)


def after_a_method(subject: Subject) -> str | None:
    """Draw a seed before and after a method has run."""
    before = subject.task().problem([0, 1])
    subject.run(0, 1)
    return compare_instances(before, 1, subject.task().problem([0, 1]), 1)


def different_seeds(subject: Subject) -> str | None:
    """Compare two seeds."""
    drawn = subject.problem(*SEEDS)
    same = torch.equal(drawn.data.x[0], drawn.data.x[1])
    return "seeds 0 and 1 have the same designs" if same else None


def global_generators(subject: Subject) -> str | None:
    """Check which global generators drawing and evaluating use."""
    with watch_generators() as used:
        drawn = subject.task().problem(SEEDS)
        drawn.evaluate(drawn.data.x)
    return f"{', '.join(used)} was used" if used else None


def description(subject: Subject) -> str | None:
    """Check the description of the task."""
    described = subject.task().describe()
    if not isinstance(described, Description):
        return f"describe() returned a {type(described).__name__}"
    empty = [name for name in ("title", "formula", "text") if not getattr(described, name)]
    return f"an empty {empty[0]}" if empty else None


def frozen(subject: Subject) -> str | None:
    """Try to change a parameter."""
    task = subject.task()
    try:
        task.n = 3  # type: ignore[misc]
    except FrozenInstanceError:
        return None
    return "task.n = 3 was accepted"


def bad_parameters(subject: Subject) -> str | None:
    """Build the task with invalid sizes."""
    task = subject.task()
    for name, value in (("d", 0), ("n", 1)):
        try:
            replace(task, **{name: value})
        except ValueError:
            continue
        return f"{name}={value} was accepted"
    return None


TASK_PROMISES = (
    Promise(
        "x is (S, N, d) and y (S, N), both float64; optimum (S,), graphs one per seed, or None",
        "build the Dataset and the Problem in _draw in these shapes, one instance per rng.seeds",
        shapes,
        first=True,
    ),
    Promise(
        "the value of designs (S, K, d) is (S, K) in float64",
        "let _evaluate reduce the last axis only, for any number of designs K",
        evaluated_shape,
        first=True,
    ),
    Promise(
        "every visible design is valid and the oracle gives its visible value",
        "let _draw and _evaluate compute values by the same function; check a task that adds "
        "noise with its noise at 0",
        visible_values,
    ),
    Promise(
        "no visible value exceeds the optimum",
        "set optimum to the largest value that any valid design has, or to None if it is not "
        "known exactly",
        optimum,
    ),
    Promise(
        "the graph is on the variables of the function",
        "give graphs as many variables as there are hidden coordinates, or as designs have "
        "where there are none",
        graph_nodes,
    ),
    Promise(
        "variables that no edge of the graph joins do not interact",
        "join all variables of each term of the function (Graph.from_cliques), or set graphs to "
        "None",
        missing_edges,
    ),
    Promise(
        "observe and recover convert hidden coordinates to designs and back",
        "let observe(hidden) be x, and recover(x) be hidden",
        hidden_coordinates,
    ),
    Promise(
        "a design that is not finite has the value NaN and changes no other value",
        "do not override evaluate(), and in _evaluate compute each design independently",
        invalid_designs,
    ),
    Promise(
        "designs of a wrong shape are refused",
        "do not override evaluate(); compute in _evaluate",
        wrong_shapes,
    ),
    Promise(
        "the value of a design does not depend on the designs beside it",
        "reduce over variables only, never over designs or seeds, and draw nothing in _evaluate",
        rows_apart,
    ),
    Promise(
        "every further measurement is (S, K)",
        "let measure() return one number for each design under each name",
        measurements,
    ),
    Promise(
        "an instance does not depend on the seeds drawn beside it",
        "draw from rng, which has a stream for each seed, and never reduce over S",
        companions,
        bits=True,
    ),
    Promise(
        "the same seed gives the same instance",
        "draw from rng only: no clock, no file that changes, no other generator",
        repetition,
    ),
    Promise(
        "all methods of a seed get the same data, whatever ran before",
        "keep no state between draws that a run could change",
        after_a_method,
    ),
    Promise("seeds differ", "draw designs from rng, e.g. rng.child('designs')", different_seeds),
    Promise(
        "no global generator is used",
        "draw from rng instead, e.g. rng.child('designs').normal(n, d)",
        global_generators,
    ),
    Promise(
        "a task describes itself",
        "return Description(title, formula, text) from describe(), none of them empty",
        description,
    ),
    Promise(
        "a task cannot be changed after it is built",
        "decorate the class with @dataclass(frozen=True, kw_only=True)",
        frozen,
    ),
    Promise(
        "invalid sizes are refused",
        "call super().__post_init__() in __post_init__, and raise UsageError for invalid "
        "parameters of your own",
        bad_parameters,
    ),
)
