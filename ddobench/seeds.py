"""How seeds are spelled: 7, 0-49, 0-9,20-24, or a list of whole numbers.

Ranges stay ranges: `0-9999999` takes no more room than `0-9`.
"""

import itertools
import re
from bisect import bisect_right, insort
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral

from ddobench.errors import UsageError

LARGEST = 10**18 - 1  # so that a table can hold a seed, and Python can count any number of them
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
        index = bisect_right(self._rising, seed, key=_start) - 1
        return index >= 0 and seed in self._rising[index]

    def __str__(self) -> str:
        return ",".join(
            str(part.start) if len(part) == 1 else f"{part.start}-{part[-1]}"
            for part in self.ranges
        )

    def without(self, seeds: Iterable[int]) -> "Seeds":
        """Return the others, in the same order."""
        gone = sorted(_to_ranges(sorted(seeds)), key=_start)
        return Seeds(tuple(piece for part in self.ranges for piece in _subtract(part, gone)))

    def split(self, size: int) -> Iterator["Seeds"]:
        """Yield so many at a time, the last of them perhaps fewer."""
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
    def _rising(self) -> list[range]:
        return sorted(self.ranges, key=_start)


def parse_seeds(spelling: object) -> Seeds:
    """Return the seeds in the order written, each once."""
    if isinstance(spelling, Seeds):
        return spelling
    if isinstance(spelling, str):
        parts: Iterable[range] = [_parse_part(part, spelling) for part in spelling.split(",")]
    elif isinstance(spelling, range) and spelling.step == 1 and spelling.start >= 0:
        parts = [spelling] if spelling else []
    elif isinstance(spelling, Iterable):
        parts = _to_ranges(_check(seed) for seed in spelling)
    else:
        parts = _to_ranges([_check(spelling)])
    seeds = _join(parts)
    if not seeds.ranges:
        raise UsageError(f"seed names no seed at all; {_REMEDY}")
    if (largest := max(part[-1] for part in seeds.ranges)) > LARGEST:
        raise UsageError(f"a seed must be a whole number of at most {LARGEST}, got {largest}")
    return seeds


def format_seeds(seeds: Iterable[int]) -> str:
    """Return the shortest spelling of seeds in the order given: 0-9,20-24."""
    return str(seeds if isinstance(seeds, Seeds) else Seeds(tuple(_to_ranges(seeds))))


def _check(seed: object) -> int:
    if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
        raise UsageError(f"a seed must be a whole number of at least 0, got {seed!r}; {_REMEDY}")
    return int(seed)


def _parse_part(part: str, spelling: str) -> range:
    match = _PART.fullmatch(part.strip())
    if match is None:
        raise UsageError(
            f"seed must be whole numbers of at least 0 or ranges of them, got {spelling!r}; "
            f"{_REMEDY}"
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
    """Yield the runs of neighbours in a list of seeds."""
    for _, pairs in itertools.groupby(enumerate(seeds), key=lambda pair: pair[1] - pair[0]):
        _, first = next(pairs)
        yield range(first, first + 1 + sum(1 for _ in pairs))  # noqa: B031 - the rest of them


def _join(parts: Iterable[range]) -> Seeds:
    """Put ranges one after the other, without what came before."""
    taken: list[range] = []  # rising
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
    """Return what of a range is in none of the taken ones, which rise and do not overlap."""
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
