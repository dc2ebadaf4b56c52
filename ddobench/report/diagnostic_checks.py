"""Checks of the diagnostics of runs, which may come from any method or file.

A diagnostic that a figure, a table or the page reads is passed on only if it has the expected form,
which is declared here by its name. Other diagnostics are passed on unchecked.
"""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddobench.store.records import PLANE, SAMPLES

LARGEST = 1e75  # the fourth power is still a number
_MOST_NODES = 100_000
_SHARES = ("residual", "edge_share", "clique_share")  # of units


def keep_usable(diagnostics: Any) -> tuple[dict[str, Any], list[str]]:
    """Return the diagnostics that a report can use, and the names of the others."""
    if not isinstance(diagnostics, Mapping):
        return {}, ["everything"]
    usable = {name: value for name, value in diagnostics.items()
              if name not in _EXPECTED or _EXPECTED[name](value)}  # fmt: skip
    if len({len(usable[name]) for name in SAMPLES if name in usable}) > 1 or not _same_width(
        usable.get("designs_sample"), usable.get("decoded_sample")
    ):
        usable = {name: value for name, value in usable.items() if name not in SAMPLES}
    known = [name for name in _EXPECTED if diagnostics.get(name) is not None]
    return usable, [name for name in known if name not in usable]


def _array(value: Any) -> NDArray[np.float64] | None:
    """Return a list of numbers, or of lists of them, as an array; None for anything else."""
    if not isinstance(value, list):
        return None
    try:
        found = np.array(value)
    except ValueError:  # rows of different lengths
        return None
    if found.dtype.kind not in "if" and found.size:
        return None
    return found.astype(float)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and _fits(value)


def _fits(numbers: Any) -> bool:
    """Return whether numbers can be drawn; NaN can, as a gap."""
    return not bool((np.abs(np.asarray(numbers, dtype=float)) > LARGEST).any())


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= 10**9


def _is_table(value: Any, axes: int) -> bool:
    found = _array(value)
    return found is not None and found.ndim == axes and found.size > 0 and _fits(found)


def _is_vector(value: Any) -> bool:
    return _is_table(value, 1)


def _is_matrix(value: Any) -> bool:
    return _is_table(value, 2)


def _are_edges(value: Any) -> bool:
    found = _array(value)
    if found is None or not found.size:
        return bool(value == [])
    if found.ndim != 2 or found.shape[1] != 2:
        return False
    return bool(((found >= 0) & (found < _MOST_NODES) & (found == found.round())).all())


def _are_numbers(value: Any) -> bool:
    return isinstance(value, Mapping) and all(
        _is_number(number) and np.isfinite(number) for number in value.values()
    )


def _are_judged(value: Any) -> bool:
    """Return whether candidates are mappings of plain values."""
    return isinstance(value, list) and all(
        isinstance(one, Mapping) and all(map(_is_plain, one.values())) for one in value
    )


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, str | bool) or _is_number(value)


def _are_units(value: Any) -> bool:
    """Return whether this is a graph between coordinates, with the energy of units on them."""
    if not isinstance(value, Mapping):
        return False
    energy, edges = value.get("energy"), value.get("edges", [])
    if not (energy == [] or _is_matrix(energy)) or not _are_edges(edges):
        return False
    d = len(energy[0]) if energy else 0  # a model may have kept no unit
    if any(node >= d for edge in edges for node in edge):
        return False
    found, true = value.get("cliques_found"), value.get("cliques_true")
    return (
        ((found is None and true is None) or (_is_count(found) and _is_count(true)))
        and ("recovery" not in value or _is_recovery(value["recovery"]))
        and all(_is_number(value.get(name, 0.0)) for name in _SHARES)
    )


def _is_recovery(value: Any) -> bool:
    return _are_numbers(value) and {"precision", "recall"} <= {*value}


def _same_width(one: Any, other: Any) -> bool:
    return one is None or other is None or len(one[0]) == len(other[0])


def _is_plane(value: Any) -> bool:
    """Return whether this is a grid with its values, and points, of two numbers each."""
    if not isinstance(value, Mapping) or not {"grid", "values", "rows", "best_visible"} <= {*value}:
        return False
    points = [value[name] for name in ("grid", "rows", "best_visible")]
    points += [value[name] for name in ("proposed", "optimum") if value.get(name)]
    return (
        all(_is_matrix(one) and len(one[0]) == 2 for one in points)
        and _is_vector(value["values"])
        and len(value["values"]) == len(value["grid"]) == round(len(value["grid"]) ** 0.5) ** 2
    )


_EXPECTED: dict[str, Callable[[Any], bool]] = {
    "edges": _are_edges,
    "pseudo_hessian": lambda value: _is_matrix(value) and len(value) == len(value[0]),
    "cliques": _is_count,
    "clique_sizes": _are_numbers,
    "dropped_edges": _is_count,
    "tested_rows": _is_count,
    "graph_recovery": _is_recovery,
    "alignment": _is_number,
    "alignment_by_chance": _is_number,
    "latent_dimensions": _is_count,
    "active_dimensions": _is_count,
    "round_trip_correlation": _is_number,
    "round_trip_valid": _is_number,
    "designs_sample": _is_matrix,
    "codes_sample": _is_matrix,
    "decoded_sample": _is_matrix,
    "values_sample": _is_vector,
    "candidates": _are_judged,
    "chosen": _is_plain,
    PLANE: _is_plane,
    "units": _is_count,
    "units_graph": _are_units,
}
