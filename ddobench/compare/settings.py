"""What else differs between two sides: settings, versions, machines."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import pandas as pd

from ddobench.compare.sides import Side

ABSENT = "not there"
_MOST_VALUES = 3
_LONGEST = 40  # characters of a value

Change = tuple[str, str, str]  # the dotted name of a setting, what it was, what it is


def flatten(nested: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, str]]:
    """Yield every setting under its dotted name, spelled."""
    for name, value in nested.items():
        if isinstance(value, Mapping) and value:
            yield from flatten(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", str(value)


def changed_settings(before: Iterable[Any], after: Iterable[Any]) -> list[Change]:
    """Return what differs between two collections of nested settings, by dotted name."""
    first, second = _gather(before), _gather(after)
    return [
        (name, _format(first.get(name, {ABSENT})), _format(second.get(name, {ABSENT})))
        for name in sorted({*first, *second})
        if first.get(name) != second.get(name)
    ]


def config_changes(row: Mapping[Any, Any], a: Side, b: Side) -> list[Change]:
    """Return how the configurations of one line of the table differ."""
    before, after = row["digests_a"].split(), row["digests_b"].split()
    if not before or not after or before == after:
        return []
    known = [a.configs.get(name) for name in before], [b.configs.get(name) for name in after]
    if not all(any(configs) for configs in known):
        return []
    found = changed_settings(*(filter(None, configs) for configs in known))
    return found or [("the version of a class in it", before[0][:8], after[0][:8])]


def origin_changes(matched: pd.DataFrame, a: Side, b: Side) -> list[Change]:
    """Return how the versions and machines behind the runs that both sides have differ."""
    shared = matched[matched["in"] == "both"]
    before, after = (
        [side.provenance[path] for path in shared[f"path_{name}"] if path in side.provenance]
        for side, name in ((a, "a"), (b, "b"))
    )
    return changed_settings(before, after) if before and after else []


def _gather(collection: Iterable[Mapping[str, Any]]) -> dict[str, set[str]]:
    values: dict[str, set[str]] = {}
    for nested in collection:
        for name, value in flatten(nested):
            values.setdefault(name, set()).add(value)
    return values


def _format(values: set[str]) -> str:
    shown = [
        value if len(value) <= _LONGEST else f"{value[:_LONGEST]}…" for value in sorted(values)
    ]
    more = len(shown) - _MOST_VALUES
    return " or ".join(shown[:_MOST_VALUES]) + (f" or {more} others" if more > 0 else "")
