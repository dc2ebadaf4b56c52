"""What published runs cost, for plans of what nothing stored is like.

The table beside this file is made from published records by

    python -m ddobench.cli.published_costs results/paper/records
"""

import csv
import functools
import sys
from collections.abc import Iterator
from dataclasses import astuple, dataclass, fields
from io import StringIO
from pathlib import Path

TABLE = Path(__file__).with_suffix(".csv")
KEY = ["task", "method", "budget", "d", "n"]


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
    """Return the table as its text, from the records of a folder."""
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
        found = group if default.empty else default  # other settings tell only if nothing else does
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
    if len(sys.argv) != 2:
        sys.exit("usage: python -m ddobench.cli.published_costs FOLDER_OF_RECORDS")
    TABLE.write_text(tabulate(sys.argv[1]), encoding="utf-8")
