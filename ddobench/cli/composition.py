"""Composes configurations from Python, without a command line."""

from collections.abc import Sequence

from hydra import compose, initialize_config_module

from ddobench.cli import hydra_hooks
from ddobench.cli.argv import spell
from ddobench.cli.messages import explain
from ddobench.cli.overrides import check_overrides
from ddobench.errors import UsageError
from ddobench.runner.spec import Specification, specify


def specify_points(points: Sequence[Sequence[str]]) -> list[Specification]:
    """Specify one run for each list of `key=value`, or raise the command line's sentence."""
    hydra_hooks.register()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        return [_specify(list(map(spell, words))) for words in points]


def _specify(overrides: list[str]) -> Specification:
    check_overrides(overrides, "run")
    try:
        cfg = compose("run", overrides=overrides, return_hydra_config=True)
        return specify(cfg, cfg.hydra.runtime.choices)
    except Exception as error:
        sentence = explain(error)
        if sentence is None:
            raise
        raise UsageError(sentence) from error
