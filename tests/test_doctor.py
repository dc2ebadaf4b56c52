"""What the doctor finds, and what it says to do about it."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from ddobench import doctor
from ddobench.doctor import Finding, main
from ddobench.store.folding import compact
from ddobench.store.runs import Store
from tests.support.records import failed_row, flip_bit, record_of


def lines(findings: Iterable[Finding]) -> list[str]:
    """Return what is said of each thing."""
    return [str(finding) for finding in findings]


@pytest.fixture
def store(tmp_path: Path) -> Store:
    """Return a store with two runs."""
    store = Store(tmp_path / "runs")
    for seed in range(2):
        store.write(store.place("toy", "mine", 3, 10, "abc"), record_of(seed))
    return store


def test_this_installation_has_nothing_to_fix(
    store: Store, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([str(store.folder)]) == 0
    out = capsys.readouterr().out
    assert out.endswith("nothing to fix\n")
    for what in ("Python", "packages", "matrix products", "threads", "device", "launchers",
                 "results folder", "store: 2 runs are whole"):  # fmt: skip
        assert what in out


def test_a_damaged_run_is_named_and_something_to_fix(
    store: Store, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    path = store.place("toy", "mine", 3, 10, "abc").file(1)
    flip_bit(path, 800)
    assert main([str(store.folder)]) == 1
    assert capsys.readouterr().out.endswith(
        "fix  store: 1 runs are whole, 1 files or runs are damaged, named above; the sweeps that "
        "made them run them again\n1 to fix\n"
    )
    assert f"{path} is not a readable run" in caplog.text


def test_a_folded_file_that_cannot_be_opened_is_something_to_fix(
    store: Store, capsys: pytest.CaptureFixture[str], caplog: pytest.LogCaptureFixture
) -> None:
    compact(store.folder)
    path = store.place("toy", "mine", 3, 10, "abc").folded(0)
    before = path.stat()
    path.write_bytes(path.read_bytes()[:-1] + b"0")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert main([str(store.folder)]) == 1
    assert "store: 0 runs are whole, 1 files or runs are damaged" in capsys.readouterr().out
    assert f"{path} is not a readable run" in caplog.text


def test_failures_files_and_killed_sweeps_are_notes(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write_failure(store.place("toy", "mine", 3, 10, "abc"), failed_row(7), "")
    monkeypatch.setattr(doctor, "MANY_FILES", 1)
    path = store.folder / ".cache" / "sweeps" / "left.sweep.json"
    path.parent.mkdir(parents=True)
    path.write_text('{"command": "a sweep", "began": 0, "runs": 1, "goals": []}')
    assert lines(doctor.check_store(store.folder)) == [
        "ok   store: 2 runs are whole",
        "note failures: 1 runs have failed; the same commands try them again",
        f"note files: 2 runs have a file each; python -m ddobench.compact {store.folder} folds "
        "them, to be read in a quarter of the time",
        "note sweeps: one was killed: a sweep; the same command continues it",
    ]


def test_a_folder_that_cannot_be_made_is_something_to_fix(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    (line,) = lines(doctor.check_folder(tmp_path / "file" / "runs"))
    assert line.startswith("fix  results folder: ")
    (line,) = lines(doctor.check_folder(tmp_path / "not" / "yet"))
    assert line.startswith("ok   results folder: ")
    assert not (tmp_path / "not").exists()


def test_a_disk_that_is_nearly_full_is_something_to_fix(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "LITTLE", float("inf"))
    (line,) = lines(doctor.check_folder(tmp_path))
    assert line.startswith("fix  results folder: ")
    assert line.endswith("make room")


def test_a_package_of_another_version_is_something_to_fix(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.metadata.requires", lambda _: ["numpy>=99", "no-such-thing"])
    _, line = lines(doctor.check_packages())
    assert line.startswith("fix  packages: numpy ")
    assert "(wants >=99), no-such-thing none (wants any)" in line


@pytest.mark.parametrize(
    ("mode", "said"),
    [
        ("too late", "fix  matrix products: MKL began before"),
        ("", "note matrix products: PyTorch"),
        ("AUTO", "fix  matrix products: MKL ignores MKL_CBWR=bad, which it or this CPU does not "
         "know, and takes AUTO; set MKL_CBWR=AUTO, or leave it out"),
        ("bad", "ok   matrix products: MKL with MKL_CBWR=bad: "),  # if that were a mode
    ],
)  # fmt: skip
def test_the_mode_of_products_is_judged(
    monkeypatch: pytest.MonkeyPatch, mode: str, said: str
) -> None:
    monkeypatch.setenv("MKL_CBWR", "bad")
    machine = {"mkl_mode": mode, "cpu": "a CPU", "gpu": "a GPU"}
    monkeypatch.setattr("ddobench.runner.provenance.describe_machine", lambda: machine)
    first, _, last = lines(doctor.check_products())
    assert first.startswith(said)
    assert last == "ok   device: cuda (a GPU)"


def test_a_launcher_that_is_not_there_is_a_note(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "is_installed", lambda name: "joblib" in name)
    assert lines(doctor.check_launchers()) == [
        "note launchers: basic, joblib; for slurm: pip install 'ddobench[slurm]', for ray: "
        "pip install --constraint constraints-ray.txt '.[ray]' in an environment of its own"
    ]
