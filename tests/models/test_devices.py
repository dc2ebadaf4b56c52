"""Devices are asked for by name."""

import pytest
import torch

from ddobench.errors import UsageError
from ddobench.models.devices import pick_device


def test_the_cpu_is_always_there() -> None:
    assert pick_device("cpu").type == "cpu"


def test_auto_takes_the_gpu_where_there_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for there, kind in ((True, "cuda"), (False, "cpu")):
        monkeypatch.setattr(torch.cuda, "is_available", lambda there=there: there)
        assert pick_device("auto").type == kind


def test_a_gpu_that_is_not_there_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(UsageError, match="device=cuda needs a GPU"):
        pick_device("cuda")
    with pytest.raises(UsageError, match="device must be one of auto, cpu, cuda"):
        pick_device("tpu")
