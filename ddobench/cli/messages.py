"""Turns the errors of Hydra, OmegaConf, YAML and files into one sentence a user can act on."""

import re
import traceback
from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

import hydra
import omegaconf
import yaml
from hydra.errors import HydraException
from omegaconf.errors import OmegaConfBaseException

from ddobench import registry
from ddobench.errors import UsageError


def explain(error: BaseException, config_name: str = "run") -> str | None:
    """Return one sentence about an error of the request, None for an error of the program."""
    if isinstance(error, UsageError):
        return str(error)
    text = str(error)
    if isinstance(error, ValueError) and text.startswith("Config group override must be"):
        return "a group such as task or method takes a name; --help lists those there are"
    if isinstance(error, ValueError) and text.startswith("Exceeds the limit"):
        return "a number has more digits than can be read; write a shorter one"
    if isinstance(error, RecursionError):
        return "the request is nested too deeply to be read; write it with fewer brackets"
    if isinstance(error, yaml.YAMLError | UnicodeDecodeError):
        return next((reason for _, reason in registry.unreadable()), None)
    if isinstance(error, OSError) and error.filename is not None:
        return f"{error.filename} cannot be used: {error.strerror}"
    if not isinstance(error, HydraException | OmegaConfBaseException):
        first = text.splitlines()[0] if text else type(error).__name__
        return f"this cannot be composed: {first}" if _raised_while_composing(error) else None
    for pattern, format_message in _PATTERNS:
        match = pattern.search(text)
        if match:
            return format_message(match, config_name)
    if error.__cause__ is not None and (cause := explain(error.__cause__, config_name)):
        return cause
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def _raised_while_composing(error: BaseException) -> bool:
    """Return whether Hydra or OmegaConf raised an error, as they do on files of odd shapes."""
    frames = traceback.extract_tb(error.__traceback__)
    return bool(frames) and any(
        Path(frames[-1].filename).is_relative_to(folder) for folder in _COMPOSERS
    )


def _no_option(match: re.Match[str], _: str) -> str:
    group, name, listed = match["group"], match["name"], match["options"].split()
    own = "; your own come with --config-dir FOLDER" if group in ("task", "method") else ""
    known = ", ".join(listed)
    return f"there is no {group} {name!r}{suggest(name, listed)}; there are {known}{own}"


def _no_key(match: re.Match[str], config_name: str) -> str:
    key = match["key"]
    keys = registry.top_keys(config_name)
    if key in keys:
        return f"{key} takes one name, or several with -m, as in {key}=a,b; --help lists them"
    group, dot, _ = key.partition(".")
    if key.startswith(f"{registry.TRAINING}@"):
        return "this surrogate is not trained by minibatches; leave out training="
    if dot:
        known = [f"{group}.{name}" for name in registry.parameters(group)]
        known += [f"{group}.training.{name}" for name in registry.parameters("training")]
        return f"there is no key {key!r}{suggest(key, known)}; --cfg job lists those there are"
    return f"there is no key {key!r}{suggest(key, keys)}; the keys are {', '.join(keys)}"


def _no_file(match: re.Match[str], _: str) -> str:
    return f"the folder given by --config-dir does not exist, got {match['folder']}"


def _needs_sweep(match: re.Match[str], _: str) -> str:
    return f"{match['override']} is a sweep; add -m to run it"


def _bad_syntax(match: re.Match[str], _: str) -> str:
    why = re.sub(r"^\w+ while evaluating '.*?': ", "", match["why"])
    return f"{match['override']!r} cannot be read as key=value ({why})"


def _unfinished(match: re.Match[str], _: str) -> str:
    return f"{match['value']!r} cannot be read as a value; close its brackets and quotes"


def _no_name(match: re.Match[str], _: str) -> str:
    names = ", ".join(entry.name for entry in registry.entries(match["group"]))
    return f"there is no {match['group']} {match['name']!r}; there are {names}"


def _not_built(match: re.Match[str], _: str) -> str:
    return f"{match['target']} cannot be built: {match['why']}"


def _unquoted(match: re.Match[str], _: str) -> str:
    key, equals, value = match["override"].partition("=")
    if not equals:
        return f"{key!r} cannot be read as key=value"
    return f"{value!r} cannot be read as a value of {key}; quote it twice, as in \"{key}='...'\""


def suggest(word: str, known: Sequence[str]) -> str:
    """Return a remark on the most similar of the known words, empty if there is none."""
    others = [name for name in known if name != word]
    near = get_close_matches(word, others, n=1, cutoff=_SIMILARITY)
    return f" (did you mean {near[0]!r}?)" if near else ""


_COMPOSERS = [Path(str(package.__file__)).parent for package in (hydra, omegaconf)]
_SIMILARITY = 0.65  # fmg is similar to fgm (0.67), mine is not to linear (0.6)

_PATTERNS = (
    (
        re.compile(
            r"Could not find '(?P<group>\w+(?:/\w+)?)/(?P<name>[^']+)'\s+"
            r"Available options in '[^']*':\s+(?P<options>.*?)(?:\n\S|\Z)",
            re.DOTALL,
        ),
        _no_option,
    ),
    (re.compile(r"Could not find '(?P<group>\w+)/(?P<name>[^']*)'"), _no_name),
    (re.compile(r"Error in call to target '(?P<target>[^']*)':\s*(?P<why>[^\n]*)"), _not_built),
    (re.compile(r"LexerNoViableAltException: (?P<override>.*)", re.DOTALL), _unquoted),
    (re.compile(r"Could not (?:override|delete) '(?P<key>[^']*)'"), _no_key),
    (re.compile(r"Key '(?P<key>[^']*)' is not in struct"), _no_key),
    (re.compile(r"Additional config directory '(?P<folder>[^']*)' not found"), _no_file),
    (re.compile(r"Sweep parameters '(?P<override>[^']*)' requires --multirun"), _needs_sweep),
    (re.compile(r"Ambiguous value for argument '(?P<override>[^']*)'"), _needs_sweep),
    (re.compile(r"no viable alternative at input '(?P<value>.*)'"), _unfinished),
    (re.compile(r"Error parsing override '(?P<override>[^']*)'\n(?P<why>[^\n]*)"), _bad_syntax),
)
