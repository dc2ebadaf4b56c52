"""Sets of seeds, written as 7, 0-49, 0-9,20-24, or a list of whole numbers.

Ranges stay ranges: `0-9999999` takes no more memory than `0-9`.
"""

import itertools
import re
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

from ddobench.errors import UsageError

LARGEST = 10**18 - 1  # fits into a column of int64, and the number of seeds into len()
_PART = re.compile(r"([0-9]+)(?:-([0-9]+))?")
_REMEDY = "write seed=7, seed=0-49 or seed=0-9,20-24"


@dataclass(frozen=True)
class Seeds(Collection[int]):
    """Seeds in the order written, each once: ranges that do not overlap."""

    ranges: tuple[range, ...]

    def __len__(self) -> int:
        return sum(map(len, self.ranges))

    def __iter__(self) -> Iterator[int]:
        return itertools.chain.from_iterable(self.ranges)

    def __contains__(self, seed: object) -> bool:
        if not isinstance(seed, int):
            return False
        index = bisect_right(self._sorted, seed, key=_start) - 1
        return index >= 0 and seed in self._sorted[index]

    def __str__(self) -> str:
        return ",".join(
            str(part.start) if len(part) == 1 else f"{part.start}-{part[-1]}"
            for part in self.ranges
        )

    def without(self, seeds: Iterable[int]) -> "Seeds":
        """Return the others, in the same order."""
        removed = sorted(_to_ranges(sorted(seeds)), key=_start)
        return Seeds(tuple(piece for part in self.ranges for piece in _subtract(part, removed)))

    def split(self, size: int) -> Iterator["Seeds"]:
        """Yield `size` seeds at a time, the last time perhaps fewer."""
        batch: list[range] = []
        room = size
        for part in self.ranges:
            while part:
                head, part = part[:room], part[room:]
                batch.append(head)
                room -= len(head)
                if not room:
                    yield Seeds(tuple(batch))
                    batch, room = [], size
        if batch:
            yield Seeds(tuple(batch))

    @cached_property
    def _sorted(self) -> list[range]:
        return sorted(self.ranges, key=_start)


def parse_seeds(text: object) -> Seeds:
    """Return the seeds in the order written, each once."""
    if isinstance(text, Seeds):
        return text
    if isinstance(text, str):
        parts: Iterable[range] = [_parse_part(part, text) for part in text.split(",")]
    elif isinstance(text, range) and text.step == 1 and text.start >= 0:
        parts = [text] if text else []
    elif isinstance(text, Iterable):
        parts = _to_ranges(_check(seed) for seed in text)
    else:
        parts = _to_ranges([_check(text)])
    seeds = _join(parts)
    if not seeds.ranges:
        raise UsageError(f"seed names no seed at all; {_REMEDY}")
    if (largest := max(part[-1] for part in seeds.ranges)) > LARGEST:
        raise UsageError(f"a seed must be a whole number of at most {LARGEST}, got {largest}")
    return seeds


def format_seeds(seeds: Iterable[int]) -> str:
    """Return seeds in the order given as the shortest text: 0-9,20-24."""
    return str(seeds if isinstance(seeds, Seeds) else Seeds(tuple(_to_ranges(seeds))))


def _check(seed: object) -> int:
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise UsageError(f"a seed must be a whole number of at least 0, got {seed!r}; {_REMEDY}")
    return int(seed)


def _parse_part(part: str, text: str) -> range:
    match = _PART.fullmatch(part.strip())
    if match is None:
        raise UsageError(
            f"seed must be whole numbers of at least 0 or ranges of them, got {text!r}; {_REMEDY}"
        )
    if max(len(number or "") for number in match.groups()) > 100:  # Python refuses 4300 and more
        raise UsageError(f"a seed must be a whole number of at most {LARGEST}, got {part[:30]}...")
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"the seed range {part.strip()} runs backwards; write seed={last}-{first}")
    return range(first, last + 1)


def _start(part: range) -> int:
    return part.start


def _to_ranges(seeds: Iterable[int]) -> Iterator[range]:
    """Yield the ranges of consecutive seeds in a list."""
    for _, pairs in itertools.groupby(enumerate(seeds), key=lambda pair: pair[1] - pair[0]):
        _, first = next(pairs)
        yield range(first, first + 1 + sum(1 for _ in pairs))  # noqa: B031 - the rest of them


def _join(parts: Iterable[range]) -> Seeds:
    """Join ranges in order, each seed once."""
    taken: list[range] = []  # sorted
    joined: list[range] = []  # as written
    for part in parts:
        for piece in _subtract(part, taken):
            insort(taken, piece, key=_start)
            if joined and joined[-1].stop == piece.start:
                joined[-1] = range(joined[-1].start, piece.stop)
            else:
                joined.append(piece)
    return Seeds(tuple(joined))


def _subtract(part: range, taken: list[range]) -> list[range]:
    """Return the pieces of a range outside the taken ones, which are sorted and do not overlap."""
    pieces: list[range] = []
    start = part.start
    index = bisect_right(taken, start, key=lambda other: other.stop)
    while index < len(taken) and taken[index].start < part.stop:
        if start < taken[index].start:
            pieces.append(range(start, taken[index].start))
        start = max(start, taken[index].stop)
        index += 1
    if start < part.stop:
        pieces.append(range(start, part.stop))
    return pieces
