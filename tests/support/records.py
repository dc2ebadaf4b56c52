"""Synthetic records of runs, and functions that damage their files."""

import json
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from ddobench.scores import COSTS
from ddobench.store.parquet import COLUMNS
from ddobench.store.records import Record

SCORES = [
    "best_visible", "optimum", "final_model", "final_oracle", "best_oracle", "regret_final",
    "invalid_final", "seconds_fit", "seconds_propose",
]  # fmt: skip
OWN = ("finished", "command", "revision", *(cost.name for cost in COSTS))  # times, provenance
CURVES = ("iteration", "value_model", "value_oracle", "survivors", "invalid", "predicted")
PUBLISHED = Path(__file__).parents[2] / "results" / "paper" / "records"
needs_published = pytest.mark.skipif(
    not PUBLISHED.exists(), reason="the published records are in the repository only"
)


def row_of(seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Return the row of a finished run."""
    identity = {
        "task": "toy", "task_variant": "", "method": "mine", "method_variant": "", "d": 3,
        "n": 10, "seed": seed, "budget": "tiny", "digest": "abc", "status": "ok", "reason": "",
    }  # fmt: skip
    return identity | dict.fromkeys(SCORES, 0.5) | changes


def failed_row(seed: int = 0) -> dict[str, Any]:
    """Return the row of a run without scores."""
    row = row_of(seed, status="failed", reason="ValueError: no")
    return {name: value for name, value in row.items() if name not in SCORES}


def record_of(seed: int = 0, length: int = 3, **changes: Any) -> Record:
    """Return a finished run with every part filled."""
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(length, 4)).astype(np.float32)
    values[0, 0] = np.nan
    return Record(
        row=row_of(seed, **changes),
        config={"task": {"d": 3, "names": ["a", "b"]}, "budget": {"top": 2}},
        provenance={"python": "3.11", "packages": {"torch": "2"}},
        curves={name: rng.normal(size=length) for name in CURVES}
        | {"iteration": np.arange(length, dtype=np.float64)},
        values=values,
        predictions=rng.normal(size=(length, 4)).astype(np.float32),
        designs=rng.normal(size=(4, 3)).astype(np.float32),
        diagnostics={"losses": [1.0, 0.5], "edges": [[0, 1]], "name": "ä"},
    )


def same_record(one: Record, other: Record, without: tuple[str, ...] = ()) -> bool:
    """Return whether two records are equal to the bit, apart from some columns of the row."""
    return _text(one, without) == _text(other, without) and all(
        (a is None) == (b is None) and (a is None or a.tobytes() == b.tobytes())
        for a, b in zip(_arrays(one), _arrays(other), strict=True)
    )


def _text(record: Record, without: tuple[str, ...]) -> str:
    row = {name: value for name, value in record.row.items() if name not in without}
    return json.dumps([row, record.config, record.diagnostics, list(record.curves)], sort_keys=True)


def _arrays(record: Record) -> list[Any]:
    details = [getattr(record, name) for name in ("values", "predictions", "designs")]
    return [*record.curves.values(), *details]


def flip_bit(path: Path, bit: int) -> None:
    """Flip one bit of a file in place."""
    with path.open("r+b") as file:
        file.seek(bit // 8)
        (byte,) = file.read(1)
        file.seek(bit // 8)
        file.write(bytes([byte ^ 1 << bit % 8]))


def truncate(path: Path) -> None:
    """Cut a file in half."""
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def empty(path: Path) -> None:
    """Truncate a file to nothing."""
    path.write_bytes(b"")


def read_footer(path: Path) -> dict[str, Any]:
    """Return the JSON in the footer of a file of runs."""
    found = pq.read_metadata(pa.BufferReader(path.read_bytes())).metadata or {}
    footer: dict[str, Any] = json.loads(found[b"ddobench"])
    return footer


def change_run(path: Path, row: Any = None, **changes: Any) -> None:
    """Rewrite a file of one run with another row or footer, with valid checksums."""
    footer = read_footer(path) | changes
    (cells,) = pq.read_table(pa.BufferReader(path.read_bytes())).to_pylist()
    if isinstance(row, dict):
        footer["shared"][0]["names"] = list(row)
        footer["runs"][0][0] = row["seed"]
        cells["row"] = json.dumps(list(row.values()))
    elif row is not None:
        cells["row"] = json.dumps(row)
    forge(path, footer, pa.table({name: [cells[name]] for name in COLUMNS.names}, schema=COLUMNS))


def forge(path: Path, footer: Any, table: pa.Table) -> None:
    """Write a file with any footer and columns, with valid checksums."""
    text = footer if isinstance(footer, str) else json.dumps(footer)
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(sink, table.schema, write_page_checksum=True, store_schema=False) as out:
        out.write_table(table)
        checksum = f"{crc32(text.encode()):08x}"
        out.add_key_value_metadata({"ddobench": text, "ddobench.crc32": checksum})
    path.write_bytes(sink.getvalue().to_pybytes())
