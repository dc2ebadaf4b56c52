"""The points of a sweep: every combination of the values that its keys are given, counted first."""

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from hydra.core.override_parser.types import Override, RangeSweep, ValueType

from ddobench import registry
from ddobench.cli.settings import MANY, WHOLE
from ddobench.errors import UsageError

_MOST_VALUES = 10 * MANY  # of one key


@dataclass(frozen=True)
class Product:
    """Every combination of the values that keys are given, and the seeds of all of them."""

    values: list[list[str]]  # of each key, as `key=value`
    seeds: list[str]  # as typed, empty if they are not
    left_out: list[str] = field(default_factory=list)  # what a glob names and is not installed

    @property
    def number(self) -> int:
        """How many combinations there are."""
        return math.prod(map(len, self.values))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return itertools.product(*self.values)


def multiply(overrides: Sequence[Override]) -> Product:
    """Return what the overrides of a sweep come to; a later one replaces an earlier of its key."""
    swept: dict[str, list[str]] = {}
    left_out: dict[str, list[str]] = {}
    for override in overrides:
        key = override.get_key_element()
        if "." not in key:  # a key of the top exists: there is nothing to add
            key = key.lstrip("+")
        lacks = _lacks(override)
        values = [value for value in _values(override, key) if value not in lacks]
        left_out[key] = [f"{key}={name} is left out: {lack}" for name, lack in lacks.items()]
        if not values:
            raise UsageError(left_out[key][0])
        swept[key] = [f"{key}={value}" for value in values]
    seeds = [word.partition("=")[2] for word in swept.pop("seed", [])]
    return Product(list(swept.values()), seeds, list(itertools.chain(*left_out.values())))


def _lacks(override: Override) -> dict[str, str]:
    """Return which options of a glob cannot be used here, and why; what is named is not left out.

    Whoever asks for everything asks for everything there is.
    """
    if override.value_type != ValueType.GLOB_CHOICE_SWEEP:
        return {}
    named = set(override.sweep_string_iterator())
    options = registry.entries(override.key_or_group)
    return {entry.name: entry.lack for entry in options if entry.lack and entry.name in named}


def _values(override: Override, key: str) -> list[str]:
    """Return the different values of an override."""
    if not override.is_sweep_override():
        return [override.get_value_element_as_str()]
    if key in WHOLE:
        raise UsageError(f"{key} holds for the whole sweep; give it one value")
    if not override.is_discrete_sweep():
        raise UsageError(f"{override.input_line} names no single values; write range or choice")
    value = override.value()
    if isinstance(value, RangeSweep):
        _check_range(value, override)
    found = dict.fromkeys(itertools.islice(override.sweep_string_iterator(), _MOST_VALUES))
    if not found:
        raise UsageError(_describe_nothing(override))
    return list(found)


def _check_range(span: RangeSweep, override: Override) -> None:
    """Raise for a range without an end, or one too long to be listed."""
    if not span.step:
        raise UsageError(f"{override.input_line} steps nowhere; write another step than 0")
    if not abs((span.stop or 0) - (span.start or 0)) / abs(span.step) < _MOST_VALUES:
        raise UsageError(f"{override.input_line} has more than {_MOST_VALUES} values; take fewer")


def _describe_nothing(override: Override) -> str:
    """Say that a list of values has come out empty, which Hydra takes for nothing said at all."""
    group = override.key_or_group
    names = [entry.name for entry in registry.entries(group)]
    remedy = f"there are {', '.join(names)}" if names else f"write {group}=VALUE or a wider range"
    return f"{override.input_line} names no {group} at all; {remedy}"
