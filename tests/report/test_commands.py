"""Promises of the one command that a caption names."""

import pandas as pd
import pytest

from ddobench.report.data.commands import join_commands

RUN = "python -m ddobench -m"


@pytest.mark.parametrize(
    ("made", "named"),
    [
        ([], ()),
        ([""], ()),
        ([f"{RUN} experiment=chains"], (f"{RUN} experiment=chains",)),
        (
            [f"{RUN} experiment=chains seed=3-4", f"{RUN} experiment=chains seed=0-2"],
            (f"{RUN} experiment=chains seed=0-4",),
        ),
        (
            [f"{RUN} method=b,a task=chain", f"{RUN} task=chain method=c"],
            (f"{RUN} task=chain method=a,b,c",),
        ),
        (
            [f"{RUN} experiment=chains", f"{RUN} experiment=chains method=ga seed=7"],
            (f"{RUN} experiment=chains",),
        ),
        (
            ["python -m ddobench method=a", "python -m ddobench method=b"],
            (f"{RUN} method=a,b",),
        ),
        ([f"{RUN} 'unclosed"], (f"{RUN} 'unclosed",)),
    ],
)  # fmt: skip
def test_commands_that_differ_in_one_list_are_one(made: list[str], named: tuple[str, ...]) -> None:
    assert join_commands(pd.Series(made, dtype=object)) == named


def test_of_commands_that_no_single_one_replaces_that_of_most_runs_is_named_and_says_so() -> None:
    many, few = f"{RUN} experiment=chains", f"{RUN} experiment=mixture"
    (command,) = join_commands(pd.Series([many, many, few]))
    assert command == f"{many}  # most of its runs"
