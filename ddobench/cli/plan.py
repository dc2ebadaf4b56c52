"""The points of a sweep, and what they will cost.

Points are all combinations of the values that keys are given. The cost of a run is estimated from
measured runs of the same method, task and budget: those in the store, and those of the published
records, which are summed up in the table beside this file. That table is written by

    python -m ddobench.cli.plan results/paper/records
"""

import csv
import functools
import itertools
import math
import os
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import astuple, dataclass, field, fields
from io import StringIO
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hydra.core.override_parser.types import Override, RangeSweep, ValueType

from ddobench import registry
from ddobench.cli.argv import MANY, WHOLE_SWEEP
from ddobench.errors import UsageError
from ddobench.progress import format_bytes, format_seconds
from ddobench.seeds import Seeds

if TYPE_CHECKING:
    from ddobench.runner.spec import Specification
    from ddobench.store.runs import Place, Store

_MOST_VALUES = 10 * MANY  # of one key
TABLE = Path(__file__).with_name("published_costs.csv")
KEY = ["task", "method", "budget", "d", "n"]  # of a row of the table
JOB_SECONDS = 1800.0  # CPU seconds that a job of a sweep should take on a cluster
_FLOAT_BYTES = 8
_STORED_BYTES = 4  # of a number in a record
_RECORD_BYTES = 10e3  # of a record without any designs
_PROGRAM_BYTES = 0.5e9  # taken by Python and PyTorch before they do anything
_SAMPLE = 5  # stored runs that are read for each specification
_PLACES = 3  # specifications that are read for each planned one
_SIZE = re.compile(r"-d(\d+)-n(\d+)-")


@dataclass(frozen=True)
class Product:
    """Every combination of the values that keys are given, and the seeds of all of them."""

    values: list[list[str]]  # of each key, as `key=value`
    seeds: Seeds | None  # None: those of the configuration
    left_out: list[str] = field(default_factory=list)  # options of a glob that are not installed
    sweeps: bool = True  # whether any key was given several values

    @property
    def number(self) -> int:
        """The number of combinations."""
        return math.prod(map(len, self.values))

    def __iter__(self) -> Iterator[tuple[str, ...]]:
        return itertools.product(*self.values)


def multiply(overrides: Sequence[Override], seeds: Seeds | None = None) -> Product:
    """Return the combinations of all values; a later override replaces an earlier of its key."""
    swept: dict[str, list[str]] = {}
    left_out: dict[str, list[str]] = {}
    for override in overrides:
        key = _key_of(override)
        missing = _missing_dependencies(override)
        values = [value for value in list_values(override) if value not in missing]
        left_out[key] = [f"{key}={name} is left out: {why}" for name, why in missing.items()]
        if not values:
            raise UsageError(left_out[key][0])
        swept[key] = [f"{key}={value}" for value in values]
    sweeps = any(override.is_sweep_override() for override in overrides)
    return Product(list(swept.values()), seeds, list(itertools.chain(*left_out.values())), sweeps)


def list_values(override: Override) -> list[str]:
    """Return the different values of an override, as text."""
    if not override.is_sweep_override():
        return [override.get_value_element_as_str()]
    key = _key_of(override)
    if key in WHOLE_SWEEP:
        raise UsageError(f"{key} holds for the whole sweep; give it one value")
    if not override.is_discrete_sweep():
        raise UsageError(f"{override.input_line} names no single values; write range or choice")
    value = override.value()
    if isinstance(value, RangeSweep):
        if not value.step:
            raise UsageError(f"{override.input_line} has the step 0; write another one")
        if not abs((value.stop or 0) - (value.start or 0)) / abs(value.step) < _MOST_VALUES:
            raise UsageError(
                f"{override.input_line} has more than {_MOST_VALUES} values; take fewer"
            )
    found = dict.fromkeys(itertools.islice(override.sweep_string_iterator(), _MOST_VALUES))
    if not found:  # which Hydra would treat as if the key had not been given
        group = override.key_or_group
        names = ", ".join(entry.name for entry in registry.entries(group))
        remedy = f"there are {names}" if names else f"write {group}=VALUE or a wider range"
        raise UsageError(f"{override.input_line} names no {group} at all; {remedy}")
    return list(found)


def _key_of(override: Override) -> str:
    key = override.get_key_element()
    return key if "." in key else key.lstrip("+")  # keys of the top level exist already


