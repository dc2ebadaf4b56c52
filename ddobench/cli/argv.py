"""What a user types, read once into a `Request` that the command line, sweeper and jobs share.

Hydra's argument parser wants all overrides on one side of `-m` and reads `0-49` as a word. So
options go last, seeds are taken out, and folders are quoted. Hydra would let any of its own
settings be overridden, some of which write files elsewhere or call any function; here only those
of a launcher may be typed.
"""

import argparse
import contextlib
import errno
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from ddobench import registry
from ddobench.errors import UsageError
from ddobench.registry import PARTS, TRAINING
from ddobench.seeds import Seeds, parse_seeds

if TYPE_CHECKING:
    from omegaconf import DictConfig  # the help does not need it

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
_OPTIONAL_VALUE = (_INFO,)
_CHOICES: dict[tuple[str, ...], tuple[str, ...]] = {
    SHOW_CONFIG: ("job", "hydra", "all"),
    _INFO: ("all", "config", "defaults", "defaults-tree", "plugins", "searchpath"),
}
_EXAMPLES: dict[tuple[str, ...], str] = {CONFIG_DIR: "FOLDER", _PACKAGE: "method"}
_ACTIONS = (MULTIRUN, _RUN, SHOW_CONFIG, _INFO, COMPLETION)  # at most one of them
_ONLY_WITH_CONFIG = (_PACKAGE, _RESOLVE)
_SHELLS = ("bash", "zsh", "fish")
_LAUNCHER = ("hydra/launcher", "hydra.launcher.", "hydra.job.env_set.", "hydra.job.env_copy")

DEFAULT_RESULTS = "results/runs"
MANY = 10_000  # runs that need no confirmation
LISTED = 1_000  # points that a plan lists
FOLDERS = ("results_dir", "report_dir")  # keys whose value is a folder
WHOLE_SWEEP = (
    "plan", "describe", "many", "results_dir", "seeds_per_job", "memory_gb", "isolate",
    "experiment", "suite",
)  # fmt: skip
QUOTES = "'\""
_SEED = re.compile(r"\+{0,2}seed=(.*)", re.DOTALL)
_RANGE = re.compile(r"range\(\s*(\d+)\s*,\s*(\d+)\s*\)")
_FOLDER = re.compile(rf"(\+{{0,2}}(?:{'|'.join(FOLDERS)}))=(.*)", re.DOTALL)
_GRAPH = re.compile(r"(graph)=(.*)", re.DOTALL)
_TRUE = re.compile(rf"(?<![{QUOTES}\w])true(?![{QUOTES}\w])", re.IGNORECASE)
_CANNOT_WRITE = (errno.ENOSPC, errno.EDQUOT, errno.EIO)
_HYDRA_SYNTAX = re.compile(r"\w+\(.*\)|\[.*\]", re.DOTALL)


@dataclass(frozen=True)
class Request:
    """A command line after reading. Launchers send it to their workers with the job."""

    command: str  # as typed, for the records
    overrides: tuple[str, ...]  # as Hydra reads them, without the seeds
    seeds: Seeds | None  # None: not typed
    options: Mapping[str, str | None]

    def option(self, names: Sequence[str]) -> str | None:
        """Return the value of an option, None if it has none or was not typed."""
        return next((self.options[name] for name in names if name in self.options), None)

    def has(self, names: Sequence[str]) -> bool:
        """Return whether an option was typed, under any of its names."""
        return any(name in self.options for name in names)

    def hydra_arguments(self) -> list[str]:
        """Return the arguments for Hydra's own parser."""
        seeds = [] if self.seeds is None else [f"seed='{self.seeds}'"]
        return [*self.overrides, *seeds, *_join(self.options)]


def parse_request(words: Sequence[str], config_name: str = "run", command: str = "") -> Request:
    """Read the words of a command line, or raise one sentence about what is wrong with them."""
    overrides, options = split(words)
    if any(name in options for name in COMPLETION):
        _check_completion(overrides)
        return Request(command, tuple(overrides), None, options)
    if any(name in options for name in SHOW_CONFIG):
        options = {name: value for name, value in options.items() if name not in MULTIRUN}
    _check_options(options)
    seeds = [match[1] for match in map(_SEED.fullmatch, overrides) if match]
    parsed = [read_seeds(text) for text in seeds]
    others = [to_hydra(word) for word in overrides if not _SEED.fullmatch(word)]
    if any(name in options for name in MULTIRUN):
        others = _defer(others)
    check_overrides(overrides, config_name)
    return Request(command, tuple(others), parsed[0] if parsed else None, options)


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
        optional = names in _OPTIONAL_VALUE and rest and "=" not in rest[0]
        takes_value = names in _WITH_VALUE or optional
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


