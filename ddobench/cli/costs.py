"""What planned runs will cost, by stored runs that are like them, else by published ones.

A guess is called one.
"""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ddobench.cli.published_costs import Published, read_published
from ddobench.runner.spec import MOST_SEEDS
from ddobench.store.runs import Place, Store, sample_metadata

if TYPE_CHECKING:
    from ddobench.runner.spec import Specification

JOB_SECONDS = 1800.0  # CPU seconds that a job of a sweep had better take on a cluster
_FLOAT = 8  # bytes
_STORED = 4  # bytes of a number in a record
_RECORD = 10e3  # bytes of a record without any designs
_PROGRAM = 0.5e9  # bytes that Python and PyTorch take before they do anything
_SAMPLE = 5  # stored runs that are looked at for each specification
_PLACES = 3  # specifications that are looked at for each planned one
_SIZE = re.compile(r"-d(\d+)-n(\d+)-")


@dataclass(frozen=True)
class Cost:
    """What one run will cost, and how that is known."""

    cpu: float  # seconds
    disk: float  # bytes
    memory: float  # bytes, those of the rows and of the designs of all iterations alone
    runs: int  # stored ones that it was judged by
    guess: str = ""  # why it is a guess, if it is

    def describe(self) -> str:
        """Say what one run costs."""
        known = f"a guess {self.guess}" if self.guess else f"by {self.runs} stored runs of it"
        return f"about {format_seconds(self.cpu)} of CPU time each ({known})"


def estimate_cost(store: Store, spec: "Specification") -> Cost | None:
    """Return what a run of a specification costs by others, None if nothing is like it."""
    own = _judge([spec.place(store)], spec)
    if own is not None:
        return own
    name = f"{spec.task}-{spec.method}"
    same_size = _places(store, f"{name}-d{spec.d}-n{spec.n}-")
    found = _judge(same_size, spec, "by other settings of this method and task")
    if found is not None:
        return found
    published = [one for one in read_published() if (one.task, one.method, one.budget)
                 == (spec.task, spec.method, spec.budget)]  # fmt: skip
    for one in published:
        if (one.d, one.n) == (spec.d, spec.n):
            return _recall(one, spec, f"by {one.runs} published runs of another machine")
    sizes = {place: _scale(place, spec) for place in _places(store, f"{name}-d")}
    near = sorted(sizes, key=lambda place: abs(math.log(sizes[place])))
    for place in near[:_PLACES]:
        guess = "from another size, as if time grew with d and n alike"
        found = _judge([place], spec, guess, sizes[place])
        if found is not None:
            return found
    if published:
        one = min(published, key=lambda one: abs(math.log(_compare(spec, one.d, one.n))))
        guess = (
            "from published runs of another size and machine, as if time grew with d and n alike"
        )
        return _recall(one, spec, guess, _compare(spec, one.d, one.n))
    return None


def _recall(one: Published, spec: "Specification", guess: str, scale: float = 1.0) -> Cost:
    """Return the cost of a planned run by published ones, whose records hold less than new ones."""
    designs = (one.iterations, one.designs)
    numbers = 2 * math.prod(designs) + one.designs * spec.d  # values, predictions, last designs
    memory = _count_numbers({"values": designs}, spec) * _FLOAT
    return Cost(one.cpu * scale, _RECORD + _STORED * numbers, memory, one.runs, guess)


def _places(store: Store, beginning: str) -> list[Place]:
    """Return the places of a store whose names begin so."""
    try:
        names = sorted(e.name for e in os.scandir(store.folder) if e.name.startswith(beginning))
    except OSError:
        return []
    return [Place(store.folder / name, name.rpartition("-")[2]) for name in names
            if _SIZE.search(name)]  # fmt: skip


def _scale(place: Place, spec: "Specification") -> float:
    """Return how many times as large a planned run is."""
    match = _SIZE.search(place.folder.name)
    assert match is not None  # or it would not be among the places
    return _compare(spec, int(match[1]), int(match[2]))


