"""Promises of the rewritten command line."""

import pytest

from ddobench.cli.argv import (
    CONFIG_DIR,
    normalise,
    normalise_line,
    option_value,
    quote_seeds,
    spell,
    split,
)
from ddobench.errors import UsageError


def test_options_in_the_middle_go_last_and_overrides_keep_their_order() -> None:
    typed = ["method=fgm", "task=chain", "d=41", "-m", "seed=0-49"]
    assert normalise(typed) == ["method=fgm", "task=chain", "d=41", "seed='0-49'", "-m"]


@pytest.mark.parametrize("option", ["--config-dir=mine", "--config-dir mine", "-cd mine"])
def test_an_option_keeps_its_value_in_either_spelling(option: str) -> None:
    name = option.replace("=", " ").split()[0]
    typed = [*option.split(), "method=my"]
    assert normalise(typed) == ["method=my", name, "mine"]
    assert option_value(typed, CONFIG_DIR) == "mine"


def test_an_option_that_is_not_there_has_no_value() -> None:
    assert option_value(["method=fgm", "-m"], CONFIG_DIR) is None


@pytest.mark.parametrize(
    ("typed", "options"),
    [
        (["-i", "d=3"], {"-i": None}),
        (["--info", "searchpath", "d=3"], {"--info": "searchpath"}),
        (["d=3", "-i"], {"-i": None}),
    ],
)
def test_info_takes_a_word_but_never_an_override(
    typed: list[str], options: dict[str, str | None]
) -> None:
    assert split(typed) == (["d=3"], options)


@pytest.mark.parametrize("show", [["--cfg", "job"], ["-c", "job"]])
def test_showing_a_configuration_of_a_sweep_does_not_sweep(show: list[str]) -> None:
    assert normalise(["-m", "d=4", *show]) == ["d=4", *show]


@pytest.mark.parametrize(
    ("typed", "spelled"),
    [
        ("graph=true", "graph='true'"),
        ("graph=True", "graph='true'"),
        ("graph=stein,true,empty", "graph=stein,'true',empty"),
        ("graph='true'", "graph='true'"),
        ("graph=choice(true,stein)", "graph=choice('true',stein)"),
        ("graph=untrue", "graph=untrue"),
        ("graph.alpha=0.1", "graph.alpha=0.1"),
        ("plan=true", "plan=true"),
        ("seed=0-3", "seed='0-3'"),
    ],
)
def test_the_graph_true_is_a_name(typed: str, spelled: str) -> None:
    assert spell(typed) == spelled
    assert normalise([typed]) == [spelled]


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match="there is no option '--seed'; --help lists what there is"):
        normalise(["--seed=3"])


@pytest.mark.parametrize(
    ("typed", "spelled"),
    [
        ("seed=0-49", "seed='0-49'"),
        ("seed=0-9,20-24", "seed='0-9,20-24'"),
        ("seed=1,2,3", "seed='1-3'"),
        ("seed=7", "seed='7'"),
        ("seed='0-4'", "seed='0-4'"),
        ('seed="0-4"', "seed='0-4'"),
        ("++seed=0-1", "++seed='0-1'"),
        ("seed=range(0,5)", "seed=range(0,5)"),
        ("seed=choice(1,2)", "seed=choice(1,2)"),
        ("seed=[0,1]", "seed=[0,1]"),
    ],
)
def test_seeds_become_one_quoted_word_and_hydra_syntax_stays(typed: str, spelled: str) -> None:
    assert quote_seeds(typed) == spelled


@pytest.mark.parametrize("typed", ["seeds_per_job=0-9", "task.seed=0-9", "d=0-9", "~seed"])
def test_other_keys_are_left_alone(typed: str) -> None:
    assert quote_seeds(typed) == typed


@pytest.mark.parametrize("typed", ["seed=abc", "seed=", "seed=9-3"])
def test_bad_seeds_are_refused_before_hydra_sees_them(typed: str) -> None:
    with pytest.raises(UsageError, match="write seed="):
        normalise(["-m", typed])


def test_a_half_typed_line_has_options_first_and_the_word_being_typed_last() -> None:
    line = "ddobench method=fgm -m seed=0-49 ta"
    assert normalise_line(line) == "ddobench -m method=fgm seed=0-49 ta"


def test_a_new_word_stays_empty_at_the_end_of_a_half_typed_line() -> None:
    assert normalise_line("ddobench d=4 -m ") == "ddobench -m d=4 "
    assert normalise_line("ddobench ") == "ddobench "


def test_spare_spaces_inside_a_half_typed_line_are_dropped() -> None:
    assert normalise_line("ddobench   d=4  method=") == "ddobench d=4 method="


def test_a_half_typed_option_is_completed_not_refused() -> None:
    assert normalise_line("ddobench d=4 --con") == "ddobench d=4 --con"


def test_completion_keeps_the_value_of_an_option() -> None:
    line = "ddobench d=4 --config-dir mine method="
    assert normalise_line(line) == "ddobench --config-dir mine d=4 method="


def test_completion_leaves_a_line_with_an_unknown_option_as_typed() -> None:
    assert normalise_line("ddobench --wrong d=4 -m met") == "ddobench --wrong d=4 -m met"
