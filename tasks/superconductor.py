"""SuperConductor: compositions of 86 elements that should have a high critical temperature.

The task of Design-Bench (Trabucco et al. 2022) and of the paper's supplement, on the file of
Hamidieh (2018): of its 21,263 rows the 17,014 up to percentile 80, 74 K, are visible with their
measured values, 0.400 of the range of all data.

**The oracle is retrained.** That of Design-Bench is one fitted random forest that cannot be
downloaded any more. Its code fits 100 trees on 1,000 rows that it draws from the whole file without
a seed. So do we: `task.oracle_seed` draws rows and trees, and the spread over its values is part of
a result; `task.oracle_rows=10631` is half of the file. Visible values are measured, so that the
oracle's value of a visible design differs from them. No forest can predict more than the largest
value it has seen, and the optimum is unknown: the lower bound is its largest value over all rows.
The trees also depend on the version of scikit-learn. `task=superconductor_exact` has no oracle.

A composition has no negative amounts and at least one element; others are invalid. With
`task.negative=zero` a negative amount counts as none. Design-Bench's forest does the same, as it
was fitted to amounts that are not negative.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from ddobench.contracts import Description, Problem
from ddobench.datasets import read_data
from ddobench.errors import UsageError, check_one_of, check_whole
from ddobench.rng import Streams
from ddobench.tasks.measured import MeasuredTask, Measurements, read_rows

DATA = "superconductor"
TREES, DEPTH = 100, 100  # as in Design-Bench

Predict = Callable[[NDArray[np.float64]], NDArray[np.float64]]  # (P, d) -> (P,)


@dataclass(frozen=True, kw_only=True)
class SuperConductorProblem(Problem):
    """Compositions with the values of a forest, the same for all seeds."""

    predict: Predict
    negative: str

    @property
    def exact(self) -> bool:
        """Whether the oracle has made the visible values, which are measured."""
        return False

    def _evaluate(self, x: Tensor) -> Tensor:
        amounts = x.clamp(min=0.0)
        rows = amounts.flatten(0, 1).clamp(max=1e30).numpy()  # a forest compares in float32
        values = torch.from_numpy(self.predict(rows)).view(x.shape[:2])
        valid = amounts.sum(dim=-1) > 0
        if self.negative == "invalid":
            valid &= (x >= 0).all(dim=-1)
        return torch.where(valid, values, torch.nan)


@dataclass(frozen=True, kw_only=True)
class SuperConductor(MeasuredTask):
    """Measured compositions, the best of them hidden, and a forest as the oracle."""

    name: ClassVar[str] = "SuperConductor"

    truncate: float | None = 80.0
    oracle_rows: int = 1000
    oracle_seed: int = 0
    negative: str = "invalid"
    file: str | None = None
    verify: bool = True
    content: str = ""  # hash of a file that was not verified

    def __post_init__(self) -> None:
        super().__post_init__()
        check_one_of("task.negative", self.negative, ("invalid", "zero"))
        check_whole("task.oracle_rows", self.oracle_rows, 2)
        check_whole("task.oracle_seed", self.oracle_seed, 0)
        if self.oracle_rows > len(self._measurements().y) // 2:
            raise UsageError(
                f"task.oracle_rows must be at most {len(self._measurements().y) // 2}, half of the "
                f"rows, as the others judge the oracle, got {self.oracle_rows}"
            )

    def describe(self) -> Description:
        """Describe the task."""
        forest = self._fit()
        return Description(
            title=f"Superconductors of {self.d} elements, by a retrained oracle",
            formula="f(x) = critical temperature in K of the amounts x, by a random forest",
            text=f"{self.describe_rows()} The oracle is not that of Design-Bench but a forest "
            f"fitted in the same way, to {self.oracle_rows} rows drawn by seed {self.oracle_seed}; "
            f"its rank correlation with {forest.judged} other rows is {forest.rank:.3f}. Visible "
            "values are measured. The optimum is unknown; it is at least "
            f"{forest.largest:.1f} K, the oracle's largest value over all rows."
            + ("" if self.verify else " The file was not verified."),
        )

    def _measurements(self) -> Measurements:
        return _read(read_data(DATA, self.file, self.verify))

    def _fit(self) -> "Forest":
        text = read_data(DATA, self.file, self.verify)
        return fit_forest(text, self.oracle_rows, self.oracle_seed)

    def _draw(self, rng: Streams) -> Problem:
        seeds, forest = len(rng.seeds), self._fit()
        return SuperConductorProblem(
            data=self._draw_rows(rng),
            optimum=None,
            graphs=None,
            full_range=torch.stack(self._measurements().y.aminmax()).repeat(seeds, 1),
            lower_bound=torch.full((seeds,), forest.largest, dtype=torch.float64),
            predict=forest.predict,
            negative=self.negative,
        )


@cache
def _read(text: bytes) -> Measurements:
    x, y, _ = read_rows(text, "critical_temp", ("material",))
    return Measurements(x, y)


@dataclass(frozen=True)
class Forest:
    """A fitted oracle, and how good it is."""

    predict: Predict
    largest: float  # value over all rows
    rank: float  # correlation of predictions and values on rows it was not fitted to
    judged: int  # of these


@cache
def fit_forest(text: bytes, rows: int, seed: int) -> Forest:
    """Fit the oracle to rows that a seed draws, and judge it on as many others."""
    from scipy.stats import spearmanr
    from sklearn.ensemble import RandomForestRegressor  # type: ignore[import-untyped]

    table = _read(text)
    x, y = table.x.numpy(), table.y.numpy()
    stream = Streams([seed], "oracle/SuperConductor").rows[0]
    drawn = stream.child("rows").permutation(len(y)).numpy()
    fitted, judged = drawn[:rows], drawn[rows : 2 * rows]
    forest: Any = RandomForestRegressor(
        n_estimators=TREES,
        max_depth=DEPTH,
        max_features=1.0,
        random_state=int(stream.child("trees").integers(2**31, 1)),
    ).fit(x[fitted], y[fitted])
    values = forest.predict(x)
    rank = float(spearmanr(values[judged], y[judged]).statistic)
    return Forest(forest.predict, float(values.max()), rank, len(judged))
