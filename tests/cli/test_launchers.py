"""One sweep gives the same records whichever launcher spreads its jobs, and cores are shared."""

import os
import pickle
import secrets
import signal
import time
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

import ddobench
from ddobench.cli.sweeper import Point, split_points
from ddobench.cli.workers import (
    THREADS,
    check_installed,
    count_cores,
    count_threads,
    count_workers,
    is_installed,
    share_seeds,
    sharing_the_machine,
    split_jobs,
    use_private_folder,
)
from ddobench.errors import UsageError
from ddobench.registry import read_choice
from ddobench.runner.limits import WORKERS
from ddobench.seeds import parse_seeds
from ddobench.store.runs import load, read_record
from tests.cli.test_command_line import PLUGIN
from tests.support.fakes import Climb, specify_fake
from tests.support.processes import PATIENCE, nursery, wait_until
from tests.support.real_ray import LATE, private_ray
from tests.support.records import OWN, same_record
from tests.support.slurm import install_slurm, read_submitted

SWEEP = ["-m", "method=linear", "task=quadratic", "d=6", "n=30", "budget=tiny", "seed=0-9"]
LOCAL = "submitit_local"
# Ray ends if its own parts take longer than 15 s to start, and ddobench hears of it after 30 s.
RAY = {
    "RAY_agent_register_timeout_ms": str(int(1000 * PATIENCE)),
    "RAY_AUTH_MODE": "token",
    "RAY_AUTH_TOKEN": secrets.token_hex(32),  # or Ray writes one into the home folder
}


def launch(folder: Path, *words: str, again_after: str | None = None) -> tuple[str, str]:
    """Run the sweep through a launcher and return what it said, again if it said some words."""
    deadline = time.monotonic() + PATIENCE
    while True:
        with nursery() as spawn:
            sweep = spawn("-m", "ddobench", *SWEEP, f"results_dir={folder}", *words)
            out, err = sweep.communicate(timeout=PATIENCE)
        if sweep.returncode == 0:
            return out, err
        assert again_after is not None, out + err
        assert again_after in err, out + err
        assert time.monotonic() < deadline, out + err


def run_here(folder: Path) -> None:
    """Run the same in this process, one job after the other."""
    ddobench.run(method="linear", task="quadratic", d=6, n=30, budget="tiny", seed="0-9",
                 results_dir=folder)  # fmt: skip


