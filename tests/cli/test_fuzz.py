"""No command line, however odd, gets a traceback, writes elsewhere or runs something else.

`benchmarks/fuzz.py` tries thousands.
"""

import logging
import shlex
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.attempts import Attempt, attempt, judge
from tests.support.command_lines import Maker, write_plugins
from tests.support.fakes import Climb, specify_fake

LINES = 40  # of each of the streams below


@pytest.fixture
def plugins(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with plug-ins, into which Python writes nothing."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    write_plugins(tmp_path)
    return tmp_path


@pytest.mark.slow
@pytest.mark.parametrize("stream", range(6))
@pytest.mark.filterwarnings("default")  # a command line shows warnings
def test_odd_command_lines_run_what_they_say_or_get_one_sentence(
    stream: int, plugins: Path
) -> None:
    maker = Maker(stream, plugins)
    wrong = []
    for words in (maker.line() for _ in range(LINES)):
        wrong += [f"{shlex.join(words)}: {complaint}" for complaint in judge(attempt(words))]
    assert wrong == []


def test_a_plain_line_is_run_and_found_in_order() -> None:
    tried = attempt(["method=naive", "d=5", "n=20", "-m", "seed=0-2", "results_dir=out"])
    assert (tried.code, judge(tried)) == (0, [])
    assert [seeds for _, seeds in tried.ran] == [[0, 1, 2]]
    assert all(file.startswith("out/") for file in tried.files)


def test_a_line_leaves_the_log_of_this_process_as_it_was() -> None:
    root = logging.getLogger()
    before = root.level, [*root.handlers]
    assert "Hydra" in attempt(["--info", "plugins"]).out
    assert (root.level, root.handlers) == before


@pytest.mark.parametrize(
    ("words", "told", "complaint"),
    [
        ("d=5", {"crash": "Traceback\nValueError: x"}, "a traceback: ValueError: x"),
        ("d=5", {"code": 3}, "exit code 3"),
        ("d=5", {"code": 2, "err": "usage: x\n"}, r"not one sentence: 'usage: x\n'"),
        ("d=5", {"files": ["results/log"]}, "a file outside results/runs: results/log"),
        ("results_dir=~/x", {"files": ["x"]}, "a file outside ../home/x: x"),
    ],
)
def test_the_judge_sees_what_a_line_leaves_behind(
    words: str, told: dict[str, object], complaint: str
) -> None:
    assert judge(Attempt(words.split(), **told)) == [complaint]  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        ("task=sum method=fast d=3 n=20 budget=b seed=1", "seed=1 was asked for, seed=['0'] ran"),
        ("task=sum method=other d=3 n=20 budget=b", "method=other was asked for"),
        ("task=sum method=fast d=3 n=20 budget=b plan=true", "something ran though nothing should"),
        ("task=sum method=fast d=3 n=20 budget=b foo=1", "something ran though foo is no key"),
    ],
)
def test_the_judge_sees_what_was_not_asked_for(words: str, complaint: str) -> None:
    spec = replace(specify_fake(Climb), method="fast", budget="b")
    complaints = judge(Attempt(words.split(), ran=[(spec, [0])]))
    assert len(complaints) == 1
    assert complaints[0].startswith(complaint)
