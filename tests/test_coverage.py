"""Promises of the terms of the paper's theorem."""

from itertools import product
from typing import Any

import numpy as np
import pytest
from scipy.optimize import minimize

import ddobench
from ddobench.contracts import Task
from ddobench.coverage import (
    DRAWS,
    POLICY,
    TERMS,
    CategoricalRows,
    CliqueFunctions,
    Instance,
    NormalRows,
    Values,
)
from ddobench.runner.run import find_terms
from ddobench.tasks.classic import Classic
from ddobench.tasks.coverage import Coverage
from ddobench.tasks.nk import NK
from ddobench.tasks.quadratic import Quadratic
from ddobench.tasks.rbf import RBF

COUNT = 40


def generator(seed: int = 0) -> np.random.Generator:
    """Return a generator."""
    return np.random.default_rng(seed)


def terms_of(task: Task, seed: int = 0) -> dict[str, float]:
    """Return the terms that are known at one seed."""
    return find_terms(task, task.problem([seed]), [seed])[0].known


def random_cliques(rng: np.random.Generator, d: int) -> list[tuple[int, ...]]:
    """Return some sets of variables."""
    sizes = rng.integers(1, d + 1, size=3)
    return [tuple(sorted(rng.choice(d, size, replace=False).tolist())) for size in sizes]


def random_tables(rng: np.random.Generator, d: int) -> CategoricalRows:
    """Return random blocks of dependent variables, each with a random table."""
    order, blocks = rng.permutation(d).tolist(), []
    while order:
        own = tuple(order.pop() for _ in range(min(len(order), int(rng.integers(1, 4)))))
        table = rng.dirichlet(np.ones(int(np.prod([1 + v % 3 + 1 for v in own]))))
        blocks.append((own, table.reshape([1 + v % 3 + 1 for v in own])))
    return CategoricalRows(blocks)


def largest_ratio(rows: Any, best: Values, cliques: list[tuple[int, ...]]) -> float:
    """Return (b), or (a) for a single clique of all variables, as a log."""
    found: list[float] = [rows.log_ratio(best, clique) for clique in cliques]
    assert all(isinstance(ratio, float) for ratio in found)
    return max(found)


@pytest.mark.parametrize("seed", range(COUNT))
def test_the_lemma_holds_on_random_discrete_instances(seed: int) -> None:
    rng = generator(seed)
    d = int(rng.integers(2, 7))
    rows = random_tables(rng, d)
    whole = largest_ratio(rows, np.zeros(d), [tuple(range(d))])
    assert largest_ratio(rows, np.zeros(d), random_cliques(rng, d)) <= whole + 1e-12


@pytest.mark.parametrize("seed", range(COUNT))
def test_the_lemma_holds_on_random_normal_instances(seed: int) -> None:
    rng = generator(seed)
    d = int(rng.integers(2, 7))
    square = rng.normal(size=(d, d))
    shift = rng.normal(size=d) if seed % 2 else None
    rows = NormalRows(rng.normal(size=d), square @ square.T + 0.1 * np.eye(d), shift)
    best = 2 * rng.normal(size=d)
    whole = largest_ratio(rows, best, [tuple(range(d))])
    assert largest_ratio(rows, best, random_cliques(rng, d)) <= whole + 1e-9


@pytest.mark.parametrize("seed", range(10))
def test_coverage_of_categories_is_that_of_the_worst_policy(seed: int) -> None:
    rng = generator(seed)
    rows, d = random_tables(rng, 3), 3
    sizes = [1 + v % 3 + 1 for v in range(d)]
    joint = np.ones(sizes)
    for own, table in rows.blocks:
        axes = [own.index(v) for v in sorted(own)]
        shape = [size if v in own else 1 for v, size in enumerate(sizes)]
        joint = joint * table.transpose(axes).reshape(shape)
    for clique in [(0,), (0, 2), (0, 1, 2)]:
        others = tuple(v for v in range(d) if v not in clique)
        marginal = joint.sum(axis=others)
        policies = [1 / marginal[cell] for cell in product(*map(range, marginal.shape))]
        assert rows.log_ratio("", clique) == pytest.approx(np.log(max(policies)))


