"""Promises of the rewritten command line."""

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

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
        ("seed=range(0,5)", "seed='0-4'"),
        ("seed=range(8,8)", "seed=range(8,8)"),
        ("seed=range(0,9,2)", "seed=range(0,9,2)"),
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


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        (["-m", "--run"], "-m and --run exclude each other; keep one"),
        (["--cfg", "job", "--info"], "--cfg and --info exclude each other; keep one"),
        (["-m", "--multirun"], "-m and --multirun are the same option; keep one"),
        (["-cd", "a", "-cd", "b"], "-cd is given twice; keep one"),
        (["-m=1"], "-m takes no value, got '1'; write -m alone"),
        (["--cfg"], "--cfg needs a value; write --cfg job"),
        (["--cfg", "jobs"], "--cfg takes one of job, hydra, all, got 'jobs'"),
        (["--info", "x"], "--info takes one of all, config, defaults, defaults-tree, plugins, "),
        (["--config-dir", "-m"], "--config-dir needs a value; write --config-dir FOLDER"),
        (["--config-dir="], "--config-dir needs a value; write --config-dir FOLDER"),
        (["--resolve"], "--resolve is for --cfg job; add that"),
        (["--experimental-rerun", "x"], "there is no option '--experimental-rerun'"),
        (["--config-path", "x"], "there is no option '--config-path'"),
    ],
)
def test_options_that_make_no_sense_are_refused(typed: list[str], sentence: str) -> None:
    with pytest.raises(UsageError) as raised:
        normalise(["d=4", *typed])
    assert str(raised.value).startswith(sentence)


@given(st.text(min_size=1).filter(lambda text: text.strip().lower() != "null" and text.strip()))
def test_hydra_reads_the_name_of_any_folder_as_it_was_typed(folder: str) -> None:
    if "${" in folder or folder[0] in "'\"":
        return  # an interpolation, or quoted already
    (word,) = normalise([f"results_dir={folder}"])
    assert OverridesParser.create().parse_override(word).value() == folder


WORDS = st.one_of(
    st.from_regex(r"[a-z_.]{1,6}=[a-z0-9,]{0,6}", fullmatch=True).filter(
        lambda word: not word.startswith("seed=")
    ),
    st.integers(0, 99).map(lambda seed: f"seed={seed}"),
)
FLAGS = st.sampled_from([[], ["-m"], ["--config-dir", "x"], ["-m", "-cd", "y"], ["--cfg", "job"]])


@given(st.lists(WORDS, max_size=5), FLAGS, st.integers(0, 5))
def test_what_is_typed_is_reordered_and_nothing_is_lost(
    words: list[str], flags: list[str], at: int
) -> None:
    typed = [*words[:at], *flags, *words[at:]]
    ready = normalise(typed)
    assert ready == [*normalise(words), *flags]
    assert normalise(ready) == ready
    assert [word.partition("=")[0] for word in ready[: len(words)]] == [
        word.partition("=")[0] for word in words
    ]


@given(st.lists(st.text(max_size=8), max_size=5))
def test_any_words_are_rewritten_or_refused(words: list[str]) -> None:
    try:
        ready = normalise(words)
    except UsageError:
        return
    assert len(ready) >= sum(not word.startswith("-") for word in words)


@pytest.mark.parametrize(
    ("typed", "spelled"),
    [
        ("method=ddom,mins method.training.steps=3", "method.training.steps=choice(3)"),
        ("method=ga,coms +search.prior=[1,2]", "+search.prior=choice([1,2])"),
        ("search=ascent,cautious search.rate=0.1", "search.rate=choice(0.1)"),
        ("task=glob(*) task.noise=null", "task.noise=choice(null)"),
        ("method=ddom method.training.steps=3", "method.training.steps=3"),
        ("method=ddom,mins method.training.steps=3,4", "method.training.steps=3,4"),
        ("method=ddom,mins task.noise=0.1", "task.noise=0.1"),
        ("method=ddom,mins search.rate=(", "search.rate=("),
    ],
)
def test_settings_of_what_a_sweep_exchanges_wait_for_its_points(typed: str, spelled: str) -> None:
    exchanged, _ = typed.split()
    assert normalise(["-m", *typed.split()]) == [exchanged, spelled, "-m"]


def test_without_a_sweep_settings_are_left_as_they_are_typed() -> None:
    typed = ["method=ddom,mins", "method.training.steps=3"]
    assert normalise(typed) == typed
