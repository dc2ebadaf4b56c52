"""The RBF tasks as configured: paired across seeds and sizes, consistent oracle, exact optimum."""

import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest
import torch
import yaml

import ddobench
from ddobench.errors import UsageError
from ddobench.exact.families import FAMILIES
from ddobench.exact.terms import TERMS
from ddobench.tasks.rbf import RBF, RBFProblem, Toy3D

CONFIGS = Path(__file__).parents[2] / "conf" / "task"
TASKS: dict[str, RBF] = {
    "rbf": RBF(d=11, n=300),
    "chain": RBF(d=11, n=300, map="orthogonal"),
    "overcomplete": RBF(d=11, n=300, map="gaussian", order="softplus_affine"),
    "mixture": RBF(d=11, n=300, map="gaussian", base="mixture"),
    "toy3d": Toy3D(d=3, n=300),
    "truncated": RBF(d=11, n=300, map="orthogonal", noise=0.5, truncate=40.0, base="mixture"),
    "random": RBF(d=11, n=300, family="random"),
    "laplace": RBF(d=11, n=300, map="orthogonal", bump="laplace"),
    "cauchy": RBF(d=11, n=300, map="gaussian", bump="cauchy"),
    "network": RBF(d=7, n=300, map="orthogonal", bump="network"),
    "correlated": RBF(d=11, n=300, correlation=-0.6, base="mixture"),
}
every_task = pytest.mark.parametrize("task", TASKS.values(), ids=TASKS.keys())


def draw(task: RBF, *seeds: int) -> RBFProblem:
    problem = task.problem(seeds or (0, 1))
    assert isinstance(problem, RBFProblem)
    return problem


@pytest.mark.bits
@every_task
def test_a_seed_does_not_depend_on_other_seeds(task: RBF) -> None:
    alone, among = draw(task, 5), draw(task, 3, 5, 8)
    assert alone.optimum is not None
    assert among.optimum is not None
    assert torch.equal(alone.data.x[0], among.data.x[1])
    assert torch.equal(alone.data.y[0], among.data.y[1])
    assert torch.equal(alone.optimum[0], among.optimum[1])
    assert torch.equal(alone.peaks[0], among.peaks[1])
    designs = among.data.x[:, :50]
    assert torch.equal(alone.evaluate(designs[1:2])[0], among.evaluate(designs)[1])


@every_task
def test_seeds_draw_different_instances(task: RBF) -> None:
    problem = draw(task, 0, 1)
    assert problem.optimum is not None
    assert not torch.equal(problem.data.x[0], problem.data.x[1])
    assert problem.optimum[0] != problem.optimum[1]


@every_task
def test_a_smaller_table_is_the_beginning_of_a_larger_one(task: RBF) -> None:
    small, large = draw(task), draw(replace(task, n=700))
    assert small.hidden is not None
    assert large.hidden is not None
    torch.testing.assert_close(small.hidden, large.hidden[:, :300], rtol=0.0, atol=0.0)
    torch.testing.assert_close(small.data.x, large.data.x[:, :300], rtol=1e-12, atol=1e-12)
    torch.testing.assert_close(small.data.y, large.data.y[:, :300], rtol=1e-12, atol=1e-12)


@every_task
def test_the_optimum_is_attained_and_nothing_visible_is_better(task: RBF) -> None:
    problem = draw(task)
    assert problem.optimum is not None
    attained = problem.evaluate(problem.best_designs()[:, None])[:, 0]
    torch.testing.assert_close(attained, problem.optimum, rtol=1e-11, atol=0.0)
    assert (problem.evaluate(problem.data.x) <= problem.optimum[:, None]).all()


@pytest.mark.parametrize("name", [n for n, task in TASKS.items() if not task.noise])
def test_the_oracle_agrees_with_the_visible_values(name: str) -> None:
    problem = draw(TASKS[name])
    torch.testing.assert_close(
        problem.evaluate(problem.data.x), problem.data.y, rtol=1e-10, atol=1e-14
    )


def test_variants_of_a_task_share_the_function_of_a_seed() -> None:
    plain = draw(TASKS["rbf"])
    for name in ("chain", "mixture", "truncated", "correlated"):
        other = draw(TASKS[name])
        assert torch.equal(plain.peaks, other.peaks)


@pytest.mark.parametrize("bad", [0.0, -1.0, torch.nan, torch.inf, -torch.inf])
def test_a_design_without_a_pre_image_is_nan_and_does_not_affect_others(bad: float) -> None:
    problem = draw(TASKS["mixture"])
    x = problem.data.x[:, :3].clone()
    x[1, 1, 4] = bad
    expected = [[False, False, False], [False, True, False]]
    assert problem.evaluate(x).isnan().tolist() == expected
    assert problem.measure(x)["residual"].isnan().tolist() == expected


