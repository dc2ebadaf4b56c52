"""Why TFBind10 of Design-Bench is not among the tasks: its values checked against each other.

Run: python benchmarks/tfbind10.py [FOLDER]

FOLDER has the shards `tf_bind_10-x-*.npy` and `tf_bind_10-y-*.npy` of Design-Bench's task, as in
github.com/zhuyiyi-123/SOO-Bench at db9fba5a, `soo_bench/design_bench_data/tf_bind_10-pho4`. Without
it nothing is computed. The numbers below are from there.

1. Of the four replicates in the first half of the rows, two agree with none: correlations of 0.03
   to 0.18, against 0.81 between the other two.
2. The second half has the same values for the complement of each sequence, not reversed, which is
   another sequence. If a sequence is looked up among all rows and the last one counts, its value is
   replicate 4 of the complement, correlated by 0.15 with replicate 4 of the sequence itself.
3. 203,774 rows share the largest value and 177,806 the least, to the last bit: these are limits and
   not measurements, and the best design of the task is one of them.
"""

import sys
from itertools import combinations
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

LETTERS = 4
Codes = NDArray[np.int64]


def split_replicates(codes: Codes) -> list[slice]:
    """Return the longest runs of rows in which no sequence occurs twice."""
    order = np.argsort(codes, kind="stable")
    before = np.full(len(codes), -1)
    same = codes[order[1:]] == codes[order[:-1]]
    before[order[1:][same]] = order[:-1][same]
    starts, start = [0], 0
    while len(repeats := np.flatnonzero(before[start:] >= start)):
        start += int(repeats[0])
        starts.append(start)
    return [slice(a, b) for a, b in zip(starts, [*starts[1:], len(codes)], strict=True)]


def fill(codes: Codes, y: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """Return the value of every sequence, NaN without one; the last row of a sequence wins."""
    values = np.full(size, np.nan)
    values[codes] = y
    return values


def correlate(a: NDArray[np.float64], b: NDArray[np.float64]) -> float:
    """Return the correlation where both have values."""
    both = np.isfinite(a) & np.isfinite(b)
    return float(np.corrcoef(a[both], b[both])[0, 1])


def main(arguments: list[str]) -> int:
    """Print the numbers of the shards in a folder."""
    if not arguments:
        print("no folder was given, so that nothing is computed")
        return 0
    folder = Path(arguments[0])
    shards = range(len(list(folder.glob("tf_bind_10-x-*.npy"))))
    x, y = (
        np.concatenate([np.load(folder / f"tf_bind_10-{name}-{i}.npy") for i in shards])
        for name in "xy"
    )
    values, length, half = y[:, 0].astype(np.float64), x.shape[1], len(x) // 2
    places = LETTERS ** np.arange(length)[::-1]
    codes, size = x.astype(np.int64) @ places, LETTERS**length
    complement = size - 1 - np.arange(size)  # of every letter, not reversed
    print(f"rows {len(x)}, sequences without a value {size - len(np.unique(codes))}")
    parts = split_replicates(codes[:half])
    print(f"rows of each replicate: {[part.stop - part.start for part in parts]}")
    tables = [fill(codes[part], values[part], size) for part in parts]
    for (i, a), (j, b) in combinations(enumerate(tables, start=1), 2):
        print(f"correlation of replicates {i} and {j}: {correlate(a, b):.3f}")
    mirrored = np.array_equal(codes[half:], complement[codes[:half]])
    same = np.array_equal(values[half:], values[:half])
    print(f"the second half has complements: {mirrored}, with the same values: {same}")
    oracle, other = fill(codes, values, size), tables[-1][complement]
    share = float((oracle == other)[np.isfinite(other)].mean())
    print(f"the last row of a sequence is replicate 4 of its complement: {share:.2%}")
    print(f"its correlation with replicate 4 of itself: {correlate(oracle, tables[-1]):.3f}")
    for name, limit in (("largest", values.max()), ("least", values.min())):
        shared = [int((values[part] == limit).sum()) for part in parts]
        print(f"the {name} value {limit:.4f} is shared by {int((values == limit).sum())} rows, "
              f"in the replicates {shared}")  # fmt: skip
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
