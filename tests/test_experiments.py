"""The published sweeps of FGM and its rivals, planned but not run: they hold what they promise."""

import sys
from pathlib import Path

import pytest

from ddobench import cli

CONTROLS = (
    "", "graph=permuted", "graph=empty", "graph=complete", "axes=random", "latent=scores",
    "ascent.prior=0.03", "ascent.prior=0.1",
)  # fmt: skip


@pytest.fixture
def plan(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "Plan":
    """Return a function that plans an experiment."""
    return Plan(tmp_path, monkeypatch, capsys)


class Plan:
    """Plans experiments and returns what they would run."""

    def __init__(
        self, folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        self.folder, self.monkeypatch, self.capsys = folder, monkeypatch, capsys

    def __call__(self, experiment: str, *overrides: str) -> list[str]:
        """Return one line for each point of the sweep."""
        words = ["-m", f"experiment={experiment}", "plan=true", f"results_dir={self.folder}"]
        words += overrides
        self.monkeypatch.setattr(sys, "argv", ["ddobench", *words])
        for name in ("HYDRA_FULL_ERROR", "DDOBENCH_COMMAND"):
            self.monkeypatch.setenv(name, "")
        cli.main()
        return self.capsys.readouterr().out.splitlines()[:-1]


def test_known_graph_sets_true_cliques_against_an_ordinary_network(plan: Plan) -> None:
    assert plan("known_graph") == [
        f"{method} on rbf d={d} n=5000 {variant}ascent.steps=200: 10 of 10 seeds to run"
        for method, variant in (("ga", ""), ("fgm", "latent=identity graph=true "))
        for d in (21, 41)
    ]


def test_controls_change_one_thing_at_a_time(plan: Plan) -> None:
    lines = plan("controls", "n=2000")
    assert len(lines) == len(set(lines)) == 13
    for variant in CONTROLS:
        name = f"fgm on chain d=41 n=2000 {variant}".strip()
        assert f"{name}: 5 of 5 seeds to run" in lines
    for variant in ("", "ascent.prior=0.03", "ascent.prior=0.1"):
        name = f"vae_ga on chain d=41 n=2000 {variant}".strip()
        assert f"{name}: 5 of 5 seeds to run" in lines
