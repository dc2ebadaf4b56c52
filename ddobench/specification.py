"""What defines a result: the resolved task, method and budget, and the digest that names them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ddobench.build import CARD, build_method, build_task, versions
from ddobench.contracts import Method, Task
from ddobench.errors import UsageError, check_one_of, check_whole

_IRRELEVANT = (CARD, "device")  # keys that never change a result


@dataclass(frozen=True)
class Specification:
    """One task, one method, one budget: everything about a run but its seed."""

    task: str
    method: str
    budget: str
    d: int
    n: int
    device: str
    seeds_per_job: int
    config: dict[str, Any]  # resolved: task, method, budget
    task_variant: str
    method_variant: str
    digest: str

    @property
    def title(self) -> str:
        """The words that name this point of a sweep on a screen."""
        variant = " ".join(filter(None, [self.task_variant, self.method_variant]))
        return f"{self.method} on {self.task} d={self.d} n={self.n} {variant}".strip()

    @property
    def card(self) -> dict[str, str]:
        """The method's label, colour and summary."""
        return dict(self.config["method"].get(CARD) or {})

    def build(self) -> tuple[Task, Method]:
        """Build the task and the method, or raise a UsageError that says what is wrong."""
        return build_task(self.config["task"]), build_method(self.config["method"])


def specify(cfg: DictConfig, choices: Mapping[str, Any]) -> Specification:
    """Read a composed configuration; `choices` says which option of each group was taken."""
    check_one_of("device", cfg.device, ("auto", "cpu", "cuda"))
    check_whole("d", cfg.d, 1)
    check_whole("n", cfg.n, 2)
    check_whole("seeds_per_job", cfg.seeds_per_job, 1)
    config = {key: _resolve(cfg, key) for key in ("task", "method", "budget")}
    for key in ("designs", "top"):
        check_whole(f"budget.{key}", config["budget"].get(key), 1)
    return Specification(
        task=str(choices["task"]),
        method=str(choices["method"]),
        budget=str(choices["budget"]),
        d=cfg.d,
        n=cfg.n,
        device=cfg.device,
        seeds_per_job=cfg.seeds_per_job,
        config=config,
        task_variant=_variant(config["task"], "task", str(choices["task"])),
        method_variant=_variant(config["method"], "method", str(choices["method"])),
        digest=digest(config),
    )


def digest(config: Mapping[str, Any]) -> str:
    """Name a resolved configuration together with the versions of the classes in it."""
    content = {"config": _canonical(config), "versions": versions(config)}
    text = json.dumps(content, sort_keys=True, allow_nan=True)
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def _resolve(cfg: DictConfig, key: str) -> dict[str, Any]:
    try:
        node = OmegaConf.to_container(cfg[key], resolve=True, throw_on_missing=True)
    except OmegaConfBaseException as error:
        raise UsageError(f"{key} cannot be resolved: {str(error).splitlines()[0]}") from error
    if not isinstance(node, dict):
        raise UsageError(f"{key} must be a group choice with keys of its own, got {node!r}")
    return {str(name): value for name, value in node.items()}


def _canonical(value: Any) -> Any:
    """Drop what cannot change a result and let 1 and 1.0 be the same number."""
    if isinstance(value, Mapping):
        return {
            str(name): _canonical(item) for name, item in value.items() if name not in _IRRELEVANT
        }
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _variant(config: Mapping[str, Any], group: str, choice: str) -> str:
    """Spell where a configuration departs from the group file it came from."""
    defaults = _defaults(group, choice)
    return " ".join(
        f"{name}={value}"
        for name, value in config.items()
        if name in defaults and _canonical(defaults[name]) != _canonical(value)
    )


@cache
def _defaults(group: str, choice: str) -> dict[str, Any]:
    """Return the literal values of a group file; what it computes from other keys is left out."""
    from ddobench.registry import read_choice

    node = read_choice(group, choice)
    return {
        name: value
        for name, value in node.items()
        if not isinstance(value, Mapping) and not (isinstance(value, str) and "${" in value)
    }
