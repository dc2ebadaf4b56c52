"""What defines a result: the resolved task, method and budget, and the digest that names them.

With `select=RULE` the method is one that chooses among settings of another by a rule. Where designs
are categories, the section `categorical` of a method's file replaces its other settings.
"""

import hashlib
import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from functools import cache
from itertools import product
from typing import TYPE_CHECKING, Any

from hydra.core.hydra_config import HydraConfig
from omegaconf import DictConfig, OmegaConf
from omegaconf.errors import OmegaConfBaseException

from ddobench.errors import UsageError, check_finite, check_one_of, check_whole
from ddobench.registry import (
    CATEGORICAL,
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
from ddobench.runner.limits import check_memory, check_timeout
from ddobench.variants import format_variant

if TYPE_CHECKING:
    from ddobench.contracts import Method, Task  # these need PyTorch, which takes seconds
    from ddobench.store.runs import Place, Store

MOST_SEEDS = 50  # stacked into one job by default
SELECT = "select"  # the group of rules that choose settings
GRID = "grid"  # dotted name of a setting -> its values; null leaves it alone
_MOST_CANDIDATES = 100
_TYPED_TRAINING = f"{TRAINING}@surrogate.{TRAINING}"  # Hydra's name of the choice
_NO_SETTINGS = (CARD, "device")  # keys that never change a result
_NOT_IN_DIGEST = (*_NO_SETTINGS, "file")  # the hash of a file counts, not its path


@dataclass(frozen=True)
class Specification:
    """One task, one method, one budget: everything about a run but its seed."""

    task: str
    method: str
    budget: str
    d: int
    n: int
    device: str
    seeds_per_job: int | None  # None: the default
    config: dict[str, Any]  # resolved: task, method, budget
    task_departures: dict[str, str]  # settings that are not those of its file
    method_departures: dict[str, str]
    digest: str
    task_digest: str  # of the task alone, which methods share
    parts: dict[str, str] = field(default_factory=dict)  # option of each part of the method
    timeout: float | None = None  # seconds for one run
    memory_gb: float | None = None  # for a batch; None: a share of what is free
    isolate: bool = False  # whether the method runs in a process of its own

    @property
    def title(self) -> str:
        """The name of this point of a sweep on a screen."""
        variant = " ".join(filter(None, [self.task_variant, self.method_variant]))
        return f"{self.method} on {self.task} d={self.d} n={self.n} {variant}".strip()

    @property
    def task_variant(self) -> str:
        """How the task departs from its file, as the text that is stored."""
        return format_variant(self.task_departures)

    @property
    def method_variant(self) -> str:
        """How the method departs from its file, as the text that is stored."""
        return format_variant(self.method_departures)

    @property
    def card(self) -> dict[str, str]:
        """The method's label, colour and summary."""
        return dict(self.config["method"].get(CARD) or {})

    @property
    def stack(self) -> int:
        """The most seeds that are stacked into one job."""
        return self.seeds_per_job or MOST_SEEDS

    def place(self, store: "Store") -> "Place":
        """Return where the runs of this specification are kept."""
        return store.place(self.task, self.method, self.d, self.n, self.digest)

    def build(self) -> "tuple[Task, Method]":
        """Build the task and the method, or raise a UsageError."""
        from ddobench.runner.isolation import MethodError

        try:
            return self.build_task(), self.build_method()
        except MethodError as error:
            raise UsageError(f"the method cannot be built: {error}") from error

    def build_task(self) -> "Task":
        """Build the task."""
        check_device(self.device)
        return build_task(self.config["task"])

    def build_method(self) -> "Method":
        """Build a fresh method, in a process of its own if that is asked for."""
        if not self.isolate:
            return build_method(self.config["method"])
        from ddobench.runner.isolation import IsolatedMethod

        return IsolatedMethod(self.config["method"])


def specify(cfg: DictConfig, choices: Mapping[str, Any]) -> Specification:
    """Read a composed configuration; `choices` are the chosen options of all groups."""
    check_one_of("device", cfg.device, ("auto", "cpu", "cuda"))
    check_whole("d", cfg.d, 1)
    check_whole("n", cfg.n, 2)
    if cfg.seeds_per_job is not None:
        check_whole("seeds_per_job", cfg.seeds_per_job, 1)
    check_timeout(cfg.timeout)
    check_memory(cfg.memory_gb)
    if not isinstance(cfg.isolate, bool):
        raise UsageError(f"isolate must be true or false, got {cfg.isolate!r}")
    config = {key: _resolve(cfg, key) for key in ("task", "method", "budget")}
    task, method = str(choices["task"]), str(choices["method"])
    plain, rule = config["method"], choices.get(SELECT)
    section = plain.pop(CATEGORICAL, None) or {}
    if not isinstance(section, Mapping):
        raise UsageError(
            f"method.{CATEGORICAL} must name settings and their values, got {section!r}"
        )
    card = config["task"].get(CARD)
    if not isinstance(card, Mapping) or card.get("designs") != CATEGORICAL:
        section = {}
    parts = {name: str(choices[name]) for name in PARTS if name in plain}
    usual = {name: option for name, option in _usual_parts(method).items() if name in parts}
    plain, parts = _settle(cfg, plain, parts, usual, section)
    usual |= {name: str(option) for name, option in section.items() if name in parts}
    config["method"] = plain
    own = {name: value for name, value in plain.items() if name not in parts}
    own_section = {name: section[name] for name in section if name.partition(".")[0] in own}
    if rule:
        config["method"] = offer_candidates(plain, _resolve(cfg, SELECT))
    check_targets(config, cfg.allow_code)
    for key, node in config.items():
        check_finite(key, node)
    for key in ("designs", "top"):
        check_whole(f"budget.{key}", config["budget"].get(key), 1)
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
            **dict(_part_departures(cfg, plain, parts, usual, choices, section)),
            **dict(_departures(own, _set(_written(cfg, "method", method), own_section))),
            **(dict(_rule_departures(cfg, str(rule))) if rule else {}),
        },
        # Two methods that come to the same line-up have the same numbers but runs of their own.
        digest=digest({**config, "chosen": {"task": task, "method": method}}),
        task_digest=digest({"task": config["task"]}),
        parts=parts,
        timeout=cfg.timeout,
        memory_gb=cfg.memory_gb,
        isolate=cfg.isolate,
    )


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
            str(name): _canonical(item)
            for name, item in value.items()
            if name not in _NOT_IN_DIGEST
        }
    if isinstance(value, list | tuple):
        return [_canonical(item) for item in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _typed_keys(cfg: DictConfig) -> frozenset[str]:
    """Return the keys that were typed, or set by a case of a sweep."""
    words = OmegaConf.select(cfg, "hydra.overrides.task")
    if words is None and HydraConfig.initialized():  # a job gets its configuration without it
        words = HydraConfig.get().overrides.task
    keys = (word.partition("=")[0].lstrip("+").rpartition("@")[2] for word in words or ())
    return frozenset(key.removeprefix("method.") for key in keys)


def _settle(
    cfg: DictConfig,
    method: Mapping[str, Any],
    parts: Mapping[str, str],
    usual: Mapping[str, str],
    section: Mapping[str, Any],
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return a method and its parts with the settings of a section, except for what was typed."""
    method, parts, typed = dict(method), dict(parts), _typed_keys(cfg)
    for name in section.keys() & parts.keys() - typed:
        if parts[name] == usual[name]:
            parts[name] = str(section[name])
            own = {key.partition(".")[2] for key in typed if key.startswith(f"{name}.")}
            node = _written(cfg, name, parts[name])
            method[name] = _set(node, {key: _get(method[name], key) for key in own})
    replaced = {name for name in parts if parts[name] != section.get(name, usual[name])}
    values = {
        name: value
        for name, value in section.items()
        if name not in parts
        and name.partition(".")[0] not in replaced
        and not any(f"{name}.".startswith(f"{key}.") for key in typed)
    }
    unknown = next((name for name in values if not _has(method, name)), None)
    if unknown is not None:
        raise UsageError(
            f"method.{CATEGORICAL} names {unknown!r}, which this method does not have; name the "
            "option of a part, or a setting as in surrogate.training.steps"
        )
    return _set(method, values), parts


def _part_departures(
    cfg: DictConfig,
    method: Mapping[str, Any],
    parts: Mapping[str, str],
    usual: Mapping[str, str],
    choices: Mapping[str, Any],
    section: Mapping[str, Any],
) -> Iterator[tuple[str, str]]:
    """Yield the parts of a method that are not the usual ones, and their settings."""
    for name, choice in parts.items():
        own = {} if choice != usual[name] else section
        if choice != usual[name]:
            yield name, choice
        training = choices.get(_TYPED_TRAINING) if name == "surrogate" else None
        if training and _read(name, choice, training) != _read(name, choice, None):
            yield TRAINING, training
            own = {key: own[key] for key in own if not key.startswith(f"{name}.{TRAINING}.")}
        if isinstance(method[name], Mapping):
            written = {name: _written(cfg, name, choice, training)}
            of_part = {key: value for key, value in own.items() if key.startswith(f"{name}.")}
            yield from _departures(method[name], _set(written, of_part)[name], f"{name}.")


def _rule_departures(cfg: DictConfig, rule: str) -> Iterator[tuple[str, str]]:
    """Yield the rule that chooses settings, and where it is not as its file has it."""
    yield SELECT, rule
    chosen, written = _resolve(cfg, SELECT), _written(cfg, SELECT, rule)
    yield from _departures({**written, **chosen}, written, f"{SELECT}.")
    grid, usual = chosen.get(GRID) or {}, written.get(GRID) or {}
    yield from ((f"{SELECT}.{GRID}.{name}", str(grid[name])) for name in grid if name not in usual)


def _departures(
    config: Mapping[str, Any], written: Mapping[str, Any], prefix: str = ""
) -> Iterator[tuple[str, str]]:
    """Yield where a configuration departs from what is written in its file."""
    for name, value in config.items():
        if name not in written or name in _NO_SETTINGS:
            continue
        if isinstance(value, Mapping) and isinstance(written[name], Mapping):
            yield from _departures(value, written[name], f"{prefix}{name}.")
        elif _canonical(value) != _canonical(written[name]):
            yield f"{prefix}{name}", str(value)


def _written(
    cfg: DictConfig, group: str, choice: str, training: str | None = None
) -> dict[str, Any]:
    """Return a group file, with interpolations resolved against the current configuration.

    Top-level keys that the file sets itself keep its values, except for the sizes.
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
    """Return the default parts of a method."""
    return {**usual_choices("run"), **line_up(method)}


def offer_candidates(method: Mapping[str, Any], select: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a method that chooses among settings of another.

    Settings of the grid that the method does not have are ignored.
    """
    grid = _read_grid(select.get(GRID))
    known = {name: values for name, values in grid.items() if _has(method, name)}
    if not known:
        raise UsageError(
            f"select chooses among values of {', '.join(grid) or 'nothing'}, which this method "
            "does not have; name settings that it has, as in "
            "'+select.grid={search.rate:[0.01,0.05]}'"
        )
    points = [dict(zip(known, values, strict=True)) for values in product(*known.values())]
    if len(points) > _MOST_CANDIDATES:
        raise UsageError(
            f"select.grid has {len(points)} combinations; at most {_MOST_CANDIDATES} can be judged"
        )
    bare = {name: value for name, value in method.items() if name != CARD}
    chooser = {name: value for name, value in select.items() if name != GRID}
    card = {CARD: method[CARD]} if CARD in method else {}
    return {
        **chooser,
        **card,
        "candidates": {_candidate_name(one): _set(bare, one) for one in points},
    }


def _read_grid(grid: object) -> dict[str, list[Any]]:
    if not isinstance(grid, Mapping):
        raise UsageError(f"select.grid must name settings and their values, got {grid!r}")
    named = {str(name): values for name, values in grid.items() if values is not None}
    for name, values in named.items():
        if not isinstance(values, list) or not values:
            raise UsageError(f"select.grid must list values of {name}, got {values!r}")
    return named


def _has(method: Mapping[str, Any], name: str) -> bool:
    node: Any = method
    for key in name.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True


def _get(node: Any, name: str) -> Any:
    for key in name.split("."):
        node = node[key]
    return node


def _set(method: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's configuration with other settings."""
    changed = deepcopy(dict(method))
    for name, value in settings.items():
        *above, last = name.split(".")
        node = changed
        for key in above:
            node = node[key]
        node[last] = value
    return changed


def _candidate_name(settings: Mapping[str, Any]) -> str:
    words = {name: "null" if value is None else str(value) for name, value in settings.items()}
    return format_variant(words)
