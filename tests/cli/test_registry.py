"""Promises of the registry: ours, a plug-in folder, an installed plug-in."""

import importlib
import re
import sys
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra.core.override_parser.overrides_parser import OverridesParser

from ddobench import registry
from ddobench.cli import hooks
from ddobench.cli.plan import Product, multiply
from ddobench.errors import UsageError
from ddobench.runner.build import build_task

MINE = """\
_target_: tests.support.fakes.Climb
card:
  label: Mine
  color: "#123456"
  summary: a method of my own
rate: 0.5
"""


@pytest.fixture(autouse=True)
def no_plugin(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start without any plug-in."""
    monkeypatch.delenv("DDOBENCH_CONFIG_DIR", raising=False)
    monkeypatch.setattr(metadata, "entry_points", lambda **_: metadata.EntryPoints())


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a plug-in folder with one method, one task and one experiment."""
    monkeypatch.setenv("DDOBENCH_CONFIG_DIR", "to be restored")
    files = {
        "method/mine.yaml": MINE,
        "method/readme.txt": "no option",
        "task/own.yaml": "# @package _global_\nd: 3\ntask:\n  _target_: x.Y\n  knob: 1\n",
        "experiment/try.yaml": "# @package _global_\n# Tries things.\nd: 3\n",
    }
    for name, text in files.items():
        path = tmp_path / "plugin" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    registry.use_config_dir(str(tmp_path / "plugin"))
    return tmp_path / "plugin"


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Announce an importable package with one method."""
    root = tmp_path / "site" / "my_plugin_conf"
    (root / "method").mkdir(parents=True)
    (root / "__init__.py").touch()
    (root / "method" / "installed.yaml").write_text(MINE.replace("Mine", "Installed"))
    monkeypatch.syspath_prepend(root.parent)
    importlib.invalidate_caches()
    point = metadata.EntryPoint("my_plugin", "my_plugin_conf", registry.ENTRY_POINTS)

    def announce(*, group: str) -> metadata.EntryPoints:
        return metadata.EntryPoints([point] if group == registry.ENTRY_POINTS else [])

    monkeypatch.setattr(metadata, "entry_points", announce)
    yield "my_plugin_conf"
    sys.modules.pop("my_plugin_conf", None)


def names(group: str) -> list[str]:
    """List the names of a group."""
    return [entry.name for entry in registry.entries(group)]


def test_what_ships_is_listed_in_order_with_words_for_people() -> None:
    assert {"fgm", "full_quadratic", "naive"} <= set(names("method"))
    assert "quadratic" in names("task")
    assert names("method") == sorted(names("method"))
    for group in ("task", "method", "latent", "axes", "graph", "experiment", "suite"):
        for entry in registry.entries(group):
            assert entry.summary, f"{group}/{entry.name} says nothing about itself"


def test_methods_have_different_labels() -> None:
    entries = registry.entries("method")
    assert len({entry.label for entry in entries}) == len(entries)
    assert all(entry.color for entry in entries)


def test_the_top_keys_of_a_run_are_those_a_user_types() -> None:
    assert set(registry.top_keys("run")) == {
        "method", "task", "d", "n", "seed", "results_dir", "device", "seeds_per_job", "budget",
        "experiment", "suite", "select", "plan", "describe", "many", "allow_code", "isolate",
        "timeout", "memory_gb",
        *registry.PARTS,
    }  # fmt: skip


def test_the_usual_choice_of_every_group_is_known() -> None:
    usual = registry.usual_choices("run")
    assert usual["latent"] == "vae"
    assert usual["graph"] == "stein"
    assert not any(group.startswith("override") for group in usual)


def test_an_unknown_group_is_empty() -> None:
    assert registry.entries("nothing") == []


@pytest.mark.usefixtures("folder")
def test_an_experiment_is_summed_up_by_its_first_comment() -> None:
    tried = next(entry for entry in registry.entries("experiment") if entry.name == "try")
    assert tried.summary == "Tries things."


@pytest.mark.usefixtures("folder")
def test_a_plugin_folder_adds_its_options() -> None:
    mine = next(entry for entry in registry.entries("method") if entry.name == "mine")
    assert mine == registry.Entry("mine", "Mine", "#123456", "a method of my own")
    assert {"fgm", "mine"} <= set(names("method"))
    assert "readme" not in names("method")


def test_a_plugin_folder_goes_before_what_ships(folder: Path) -> None:
    (folder / "method" / "fgm.yaml").write_text(MINE)
    assert next(e.label for e in registry.entries("method") if e.name == "fgm") == "Mine"
    assert registry.read_choice("method", "fgm")["rate"] == 0.5


@pytest.mark.usefixtures("folder")
def test_an_option_is_read_as_written_whatever_its_package() -> None:
    assert registry.read_choice("method", "mine")["rate"] == 0.5
    assert registry.read_choice("task", "own") == {"_target_": "x.Y", "knob": 1}
    assert registry.read_choice("task", "nothing") == {}


@pytest.mark.usefixtures("folder")
def test_the_parameters_of_a_group_are_those_of_all_its_options() -> None:
    assert {"ridge", "rate"} <= set(registry.parameters("method"))
    assert {"signs", "noise", "knob"} <= set(registry.parameters("task"))
    assert not {"_target_", "card", "defaults"} & set(registry.parameters("task"))


def test_an_installed_package_announces_its_options(package: str) -> None:
    assert registry.announced() == {"my_plugin": package}
    assert next(e.label for e in registry.entries("method") if e.name == "installed") == "Installed"


@pytest.mark.usefixtures("package")
def test_an_announced_option_can_be_composed() -> None:
    hooks.register()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        cfg = compose("run", overrides=["method=installed"])
    assert cfg.method.rate == 0.5


def test_asking_the_registry_imports_neither_tasks_nor_methods(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def loaded() -> list[str]:
        modules = ("ddobench.tasks.", "ddobench.baselines.")
        return [name for name in sys.modules if name.startswith(modules)]

    for name in loaded():
        monkeypatch.delitem(sys.modules, name)
    for group in ("task", "method", "experiment"):
        assert registry.entries(group)
    assert loaded() == []


def test_the_parts_of_a_method_are_those_of_the_pipeline() -> None:
    from ddobench.parts.pipeline import PARTS

    assert tuple(PARTS) == registry.PARTS
    assert registry.line_up("coms") == {
        "latent": "identity", "axes": "identity", "graph": "complete",
        "surrogate": "conservative", "search": "ascent",
    }  # fmt: skip
    assert registry.line_up("naive") == {}


def test_a_file_is_read_with_what_it_takes_from_other_groups() -> None:
    choice = registry.read_choice("surrogate", "conservative")
    assert choice["training"]["rate"] == 3e-4
    assert choice["training"]["batch"] == 128


LACKING = {"needs": "no_such_module.of_it", "install": "mine[all]"}
LACK = "it needs the module no_such_module.of_it, which is not installed; pip install 'mine[all]'"


def test_a_card_says_which_package_is_lacking() -> None:
    assert registry.missing_dependency(LACKING) == LACK
    assert registry.missing_dependency({"needs": "json"}) == ""
    assert registry.missing_dependency({"summary": "words"}) == ""


def test_an_option_whose_package_is_lacking_says_so(folder: Path) -> None:
    (folder / "task" / "own.yaml").write_text(f"_target_: x.Y\ncard: {LACKING}\n")
    assert (
        next(entry.missing_dependency for entry in registry.entries("task") if entry.name == "own")
        == LACK
    )


def test_what_lacks_its_package_is_refused_before_it_is_imported() -> None:
    with pytest.raises(UsageError, match=re.escape(f"task cannot be built here: {LACK}")):
        build_task({"_target_": "x.Y", "card": LACKING})


def test_a_glob_leaves_out_what_lacks_its_package_and_a_name_does_not(folder: Path) -> None:
    (folder / "task" / "own.yaml").write_text(f"_target_: x.Y\ncard: {LACKING}\n")

    def product_of(word: str) -> Product:
        parser = OverridesParser.create(config_loader=GroupOptions())  # type: ignore[arg-type]
        return multiply(parser.parse_overrides([word]))

    everything = product_of("task=glob(*)")
    assert everything.values == [["task=quadratic"]]
    assert everything.left_out == [f"task=own is left out: {LACK}"]
    assert product_of("task=own,quadratic").values == [["task=own", "task=quadratic"]]
    assert product_of("task=own,quadratic").left_out == []
    with pytest.raises(UsageError, match=re.escape(f"task=own is left out: {LACK}")):
        product_of("task=glob(o*)")


class GroupOptions:
    """What Hydra asks its loader for when it meets a glob."""

    def get_group_options(self, *_: object, **__: object) -> list[str]:
        """Return two options of any group."""
        return ["own", "quadratic"]