def _check_options(options: Mapping[str, str | None]) -> None:
    """Raise unless every option has a possible value and they go together."""
    given = {_names(name): (name, value) for name, value in options.items()}
    if len(given) < len(options):
        twice = next(name for name in options if given[_names(name)][0] != name)
        raise UsageError(f"{twice} and {given[_names(twice)][0]} are the same option; keep one")
    for names, (name, value) in given.items():
        choices = _CHOICES.get(names)
        if names in _WITH_VALUE and (not value or value.startswith("-")):
            example = choices[0] if choices else _EXAMPLES[names]
            raise UsageError(f"{name} needs a value; write {name} {example}")
        if names not in (*_WITH_VALUE, *_OPTIONAL_VALUE) and value is not None:
            raise UsageError(f"{name} takes no value, got {value!r}; write {name} alone")
        if choices and value is not None and value not in choices:
            raise UsageError(f"{name} takes one of {', '.join(choices)}, got {value!r}")
    actions = [given[names][0] for names in _ACTIONS if names in given]
    if len(actions) > 1:
        raise UsageError(f"{actions[0]} and {actions[1]} exclude each other; keep one")
    for names in _ONLY_WITH_CONFIG:
        if names in given and SHOW_CONFIG not in given:
            raise UsageError(f"{given[names][0]} is for {SHOW_CONFIG[-1]} job; add that")


def _join(options: Mapping[str, str | None]) -> list[str]:
    return [word for pair in options.items() for word in pair if word is not None]


def read_seeds(text: str) -> Seeds:
    """Read seeds as typed or written in an experiment: 0-9,20-24, range(0,5), choice(1,2), [1,2].

    Plain lists and ranges are read here, as Hydra's parser is slow on long lists.
    """
    text = text.strip()
    span = _RANGE.fullmatch(text)
    if span and int(span[1]) < int(span[2]):
        return parse_seeds(f"{span[1]}-{int(span[2]) - 1}")
    if not _HYDRA_SYNTAX.fullmatch(text):
        return parse_seeds(text.strip(QUOTES))
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    from ddobench.cli.plan import list_values

    try:
        values = list_values(OverridesParser.create().parse_override(f"seed={text}"))
    except HydraException:
        return parse_seeds(text)  # whose error has the remedy
    return parse_seeds(",".join(value.strip("[]" + QUOTES) for value in values))


def configured_seeds(cfg: "DictConfig") -> Seeds:
    """Return the seeds of a composed configuration."""
    from omegaconf import OmegaConf

    return parse_seeds(OmegaConf.to_object(cfg.seed) if OmegaConf.is_list(cfg.seed) else cfg.seed)


def to_hydra(override: str) -> str:
    """Return an override as Hydra reads it: folders quoted, `true` the name of a graph.

    `training=NAME` is the training of the surrogate.
    """
    if override.startswith(f"{TRAINING}="):
        return f"{TRAINING}@surrogate.{override}"
    if match := _GRAPH.fullmatch(override):
        return match[1] + "=" + _TRUE.sub("'true'", match[2])
    if match := _FOLDER.fullmatch(override):
        return f"{match[1]}={_quote_folder(match[2])}"
    return override


def _quote_folder(folder: str) -> str:
    """Quote a folder, so that Hydra reads it as one word; null and nothing are left as typed."""
    from hydra.core.override_parser.types import Quote, QuotedString

    quoted = len(folder) > 1 and folder[0] == folder[-1] and folder[0] in QUOTES
    if quoted or folder.strip().lower() in ("", "null"):
        return folder
    return QuotedString(text=folder, quote=Quote.single).with_quotes()


