"""How seeds are spelled: 7, 0-49, 0-9,20-24, or a list of whole numbers."""

import itertools
import re
from collections.abc import Iterable, Sequence
from numbers import Integral

from ddobench.errors import UsageError

_PART = re.compile(r"(\d+)(?:-(\d+))?")


def parse_seeds(spelling: object) -> tuple[int, ...]:
    """Return the seeds in the order written, each once."""
    if isinstance(spelling, str):
        parts: Iterable[object] = (
            seed for part in spelling.split(",") for seed in _parse_part(part.strip(), spelling)
        )
    elif isinstance(spelling, Iterable):
        parts = spelling
    else:
        parts = [spelling]
    seeds: dict[int, None] = {}
    for seed in parts:
        if not isinstance(seed, Integral) or isinstance(seed, bool) or seed < 0:
            raise UsageError(
                f"a seed must be a whole number of at least 0, got {seed!r}; "
                "write seed=7, seed=0-49 or seed=0-9,20-24"
            )
        seeds[int(seed)] = None
    if not seeds:
        raise UsageError("seed names no seed at all; write seed=7, seed=0-49 or seed=0-9,20-24")
    return tuple(seeds)


def format_seeds(seeds: Sequence[int]) -> str:
    """Return the shortest spelling of seeds in rising order: 0-9,20-24."""
    parts: list[str] = []
    for _, run in itertools.groupby(enumerate(seeds), key=lambda pair: pair[1] - pair[0]):
        members = [seed for _, seed in run]
        parts.append(str(members[0]) if len(members) == 1 else f"{members[0]}-{members[-1]}")
    return ",".join(parts)


def _parse_part(part: str, spelling: str) -> range:
    match = _PART.fullmatch(part)
    if match is None:
        raise UsageError(
            f"seed must be whole numbers of at least 0 or ranges of them, got {spelling!r}; "
            "write seed=7, seed=0-49 or seed=0-9,20-24"
        )
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"the seed range {part} runs backwards; write seed={last}-{first}")
    return range(first, last + 1)
