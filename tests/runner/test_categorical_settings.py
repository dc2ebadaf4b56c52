"""A method's own settings where designs are categories; what is typed overrides them."""

from typing import Any

import pytest

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.errors import UsageError
from ddobench.runner.spec import Specification
from tests.support.catalogue import METHODS, TASKS, problem, specification

SECTIONS = [
    name for name in METHODS if registry.CATEGORICAL in registry.read_choice("method", name)
]
# Published runs on TFBind8 from before these settings, and the words that name them now.
FIRST_SETTINGS = {
    "coms": (
        "training=adam search=ascent surrogate.negative_rate=0.05 surrogate.limit=0.5",
        "b7a738b06155bfdb",
    ),
    "ram": ("surrogate=ranking", "8ebbd11328221831"),
    "cma": ("training=adam surrogate.depth=2", "58ca66cd0032a4a2"),
    "reinforce": (
        "training=adam surrogate.depth=2 search=reinforce search.baseline=false",
        "c1eaf555389cfbb0",
    ),
    "ensemble_mean": ("training=adam", "8428a3ef63262c62"),
    "ensemble_min": ("training=adam", "b88a06c5e6d9be00"),
    "ensemble_lcb": ("training=adam", "f74450ec2fc3b9d2"),
}


def spec_of(words: str) -> Specification:
    (found,) = specify_points([words.split()])
    return found


def setting(spec: Specification, name: str) -> Any:
    node: Any = spec.config["method"]
    for key in name.split("."):
        node = node[key]
    return node


@pytest.mark.parametrize("task", TASKS)
def test_the_card_of_a_task_says_whether_its_designs_are_categories(task: str) -> None:
    declared = specification(task, "naive").config["task"]["card"].get("designs", "real")
    categorical = problem(task, (0, 1)).data.space.categorical
    assert declared == ("categorical" if categorical else "real")


@pytest.mark.parametrize("method", SECTIONS)
def test_the_settings_hold_on_categories_alone_and_are_no_variant(method: str) -> None:
    section = registry.read_choice("method", method)[registry.CATEGORICAL]
    real, categorical = (specification(task, method) for task in ("chain", "nk"))
    assert real.method_variant == categorical.method_variant == ""
    assert registry.CATEGORICAL not in real.config["method"]
    changed = [
        name
        for name in section
        if (real.parts[name] != categorical.parts[name] if name in real.parts
            else setting(real, name) != setting(categorical, name))
    ]  # fmt: skip
    assert changed
    categorical.build()


@pytest.mark.parametrize(
    ("typed", "found", "variant"),
    [
        ("search=top_adam", {"search.rate": 0.001}, "search=top_adam"),
        ("search.rate=0.3", {"search.rate": 0.3, "search.steps": 100}, "search.rate=0.3"),
        ("surrogate=mlp", {"search.rate": 0.1}, "surrogate=mlp"),
    ],
)
def test_what_is_typed_overrides_a_part(typed: str, found: dict[str, Any], variant: str) -> None:
    spec = spec_of(f"task=tfbind8 method=ram {typed}")
    assert {name: setting(spec, name) for name in found} == found
    assert spec.method_variant == variant


def test_what_is_typed_overrides_a_setting_and_the_others_stay() -> None:
    spec = spec_of("task=tfbind8 method=coms surrogate.limit=0.7")
    assert setting(spec, "surrogate.limit") == 0.7
    assert setting(spec, "surrogate.negative_rate") == 1.056
    assert spec.method_variant == "surrogate.limit=0.7"
    other = spec_of("task=tfbind8 method=cbas method.vae.dim=7")
    assert (setting(other, "vae.dim"), other.method_variant) == (7, "vae.dim=7")


def test_a_typed_training_replaces_that_of_the_section() -> None:
    spec = spec_of("task=tfbind8 method=ensemble_mean training=paper")
    assert setting(spec, "surrogate.training.steps") == 50 * 32768 // 128
    assert spec.method_variant == "training=paper"


@pytest.mark.parametrize(
    ("typed", "complaint"),
    [
        (
            "+method.categorical=3",
            r"method\.categorical must name settings and their values, got 3",
        ),
        ("+method.categorical={speed:1}", "names 'speed', which this method does not have"),
    ],
)
def test_a_section_that_cannot_be_read_is_refused(typed: str, complaint: str) -> None:
    with pytest.raises(UsageError, match=complaint):
        spec_of(f"task=nk method=ga {typed}")


def test_a_table_of_categories_has_them_too(tmp_path: Any) -> None:
    rows = [f"{'ab'[i % 2]},{'xyz'[i % 3]},{i}" for i in range(60)]
    file = tmp_path / "table.csv"
    file.write_text("\n".join(["one,two,y", *rows]))
    assert spec_of(f"task=table file={file} method=ram").parts["search"] == "top_adam_categories"
    numbers = tmp_path / "numbers.csv"
    rows = [f"{i * 0.5},{'ab'[i % 2]},{i}" for i in range(60)]
    numbers.write_text("\n".join(["one,two,y", *rows]))
    assert spec_of(f"task=table file={numbers} method=ram").parts["search"] == "top_adam"


@pytest.mark.parametrize("method", FIRST_SETTINGS)
def test_published_runs_with_our_first_settings_can_still_be_named(method: str) -> None:
    words, digest = FIRST_SETTINGS[method]
    assert spec_of(f"task=tfbind8 method={method} {words}").digest == digest
