"""Promises of the sentences a user reads instead of a traceback."""

from pathlib import Path

import pytest
from hydra import compose, initialize_config_module
from hydra.errors import HydraException, InstantiationException
from omegaconf import OmegaConf

from ddobench import registry
from ddobench.cli import hooks
from ddobench.cli.messages import explain
from ddobench.errors import UsageError
from ddobench.runner.spec import specify

KEYS = ", ".join(registry.top_keys("run"))


def error_of(*overrides: str) -> Exception:
    """Return the error that a command with these overrides raises."""
    hooks.register()
    try:
        with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
            cfg = compose("run", overrides=list(overrides), return_hydra_config=True)
        specify(cfg, cfg.hydra.runtime.choices)
    except Exception as error:
        return error
    raise AssertionError(f"{overrides} was accepted")


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("budget=huge", "there is no budget 'huge'; there are few_designs, full, small, tiny"),
        ("mehtod=fgm", f"there is no key 'mehtod' (did you mean 'method'?); the keys are {KEYS}"),
        ("zzz=1", f"there is no key 'zzz'; the keys are {KEYS}"),
        (
            "method.rigde=1",
            "there is no key 'method.rigde' (did you mean 'method.ridge'?); "
            "--cfg job lists those there are",
        ),
        (
            "method.training.stepz=1",
            "there is no key 'method.training.stepz' (did you mean 'method.training.steps'?); "
            "--cfg job lists those there are",
        ),
        ("d=4,5", "d=4,5 is a sweep; add -m to run it"),
        ("d=range(4,6)", "d=range(4,6) is a sweep; add -m to run it"),
        ("d=[1", "'[1' cannot be read as a value; close its brackets and quotes"),
        ("method=3", "a group such as task or method takes a name; --help lists those there are"),
        ("graph=3", "a group such as task or method takes a name; --help lists those there are"),
        (
            "method=[fgm,naive]",
            "method takes one name, or several with -m, as in method=a,b; --help lists them",
        ),
        ("d=-1", "d must be a whole number of at least 1, got -1"),
    ],
)
def test_a_slip_of_the_pen_gets_one_sentence(override: str, sentence: str) -> None:
    assert explain(error_of(override)) == sentence


def test_an_unknown_option_is_answered_with_those_there_are() -> None:
    sentence = explain(error_of("method=fmg"))
    assert sentence is not None
    head, _, options = sentence.partition("; there are ")
    assert head == "there is no method 'fmg' (did you mean 'fgm'?)"
    assert {"fgm", "full_quadratic", "naive"} <= set(options.split(", "))


def test_a_name_of_ones_own_is_no_slip_of_the_pen() -> None:
    sentence = explain(error_of("method=ours"))
    assert sentence is not None
    assert "did you mean" not in sentence
    assert sentence.endswith("; your own come with --config-dir FOLDER")


def test_an_unknown_function_is_named_in_plain_words() -> None:
    sentence = "'d=rang(5,8)' cannot be read as key=value (Unknown function 'rang')"
    assert explain(error_of("d=rang(5,8)")) == sentence


@pytest.mark.parametrize("override", ["d=~/x", "task.noise=a~b", "d=\udcff"])
def test_what_hydra_cannot_read_is_quoted_without_its_own_words(override: str) -> None:
    sentence = explain(error_of(override))
    assert sentence is not None
    assert "Exception" not in sentence
    assert "cannot be read as" in sentence


def test_an_error_of_a_file_names_it(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="nowhere") as raised:
        (tmp_path / "nowhere").read_text()
    sentence = f"{tmp_path}/nowhere cannot be used: No such file or directory"
    assert explain(raised.value) == sentence


def test_a_class_that_breaks_when_it_is_made_is_named() -> None:
    error = InstantiationException("Error in call to target 'mine.Mine':\nKeyError('x')")
    assert explain(error) == "mine.Mine cannot be built: KeyError('x')"


def test_a_word_without_equals_is_quoted() -> None:
    sentence = explain(error_of("task.signs"))
    assert sentence is not None
    assert sentence.startswith("'task.signs' cannot be read as key=value (missing EQUAL")


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    error = HydraException(f"Additional config directory '{tmp_path}/x' not found")
    assert explain(error) == f"the folder given by --config-dir does not exist, got {tmp_path}/x"


def test_a_usage_error_inside_another_is_what_counts() -> None:
    error = InstantiationException("Error in call to target 'x'")
    error.__cause__ = UsageError("d must be odd")
    assert explain(error) == "d must be odd"


def test_an_unforeseen_complaint_of_hydra_is_cut_to_its_first_line() -> None:
    assert explain(HydraException("\n  something new\nwith details")) == "something new"
    assert explain(HydraException("")) == "HydraException"


def test_a_missing_value_is_said_in_one_line() -> None:
    cfg = OmegaConf.create({"d": "???"})
    with pytest.raises(Exception, match="Missing mandatory value") as raised:
        _ = cfg.d
    assert explain(raised.value) == "Missing mandatory value: d"


@pytest.mark.parametrize("error", [ValueError("x"), RuntimeError("x"), KeyError("x")])
def test_an_error_of_the_program_is_not_explained_away(error: Exception) -> None:
    assert explain(error) is None


def test_a_part_needs_an_effect_on_one_of_several_points_from_python_too() -> None:
    idle, used = (["method=" + name, "surrogate=gp"] for name in ("ddom", "ga"))
    with pytest.raises(UsageError, match="surrogate=gp has no effect on ddom, where there is no"):
        hooks.specify_points([idle])
    assert [spec.method for spec in hooks.specify_points([idle, used])] == ["ddom", "ga"]
