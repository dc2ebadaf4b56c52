"""What defines a result: the resolved task, method and budget, and the digest that names them."""

import hashlib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from math import inf
from typing import TYPE_CHECKING, Any

from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ddobench.errors import UsageError, check_finite, check_one_of, check_whole
from ddobench.registry import (
    PARTS,
    TRAINING,
    line_up,
    read_choice,
    read_top_keys,
    usual_choices,
)
from ddobench.runner.build import (
    CARD,
    build_method,
    build_task,
    check_device,
    check_targets,
    name_classes,
)
from ddobench.runner.memory import check_memory
from ddobench.runner.selection import GRID, offer
from ddobench.variants import format_variant

if TYPE_CHECKING:
    from ddobench.contracts import Method, Task  # these need PyTorch, which takes seconds
    from ddobench.store.runs import Place, Store

MOST_SEEDS = 50  # that are stacked into one job unless someone says otherwise
SELECT = "select"  # the group of rules that choose settings
_TYPED_TRAINING = f"{TRAINING}@surrogate.{TRAINING}"  # as Hydra calls the choice
_UNSAID = (CARD, "device")  # keys that never change a result
_IRRELEVANT = (*_UNSAID, "file")  # of a file counts the hash of its content, not where it lies


@dataclass(frozen=True)
class Specification:
    """One task, one method, one budget: everything about a run but its seed."""

    task: str
    method: str
    budget: str
    d: int
    n: int
    device: str
    seeds_per_job: int | None  # None: nobody has said
    config: dict[str, Any]  # resolved: task, method, budget
    task_departures: dict[str, str]  # settings that are not those of its file
    method_departures: dict[str, str]
    digest: str
    task_digest: str  # of the task alone, which methods share
    parts: dict[str, str] = field(default_factory=dict)  # option of each part of the method
    timeout: float | None = None  # seconds that a run may take
    memory_gb: float | None = None  # what a batch may take; None: a share of what is free

    @property
    def title(self) -> str:
        """The words that name this point of a sweep on a screen."""
        variant = " ".join(filter(None, [self.task_variant, self.method_variant]))
        return f"{self.method} on {self.task} d={self.d} n={self.n} {variant}".strip()

    @property
    def task_variant(self) -> str:
        """How the task departs from its file, in one text."""
        return format_variant(self.task_departures)

    @property
    def method_variant(self) -> str:
        """How the method departs from its file, in one text."""
        return format_variant(self.method_departures)

    @property
    def card(self) -> dict[str, str]:
        """The method's label, colour and summary."""
        return dict(self.config["method"].get(CARD) or {})

    @property
    def stack(self) -> int:
        """How many seeds are stacked into one job at most."""
        return self.seeds_per_job or MOST_SEEDS

    def place(self, store: "Store") -> "Place":
        """Return where the runs of this specification are kept."""
        return store.place(self.task, self.method, self.d, self.n, self.digest)

    def build(self) -> "tuple[Task, Method]":
        """Build the task and the method, or raise a UsageError that says what is wrong."""
        check_device(self.device)
        return build_task(self.config["task"]), self.build_method()

    def build_method(self) -> "Method":
        """Build a fresh method."""
        return build_method(self.config["method"])


def specify(cfg: DictConfig, choices: Mapping[str, Any]) -> Specification:
    """Read a composed configuration; `choices` says which option of each group was taken."""
    check_one_of("device", cfg.device, ("auto", "cpu", "cuda"))
    check_whole("d", cfg.d, 1)
    check_whole("n", cfg.n, 2)
    if cfg.seeds_per_job is not None:
        check_whole("seeds_per_job", cfg.seeds_per_job, 1)
    _check_timeout(cfg.timeout)
    check_memory(cfg.memory_gb)
    config = {key: _resolve(cfg, key) for key in ("task", "method", "budget")}
    plain, rule = config["method"], choices.get(SELECT)
    if rule:
        config["method"] = offer(plain, _resolve(cfg, SELECT))
    check_targets(config, cfg.allow_code)
    for key, node in config.items():
        check_finite(key, node)
    for key in ("designs", "top"):
        check_whole(f"budget.{key}", config["budget"].get(key), 1)
    task, method = str(choices["task"]), str(choices["method"])
    parts = {name: str(choices[name]) for name in PARTS if name in plain}
    return Specification(
        task=task,
        method=method,
        budget=str(choices["budget"]),
        d=cfg.d,
        n=cfg.n,
        device=cfg.device,
        seeds_per_job=cfg.seeds_per_job,
        config=config,
        task_departures=dict(_departures(config["task"], _written(cfg, "task", task))),
        method_departures={
            **dict(_part_departures(cfg, plain, parts, _usual_parts(method), choices)),
            **dict(_departures(plain, _written(cfg, "method", method))),
            **(dict(_rule_departures(cfg, str(rule))) if rule else {}),
        },
        # Two methods that come to the same line-up have the same numbers but runs of their own.
        digest=digest({**config, "chosen": {"task": task, "method": method}}),
        task_digest=digest({"task": config["task"]}),
        parts=parts,
        timeout=cfg.timeout,
        memory_gb=cfg.memory_gb,
    )