@pytest.fixture(scope="module")
def here(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with the runs of this process."""
    folder = tmp_path_factory.mktemp("here")
    run_here(folder)
    return folder


def assert_same_records(folder: Path, other: Path, runs: int = 10) -> None:
    """Fail unless two folders hold the same runs, but for times and where they come from."""
    files = sorted(path.relative_to(other) for path in other.rglob("*.parquet"))
    assert len(files) == runs
    assert sorted(path.relative_to(folder) for path in folder.rglob("*.parquet")) == files
    for file in files:
        ours, theirs = read_record(folder / file), read_record(other / file)
        assert ours.provenance["threads"] == theirs.provenance["threads"] == 1
        assert same_record(ours, theirs, without=OWN), file


def complete_after_a_kill(folder: Path, *launcher: str) -> str:
    """Kill a worker in the middle of a suite and repeat the command; return what the first said.

    Fail unless the runs are then those of an undisturbed sweep in one process.
    """
    plugin, gate = folder / "plugin", folder / "gate"
    (plugin / "method").mkdir(parents=True)
    (plugin / "slowpoke.py").write_text(PLUGIN)
    (plugin / "method" / "slow.yaml").write_text(
        f"_target_: slowpoke.Slow\ngate: {gate}\nfirst: 1\n"  # seed 1 waits at the gate
    )
    words = ["-m", "ddobench", "--config-dir", str(plugin), "-m", "suite=ddobench-1-lite",
             "method=linear,slow", "budget=tiny", "seed=0-1"]  # fmt: skip
    spread, here, reached = folder / "spread", folder / "here", Path(f"{gate}.reached")
    with nursery() as spawn:
        sweep = spawn(*words, f"results_dir={spread}", *launcher)
        wait_until(lambda: reached.exists() and reached.read_text() != "", sweep)
        wait_until(lambda: len(load(spread)) > 0, sweep)
        os.kill(int(reached.read_text()), signal.SIGKILL)
        gate.touch()
        out, err = sweep.communicate(timeout=PATIENCE)
        assert sweep.returncode == 1, out + err
        assert "Traceback" not in out + err
        assert 0 < len(load(spread)) < 16
        again = spawn(*words, f"results_dir={spread}", *launcher)
        said = again.communicate(timeout=PATIENCE)
        assert again.returncode == 0, said
        undisturbed = spawn(*words, f"results_dir={here}")
        said = undisturbed.communicate(timeout=PATIENCE)
        assert undisturbed.returncode == 0, said
    assert_same_records(spread, here, runs=16)
    return out


class Planted:
    """Makes a folder when its pickle is loaded."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __reduce__(self) -> tuple[object, ...]:
        return os.mkdir, (self.folder,)


def needs(launcher: str) -> None:
    """Skip a test without the package of a launcher."""
    package = ".".join(read_choice("launcher", launcher)["_target_"].split(".")[:2])
    if not is_installed(package):
        pytest.skip(f"{package} is not installed")


@pytest.mark.slow
@pytest.mark.parametrize("launcher", ["joblib", LOCAL, "ray"])
def test_a_launcher_stores_what_one_process_stores(
    launcher: str, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs(launcher)
    for name, value in RAY.items():
        monkeypatch.setenv(name, value)
    late = LATE if launcher == "ray" else None
    out, _ = launch(tmp_path / "spread", f"hydra/launcher={launcher}", again_after=late)
    assert "10 runs finished" in out
    (command,) = set(ddobench.load(tmp_path / "spread")["command"])
    assert command.startswith("python -m ddobench -m method=linear task=quadratic d=6 ")
    if (workers := count_workers(read_choice("launcher", launcher), count_cores())) > 1:
        jobs = -(-10 // share_seeds([10], workers)[0])
        assert f"10 runs in {jobs} jobs for {workers} workers" in out
    assert_same_records(tmp_path / "spread", here)


@pytest.mark.slow
def test_a_suite_on_two_nodes_of_ray_is_completed_after_a_worker_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("ray_cluster")
    for name, value in RAY.items():
        monkeypatch.setenv(name, value)
    with private_ray(PATIENCE) as address:
        out = complete_after_a_kill(
            tmp_path, "hydra/launcher=ray_cluster", f"hydra.launcher.ray.init.address={address}",
        )  # fmt: skip
    assert "the launcher gave up: " in out
    assert "of 16 runs are stored; the same command continues with the rest\n" in out


@pytest.mark.slow
def test_an_array_of_jobs_stores_what_one_process_stores(
    here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs("submitit_slurm")
    monkeypatch.setenv("PATH", install_slurm(tmp_path / "slurm"))
    planted = tmp_path / "spread" / ".cache" / "submitit" / "1_0" / "1_0_0_result.pkl"
    planted.parent.mkdir(parents=True)
    planted.write_bytes(pickle.dumps(("success", Planted(str(tmp_path / "ran")))))
    out, _ = launch(
        tmp_path / "spread", "hydra/launcher=submitit_slurm", "hydra.launcher.partition=short",
        "hydra.launcher.timeout_min=90", "hydra.launcher.mem_gb=3", "seeds_per_job=5",
    )  # fmt: skip
    assert "10 runs finished" in out
    assert not (tmp_path / "ran").exists(), "a planted pickle was loaded"
    asked = read_submitted(tmp_path / "slurm")
    assert {"--array=0-1%2", "--partition=short", "--time=90", "--mem=3GB", "--cpus-per-task=1",
            "--job-name=ddobench"} <= {*asked}  # fmt: skip
    assert_same_records(tmp_path / "spread", here)


@pytest.mark.parametrize(
    ("launcher", "changes", "threads", "workers"),
    [
        ("joblib", {}, 1, 8),
        ("joblib", {"n_jobs": 2}, 4, 2),
        ("joblib", {"n_jobs": -3}, 1, 6),
        ("joblib", {"n_jobs": 20}, 1, 20),
        (LOCAL, {}, 1, 8),
        (LOCAL, {"cpus_per_task": 3}, 3, 2),
        (LOCAL, {"cpus_per_task": 9}, 9, 1),
        ("submitit_slurm", {}, 1, 1),
        ("submitit_slurm", {"cpus_per_task": 4}, 4, 1),
        ("ray", {}, 1, 8),
        ("ray", {"ray": {"init": {"address": "local"}, "remote": {"num_cpus": 4}}}, 4, 2),
        ("ray_cluster", {}, 1, 1),
    ],
)
def test_workers_have_no_more_threads_than_there_are_cores(
    launcher: str, changes: dict[str, object], threads: int, workers: int
) -> None:
    settings = read_choice("launcher", launcher) | changes
    assert count_threads(settings, cores=8) == threads
    assert count_workers(settings, cores=8) == workers


def test_workers_are_told_their_share_unless_the_user_has(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("ddobench.cli.workers.count_cores", lambda: 8)
    names = (THREADS, "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
    for name in names:
        monkeypatch.delenv(name, raising=False)
    with sharing_the_machine({"n_jobs": 2}):
        assert [os.environ[name] for name in names] == ["4", "4", "4"]
        assert os.environ[WORKERS] == "2"
    assert not {*names, WORKERS} & {*os.environ}
    monkeypatch.setenv(THREADS, "3")
    with sharing_the_machine({"n_jobs": 2}):
        assert [os.environ[name] for name in names] == ["3", "3", "3"]
    assert os.environ[THREADS] == "3"


@pytest.mark.parametrize(
    ("missing", "workers", "shares"),
    [
        ([20], 1, [20]),
        ([20], 2, [10]),
        ([21, 0], 2, [11, 5]),
        ([50], 64, [1]),
        ([50, 50, 50], 64, [2, 2, 2]),
        ([50] * 100, 64, [5] * 100),
        ([3], 2, [2]),
    ],
)
def test_all_workers_get_seeds_of_a_point_and_stacks_stay_stacks(
    missing: list[int], workers: int, shares: list[int]
) -> None:
    assert share_seeds(missing, workers) == shares


@pytest.mark.parametrize(
    ("asked", "workers", "seeds"),
    [
        (None, 2, ["0-9", "10-19"]),
        (None, 1, ["0-19"]),
        (50, 2, ["0-19"]),
        (8, 2, ["0-7", "8-15", "16-19"]),
    ],
)
def test_workers_share_the_seeds_of_a_point_unless_the_user_has_said_how(
    asked: int | None, workers: int, seeds: list[str]
) -> None:
    spec, wanted = replace(specify_fake(Climb), seeds_per_job=asked), parse_seeds("0-19")
    point = Point(["d=3"], spec, wanted, wanted)
    assert split_points([point], workers) == [(point, parse_seeds(some)) for some in seeds]


def test_jobs_wait_where_a_launcher_would_start_them_all_at_once() -> None:
    jobs = [[f"seed={seed}"] for seed in range(5)]
    local, slurm = (read_choice("launcher", name) for name in (LOCAL, "submitit_slurm"))
    assert [len(part) for part in split_jobs(jobs, local, None, cores=2)] == [2, 2, 1]
    assert split_jobs(jobs, slurm, None, cores=2) == [jobs]
    assert [len(part) for part in split_jobs(jobs, slurm, 3, cores=2)] == [3, 2]


def test_each_sweep_hands_its_jobs_over_in_a_new_private_folder(tmp_path: Path) -> None:
    launchers = [SimpleNamespace(params={"submitit_folder": f"{tmp_path}/a/%j"}) for _ in range(2)]
    for launcher in launchers:
        use_private_folder(launcher)
    one, other = (Path(launcher.params["submitit_folder"]) for launcher in launchers)
    assert one.name == other.name == "%j"
    assert one.parent != other.parent
    assert one.parents[1] == other.parents[1] == tmp_path / "a"
    assert one.parent.stat().st_mode & 0o777 == 0o700
    use_private_folder(SimpleNamespace())  # of another kind


@pytest.mark.parametrize(
    ("launcher", "remedy"),
    [("submitit_slurm", r"pip install 'ddobench\[slurm\]'"), ("ray", "constraints-ray.txt")],
)
def test_a_launcher_without_its_package_says_what_to_install(
    launcher: str, remedy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ddobench.cli.workers.is_installed", lambda _: False)
    with pytest.raises(UsageError, match=f"hydra/launcher={launcher} needs a package.*{remedy}"):
        check_installed(launcher, read_choice("launcher", launcher))
