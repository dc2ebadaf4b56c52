"""Promises of specifications and of the digest that names them."""

import copy
from functools import cache
from typing import Any

import pytest
from hydra import compose, initialize_config_module

from ddobench.cli import hooks
from ddobench.errors import UsageError
from ddobench.runner.spec import Specification, digest, specify
from tests.support.fakes import Climb, Sum, target

CONFIG: dict[str, Any] = {
    "task": {"_target_": target(Sum), "card": {"label": "a"}, "d": 3, "n": 10},
    "method": {
        "_target_": target(Climb),
        "device": "cpu",
        "rate": 1,
        "training": {"steps": 5, "device": "cpu", "sizes": [1, 2]},
    },
    "budget": {"designs": 8, "top": 2},
}


def changed(path: str, value: object) -> dict[str, Any]:
    """Return the configuration with one value changed."""
    config = copy.deepcopy(CONFIG)
    *above, last = path.split(".")
    node = config
    for name in above:
        node = node[name]
    node[last] = value
    return config


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("method.device", "cuda"),
        ("method.training.device", "cuda"),
        ("task.card", {"label": "b", "color": "red"}),
        ("method.rate", 1.0),
        ("method.training.sizes", [1.0, 2.0]),
        ("budget.top", 2.0),
    ],
)
def test_what_cannot_change_a_result_does_not_change_its_name(path: str, value: object) -> None:
    assert digest(changed(path, value)) == digest(CONFIG)


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("task.d", 4),
        ("task.n", 11),
        ("task.extra", None),
        ("method.rate", 1.5),
        ("method.rate", True),
        ("method.rate", "1"),
        ("method.training.steps", 6),
        ("method.training.sizes", [2, 1]),
        ("method._target_", target(Sum)),
        ("budget.designs", 9),
        ("budget.top", 1),
    ],
)
def test_every_parameter_of_a_result_changes_its_name(path: str, value: object) -> None:
    assert digest(changed(path, value)) != digest(CONFIG)


@pytest.mark.parametrize("kind", [Sum, Climb])
def test_a_new_version_of_a_class_changes_the_name(
    kind: type, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = digest(CONFIG)
    monkeypatch.setattr(kind, "version", 2)
    assert digest(CONFIG) != before


def test_the_name_does_not_depend_on_the_order_of_keys() -> None:
    turned = {group: dict(reversed(node.items())) for group, node in reversed(CONFIG.items())}
    assert digest(turned) == digest(CONFIG)


def test_a_name_once_given_stays() -> None:
    assert digest(CONFIG) == "22d2ee85a33cbaf6"


@cache
def composed(*overrides: str) -> Specification:
    """Specify what the command line would."""
    hooks.register()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        cfg = compose("run", overrides=list(overrides), return_hydra_config=True)
    return specify(cfg, cfg.hydra.runtime.choices)


@pytest.mark.parametrize(
    "override",
    ["seed=7", "seed='0-9'", "device=cpu", "results_dir=elsewhere", "seeds_per_job=3", "plan=true"],
)
def test_where_and_how_it_runs_is_no_part_of_a_specification(override: str) -> None:
    base = ("method=ga", "task=rbf")
    assert composed(*base, override).digest == composed(*base).digest


@pytest.mark.parametrize(
    "override", ["d=8", "n=50", "method=naive", "task=rbf", "budget=tiny", "task.noise=1"]
)
def test_what_is_asked_for_is_part_of_a_specification(override: str) -> None:
    assert composed(override).digest != composed().digest


def test_a_specification_tells_what_was_chosen() -> None:
    spec = composed("method=fgm", "task=quadratic", "d=10", "n=50", "budget=small")
    assert (spec.task, spec.method, spec.budget, spec.d, spec.n) == (
        "quadratic", "fgm", "small", 10, 50,
    )  # fmt: skip
    assert (spec.task_variant, spec.method_variant) == ("", "")
    assert spec.title == "fgm on quadratic d=10 n=50"
    assert spec.card["label"] == "FGM"
    task, method = spec.build()
    assert (task.d, task.n, type(method).__name__) == (10, 50, "FGM")


def test_a_departure_from_the_defaults_is_spelled() -> None:
    spec = composed("method.ridge=0.5", "task.signs=random", "task.noise=1.5")
    assert spec.method_variant == "ridge=0.5"
    assert spec.task_variant == "signs=random noise=1.5"
    assert spec.title == "fgm on quadratic d=20 n=100 signs=random noise=1.5 ridge=0.5"


@pytest.mark.parametrize(
    ("overrides", "variant"),
    [
        (("latent=scores", "graph='true'"), "latent=scores graph=true"),
        (("graph=permuted", "axes=random"), "axes=random graph=permuted"),
        (("graph.alpha=0.01",), "graph.alpha=0.01"),
        (("latent.training.steps=7", "latent.beta=2"), "latent.training.steps=7 latent.beta=2"),
        (("graph=stein", "search.prior=0.1"), "search.prior=0.1"),
        (("surrogate.training.steps=7", "budget=tiny"), "surrogate.training.steps=7"),
        (("budget=tiny", "device=cpu"), ""),
    ],
)
def test_stages_and_what_lies_deeper_are_spelled(overrides: tuple[str, ...], variant: str) -> None:
    assert composed("method=fgm", "task=rbf", *overrides).method_variant == variant


def test_the_stages_of_a_method_are_told() -> None:
    spec = composed("method=fgm", "latent=pca")
    assert spec.parts == {
        "latent": "pca", "axes": "identity", "graph": "stein", "surrogate": "cliques",
        "search": "ascent_codes",
    }  # fmt: skip
    assert composed("method=ga", "latent=pca").parts["latent"] == "pca"
    assert composed("method=naive", "latent=pca").parts == {}


def test_writing_out_a_default_is_no_departure() -> None:
    spec = composed("method.ridge=0", "task.signs=ones")
    assert (spec.task_variant, spec.method_variant) == ("", "")
    assert spec.digest == composed().digest


@pytest.mark.parametrize(
    ("override", "sentence"),
    [
        ("d=-3", "^d must be a whole number of at least 1, got -3$"),
        ("d=2.5", "^d must be a whole number of at least 1, got 2.5$"),
        ("n=1", "^n must be a whole number of at least 2, got 1$"),
        ("n=many", "^n must be a whole number of at least 2, got 'many'$"),
        ("seeds_per_job=0", "^seeds_per_job must be a whole number of at least 1, got 0$"),
        ("device=tpu", "^device must be one of auto, cpu, cuda, got 'tpu'$"),
        ("budget.top=0", "^budget.top must be a whole number of at least 1, got 0$"),
        ("budget.designs=null", "^budget.designs must be a whole number of at least 1, got None$"),
        ("method.ridge=${nowhere}", "^method cannot be resolved: Interpolation key 'nowhere'"),
    ],
)
def test_an_impossible_request_is_refused_in_one_sentence(override: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        composed("d=8", "n=20", override)


def test_an_impossible_task_is_refused_when_built() -> None:
    with pytest.raises(UsageError, match=r"^d must be a whole number of at least 4, got 3; "):
        composed("d=3").build()
