"""The command line, end to end."""

import importlib
import io
import os
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, BinaryIO

import pytest
import torch

from ddobench.cli import argv
from ddobench.cli import main as cli
from ddobench.cli.sweeper import SeedSweeper
from ddobench.errors import StorageError
from ddobench.store.runs import load
from tests.support.processes import PATIENCE, Spawn, interruptible, nursery, wait_until

PLUGIN = f"""
import os
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from ddobench.contracts import OneSeedMethod, Space
from ddobench.rng import Stream


@dataclass(kw_only=True)
class Slow(OneSeedMethod):
    gate: str = ""  # a file, without which only the first seeds come through
    first: int = 0
    fails_on: int = -1

    def fit_one(self, x: Tensor, y: Tensor, space: Space, rng: Stream) -> None:
        if self.gate and rng.seed >= self.first:
            Path(self.gate + ".reached").write_text(str(os.getpid()))
            deadline = time.monotonic() + {PATIENCE}
            while not Path(self.gate).exists():
                assert time.monotonic() < deadline, "the gate stays closed"
                time.sleep(0.02)
        if rng.seed == self.fails_on:
            raise RuntimeError("this seed is cursed")
        self.best = x[y.argmax()]

    def propose_one(self, starts: Tensor, rng: Stream) -> Iterator[Tensor]:
        yield self.best[None]
"""
PLUGIN_YAML = """
_target_: slowpoke.Slow
card:
  label: Slow
  summary: takes its time
gate: ""
first: 0
fails_on: -1
"""


@pytest.fixture
def plugin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder with one Python file and one YAML, as a third party would."""
    monkeypatch.delitem(sys.modules, "slowpoke", raising=False)  # of the folder of another test
    folder = tmp_path / "plugin"
    (folder / "method").mkdir(parents=True)
    (folder / "slowpoke.py").write_text(PLUGIN)
    (folder / "method" / "slow.yaml").write_text(PLUGIN_YAML)
    return folder


@pytest.fixture
def ddobench(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> "Caller":
    """Return a function that runs a command line in this process."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    for name in ("DDOBENCH_CONFIG_DIR", "PYTHONPATH", "HYDRA_FULL_ERROR"):
        monkeypatch.setenv(name, os.environ.get(name, ""))
        monkeypatch.delenv(name)
    return Caller(tmp_path / "runs", monkeypatch, capsys)


