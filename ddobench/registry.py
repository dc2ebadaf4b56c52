"""What is registered: the options of the configuration groups, ours and those of plug-ins.

A plug-in is a folder given by `--config-dir` (YAML below the name of a group, Python beside it) or
an installed package that announces a configuration package under the entry point group
`ddobench.conf`. Nothing here imports a task or a method.
"""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from importlib import metadata, resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

import yaml

ENTRY_POINTS = "ddobench.conf"
PARTS = ("latent", "axes", "graph", "surrogate", "search")  # groups that make up a method
_CONFIG_DIR = "DDOBENCH_CONFIG_DIR"  # inherited by the worker processes of a sweep


@dataclass(frozen=True)
class Entry:
    """One option of a group, for people."""

    name: str
    label: str
    color: str
    summary: str


def entries(group: str) -> list[Entry]:
    """List the options of a group such as `task` or `latent`, sorted by name."""
    found: dict[str, Entry] = {}
    for root in _roots():
        folder = root.joinpath(group)
        if not folder.is_dir():
            continue
        for file in folder.iterdir():
            if file.name.endswith(".yaml"):
                name = file.name.removesuffix(".yaml")
                found.setdefault(name, _entry(name, group, file))
    return [found[name] for name in sorted(found)]


def read_choice(group: str, choice: str) -> dict[str, Any]:
    """Return the group's own part of an option's file as written, empty if there is no file.

    What the file takes from other groups into itself (`/training@training: adam`) is filled in.
    """
    file = _find(group, choice)
    if file is None:
        return {}
    own = _own_part(group, file)
    for item in own.pop("defaults", []):
        for source, taken in item.items() if isinstance(item, dict) else ():
            other, at, key = source.removeprefix("/").partition("@")
            if at:
                own[key] = {**read_choice(other, taken), **own.get(key, {})}
    return own


def line_up(method: str) -> dict[str, str]:
    """Return the part of each group that a method's file chooses."""
    file = _find("method", method)
    items = _read(file).get("defaults", []) if file else []
    chosen = [pair for item in items if isinstance(item, dict) for pair in item.items()]
    return {
        group.removeprefix("override /"): str(choice)
        for group, choice in chosen
        if group.removeprefix("override /") in PARTS
    }


def parameters(group: str) -> list[str]:
    """List every parameter that any option of a group has."""
    names = {name for entry in entries(group) for name in read_choice(group, entry.name)}
    return sorted(names - {"_target_", "card", *PARTS})


def top_keys(config_name: str) -> list[str]:
    """List the keys a user may type at the top level of a configuration, groups included."""
    node = _read(resources.files("ddobench.conf").joinpath(f"{config_name}.yaml"))
    groups = [
        next(iter(item))
        for item in node.get("defaults", [])
        if isinstance(item, dict) and not next(iter(item)).startswith("override ")
    ]
    return [*groups, *(key for key in node if key not in ("defaults", "hydra"))]


def usual_choices(config_name: str) -> dict[str, str]:
    """Return the option of each group that a configuration takes unless told otherwise."""
    node = _read(resources.files("ddobench.conf").joinpath(f"{config_name}.yaml"))
    items = [item for item in node.get("defaults", []) if isinstance(item, dict)]
    pairs = [pair for item in items for pair in item.items()]
    return {group: str(choice) for group, choice in pairs if not group.startswith("override ")}


def announced() -> dict[str, str]:
    """Return the configuration packages that installed distributions announce, by name."""
    return {point.name: point.value for point in metadata.entry_points(group=ENTRY_POINTS)}


def use_config_dir(folder: str) -> None:
    """Let a folder of a plug-in be found, here and in worker processes."""
    os.environ[_CONFIG_DIR] = str(Path(folder).resolve())


def config_dir() -> str | None:
    """Return the folder of a plug-in that was to be found, if any."""
    return os.environ.get(_CONFIG_DIR)


def _roots() -> Iterator[Traversable]:
    if folder := config_dir():
        yield Path(folder)
    yield resources.files("ddobench.conf")
    for package in announced().values():
        yield resources.files(package)


def _find(group: str, choice: str) -> Traversable | None:
    """Return the file of an option, a plug-in's before ours."""
    files = (root.joinpath(group, f"{choice}.yaml") for root in _roots())
    return next((file for file in files if file.is_file()), None)


def _entry(name: str, group: str, file: Traversable) -> Entry:
    card = _own_part(group, file).get("card") or {}
    summary = card.get("summary") or _first_comment(file)
    return Entry(name, str(card.get("label", name)), str(card.get("color", "")), str(summary))


def _own_part(group: str, file: Traversable) -> dict[str, Any]:
    """Return what a file says of its group; a file of the global package says it under its name."""
    node = _read(file)
    own = node.get(group, node)
    return dict(own) if isinstance(own, dict) else {}


def _read(file: Traversable) -> dict[str, Any]:
    return dict(yaml.safe_load(file.read_text(encoding="utf-8")) or {})


def _first_comment(file: Traversable) -> str:
    for line in file.read_text(encoding="utf-8").splitlines():
        if line.startswith("# ") and "@package" not in line:
            return line.removeprefix("# ")
    return ""
