"""Promises of the report on stores that are young, broken, of several versions or still growing."""

import logging
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from ddobench.report import write_report
from ddobench.report.data.report_data import ReportData
from ddobench.report.output import rendering
from ddobench.store import runs as store_module
from ddobench.store.records import Record
from tests.support.pages import open_page
from tests.support.processes import PATIENCE
from tests.support.synthetic_stores import store_records

pytestmark = pytest.mark.slow  # whole reports

CURVES = ("value_model", "value_oracle", "survivors", "invalid", "predicted", "median", "best")
YOUNGER = ("label", "color", "regret_unit", "graph", "latent", "axes", "command", "revision",
           "finished", "privileges", "predicted_final", "seconds_evaluate")  # fmt: skip


def record_of(method: str, seed: int, d: int = 10) -> Record:
    """Return a run of today that climbs for three iterations."""
    rng = np.random.default_rng([seed, d, len(method)])
    curves = {"iteration": np.arange(4.0)} | {name: rng.normal(size=4) for name in CURVES}
    curves["invalid"] = rng.uniform(0, 0.5, 4)
    row: dict[str, Any] = {
        "task": "chain", "task_variant": "", "method": method, "method_variant": "",
        "latent": "vae", "axes": "identity", "graph": "discovered", "d": d, "n": 100,
        "budget": "full", "digest": f"{method}{d}", "label": method.upper(), "color": "#0072B2",
        "command": f"python -m ddobench method={method}", "revision": "a" * 40,
        "finished": "2026-01-01T00:00:00+00:00", "privileges": "", "best_visible": 2.0,
        "optimum": 5.0, "status": "ok", "reason": "", "final_model": curves["value_model"][-1],
        "final_oracle": 1.0, "best_oracle": 1.5, "regret_final": 5 - curves["value_model"][-1],
        "regret_unit": "sd", "invalid_final": curves["invalid"][-1], "predicted_final": 2.0,
        "iterations": 3, "designs": 4, "seconds_fit": 1.0, "seconds_propose": 1.0,
        "seconds_evaluate": 0.1, "seed": seed,
    }  # fmt: skip
    diagnostics = {"edges": [[0, 1]], "predicted": [0.0] * 4}
    return Record(row=row, config={"method": {"width": 1}}, curves=curves, diagnostics=diagnostics)


@pytest.fixture(autouse=True)
def one_format(monkeypatch: pytest.MonkeyPatch) -> None:
    """Render one format only, which is quick."""
    monkeypatch.setattr(rendering, "FORMATS", ("svg",))
    monkeypatch.setattr(rendering, "_spare_cores", lambda: 0)


def older(record: Record) -> Record:
    """Return a run as an older version stored it."""
    row = {name: value for name, value in record.row.items() if name not in YOUNGER}
    kept = ("iteration", "value_model", "value_oracle", "survivors", "invalid")
    return Record(row=row, curves={name: record.curves[name] for name in kept})


def test_one_run_has_a_report(tmp_path: Path) -> None:
    runs = store_records(tmp_path / "runs", [record_of("fgm", 0)])
    written = write_report(runs, tmp_path / "report")
    assert "1 run" in written.message
    assert "FGM" in written.page.read_text(encoding="utf-8")


def test_runs_of_an_older_version_alone_have_a_report(tmp_path: Path) -> None:
    runs = [older(record_of(method, seed)) for method in ("fgm", "ga") for seed in range(3)]
    written = write_report(store_records(tmp_path / "runs", runs), tmp_path / "report")
    assert "6 runs" in written.message
    assert (tmp_path / "report" / "figures" / "value-chain-n100.svg").exists()


def test_runs_of_two_versions_have_one_report(tmp_path: Path) -> None:
    runs = [older(record_of("fgm", seed)) for seed in range(3)]
    runs += [record_of("fgm", seed) for seed in range(3, 6)]
    runs += [record_of("ga", seed) for seed in range(6)]
    folder = store_records(tmp_path / "runs", runs)
    written = write_report(folder, tmp_path / "report")
    assert "12 runs" in written.message
    scores = ReportData.read(folder).scores
    assert scores["seeds"].tolist() == [6, 6]


def test_nothing_but_failed_runs_has_a_report(tmp_path: Path) -> None:
    scores = ("final", "best", "regret", "invalid", "predicted", "optimum", "seconds")
    lost = []
    for seed in range(3):
        row = record_of("fgm", seed).row | {"status": "failed", "reason": "ValueError: no"}
        lost.append(Record({k: v for k, v in row.items() if not k.startswith(scores)}))
    written = write_report(store_records(tmp_path / "runs", lost), tmp_path / "report")
    assert "3 runs" in written.message
    assert "ValueError: no" in open_page(written.page).text


def test_a_run_that_vanishes_after_it_was_read_stays_in_the_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    folder = store_records(tmp_path / "runs", (record_of("fgm", seed) for seed in range(3)))
    survey = store_module.survey

    def read_then_lose(root: Path) -> store_module.Survey:
        found = survey(root)
        for path in folder.rglob("*.parquet"):
            path.unlink()
        return found

    monkeypatch.setattr(store_module, "survey", read_then_lose)
    with caplog.at_level(logging.WARNING):
        written = write_report(folder, tmp_path / "report")
    assert "3 runs" in written.message
    assert caplog.text == ""


def test_the_command_line_names_a_torn_file_once(tmp_path: Path) -> None:
    folder = store_records(tmp_path / "runs", (record_of("fgm", seed) for seed in range(3)))
    torn = sorted(folder.rglob("*.parquet"))[1]
    torn.write_bytes(torn.read_bytes()[:-20])
    words = [f"results_dir={folder}", f"report_dir={tmp_path / 'report'}"]
    done = subprocess.run(
        [sys.executable, "-m", "ddobench.report", *words], cwd=tmp_path, check=True,
        capture_output=True, text=True, timeout=PATIENCE,
    )  # fmt: skip
    assert done.stderr.count(torn.name) == 1
    assert done.stderr.count("\n") == 1
    assert "2 runs" in done.stdout