@pytest.mark.parametrize("shift", [None, np.array([1.0, 0.5, -2.0])])
def test_coverage_of_normal_rows_is_the_largest_ratio_of_densities(shift: Values | None) -> None:
    mean, best = np.array([0.0, 1.0, 0.0]), np.array([1.0, -1.0, 2.0])
    covariance = np.array([[1.0, 0.6, 0.1], [0.6, 1.0, 0.0], [0.1, 0.0, 4.0]])
    rows = NormalRows(mean, covariance, shift)

    def log_density(x: Values, middle: Values, spread: Values) -> float:
        away = x - middle
        volume = np.linalg.slogdet(2 * np.pi * spread)[1]
        return float(-(away @ np.linalg.solve(spread, away) + volume) / 2)

    def loss(x: Values) -> float:
        policy = log_density(x, best, POLICY**2 * np.eye(3))
        ends = [mean] if shift is None else [mean - shift, mean + shift]
        parts = [log_density(x, end, covariance) - np.log(len(ends)) for end in ends]
        return float(np.logaddexp.reduce(parts) - policy)

    numeric = -minimize(loss, best, method="Nelder-Mead", options={"xatol": 1e-9}).fun
    assert rows.log_ratio(best, (0, 1, 2)) == pytest.approx(numeric, abs=1e-6)


def test_uniform_bits_have_the_coverage_of_the_paper() -> None:
    known = terms_of(Quadratic(d=100, n=50))
    assert known["log10_coverage"] == pytest.approx(100 * np.log10(2))
    assert known["log10_clique_coverage"] == pytest.approx(2 * np.log10(2))
    assert known["clique_complexity"] == pytest.approx(np.sqrt(100 * 400 / 50))
    nk = terms_of(NK(d=12, n=50, q=3, k=2))
    assert nk["log10_clique_coverage"] == pytest.approx(3 * np.log10(3))


def test_stacking_pairs_takes_the_coverage_of_designs_away_and_leaves_that_of_cliques() -> None:
    few, many = (terms_of(Coverage(d=d, n=1000)) for d in (2, 20))
    assert many["log10_coverage"] == pytest.approx(10 * few["log10_coverage"])
    assert many["log10_clique_coverage"] == pytest.approx(few["log10_clique_coverage"])
    assert many["nearest_row"] > 10 * many["nearest_clique_row"]


@pytest.mark.parametrize("rho", [-0.95, 0.6])
def test_sigma_is_the_correlation_of_clique_functions_within_its_error(rho: float) -> None:
    known = terms_of(Coverage(d=2, n=10, correlation=rho))
    truth = abs(2 * rho**2 + 8 * rho) / np.sqrt(6 * 18)  # of (z - 1)^2 and (z - 2)^2
    assert 0 < known["clique_correlation_error"] < 0.02
    assert abs(known["clique_correlation"] - truth) < 5 * known["clique_correlation_error"]
    bits = terms_of(Quadratic(d=4, n=10))  # neighbours share a bit: (1/8 - 1/16) / (3/16)
    assert abs(bits["clique_correlation"] - 1 / 3) < 5 * bits["clique_correlation_error"]


def test_functions_of_independent_variables_have_no_correlation() -> None:
    known = terms_of(RBF(d=6, n=10, family="disconnected"))
    assert (known["clique_correlation"], known["clique_correlation_error"]) == (0.0, 0.0)


def test_distances_to_the_nearest_row_are_in_spreads_of_the_rows() -> None:
    visible = np.array([[0.0, 10.0], [2.0, 30.0]])  # standard deviations 1 and 10
    instance = Instance(visible, None, cliques=[(0,), (1,)], best=np.array([2.0, 10.0]))
    known = instance.terms(generator()).known
    assert known["nearest_clique_row"] == 0.0
    assert known["nearest_row"] == pytest.approx(np.sqrt((0 + 2.0**2) / 2))
    bits = Instance(np.eye(4), (2,) * 4, cliques=[(0, 1), (2, 3)], best=np.ones(4))
    assert bits.terms(generator()).known["nearest_row"] == 0.75
    assert bits.terms(generator()).known["nearest_clique_row"] == 0.5