def _compare(spec: "Specification", d: int, n: int) -> float:
    return spec.d * spec.n / max(1, d * n)


def _judge(
    places: Sequence[Place], spec: "Specification", guess: str = "", scale: float = 1.0
) -> Cost | None:
    """Return the mean cost of some stored runs, None if there are none of this budget."""
    costs, sizes, memory, wall = [], [], [], False
    for place in places[:_PLACES]:
        for meta, size in sample_metadata(place, _SAMPLE):
            row, seconds = meta["row"], _seconds(meta["row"])
            if row["status"] == "ok" and row["budget"] == spec.budget and seconds is not None:
                wall |= row.get("seconds_cpu") is None
                costs.append(seconds * scale)
                sizes.append(size)
                memory.append(_count_numbers(meta["shape"], spec) * _FLOAT)
    if not costs:
        return None
    if wall:
        guess = "from the clock, as these runs did not measure CPU time"
    return Cost(sum(costs) / len(costs), sum(sizes) / len(sizes), max(memory), len(costs), guess)


def _count_numbers(shape: Mapping[str, Any], spec: "Specification") -> int:
    """Return how many numbers a run holds at once: its rows, and the designs of all iterations."""
    designs = shape.get("values") or (0, 0)  # (T, K)
    return spec.n * (spec.d + 1) + math.prod(designs) * spec.d


def _seconds(row: Mapping[str, Any]) -> float | None:
    """Return the CPU seconds of a stored run, or what an earlier version measured instead."""
    told = row.get("seconds_cpu")
    if told is None:
        parts = [row.get(name) for name in ("seconds_fit", "seconds_propose")]
        told = None if None in parts else sum(parts)  # type: ignore[arg-type]
    return told if told is not None and math.isfinite(told) and told >= 0 else None


def describe_costs(planned: Sequence[tuple[int, Cost | None]], store: Store) -> str:
    """Say what all planned runs cost, given how many are planned of each cost."""
    runs = sum(number for number, _ in planned)
    known = [(number, cost) for number, cost in planned if cost is not None and number]
    counted = sum(number for number, _ in known)
    if not counted:
        return (f"what they cost is not known, as no run like them is stored in {store.folder}: "
                "one seed of each would tell")  # fmt: skip
    cpu = sum(number * cost.cpu for number, cost in known)
    disk = sum(number * cost.disk for number, cost in known)
    cores = os.cpu_count() or 1
    lines = [
        f"about {format_seconds(cpu)} of CPU time, {format_seconds(cpu / cores)} on the {cores} "
        f"cores of this machine if they have nothing else to do, and {format_bytes(disk)} on disk",
        _suggest_jobs(known),
    ]
    if counted < runs:
        lines.append(f"not counted: {runs - counted} runs that nothing stored is like")
    return "\n".join(lines)


def _suggest_jobs(known: Sequence[tuple[int, Cost]]) -> str:
    """Say how many seeds a job had better have, judged by the runs that take longest."""
    longest = max(cost.cpu for _, cost in known)
    seeds = max(1, min(MOST_SEEDS, int(JOB_SECONDS / longest) if longest else MOST_SEEDS))
    jobs = sum(-(-number // seeds) for number, _ in known)
    most = min(seeds, max(number for number, _ in known))
    memory = _PROGRAM + most * max(cost.memory for _, cost in known)
    return (f"on a cluster: seeds_per_job={seeds} makes an array of {jobs} jobs, the longest of "
            f"about {format_seconds(most * longest)} of CPU time, with at least "
            f"{format_bytes(memory)} of memory each")  # fmt: skip


def format_seconds(seconds: float) -> str:
    """Spell a time in the unit that suits it."""
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 2 * size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds:.3g} s"


def format_bytes(size: float) -> str:
    """Spell a size in the unit that suits it."""
    for unit in ("B", "KB", "MB"):
        if size < 1000:
            return f"{size:.3g} {unit}"
        size /= 1000
    return f"{size:.3g} GB"
