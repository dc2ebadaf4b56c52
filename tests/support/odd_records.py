"""Invalid records: each a file that is wrong in one way, stored beside good ones."""

import json
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from ddobench.store.parquet import COLUMNS, SCHEMA
from tests.support.records import forge, read_footer
from tests.support.synthetic_runs import Row, run_row

SEED = 7  # of every odd record; the good ones beside them have others
Spoil = Callable[[Path, "Odd"], None]
Change = Callable[[str], str]


class Odd:
    """The content of a record, before it is written."""

    def __init__(self) -> None:
        self.row: Row = run_row("naive", 10, SEED)
        self.shared: dict[str, Any] = {
            "shape": {}, "left_out": [], "config": {"method": {"width": 1}},
            "provenance": {"python": "3.11", "packages": {"torch": "2"}, "revision": "a" * 40},
        }  # fmt: skip
        self.schema: Any = SCHEMA
        self.curves: dict[str, Any] = {"iteration": [0, 1], "value_model": [50.0, 50.0]}

    def write(self, path: Path, change_footer: Change = str, change_row: Change = str) -> None:
        """Write the record, with a change to the text of its footer or row."""
        shared = {"names": list(self.row), "curves": list(self.curves), **self.shared}
        seed = int(path.name[5:10])
        footer = {"schema": self.schema, "runs": [[seed, 0]], "shared": [shared]}
        cells = {
            "row": change_row(json.dumps(list(self.row.values()))),
            "curves": np.concatenate([*self.curves.values()]).astype(float),
            "diagnostics": "{}",
            "arrays": [],
        }
        table = pa.table({name: [cell] for name, cell in cells.items()}, schema=COLUMNS)
        forge(path, change_footer(json.dumps(footer)), table)


def _row(**changes: Any) -> Spoil:
    def spoil(path: Path, odd: Odd) -> None:
        odd.row.update(changes)
        odd.write(path)

    return spoil


def _without(name: str) -> Spoil:
    def spoil(path: Path, odd: Odd) -> None:
        (odd.row if name in odd.row else odd.shared).pop(name)
        odd.write(path)

    return spoil


def _shared(**changes: Any) -> Spoil:
    def spoil(path: Path, odd: Odd) -> None:
        odd.shared.update(changes)
        odd.write(path)

    return spoil


def _schema(schema: Any) -> Spoil:
    def spoil(path: Path, odd: Odd) -> None:
        odd.schema = schema
        odd.write(path)

    return spoil


def _curves(**changes: Any) -> Spoil:
    def spoil(path: Path, odd: Odd) -> None:
        odd.curves |= changes
        odd.write(path)

    return spoil


def _footer_text(change: Change) -> Spoil:
    return lambda path, odd: odd.write(path, change_footer=change)


def _row_text(change: Change) -> Spoil:
    return lambda path, odd: odd.write(path, change_row=change)


def _columns(**columns: Any) -> Spoil:
    """Return a change to the types of columns."""

    def spoil(path: Path, odd: Odd) -> None:
        odd.write(path)
        footer, cells = read_footer(path), pq.read_table(path).to_pydict()
        forge(path, footer, pa.table(cells | columns))

    return spoil


def _no_iteration(path: Path, odd: Odd) -> None:
    odd.curves.pop("iteration")
    odd.write(path)


def _text_file(path: Path, _: Odd) -> None:
    path.write_text("mine")


def _many_rows(path: Path, odd: Odd) -> None:
    """Write some kilobytes that are sixteen megabytes when read."""
    odd.curves = {"iteration": np.arange(2_000_000)}
    odd.write(path)


def _socket(path: Path, _: Odd) -> None:
    here = Path.cwd()
    os.chdir(path.parent)  # the names of sockets are short
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(path.name)
    os.chdir(here)


