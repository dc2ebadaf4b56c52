"""Low-rank units: passes by hand against autograd, padding, independence in a stack."""

import pytest
import torch
from torch import Tensor

from ddobench.models.unit_models import Form, Gaussian, Network, Units, UnitStack
from ddobench.rng import Stream

FORMS = [Gaussian(), Network(4)]
E, RANK, ROWS = 5, 3, 7

each_form = pytest.mark.parametrize("form", FORMS, ids=["gaussian", "network"])


def make_units(count: int, form: Form, seed: int = 0) -> Units:
    stream = Stream(seed, "test/units")
    return Units(
        0.5 * stream.normal(count, RANK, E + 1),
        tuple(part + 0.1 for part in form.draw(count, RANK, 0.7, stream)),
        stream.normal(),
    )


def make_rows(models: int) -> tuple[Tensor, Tensor]:  # (I, n, e + 1), (I, n)
    stream = Stream(1, "test/rows")
    z = stream.normal(models, ROWS, E)
    return torch.cat([z, torch.ones(models, ROWS, 1)], dim=2), stream.normal(models, ROWS)


def by_definition(units: Units, z: Tensor, form: Form) -> Tensor:  # (n, e + 1) -> (n,)
    """Sum the units one by one."""
    value = units.base
    for k in range(len(units)):
        seen = z @ units.weight[k].T  # (n, R)
        if isinstance(form, Gaussian):
            value = value + units.shape[0][k] * torch.exp(-seen.square().sum(dim=1))
        else:
            inner, outer = units.shape[0][k], units.shape[1][k]
            value = value + torch.tanh(seen @ inner[:, :-1].T + inner[:, -1]) @ outer
    return value


@each_form
def test_a_stack_values_designs_as_the_formula_does(form: Form) -> None:
    models = [make_units(2, form, 0), make_units(4, form, 1)]
    z, _ = make_rows(2)
    value = UnitStack(models, form).value(z)
    for i, units in enumerate(models):
        torch.testing.assert_close(value[i], by_definition(units, z[i], form))


@each_form
def test_gradients_are_those_of_autograd(form: Form) -> None:
    units = make_units(3, form)
    z, y = make_rows(1)
    stack = UnitStack([units], form)
    stack.backprop_squared_error(z, y)
    for part in (units.weight, *units.shape, units.base):
        part.requires_grad_()
    (by_definition(units, z[0], form) - y[0]).square().mean().backward()  # type: ignore[no-untyped-call]
    expected = [units.weight.grad.transpose(0, 1), units.base.grad, *[p.grad for p in units.shape]]  # type: ignore[union-attr]
    flat = torch.cat([part.flatten() for part in expected if part is not None])
    assert stack.flat.grad is not None
    torch.testing.assert_close(stack.flat.grad[: len(flat)], flat, rtol=1e-4, atol=1e-6)


@each_form
def test_designs_climb_along_the_gradient_of_autograd(form: Form) -> None:
    units = make_units(3, form)
    z, _ = make_rows(1)
    value, gradient = UnitStack([units], form).value_and_gradient(z)
    z.requires_grad_()
    expected = by_definition(units, z[0], form)
    expected.sum().backward()  # type: ignore[no-untyped-call]
    torch.testing.assert_close(value[0], expected.detach())
    assert z.grad is not None
    torch.testing.assert_close(gradient, z.grad[..., :-1], rtol=1e-4, atol=1e-6)


@each_form
def test_padding_units_are_and_stay_zero(form: Form) -> None:
    units = make_units(2, form)
    z, y = make_rows(1)
    narrow, wide = UnitStack([units], form), UnitStack([units], form, width=8)
    for stack in (narrow, wide):
        optimiser = torch.optim.Adam([stack.flat], lr=0.1)
        for _ in range(5):
            stack.backprop_squared_error(z, y)
            optimiser.step()
    torch.testing.assert_close(narrow.value(z), wide.value(z))
    assert (wide.outputs(z)[..., 2:] == 0).all()
    assert [len(model) for model in wide.models()] == [2]


@each_form
def test_a_model_learns_the_same_beside_any_others(form: Form) -> None:
    models = [make_units(3, form, seed) for seed in range(4)]
    z, y = make_rows(4)
    learned = []
    for chosen in ([2], [0, 2], [3, 1, 2, 0]):
        stack = UnitStack([models[i] for i in chosen], form, width=8)
        optimiser = torch.optim.Adam([stack.flat], lr=0.01, fused=True)
        for _ in range(5):
            stack.backprop_squared_error(z[chosen], y[chosen])
            optimiser.step()
        learned.append(stack.models()[chosen.index(2)].weight)
    for other in learned[1:]:
        torch.testing.assert_close(other, learned[0], rtol=0, atol=1e-6)


@each_form
def test_models_add_up_when_they_join(form: Form) -> None:
    one, other = make_units(2, form, 0), make_units(3, form, 1)
    z, _ = make_rows(1)
    together = UnitStack([one.join(other)], form).value(z)
    apart = UnitStack([one], form).value(z) + UnitStack([other], form).value(z)
    torch.testing.assert_close(together, apart)


@each_form
def test_a_factor_scales_the_outputs_of_units(form: Form) -> None:
    units = make_units(2, form)
    z, _ = make_rows(1)
    higher = Units(units.weight, form.scale(units.shape, torch.tensor(3.0)), units.base)
    before, after = UnitStack([units], form).outputs(z), UnitStack([higher], form).outputs(z)
    torch.testing.assert_close(after, 3 * before)


def test_a_model_without_units_is_its_base() -> None:
    none = make_units(2, Gaussian()).take(torch.tensor([False, False]))
    z, _ = make_rows(1)
    torch.testing.assert_close(UnitStack([none], Gaussian()).value(z), none.base.expand(1, ROWS))
