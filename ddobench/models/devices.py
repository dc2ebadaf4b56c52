"""Where tensors live: the CPU, or a GPU that is asked for and there."""

import torch
from torch import Tensor

from ddobench.errors import UsageError, check_one_of

DEVICES = ("auto", "cpu", "cuda")


def pick_device(name: str) -> torch.device:
    """Return the device of that name; `auto` is the GPU where there is one.

    Every operation of the building blocks is deterministic on either kind: no atomic sums, and
    matrix products of float32 without reduced-precision shortcuts. Numbers agree between devices
    only up to rounding.
    """
    check_one_of("device", name, DEVICES)
    there = torch.cuda.is_available()
    if name == "cuda" and not there:
        raise UsageError("device=cuda needs a GPU that PyTorch can see; use device=cpu or auto")
    return torch.device("cuda" if there and name != "cpu" else "cpu")


def send(drawn: Tensor, device: torch.device) -> Tensor:
    """Return what was drawn on the CPU on a device, without waiting for a GPU to take it.

    Noise is drawn on the CPU at every step, so that it is the same on every device.
    """
    return drawn.pin_memory().to(device, non_blocking=True) if device.type == "cuda" else drawn
