"""A command line is read once, and Hydra gets it in a form that it accepts."""

from collections.abc import Sequence

import pytest
from hydra.core.override_parser.overrides_parser import OverridesParser
from hypothesis import given
from hypothesis import strategies as st

from ddobench.cli.argv import CONFIG_DIR, normalise_line, parse_request, split, to_hydra
from ddobench.errors import UsageError


def arguments_of(words: Sequence[str]) -> list[str]:
    """Return what Hydra gets for the words of a command line."""
    return parse_request(words).hydra_arguments()


def test_options_in_the_middle_go_last_and_overrides_keep_their_order() -> None:
    typed = ["method=fgm", "task=chain", "d=41", "-m", "seed=0-49"]
    assert arguments_of(typed) == ["method=fgm", "task=chain", "d=41", "seed='0-49'", "-m"]


@pytest.mark.parametrize("option", ["--config-dir=mine", "--config-dir mine", "-cd mine"])
def test_an_option_keeps_its_value_in_either_spelling(option: str) -> None:
    name = option.replace("=", " ").split()[0]
    request = parse_request([*option.split(), "method=my"])
    assert request.hydra_arguments() == ["method=my", name, "mine"]
    assert request.option(CONFIG_DIR) == "mine"


def test_an_option_that_is_not_there_has_no_value() -> None:
    assert parse_request(["method=fgm", "-m"]).option(CONFIG_DIR) is None


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
    assert arguments_of(["-m", "d=4", *show]) == ["d=4", *show]


@pytest.mark.parametrize(
    ("typed", "rewritten"),
    [
        ("graph=true", "graph='true'"),
        ("graph=True", "graph='true'"),
        ("graph=stein,true,empty", "graph=stein,'true',empty"),
        ("graph='true'", "graph='true'"),
        ("graph=choice(true,stein)", "graph=choice('true',stein)"),
        ("graph=untrue", "graph=untrue"),
        ("graph.alpha=0.1", "graph.alpha=0.1"),
        ("plan=true", "plan=true"),
    ],
)
def test_the_graph_true_is_a_name(typed: str, rewritten: str) -> None:
    assert to_hydra(typed) == rewritten
    assert arguments_of([typed]) == [rewritten]


def test_an_unknown_option_is_named() -> None:
    with pytest.raises(UsageError, match="there is no option '--seed'; --help lists what there is"):
        arguments_of(["--seed=3"])


@pytest.mark.parametrize(
    ("typed", "seeds"),
    [
        ("seed=0-49", "0-49"),
        ("seed=0-9,20-24", "0-9,20-24"),
        ("seed=1,2,3", "1-3"),
        ("seed=7", "7"),
        ("seed='0-4'", "0-4"),
        ('seed="0-4"', "0-4"),
        ("++seed=0-1", "0-1"),
        ("seed=range(0,5)", "0-4"),
        ("seed=range(0,9,4)", "0,4,8"),
        ("seed=choice(1,2)", "1-2"),
        ("seed=choice('0-4',9)", "0-4,9"),
        ("seed=[0,1]", "0-1"),
        ("seed=range(0,9999999)", "0-9999998"),
    ],
)
def test_seeds_are_read_in_every_notation(typed: str, seeds: str) -> None:
    request = parse_request(["d=4", typed, "-m"])
    assert str(request.seeds) == seeds
    assert request.overrides == ("d=4",)
    assert request.hydra_arguments() == ["d=4", f"seed='{seeds}'", "-m"]


@pytest.mark.parametrize("typed", ["seeds_per_job=0-9", "task.seed=0-9", "d=0-9"])
def test_other_keys_are_left_alone(typed: str) -> None:
    request = parse_request([typed])
    assert (request.seeds, request.overrides) == (None, (typed,))


@pytest.mark.parametrize(
    "typed", ["seed=abc", "seed=", "seed=9-3", "seed=[a}]", "seed=glob(*)", "seed=range(8,8)"]
)
def test_bad_seeds_are_refused_before_hydra_sees_them(typed: str) -> None:
    with pytest.raises(UsageError, match="write seed="):
        arguments_of(["-m", typed])


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
        arguments_of(["d=4", *typed])
    assert str(raised.value).startswith(sentence)


@given(st.text(min_size=1).filter(lambda text: text.strip().lower() != "null" and text.strip()))
def test_hydra_reads_the_name_of_any_folder_as_it_was_typed(folder: str) -> None:
    if "${" in folder or folder[0] in "'\"":
        return  # an interpolation, or quoted already
    (word,) = parse_request([f"results_dir={folder}"]).overrides
    assert OverridesParser.create().parse_override(word).value() == folder


@pytest.mark.parametrize("at", [0, 1, 3])
@pytest.mark.parametrize("flags", [[], ["-m"], ["--config-dir", "x"], ["-m", "-cd", "y"]])
def test_options_may_stand_anywhere(flags: list[str], at: int) -> None:
    words = ["d=4", "task=chain", "n=30"]
    assert arguments_of([*words[:at], *flags, *words[at:]]) == [*words, *flags]


@given(st.lists(st.text(max_size=8), max_size=5))
def test_any_words_are_rewritten_or_refused(words: list[str]) -> None:
    try:
        ready = arguments_of(words)
    except UsageError:
        return
    assert len(ready) >= sum(not word.startswith("-") for word in words)


@pytest.mark.parametrize(
    ("typed", "rewritten"),
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
def test_settings_of_what_a_sweep_exchanges_wait_for_its_points(typed: str, rewritten: str) -> None:
    exchanged, _ = typed.split()
    assert arguments_of(["-m", *typed.split()]) == [exchanged, rewritten, "-m"]


def test_without_a_sweep_settings_are_left_as_they_are_typed() -> None:
    typed = ["method=ddom,mins", "method.training.steps=3"]
    assert arguments_of(typed) == typed
