"""Where a result comes from: versions, revision and machine."""

import os
import platform
import subprocess
from functools import cache
from importlib import metadata
from pathlib import Path
from typing import Any

from ddobench.determinism import products_mode

PACKAGES = ("ddobench", "torch", "numpy", "scipy", "hydra-core", "omegaconf", "pyarrow", "pandas")


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