def _missing_dependencies(override: Override) -> dict[str, str]:
    """Return which options of a glob are not installed, and why; named options are kept."""
    if override.value_type != ValueType.GLOB_CHOICE_SWEEP:
        return {}
    named = set(override.sweep_string_iterator())
    return {
        entry.name: entry.missing_dependency
        for entry in registry.entries(override.key_or_group)
        if entry.missing_dependency and entry.name in named
    }


@dataclass(frozen=True)
class Cost:
    """What one run will cost, and how that is known."""

    cpu: float  # seconds
    disk: float  # bytes
    memory: float  # bytes of the rows and of the designs of all iterations
    runs: int  # measured ones behind the estimate
    guess: str = ""  # why it is a guess, if it is

    def describe(self) -> str:
        """Return the cost of one run as text."""
        known = f"a guess {self.guess}" if self.guess else f"by {self.runs} stored runs of it"
        return f"about {format_seconds(self.cpu)} of CPU time each ({known})"


def describe_point(
    store: "Store", spec: "Specification", missing: int, wanted: int
) -> tuple[str, Cost | None]:
    """Return the line of a plan for one point, and what one of its runs costs."""
    cost = estimate_cost(store, spec) if missing else None
    each = f", {cost.describe()}" if cost else ""
    return f"{spec.title}: {missing} of {wanted} seeds to run{each}", cost


def estimate_cost(store: "Store", spec: "Specification") -> Cost | None:
    """Return what a run costs by measured runs of its method, task and budget, None without any."""
    return next((cost for cost in _estimates(store, spec) if cost is not None), None)


def _estimates(store: "Store", spec: "Specification") -> Iterator[Cost | None]:
    """Yield estimates, the best first: the same specification, the same size, other sizes."""
    yield _from_store([spec.place(store)], spec)
    places = _stored_sizes(store, f"{spec.task}-{spec.method}-d")
    published = [one for one in read_published() if (one.task, one.method, one.budget)
                 == (spec.task, spec.method, spec.budget)]  # fmt: skip

    def distance(size: tuple[int, int]) -> float:
        return abs(math.log(_scale(spec, size)))

    same = [place for place, size in places.items() if size == (spec.d, spec.n)]
    yield _from_store(same, spec, "by other settings of this method and task")
    for one in published:
        if (one.d, one.n) == (spec.d, spec.n):
            yield _from_table(one, spec, f"by {one.runs} published runs of another machine")
    growth = "as if time grew with d and n alike"
    for place in sorted(places, key=lambda place: distance(places[place]))[:_PLACES]:
        guess = f"from another size, {growth}"
        yield _from_store([place], spec, guess, _scale(spec, places[place]))
    for one in sorted(published, key=lambda one: distance((one.d, one.n)))[:1]:
        guess = f"from published runs of another size and machine, {growth}"
        yield _from_table(one, spec, guess)


def _scale(spec: "Specification", size: tuple[int, int]) -> float:
    """Return how many times as large a planned run is as one of the given d and n."""
    return spec.d * spec.n / max(1, math.prod(size))


def _stored_sizes(store: "Store", beginning: str) -> dict["Place", tuple[int, int]]:
    """Return d and n of the places of a store whose names begin so."""
    from ddobench.store.runs import Place

    try:
        names = sorted(e.name for e in os.scandir(store.folder) if e.name.startswith(beginning))
    except OSError:
        return {}
    return {
        Place(store.folder / name, name.rpartition("-")[2]): (int(match[1]), int(match[2]))
        for name in names
        if (match := _SIZE.search(name))
    }


def _from_store(
    places: Sequence["Place"], spec: "Specification", guess: str = "", scale: float = 1.0
) -> Cost | None:
    """Return the mean cost of a few stored runs, None without any of this budget."""
    from ddobench.store.runs import sample_metadata

    costs, sizes, memory = [], [], []
    for place in places[:_PLACES]:
        for meta, size in sample_metadata(place, _SAMPLE):
            row = meta["row"]
            seconds = row.get("seconds_cpu")
            measured = seconds is not None and math.isfinite(seconds) and seconds >= 0
            if row["status"] == "ok" and row["budget"] == spec.budget and measured:
                costs.append(seconds * scale)
                sizes.append(size)
                memory.append(_memory(meta["shape"], spec))
    if not costs:
        return None
    return Cost(sum(costs) / len(costs), sum(sizes) / len(sizes), max(memory), len(costs), guess)


