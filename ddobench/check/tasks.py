"""What every task promises."""

from dataclasses import FrozenInstanceError, replace

import torch

from ddobench.check.differences import compare_instances, watching_generators
from ddobench.check.interactions import find_missing_edge
from ddobench.check.promises import Promise
from ddobench.check.subject import Subject
from ddobench.contracts import Description, Problem

SEEDS = (0, 1, 2)
_POISONS = (float("nan"), float("inf"), -float("inf"))


def shapes(subject: Subject) -> str | None:
    """Look at the shapes and types of all that is drawn."""
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
    """Look at the values of a few designs, also in the shape of another number of them."""
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
    if off.any():
        seed, row = off.nonzero()[0].tolist()
        return (
            f"row {row} of seed {SEEDS[seed]} is visible as {y[seed, row]:.6g}, "
            f"and the oracle says {values[seed, row]:.6g}"
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
    """Count the variables of the graphs."""
    drawn = subject.problem(*SEEDS)
    known = drawn.data.x if drawn.hidden is None else drawn.hidden
    sizes = {graph.d for graph in drawn.graphs or ()}
    return f"graphs on {sizes} variables" if sizes - {known.shape[2]} else None


def missing_edges(subject: Subject) -> str | None:
    """Look for interactions that the graph does not have."""
    return find_missing_edge(subject.problem(*SEEDS))


def hidden_coordinates(subject: Subject) -> str | None:
    """Go from hidden coordinates to designs and back."""
    drawn = subject.problem(*SEEDS)
    if drawn.hidden is None:
        return None
    if not torch.allclose(drawn.observe(drawn.hidden), drawn.data.x, rtol=1e-6, atol=1e-6):
        return "observe(hidden) is not the visible designs"
    if not torch.allclose(drawn.recover(drawn.data.x), drawn.hidden, rtol=1e-4, atol=1e-4):
        return "recover(x) is not the hidden coordinates"
    return None


def invalid_designs(subject: Subject) -> str | None:
    """Look at what a design that is no number does to its value and to its neighbours."""
    drawn = subject.problem(*SEEDS)
    sound = drawn.evaluate(drawn.data.x[:, :4])
    for poison in _POISONS:
        designs = drawn.data.x[:, :4].clone()
        designs[1, 2, 0] = poison
        values = drawn.evaluate(designs)
        if not values[1, 2].isnan():
            return f"a design that begins with {poison} has the value {float(values[1, 2]):.6g}"
        values[1, 2] = sound[1, 2]
        if not torch.equal(values, sound):
            return f"a design that begins with {poison} changes the values of others"
    return None


def wrong_shapes(subject: Subject) -> str | None:
    """Hand over designs of the wrong shape."""
    drawn = subject.problem(*SEEDS)
    for designs in (drawn.data.x[:, :, :-1], drawn.data.x[0]):
        try:
            drawn.evaluate(designs)
        except ValueError as error:
            if "designs must be" in str(error):
                continue
            return f"designs {tuple(designs.shape)} give another error: {error}"
        return f"designs {tuple(designs.shape)} are valued"
    return None


def rows_apart(subject: Subject) -> str | None:
    """Value designs in another company."""
    drawn = subject.problem(*SEEDS)
    together = drawn.evaluate(drawn.data.x)
    alone = drawn.evaluate(drawn.data.x[:, 3:4])
    if torch.allclose(together[:, 3:4], alone, rtol=1e-9, atol=1e-12, equal_nan=True):
        return None
    return f"{float(together[0, 3]):.6g} among others and {float(alone[0, 0]):.6g} alone"


def measurements(subject: Subject) -> str | None:
    """Look at the names and shapes of further measurements."""
    drawn = subject.problem(*SEEDS)
    designs = drawn.data.x[:, :4]
    for name, numbers in drawn.measure(designs).items():
        if numbers.shape != designs.shape[:2]:
            return f"{name} is {tuple(numbers.shape)} for designs {tuple(designs.shape)}"
    return None


def companions(subject: Subject) -> str | None:
    """Draw a seed beside others and alone."""
    return compare_instances(subject.problem(4, 9, 2), 1, subject.problem(9), 0)


def repetition(subject: Subject) -> str | None:
    """Draw a seed twice, from two builds of the task."""
    return compare_instances(subject.task().problem([5]), 0, subject.task().problem([5]), 0)


def after_a_method(subject: Subject) -> str | None:
    """Draw a seed before and after a method was at work."""
    before = subject.task().problem([0, 1])
    subject.run(0, 1)
    return compare_instances(before, 1, subject.task().problem([0, 1]), 1)


def different_seeds(subject: Subject) -> str | None:
    """Compare two seeds."""
    drawn = subject.problem(*SEEDS)
    same = torch.equal(drawn.data.x[0], drawn.data.x[1])
    return "seeds 0 and 1 have the same designs" if same else None


def global_generators(subject: Subject) -> str | None:
    """Draw and value while the global generators are watched."""
    with watching_generators() as used:
        drawn = subject.task().problem(SEEDS)
        drawn.evaluate(drawn.data.x)
    return f"{', '.join(used)} was used" if used else None


def description(subject: Subject) -> str | None:
    """Read what the task says of itself."""
    told = subject.task().describe()
    if not isinstance(told, Description):
        return f"describe() returned a {type(told).__name__}"
    empty = [name for name in ("title", "formula", "text") if not getattr(told, name)]
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
    """Build the task with sizes that make no sense."""
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
        "let _draw and _evaluate compute values by the same function; examine a task that adds "
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
        "give graphs as many variables as there are hidden coordinates, or design variables "
        "without any",
        graph_nodes,
    ),
    Promise(
        "variables that no edge of the graph joins do not interact",
        "join all variables that one term of the function holds (Graph.from_cliques), or set "
        "graphs to None",
        missing_edges,
    ),
    Promise(
        "observe and recover lead from hidden coordinates to designs and back",
        "let observe(hidden) be x, and recover(x) be hidden",
        hidden_coordinates,
    ),
    Promise(
        "a design that is no number is invalid, NaN, and changes no other value",
        "leave evaluate() as it is, and in _evaluate treat designs apart from each other",
        invalid_designs,
    ),
    Promise(
        "designs of a wrong shape are refused",
        "leave evaluate() as it is and compute in _evaluate",
        wrong_shapes,
    ),
    Promise(
        "the value of a design does not depend on those beside it",
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
        "draw from rng, which has a stream for each seed, and reduce over other axes than S",
        companions,
        bits=True,
    ),
    Promise(
        "the same seed gives the same instance",
        "draw from rng alone: no clock, no file that changes, no generator of its own",
        repetition,
    ),
    Promise(
        "all methods of a seed get the same data, whoever ran before",
        "keep nothing between draws that a run could change",
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
        "return Description(title, formula, text) from describe(), with something in each",
        description,
    ),
    Promise(
        "a task cannot be changed once it is built",
        "decorate the class with @dataclass(frozen=True, kw_only=True)",
        frozen,
    ),
    Promise(
        "sizes that make no sense are refused",
        "call super().__post_init__() in __post_init__, and raise UsageError for parameters of "
        "your own that make no sense",
        bad_parameters,
    ),
)