def _copy(path: Path, _: Odd) -> None:
    """Copy a good run into another folder."""
    good = next(path.parent.glob("seed-00000.parquet"))
    folder = path.parent / path.parent.name
    folder.mkdir()
    (folder / good.name).write_bytes(good.read_bytes())


def deep(levels: int) -> Any:
    """Return lists in lists."""
    nested: Any = []
    for _ in range(levels):
        nested = [nested]
    return nested


HALF = "\ud83d"  # of a character
DEEP_TEXT = "[" * 200_000 + "]" * 200_000

ODD_RECORDS: dict[str, Spoil] = {
    "d is null": _row(d=None),
    "d is text": _row(d="10"),
    "d is a fraction": _row(d=10.5),
    "d is true": _row(d=True),
    "d is 0": _row(d=0),
    "n has 400 digits": _row_text(lambda text: text.replace(" 100,", f" {'9' * 400},", 1)),
    "n is not a number": _row(n=float("nan")),
    "task is null": _row(task=None),
    "task is a number": _row(task=3),
    "method is a list": _row(method=["naive"]),
    "budget is a mapping": _row(budget={"top": 1}),
    "budget is long": _row(budget="x" * 300),
    "variant is long": _row(method_variant="x" * 3000),
    "label is huge": _row(label="x" * 1_000_000),
    "reason is huge": _row(reason="x" * 1_000_000),
    "status is unknown": _row(status="perfect"),
    "status is failed": _row(status="failed"),
    "score is text": _row(final_model="9.5"),
    "score is true": _row(regret_final=True),
    "score is a list": _row(regret_final=[1.0]),
    "unknown column is a list": _row(mine=[1, 2]),
    "column is half a character": _row(label=HALF),
    "row without task": _without("task"),
    "row without digest": _without("digest"),
    "row without status": _without("status"),
    "row with 5,000 columns": _row(**{f"c{i}": i for i in range(5000)}),
    "no provenance": _without("provenance"),
    "no config": _without("config"),
    "no schema": _schema(None),
    "schema is text": _schema(str(SCHEMA)),
    "schema is older": _schema(SCHEMA - 1),
    "provenance is null": _shared(provenance=None),
    "provenance is text": _shared(provenance="mine"),
    "packages are a list": _shared(provenance={"packages": ["torch"]}),
    "revision is a list": _shared(provenance={"revision": ["a"]}),
    "config is a list": _shared(config=[1]),
    "method in config is text": _shared(config={"method": "naive"}),
    "config is deep": _shared(config={"method": {"graph": deep(80)}}),
    "provenance is deep": _shared(provenance={"packages": {"torch": deep(80)}}),
    "footer is very deep": _footer_text(lambda _: DEEP_TEXT),
    "row is very deep": _row_text(lambda text: text.replace('"Naive"', DEEP_TEXT)),
    "row is a mapping": _row_text(lambda _: "{}"),
    "row is short": _row_text(lambda _: "[1, 2]"),
    "row is no JSON": _row_text(lambda _: "["),
    "footer is a list": _footer_text(lambda _: "[]"),
    "footer is no JSON": _footer_text(lambda _: "{"),
    "footer has a key twice": _footer_text(lambda text: text.replace("{", '{"schema": 1, ', 1)),
    "footer names no run": _footer_text(
        lambda text: text.replace('"runs": [[', '"runs": [], "x": [[')
    ),
    "footer names a part that is not there": _footer_text(
        lambda text: text.replace(", 0]]", ", 1]]")
    ),
    "footer names another seed": _footer_text(
        lambda text: text.replace('"runs": [[', '"runs": [[1')
    ),
    "row has a column twice": _shared(names=["task", "task"]),
    "shape is text": _shared(shape={"values": "large"}),
    "shape is of something else": _shared(shape={"mine": [1, 1]}),
    "curve is text": _columns(curves=[["up", "down"]]),
    "row is binary": _columns(row=[b"[]"]),
    "one column more": _columns(mine=[1]),
    "two rows": _columns(
        row=["[]"] * 2, curves=[[0.0]] * 2, diagnostics=["{}"] * 2, arrays=[[0.0]] * 2
    ),
    "two curves of a name": _shared(curves=["iteration", "iteration"]),
    "curves of different lengths": _curves(value_model=[1.0]),
    "iteration is missing": _no_iteration,
    "iteration comes twice": _curves(iteration=[1, 1]),
    "iteration is a fraction": _curves(iteration=[0.0, 0.5]),
    "iteration is not a number": _curves(iteration=[0.0, float("nan")]),
    "iteration is infinite": _curves(iteration=[0.0, float("inf")]),
    "2,000,000 iterations": _many_rows,
    "copy of a good run": _copy,
    "text file": _text_file,
    "empty file": lambda path, _: path.touch(),
    "other Parquet": lambda path, _: pq.write_table(pa.table({"a": [1]}), path),
    "folder": lambda path, _: path.mkdir(),
    "named pipe": lambda path, _: os.mkfifo(path),
    "socket": _socket,
    "link to itself": lambda path, _: path.symlink_to(path.name),
    "link to nothing": lambda path, _: path.symlink_to("nothing"),
    "link to a device": lambda path, _: path.symlink_to("/dev/zero"),
}


