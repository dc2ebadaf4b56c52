"""Devices, products of stacks with the same bits in a stack of any size, standardisation."""

from collections.abc import Callable, Iterator
from itertools import product

import pytest
import torch
from torch import Tensor

from ddobench.errors import UsageError
from ddobench.models import tensors
from ddobench.models.tensors import (
    NARROW,
    Standardiser,
    affine,
    fast_products,
    multiply,
    pick_device,
)
from ddobench.rng import Streams
from tests.support.rounding import by_address, lone_column, needs_mkl

SIZES = (1, 2, 7, 41, 128)
FORMS: dict[str, Callable[[Tensor, Tensor, Tensor], tuple[Tensor, Tensor]]] = {
    "forward": lambda x, w, e: (x, w),  # noqa: ARG005
    "weights": lambda x, w, e: (x.mT, e),  # noqa: ARG005
    "weights, lying": lambda x, w, e: (e.mT, x),  # noqa: ARG005
    "inputs": lambda x, w, e: (e, w.mT),  # noqa: ARG005
}


def test_the_cpu_is_always_available() -> None:
    assert pick_device("cpu").type == "cpu"


def test_auto_is_the_gpu_if_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert pick_device("auto").type == kind


def test_a_missing_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="device=cuda needs a GPU"):
        pick_device("cuda")
    with pytest.raises(UsageError, match="device must be one of auto, cpu, cuda"):
        pick_device("tpu")


@pytest.fixture(params=[1, 2])
def threads(request: pytest.FixtureRequest) -> Iterator[int]:
    """Set the number of threads of PyTorch."""
    before = torch.get_num_threads()
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(before)


def operands(form: str, rows: int, fan_in: int, fan_out: int, dtype: torch.dtype) -> list[Tensor]:
    rng = Streams(range(10), "test")
    x, w = rng.normal(rows, fan_in, dtype=dtype), rng.normal(fan_in, fan_out, dtype=dtype)
    return list(FORMS[form](x, w, rng.normal(rows, fan_out, dtype=dtype)))


def depend_on_the_stack(left: Tensor, right: Tensor) -> bool:
    """Return whether a seed gets other bits in a smaller stack, at any place in it."""
    full = multiply(left, right)
    stacks = [slice(0, 1), slice(7, 8), slice(3, 5), slice(4, 9)]
    return not all(torch.equal(multiply(left[s], right[s]), full[s]) for s in stacks)


@pytest.mark.bits
@needs_mkl
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("form", FORMS)
@pytest.mark.usefixtures("threads")
def test_a_seed_gets_the_same_bits_in_a_stack_of_any_size(form: str, dtype: torch.dtype) -> None:
    dependent = [
        shape
        for shape in product(SIZES, (1, 5, 41, 256), (1, 2, 7, 64, 256))
        if depend_on_the_stack(*operands(form, *shape, dtype))
    ]
    assert dependent == []


@pytest.mark.bits
@pytest.mark.usefixtures("threads")
def test_a_single_matrix_is_multiplied_as_in_a_stack(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(torch, "bmm", lone_column)
    for columns in (1, 2, 8):
        left, right = operands("forward", 16, 41, columns, torch.float32)
        assert not torch.equal(lone_column(left[:1], right[:1]), lone_column(left, right)[:1]) or (
            columns > 1 and torch.get_num_threads() == 1
        ), "the stand-in must make a difference"
        assert not depend_on_the_stack(left, right)


def test_a_product_that_looks_at_addresses_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch, "bmm", by_address)
    assert depend_on_the_stack(*operands("forward", 3, 41, 7, torch.float32))


@pytest.mark.parametrize("seeds", [1, 2])
@pytest.mark.parametrize("columns", [1, 5])
def test_products_are_those_of_every_pair_and_are_written_to_out(seeds: int, columns: int) -> None:
    left, right = (one[:seeds] for one in operands("forward", 4, 3, columns, torch.float64))
    expected = torch.stack([a @ b for a, b in zip(left, right, strict=True)])
    torch.testing.assert_close(multiply(left, right), expected)
    out = torch.empty(seeds, columns, 4, dtype=torch.float64).mT
    assert multiply(left, right, out) is out
    torch.testing.assert_close(out, expected)


