"""What is registered: the options of the configuration groups, ours and those of plug-ins.

A plug-in is a folder given by `--config-dir` (YAML below the name of a group, Python beside it) or
an installed package that announces a configuration package under the entry point group
`ddobench.conf`. Nothing here imports a task or a method.
"""

import copy
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import yaml

from ddobench.datasets import missing_data
from ddobench.errors import UsageError

ENTRY_POINTS = "ddobench.conf"
PARTS = ("latent", "axes", "graph", "surrogate", "search")  # groups that make up a method
ON_CARDS = (  # what methods and tasks may say of themselves
    "label", "color", "summary", "fidelity", "paper", "doi", "marker", "line", "role", "designs",
    "needs", "install", "data", "source",
)  # fmt: skip
TRAINING = "training"  # a group that parts take into themselves; typed, it is the surrogate's
CATEGORICAL = "categorical"  # a section of a method's file, for tasks whose card says so
_TARGET = re.compile(r"_target_['\"]?\s*:\s*['\"]?([\w.]+)")
_CONFIG_DIR = "DDOBENCH_CONFIG_DIR"  # the worker processes of a launcher inherit it


@dataclass(frozen=True)
class Entry:
    """One option of a group, as the help shows it."""

    name: str
    label: str
    color: str
    summary: str
    fidelity: str = ""  # of a method to its paper: faithful, adaptation, own; empty: not declared
    missing_dependency: str = ""  # a sentence about a package or data set that is not here


def entries(group: str) -> list[Entry]:
    """List the options of a group such as `task` or `latent`, sorted by name."""
    found: dict[str, Entry] = {}
    for root in _roots():
        folder = root.joinpath(group)
        if not folder.is_dir():
            continue
        for file in folder.iterdir():
            if file.name.endswith(".yaml") and file.is_file():  # not a pipe, which would wait
                name = file.name.removesuffix(".yaml")
                found.setdefault(name, _entry(name, group, file))
    return [found[name] for name in sorted(found)]


def read_choice(group: str, choice: str, training: str | None = None) -> dict[str, Any]:
    """Return the group's own part of an option's file as written, empty if there is no file.

    What the file takes from other groups into itself (`/training@training: adam`) is filled in,
    with another option of `training` if one is given.
    """
    file = _find(group, choice)
    if file is None:
        return {}
    own = _own_part(group, file)
    taken = _chosen(_read(file))
    own.pop("defaults", None)
    for source, choice in taken:
        other, at, key = source.removeprefix("/").partition("@")
        if other == TRAINING and training:
            choice = training
        if at:
            *above, last = key.removeprefix(f"{group}.").split(".")
            node = own
            for name in above:
                node = node.setdefault(name, {})
            node[last] = {**read_choice(other, choice), **node.get(last, {})}
    return own


def read_top_keys(group: str, choice: str) -> dict[str, Any]:
    """Return what an option's file sets at the top level besides its own part and the sizes.

    A task around a file brings `file` and `target`, to be typed without its name before them.
    """
    file = _find(group, choice)
    node = _read(file) if file else {}
    if group not in node:
        return {}
    return {
        key: value
        for key, value in node.items()
        if key not in (group, "defaults", "d", "n") and not isinstance(value, dict)
    }


def line_up(method: str) -> dict[str, str]:
    """Return the part of each group that a method's file chooses."""
    file = _find("method", method)
    return {
        group.removeprefix("override /"): choice
        for group, choice in (_chosen(_read(file)) if file else ())
        if group.removeprefix("override /") in PARTS
    }


def has_part(method: str, group: str) -> bool:
    """Return whether a method takes a part of this group; a broken file takes none."""
    with suppress(UsageError):
        return group in read_choice("method", method)
    return False


def parameters(group: str) -> list[str]:
    """List every parameter that any option of a group has."""
    names: set[str] = set()
    for entry in entries(group):
        with suppress(UsageError):  # a broken file is reported when it is chosen
            names |= read_choice(group, entry.name).keys()
    return sorted(names - {"_target_", "card", CATEGORICAL, *PARTS})


def top_keys(config_name: str) -> list[str]:
    """List the keys a user may type at the top level of a configuration, groups included."""
    node = _read(resources.files("ddobench.conf").joinpath(f"{config_name}.yaml"))
    groups = [group for group, _ in _chosen(node) if not group.startswith("override ")]
    return [*groups, *(key for key in node if key not in ("defaults", "hydra"))]


def usual_choices(config_name: str) -> dict[str, str]:
    """Return the option of each group that a configuration takes by default."""
    node = _read(resources.files("ddobench.conf").joinpath(f"{config_name}.yaml"))
    return {group: choice for group, choice in _chosen(node) if not group.startswith("override ")}


