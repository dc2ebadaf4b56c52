"""What Hydra must know of us: sweeper, resolvers, launchers, configurations of plug-ins."""

import atexit
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from hydra import compose, initialize_config_module
from hydra.core.config_search_path import ConfigSearchPath
from hydra.core.config_store import ConfigStore
from hydra.core.plugins import Plugins
from hydra.plugins.search_path_plugin import SearchPathPlugin
from omegaconf import OmegaConf

from ddobench import registry
from ddobench.cli.argv import check_overrides, read_folder, to_hydra
from ddobench.cli.effects import Effects
from ddobench.cli.messages import explain
from ddobench.datasets import hash_unverified
from ddobench.errors import UsageError
from ddobench.runner.spec import Specification, specify

LAUNCHERS = "launcher"  # the folder with our defaults for launchers


class AnnouncedConfigs(SearchPathPlugin):
    """Adds the configurations of plug-ins to Hydra's search path."""

    def manipulate_search_path(self, search_path: ConfigSearchPath) -> None:
        """Append the folder of `--config-dir` and one entry for each announced package.

        Hydra itself knows the folder only on its own command line, not when composing from Python.
        """
        if folder := registry.config_dir():
            search_path.append(provider="config-dir", path=f"file://{folder}")
        for name, package in registry.announced().items():
            search_path.append(provider=name, path=f"pkg://{package}")


def register() -> None:
    """Register everything; repeating it is harmless."""
    from ddobench.cli.sweeper import SeedSweeper

    folder = registry.config_dir()
    if folder and folder not in sys.path:  # a worker that did not inherit PYTHONPATH
        sys.path.append(folder)
    plugins = Plugins.instance()
    plugins.register(SeedSweeper)
    plugins.register(AnnouncedConfigs)
    # Hydra 1.3 accepts plug-ins only under this prefix.
    plugins.class_name_to_class["hydra_plugins.ddobench.SeedSweeper"] = SeedSweeper
    for entry in registry.entries(LAUNCHERS):  # replaces the defaults of the plug-ins
        node = registry.read_choice(LAUNCHERS, entry.name)
        ConfigStore.instance().store(entry.name, node, group="hydra/launcher")
    OmegaConf.register_new_resolver("scale", scale, replace=True)
    OmegaConf.register_new_resolver("epochs", count_steps, replace=True)
    OmegaConf.register_new_resolver("percentile", percentile, replace=True)
    OmegaConf.register_new_resolver("home", home, replace=True)
    OmegaConf.register_new_resolver("unverified", hash_unverified, replace=True)
    OmegaConf.register_new_resolver("table", look_up_table, replace=True)
    OmegaConf.register_new_resolver("temporary", make_temporary, replace=True, use_cache=True)


def specify_points(points: Sequence[Sequence[str]]) -> list[Specification]:
    """Compose without a command line: specify one run for each list of `key=value`."""
    register()
    effects = Effects()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        specs = [_specify(list(map(to_hydra, words)), effects) for words in points]
    effects.check()
    return specs


def _specify(overrides: list[str], effects: Effects) -> Specification:
    check_overrides(overrides, "run")
    try:
        cfg = compose("run", overrides=overrides, return_hydra_config=True)
        effects.add(cfg, cfg.hydra.runtime.choices, overrides)
        return specify(cfg, cfg.hydra.runtime.choices)
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        raise UsageError(sentence) from error


def home(folder: object) -> str:
    """Return a folder with `~` replaced by the home folder."""
    return str(read_folder(folder))


def make_temporary(name: str) -> str:
    """Return a new folder that is removed when this process ends.

    It holds sockets, whose paths must be short, so it is in `/tmp` where that exists.
    """
    short = Path("/tmp")
    folder = mkdtemp(prefix=f"ddobench-{name}-", dir=short if short.is_dir() else None)
    _temporary.append(folder)
    return folder


def _remove_temporary() -> None:
    for folder in _temporary:
        shutil.rmtree(folder, ignore_errors=True)


_temporary: list[str] = []
atexit.register(_remove_temporary)  # registered early, so that users of a folder end first


def look_up_table(what: str, file: str, target: str, *settings: Any) -> Any:
    """Return the columns, the visible rows or the content hash of a table of rows."""
    from ddobench.tabular.encodings import look_up  # needs pandas, which takes a second

    return look_up(what, file, target, *settings)


def scale(steps: int, factor: float) -> int:
    """Return a number of steps scaled by a budget, at least one."""
    return max(1, round(steps * factor))


def count_steps(epochs: int, rows: int, batch: int) -> int:
    """Return the number of minibatches in a number of passes over the rows, at least one."""
    return max(1, epochs * rows // batch)


def percentile(usual: float, least: int, rows: int) -> float:
    """Return a percentile with at least `least` rows above it, if as many are left below."""
    if rows < 2 * least:
        return usual
    return min(usual, 100 * (rows - least) / rows)