def _defer(overrides: Sequence[str]) -> list[str]:
    """Turn the settings of swept groups into settings of the points, as a choice of one value.

    Hydra first composes without what is swept, and there the default option may not have such a
    key: `method=ddom,mins method.training.steps=3`. A method also chooses its parts.
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
    """Return whether an override has several values; one that cannot be read is left to Hydra."""
    from hydra.core.override_parser.overrides_parser import OverridesParser
    from hydra.errors import HydraException

    try:
        return OverridesParser.create().parse_override(override).is_sweep_override()
    except HydraException:
        return True


def check_overrides(words: Sequence[str], config_name: str) -> None:
    """Raise for a word that Hydra would read as more than a value of an existing key."""
    known, groups = registry.top_keys(config_name), registry.usual_choices(config_name)
    seen: dict[str, str] = {}
    for word in words:
        key, equals, value = word.partition("=")
        if word.startswith("~"):
            raise UsageError(f"{word!r} would leave a key out; give it another value instead")
        if not equals or not key.strip():
            raise UsageError(f"{word!r} cannot be read as key=value")
        key = _key_of(word)
        if key in seen:
            raise UsageError(f"{key} is given twice, {seen[key]} and {word}; keep one")
        seen[key] = word
        top = key.split(".")[0].split("/")[0]
        if top == "hydra":
            adds = word.startswith("+") and not key.startswith("hydra.job.env_set.")
            if not key.startswith(_LAUNCHER) or key.endswith("._target_") or adds:
                raise UsageError(
                    f"{key} is not for the command line; of Hydra's own keys it takes "
                    "hydra/launcher, hydra.launcher.KEY, +hydra.job.env_set.KEY and "
                    "hydra.job.env_copy"
                )
        elif key in groups and value.lstrip().startswith(("[", "{")):
            raise UsageError(
                f"{key} takes one name, or several with -m, as in {key}=a,b; --help lists them"
            )
        elif word.startswith("+") and top not in known:
            raise UsageError(f"there is no key {key!r} to add; the keys are {', '.join(known)}")


def _check_completion(words: Sequence[str]) -> None:
    """Raise unless exactly one shell is named."""
    action, _, shell = words[0].partition("=") if len(words) == 1 else ("", "", "")
    if action not in ("install", "uninstall", "query") or shell not in _SHELLS:
        raise UsageError(
            f"-sc takes install=SHELL or uninstall=SHELL, SHELL one of {', '.join(_SHELLS)}"
        )


def normalise_line(line: str) -> str:
    """Reorder a half-typed command line for tab completion: the word being typed stays last."""
    words = line.split(" ")
    program, typed, last = words[:1], [word for word in words[1:-1] if word], words[-1]
    try:
        overrides, options = split(typed)
    except UsageError:  # reported when the line is sent, not while it is typed
        return line
    return " ".join([*program, *_join(options), *overrides, last])


@dataclass(frozen=True)
class Settings:
    """The keys that hold for a whole command: where results go, and whether to run."""

    results: Path
    plan: bool
    many: bool
    describe: bool = False

    def check_number(self, runs: int) -> None:
        """Raise if there are so many runs that `many=true` is needed."""
        if runs > MANY and not (self.plan or self.many):
            raise UsageError(
                f"{runs} runs are more than {MANY}; plan=true lists them, many=true runs them"
            )


def read_settings(cfg: "DictConfig") -> Settings:
    """Read them from a composed configuration."""
    for name in ("plan", "describe", "many"):
        if not isinstance(cfg[name], bool):
            raise UsageError(f"{name} must be true or false, got {cfg[name]!r}")
    return Settings(read_folder(cfg.results_dir), cfg.plan, cfg.many, cfg.describe)


def read_folder(value: object, key: str = "results_dir") -> Path:
    """Return the folder that the value of a key names; `~` is the home folder."""
    if not isinstance(value, str | Path) or not str(value).strip():
        got = "null" if value is None else repr(value)
        raise UsageError(f"{key} must be a folder, got {got}; write {key}=FOLDER")
    if "\0" in str(value):
        raise UsageError(f"{key} must be a folder, got a name with a zero byte in it")
    try:
        return Path(value).expanduser()
    except RuntimeError as error:  # no such user
        raise UsageError(f"{key} must be a folder, got {str(value)!r}: {error}") from error


class JobError(BaseException):
    """Holds the error of a single run; not an Exception, as Hydra prints a line about these."""

    def __init__(self, error: Exception) -> None:
        super().__init__(error)
        self.error = error


class SentenceParser(argparse.ArgumentParser):
    """Reads the options of a command line without Hydra, and reports errors as the others do."""

    def error(self, message: str) -> NoReturn:
        """Print one sentence and exit."""
        complain(f"{message}; --help shows how to write it")


def complain(sentence: str) -> NoReturn:
    """Print what is wrong with a request in one line, and exit with code 2."""
    one_line = "; ".join(filter(None, map(str.strip, sentence.splitlines())))
    print(f"ddobench: {one_line}", file=sys.stderr)
    raise SystemExit(2) from None


@contextlib.contextmanager
def quiet_output() -> Iterator[None]:
    """End without a traceback if what is printed has nowhere to go; also a decorator.

    The reader of stdout may have gone, as in `ddobench --help | head -1`, or its device is full.
    """
    try:
        try:
            yield
        finally:
            if sys.stdout is not None:
                sys.stdout.flush()
    except OSError as error:
        closed = isinstance(error, BrokenPipeError)
        if not (closed or cannot_print(error)):
            raise
        # Python would flush once more at its end, and complain.
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        if closed:
            os.dup2(nowhere, sys.stderr.fileno())  # perhaps the same pipe
            raise SystemExit(141) from None  # as if ended by SIGPIPE
        print(f"ddobench: the output cannot be written: {error.strerror}; make room, or send it "
              "elsewhere", file=sys.stderr)  # fmt: skip
        raise SystemExit(1) from None


def cannot_print(error: OSError) -> bool:
    """Return whether an error says that the device of an open file, such as stdout, is full."""
    return error.errno in _CANNOT_WRITE and error.filename is None