def missing_dependency(card: Mapping[str, Any]) -> str:
    """Return a sentence about the package that an option needs and that is not installed, or "".

    `needs` is the module to be imported, `install` what to install for it.
    """
    module = str(card.get("needs", ""))
    if not module or find_spec(module.partition(".")[0]) is not None:
        return ""
    wanted = card.get("install", module)
    return f"it needs the module {module}, which is not installed; pip install '{wanted}'"


def announced() -> dict[str, str]:
    """Return the configuration packages that installed distributions announce, by name."""
    return dict(_announced(metadata.entry_points, tuple(sys.path)))


def is_registered(target: str) -> bool:
    """Return whether the code of a class is ours, a plug-in's, or named in a plug-in's files."""
    top = target.partition(".")[0]
    packages = {"ddobench", *(package.partition(".")[0] for package in announced().values())}
    folder = os.environ.get(_CONFIG_DIR)
    beside = folder and (Path(folder, f"{top}.py").is_file() or Path(folder, top).is_dir())
    return top in packages or bool(beside) or target in _named_targets()


def unreadable() -> Iterator[tuple[Traversable, str]]:
    """Yield the files of options that cannot be read, each with the reason."""
    for file in _option_files():
        try:
            _read(file)
        except UsageError as error:
            yield file, str(error)


def use_config_dir(folder: str) -> None:
    """Let a folder of a plug-in be found, here and in worker processes."""
    os.environ[_CONFIG_DIR] = str(Path(folder).resolve())


def config_dir() -> str | None:
    """Return the folder of `--config-dir`, if any."""
    return os.environ.get(_CONFIG_DIR)


@cache
def _announced(find: Callable[..., metadata.EntryPoints], _path: tuple[str, ...]) -> dict[str, str]:
    """Search the installed packages of a path once, as it takes 10 ms."""
    return {point.name: point.value for point in find(group=ENTRY_POINTS)}


def _roots() -> Iterator[Traversable]:
    if folder := config_dir():
        yield Path(folder)
    yield resources.files("ddobench.conf")
    for package in announced().values():
        yield resources.files(package)


def _option_files() -> Iterator[Traversable]:
    for root in _roots():
        for folder in root.iterdir() if root.is_dir() else ():
            if folder.is_dir():
                files = (file for file in folder.iterdir() if file.name.endswith(".yaml"))
                yield from (file for file in files if file.is_file())


def _named_targets() -> set[str]:
    return {
        target
        for file in _option_files()
        for target in _TARGET.findall(file.read_bytes().decode(errors="replace"))
    }


def _find(group: str, choice: str) -> Traversable | None:
    """Return the file of an option, a plug-in's before ours."""
    files = (root.joinpath(group, f"{choice}.yaml") for root in _roots())
    return next((file for file in files if file.is_file()), None)


def _entry(name: str, group: str, file: Traversable) -> Entry:
    try:
        card = _own_part(group, file).get("card")
    except UsageError as error:
        return Entry(name, name, "", str(error))
    card = card if isinstance(card, dict) else {}
    summary = card.get("summary") or _first_comment(file)
    return Entry(
        name,
        str(card.get("label", name)),
        str(card.get("color", "")),
        str(summary),
        str(card.get("fidelity", "")),
        missing_dependency(card) or (missing_data(str(card["data"])) if "data" in card else ""),
    )


def _own_part(group: str, file: Traversable) -> dict[str, Any]:
    """Return the part of a file that is about its group; global files have it under its name."""
    node = _read(file)
    own = node.get(group, node)
    return dict(own) if isinstance(own, dict) else {}


def _chosen(node: dict[str, Any]) -> list[tuple[str, str]]:
    """Return the groups and options in a list of defaults, those of other shapes left out."""
    items = node.get("defaults")
    return [
        (str(group), str(choice))
        for item in (items if isinstance(items, list) else ())
        if isinstance(item, dict)
        for group, choice in item.items()
    ]


@cache
def _parse(text: str) -> Any:
    """Parse a YAML once; a misspelt word makes us read a hundred files."""
    return yaml.safe_load(text)


def _read(file: Traversable) -> dict[str, Any]:
    try:
        node = copy.deepcopy(_parse(file.read_text(encoding="utf-8")))
    except yaml.MarkedYAMLError as error:
        line = f", line {error.problem_mark.line + 1}" if error.problem_mark else ""
        raise UsageError(f"{file}{line} is not YAML: {error.problem or error.context}") from error
    except (yaml.YAMLError, UnicodeDecodeError, OSError, RecursionError) as error:
        raise UsageError(f"{file} cannot be read: {error}") from error
    if node is not None and not isinstance(node, dict):
        raise UsageError(f"{file} must hold keys with values, got {type(node).__name__}")
    return dict(node or {})


def _first_comment(file: Traversable) -> str:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and "@package" not in line:
            return line.removeprefix("# ")
    return ""