@pytest.mark.parametrize("bad", [torch.nan, torch.inf, -torch.inf])
def test_without_a_map_only_what_is_not_finite_is_invalid(bad: float) -> None:
    problem = draw(TASKS["rbf"])
    x = torch.full((2, 2, 11), -1e3, dtype=torch.float64)
    x[0, 1, 0] = bad
    assert problem.evaluate(x).isnan().tolist() == [[False, True], [False, False]]


@every_task
@pytest.mark.parametrize("shape", [(2, 11), (3, 4, 11), (2, 4, 12), (2, 4, 2)])
def test_designs_of_the_wrong_shape_are_refused(task: RBF, shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"designs must be \(S=2, K, d="):
        draw(task).evaluate(torch.ones(shape))


@every_task
@pytest.mark.parametrize("size", [5e-324, 1e-300, 1e-12, 1e12, 1e300, sys.float_info.max])
def test_extreme_designs_have_a_defined_value(task: RBF, size: float) -> None:
    problem = draw(task)
    x = torch.full_like(problem.data.x[:, :2], size)
    x[:, 1, ::2] = 1.0
    y = problem.evaluate(x)
    assert problem.optimum is not None
    defined = (y >= 0.0) & (y <= problem.optimum[:, None])
    assert (defined | y.isnan()).all()
    if task.order == "affine_softplus":
        assert not y.isnan().any()
    for measured in problem.measure(x).values():
        assert torch.equal(measured.isnan(), y.isnan())


def test_float32_designs_are_judged_in_float64() -> None:
    problem = draw(TASKS["chain"])
    y = problem.evaluate(problem.data.x.to(torch.float32))
    assert y.dtype == torch.float64
    torch.testing.assert_close(y, problem.data.y, rtol=0.0, atol=1e-5)


def test_only_over_complete_maps_have_a_residual_and_it_sees_steps_off_the_surface() -> None:
    assert draw(TASKS["chain"]).measure(draw(TASKS["chain"]).data.x) == {}
    assert draw(TASKS["rbf"]).measure(draw(TASKS["rbf"]).data.x) == {}
    problem = draw(TASKS["mixture"])
    assert problem.measure(problem.data.x)["residual"].max() < 1e-9
    assert problem.measure(problem.data.x * 1.5)["residual"].min() > 0.01


def test_noise_is_in_standard_deviations_and_leaves_the_optimum_alone() -> None:
    clean, noisy = draw(RBF(d=11, n=5000)), draw(RBF(d=11, n=5000, noise=0.5))
    assert torch.equal(clean.data.x, noisy.data.x)
    assert clean.optimum is not None
    assert noisy.optimum is not None
    assert torch.equal(clean.optimum, noisy.optimum)
    ratio = (noisy.data.y - clean.data.y).std(dim=1) / clean.data.y.std(dim=1)
    torch.testing.assert_close(ratio, torch.full_like(ratio, 0.5), rtol=0.1, atol=0.0)


@pytest.mark.parametrize("noise", [0.0, 0.5])
def test_truncation_hides_the_rows_above_the_percentile_and_keeps_n(noise: float) -> None:
    task = RBF(d=11, n=4000, noise=noise)
    whole, cut = draw(task), draw(replace(task, truncate=60.0))
    ceiling = whole.data.y.quantile(0.6, dim=1)
    assert cut.data.y.shape == whole.data.y.shape
    spread = whole.data.y.std(dim=1)
    assert ((cut.data.y.max(dim=1).values - ceiling).abs() < 0.1 * spread).all()
    below = (whole.data.y[0] <= cut.data.y[0].max()).nonzero()[:2000, 0]
    torch.testing.assert_close(cut.data.y[0, :2000], whole.data.y[0, below])


def test_the_mixture_has_two_even_clusters() -> None:
    hidden = draw(RBF(d=41, n=2000, base="mixture")).hidden
    assert hidden is not None
    side = hidden.mean(dim=2)  # (S, N)
    assert (side > 0).double().mean().item() == pytest.approx(0.5, abs=0.05)
    assert side.abs().mean().item() == pytest.approx(1.0, abs=0.02)


@pytest.mark.parametrize("base", ["normal", "mixture"])
def test_coordinates_are_correlated_the_more_the_closer_they_are(base: str) -> None:
    hidden = draw(RBF(d=5, n=20_000, correlation=0.7, base=base)).hidden
    assert hidden is not None
    apart = hidden[0, :, :, None] - hidden[0, :, None, :]  # (N, d, d), whatever the cluster
    lag = (torch.arange(5)[:, None] - torch.arange(5)).abs()
    expected = 2.0 * (1.0 - 0.7 ** lag.double())
    torch.testing.assert_close(apart.square().mean(dim=0), expected, rtol=0.05, atol=0.0)