@pytest.mark.parametrize(
    ("task", "name", "reason"),
    [
        (RBF(d=5, n=10, truncate=50.0), "log10_coverage", "rows of large values are hidden"),
        (RBF(d=5, n=10), "clique_complexity", "a model of them has"),
        (RBF(d=3, n=10), "clique_correlation", "only one clique"),
        (Classic(d=3, n=10), "log10_clique_coverage", "not known in closed form"),
        (NK(d=6, n=10, truncate=50.0), "clique_correlation", "rows of large values are hidden"),
        (Coverage(d=2, n=10, correlation=-0.999), "log10_coverage", "it is infinite"),
    ],
)
def test_a_term_that_is_unknown_is_absent_with_a_reason(task: Task, name: str, reason: str) -> None:
    (found,) = find_terms(task, task.problem([0]), [0])
    assert name not in found.known
    assert reason in found.absent[name]
    assert {*found.known, *found.absent} == {*TERMS}
    assert np.isfinite([*found.known.values()]).all()


def test_a_table_without_an_oracle_has_no_terms_but_reasons() -> None:
    empty = Instance(np.zeros((3, 2)), None).terms(generator())
    assert not empty.known
    assert set(empty.absent.values()) == {
        "the task knows no graph",
        "no design is known that attains the optimum",
        "the distribution of the rows is not known in closed form",
        "the functions of single cliques are not known",
    }


def test_the_terms_of_a_seed_do_not_depend_on_its_companions() -> None:
    task = Coverage(d=4, n=20)
    together = find_terms(task, task.problem([3, 5]), [3, 5])
    assert together[1] == find_terms(task, task.problem([5]), [5])[0]


def test_rows_are_drawn_as_they_are_described() -> None:
    shifted = NormalRows(np.array([1.0, 0.0]), np.array([[1.0, 0.5], [0.5, 1.0]]), np.ones(2))
    drawn = shifted.draw(generator(), 100_000)
    np.testing.assert_allclose(drawn.mean(axis=0), [1.0, 0.0], atol=0.03)
    np.testing.assert_allclose(np.cov(drawn.T), [[2.0, 1.5], [1.5, 2.0]], atol=0.05)
    table = np.array([[0.1, 0.2], [0.3, 0.4]])
    pairs = CategoricalRows([((1, 0), table)]).draw(generator(), 100_000)
    assert np.mean((pairs[:, 1] == 1) & (pairs[:, 0] == 0)) == pytest.approx(0.3, abs=0.01)


def test_a_constant_function_does_not_make_a_correlation_undefined() -> None:
    def values(x: Values) -> Values:
        return np.stack([np.ones(len(x)), x[:, 0], x[:, 0]], axis=1)

    rows = NormalRows(np.zeros(1), np.eye(1))
    functions = CliqueFunctions([(0,), (0,), (0,)], values)
    known = (
        Instance(np.zeros((2, 1)), None, rows=rows, functions=functions).terms(generator()).known
    )
    assert known["clique_correlation"] == pytest.approx(1.0)
    assert DRAWS > 1


def test_a_run_stores_the_terms_of_its_task_whatever_the_method(tmp_path: Any) -> None:
    for method in ("naive", "random"):
        ddobench.run(task="coverage", method=method, n=20, seed=0, results_dir=tmp_path)
    runs = ddobench.load(tmp_path)
    task = ddobench.task("coverage", n=20)
    for name in ("log10_coverage", "nearest_clique_row", "clique_correlation"):
        assert runs[name].tolist() == [task.terms[name]] * 2
    assert "clique_complexity" not in runs
    assert "a model of them has" in str(task.terms["clique_complexity"])
