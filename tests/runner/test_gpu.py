"""What a GPU computes is what the CPU computes up to rounding, and the same again next time.

Nobody has run these on a GPU yet: where there is none, they skip.
"""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import ddobench
from ddobench.models.tensors import pick_device, send
from ddobench.store.runs import read_record
from tests.support.records import OWN, same_record

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="PyTorch sees no GPU here")
SMALL = {"task": "chain", "d": 5, "n": 60, "budget": "tiny", "seed": "0-1"}
FITTED = ("ga", "coms", "fgm", "vae_ga", "mins", "ddom", "cliqueformer", "units", "additive")


def run(method: str, folder: Path, device: str) -> list[Path]:
    """Run a few seeds of a method on a device and return their files."""
    settings: dict[str, Any] = {**SMALL, "method": method, "device": device}
    ddobench.run(**settings, results_dir=folder)
    return sorted(folder.rglob("*.parquet"))


@needs_gpu
@pytest.mark.slow
@pytest.mark.parametrize("method", FITTED)
def test_a_method_runs_on_a_gpu_and_says_so(method: str, tmp_path: Path) -> None:
    ours = run(method, tmp_path / "gpu", "cuda")
    theirs = run(method, tmp_path / "cpu", "cpu")
    assert [path.name for path in ours] == [path.name for path in theirs]
    for one, other in zip(map(read_record, ours), map(read_record, theirs), strict=True):
        assert (one.provenance["device"], one.row["status"]) == ("cuda", "ok")
        assert one.provenance["gpu"]
        assert one.values is not None
        assert other.values is not None
        np.testing.assert_allclose(one.values[0], other.values[0], rtol=1e-4)  # the same designs


@needs_gpu
@pytest.mark.slow
@pytest.mark.parametrize("method", FITTED)
def test_a_gpu_gives_the_same_bits_again(method: str, tmp_path: Path) -> None:
    first, again = (map(read_record, run(method, tmp_path / name, "cuda")) for name in "ab")
    for one, other in zip(first, again, strict=True):
        assert same_record(one, other, without=OWN)


@needs_gpu
def test_noise_reaches_a_gpu_as_it_was_drawn() -> None:
    drawn = torch.randn(3, 4, generator=torch.Generator().manual_seed(0))
    sent = send(drawn, pick_device("cuda"))
    assert sent.is_cuda
    assert torch.equal(sent.cpu(), drawn)


def test_noise_for_the_cpu_is_not_copied() -> None:
    drawn = torch.zeros(3)
    assert send(drawn, pick_device("cpu")) is drawn