def place_odd(folder: Path, name: str, number: int = 0) -> Path:
    """Put an odd record beside the good runs of its kind, and return its path."""
    odd = Odd()
    odd.row["seed"] = SEED + number
    place = next(folder.glob(f"*-{odd.row['digest']}"))
    path = place / f"seed-{odd.row['seed']:05d}.parquet"
    ODD_RECORDS[name](path, odd)
    return path


def failure_text(**changes: Any) -> str:
    """Return the content of the file of a failed run, with changes."""
    row = run_row("naive", 10, SEED, status="failed", reason="no") | changes
    return json.dumps({"row": row, "trace": ""})


ODD_FAILURES = {
    "d is null": failure_text(d=None),
    "status is ok": failure_text(status="ok"),
    "status is a list": failure_text(status=[]),
    "score is text": failure_text(final_model="up"),
    "row is very deep": failure_text(reason=0).replace('"reason": 0', f'"reason": {DEEP_TEXT}'),
    "no row": '{"trace": ""}',
    "row is text": '{"row": "mine"}',
    "a list": "[1]",
    "a number": "1",
    "very deep": DEEP_TEXT,
    "no JSON": "no",
}

SAMPLE: dict[str, Any] = {
    "task": "quadratic", "task_variant": "", "d": 10, "n": 100, "seed": 0, "title": "t",
    "formula": "f", "text": "x", "edges": [[0, 1]], "observed": [[0.5, 1.5], [1.0, 2.0]],
    "hidden": None, "y": [0.0, 1.0],
}  # fmt: skip
ODD_SAMPLES: dict[str, Any] = {
    "a list": [],
    "without y": {name: value for name, value in SAMPLE.items() if name != "y"},
    "with another key": SAMPLE | {"mine": 1},
    "d is null": SAMPLE | {"d": None},
    "title is a number": SAMPLE | {"title": 3},
    "y is text": SAMPLE | {"y": "up"},
    "y is infinite": SAMPLE | {"y": [0.0, float("inf")]},
    "y is short": SAMPLE | {"y": [0.0]},
    "no designs": SAMPLE | {"y": [], "observed": []},
    "designs of different lengths": SAMPLE | {"observed": [[0.5], [1.0, 2.0]]},
    "designs are text": SAMPLE | {"observed": [["a", "b"], ["c", "d"]]},
    "hidden is text": SAMPLE | {"hidden": "h"},
    "edges lead elsewhere": SAMPLE | {"edges": [[0, 10]]},
    "edges are negative": SAMPLE | {"edges": [[-1, 1]]},
    "edges are triples": SAMPLE | {"edges": [[0, 1, 2]]},
    "edges are a number": SAMPLE | {"edges": 3},
}