def test_the_first_coordinate_does_not_depend_on_the_correlation() -> None:
    plain, other = draw(TASKS["rbf"]).hidden, draw(replace(TASKS["rbf"], correlation=0.5)).hidden
    assert plain is not None
    assert other is not None
    assert torch.equal(plain[:, :, 0], other[:, :, 0])
    assert not torch.equal(plain[:, :, 1], other[:, :, 1])


def test_the_observed_dimension_follows_the_map() -> None:
    assert RBF(d=11, n=5).observed == 11
    assert RBF(d=11, n=5, map="orthogonal").observed == 11
    assert RBF(d=11, n=5, map="gaussian").observed == 21
    assert draw(RBF(d=11, n=5, map="gaussian", d_obs=13)).data.x.shape == (2, 5, 13)


def test_the_graphs_are_the_true_ones() -> None:
    toy = draw(TASKS["toy3d"]).graphs
    chain = draw(RBF(d=7, n=5, map="orthogonal")).graphs
    random = draw(TASKS["random"]).graphs
    assert toy is not None
    assert chain is not None
    assert random is not None
    assert toy[0].cliques == ((0, 1), (1, 2))
    assert chain[1].cliques == ((0, 1, 2), (2, 3, 4), (4, 5, 6))
    assert random[0] != random[1]


@pytest.mark.parametrize("family", FAMILIES)
def test_every_family_makes_a_task_with_an_optimum(family: str) -> None:
    problem = draw(RBF(d=12 if family != "chain" else 13, n=50, family=family, map="gaussian"))
    assert problem.optimum is not None
    assert ((problem.optimum > 0) & (problem.optimum <= 1.0 + 1e-12)).all()


@every_task
def test_a_task_describes_itself(task: RBF) -> None:
    description = task.describe()
    assert str(task.d) in description.title
    assert TERMS[task.bump].formula in description.formula
    assert TERMS[task.bump].noun in description.text
    assert ("softplus" in description.formula) == (task.map != "identity")
    assert str(task.n) in description.text


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"d": 40}, "d must be odd for a chain of triangles, got 40; use 39 or 41"),
        ({"n": 1}, "n must be a whole number of at least 2, got 1"),
        ({"base": "cauchy"}, "task.base must be one of normal, mixture, got 'cauchy'"),
        ({"map": "cubic"}, "task.map must be one of identity, orthogonal, gaussian"),
        ({"order": "both"}, "task.order must be one of affine_softplus, softplus_affine"),
        ({"d_obs": 20}, "task.d_obs must be null without a map, got 20; use map=orthogonal"),
        ({"condition": 5.0}, "task.condition must be null without a map, got 5.0"),
        ({"map": "gaussian", "d_obs": 10}, "at least 11, got 10; use null or d=11 or more"),
        ({"map": "gaussian", "condition": 0.5}, "task.condition must be from 1 to 1e[+]06"),
        ({"bump": "mexican"}, "task.bump must be one of gaussian, laplace, cauchy, network, got"),
        (
            {"bump": "network", "clique_size": 4, "overlap": 2, "d": 12},
            "task.clique_size must be at most 3 for a random network per clique",
        ),
        ({"correlation": 1.0}, "task.correlation must lie between -1 and 1, .* got 1.0; use 0"),
        ({"noise": -0.1}, "task.noise must be a standard deviation >= 0, got -0.1"),
        ({"noise": float("nan")}, "task.noise must be a standard deviation >= 0, got nan"),
        ({"truncate": 100.0}, "task.truncate must be a percentile .* got 100.0; use null"),
    ],
)
def test_an_impossible_request_is_refused_with_a_remedy(
    settings: dict[str, Any], message: str
) -> None:
    with pytest.raises(UsageError, match=message):
        RBF(**{"d": 11, "n": 100, **settings})


def test_the_three_dimensional_toy_has_three_dimensions() -> None:
    with pytest.raises(UsageError, match="d must be 3 for the three-dimensional toy, got 5"):
        Toy3D(d=5, n=100)


@pytest.mark.parametrize("name", ["rbf", "chain", "mixture", "toy3d"])
def test_a_config_lists_every_setting_of_its_class(name: str) -> None:
    config = yaml.safe_load((CONFIGS / f"{name}.yaml").read_text())
    node = config["task"]
    kind = getattr(ddobench.tasks.rbf, node["_target_"].rsplit(".", 1)[1])
    settings = {key: value for key, value in node.items() if key not in ("_target_", "card")}
    assert set(settings) == {field.name for field in fields(kind)}
    kind(**{**settings, "d": config["d"], "n": config["n"]})
