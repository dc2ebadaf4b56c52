"""Errors that a user can act on, each one sentence: expected, got, remedy."""

import sysconfig
import traceback
from collections.abc import Mapping
from math import isfinite
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parent
LONGEST_MESSAGE = 2_000  # characters, for a terminal and for a stored reason
_LONGEST_LINE = 10_000  # characters of a traceback
_LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


class UsageError(ValueError):
    """The request cannot be carried out as written; the message says what to write instead."""


class OutputError(UsageError):
    """What a user's function returned cannot be used, for any seed."""


class StorageError(UsageError):
    """A file cannot be written, so no run that belongs there can be stored."""


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
    """Raise if a number, or any number inside a mapping or a list, is infinite or NaN."""
    if isinstance(value, Mapping):
        for key, item in value.items():
            check_finite(f"{name}.{key}", item)
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            check_finite(f"{name}[{index}]", item)
    elif isinstance(value, float) and not isfinite(value):
        raise UsageError(f"{name} must be a finite number, got {value}")


def read_message(error: BaseException) -> str:
    """Return the message of an error, cut if it is very long, also if reading it fails."""
    try:
        return str(error)[:LONGEST_MESSAGE]
    except KeyboardInterrupt:
        raise
    except BaseException:  # of a class that is not ours
        return "its message cannot be read"


def describe_error(error: BaseException) -> str:
    """Return the type of an error and the first line of its message."""
    return f"{type(error).__name__}: {read_message(error)}".splitlines()[0].removesuffix(": ")


def format_trace(error: BaseException) -> str:
    """Return the traceback of an error, its message cut if it is very long."""
    try:
        return "".join(line[:_LONGEST_LINE] for line in traceback.format_exception(error))
    except Exception:  # of a class that is not ours
        return "".join(traceback.format_tb(error.__traceback__))


def locate(error: BaseException) -> str:
    """Return file and line of the innermost frame of the user's own code.

    Frames of libraries are skipped; frames of this package count only if there are no others.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [(Path(frame.filename), frame.lineno) for frame in frames]
    places = [place for place in places if place[0].is_file()]  # not those of compiled code
    ours = [place for place in places if _lies_in(place[0], _PACKAGE)]
    own = [place for place in places if not is_library(place[0])]
    found = own or ours or places
    return "{}:{}".format(*found[-1]) if found else "an unknown place"


def is_library(file: Path) -> bool:
    """Return whether a file belongs to Python, to an installed package or to this one."""
    return any(_lies_in(file, folder) for folder in (_PACKAGE, *_LIBRARIES))


def _lies_in(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) or file.resolve().is_relative_to(folder)
