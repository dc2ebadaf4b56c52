"""The softplus and its inverse in full precision, from the smallest number to the largest."""

import torch
from torch import Tensor


def softplus(x: Tensor) -> Tensor:
    """Return log(1 + exp(x)), without the linear branch of torch that costs half the digits."""
    return torch.logaddexp(x, torch.zeros_like(x))


def inverse_softplus(y: Tensor) -> Tensor:
    """Return x with softplus(x) = y, NaN where there is none because y <= 0."""
    positive = y > 0
    safe = torch.where(positive, y, 1.0)
    return torch.where(positive, safe + torch.log(-torch.expm1(-safe)), torch.nan)
