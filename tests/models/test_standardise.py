"""Each seed is standardised by its own table."""

import pytest
import torch

from ddobench.models.standardise import Standardiser


def test_every_seed_and_column_has_mean_0_and_deviation_1() -> None:
    generator = torch.Generator().manual_seed(0)
    table = torch.randn(3, 50, 4, generator=generator, dtype=torch.float64)
    table = table * torch.tensor([1.0, 10.0, 100.0])[:, None, None] + torch.arange(4)
    z = Standardiser.of(table).apply(table)
    torch.testing.assert_close(z.mean(dim=1), torch.zeros(3, 4, dtype=torch.float64))
    torch.testing.assert_close(z.std(dim=1, correction=0), torch.ones(3, 4, dtype=torch.float64))
    torch.testing.assert_close(Standardiser.of(table).undo(z), table)


@pytest.mark.bits
def test_a_seed_is_standardised_the_same_beside_any_companions() -> None:
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
