"""Tab completion of `python -m ddobench`: in bash, and elsewhere a word on what to type instead."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from ddobench.cli import main as cli
from ddobench.cli.completion import completion_of_the_module
from ddobench.errors import UsageError
from tests.support.processes import PATIENCE

ASK = """
COMP_LINE="$1" COMP_POINT=${#1} COMP_WORDS=($1) COMP_CWORD=$((${#COMP_WORDS[@]} - 1))
COMPREPLY=()
_ddobench_python
echo "${COMPREPLY[@]}"
"""


def ask_bash(line: str, before: str = "") -> str:
    """Return what bash offers for a half-typed line."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash is installed")
    script = before + str(completion_of_the_module("install=bash")) + ASK
    done = subprocess.run(
        [bash, "--norc", "-c", script, "bash", line],
        capture_output=True, text=True, check=True, timeout=PATIENCE,
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[2])},
    )  # fmt: skip
    return done.stdout.strip()


@pytest.mark.slow
def test_bash_completes_the_module() -> None:
    assert ask_bash(f"{sys.executable} -m ddobench -m method=fgm task=quad") == "task=quadratic"


def test_bash_asks_whoever_completed_python_before_for_anything_else() -> None:
    before = "earlier() { COMPREPLY=(script.py); }; complete -F earlier python\n"
    for line in ("python scr", "python -m ddobench.rep", "python -m ddo"):
        assert ask_bash(line, before) == "script.py"
        assert ask_bash(line) == ""


def test_the_script_is_printed_by_the_module_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DDOBENCH_COMMAND", "to be restored")
    monkeypatch.setattr(sys, "argv", ["/x/ddobench/__main__.py", "-sc", "install=bash"])
    cli.main()
    assert capsys.readouterr().out == completion_of_the_module("install=bash")


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_the_program(shell: str) -> None:
    with pytest.raises(UsageError, match=rf"use ddobench -sc install={shell}, and type ddobench"):
        completion_of_the_module(f"install={shell}")
    assert completion_of_the_module("query=bash") is None
