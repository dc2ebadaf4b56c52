"""Makes Hydra know our sweeper, our resolver and the configurations that plug-ins announce."""

import atexit
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hydra._internal.hydra import Hydra
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from ddobench import registry
from ddobench.cli import config_files
from ddobench.cli.settings import read_folder

LAUNCHERS = "launcher"  # the folder of settings that launchers begin with


class AnnouncedConfigs(SearchPathPlugin):
    """Adds the configurations of plug-ins to Hydra's search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append the folder of `--config-dir` and one entry for each announced package.

        Hydra itself knows the folder on its own command line only, not where Python composes.
        """
        if folder := registry.config_dir():
            search_path.append(provider="config-dir", path=f"file://{folder}")
        for name, package in registry.announced().items():
            search_path.append(provider=name, path=f"pkg://{package}")


def register() -> None:
    """Register everything; repeating it is harmless."""
    config_files.install()
    plugins = Plugins.instance()  # scans Hydra's own plug-ins, which must come before ours
    from ddobench.cli.sweeper import SeedSweeper

    plugins.register(SeedSweeper)
    plugins.register(AnnouncedConfigs)
    # Hydra 1.3 accepts plug-ins only under this prefix.
    plugins.class_name_to_class["hydra_plugins.ddobench.SeedSweeper"] = SeedSweeper
    for entry in registry.entries(LAUNCHERS):  # under the names of the plug-ins, in their place
        node = registry.read_choice(LAUNCHERS, entry.name)
        ConfigStore.instance().store(entry.name, node, group="hydra/launcher")
    OmegaConf.register_new_resolver("scale", scale, replace=True)
    OmegaConf.register_new_resolver("epochs", count_steps, replace=True)
    OmegaConf.register_new_resolver("percentile", percentile, replace=True)
    OmegaConf.register_new_resolver("home", home, replace=True)
    OmegaConf.register_new_resolver("table", look_up_table, replace=True)
    OmegaConf.register_new_resolver("temporary", make_temporary, replace=True, use_cache=True)


@contextmanager
def trusting_the_flag() -> Iterator[None]:
    """Let `-m` alone decide that this is a sweep.

    Hydra would compose the whole configuration once more only to look at `hydra.mode`.
    """
    original = Hydra.get_mode
    Hydra.get_mode = lambda *_, **__: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        Hydra.get_mode = original  # type: ignore[method-assign]


def home(folder: object) -> str:
    """Return a folder with `~` replaced by the home folder."""
    return str(read_folder(folder))


def make_temporary(name: str) -> str:
    """Return a new folder that is gone when this process ends.

    Sockets lie in it, and the names of these may not be long: where there is a `/tmp`, it is there.
    """
    short = Path("/tmp")
    folder = mkdtemp(prefix=f"ddobench-{name}-", dir=short if short.is_dir() else None)
    _temporary.append(folder)
    return folder


def _remove_temporary() -> None:
    for folder in _temporary:
        shutil.rmtree(folder, ignore_errors=True)


_temporary: list[str] = []
atexit.register(_remove_temporary)  # before whoever uses them, so that these end first


def look_up_table(what: str, file: str, target: str, *settings: Any) -> Any:
    """Return the columns, the visible rows or the content hash of a table of rows."""
    from ddobench.tabular.encodings import look_up  # needs pandas, which takes a second

    return look_up(what, file, target, *settings)


def scale(steps: int, factor: float) -> int:
    """Return a number of steps scaled by a budget, at least one."""
    return max(1, round(steps * factor))


def count_steps(epochs: int, rows: int, batch: int) -> int:
    """Return how many minibatches so many passes over the rows take, at least one."""
    return max(1, epochs * rows // batch)


def percentile(usual: float, least: int, rows: int) -> float:
    """Return a percentile with at least so many rows above it, if as many are left below."""
    if rows < 2 * least:
        return usual
    return min(usual, 100 * (rows - least) / rows)
