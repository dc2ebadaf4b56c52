"""The pipeline: its parts, combinations of them, and its diagnostics."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from hydra import compose, initialize_config_module

from ddobench import registry
from ddobench.baselines.fgm import FGM
from ddobench.cli import hooks
from ddobench.contracts import Dataset, Method, Privileged, Space
from ddobench.errors import UsageError
from ddobench.graphs import Graph
from ddobench.parts.pipeline import Pipeline
from ddobench.runner.batches import execute
from ddobench.runner.run import run_seeds
from ddobench.runner.spec import Specification, digest, specify
from ddobench.store.records import Record
from ddobench.store.runs import Store, read_record

SMALL = ("task=chain", "d=7", "n=60", "budget=tiny", "device=cpu")
NARROW = "surrogate.width=16"
OPTIONS = {
    group: [entry.name for entry in registry.entries(group) if entry.name != "pairs"]
    for group in ("latent", "axes", "graph")
}  # graph=pairs tests categories, and declines codes
AXES, GRAPHS = OPTIONS["axes"], OPTIONS["graph"]
COMBINATIONS = [  # every option, and the true graph in its own coordinates
    (latent, AXES[(i - 1) % len(AXES)], GRAPHS[-1 - i % len(GRAPHS)])
    for i, latent in enumerate(OPTIONS["latent"])
]


@cache
def specification(*overrides: str) -> Specification:
    hooks.register()
    with initialize_config_module(config_module="ddobench.conf", version_base="1.3"):
        learned = not {"method=naive", "surrogate=linear"} & {*overrides}
        words = [*SMALL, *([NARROW] if learned else []), *overrides]
        cfg = compose("run", overrides=words, return_hydra_config=True)
    return specify(cfg, cfg.hydra.runtime.choices)


def run(*overrides: str, seeds: tuple[int, ...] = (0, 1)) -> list[Record]:
    spec = specification(*overrides)
    return run_seeds(spec, *spec.build(), seeds, base={})


def assert_same(one: Record, other: Record) -> None:
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.designs, other.designs)
    np.testing.assert_array_equal(one.predictions, other.predictions)


def test_every_stage_of_the_paper_and_every_control_is_there() -> None:
    assert set(OPTIONS["latent"]) >= {"vae", "scores", "pca", "identity", "oracle"}
    assert set(OPTIONS["axes"]) >= {"identity", "random"}
    assert set(OPTIONS["graph"]) >= {
        "stein", "bonferroni", "fdr", "true", "empty", "complete", "permuted", "online",
    }  # fmt: skip


def test_every_option_is_combined_with_others() -> None:
    for place, options in enumerate(OPTIONS.values()):
        assert {chosen[place] for chosen in COMBINATIONS} == {*options}


@pytest.mark.slow
@pytest.mark.parametrize(("latent", "axes", "graph"), COMBINATIONS)
def test_parts_run_together_and_are_recorded(latent: str, axes: str, graph: str) -> None:
    overrides = (f"latent={latent}", f"axes={axes}", f"graph='{graph}'", "latent.width=8")
    chosen = overrides if latent.startswith("vae") else overrides[:3]
    spec = specification("method=fgm", *chosen)
    for record in run("method=fgm", *chosen, seeds=(0, 3)):
        assert record.row["status"] == "ok", record.row["reason"]
        assert record.designs is not None
        assert np.isfinite(record.designs).all()
        asked = {"graph"} if graph == "true" else set()
        asked |= {"hidden"} if latent == "oracle" else set()
        assert set(filter(None, record.row["privileges"].split(","))) == asked
        assert {"edges", "cliques", "clique_sizes", "dropped_edges"} <= record.diagnostics.keys()
        assert 0 <= record.diagnostics["round_trip_valid"] <= 1
        judged = latent == "oracle" and axes == "identity"
        assert ("graph_recovery" in record.diagnostics) == judged
    chosen_parts = {"latent": latent, "axes": axes, "graph": graph}
    assert spec.parts == {**chosen_parts, "surrogate": "cliques", "search": "ascent_codes"}
    words = spec.method_variant.split()
    for name, choice, usual in zip(
        chosen_parts, (latent, axes, graph), ("vae", "identity", "stein"), strict=True
    ):
        assert (f"{name}={choice}" in words) == (choice != usual)


@pytest.mark.bits
@pytest.mark.parametrize(
    "stages",
    [
        ("latent=scores", "graph=permuted"),
        ("latent=pca", "axes=random", "graph=online"),
        ("latent=oracle", "graph='true'", "surrogate.ensemble=2"),
    ],
    ids=" ".join,
)
def test_a_seed_does_not_depend_on_other_seeds_with_other_parts(
    stages: tuple[str, ...],
) -> None:
    alone = run("method=fgm", *stages, seeds=(3,))[0]
    assert_same(run("method=fgm", *stages, seeds=(7, 5, 3))[2], alone)
    assert_same(run("method=fgm", *stages, seeds=(3, 8))[0], alone)


@pytest.mark.slow
def test_fgm_with_a_complete_graph_is_vae_ga_up_to_rounding() -> None:
    for one, other in zip(run("method=fgm", "graph=complete"), run("method=vae_ga"), strict=True):
        assert np.allclose(one.designs, other.designs, rtol=1e-3, atol=1e-3)  # type: ignore[arg-type]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("method=ga", "latent=vae", "search=ascent_codes"), ("method=vae_ga",)),
        (("method=vae_ga", "latent=identity", "search=ascent"), ("method=ga",)),
        (("method=ga", "search=rwr"), ("method=rwr",)),
        (("method=rwr", "surrogate=conservative", "search=ascent"), ("method=coms",)),
    ],
    ids=["ga on a vae", "vae_ga on designs", "ga with rwr", "coms put together"],
)
def test_a_method_is_its_line_up(one: tuple[str, ...], other: tuple[str, ...]) -> None:
    ours, theirs = (
        digest({"method": specification(*words).config["method"]}) for words in (one, other)
    )
    assert ours == theirs
    for first, second in zip(run(*one), run(*other), strict=True):
        assert_same(first, second)


@pytest.mark.slow
@pytest.mark.parametrize(
    "overrides",
    [
        ("method=coms", "latent=scores", "search.prior=0.1"),
        ("method=fgm", "surrogate=mlp"),
        ("method=rwr", "latent=vae"),
        ("method=ga", "surrogate=linear", "latent=scores", "axes=random"),
        ("method=fgm", "surrogate=conservative", "search=rwr"),
    ],
    ids=" ".join,
)
def test_parts_of_different_methods_work_together(overrides: tuple[str, ...]) -> None:
    for record in run(*overrides):
        assert record.row["status"] == "ok", record.row["reason"]
        assert np.isfinite(record.row["final_model"])


def test_a_true_graph_without_effect_is_declined() -> None:
    records = run("method=ga", "graph='true'")
    assert {record.row["status"] for record in records} == {"declined"}
    assert records[0].row["reason"].startswith("graph=true has no effect")


@pytest.mark.parametrize("part", ["latent=scores", "axes=random", "search.prior=0.1"])
def test_parts_do_not_change_a_method_without_parts(part: str) -> None:
    assert specification("method=naive", part) == specification("method=naive")


def test_what_is_typed_wins_over_the_experiment_and_that_over_the_method() -> None:
    assert specification("method=ga").parts["latent"] == "identity"
    assert specification("method=ga", "latent=pca").parts["latent"] == "pca"
    with_experiment = specification("experiment=known_graph", "method=ga")
    assert with_experiment.config["method"]["search"]["steps"] == 20
    typed = specification("experiment=known_graph", "method=ga", "search.steps=3")
    assert typed.config["method"]["search"]["steps"] == 3


@pytest.mark.bits
def test_a_cached_latent_gives_the_same_result(tmp_path: Path) -> None:
    def stored(folder: str, method: str, seeds: tuple[int, ...]) -> dict[int, Record]:
        spec = specification(f"method={method}")
        store = Store(tmp_path / folder)
        assert execute(spec, seeds, store).failed == 0
        return {seed: read_record(spec.place(store).file(seed)) for seed in seeds}

    fresh = stored("without", "fgm", (0, 1, 2))
    stored("with", "vae_ga", (1,))
    (kept,) = (tmp_path / "with" / ".cache").iterdir()
    assert [path.name for path in kept.iterdir()] == ["seed-00001.npz"]
    written = (kept / "seed-00001.npz").stat().st_mtime_ns
    shared = stored("with", "fgm", (0, 1, 2))
    assert (kept / "seed-00001.npz").stat().st_mtime_ns == written
    for seed, record in fresh.items():
        assert_same(record, shared[seed])


@pytest.mark.slow
def test_the_known_graph_is_better_than_a_plain_network() -> None:
    seeds = (0, 1)
    wanted = (
        "task=rbf", "d=21", "n=1500", "latent=identity", "budget.training=0.3", "budget.ascent=1",
        "budget.designs=32", "budget.top=32", "surrogate.width=64", "surrogate.training.rate=3e-3",
        "search=ascent",
    )  # fmt: skip
    known = run("method=fgm", "graph='true'", *wanted, seeds=seeds)
    plain = run("method=vae_ga", *wanted, seeds=seeds)
    for one, other in zip(known, plain, strict=True):
        assert one.row["final_model"] > other.row["final_model"] + 1
        assert one.diagnostics["graph_recovery"]["structural_distance"] == 0
        assert other.diagnostics["overestimation"][-1] > one.diagnostics["overestimation"][-1]


@pytest.mark.slow
def test_the_record_describes_graph_latent_and_predictions() -> None:
    record = run("method=fgm", "latent.width=16")[0]
    diagnostics = record.diagnostics
    assert np.shape(diagnostics["pseudo_hessian"]) == (7, 7)
    assert sum(diagnostics["clique_sizes"].values()) == diagnostics["cliques"]
    assert diagnostics["latent_dimensions"] == 7
    assert 0 <= diagnostics["active_dimensions"] <= 7
    assert diagnostics["reconstruction_error"] > 0
    assert -1 <= diagnostics["round_trip_correlation"] <= 1
    assert 0 < diagnostics["alignment_by_chance"] < 1
    excess = record.curves["predicted"] - record.curves["value_model"]
    np.testing.assert_allclose(diagnostics["overestimation"], excess)
    assert {"held_out_r2", "training_loss", "predicted"} <= diagnostics.keys()


def test_predictions_are_those_of_the_codes() -> None:
    spec = specification("method=fgm", "latent=pca")
    task, method = spec.build()
    problem = task.problem((0, 1))
    from ddobench.rng import Streams

    method.fit(problem.data, Streams((0, 1), "method"))
    first = next(iter(method.propose(problem.data.x[:, :8], Streams((0, 1), "method/propose"))))
    assert first.predicted is not None
    predicted = method.predict(problem.data.x[:, :8])
    assert predicted is not None
    torch.testing.assert_close(predicted, first.predicted.cpu(), rtol=1e-5, atol=1e-8)
    torch.testing.assert_close(first.designs, problem.data.x[:, :8])


def built(*overrides: str) -> Method:
    return specification(*overrides).build()[1]


@pytest.mark.slow
def test_it_asks_for_what_its_parts_need_and_declines_tasks_without_it() -> None:
    x, y = torch.zeros(2, 4, 3, dtype=torch.float64), torch.zeros(2, 4, dtype=torch.float64)
    data = Dataset(x, y, Space(3))
    plain, known, hidden = built(), built("graph='true'"), built("latent=oracle")
    assert (plain.privileges(data.space), plain.declines(data)) == (frozenset(), None)
    assert known.privileges(data.space) == {"graph"}
    assert known.declines(data) == "graph=true needs a known graph, and this task has none"
    assert hidden.privileges(data.space) == {"hidden"}
    assert hidden.declines(data) == "latent=oracle needs hidden coordinates, and this task has none"
    graphs = (Graph.from_edges(2, [(0, 1)]),) * 2
    small = Dataset(x, y, Space(3), Privileged(graphs=graphs))
    for latent, codes in (("identity", 3), ("pca latent.dim=1", 1), ("vae latent.dim=4", 4)):
        other = built("graph='true'", *f"latent={latent}".split())
        assert other.declines(small) == f"graph=true has 2 nodes, but a design has {codes} codes"
    assert built("graph='true'", "latent=scores", "latent.dim=2").declines(small) is None
    bits = Dataset(x, y, Space(3, (2, 2, 2)))
    assert plain.privileges(bits.space) == {"graph"}
    assert plain.declines(bits) is None
    found = built("graph=pairs")
    assert (found.privileges(bits.space), found.declines(bits)) == (frozenset(), None)
    assert str(found.declines(data)).startswith("graph=pairs tests categories, for the tables")
    assert built("method=vae_ga").declines(bits) is None


def test_a_part_given_as_text_is_refused_with_the_right_override() -> None:
    with pytest.raises(UsageError, match=r"^method.graph must be a part, got 'empty'; write gra"):
        built("method.graph=empty")


@pytest.mark.slow
def test_the_online_graph_ends_as_the_last_one_it_found() -> None:
    spec = specification(
        "method=fgm", "task=rbf", "latent=identity", "graph=online", "graph.alpha=0.5", "n=500",
        "graph.momentum=0.5", "surrogate.training.steps=40",
    )  # fmt: skip
    record = run_seeds(spec, *spec.build(), (0, 1), base={})[0]
    assert record.diagnostics["pseudo_hessian"] is not None
    edges = [(i, j) for i, j in record.diagnostics["edges"]]
    assert len(edges) > 0
    assert len(Graph.from_edges(7, edges).cliques) == record.diagnostics["cliques"]


@pytest.mark.slow
def test_a_latent_that_diverged_fails_its_seeds_with_its_own_reason() -> None:
    for record in run("method=fgm", "latent.training.rate=1e9", "latent.width=8"):
        assert record.row["status"] == "failed"
        assert record.row["reason"].startswith("vae: ")


def test_the_method_is_algorithm_1_line_by_line() -> None:
    source = Path(__file__).parents[2].joinpath("baselines", "fgm.py").read_text()
    positions = [source.index(f"    Line {line}: ") for line in range(1, 7)]
    assert positions == sorted(positions)
    assert issubclass(FGM, Pipeline)
