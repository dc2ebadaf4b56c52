"""Promises of the curved surface: an exact optimum, and distances that decide what is valid."""

import re
from typing import Any

import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.planes import LocalPlanes
from ddobench.tasks.surface import HEIGHT, Surface, SurfaceProblem

SEEDS = (0, 1, 2)


def problem_of(seeds: tuple[int, ...] = SEEDS, **settings: Any) -> SurfaceProblem:
    """Draw instances; d is 12 and n is 300 by default."""
    problem = Surface(**{"d": 12, "n": 300, **settings}).problem(seeds)
    assert isinstance(problem, SurfaceProblem)
    return problem


def normals(*shape: int) -> Tensor:
    """Draw the same normals in every test."""
    return torch.randn(*shape, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


def test_the_optimum_is_attained_and_nothing_near_or_far_is_better() -> None:
    problem = problem_of()
    assert problem.optimum is not None
    values = problem.evaluate(problem.best_designs()[:, None])[:, 0]
    torch.testing.assert_close(values, problem.optimum, rtol=1e-9, atol=0.0)
    for scale in (1e-3, 0.1, 1.0, 10.0):
        for instance in problem.instances:
            hidden = instance.centres[:1] + scale * normals(2000, 5)
            assert float(instance.value(hidden).max()) <= HEIGHT


def test_there_is_room_above_the_best_row_and_more_of_it_farther_out() -> None:
    near, usual, far = (
        float((HEIGHT - problem_of(reach=reach, n=2000).data.y.amax(dim=1)).mean())
        for reach in (0.0, 2.5, 4.0)
    )
    assert 0.0 < near < usual < far
    assert usual > 0.5


def test_a_point_of_the_surface_is_recovered_and_has_the_value_of_its_hidden_variables() -> None:
    problem = problem_of(d=30)
    for i, instance in enumerate(problem.instances):
        hidden = 1.2 * normals(500, 5)
        found, distance = instance.recover(instance.observe(hidden), problem.thickness)
        torch.testing.assert_close(found, hidden, rtol=1e-5, atol=1e-5)
        assert float(distance.max()) < 1e-7
        designs = problem.best_designs()[:, None].repeat(1, 500, 1)
        designs[i] = instance.observe(hidden)
        torch.testing.assert_close(problem.evaluate(designs)[i], instance.value(hidden))


def test_more_starts_find_no_nearer_point_of_the_surface() -> None:
    problem = problem_of((0,), d=30)
    (instance,) = problem.instances
    rows = problem.data.x[0, :40]
    designs = torch.cat([rows + scale * normals(40, 30) for scale in (0.05, 0.2, 0.3)])
    designs = torch.cat([designs, (rows + problem.data.x[0, 40:80]) / 2])
    distance = problem.measure(designs[None])["surface_distance"][0]
    assert 0.2 < float((distance <= problem.thickness).double().mean()) < 0.8
    for start in instance.starts[:60]:
        again = instance._descend(designs, start.repeat(len(designs), 1), problem.thickness)[1]
        assert float((distance - again).max()) < 1e-4


def test_a_design_is_invalid_beyond_the_thickness_and_has_a_nearest_point() -> None:
    problem = problem_of(d=30, scatter=0.0)
    best = problem.best_designs()[:, None]
    away = torch.nn.functional.normalize(normals(3, 20, 30), dim=2) * 30**0.5  # distance 1
    near, far = best + 0.05 * away, best + 0.9 * away
    assert not problem.evaluate(near).isnan().any()
    assert problem.evaluate(far).isnan().all()
    measured = problem.measure(torch.cat([near, far], dim=1))
    assert float(measured["surface_distance"][:, :20].max()) <= 0.05 + 1e-9
    assert float(measured["surface_distance"][:, 20:].min()) > problem.thickness
    assert measured["surface_value"].isfinite().all()
    assert problem.evaluate(1e200 * torch.ones_like(best)).isnan().all()


def test_what_was_measured_last_does_not_leak_into_other_designs() -> None:
    problem = problem_of()
    designs = problem.data.x[:, :5].clone()
    first = problem.evaluate(designs).clone()
    designs[0, 0] += 5.0
    assert problem.evaluate(designs).isnan().sum() == 1
    torch.testing.assert_close(problem.evaluate(problem.data.x[:, :5]), first)
    lost = torch.full_like(designs, torch.nan)
    assert all(numbers.isnan().all() for numbers in problem.measure(lost).values())


def test_columns_are_standardised_and_rows_near_the_surface() -> None:
    problem = problem_of(n=3000, d=20)
    x = problem.data.x
    assert float(x.mean(dim=1).abs().max()) < 0.15
    assert float((x.std(dim=1) - 1.0).abs().max()) < 0.1
    distance = problem.measure(x)["surface_distance"]
    assert 0.01 < float(distance.median()) < 0.02 < problem.thickness


def test_local_planes_of_the_rows_tell_which_designs_have_left_the_surface() -> None:
    problem = problem_of((0,), n=3000, d=30)
    planes = LocalPlanes.of(problem.data.x[0].numpy())
    (instance,) = problem.instances
    on = instance.observe(normals(200, 5))
    off = on + normals(200, 30)
    assert float(planes.off_surface(on.numpy()).mean()) < 1.0
    assert float(planes.off_surface(off.numpy()).min()) > 2.0


def test_every_row_is_valid_on_a_surface_that_is_hard_to_search() -> None:
    problem = problem_of((3, 4), d=11, n=4000)
    assert not problem.evaluate(problem.data.x).isnan().any()


def test_noise_changes_the_visible_values_alone() -> None:
    plain, noisy = problem_of(n=2000), problem_of(n=2000, noise=0.5)
    assert torch.equal(plain.data.x, noisy.data.x)
    ratio = (noisy.data.y - plain.data.y).std(dim=1) / plain.data.y.std(dim=1)
    assert 0.4 < float(ratio.min()) <= float(ratio.max()) < 0.6
    torch.testing.assert_close(noisy.evaluate(noisy.data.x), plain.data.y)


def test_fewer_rows_are_the_first_of_more_rows() -> None:
    few, many = problem_of(n=30).data, problem_of(n=300).data
    torch.testing.assert_close(few.x, many.x[:, :30])
    torch.testing.assert_close(few.y, many.y[:, :30])


@pytest.mark.parametrize(
    ("settings", "sentence"),
    [
        (
            {"d": 10},
            "d must be a whole number of at least 11, got 10; a surface in fewer columns crosses "
            "itself",
        ),
        ({"hidden": 0}, "task.hidden must be a whole number of at least 1, got 0"),
        ({"thickness": 0.0}, "task.thickness must be a distance above 0, got 0.0"),
        (
            {"scatter": 0.1},
            "task.scatter must be from 0 to a fifth of task.thickness, so that rows are valid, "
            "got 0.1 and 0.2",
        ),
        ({"width": 0.0}, "task.width must be a distance above 0, got 0.0"),
        ({"reach": -1.0}, "task.reach must be at least 0, got -1.0"),
        ({"noise": -1.0}, "task.noise must be at least 0, got -1.0"),
    ],
)
def test_invalid_settings_are_refused(settings: dict[str, Any], sentence: str) -> None:
    with pytest.raises(UsageError, match=f"^{re.escape(sentence)}$"):
        problem_of(**settings)


def test_the_description_names_noise_only_where_there_is_some() -> None:
    assert "noise" not in Surface(d=12, n=50).describe().text
    assert "noise of 0.5" in Surface(d=12, n=50, noise=0.5).describe().text