class Caller:
    """Runs command lines and remembers where their results go."""

    def __init__(
        self,
        results: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        self.results, self.monkeypatch, self.capsys = results, monkeypatch, capsys

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Return the exit code, stdout and stderr."""
        self.monkeypatch.setattr(sys, "argv", ["ddobench", *words, f"results_dir={self.results}"])
        code = 0
        try:
            cli.main()
        except SystemExit as end:
            code = end.code if isinstance(end.code, int) else 1
        captured = self.capsys.readouterr()
        return code, captured.out, captured.err

    def seeds(self) -> list[int]:
        """Return the seeds of the stored runs, sorted."""
        return sorted(load(self.results)["seed"])


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    """Return a function that starts a command line in a process of its own."""
    with nursery() as start:
        yield lambda *words: start("-m", "ddobench", *words)


def finish(process: "subprocess.Popen[str]") -> tuple[int, str, str]:
    """Wait for the end of a process; return its exit code, stdout and stderr."""
    out, err = process.communicate(timeout=PATIENCE)
    return process.returncode, out, err


@pytest.mark.slow
def test_the_promised_line_works_as_written(ddobench: "Caller") -> None:
    python, *line = shlex.split("python -m ddobench method=fgm task=chain d=41 -m seed=0-49")
    assert [python, *line[:2]] == ["python", "-m", "ddobench"]
    small = ["budget=tiny", "budget.training=0.004", "budget.ascent=0.04", "n=100",
             "surrogate.width=16", "latent.width=16"]  # seconds, not hours  # fmt: skip
    code, out, err = ddobench(*line[2:], *small)
    assert code == 0, err
    assert "50 runs finished" in out
    assert "\x1b" not in out + err
    runs = load(ddobench.results)
    assert sorted(runs["seed"]) == list(range(50))
    assert set(runs["status"]) == {"ok"}
    assert set(zip(runs["task"], runs["method"], runs["d"], strict=True)) == {("chain", "fgm", 41)}
    assert (runs["regret_final"] >= 0).all()


def test_fgm_solves_the_toy_task_exactly(ddobench: "Caller") -> None:
    code, out, err = ddobench("method=fgm", "task=quadratic", "d=20", "-m", "seed=0-4")
    assert code == 0, err
    assert "5 runs finished" in out
    assert (load(ddobench.results)["regret_final"] == 0).all()


def test_the_command_is_stored_as_it_was_typed(ddobench: "Caller") -> None:
    for words in (["seed=0-1"], ["-m", "seed=2,3"]):
        assert ddobench("method=naive", *words)[0] == 0
    where = f"results_dir={ddobench.results}"
    assert list(load(ddobench.results)["command"]) == [
        *[f"ddobench method=naive seed=0-1 {where}"] * 2,
        *[f"ddobench method=naive -m seed=2,3 {where}"] * 2,
    ]


@pytest.mark.parametrize(
    ("text", "seeds"),
    [
        ("0-2,5-6", [0, 1, 2, 5, 6]),
        ("range(0,3)", [0, 1, 2]),
        ("1,2,4", [1, 2, 4]),
        ("choice(3,5)", [3, 5]),
        ("[1,2]", [1, 2]),
        ("7", [7]),
    ],
)
def test_seeds_may_be_written_in_many_ways(ddobench: Caller, text: str, seeds: list[int]) -> None:
    code, _, err = ddobench("method=naive", "-m", f"seed={text}")
    assert code == 0, err
    assert ddobench.seeds() == seeds


def test_a_range_of_seeds_needs_no_sweep(ddobench: Caller) -> None:
    code, out, _ = ddobench("method=naive", "seed=0-3,8")
    assert code == 0
    assert "5 seeds" in out
    assert ddobench.seeds() == [0, 1, 2, 3, 8]


@pytest.mark.slow
def test_several_keys_sweep_at_once(ddobench: Caller) -> None:
    code, _, err = ddobench("-m", "method=glob(na*)", "d=5,6", "seed=0-1", "seeds_per_job=1")
    assert code == 0, err
    runs = load(ddobench.results)
    assert sorted(zip(runs["d"], runs["seed"], strict=True)) == [(5, 0), (5, 1), (6, 0), (6, 1)]


def test_a_repeated_sweep_launches_nothing_and_prints_one_line(ddobench: Caller) -> None:
    ddobench("method=naive", "-m", "seed=0-3")
    code, out, err = ddobench("method=naive", "-m", "seed=0-3")
    assert (code, err) == (0, "")
    assert out.splitlines() == [
        f"nothing to run: all 4 runs of this sweep are stored in {ddobench.results}"
    ]


def test_a_wider_sweep_runs_only_what_is_missing(ddobench: Caller) -> None:
    ddobench("method=naive", "-m", "seed=2-3")
    files = {path: path.stat().st_mtime_ns for path in ddobench.results.rglob("*.parquet")}
    _, out, _ = ddobench("method=naive", "-m", "seed=0-5")
    assert "2 of 6 runs are stored already; 4 to go" in out
    assert ddobench.seeds() == [0, 1, 2, 3, 4, 5]
    assert all(path.stat().st_mtime_ns == before for path, before in files.items())


def test_a_plan_runs_nothing(ddobench: Caller) -> None:
    for words in (["-m", "seed=0-3"], ["seed=0-3"]):
        code, out, _ = ddobench("method=naive", "plan=true", *words)
        assert code == 0
        assert "4 of 4 seeds to run" in out
        assert not list(ddobench.results.rglob("*.parquet"))


def test_describe_prints_the_terms_of_the_theorem_and_runs_nothing(ddobench: Caller) -> None:
    code, out, _ = ddobench("task=coverage", "describe=true", "seed=3")
    assert code == 0
    assert "seed 3\n  (a) coverage of whole designs, log10 " in out
    assert "unknown: functions of real numbers have no number of parameters" in out
    assert not list(ddobench.results.rglob("*.parquet"))
    code, _, err = ddobench("-m", "task=coverage", "describe=true")
    assert (code, err.strip()) == (2, "ddobench: describe=true is for one task; leave out -m")


@pytest.mark.slow
def test_an_experiment_has_its_own_sweep_and_can_be_reduced(ddobench: Caller) -> None:
    code, _, err = ddobench("experiment=regret", "method=naive", "d=4,6", "seed=0-1")
    assert code == 0, err
    runs = load(ddobench.results)
    assert len(runs) == 4
    assert set(runs["d"]) == {4, 6}


@pytest.mark.slow
def test_two_methods_with_equal_parts_are_both_stored(ddobench: Caller) -> None:
    words = ["task=chain", "d=5", "n=40", "budget=tiny", "method=ga,vae_ga", "latent=vae"]
    code, out, err = ddobench(*words, "search=ascent", "-m", "seed=0-1")
    assert code == 0, err
    assert out.startswith("4 runs finished")
    runs = load(ddobench.results)
    assert runs.groupby("seed")["final_model"].nunique().tolist() == [1, 1]
    assert runs["digest"].nunique() == 2, "each has runs of its own"


def test_equal_points_of_a_sweep_count_once_and_a_part_needs_an_effect_on_one_method(
    ddobench: Caller,
) -> None:
    words = ["method=naive,random,linear", "latent=identity,pca", "d=5", "n=20", "budget=tiny"]
    code, out, err = ddobench(*words, "-m", "seed=0-1")
    assert code == 0, err
    note, last = out.splitlines()
    assert note == "latent=identity has no effect on naive, random, where there is no latent"
    assert last.startswith("8 runs finished")


def test_an_experiment_can_be_reduced_to_a_method_without_its_parts(ddobench: Caller) -> None:
    code, out, err = ddobench("-m", "experiment=confidence", "method=naive", "plan=true")
    assert code == 0, err
    assert "no effect" not in out


def test_a_suite_runs_a_method_in_its_cells(ddobench: Caller) -> None:
    code, out, err = ddobench("-m", "suite=ddobench-1-lite", "method=naive", "plan=true")
    assert code == 0, err
    places = [line.partition(":")[0] for line in out.splitlines() if "10 of 10 seeds" in line]
    cells = ("chain d=21 n=2000", "surface d=30 n=3000", "nk d=40 n=2000", "tfbind8 d=8 n=2000")
    assert places == [f"naive on {cell}" for cell in cells]


def test_a_launcher_without_a_sweep_gets_an_error(ddobench: Caller) -> None:
    code, _, err = ddobench("method=naive", "hydra/launcher=basic")
    assert code == 2
    assert (
        err == "ddobench: hydra/launcher=basic has no effect on a single run; add -m to "
        "launch a sweep\n"
    )


@pytest.mark.slow
def test_parts_sweep_like_any_key(ddobench: Caller) -> None:
    words = ["task=rbf", "d=5", "n=40", "budget=tiny", "method=ga,fgm", "latent=identity"]
    code, out, err = ddobench(*words, "graph=true,stein", "-m", "seed=0-1")
    assert code == 0, err
    assert out.startswith("6 runs finished, 2 declined")
    runs = load(ddobench.results).drop_duplicates(["method", "graph"])
    found = runs.set_index(["method", "method_variant"])["privileges"].to_dict()
    assert found == {
        ("ga", "graph=stein"): "",
        ("ga", "graph=true"): "graph",
        ("fgm", "latent=identity"): "",
        ("fgm", "latent=identity graph=true"): "graph",
    }
    assert "nothing to run" in ddobench(*words, "graph=true,stein", "-m", "seed=0-1")[1]


@pytest.mark.slow
def test_an_experiment_may_be_a_union_of_sweeps(ddobench: Caller) -> None:
    words = ["experiment=known_graph", "d=5", "n=40", "budget=tiny", "seed=0", "-m"]
    _, plan, err = ddobench(*words, "plan=true")
    assert plan.splitlines() == [
        "naive on rbf d=5 n=40: 1 of 1 seeds to run",
        "random on rbf d=5 n=40: 1 of 1 seeds to run",
        "linear on rbf d=5 n=40 search.steps=20: 1 of 1 seeds to run",
        "ga on rbf d=5 n=40 search.steps=20: 1 of 1 seeds to run",
        "fgm on rbf d=5 n=40 latent=identity graph=true search=ascent search.steps=20: "
        "1 of 1 seeds to run",
        "ga on rbf d=5 n=40 surrogate=mlp search.steps=20: 1 of 1 seeds to run",
        "fgm on rbf d=5 n=40 latent=identity graph=true training=adam search=ascent "
        "search.steps=20: 1 of 1 seeds to run",
        f"what they cost is not known, as no run like them is stored in {ddobench.results}: "
        "run one seed of each to know",
        "7 of 7 runs to do; plan=true runs nothing",
    ], err
    code, _, err = ddobench(*words)
    assert code == 0, err
    ran = load(ddobench.results)["method"]
    assert sorted(ran) == ["fgm", "fgm", "ga", "ga", "linear", "naive", "random"]


@pytest.mark.slow
def test_a_plug_in_may_bring_a_stage(ddobench: Caller, plugin: Path) -> None:
    (plugin / "graph").mkdir()
    (plugin / "graph" / "mine.yaml").write_text(
        "# my own\n_target_: ddobench.parts.discovery.Empty\n"
    )
    code, _, err = ddobench(
        "--config-dir", str(plugin), "task=rbf", "d=5", "n=40", "budget=tiny", "graph=mine",
        "latent=pca", "method=fgm",
    )  # fmt: skip
    assert code == 0, err
    assert list(load(ddobench.results)["method_variant"]) == ["latent=pca graph=mine"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["seed=9-3"], "the seed range 9-3 runs backwards; write seed=3-9"),
        (["seed=abc"], "got 'abc'; write seed=7, seed=0-49 or seed=0-9,20-24"),
        (["seed=-1"], "at least 0"),
        (["method=fmg"], "there is no method 'fmg' (did you mean 'fgm'?); there are"),
        (["task=quadratik"], "there is no task 'quadratik' (did you mean 'quadratic'?)"),
        (["methd=fgm"], "there is no key 'methd' (did you mean 'method'?)"),
        (["method=fgm", "method.rigde=1"], "(did you mean 'method.ridge'?)"),
        (["n=-5"], "n must be a whole number of at least 2, got -5"),
        (["d=2"], "d must be a whole number of at least 4, got 2; at d=3 the cycle is"),
        (["d=many"], "d must be a whole number of at least 1, got 'many'"),
        (["method=fgm", "method.ridge=big"], "method.ridge must be a number, got 'big'"),
        (["method=fgm", "+method.foo=1"], "method has no parameter 'foo'; it has latent, axes"),
        (["task.signs=odd"], "task.signs must be one of ones, random, got 'odd'"),
        (["device=abacus"], "device must be one of auto, cpu, cuda, got 'abacus'"),
        (["graph=stien"], "there is no graph 'stien' (did you mean 'stein'?); there are"),
        (["graph.alhpa=1"], "there is no key 'graph.alhpa' (did you mean 'graph.alpha'?)"),
        (["graph.alpha=2"], "graph.alpha must be a level between 0 and 1, got 2"),
        (["budget=huge"], "there is no budget 'huge'; there are few_designs, full, small, tiny"),
        (["experiment=xyzzy"], "there is no experiment 'xyzzy'; there are"),
        (["--bogus"], "there is no option '--bogus'; --help lists"),
        (["--config-dir", "nowhere"], "the folder given by --config-dir does not exist"),
        (["nonsense"], "'nonsense' cannot be read as key=value"),
        (["+budget.tpo=4"], "there is no key 'budget.tpo' (did you mean 'budget.top'?)"),
        (["++budget.traaining=0.01"], "(did you mean 'budget.training'?); the keys are budget.asc"),
        (["budget.training=-1"], "budget.training must be a number above 0, a factor on steps"),
        (["budget.ascent=few"], "budget.ascent must be a number above 0, a factor on steps"),
        (["method=ddom", "surrogate.width=64"], "no surrogate; leave it out, or write method.width="
         "64 for the method's own"),
        (["method=ddom", "surrogate=gp"], "surrogate=gp has no effect on ddom, where there is no "
         "surrogate; leave it out, or choose a method that has one: additive, "),
        (["method=ddom", "+surrogate.widht=1"], "surrogate.widht=1 has no effect on ddom"),
        (["method=ddom", "training=paper"], "training=paper has no effect on ddom"),
        (["method=ga", "+select.grid.x=[1]"], "has no effect on ga, where no rule selects; add"),
        (["method=naive.yaml"], "method takes the name of an option, got the file 'naive.yaml'; "
         "write method=naive"),
        (["method=../method/naive"], "got the file '../method/naive'; write method=naive"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("sweep", [False, True])
def test_a_mistake_gets_one_sentence_and_leaves_nothing_behind(
    ddobench: Caller, words: list[str], sentence: str, sweep: bool
) -> None:
    code, out, err = ddobench(*words, *(["-m"] if sweep else []))
    assert code == 2
    assert out == ""
    assert err.startswith("ddobench: ")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not ddobench.results.exists()


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["d=5", "d=6"], "d is given twice, d=5 and d=6; keep one"),
        (["+foo=1"], "there is no key 'foo' to add; the keys are"),
        (["~d"], "'~d' would leave a key out; give it another value instead"),
        (["hydra.output_subdir=x"], "hydra.output_subdir is not for the command line"),
        (["+hydra.callbacks.x._target_=os.getcwd"], "is not for the command line"),
        (["method={}"], "method takes one name, or several with -m"),
        (["plan=maybe"], "plan must be true or false, got 'maybe'"),
        (["many=1"], "many must be true or false, got 1"),
        (["+method._partial_=true"], "method has no parameter '_partial_'"),
        (["method.card=hello"], "method.card must hold words, as in {label: Mine"),
        (["+method.card.colr=red"], "there is no key 'method.card.colr'; a card has label, color"),
        (["isolate=maybe"], "isolate must be true or false, got 'maybe'"),
        (["allow_code=3"], "allow_code must be names of packages, as in [a,b], got 3"),
        (["method._target_=logging.FileHandler"], "if you trust it, add allow_code=[logging]"),
        (["method._target_=3"], "method._target_ must name a class, as in package.module.Class"),
        (["seed=0-9999999"], "10000000 runs are more than 10000; plan=true lists them, "),
        (["device=cuda"], "device=cuda needs a GPU that PyTorch can use, and there is none"),
    ],
)
@pytest.mark.parametrize("sweep", [False, True])
def test_a_dangerous_request_is_refused(
    ddobench: Caller, words: list[str], sentence: str, sweep: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    code, out, err = ddobench("task=rbf", "n=40", *words, *(["-m"] if sweep else []))
    assert (code, out) == (2, "")
    assert err.startswith("ddobench: ")
    assert sentence in err
    assert len(err.splitlines()) == 1
    assert not ddobench.results.exists()


@pytest.mark.parametrize("sweep", [False, True])
def test_ten_million_runs_are_planned_at_once(ddobench: Caller, sweep: bool) -> None:
    ddobench("method=naive", "seed=3")
    code, out, err = ddobench(
        "method=naive", "seed=0-9999999", "plan=true", *(["-m"] if sweep else [])
    )
    assert code == 0, err
    assert "9999999 of 10000000 seeds to run" in out


def test_a_plan_of_too_many_points_counts_them(ddobench: Caller) -> None:
    code, out, err = ddobench("method=naive", "d=range(4,3000)", "plan=true", "-m")
    assert code == 0, err
    assert out.startswith("2996 points, each with its seeds: a plan lists 1000 at most")
    code, _, err = ddobench("method=naive", "d=range(4,90000)", "-m")
    assert code == 2
    assert "89996 runs are more than 10000" in err
    code, _, err = ddobench("method=naive", "d=shuffle(range(4,900000000))", "-m")
    assert code == 2
    assert "more than 100000 values; take fewer" in err


def test_many_runs_run_if_asked_for_by_name(
    ddobench: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(argv, "MANY", 2)
    assert ddobench("method=naive", "-m", "seed=0-2")[0] == 2
    assert ddobench("method=naive", "-m", "seed=0-2", "many=true")[0] == 0
    assert ddobench("method=naive", "seed=3-5")[0] == 2
    assert ddobench("method=naive", "seed=3-5", "many=true")[0] == 0
    assert ddobench.seeds() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize(
    "key", ["plan=true,false", "experiment=regret,signs", "suite=a,b", "many=true,false"]
)
def test_what_holds_for_a_whole_sweep_is_not_swept(ddobench: Caller, key: str) -> None:
    code, _, err = ddobench("method=naive", "-m", key)
    assert code == 2
    assert f"{key.partition('=')[0]} holds for the whole sweep; give it one value" in err


@pytest.mark.parametrize("name", ["5", "x=1", "{a: 1}", "ä' b"])  # test_argv.py tries any text
@pytest.mark.parametrize("sweep", [False, True])
def test_any_folder_can_be_typed(ddobench: Caller, name: str, sweep: bool) -> None:
    ddobench.results = ddobench.results / name
    code, _, err = ddobench("method=naive", *(["-m"] if sweep else []))
    assert code == 0, err
    assert ddobench.seeds() == [0]


@pytest.mark.parametrize("sweep", [False, True])
def test_a_folder_below_home_may_be_typed(
    ddobench: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sweep: bool
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    ddobench.results = Path("~/runs")
    code, _, err = ddobench("method=naive", *(["-m"] if sweep else []))
    assert code == 0, err
    assert list(load(tmp_path / "home" / "runs")["seed"]) == [0]
    assert [path.name for path in tmp_path.iterdir()] == ["home"]


@pytest.mark.parametrize(
    ("folder", "sentence"),
    [
        ("null", "results_dir must be a folder, got null; write results_dir=FOLDER"),
        ("", "results_dir must be a folder, got ''; write results_dir=FOLDER"),
        ("~nobody-here/x", "results_dir must be a folder, got '~nobody-here/x'"),
        ("/proc/ddobench", " cannot be "),
        ("/dev/null/x", "results_dir must be a folder"),
        ("x" * 300, "File name too long"),
    ],
)
@pytest.mark.parametrize("sweep", [False, True])
def test_a_folder_that_cannot_be_gets_one_sentence(
    ddobench: Caller, folder: str, sentence: str, sweep: bool
) -> None:
    ddobench.results = folder  # type: ignore[assignment]
    code, out, err = ddobench("method=naive", "d=5", "n=20", *(["-m"] if sweep else []))
    assert (code, out) == (2, "")
    assert sentence in err
    assert len(err.splitlines()) == 1


def test_code_of_no_registered_package_runs_only_if_it_is_named(
    ddobench: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = tmp_path / "site"
    site.mkdir()
    (site / "foreign.py").write_text(f"{PLUGIN}\nprint('imported')\n")
    monkeypatch.syspath_prepend(site)
    words = ["method=naive", "method._target_=foreign.Slow"]
    code, out, err = ddobench(*words)
    assert code == 2
    assert "imported" not in out
    assert "names foreign.Slow, which no registered package and no --config-dir brings" in err
    code, out, err = ddobench(*words, "allow_code=[foreign]")
    assert code == 0, err
    assert "imported" in out


BROKEN = {
    "_target_: [x\n": "mine.yaml, line 2 is not YAML: ",
    "- 1\n": "method must be a group choice with keys of its own, got [1]",
    "defaults: 3\n": "this cannot be composed: Invalid defaults list in 'method/mine'",
    "_target_: slowpoke.Slow\ncard: hello\n": "method.card must hold words, as in {label: Mine",
    "_target_: slowpoke.Gone\n": "method names slowpoke.Gone, which cannot be imported: ",
    "_target_: leaves.Mine\n": "which cannot be imported: SystemExit: 0",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_plug_in_file_is_named_and_the_help_still_works(
    ddobench: Caller, plugin: Path, text: str
) -> None:
    (plugin / "method" / "mine.yaml").write_text(text)
    (plugin / "leaves.py").write_text("raise SystemExit(0)\n")
    code, _, err = ddobench("--config-dir", str(plugin), "method=mine")
    assert code == 2
    assert BROKEN[text] in err
    assert len(err.splitlines()) == 1
    code, out, _ = ddobench("--config-dir", str(plugin), "--help")
    assert code == 0
    assert "\nmine " in out
    assert ddobench("--config-dir", str(plugin), "method=slow")[0] == 0


def test_a_key_of_a_file_without_keys_gets_one_sentence(ddobench: Caller, plugin: Path) -> None:
    (plugin / "method" / "mine.yaml").write_text("- 1\n")
    code, _, err = ddobench("--config-dir", str(plugin), "method=mine", "method.latent=null", "-m")
    assert code == 2
    assert err.startswith("ddobench: this cannot be composed: ")
    assert len(err.splitlines()) == 1


def test_a_failing_method_is_shown_where_it_fails(ddobench: Caller, plugin: Path) -> None:
    words = ["--config-dir", str(plugin), "method=slow", "method.fails_on=0"]
    _, _, err = ddobench(*words)
    line = 1 + PLUGIN.splitlines().index('            raise RuntimeError("this seed is cursed")')
    (file,) = ddobench.results.rglob("*.error.json")
    assert f"this seed is cursed, at {plugin / 'slowpoke.py'}:{line} (traceback in {file})" in err


@pytest.mark.slow
def test_a_killed_worker_ends_a_sweep_with_a_message(
    spawn: Spawn, plugin: Path, tmp_path: Path
) -> None:
    pytest.importorskip("joblib", reason="the joblib extra is not installed")
    source = PLUGIN.replace('raise RuntimeError("this seed is cursed")', "os.kill(os.getpid(), 9)")
    (plugin / "slowpoke.py").write_text(f"import os\n{source}")
    code, out, err = finish(
        spawn(
            "--config-dir", str(plugin), "method=slow", "method.fails_on=1", "-m", "seed=0-1",
            "seeds_per_job=1", "hydra/launcher=joblib", "hydra.launcher.n_jobs=2",
            f"results_dir={tmp_path / 'runs'}",
        )
    )  # fmt: skip
    assert code == 1, err
    assert "a worker process was killed, perhaps for want of memory: " in out
    assert "of 2 runs are stored; the same command continues with the rest" in out
    assert "Traceback" not in err


@pytest.mark.slow
@pytest.mark.parametrize("word", ["--help", "--version"])
def test_a_closed_pipe_is_no_error(spawn: Spawn, word: str) -> None:
    process = spawn(word)
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.close()
    assert process.wait(PATIENCE) in (1, 141)  # rich has its own
    assert process.stderr.read() == ""


FULL = "ddobench: the output cannot be written: No space left on device; make room, or send it "


def nowhere() -> Iterator[tuple[BinaryIO, int, str]]:
    """Yield outputs that take nothing, each with the exit code and what is said of it."""
    with Path("/dev/full").open("wb", buffering=0) as full:
        yield full, 1, f"{FULL}elsewhere\n"
    reader, writer = os.pipe()
    os.close(reader)
    with os.fdopen(writer, "wb", buffering=0) as pipe:
        yield pipe, 141, ""


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_process_whose_output_has_nowhere_to_go_gets_no_traceback(unbuffered: str) -> None:
    words = [sys.executable, "-m", "ddobench.check", "--help"]
    variables = os.environ | {"PYTHONUNBUFFERED": unbuffered}
    for out, code, said in nowhere():
        done = subprocess.run(
            words, stdout=out, stderr=subprocess.PIPE, text=True, check=False, env=variables
        )
        assert (done.returncode, done.stderr) == (code, said)


@pytest.mark.parametrize(
    "module",
    ["doctor", "compact", "watch", "compare.__main__", "propose.__main__", "report.__main__"],
)
def test_no_command_complains_of_an_output_that_has_nowhere_to_go(
    module: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    typed = {
        "compare.__main__": [str(tmp_path), str(tmp_path)],
        "propose.__main__": ["--example", "chain", "d=7", "n=20"],
        "report.__main__": [f"results_dir={tmp_path}", f"report_dir={tmp_path / 'report'}"],
    }
    main = importlib.import_module(f"ddobench.{module}").main
    monkeypatch.chdir(tmp_path)
    for place, code, said in nowhere():
        monkeypatch.setattr(sys, "argv", [module, *typed.get(module, [str(tmp_path)])])
        with (
            io.TextIOWrapper(place, write_through=True) as out,  # where errors come at once
            (tmp_path / "err").open("w") as err,
        ):
            monkeypatch.setattr(sys, "stdout", out)
            monkeypatch.setattr(sys, "stderr", err)
            with pytest.raises(SystemExit, match=f"^{code}$"):
                main()
        assert (tmp_path / "err").read_text() == said


@pytest.mark.parametrize("word", ["--help", "method=naive"])
def test_a_pipe_in_place_of_a_folder_of_plug_ins_is_refused(
    ddobench: Caller, tmp_path: Path, word: str
) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    code, _, err = ddobench(word, "--config-dir", str(pipe))
    assert code == 2
    assert err.startswith(f"ddobench: the folder given by --config-dir is no folder, got {pipe}; ")


def test_a_pipe_among_the_files_of_a_plug_in_is_left_alone(ddobench: Caller, plugin: Path) -> None:
    os.mkfifo(plugin / "method" / "pipe.yaml")
    code, out, _ = ddobench("--help", "--config-dir", str(plugin))
    assert code == 0
    assert "takes its time" in out


@pytest.mark.parametrize("sweep", [(), ("-m", "seed=0-1")])
def test_an_error_of_a_job_gets_one_sentence_without_the_overrides(
    ddobench: Caller, sweep: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: object) -> None:
        raise StorageError("the disk is full; make room")

    monkeypatch.setattr("ddobench.runner.batches.execute", refuse)
    code, _, err = ddobench("method=naive", "d=5", "n=20", *sweep)
    assert code == 2
    assert [line for line in err.splitlines() if " runs, " not in line] == [
        "ddobench: the disk is full; make room"
    ]


def test_runs_that_another_process_stored_meanwhile_are_counted_as_such(
    ddobench: Caller, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["method=naive", "d=5", "n=20", "-m"]
    assert ddobench(*words, "seed=0-1")[0] == 0
    ddobench.results.rename(tmp_path / "other")
    launch = SeedSweeper._launch

    def launch_late(*arguments: Any) -> Any:
        shutil.copytree(tmp_path / "other", ddobench.results, dirs_exist_ok=True)
        return launch(*arguments)

    monkeypatch.setattr(SeedSweeper, "_launch", launch_late)
    code, out, err = ddobench(*words, "seed=0-2")
    assert code == 0, err
    assert out.startswith("1 runs finished, 2 stored meanwhile by another process in ")


def test_a_sweep_without_its_flag_gets_an_error(ddobench: Caller) -> None:
    code, _, err = ddobench("d=10,20")
    assert code == 2
    assert "d=10,20 is a sweep; add -m to run it" in err


def test_one_impossible_point_stops_a_sweep_before_it_starts(ddobench: Caller) -> None:
    code, _, err = ddobench("method=naive", "-m", "d=10,3", "seed=0-3")
    assert code == 2
    assert "got 3" in err
    assert not ddobench.results.exists()


def test_the_configuration_can_be_shown(ddobench: Caller) -> None:
    code, out, _ = ddobench("method=fgm", "-m", "seed=0-4", "--cfg", "job")
    assert code == 0
    assert "ridge: 0.0" in out
    assert "seed: 0-4" in out


def test_a_plug_in_of_one_python_file_and_one_yaml_runs(ddobench: Caller, plugin: Path) -> None:
    code, _, err = ddobench("--config-dir", str(plugin), "method=slow", "-m", "seed=0-1")
    assert code == 0, err
    assert list(load(ddobench.results)["label"]) == ["Slow", "Slow"]


def test_the_help_and_a_look_at_the_store_import_nothing_heavy(plugin: Path) -> None:
    script = (
        "import sys; from ddobench.cli.main import main; "
        f"sys.argv = ['ddobench', '--help', '--config-dir', {str(plugin)!r}]; main(); "
        "assert not {'torch', 'pandas', 'hydra'} & set(sys.modules), 'heavy import'; "
        "import ddobench.store.runs; "  # by which a sweep finds what is stored
        "assert not {'torch', 'scipy.stats', 'scipy.optimize'} & set(sys.modules), 'heavy import'"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True,
        timeout=PATIENCE,
    )  # fmt: skip
    for name in ("quadratic", "fgm", "naive", "scores", "permuted", "regret", "slow"):
        assert f"\n{name} " in done.stdout
    assert "takes its time" in done.stdout


def test_tab_completion_works_with_the_flag_in_the_middle(
    ddobench: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COMP_LINE", "ddobench method=fgm -m seed=0-9 task=quad")
    monkeypatch.setattr(sys, "argv", ["ddobench", "-sc", "query=bash"])
    cli.main()
    assert ddobench.capsys.readouterr().out.split() == ["task=quadratic"]


def test_stages_complete_like_any_group(ddobench: Caller, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COMP_LINE", "ddobench method=fgm -m graph=perm")
    monkeypatch.setattr(sys, "argv", ["ddobench", "-sc", "query=bash"])
    cli.main()
    assert ddobench.capsys.readouterr().out.split() == ["graph=permuted"]


def test_a_failed_seed_is_recorded_and_retried_and_harms_no_other(
    ddobench: Caller, plugin: Path
) -> None:
    words = ["--config-dir", str(plugin), "method=slow", "-m", "seed=0-3"]
    code, out, err = ddobench(*words, "method.fails_on=2")
    assert code == 1
    assert "3 runs finished, 1 failed" in out
    assert "this seed is cursed" in err
    runs = load(ddobench.results).set_index("seed")
    assert list(runs["status"]) == ["ok", "ok", "failed", "ok"]
    assert runs.loc[2, "reason"] == "RuntimeError: this seed is cursed"
    _, out, _ = ddobench(*words, "method.fails_on=2")
    assert "3 of 4 runs are stored already; 1 to go" in out


def stored_files(folder: Path) -> list[Path]:
    """Return the files of the stored runs."""
    return list(folder.rglob("seed-*.parquet"))


@pytest.mark.slow
def test_a_killed_sweep_continues_where_it_was(
    spawn: Spawn, ddobench: Caller, plugin: Path, tmp_path: Path
) -> None:
    results, gate = ddobench.results, tmp_path / "gate"
    words = [
        "--config-dir", str(plugin), "method=slow", f"method.gate={gate}", "method.first=2",
        "-m", "seed=0-7",
    ]  # fmt: skip
    process = spawn(*words, f"results_dir={results}")
    wait_until(gate.with_suffix(".reached").exists, process)
    process.kill()
    finish(process)
    before = {path: path.stat().st_mtime_ns for path in stored_files(results)}
    assert len(before) == 2
    gate.touch()
    code, out, err = ddobench(*words)
    assert code == 0, err
    assert "2 of 8 runs are stored already; 6 to go" in out
    assert sorted(load(results)["seed"]) == list(range(8))
    assert all(path.stat().st_mtime_ns == written for path, written in before.items())


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP], ids=str)
def test_a_signal_that_ends_programs_interrupts_as_ctrl_c_does(number: signal.Signals) -> None:
    with interruptible(), cli._signals_as_interrupt():
        assert signal.getsignal(number) is signal.default_int_handler


@pytest.mark.slow
def test_an_interrupted_sweep_ends_cleanly_and_can_be_continued(
    spawn: Spawn, plugin: Path, tmp_path: Path
) -> None:
    results, gate = tmp_path / "runs", tmp_path / "gate"
    process = spawn(
        "--config-dir", str(plugin), "method=slow", f"method.gate={gate}", "method.first=1",
        "-m", "seed=0-99", f"results_dir={results}",
    )  # fmt: skip
    wait_until(gate.with_suffix(".reached").exists, process)
    process.send_signal(signal.SIGTERM)
    code, out, err = finish(process)
    assert code == 130
    assert "interrupted: 1 of 100 runs are stored; the same command continues" in out
    assert len(stored_files(results)) == 1
    assert "Traceback" not in err
    assert not list(results.rglob("*.tmp"))


@pytest.mark.parametrize(
    ("word", "sentence"),
    [
        ("method=glob(zzz*)", "method=glob(zzz*) names no method at all; there are additive, "),
        ("d=range(8,8)", "d=range(8,8) names no d at all; write d=VALUE or a wider range"),
        ("latent=glob(x*)", "latent=glob(x*) names no latent at all; there are identity, oracle, "),
    ],
)
def test_a_list_that_comes_out_empty_runs_nothing(
    ddobench: Caller, word: str, sentence: str
) -> None:
    words = ["task=chain", "d=5", "n=20", "budget=tiny", "seed=0-3", "-m"]
    code, out, err = ddobench(word, *[w for w in words if w[:2] != word[:2]])
    assert code == 2
    assert sentence in err
    assert out == ""
    assert not ddobench.results.exists()
