"""Turns composed configuration into tasks and methods: the one place that instantiates."""

import re
import sys
import types
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any, TypeVar, Union, get_args, get_origin, get_type_hints

from hydra.errors import InstantiationException
from hydra.utils import instantiate

from ddobench import registry
from ddobench.errors import UsageError, read_message
from ddobench.identity import Identity, identify, read_identity
from ddobench.runner.process_state import exit_as_error, restored_process

if TYPE_CHECKING:
    from ddobench.contracts import Method, Task  # these need PyTorch, which takes seconds

Built = TypeVar("Built")

TARGET = "_target_"  # where the code of a class lives
CARD = "card"  # label, colour and summary: shown to users, never part of a result
_ADDRESS = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)+")


def check_targets(config: Mapping[str, Any], allowed: object) -> None:
    """Raise if a configuration names code that is not registered; nothing is imported."""
    packages = [allowed] if isinstance(allowed, str) else allowed
    if not isinstance(packages, Sequence) or not all(isinstance(name, str) for name in packages):
        raise UsageError(f"allow_code must be names of packages, as in [a,b], got {allowed!r}")
    for key, node in _targets(config, ""):
        target = node[TARGET]
        if not isinstance(target, str) or not _ADDRESS.fullmatch(target):
            raise UsageError(
                f"{key}._target_ must name a class, as in package.module.Class, got {target!r}"
            )
        if registry.is_registered(target) or any(
            f"{target}.".startswith(f"{name}.") for name in packages
        ):
            continue
        raise UsageError(
            f"{key}._target_ names {target}, which no registered package and no --config-dir "
            f"brings; if you trust it, add allow_code=[{target.partition('.')[0]}]"
        )


def check_device(device: str) -> None:
    """Raise if there is no such device here."""
    import torch

    if device == "cuda" and not torch.cuda.is_available():
        raise UsageError(
            "device=cuda needs a GPU that PyTorch can use, and there is none; write device=auto"
        )


def build_task(config: Mapping[str, Any]) -> "Task":
    """Build the task of a resolved configuration."""
    from ddobench.contracts import Task

    return _build(config, "task", Task)  # type: ignore[type-abstract]


def build_method(config: Mapping[str, Any]) -> "Method":
    """Build the method of a resolved configuration."""
    from ddobench.contracts import Method

    return _build(config, "method", Method)  # type: ignore[type-abstract]


def name_classes(config: Any, key: str = "") -> Any:
    """Return a configuration with the name and version of every class in place of its address."""
    if isinstance(config, Mapping):
        named = {name: name_classes(value, f"{key}.{name}") for name, value in config.items()}
        if TARGET in config:
            address = named.pop(TARGET)
            known = _identify(address, key.strip("."))
            named |= {"_name_": known.name, "_version_": known.version}
        return named
    if isinstance(config, list | tuple):
        return [name_classes(value, f"{key}[{index}]") for index, value in enumerate(config)]
    return config


def _identify(address: str, key: str) -> Identity:
    """Return name and version of a class, read from its source where possible."""
    imported = address.rpartition(".")[0] in sys.modules
    known = None if imported else _read_identity(address)
    return known or identify(load_class(address, key))


def _read_identity(address: str) -> Identity | None:
    try:
        return read_identity(address)
    except (Exception, SystemExit):  # reported when it is imported
        return None


def load_class(target: str, key: str) -> type:
    """Import the class a configuration names."""
    try:
        with restored_process(), exit_as_error():
            found = resolve_name(target)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        reason = f"{type(error).__name__}: {read_message(error)}"
        raise UsageError(f"{key} names {target}, which cannot be imported: {reason}") from error
    if not isinstance(found, type):
        raise UsageError(f"{key} names {target}, which is not a class")
    return found


