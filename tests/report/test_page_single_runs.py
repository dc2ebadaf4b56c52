"""Promises of the data behind the single runs of the page."""

import base64
import gzip
import json
import logging
import re
import shlex
import time
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hydra import compose, initialize_config_module

from ddobench.cli import hooks
from ddobench.report.data import ReportData
from ddobench.report.single_runs import (
    address_of,
    collect_graphs,
    encode_edges,
    gather_single_runs,
    pack,
    round_numbers,
    run_command,
)
from ddobench.runner.spec import Specification, specify
from ddobench.store.records import Record
from ddobench.store.runs import Store
from tests.support.synthetic_runs import data_of, failed_row, run_row, sweep
from tests.support.synthetic_stores import PROVENANCE


def unpack(text: str) -> dict[str, Any]:
    """Read packed data as the page does."""
    found: dict[str, Any] = json.loads(gzip.decompress(base64.b64decode(text)))
    return found


def store_graph(folder: Path, seed: int, edges: Any, digest: str = "g") -> Path:
    """Store a run that found a graph."""
    store = Store(folder)
    row = run_row("fgm", 4, seed, graph="stein", latent="vae", digest=digest)
    stated = {"edges": edges} if edges is not None else {}
    record = Record(row, {"rate": 1}, PROVENANCE, {"iteration": np.zeros(1)}, diagnostics=stated)
    return store.write(store.place("quadratic", "fgm", 4, 100, digest), record)


def test_numbers_are_rounded_to_four_digits() -> None:
    numbers = pd.Series([5.38294, -0.000123456, 1234567.0, 0.0, np.nan, np.inf, 9.99996])
    assert round_numbers(numbers) == [5.383, -0.0001235, 1235000.0, 0.0, None, None, 10.0]
    many = pd.Series(10.0 ** np.random.default_rng(0).uniform(-6, 6, 500))
    rounded = round_numbers(many)
    assert all(float(f"{x:.4g}") == x for x in rounded if x is not None)  # no further digits
    assert np.allclose(np.array(rounded, float), many, rtol=5.1e-4)


def test_packed_runs_do_not_depend_on_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    stored = data_of(sweep(seeds=2))
    first = gather_single_runs(stored).packed
    monkeypatch.setattr(time, "time", lambda: 1e9)  # which gzip would write down
    assert gather_single_runs(stored).packed == first


def test_packed_data_cannot_close_its_element() -> None:
    assert re.fullmatch(r"[\w+/=]+", pack({"text": "</script><!--"}))
    assert address_of({"digest": 'a/b"<&', "seed": 3}) == "run=a%2Fb%22%3C%26/3"


def test_every_run_has_its_own_curve(tmp_path: Path) -> None:
    store = Store(tmp_path)
    for seed, length in ((0, 3), (1, 1), (2, 5)):
        row = run_row("fgm", 4, seed)
        curves = {"iteration": np.arange(length), "value_model": np.full(length, 10.0 * seed)}
        record = Record(row, {}, PROVENANCE, curves)
        store.write(store.place("quadratic", "fgm", 4, 100, row["digest"]), record)
    broken = failed_row(d=4, seed=3)
    store.write_failure(store.place("quadratic", "fgm", 4, 100, "fgm-4"), broken, "Traceback")
    data = unpack(gather_single_runs(ReportData.read(tmp_path)).packed)
    assert data["runs"]["seed"] == [0, 1, 2, 3]
    assert [group["digest"] for group in data["groups"]] == ["fgm-4"]  # what they share, once
    assert data["curves"]["length"] == [3, 1, 5, 0]
    assert data["curves"]["value_model"] == [0, 0, 0, 10, 20, 20, 20, 20, 20]
    status = data["runs"]["status"]
    assert [status["texts"][i] for i in status["of"]] == ["ok", "ok", "ok", "failed"]