def _from_table(one: "Published", spec: "Specification", guess: str) -> Cost:
    """Return the cost by published runs, whose records hold less than new ones."""
    designs = (one.iterations, one.designs)
    numbers = 2 * math.prod(designs) + one.designs * spec.d  # values, predictions, last designs
    return Cost(
        cpu=one.cpu * _scale(spec, (one.d, one.n)),
        disk=_RECORD_BYTES + _STORED_BYTES * numbers,
        memory=_memory({"values": designs}, spec),
        runs=one.runs,
        guess=guess,
    )


def _memory(shape: Mapping[str, Any], spec: "Specification") -> float:
    """Return the bytes that a run holds at once: its rows, and the designs of all iterations."""
    designs = shape.get("values") or (0, 0)  # (T, K)
    return _FLOAT_BYTES * (spec.n * (spec.d + 1) + math.prod(designs) * spec.d)


def describe_costs(planned: Sequence[tuple[int, Cost | None]], store: "Store") -> str:
    """Return what all planned runs cost, given the number of runs of each cost."""
    runs = sum(number for number, _ in planned)
    known = [(number, cost) for number, cost in planned if cost is not None and number]
    counted = sum(number for number, _ in known)
    if not counted:
        return (f"what they cost is not known, as no run like them is stored in {store.folder}: "
                "run one seed of each to know")  # fmt: skip
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
    """Suggest how many seeds a job should have on a cluster, by the runs that take longest."""
    from ddobench.runner.spec import MOST_SEEDS

    longest = max(cost.cpu for _, cost in known)
    seeds = max(1, min(MOST_SEEDS, int(JOB_SECONDS / longest) if longest else MOST_SEEDS))
    jobs = sum(-(-number // seeds) for number, _ in known)
    most = min(seeds, max(number for number, _ in known))
    memory = _PROGRAM_BYTES + most * max(cost.memory for _, cost in known)
    return (f"on a cluster: seeds_per_job={seeds} makes an array of {jobs} jobs, the longest of "
            f"about {format_seconds(most * longest)} of CPU time, with at least "
            f"{format_bytes(memory)} of memory each")  # fmt: skip


@dataclass(frozen=True)
class Published:
    """The mean cost of the published runs of one method on one task and size."""

    task: str
    method: str
    budget: str
    d: int
    n: int
    runs: int
    cpu: float  # seconds
    iterations: int  # that are recorded
    designs: int


@functools.cache
def read_published() -> list[Published]:
    """Return the costs of published runs, by method and size."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        return [
            Published(row["task"], row["method"], row["budget"], int(row["d"]), int(row["n"]),
                      int(row["runs"]), float(row["cpu"]), int(row["iterations"]),
                      int(row["designs"]))
            for row in csv.DictReader(file)
        ]  # fmt: skip


def tabulate(folder: str | Path) -> str:
    """Return the text of the table, from the records of a folder."""
    text = StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(field.name for field in fields(Published))
    writer.writerows((*astuple(one)[:6], f"{one.cpu:.3g}", *astuple(one)[7:])
                     for one in _sum_up(folder))  # fmt: skip
    return text.getvalue()


def _sum_up(folder: str | Path) -> Iterator[Published]:
    from ddobench.store.runs import Store, load, sample_metadata

    sizes = {
        place.digest: meta["shape"]["values"][0]
        for place in Store(folder).places()
        for meta, _ in sample_metadata(place, 1)
        if meta["shape"].get("values")
    }
    runs = load(folder)
    runs = runs[(runs["status"] == "ok") & (runs["seconds_cpu"] >= 0)]
    for _, group in runs.groupby(KEY, sort=True):
        default = group[(group["task_variant"] == "") & (group["method_variant"] == "")]
        found = group if default.empty else default  # other settings count only without these
        place = found[KEY].iloc[0]
        yield Published(
            task=str(place["task"]),
            method=str(place["method"]),
            budget=str(place["budget"]),
            d=int(place["d"]),
            n=int(place["n"]),
            runs=len(found),
            cpu=float(found["seconds_cpu"].mean()),
            iterations=max(sizes.get(digest, 1) for digest in found["digest"]),
            designs=int(found["designs"].max()),
        )


if __name__ == "__main__":
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.exit("usage: python -m ddobench.cli.plan FOLDER_OF_RECORDS")
    TABLE.write_text(tabulate(sys.argv[1]), encoding="utf-8")
