"""Rewrites the command line a user types into one that Hydra accepts.

Hydra's argument parser wants all overrides on one side of `-m` and takes `0-49` for a word. So
options go last, and seeds become one quoted word that our sweeper and job expand.
"""

import re
from collections.abc import Sequence

from ddobench.errors import UsageError
from ddobench.seeds import format_seeds, parse_seeds

MULTIRUN = ("-m", "--multirun")
CONFIG_DIR = ("-cd", "--config-dir")
SHOW_CONFIG = ("-c", "--cfg")
_WITH_VALUE = (
    *CONFIG_DIR, *SHOW_CONFIG, "-p", "--package", "-cp", "--config-path", "-cn", "--config-name",
    "--experimental-rerun",
)  # fmt: skip
_INFO = ("-i", "--info")
_FLAGS = (
    *MULTIRUN, *_INFO, "-r", "--run", "-h", "--help", "--hydra-help", "--version", "--resolve",
    "-sc", "--shell-completion",
)  # fmt: skip
QUOTES = "'\""
_SEED = re.compile(r"(\+{0,2}seed)=(.*)", re.DOTALL)
_GRAPH = re.compile(r"(graph)=(.*)", re.DOTALL)
_TRUE = re.compile(rf"(?<![{QUOTES}\w])true(?![{QUOTES}\w])", re.IGNORECASE)
_HYDRA_SYNTAX = re.compile(r"\w+\(.*\)|\[.*\]", re.DOTALL)


def split(arguments: Sequence[str]) -> tuple[list[str], dict[str, str | None]]:
    """Return the overrides in the order typed, and the options with their values."""
    overrides: list[str] = []
    options: dict[str, str | None] = {}
    rest = list(arguments)
    while rest:
        word = rest.pop(0)
        if not word.startswith("-"):
            overrides.append(word)
            continue
        name, equals, value = word.partition("=")
        if name not in _WITH_VALUE and name not in _FLAGS:
            raise UsageError(f"there is no option {name!r}; --help lists what there is")
        takes_value = name in _WITH_VALUE or (name in _INFO and rest and "=" not in rest[0])
        if equals:
            options[name] = value
        else:
            options[name] = rest.pop(0) if takes_value and rest else None
    return overrides, options


def normalise(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with overrides first, options last and seeds in Hydra's spelling."""
    overrides, options = split(arguments)
    if any(name in options for name in SHOW_CONFIG):
        options = {name: value for name, value in options.items() if name not in MULTIRUN}
    return [*map(spell, overrides), *_join(options)]


def _join(options: dict[str, str | None]) -> list[str]:
    return [word for pair in options.items() for word in pair if word is not None]


def spell(override: str) -> str:
    """Return an override in Hydra's spelling: seeds as one word, and no name taken for a truth."""
    match = _GRAPH.fullmatch(override)
    if match is not None:
        return match[1] + "=" + _TRUE.sub("'true'", match[2])
    return quote_seeds(override)


def quote_seeds(override: str) -> str:
    """Check a seed override and quote it, so that Hydra takes it for one word.

    The sweeper and the job expand it themselves: Hydra's parser is slow on long lists.
    """
    match = _SEED.fullmatch(override)
    if match is None or _HYDRA_SYNTAX.fullmatch(match[2].strip()):
        return override
    return f"{match[1]}='{format_seeds(parse_seeds(match[2].strip().strip(QUOTES)))}'"


def normalise_line(line: str) -> str:
    """Reorder a half-typed command line for tab completion: the word being typed stays last."""
    words = line.split(" ")
    program, typed, last = words[:1], [word for word in words[1:-1] if word], words[-1]
    try:
        overrides, options = split(typed)
    except UsageError:  # said when the line is sent off, not while it is typed
        return line
    return " ".join([*program, *_join(options), *overrides, last])


def option_value(arguments: Sequence[str], names: Sequence[str]) -> str | None:
    """Return the value given to an option, or None."""
    _, options = split(arguments)
    return next((options[name] for name in names if name in options), None)
