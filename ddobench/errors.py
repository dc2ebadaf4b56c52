"""The one exception a user is meant to read: expected, got, remedy, in one sentence."""

from collections.abc import Mapping
from math import isfinite


class UsageError(ValueError):
    """The request cannot be carried out as written; the message says what to write instead."""


class StorageError(UsageError):
    """A file cannot be written; nothing whose result belongs there is worth computing."""


def check_whole(name: str, value: object, minimum: int, remedy: str = "") -> None:
    """Raise unless `value` is a whole number of at least `minimum`."""
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or value < minimum:  # type: ignore[operator]
        hint = f"; {remedy}" if remedy else ""
        raise UsageError(
            f"{name} must be a whole number of at least {minimum}, got {value!r}{hint}"
        )


def check_one_of(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Raise unless `value` is one of `choices`."""
    if value not in choices:
        raise UsageError(f"{name} must be one of {', '.join(choices)}, got {value!r}")


def check_truncation(percentile: float | None) -> None:
    """Raise unless a task can hide the values above this percentile; None hides nothing."""
    if percentile is not None and not 1.0 <= percentile < 100.0:
        raise UsageError(
            "task.truncate must be a percentile from 1 to below 100, "
            f"got {percentile}; use null to hide nothing"
        )


def check_finite(name: str, value: object) -> None:
    """Raise if a number, or any number inside a mapping or a list, is infinite or none at all."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            check_finite(f"{name}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_finite(f"{name}[{index}]", item)
    elif isinstance(value, float) and not isfinite(value):
        raise UsageError(f"{name} must be a finite number, got {value}")
