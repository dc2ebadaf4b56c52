"""Files of the configuration are read once, and nothing that is composed can tell."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_dir, initialize_config_module
from hydra._internal import config_loader_impl, defaults_list
from hydra._internal.config_repository import ConfigRepository
from omegaconf import DictConfig, OmegaConf

from ddobench.cli import config_files, hydra_hooks

WORDS = ["method=units", "task=nk", "budget=tiny", "search.rate=0.5"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return configurations of which one names another by what a third has chosen."""
    files = {
        "main.yaml": 'defaults: [_self_, {size: small}, {shape: "of_${size}"}]\n',
        "size/small.yaml": "d: 3\n",
        "size/large.yaml": "d: 300\n",
        "shape/of_small.yaml": "sides: 4\n",
        "shape/of_large.yaml": "sides: 12\n",
    }
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
    hydra_hooks.register()
    return tmp_path


def compose_from(folder: Path, *words: str) -> DictConfig:
    """Compose the configurations of the folder."""
    with initialize_config_dir(config_dir=str(folder), version_base="1.3"):
        return compose("main", overrides=list(words))


def compose_ours() -> DictConfig:
    """Compose a run of ours, with all that Hydra adds."""
    hydra_hooks.register()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        return compose("run", overrides=WORDS, return_hydra_config=True)


def test_a_configuration_is_that_of_hydra_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    compose_ours()
    ours = compose_ours()  # from what was read before
    monkeypatch.setattr(config_files, "install", lambda: None)
    monkeypatch.setattr(config_loader_impl, "ConfigRepository", ConfigRepository)
    monkeypatch.setattr(defaults_list, "_create_interpolation_map", config_files._list_choices)
    assert ours == compose_ours()


def test_whoever_changes_a_configuration_changes_no_later_one() -> None:
    before = compose_ours()
    before.search.rate = 7.0
    before.task.q = 5
    assert compose_ours() != before


def test_a_file_that_has_changed_is_read_again(folder: Path) -> None:
    assert compose_from(folder).size.d == 3
    (folder / "size" / "small.yaml").write_text("d: 33\n", encoding="utf-8")
    assert compose_from(folder).size.d == 33


def test_a_file_is_parsed_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    first = compose_from(folder)
    monkeypatch.setattr(OmegaConf, "load", None)
    assert compose_from(folder) == first


def test_a_default_may_name_what_another_has_chosen(folder: Path) -> None:
    assert compose_from(folder).shape.sides == 4
    assert compose_from(folder, "size=large").shape.sides == 12