def test_of_too_many_runs_the_first_seeds_are_kept_and_the_rest_is_listed() -> None:
    stored = data_of(sweep(seeds=10, dimensions=[10, 20]))
    whole = gather_single_runs(stored)
    assert (whole.shown, whole.left_out) == (40, [])
    found = gather_single_runs(stored, most=14)
    data = unpack(found.packed)
    assert found.shown == 14
    assert set(data["runs"]["group"]) == {0, 1, 2, 3}
    assert max(data["runs"]["seed"]) == 3
    assert len(found.left_out) == 4
    assert found.left_out[0].startswith("quadratic, n = 100, d = 10, FGM†: seeds 4")
    some = gather_single_runs(stored, room=len(whole.packed) - 1)
    assert len(some.packed) < len(whole.packed)
    assert 0 < some.shown < whole.shown
    assert some.left_out


@pytest.mark.slow
@pytest.mark.parametrize(
    "words",
    [
        "task=quadratic method=fgm d=4 n=100 task.noise=1.0 method.ridge=1.0",
        "task=chain method=fgm d=11 n=200 latent=scores graph=complete search.prior=0.1",
        "task=rbf method=fgm d=5 n=200 latent=identity graph='true'",
        "task=rbf method=ga d=5 n=200 budget=tiny budget.designs=128 search.steps=7",
    ],
)
def test_the_command_of_a_run_composes_the_same_configuration(words: str) -> None:
    spec = _compose(words.split())
    variant = f"{spec.method_variant} digest=01234567".strip()
    own = {"task": spec.task, "task_variant": spec.task_variant, "method": spec.method,
           "d": spec.d, "n": spec.n, "budget": spec.budget}  # fmt: skip
    row = pd.Series(own | {"method_variant": variant} | spec.parts)
    *start, last = shlex.split(run_command(row, spec.config["budget"]))
    assert start[:3] == ["python", "-m", "ddobench"]
    assert last == "results_dir=results/again"
    assert _compose(start[3:]).digest == spec.digest


def _compose(words: list[str]) -> Specification:
    hooks.register()
    with initialize_config_module("ddobench.conf", version_base="1.3"):
        cfg = compose("run", overrides=words, return_hydra_config=True)
    return specify(cfg, cfg.hydra.runtime.choices)


def test_equal_graphs_are_stored_once_and_edges_can_be_decoded(tmp_path: Path) -> None:
    for seed, edges in enumerate([[[0, 1], [3, 2]], [[2, 3], [1, 0]], [[0, 3]]]):
        store_graph(tmp_path, seed, edges)
    stored = ReportData.read(tmp_path)
    graphs, graph_of = collect_graphs(stored, stored.runs)
    assert graph_of == [0, 0, 1]
    codes = np.cumsum(graphs[0]["edges"])
    assert [(code // 4, code % 4) for code in codes] == [(0, 1), (2, 3)]
    assert encode_edges([], 4) == []


def test_a_missing_or_invalid_file_loses_only_its_own_graph(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, "ddobench")
    stated: list[Any] = [[[0, 1]], [[0, 1]], "nonsense", [[0, 1]]]
    gone, torn, *_ = [store_graph(tmp_path, seed, edges) for seed, edges in enumerate(stated)]
    stored = ReportData.read(tmp_path)
    gone.unlink()
    torn.write_bytes(torn.read_bytes()[:50])
    graphs, graph_of = collect_graphs(stored, stored.runs)
    assert graph_of == [None, None, None, 0]
    assert graphs[0]["count"] == 1
    assert all(name in caplog.text for name in ("seed-00001", "seed-00002"))


def test_one_run_shows_that_a_configuration_has_no_graph(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []

    def read(_: ReportData, path: str) -> dict[str, Any]:
        opened.append(path)
        return {"loss": 1.0}

    monkeypatch.setattr(ReportData, "diagnostics", read)
    rows = [run_row("fgm", 50, seed, path=f"{seed}", graph="stein") for seed in range(5)]
    stored = data_of([*(row | {"path": "nowhere"} for row in sweep(seeds=2)), *rows])
    collect_graphs(stored, stored.runs)
    assert opened == ["0"]
