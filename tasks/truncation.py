"""Tables whose best rows are hidden: the first rows below a percentile."""

from collections.abc import Callable
from math import ceil, inf

from torch import Tensor

Take = Callable[[int], tuple[Tensor, Tensor]]  # the next R rows (R, d) and their values (R,)

HIDDEN = "rows of large values are hidden, which leaves no density in closed form"
PILOT = 20_000  # rows that determine the percentiles of an instance


def fill_below(
    x: Tensor, y: Tensor, percentile: float | None, *, pilot: Take, rows: Take, size: int = PILOT
) -> None:
    """Fill x (N, d) and y (N,) with the first of `rows` whose value is at most a percentile.

    The percentile is computed from `size` rows of `pilot`, so that a smaller table is the beginning
    of a larger one. None: nothing is hidden, and no pilot is drawn.
    """
    ceiling = inf if percentile is None else float(pilot(size)[1].quantile(percentile / 100.0))
    filled = 0
    while filled < len(y):
        missing = len(y) - filled
        designs, values = rows(ceil(missing * 100.0 / (percentile or 100.0)))
        kept = (values <= ceiling).nonzero()[:missing, 0]
        x[filled : filled + len(kept)] = designs[kept]
        y[filled : filled + len(kept)] = values[kept]
        filled += len(kept)
