"""Sweeps that share a folder, at once or after one was killed, leave what one of them would."""

import subprocess
import sys
from pathlib import Path

import pytest

from ddobench.cli.main import main
from ddobench.store.runs import read_record
from tests.support.processes import PATIENCE, nursery
from tests.support.records import OWN, same_record

SWEEP = [
    "-m", "method=naive,fgm", "task=chain", "d=5", "n=60", "budget=tiny",
    "seed=0-3", "seeds_per_job=2", "latent.width=8", "surrogate.width=8",
]  # fmt: skip
ROOT = Path(__file__).parent.parent.parent


@pytest.mark.slow
def test_two_sweeps_into_one_folder_leave_the_records_of_one_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with nursery() as spawn:
        command = ["-m", "ddobench", *SWEEP, f"results_dir={tmp_path / 'both'}"]
        sweeps = [spawn(*command), spawn(*command)]
        monkeypatch.setattr(sys, "argv", ["ddobench", *SWEEP, f"results_dir={tmp_path / 'alone'}"])
        main()
        for sweep in sweeps:
            _, err = sweep.communicate(timeout=PATIENCE)
            assert sweep.returncode == 0, err
    alone = sorted((tmp_path / "alone").rglob("*.parquet"))
    both = sorted((tmp_path / "both").rglob("*.parquet"))
    assert len(alone) == 8
    assert [path.parts[-2:] for path in both] == [path.parts[-2:] for path in alone]
    for one, other in zip(both, alone, strict=True):
        assert same_record(read_record(one), read_record(other), without=OWN), one
    assert not list(tmp_path.rglob("*.tmp"))
    assert not list(tmp_path.rglob("*.error.json"))


@pytest.mark.slow
def test_a_sweep_killed_at_random_times_ends_as_if_undisturbed() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "kills.py"), "--kills", "2"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert " kills; episodes that ended with another store, or with a traceback: 0" in done.stdout
