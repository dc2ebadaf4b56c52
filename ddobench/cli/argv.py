"""Rewrites the command line a user types into one that Hydra accepts.

Hydra's argument parser wants all overrides on one side of `-m` and takes `0-49` for a word. So
options go last, seeds become one quoted word that our sweeper and job expand, the name of a
folder is quoted too, whatever is in it, and settings of what a sweep exchanges wait for its points.
"""

import re
from collections.abc import Sequence

from ddobench.errors import UsageError
from ddobench.registry import PARTS, TRAINING
from ddobench.seeds import format_seeds, parse_seeds

MULTIRUN = ("-m", "--multirun")
CONFIG_DIR = ("-cd", "--config-dir")
SHOW_CONFIG = ("-c", "--cfg")
HELP = ("-h", "--help")
VERSION = ("--version",)
COMPLETION = ("-sc", "--shell-completion")
_RUN = ("-r", "--run")
_INFO = ("-i", "--info")
_PACKAGE = ("-p", "--package")
_RESOLVE = ("--resolve",)
_HYDRA_HELP = ("--hydra-help",)
_OPTIONS = (
    MULTIRUN, CONFIG_DIR, SHOW_CONFIG, HELP, VERSION, COMPLETION, _RUN, _INFO, _PACKAGE, _RESOLVE,
    _HYDRA_HELP,
)  # fmt: skip
_WITH_VALUE = (CONFIG_DIR, SHOW_CONFIG, _PACKAGE)
_WITH_PERHAPS = (_INFO,)
_CHOICES: dict[tuple[str, ...], tuple[str, ...]] = {
    SHOW_CONFIG: ("job", "hydra", "all"),
    _INFO: ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
_EXAMPLES: dict[tuple[str, ...], str] = {CONFIG_DIR: "FOLDER", _PACKAGE: "method"}
_ONE_OF = (MULTIRUN, _RUN, SHOW_CONFIG, _INFO, COMPLETION)  # what is to be done
_ONLY_WITH_CONFIG = (_PACKAGE, _RESOLVE)

QUOTES = "'\""
FOLDERS = ("results_dir", "report_dir")  # keys whose value is a folder
_SEED = re.compile(r"(\+{0,2}seed)=(.*)", re.DOTALL)
_RANGE = re.compile(r"range\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FOLDER = re.compile(rf"(\+{{0,2}}(?:{'|'.join(FOLDERS)}))=(.*)", re.DOTALL)
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
        names = _names(name)
        perhaps = names in _WITH_PERHAPS and rest and "=" not in rest[0]
        takes_value = names in _WITH_VALUE or perhaps
        if takes_value and name in options:
            raise UsageError(f"{name} is given twice; keep one")
        if equals:
            options[name] = value
        else:
            options[name] = rest.pop(0) if takes_value and rest else None
    return overrides, options


def _names(name: str) -> tuple[str, ...]:
    """Return all names of an option."""
    for names in _OPTIONS:
        if name in names:
            return names
    raise UsageError(f"there is no option {name!r}; --help lists what there is")


def normalise(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with overrides first, options last and values in Hydra's spelling."""
    overrides, options = split(arguments)
    if any(name in options for name in SHOW_CONFIG):
        options = {name: value for name, value in options.items() if name not in MULTIRUN}
    _check(options)
    spelled = [*map(spell, overrides)]
    if any(name in options for name in MULTIRUN):
        spelled = _defer(spelled)
    return [*spelled, *_join(options)]


def _check(options: dict[str, str | None]) -> None:
    """Raise unless every option has a value that it can have, and they go together."""
    given = {_names(name): (name, value) for name, value in options.items()}
    if len(given) < len(options):
        twice = next(name for name in options if given[_names(name)][0] != name)
        raise UsageError(f"{twice} and {given[_names(twice)][0]} are the same option; keep one")
    for names, (name, value) in given.items():
        if names in _WITH_VALUE and (not value or value.startswith("-")):
            raise UsageError(f"{name} needs a value; write {name} {_example(names)}")
        if names not in (*_WITH_VALUE, *_WITH_PERHAPS) and value is not None:
            raise UsageError(f"{name} takes no value, got {value!r}; write {name} alone")
        choices = _CHOICES.get(names)
        if choices and value is not None and value not in choices:
            raise UsageError(f"{name} takes one of {', '.join(choices)}, got {value!r}")
    deeds = [given[names][0] for names in _ONE_OF if names in given]
    if len(deeds) > 1:
        raise UsageError(f"{deeds[0]} and {deeds[1]} exclude each other; keep one")
    for names in _ONLY_WITH_CONFIG:
        if names in given and SHOW_CONFIG not in given:
            raise UsageError(f"{given[names][0]} is for {SHOW_CONFIG[-1]} job; add that")


def _example(names: tuple[str, ...]) -> str:
    return _CHOICES[names][0] if names in _CHOICES else _EXAMPLES[names]


def _join(options: dict[str, str | None]) -> list[str]:
    return [word for pair in options.items() for word in pair if word is not None]


def spell(override: str) -> str:
    """Return an override in Hydra's spelling: seeds and folders quoted, `true` a graph's name.

    `training=NAME` is the training of the surrogate.
    """
    if override.startswith(f"{TRAINING}="):
        return f"{TRAINING}@surrogate.{override}"
    if match := _GRAPH.fullmatch(override):
        return match[1] + "=" + _TRUE.sub("'true'", match[2])
    if match := _FOLDER.fullmatch(override):
        return f"{match[1]}={_quote_folder(match[2])}"
    return quote_seeds(override)


def _quote_folder(folder: str) -> str:
    """Quote a folder, so that Hydra takes it for one word; null and nothing are left as typed."""
    from hydra.core.override_parser.types import Quote, QuotedString

    quoted = len(folder) > 1 and folder[0] == folder[-1] and folder[0] in QUOTES
    if quoted or folder.strip().lower() in ("", "null"):
        return folder
    return QuotedString(text=folder, quote=Quote.single).with_quotes()


def _defer(overrides: Sequence[str]) -> list[str]:
    """Let the settings of what a sweep exchanges be settings of its points, as one value of many.

    Hydra composes once without what is swept, and there the usual choice may lack such a key:
    `method=ddom,mins method.training.steps=3`. A method also chooses its parts.
    """
    keys = [_key_of(override) for override in overrides]
    dotted = {key.split(".")[0] for key in keys if "." in key}
    groups = dotted | ({"method"} if dotted & {*PARTS} else set())
    candidates = [o for o, key in zip(overrides, keys, strict=True) if key in groups]
    swept = {_key_of(override) for override in candidates if _sweeps(override)}
    swept |= {*PARTS} if "method" in swept else set()
    return [
        _as_choice(override) if "." in key and key.split(".")[0] in swept else override
        for override, key in zip(overrides, keys, strict=True)
    ]


def _key_of(override: str) -> str:
    return override.partition("=")[0].strip().lstrip("+")


def _as_choice(override: str) -> str:
    key, _, value = override.partition("=")
    return override if _sweeps(override) else f"{key}=choice({value})"


def _sweeps(override: str) -> bool:
    """Tell whether an override names several values; what cannot be read is left to Hydra."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(override).is_sweep_override()
    except HydraException:
        return True


def quote_seeds(override: str) -> str:
    """Check a seed override and quote it, so that Hydra takes it for one word.

    The sweeper and the job expand it themselves: Hydra's parser is slow on long lists.
    """
    match = _SEED.fullmatch(override)
    if match is None:
        return override
    typed = match[2].strip()
    span = _RANGE.fullmatch(typed)
    if span and int(span[1]) < int(span[2]):
        typed = f"{span[1]}-{int(span[2]) - 1}"
    elif _HYDRA_SYNTAX.fullmatch(typed):
        return override
    return f"{match[1]}='{format_seeds(parse_seeds(typed.strip(QUOTES)))}'"


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
