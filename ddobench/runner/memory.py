"""How many seeds a batch may have, so that it fits into memory, and what to do if it does not.

What a seed takes is judged by the size of its table, and a method says what its fit takes once
(`working_bytes`). That is coarse: a batch for which there is no memory after all is halved until it
fits, see `execute`.
"""

import os
from contextlib import suppress
from pathlib import Path

from ddobench.errors import UsageError

WORKERS = "DDOBENCH_WORKERS"  # how many worker processes share this machine
SHARE = 0.5  # of what is free, for a batch; the rest is for whatever else happens
PROGRAM = 0.5e9  # bytes that Python and PyTorch take before they do anything
_FLOAT = 8  # bytes
_COPIES = 12  # of its table that a seed holds at once; measured: linear, ga 6, fgm, units 10
_SIGNS = ("can't allocate memory", "not enough memory", "out of memory", "alloc_cpu")
_SLURM = "SLURM_MEM_PER_NODE"  # megabytes that a job asked for
_GROUP = Path("/sys/fs/cgroup")


def check_memory(value: object) -> None:
    """Raise unless `memory_gb` can be used."""
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < float("inf")):  # type: ignore[operator]
        raise UsageError(
            f"memory_gb must be a number above 0, or null for half of what is free, got {value!r}"
        )


def fit_seeds(n: int, d: int, memory_gb: float | None, once: float = 0.0) -> int | None:
    """Return how many seeds fit into memory at once, at least one; None if nobody knows.

    `once` are the bytes that a batch takes beside the seeds.
    """
    room = _find_room(memory_gb)
    return None if room is None else max(1, int((room - once) / measure_seed(n, d)))


def measure_seed(n: int, d: int) -> float:
    """Return the bytes that a seed takes at most."""
    return _COPIES * _FLOAT * n * (d + 1)


def _find_room(memory_gb: float | None) -> float | None:
    """Return the bytes that a batch may take, None if nobody knows."""
    if memory_gb is not None:
        return max(0.0, memory_gb * 1e9 - PROGRAM)
    free = find_free()
    return None if free is None else SHARE * free / max(1, int(os.environ.get(WORKERS) or 1))


def find_free() -> float | None:
    """Return the bytes of memory that are free for this process, None where no system says."""
    found = []
    with suppress(OSError, ValueError, KeyError):
        found.append(_read_table(Path("/proc/meminfo"))["MemAvailable:"] * 1024)
    with suppress(OSError, ValueError, KeyError):  # "max" if there is no limit
        most, used = (
            float((_GROUP / name).read_text()) for name in ("memory.max", "memory.current")
        )
        found.append(most - used + _read_table(_GROUP / "memory.stat")["file"])
    with suppress(ValueError, KeyError):
        found.append(float(os.environ[_SLURM]) * 1024**2)
    return max(0.0, min(found)) if found else None


def _read_table(path: Path) -> dict[str, float]:
    """Return the numbers of a file that has a name and a number in each line."""
    words = [line.split() for line in path.read_text().splitlines()]
    return {pair[0]: float(pair[1]) for pair in words if len(pair) > 1}


def is_out_of_memory(error: BaseException) -> bool:
    """Tell whether an error says that there is no memory left; PyTorch says so in many ways."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    return isinstance(error, RuntimeError) and any(sign in str(error).lower() for sign in _SIGNS)
