"""Refuses what is typed and would have no effect, so that no typo is silently ignored.

In a sweep, a setting needs an effect on one point at least; for the others there is a note.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from omegaconf import DictConfig, OmegaConf

from ddobench import registry
from ddobench.cli.messages import suggest
from ddobench.errors import UsageError
from ddobench.registry import PARTS, TRAINING

_FACTORS = ("training", "ascent")  # keys of a budget that scale numbers of steps
_REFERENCE = re.compile(r"\$\{\.*(\w+(?:\.\w+)?)")  # ${latent}, ${budget.training}
_FILE = re.compile(r"(?:.*/)?([^/]*)\.ya?ml|.*/([^/]*)")


@dataclass
class Idle:
    """A setting without an effect on some methods."""

    typed: str
    reason: str
    remedy: str
    methods: list[str] = field(default_factory=list)  # of all points without an effect

    def __str__(self) -> str:
        methods = ", ".join(dict.fromkeys(self.methods))
        return f"{self.typed} has no effect on {methods}, {self.reason}"


@dataclass
class Effects:
    """Which settings have an effect on some point of a sweep."""

    used: set[str] = field(default_factory=set)  # keys
    idle: dict[str, Idle] = field(default_factory=dict)  # by key

    def add(self, cfg: DictConfig, choices: Mapping[str, Any], words: Sequence[str]) -> None:
        """Look at one point: its composed configuration and the words that a user typed for it."""
        _check_names(choices)
        _check_budget(cfg)
        keys = {word: word.partition("=")[0].lstrip("+") for word in words}
        groups = {word: key.rpartition("@")[2].partition(".")[0] for word, key in keys.items()}
        if not {*PARTS, "budget", "select"} & {*groups.values()}:
            return
        read = _find_references(cfg)
        for word, group in groups.items():
            key = keys[word]
            if group == "budget" and key != group and key not in read:
                _check_budget_key(key)
            elif group in PARTS and group not in read:
                if key not in self.idle:
                    self.idle[key] = _idle_part(word, key, group, cfg)
                self.idle[key].methods.append(str(choices["method"]))
            elif group == "select" and key != group and not choices.get(group):
                if key not in self.idle:
                    self.idle[key] = _idle_rule(word)
                self.idle[key].methods.append(str(choices["method"]))
            else:
                self.used.add(key)

    def check(self) -> list[str]:
        """Raise for a setting without any effect; return notes on those with an effect on some."""
        for key, idle in self.idle.items():
            if key not in self.used:
                raise UsageError(f"{idle}; {idle.remedy}")
        return [str(idle) for idle in self.idle.values()]


def _check_names(choices: Mapping[str, Any]) -> None:
    """Raise for a file where the name of an option belongs, as runs are stored under the name."""
    for group, choice in choices.items():
        if isinstance(choice, str) and (match := _FILE.fullmatch(choice)):
            raise UsageError(
                f"{group} takes the name of an option, got the file {choice!r}; "
                f"write {group}={match[1] or match[2]}"
            )


def _check_budget(cfg: DictConfig) -> None:
    """Raise unless the factors of a budget are positive numbers."""
    for key in _FACTORS:
        value = cfg.budget.get(key) if OmegaConf.is_dict(cfg.budget) else None
        number = isinstance(value, int | float) and not isinstance(value, bool)
        if value is not None and not (number and value > 0):
            raise UsageError(
                f"budget.{key} must be a number above 0, a factor on steps, got {value!r}; "
                f"budget.{key}=0.01 takes a hundredth of them"
            )


def _find_references(cfg: DictConfig) -> set[str]:
    """Return what task, method and rule refer to, directly or through a part, as written."""
    found: set[str] = set()
    waiting = ["task", "method", "select"]
    while waiting:
        node = cfg.get(waiting.pop())
        text = str(OmegaConf.to_container(node)) if OmegaConf.is_config(node) else ""
        names = {*_REFERENCE.findall(text)}
        names |= {name.partition(".")[0] for name in names}
        waiting += [name for name in names - found if name in PARTS]
        found |= names
    return found


def _idle_part(word: str, key: str, group: str, cfg: DictConfig) -> Idle:
    """Describe a setting of a part that the method does not have."""
    typed = word.lstrip("+")
    if "@" in key:  # as Hydra reads training=NAME
        typed = f"{TRAINING}={word.partition('=')[2]}"
    own = f"method.{key.partition('.')[2]}"
    if "." in key and "@" not in key and OmegaConf.select(cfg, own) is not None:
        remedy = f"write {typed.replace(key, own, 1)} for the method's own"
    else:
        having = [e.name for e in registry.entries("method") if registry.has_part(e.name, group)]
        remedy = f"choose a method that has one: {', '.join(having)}"
    return Idle(typed, f"where there is no {group}", f"leave it out, or {remedy}")


def _idle_rule(word: str) -> Idle:
    """Describe a setting of a rule where none is chosen."""
    rules = ", ".join(entry.name for entry in registry.entries("select"))
    return Idle(word.lstrip("+"), "where no rule selects", f"add select=NAME, one of {rules}")


def _check_budget_key(key: str) -> None:
    """Raise unless some budget has this key."""
    known = [f"budget.{name}" for name in registry.parameters("budget")]
    if key not in known:
        raise UsageError(
            f"there is no key {key!r}{suggest(key, known)}; the keys are {', '.join(known)}"
        )
