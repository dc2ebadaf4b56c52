"""The mode of MKL's products: set in time, left to the user, and contained in every record."""

import os
import subprocess
import sys
import threading

import pytest

from ddobench import determinism
from ddobench.runner.provenance import describe_machine
from tests.support.rounding import needs_mkl, without_mkl

MULTIPLY = "import torch; a = torch.ones(2, 64, 64); torch.bmm(a, a); "
PRINT_MODE = "from ddobench.determinism import products_mode; print(products_mode())"


def python(code: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a piece of Python in a process of its own, without the mode unless it is given."""
    inherited = {name: value for name, value in os.environ.items() if name != "MKL_CBWR"}
    return subprocess.run(
        [sys.executable, "-c", code],
        env=inherited | environment, capture_output=True, text=True, check=True,
    )  # fmt: skip


@pytest.mark.slow
@needs_mkl
def test_importing_the_package_sets_the_mode_without_a_warning_even_after_torch() -> None:
    for imports in ("import ddobench; ", "import torch, ddobench; "):
        ended = python(imports + MULTIPLY + PRINT_MODE)
        assert (ended.stdout, ended.stderr) == ("AUTO\n", "")


@pytest.mark.parametrize(
    ("asked", "amd", "preferred"),
    [("AVX512_CORE", True, True), ("AVX512_CORE", False, False), ("AVX2", True, False)],
)
def test_onednn_multiplies_on_amd_unless_its_instructions_are_limited_otherwise(
    asked: str, amd: bool, preferred: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", asked)
    monkeypatch.setattr(determinism, "_is_amd_with_avx512", lambda: amd)
    determinism.request_stable_products()
    assert determinism.prefers_onednn() == preferred


def test_onednn_is_limited_to_float32_on_amd_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    for amd, limit in ((False, None), (True, "AVX512_CORE")):
        monkeypatch.setenv("ONEDNN_MAX_CPU_ISA", "to be restored")
        monkeypatch.delenv("ONEDNN_MAX_CPU_ISA")
        monkeypatch.setattr(determinism, "_is_amd_with_avx512", lambda amd=amd: amd)
        determinism.request_stable_products()
        assert os.environ.get("ONEDNN_MAX_CPU_ISA") == limit


@pytest.mark.slow
@needs_mkl
def test_a_mode_that_the_user_chose_is_left_alone() -> None:
    ended = python("import ddobench; " + MULTIPLY + PRINT_MODE, MKL_CBWR="COMPATIBLE")
    assert (ended.stdout, ended.stderr) == ("COMPATIBLE\n", "")


@pytest.mark.slow
@needs_mkl
@pytest.mark.parametrize("value", ["bad", ""])
def test_a_value_that_mkl_ignores_is_not_taken_for_the_mode(value: str) -> None:
    ended = python("import ddobench; " + MULTIPLY + PRINT_MODE, MKL_CBWR=value)
    assert (ended.stdout, ended.stderr) == ("AUTO\n", "")


@pytest.mark.slow
@needs_mkl
def test_a_product_before_the_import_gives_one_warning() -> None:
    ended = python(MULTIPLY + "import ddobench; import ddobench.rng; " + PRINT_MODE)
    assert ended.stdout == "too late\n"
    assert ended.stderr.count("PyTorch multiplied matrices before ddobench was imported") == 1
    assert "import ddobench first, or set MKL_CBWR=AUTO before Python starts" in ended.stderr


@pytest.mark.slow
@needs_mkl
def test_a_worker_process_of_a_launcher_is_in_the_mode() -> None:
    code = (
        "import ddobench, joblib; from ddobench.determinism import products_mode; "
        "print(*joblib.Parallel(n_jobs=2)(joblib.delayed(products_mode)() for _ in range(2)))"
    )
    assert python(code).stdout == "AUTO AUTO\n"


@needs_mkl
def test_the_tests_run_in_the_mode_and_records_contain_it() -> None:
    assert determinism.products_mode() not in ("", determinism.TOO_LATE)
    assert describe_machine()["mkl_mode"] == os.environ["MKL_CBWR"]


@without_mkl
def test_a_build_without_mkl_says_that_there_is_no_mode() -> None:
    assert determinism.products_mode() == ""


def test_an_unreadable_mkl_mode_is_assumed_to_be_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(determinism, "_mode_code", lambda: None)
    monkeypatch.setattr("torch.backends.mkl.is_available", lambda: True)
    monkeypatch.setenv("MKL_CBWR", "AVX2")
    assert determinism.products_mode() == "AVX2"


def test_where_no_thread_can_be_started_libraries_use_one(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", refuse)
    monkeypatch.setattr(os, "environ", {"MKL_NUM_THREADS": "2"})
    determinism.limit_threads()
    one = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "2"}
    assert os.environ == one