def _build(config: Mapping[str, Any], key: str, kind: type[Built]) -> Built:
    """Build an object of a kind; nothing is called before every class in it has been checked."""
    if "_target_" not in config:
        raise UsageError(f"{key} must have a _target_, got the keys {', '.join(map(str, config))}")
    _check_card(config.get(CARD), key)
    if missing := registry.missing_dependency(config.get(CARD) or {}):
        raise UsageError(f"{key} cannot be built here: {missing}")
    bare = {name: value for name, value in config.items() if name != CARD}
    if not issubclass(load_class(config[TARGET], key), kind):
        raise UsageError(f"{key}._target_ must name a {kind.__name__}, got {config[TARGET]}")
    for path, node in _targets(bare, key):
        _check_fields(node, path)
    try:
        with restored_process(), exit_as_error():
            built: Built = instantiate(bare, _convert_="all")
        return built
    except InstantiationException as error:
        if isinstance(error.__cause__, UsageError):
            raise error.__cause__ from None
        raise


def _check_card(card: object, key: str) -> None:
    """Raise unless a card holds texts under known names, or is missing."""
    if card is None:
        return
    if not isinstance(card, Mapping) or not all(isinstance(word, str) for word in card.values()):
        raise UsageError(
            f"{key}.{CARD} must hold words, as in {{label: Mine, color: '#332288', "
            f"summary: what it does}}, got {card!r}"
        )
    for name in card:
        if name not in registry.ON_CARDS:
            raise UsageError(
                f"there is no key '{key}.{CARD}.{name}'; a card has {', '.join(registry.ON_CARDS)}"
            )


def _targets(config: Any, key: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Walk to every mapping that names a class, outermost first."""
    if isinstance(config, Mapping):
        if "_target_" in config:
            yield key, config
        for name, value in config.items():
            yield from _targets(value, f"{key}.{name}".strip("."))
    elif isinstance(config, list | tuple):
        for index, value in enumerate(config):
            yield from _targets(value, f"{key}[{index}]")


def _check_fields(node: Mapping[str, Any], key: str) -> None:
    """Raise for a parameter that is unknown or left out, or a value of the wrong kind."""
    kind = load_class(node["_target_"], key)
    if not is_dataclass(kind):
        raise UsageError(
            f"{key}._target_ must name a dataclass, whose fields are its parameters, "
            f"got {node['_target_']}"
        )
    try:
        hints = get_type_hints(kind)
    except Exception as error:
        raise UsageError(f"the types of {node['_target_']} cannot be read: {error}") from error
    known = {field.name: hints[field.name] for field in fields(kind) if field.init}
    for name, value in node.items():
        if name == TARGET:
            continue
        if name not in known:
            raise UsageError(
                f"{key} has no parameter {name!r}; it has {', '.join(known) or 'no parameters'}"
            )
        if not _fits(value, known[name]):
            raise UsageError(f"{key}.{name} must be {_describe_type(known[name])}, got {value!r}")
    for field in fields(kind):
        optional = field.default is not MISSING or field.default_factory is not MISSING
        if field.init and not optional and field.name not in node:
            raise UsageError(f"{key} needs the parameter {field.name!r}; give {key}.{field.name}")


def _fits(value: Any, hint: Any) -> bool:
    """Return whether a plain value fits a plain type; other types are checked by the class."""
    if get_origin(hint) in (Union, types.UnionType):
        return any(_fits(value, option) for option in get_args(hint))
    if hint is float:
        return isinstance(value, int | float) and not isinstance(value, bool)
    if hint is int:
        return isinstance(value, int) and not isinstance(value, bool)
    if hint in (bool, str, type(None)):
        return isinstance(value, hint)
    return True


def _describe_type(hint: Any) -> str:
    names = {float: "a number", int: "a whole number", bool: "true or false", str: "a word"}
    if get_origin(hint) in (Union, types.UnionType):
        return " or ".join(_describe_type(option) for option in get_args(hint))
    return "null" if hint is type(None) else names.get(hint, str(hint))
