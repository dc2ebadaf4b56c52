"""Linear constraints between columns, such as `a + b <= 1` or `a + b + c = 1`.

A design that violates them is moved to the nearest one that does not, every column in its standard
deviations: Dykstra's alternating projections (Boyle and Dykstra, 1986) onto each constraint and the
bounds. Columns with levels, whole numbers or decimals are then rounded one after the other, and the
columns that are left make up for it.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import inf

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import Bounds, LinearConstraint, milp

from ddobench.errors import UsageError
from ddobench.store.checks import printable
from ddobench.tabular.encodings import Column
from ddobench.tabular.rows import Values

MOST_ROUNDS = 2000  # of projections
_SMALL = 1e-10  # a smaller move, in standard deviations, ends the projections
_TOLERANCE = 1e-7  # of a constraint, relative to the numbers in it
_NUMBER = r"(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?"
_SHAPE = "--constraint must be a sum of columns and a limit, as in 'a + 2 b <= 1'"


@dataclass(frozen=True)
class LinearConstraints:
    """Some sums of columns between two limits; C constraints on V columns."""

    columns: tuple[Column, ...]  # V, all numeric
    weights: Values  # (C, V)
    low: Values  # (C,) -inf: open
    high: Values  # (C,)
    scale: Values  # (V,) of the columns

    @classmethod
    def parse(cls, texts: Sequence[str], columns: Sequence[Column]) -> "LinearConstraints":
        """Read constraints between numeric columns."""
        known = {column.name: column for column in columns}
        rows, limits = [], []
        for text in texts:
            weights, relation, limit = _parse(text, known)
            rows.append(weights)
            limits.append((limit if relation != "<=" else -inf, limit if relation != ">=" else inf))
        used = tuple(one for one in columns if any(one.name in weights for weights in rows))
        matrix = np.array([[weights.get(one.name, 0.0) for one in used] for weights in rows])
        low, high = np.array(limits).reshape(-1, 2).T
        span = np.array([one.high - one.low for one in used])
        return cls(used, matrix.reshape(len(texts), len(used)), low, high, span)

    def check_feasible(self, bounds: Values, texts: Sequence[str]) -> None:  # (V, 2)
        """Raise if no design within the bounds satisfies the constraints."""
        whole = np.array([float(one.kind == "whole") for one in self.columns])
        found = milp(
            np.zeros(len(whole)), integrality=whole, bounds=Bounds(bounds[:, 0], bounds[:, 1]),
            constraints=LinearConstraint(self.weights, self.low, self.high),
        )  # fmt: skip
        if not found.success:
            raise UsageError(
                printable(
                    f"no design satisfies {' and '.join(map(repr, texts))} within the bounds, "
                    "levels and fixed columns; loosen one of them"
                )
            )

    def allows(self, designs: Values) -> NDArray[np.bool_]:  # (K, V) -> (K,)
        """Return which designs satisfy every constraint."""
        sums = designs @ self.weights.T  # (K, C)
        limits = np.where(np.isfinite(self.low), self.low, self.high)
        size = np.abs(designs) @ np.abs(self.weights.T) + np.abs(limits)
        inside = (sums >= self.low - _TOLERANCE * size) & (sums <= self.high + _TOLERANCE * size)
        allowed: NDArray[np.bool_] = np.asarray(inside.all(axis=1))
        return allowed

    def apply(self, designs: Values, bounds: Values) -> Values:  # (K, V), (V, 2) -> (K, V)
        """Return the nearest designs that satisfy the constraints, with the columns' own numbers.

        A number whose rounding would violate a constraint keeps its digits; a level or whole number
        for which the other columns cannot make up leaves a design that is not allowed.
        """
        low, high = (np.tile(bounds[:, i], (len(designs), 1)) for i in (0, 1))
        found = self._project(designs, low, high)
        coarse_first = sorted(
            range(len(self.columns)), key=lambda i: "level whole number".find(self.columns[i].kind)
        )
        for i in coarse_first:
            column = self.columns[i]
            before, ends = found.copy(), (low[:, i].copy(), high[:, i].copy())
            rounded = np.clip(column.round(found[:, i]), low[:, i], high[:, i])
            low[:, i] = high[:, i] = found[:, i] = rounded
            found = self._project(found, low, high)
            if column.kind == "number":
                broken = ~self.allows(found)
                found[broken] = before[broken]
                low[broken, i], high[broken, i] = ends[0][broken], ends[1][broken]
        return found

    def _project(self, designs: Values, low: Values, high: Values) -> Values:  # all (K, V)
        """Return the nearest designs within constraints and bounds, in units of the columns."""
        scaled = self.weights * self.scale  # (C, V)
        squares = (scaled**2).sum(axis=1)
        x = designs / self.scale
        floor, ceiling = low / self.scale, high / self.scale
        corrections = np.zeros((len(scaled) + 1, *x.shape))
        for _ in range(MOST_ROUNDS):
            before = x
            for i, weights in enumerate(scaled):
                moved = x + corrections[i]
                sums = moved @ weights
                excess = sums - np.clip(sums, self.low[i], self.high[i])
                x = moved - excess[:, None] / squares[i] * weights
                corrections[i] = moved - x
            moved = x + corrections[-1]
            x = np.clip(moved, floor, ceiling)
            corrections[-1] = moved - x
            if np.abs(x - before).max(initial=0.0) < _SMALL:
                break
        return x * self.scale


def _parse(text: str, known: Mapping[str, Column]) -> tuple[dict[str, float], str, float]:
    """Return the weight of each column on the left, the relation, and the limit on the right."""
    names = "|".join(re.escape(name) for name in sorted(known, key=len, reverse=True))
    term = re.compile(rf"\s*([+-]?)\s*(?:({_NUMBER})\s*\*?\s*)?({names})?\s*(?=[+-]|[<>]?=|$)")
    weights: dict[str, float] = {}
    limit, side, relation, place = 0.0, 1.0, "", 0
    while place < len(text):
        found = term.match(text, place)
        if found is None or not (found[2] or found[3]):
            raise _unknown_term(text, text[place:], known)
        amount = side * float(f"{found[1]}{found[2] or 1}")
        column = known[found[3]] if found[3] else None
        if column is None:
            limit -= amount
        elif column.numeric:
            weights[column.name] = weights.get(column.name, 0.0) + amount
        elif column.kind == "constant" and isinstance(column.levels[0], int | float):
            limit -= amount * column.levels[0]
        else:
            raise UsageError(
                printable(f"--constraint {text!r}: column {found[3]!r} is a category; use --fixed")
            )
        place = found.end()
        if compared := re.compile("[<>]?=").match(text, place):
            if relation:
                raise UsageError(printable(f"{_SHAPE}, got two relations in {text!r}"))
            relation, side, place = compared[0], -1.0, compared.end()
    if not relation or text.rstrip().endswith("="):
        raise UsageError(printable(f"{_SHAPE}, got {text!r}"))
    weights = {name: weight for name, weight in weights.items() if weight}
    if not weights:
        raise UsageError(printable(f"{_SHAPE}, got no column in {text!r}"))
    return weights, relation, limit


def _unknown_term(text: str, rest: str, known: Mapping[str, Column]) -> UsageError:
    word = re.sub(rf"^\s*[+-]?\s*({_NUMBER}\s*\*?)?\s*", "", rest)
    word = re.split(r"\s*[<>=+*]|\s-", word)[0].strip()
    if not word or word in known:  # such as `a < 1` and `a * b <= 1`
        return UsageError(printable(f"{_SHAPE}, got {text!r}"))
    some = ", ".join([*known][:20]) + (" and others" if len(known) > 20 else "")
    return UsageError(
        printable(f"--constraint {text!r}: there is no column {word!r}; there are {some}")
    )
