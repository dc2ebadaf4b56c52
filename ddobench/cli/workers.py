"""How the worker processes of a launcher share a machine and the seeds of a sweep.

The keys of a launcher set how many workers it starts (`n_jobs` of joblib) or how many cores a
worker gets (`cpus_per_task` of submitit, `num_cpus` of Ray). Numeric libraries read the number of
their threads from the environment when a worker starts, so it is set there while jobs are launched,
unless the user has set it.
"""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ddobench.errors import UsageError
from ddobench.runner.limits import WORKERS

THREADS = "OMP_NUM_THREADS"
_FOLLOWERS = ("MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")  # joblib would set them by itself
EXTRAS = {  # the extra that installs the package of a launcher
    "hydra_plugins.hydra_joblib_launcher": "joblib",
    "hydra_plugins.hydra_submitit_launcher": "slurm",
    "hydra_plugins.hydra_ray_launcher": "ray",
}
LEAST_STACK = 5  # seeds of a job if there are enough jobs: stacked seeds are cheaper
_ALL_AT_ONCE = ("hydra_plugins.hydra_submitit_launcher.submitit_launcher.LocalLauncher",)

_PICKLES = "submitit_folder"  # the key of a launcher


def count_cores() -> int:
    """Return how many cores this process may use."""
    with suppress(AttributeError, OSError):  # not on macOS
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def count_threads(launcher: Mapping[str, Any], cores: int) -> int:
    """Return how many threads a worker of a launcher may use."""
    cpus = launcher.get("cpus_per_task") or _find(launcher, "ray", "remote", "num_cpus")
    if cpus:
        return max(1, int(cpus))
    return max(1, cores // count_workers(launcher, cores))


def count_workers(launcher: Mapping[str, Any], cores: int) -> int:
    """Return how many workers of a launcher share this machine; those of a cluster have their own.

    joblib counts from the cores down if the number is negative, -1 being all of them.
    """
    n_jobs = launcher.get("n_jobs")
    if n_jobs is not None:
        jobs = int(n_jobs)
        return max(1, cores + 1 + jobs if jobs < 0 else jobs)
    if _starts_all_at_once(launcher) or _find(launcher, "ray", "init", "address") == "local":
        return max(1, cores // count_threads(launcher, cores))
    return 1


def share_seeds(missing: Sequence[int], workers: int) -> list[int]:
    """Return how many seeds a job of each point may have, so that no worker is idle.

    All workers share each point, as it is unknown which point takes longest.
    """
    least = max(1, min(LEAST_STACK, sum(missing) // workers))
    return [max(least, -(-seeds // workers)) for seeds in missing]


def split_jobs(
    jobs: Sequence[list[str]], launcher: Mapping[str, Any], most: int | None, cores: int
) -> list[Sequence[list[str]]]:
    """Split jobs into portions to launch one after the other, where a launcher has no queue."""
    if most is None and _starts_all_at_once(launcher):
        most = count_workers(launcher, cores)
    size = most or max(1, len(jobs))
    return [jobs[start : start + size] for start in range(0, len(jobs), size)]


def use_private_folder(launcher: Any) -> None:
    """Let a launcher that hands jobs over as pickled files use a new folder that others cannot.

    Its folders are named by the numbers of jobs, so files that somebody left in one of them would
    be loaded, and run code, when a job gets that number.
    """
    params = getattr(launcher, "params", {})
    if folder := params.get(_PICKLES):
        parts = Path(str(folder)).parts
        fixed = [*itertools.takewhile(lambda part: "%" not in part, parts)]  # %j: a job's number
        Path(*fixed).mkdir(parents=True, exist_ok=True)
        private = mkdtemp(prefix="sweep-", dir=Path(*fixed))  # mode 700, a random name
        params[_PICKLES] = str(Path(private, *parts[len(fixed) :]))


@contextmanager
def sharing_the_machine(launcher: Mapping[str, Any]) -> Iterator[None]:
    """Set the threads and the number of workers for processes that start inside the block."""
    cores = count_cores()
    threads = os.environ.get(THREADS) or str(count_threads(launcher, cores))
    changes = {name: threads for name in (THREADS, *_FOLLOWERS) if not os.environ.get(name)}
    changes[WORKERS] = str(count_workers(launcher, cores))
    before = {name: os.environ.get(name) for name in changes}
    os.environ.update(changes)
    try:
        yield
    finally:
        for name, value in before.items():
            os.environ.pop(name, None)
            if value is not None:
                os.environ[name] = value


def check_installed(choice: str, launcher: Mapping[str, Any]) -> None:
    """Raise if the package of a launcher is not installed."""
    package = ".".join(str(launcher.get("_target_")).split(".")[:2])
    extra = EXTRAS.get(package)
    if extra and not is_installed(package):
        raise UsageError(f"hydra/launcher={choice} needs a package that is not installed; "
                         f"{how_to_install(extra)}")  # fmt: skip


def how_to_install(extra: str) -> str:
    """Return the command that installs the launchers of an extra."""
    if extra == "ray":  # it wants older versions of what others want newer
        return "pip install --constraint constraints-ray.txt '.[ray]' in an environment of its own"
    return f"pip install 'ddobench[{extra}]'"


def is_installed(module: str) -> bool:
    """Return whether a module can be imported."""
    try:
        return find_spec(module) is not None
    except ModuleNotFoundError:
        return False


def _starts_all_at_once(launcher: Mapping[str, Any]) -> bool:
    return launcher.get("_target_") in _ALL_AT_ONCE


def _find(node: Any, *keys: str) -> Any:
    """Return the value below some keys, None if there is none."""
    for key in keys:
        node = node.get(key) if isinstance(node, Mapping) else None
    return node