def _check_timeout(value: object) -> None:
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if value is not None and not (number and 0 < value < inf):  # type: ignore[operator]
        raise UsageError(f"timeout must be a number of seconds above 0, or null, got {value!r}")


def digest(config: Mapping[str, Any]) -> str:
    """Name a resolved configuration: parameters, and the names and versions of its classes."""
    text = json.dumps(name_classes(_canonical(config)), sort_keys=True, allow_nan=True)
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


def _part_departures(
    cfg: DictConfig,
    method: Mapping[str, Any],
    parts: Mapping[str, str],
    usual: Mapping[str, str],
    choices: Mapping[str, Any],
) -> Iterator[tuple[str, str]]:
    """Yield the parts of a method that are not the usual ones."""
    for name, choice in parts.items():
        if choice != usual.get(name):
            yield name, choice
        training = choices.get(_TYPED_TRAINING) if name == "surrogate" else None
        if training and _read(name, choice, training) != _read(name, choice, None):
            yield TRAINING, training
        if isinstance(method[name], Mapping):
            written = _written(cfg, name, choice, training)
            yield from _departures(method[name], written, f"{name}.")


def _rule_departures(cfg: DictConfig, rule: str) -> Iterator[tuple[str, str]]:
    """Yield the rule that chooses settings, and where it is not as its file has it."""
    yield SELECT, rule
    told, written = _resolve(cfg, SELECT), _written(cfg, SELECT, rule)
    yield from _departures({**written, **told}, written, f"{SELECT}.")
    grid, usual = told.get(GRID) or {}, written.get(GRID) or {}
    yield from ((f"{SELECT}.{GRID}.{name}", str(grid[name])) for name in grid if name not in usual)


def _departures(
    config: Mapping[str, Any], written: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield where a configuration departs from what is written in its file."""
    for name, value in config.items():
        if name not in written or name in _UNSAID:
            continue
        if isinstance(value, Mapping) and isinstance(written[name], Mapping):
            yield from _departures(value, written[name], f"{prefix}{name}.")
        elif _canonical(value) != _canonical(written[name]):
            yield f"{prefix}{name}", str(value)


def _written(
    cfg: DictConfig, group: str, choice: str, training: str | None = None
) -> dict[str, Any]:
    """Return a group file, with what it computes from other keys as these are now.

    Keys of the top level that the file brings itself, other than sizes, are as it has them.
    """
    brought = _brought(group, choice)
    sizes = {"d": cfg.d, "n": cfg.n}
    parent = OmegaConf.merge(cfg, brought, sizes) if brought else cfg
    node = OmegaConf.create(_read(group, choice, training), parent=parent)
    return {str(name): value for name, value in _plain(node).items()}


def _plain(node: DictConfig) -> dict[Any, Any]:
    container = OmegaConf.to_container(node, resolve=True)
    return container if isinstance(container, dict) else {}


@cache
def _read(group: str, choice: str, training: str | None) -> dict[str, Any]:
    return read_choice(group, choice, training)


@cache
def _brought(group: str, choice: str) -> dict[str, Any]:
    return read_top_keys(group, choice)


@cache
def _usual_parts(method: str) -> dict[str, str]:
    """Return the parts of a method unless told otherwise."""
    return {**usual_choices("run"), **line_up(method)}
