"""Variants of a method's configuration, for a rule to choose from: `select=RULE`."""

from collections.abc import Mapping
from copy import deepcopy
from itertools import product
from typing import Any

from ddobench.errors import UsageError
from ddobench.runner.build import CARD
from ddobench.variants import format_variant

GRID = "grid"  # dotted name of a setting -> its values; null leaves it alone
_MOST_CANDIDATES = 100


def offer(method: Mapping[str, Any], select: Mapping[str, Any]) -> dict[str, Any]:
    """Return the configuration of a method that chooses among settings of another.

    Settings of the grid that the method does not have are left out.
    """
    grid = _read_grid(select.get(GRID))
    known = {name: values for name, values in grid.items() if _has(method, name)}
    if not known:
        raise UsageError(
            f"select chooses among values of {', '.join(grid) or 'nothing'}, which this method has "
            "not; name settings that it has, as in '+select.grid={search.rate:[0.01,0.05]}'"
        )
    points = [dict(zip(known, values, strict=True)) for values in product(*known.values())]
    if len(points) > _MOST_CANDIDATES:
        raise UsageError(
            f"select.grid has {len(points)} combinations; at most {_MOST_CANDIDATES} can be judged"
        )
    bare = {name: value for name, value in method.items() if name != CARD}
    chooser = {name: value for name, value in select.items() if name != GRID}
    card = {CARD: method[CARD]} if CARD in method else {}
    return {**chooser, **card, "candidates": {_spell(one): _set(bare, one) for one in points}}


def _read_grid(grid: object) -> dict[str, list[Any]]:
    if not isinstance(grid, Mapping):
        raise UsageError(f"select.grid must name settings and their values, got {grid!r}")
    named = {str(name): values for name, values in grid.items() if values is not None}
    for name, values in named.items():
        if not isinstance(values, list) or not values:
            raise UsageError(f"select.grid must list values of {name}, got {values!r}")
    return named


def _has(method: Mapping[str, Any], name: str) -> bool:
    node: Any = method
    for key in name.split("."):
        if not isinstance(node, Mapping) or key not in node:
            return False
        node = node[key]
    return True


def _set(method: Mapping[str, Any], settings: Mapping[str, Any]) -> dict[str, Any]:
    """Return a method's configuration with other settings."""
    changed = deepcopy(dict(method))
    for name, value in settings.items():
        *above, last = name.split(".")
        node = changed
        for key in above:
            node = node[key]
        node[last] = value
    return changed


def _spell(settings: Mapping[str, Any]) -> str:
    words = {name: "null" if value is None else str(value) for name, value in settings.items()}
    return format_variant(words)
