"""Turns the errors of Hydra and OmegaConf into one sentence a user can act on."""

import re
from collections.abc import Sequence
from difflib import get_close_matches

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
    if not isinstance(error, HydraException | OmegaConfBaseException):
        return None
    for pattern, say in _PATTERNS:
        match = pattern.search(text)
        if match:
            return say(match, config_name)
    if error.__cause__ is not None and (cause := explain(error.__cause__, config_name)):
        return cause
    return next((line.strip() for line in text.splitlines() if line.strip()), type(error).__name__)


def _no_option(match: re.Match[str], _: str) -> str:
    group, name, listed = match["group"], match["name"], match["options"].split()
    return f"there is no {group} {name!r}{_suggest(name, listed)}; there are {', '.join(listed)}"


def _no_key(match: re.Match[str], config_name: str) -> str:
    key = match["key"]
    keys = registry.top_keys(config_name)
    if key in keys:
        return f"{key} takes one name, or several with -m, as in {key}=a,b; --help lists them"
    group, dot, _ = key.partition(".")
    if renamed := _new_spelling(key):
        return f"there is no key {key!r} any more; write {renamed}"
    if dot:
        known = [f"{group}.{name}" for name in registry.parameters(group)]
        return f"there is no key {key!r}{_suggest(key, known)}; --cfg job lists those there are"
    return f"there is no key {key!r}{_suggest(key, keys)}; the keys are {', '.join(keys)}"


def _new_spelling(key: str) -> str | None:
    """Return what replaced a parameter of a method that belongs to one of its parts now."""
    for old, new in _MOVED.items():
        if key == old or key.startswith(f"{old}."):
            return new + key.removeprefix(old)
    return None


def _no_file(match: re.Match[str], _: str) -> str:
    return f"the folder given by --config-dir does not exist, got {match['folder']}"


def _needs_sweep(match: re.Match[str], _: str) -> str:
    return f"{match['override']} is a sweep; add -m to run it"


def _bad_syntax(match: re.Match[str], _: str) -> str:
    return f"{match['override']!r} cannot be read as key=value ({match['why']})"


def _unfinished(match: re.Match[str], _: str) -> str:
    return f"{match['value']!r} cannot be read as a value; close its brackets and quotes"


def _suggest(word: str, known: Sequence[str]) -> str:
    near = get_close_matches(word, [name for name in known if name != word], n=1)
    return f" (did you mean {near[0]!r}?)" if near else ""


# Where the parameters of a method went when methods became line-ups of parts.
_MOVED = {
    "method.ascent": "search",
    "method.training": "surrogate.training",
    **{
        f"method.{name}": f"surrogate.{name}"
        for name in (
            "width", "depth", "ensemble", "aggregate", "kappa", "alpha", "alpha_rate", "limit",
            "negative_steps", "negative_rate",
        )
    },
    **{
        f"method.{name}": f"search.{name}"
        for name in ("steps", "rate", "root_d", "temperature", "normalise", "record_every")
    },
}  # fmt: skip

_PATTERNS = (
    (
        re.compile(
            r"Could not find '(?P<group>[\w/]+)/(?P<name>[^'/]+)'\s+"
            r"Available options in '[^']*':\s+(?P<options>.*?)(?:\n\S|\Z)",
            re.DOTALL,
        ),
        _no_option,
    ),
    (re.compile(r"Could not (?:override|delete) '(?P<key>[^']*)'"), _no_key),
    (re.compile(r"Key '(?P<key>[^']*)' is not in struct"), _no_key),
    (re.compile(r"Additional config directory '(?P<folder>[^']*)' not found"), _no_file),
    (re.compile(r"Sweep parameters '(?P<override>[^']*)' requires --multirun"), _needs_sweep),
    (re.compile(r"Ambiguous value for argument '(?P<override>[^']*)'"), _needs_sweep),
    (re.compile(r"no viable alternative at input '(?P<value>.*)'"), _unfinished),
    (re.compile(r"Error parsing override '(?P<override>[^']*)'\n(?P<why>[^\n]*)"), _bad_syntax),
)
