"""The files that Hydra composes configurations from, each read once while it stays as it is.

A configuration is made of two dozen files, and a sweep of hundreds of configurations. Parsing the
files and listing all choices at each of them took nearly half of the time of composing.
"""

import copy
from importlib import resources
from pathlib import Path
from typing import Any

from hydra._internal import config_loader_impl, defaults_list
from hydra._internal.config_repository import ConfigRepository
from hydra.core.default_element import InputDefault
from hydra.core.object_type import ObjectType
from hydra.plugins.config_source import ConfigResult, ConfigSource
from omegaconf import DictConfig

Stamp = tuple[int, int]  # when a file was written, and its size

_read: dict[tuple[str, str], tuple[Stamp, ConfigResult | None]] = {}
_list_choices = defaults_list._create_interpolation_map  # Hydra's own


class FilesReadOnce(ConfigRepository):
    """Hydra's repository of files, which parses none again that has not changed."""

    def load_config(self, config_path: str) -> ConfigResult | None:
        """Return what a file says, in a copy: whoever composes changes it."""
        source = self._find_object_source(config_path, ObjectType.CONFIG)
        stamp = None if source is None else _stamp(source, config_path)
        if source is None or stamp is None:
            return super().load_config(config_path)
        key = f"{source.provider} {source.full_path()}", config_path
        kept = _read.get(key)
        if kept is None or kept[0] != stamp:
            kept = _read[key] = stamp, super().load_config(config_path)
        return copy.deepcopy(kept[1])


def install() -> None:
    """Let Hydra read files this way; repeating it is harmless."""
    config_loader_impl.ConfigRepository = FilesReadOnce  # type: ignore[attr-defined]
    defaults_list._create_interpolation_map = _list_choices_if_asked  # type: ignore[assignment]


def _stamp(source: ConfigSource, config_path: str) -> Stamp | None:
    """Return what changes with the content of a file, None for what is no file."""
    if source.scheme() == "pkg":
        folder: Any = resources.files(source.path)
    elif source.scheme() == "file":
        folder = Path(source.path)
    else:
        return None
    file = folder.joinpath(ConfigSource._normalize_file_name(config_path))
    if not isinstance(file, Path):  # such as one in a zip file
        return None
    status = file.stat()
    return status.st_mtime_ns, status.st_size


def _list_choices_if_asked(
    overrides: Any, defaults: list[InputDefault], self_added: bool
) -> DictConfig:
    """Return what interpolations in a list of defaults may refer to, if it has any."""
    if any(not default.is_self() and default.is_interpolation() for default in defaults):
        return _list_choices(overrides, defaults, self_added)
    return DictConfig({})