def test_a_single_product_restores_the_number_of_threads(threads: int) -> None:
    multiply(*[one[:1] for one in operands("forward", 16, 41, 8, torch.float32)])
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("shape", "precision"),
    [
        ((128, 64, 64), "medium"),
        ((NARROW, 41, NARROW), "medium"),
        ((NARROW - 1, 512, 512), "highest"),  # few rows
        ((512, 512, NARROW - 1), "highest"),  # few columns
        ((16, 16, 16), "highest"),  # small
    ],
)
def test_wide_products_alone_are_left_to_onednn(
    shape: tuple[int, int, int], precision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "_ONEDNN", True)
    left, right = operands("forward", *shape, torch.float32)
    for stack in (slice(0, 1), slice(0, 10)):  # the same library in a stack of any size
        with fast_products(left[stack], right[stack]):
            assert torch.get_float32_matmul_precision() == precision
        assert torch.get_float32_matmul_precision() == "highest"


def test_no_product_is_left_to_onednn_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tensors, "_ONEDNN", False)
    with fast_products(*operands("forward", 128, 64, 64, torch.float32)):
        assert torch.get_float32_matmul_precision() == "highest"


@pytest.mark.parametrize("seeds", [1, 2, 10])
def test_a_product_with_one_row_is_written_into_a_column(
    seeds: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tensors, "_ONEDNN", True)
    left, right = (one[:seeds] for one in operands("weights, lying", 128, 64, 1, torch.float32))
    exact = torch.bmm(left.double(), right.double()).float()
    column = torch.full((seeds, 64, 1), torch.nan)
    torch.testing.assert_close(multiply(left, right, column.mT), exact, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(multiply(left, right), exact, rtol=1e-4, atol=1e-4)


def test_products_have_the_precision_of_float32() -> None:
    for form in FORMS:
        left, right = operands(form, 128, 256, 64, torch.float32)
        exact = torch.bmm(left.double(), right.double())
        torch.testing.assert_close(multiply(left, right).double(), exact, rtol=1e-4, atol=1e-4)


def test_an_affine_map_has_the_gradients_of_autograd_and_theirs() -> None:
    rng = Streams(range(2), "affine")
    shapes = {"bias": (1, 4), "x": (3, 5), "weight": (5, 4)}
    inputs = [rng.child(name).normal(*shape, dtype=torch.float64).requires_grad_()
              for name, shape in shapes.items()]  # fmt: skip
    assert torch.equal(affine(*inputs), torch.baddbmm(*inputs))
    assert torch.autograd.gradcheck(affine, inputs)
    assert torch.autograd.gradgradcheck(affine, inputs)


def test_every_seed_and_column_has_mean_0_and_deviation_1() -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(3, 50, 4, generator=generator, dtype=torch.float64)
    table = table * torch.tensor([1.0, 10.0, 100.0])[:, None, None] + torch.arange(4)
    z = Standardiser.of(table).apply(table)
    torch.testing.assert_close(z.mean(dim=1), torch.zeros(3, 4, dtype=torch.float64))
    torch.testing.assert_close(z.std(dim=1, correction=0), torch.ones(3, 4, dtype=torch.float64))
    torch.testing.assert_close(Standardiser.of(table).undo(z), table)


@pytest.mark.bits
def test_a_seed_is_standardised_the_same_beside_other_seeds() -> None:
    generator = torch.Generator().manual_seed(0)
    tables = torch.randn(9, 2000, 41, generator=generator, dtype=torch.float64)
    few, many = Standardiser.of(tables[2:4]), Standardiser.of(tables)
    assert torch.equal(few.mean[0], many.mean[2])
    assert torch.equal(few.scale[0], many.scale[2])
    values = tables[..., 0].contiguous()
    few, many = Standardiser.of(values[2:4]), Standardiser.of(values)
    assert torch.equal(few.mean[0], many.mean[2])
    assert torch.equal(few.scale[0], many.scale[2])


def test_a_constant_column_is_only_shifted() -> None:
    table = torch.full((2, 5, 1), 7.0)
    standardiser = Standardiser.of(table)
    assert not standardiser.apply(table).any()
    assert torch.equal(standardiser.undo(standardiser.apply(table)), table)
