"""Sweeps on a real SLURM without accounting: `make slurm` installs one and runs these."""

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from ddobench.cli.slurm_queue import SlurmQueue, limit_signal
from ddobench.store.runs import load
from tests.cli.test_command_line import PLUGIN
from tests.cli.test_launchers import assert_same_records, here, launch, needs  # noqa: F401
from tests.support.processes import PATIENCE, nursery, wait_until
from tests.support.real_slurm import missing_programs, private_slurm

LAUNCHER = ["hydra/launcher=submitit_slurm", "hydra.launcher.mem_gb=1"]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Start a cluster for the tests of this file."""
    if not os.environ.get("DDOBENCH_SLURM"):
        pytest.skip("make slurm runs the tests on a real SLURM")
    needs("submitit_slurm")
    assert not missing_programs()
    with private_slurm(tmp_path_factory.mktemp("slurm"), PATIENCE) as conf:
        yield conf


@pytest.fixture
def on_slurm(cluster: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let commands find the cluster."""
    monkeypatch.setenv("SLURM_CONF", str(cluster))


@pytest.fixture
def slow(tmp_path: Path) -> list[str]:
    """Write a plug-in whose runs wait for a file; return the words of a sweep of it."""
    folder = tmp_path / "plugin"
    (folder / "method").mkdir(parents=True)
    (folder / "slowpoke.py").write_text(PLUGIN)
    (folder / "method" / "slow.yaml").write_text("_target_: slowpoke.Slow\ngate: ''\nfirst: 0\n")
    return [
        "-m", "ddobench", "--config-dir", str(folder), "-m", "method=slow", "task=quadratic", "d=6",
        "n=30", "budget=tiny", "seed=0-1", "seeds_per_job=1", *LAUNCHER,
        f"method.gate={tmp_path / 'gate'}", f"results_dir={tmp_path / 'runs'}",
    ]  # fmt: skip


@pytest.mark.usefixtures("on_slurm")
def test_a_cluster_stores_what_one_process_stores(here: Path, tmp_path: Path) -> None:  # noqa: F811
    out, err = launch(tmp_path / "spread", *LAUNCHER)
    assert "10 runs finished" in out
    assert "sacct" not in err
    assert_same_records(tmp_path / "spread", here)


@pytest.mark.usefixtures("on_slurm")
def test_a_job_that_is_killed_is_named_when_the_others_have_ended(
    tmp_path: Path, slow: list[str]
) -> None:
    gate = tmp_path / "gate"
    with nursery() as spawn:
        sweep = spawn(*slow, "method.first=1")  # seed 1 waits at the gate
        wait_until(Path(f"{gate}.reached").exists, sweep)
        wait_until(lambda: len(load(tmp_path / "runs")) == 1, sweep)
        (job,) = {line.partition("_")[0] for line in squeue()}
        subprocess.run(["scancel", job], check=True)
        out, err = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 1, out + err
    assert ("some jobs of SLURM ended without a result, killed or out of time or memory: 1 of 2 "
            "runs are stored; the same command continues with the rest\n") in out  # fmt: skip
    assert "Traceback" not in out + err
    gate.touch()
    with nursery() as spawn:
        out, err = spawn(*slow, "method.first=1").communicate(timeout=PATIENCE)
    assert "1 runs finished" in out, err
    assert load(tmp_path / "runs")["status"].tolist() == ["ok", "ok"]


@pytest.mark.usefixtures("on_slurm")
def test_a_job_that_can_never_start_is_named_and_not_waited_for(slow: list[str]) -> None:
    with nursery() as spawn:
        sweep = spawn(*slow, "hydra.launcher.cpus_per_task=99")
        out, err = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 1, out + err
    (job,) = {line.partition("_")[0] for line in squeue()}
    said = f"SLURM cannot start 2 jobs ({job}_0, {job}_1) as asked for (PartitionConfig): 0 of 2 "
    assert said in out, out + err
    assert f"stay in the queue; scancel {job} ends them\n" in out
    subprocess.run(["scancel", job], check=True)


@pytest.mark.usefixtures("on_slurm")
def test_an_interrupted_command_names_the_jobs_that_stay(tmp_path: Path, slow: list[str]) -> None:
    with nursery() as spawn:
        sweep = spawn(*slow)
        wait_until(Path(f"{tmp_path / 'gate'}.reached").exists, sweep)
        sweep.send_signal(signal.SIGINT)
        out, err = sweep.communicate(timeout=PATIENCE)
    assert sweep.returncode == 130, out + err
    (job,) = {line.partition("_")[0] for line in squeue()}
    assert "interrupted: 0 of 2 runs are stored" in out
    assert f"2 jobs ({job}_0, {job}_1) stay in the queue; scancel {job} ends them\n" in out
    subprocess.run(["scancel", job], check=True)


def squeue() -> list[str]:
    """Return the jobs in the queue."""
    command = ["squeue", "--me", "--noheader", "--array", "--format=%i"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.parametrize(
    ("minutes", "asked", "delay"), [(240, 120, 120), (1, 120, 30), (3, 80, 80), (0, 120, 120)]
)
def test_the_signal_before_a_time_limit_comes_in_its_second_half(
    minutes: int, asked: int, delay: int
) -> None:
    class Launcher:
        params = {"timeout_min": minutes, "signal_delay_s": asked}  # noqa: RUF012

    limit_signal(Launcher)
    assert Launcher.params["signal_delay_s"] == delay


def test_a_queue_that_does_not_answer_ends_no_wait(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setenv("PATH", "")
    queue = SlurmQueue()
    queue.register_job("1_0")
    for _ in range(10):
        queue.asked = float("-inf")
        assert not queue.is_done("1_0")
    assert "squeue does not answer, so lost jobs are not noticed: " in caplog.text
