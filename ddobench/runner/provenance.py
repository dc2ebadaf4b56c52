"""Where a result comes from: versions, revision and machine."""

import hashlib
import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddobench.determinism import products_mode

PACKAGES = ("ddobench", "torch", "numpy", "scipy", "hydra-core", "omegaconf", "pyarrow", "pandas")
_DIGITS = 1e4  # of the largest number of a table
_ROWS = 1000  # whose designs are part of a digest


@cache
def describe_machine() -> dict[str, Any]:
    """Return versions and hardware, which stay the same for the life of this process."""
    import torch

    return {
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in PACKAGES},
        "revision": _git("rev-parse", "HEAD"),
        "dirty": bool(_git("status", "--porcelain", "--untracked-files=no")),
        "platform": platform.platform(),
        "cpu": _cpu(),
        "gpu": torch.cuda.get_device_name() if torch.cuda.is_available() else "",
        "threads": torch.get_num_threads(),
        "mkl_mode": products_mode(),
    }


def digest_rows(x: NDArray[np.float64], y: NDArray[np.float64]) -> str:  # (N, d), (N,)
    """Name a visible table: all its values, and the designs of its first rows.

    Numbers are rounded, so that machines that differ in the last digits agree.
    """
    whole = hashlib.blake2b(repr((*x.shape,)).encode(), digest_size=8)
    for numbers in (y, x[:_ROWS]):
        largest = float(np.abs(numbers).max(initial=0.0))
        whole.update(f"{largest:.4g}".encode())
        whole.update(np.rint(numbers * (_DIGITS / (largest or 1.0))).astype(np.int32).tobytes())
    return whole.hexdigest()


def _version(package: str) -> str:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return "not installed"


def _git(*arguments: str) -> str:
    """Ask git about the source tree that this package is imported from, if it is a checkout."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists():
        return ""
    try:
        answer = subprocess.run(
            ["git", "-C", str(root), *arguments], capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return answer.stdout.strip()


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f"{names[0]} ({os.cpu_count()} threads)" if names else platform.processor()
