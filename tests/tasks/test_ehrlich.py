"""Promises of the Ehrlich functions, against values of the authors' package."""

import re
from typing import Any

import pytest
import torch

from ddobench.errors import UsageError
from ddobench.tasks.ehrlich import Chain, Ehrlich, EhrlichProblem, Motifs, find_value

SEEDS = (0, 1, 2)

# an instance of pytorch-holo 0.0.5: Ehrlich(num_states=6, dim=20, num_motifs=2, motif_length=4,
# quantization=4, random_seed=3), sequences, and what it says of them (-inf as NaN)
BANNED = {(0, 4), (1, 2), (2, 1), (3, 5), (4, 3), (5, 0)}
MOTIFS = Motifs(
    torch.tensor([[1, 0, 1, 3], [3, 2, 2, 0]]), torch.tensor([[0, 3, 6, 7], [0, 3, 5, 7]])
)
REFERENCE = {
    "11050013333210200010": float("nan"),
    "10055105201055555534": 0.0625,
    "01001010334101034510": 0.125,
    "05551051010300010341": 0.1875,
    "34100330051010010100": 0.25,
    "11100011053225201000": 0.375,
    "11100013330342010100": 0.5,
    "41000013033033200000": 0.5625,
    "11001010333202200000": 0.75,
    "14101013133222240010": 1.0,
}


def problem_of(seeds: tuple[int, ...] = SEEDS, **settings: Any) -> EhrlichProblem:
    """Draw instances; d is 16 and n is 50 by default."""
    problem = Ehrlich(**{"d": 16, "n": 50, **settings}).problem(seeds)
    assert isinstance(problem, EhrlichProblem)
    return problem


def reference_chain() -> Chain:
    """Return a chain with the bans of the reference."""
    allowed = [[(i, j) not in BANNED for j in range(6)] for i in range(6)]
    return Chain(torch.tensor(allowed).to(torch.float64) / 5)


def reference_values(quantisation: int) -> list[float]:
    """Return our values of the sequences of the reference."""
    x = torch.tensor([[int(letter) for letter in word] for word in REFERENCE])
    return find_value(x.to(torch.float64), reference_chain(), MOTIFS, quantisation).tolist()


def test_values_are_those_of_the_reference() -> None:
    assert reference_values(4) == pytest.approx(list(REFERENCE.values()), rel=1e-12, nan_ok=True)


def test_a_coarser_quantisation_rounds_each_motif_down() -> None:
    halves = reference_values(2)[1:]
    assert all(half <= value for half, value in zip(halves, [*REFERENCE.values()][1:], strict=True))
    assert set(halves) == {0.0, 0.25, 0.5, 1.0}
    assert reference_values(1)[1:] == [0.0] * 8 + [1.0]


def test_a_solution_repeats_states_in_the_gaps() -> None:
    assert MOTIFS.solution(20).tolist() == [1, 1, 1, 0, 0, 0, 1, 3, 3, 3, 3, 2, 2, 2, 2, *[0] * 5]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"d": 32},
        {"d": 33, "motifs": 3, "length": 8, "quantisation": 2},
        {"d": 6, "states": 3, "motifs": 3, "length": 2, "quantisation": 1},
        {"d": 64, "states": 20, "motifs": 2},
    ],
)
def test_the_optimum_is_attained_by_a_valid_design(settings: dict[str, Any]) -> None:
    problem = problem_of(tuple(range(8)), **settings)
    assert problem.optimum is not None
    assert torch.equal(problem.evaluate(problem.best_designs()[:, None])[:, 0], problem.optimum)
    assert problem.optimum.tolist() == [1.0] * 8


def test_walks_are_valid_where_hardly_a_uniform_design_is() -> None:
    problem = problem_of(tuple(range(20)), d=32, n=1000)
    uniform = torch.randint(32, (20, 5000, 32), generator=torch.Generator().manual_seed(0))
    share = float((~problem.evaluate(uniform).isnan()).double().mean())
    assert 2e-4 < share < 2e-3  # 6 in 10,000
    assert torch.equal(problem.evaluate(problem.data.x), problem.data.y)
    best = problem.data.y.max(dim=1).values
    assert 0.05 < float(best.median()) < 0.2


def test_states_come_as_often_as_the_stationary_distribution_says() -> None:
    problem = problem_of((3,), d=32, n=3000, states=6)
    shares = problem.data.x[0].flatten().to(torch.int64).bincount(minlength=6) / (3000 * 32)
    assert torch.allclose(shares.double(), problem.chains[0].stationary(), atol=0.02)
    after = problem.chains[0].stationary() @ problem.chains[0].transitions
    assert torch.allclose(after, problem.chains[0].stationary(), atol=1e-12)


def test_every_state_is_reached_within_two_steps_and_may_be_repeated() -> None:
    for states in (3, 4, 7, 9, 12, 32):
        for chain in problem_of(states=states).chains:
            assert (chain.transitions @ chain.transitions > 0).all()
            assert (chain.transitions.diagonal() > 0).all()
            assert torch.allclose(chain.transitions.sum(dim=1), torch.ones(states).double())


@pytest.mark.parametrize("truncate", [None, 60.0])
def test_fewer_rows_are_the_first_of_more_rows(truncate: float | None) -> None:
    few = problem_of(n=30, truncate=truncate).data
    many = problem_of(n=300, truncate=truncate).data
    assert torch.equal(few.x, many.x[:, :30])
    assert torch.equal(few.y, many.y[:, :30])


def test_truncation_hides_the_best_walks_and_keeps_the_function() -> None:
    whole, part = problem_of(n=2000), problem_of(n=2000, truncate=60.0)
    assert (part.data.y.max(dim=1).values < whole.data.y.max(dim=1).values).all()
    for ours, theirs in zip(whole.motifs, part.motifs, strict=True):
        assert torch.equal(ours.states, theirs.states)


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"d": 15},
            "d must be at least 16, for task.motifs=4 of task.length=4 side by side, got 15",
        ),
        (
            {"states": 2},
            "task.states must be a whole number of at least 3, got 2; "
            "with fewer, states may be unreachable",
        ),
        (
            {"quantisation": 3},
            "task.quantisation must divide task.length=4, got 3; "
            "otherwise no sequence has the value 1",
        ),
        (
            {"length": 1},
            "task.length must be a whole number of at least 2, got 1; a motif has several states",
        ),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)
