"""Runs as Parquet: a row group for each run, with one row in it.

A sweep writes one file for each run. `python -m ddobench.compact` folds the runs of a specification
into one file. Both have the same columns and the same reader. The columns of arrays are lists; the
footer holds, as JSON, the seed of each row group and what runs have in common: the names of the
columns of their flat row, their configuration, provenance, names of curves and shapes.

Parquet's page checksums cover all columns and are compared when a page is read. They do not cover
the footer, so its JSON has a checksum of its own, and the columns must be exactly those below.

The last entry of the footer is a seal: the seeds of the file and a checksum of all its bytes. So a
sound file is recognised without decoding it. A file without a seal that holds is decoded.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ddobench.seeds import format_seeds
from ddobench.store.checks import (
    ITERATION,
    check_iterations,
    check_regular,
    check_shared,
    parse_json,
)
from ddobench.store.records import ARRAYS, Record, to_json

SCHEMA = 1
_KEY, _CHECKSUM, _SEALED = "ddobench", "ddobench.crc32", "ddobench.seal"  # in the footer
_SEAL = "<ddobench schema={} crc32={} digest={} seeds={}>"
_NO_CHECKSUM = b"00000000"  # what stands for the checksum while it is computed
_SEAL_PATTERN = re.compile(
    _SEAL.format(SCHEMA, "([0-9a-f]{8})", "([^ <>]*)", "([0-9,-]+)").encode()
)


def _lists(kind: pa.DataType) -> pa.DataType:
    return pa.list_(pa.field("element", kind))  # the name that Parquet gives to elements


COLUMNS = pa.schema([
    ("row", pa.string()),  # JSON: the values of the flat row, a list
    ("curves", _lists(pa.float64())),  # (C, T), one curve after the other
    ("diagnostics", pa.string()),  # JSON
    ("arrays", _lists(pa.float32())),  # those of ARRAYS that are stored, one after the other
])  # fmt: skip


class NewerSchemaError(ValueError):
    """A file was written by a later version of this program."""


@dataclass(frozen=True)
class StoredRun:
    """One run as it is stored, or some columns of it."""

    seed: int
    shared: dict[str, Any]  # names, config, provenance, curves, shape, left_out
    cells: dict[str, Any]  # by column: a text, a flat array, or None

    def same(self, other: "StoredRun") -> bool:
        """Return whether two runs hold the same, to the bit."""

        def bits(run: StoredRun) -> list[Any]:
            shared = json.dumps(run.shared)
            cells = [c.tobytes() if isinstance(c, np.ndarray) else c for c in run.cells.values()]
            return [run.seed, shared, *run.cells, *cells]

        return bits(self) == bits(other)

    def metadata(self) -> dict[str, Any]:
        """Return the flat row, the configuration, the provenance and the shapes of arrays."""
        values = parse_json(self.cells["row"] or "")
        if not isinstance(values, list) or len(values) != len(self.shared["names"]):
            raise ValueError("its row must have a value for each of its names")
        row = dict(zip(self.shared["names"], values, strict=True))
        if row.get("seed") != self.seed:
            raise ValueError("it holds another run than its footer says")
        kept = {name: self.shared[name] for name in ("config", "provenance", "shape")}
        return {"row": row, **kept}

    def curves(self) -> dict[str, NDArray[Any]]:  # each (T,)
        """Return the curves; iterations are whole numbers."""
        flat, names = self.cells["curves"], self.shared["curves"]
        if flat is None or len(flat) % max(1, len(names)) or (len(flat) and not names):
            raise ValueError("its curves must have the same length")
        parts = np.split(flat, len(names)) if names else []
        curves = dict(zip(names, parts, strict=True))
        if len(flat):
            check_iterations(curves.get(ITERATION))
            curves[ITERATION] = curves[ITERATION].astype(np.int64)
        return curves

    def diagnostics(self) -> dict[str, Any]:
        """Return what the method and the harness recorded beside the scores."""
        found = parse_json(self.cells["diagnostics"] or "{}")
        if not isinstance(found, dict):
            raise ValueError("its diagnostics must be a mapping")
        return found

    def arrays(self) -> dict[str, NDArray[np.float32]]:
        """Return those of ARRAYS that are stored."""
        stored = [n for n in self.shared["shape"] if n not in self.shared["left_out"]]
        shapes = [self.shared["shape"][name] for name in stored]
        ends = np.cumsum([rows * columns for rows, columns in shapes], dtype=int)
        flat = self.cells["arrays"]
        if flat is None or len(flat) != (ends[-1] if stored else 0):
            raise ValueError("its designs and their values must have the shapes that it names")
        parts = zip(stored, np.split(flat, ends[:-1]), shapes, strict=False)
        return {name: part.reshape(shape) for name, part, shape in parts}

    def record(self) -> Record:
        """Return everything."""
        meta = self.metadata()
        return Record(
            row=meta["row"],
            config=meta["config"],
            provenance=meta["provenance"],
            curves={name: curve.astype(np.float64) for name, curve in self.curves().items()},
            **self.arrays(),
            diagnostics=self.diagnostics(),
            left_out=tuple(self.shared["left_out"]),
        )


@dataclass(frozen=True)
class RunFile:
    """An open file whose footer is sound; its row groups are read, and checked, on demand."""

    parquet: pq.ParquetFile
    places: dict[int, int]  # row group by seed
    shared: list[dict[str, Any]]  # by row group

    def read(self, seed: int, columns: Sequence[str] = COLUMNS.names) -> StoredRun:
        """Return some columns of one run."""
        group = self.places[seed]
        with _damage_as_value_error():
            table = self.parquet.read_row_group(group, columns=list(columns), use_threads=False)
        (cells,) = _to_cells(table, 1)
        return StoredRun(seed, self.shared[group], cells)

    def read_all(self, columns: Sequence[str] = COLUMNS.names) -> list[StoredRun]:
        """Return some columns of all runs, read at once; raise if one of them is damaged."""
        with _damage_as_value_error():
            table = self.parquet.read(columns=list(columns), use_threads=False)
        cells = _to_cells(table, len(self.places))
        return [
            StoredRun(seed, self.shared[group], cells[group])
            for seed, group in self.places.items()
        ]  # fmt: skip


@contextmanager
def open_runs(path: Path) -> Iterator[RunFile]:
    """Open a file of runs, or raise an error that says why it cannot be used."""
    check_regular(path)
    with pa.OSFile(str(path), "rb") as source:  # given a name, Parquet takes `a:b` for an address
        with _damage_as_value_error():
            parquet = pq.ParquetFile(source, page_checksum_verification=True, pre_buffer=False)
        yield _read_footer(parquet)


@contextmanager
def _damage_as_value_error() -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"damaged, or not a Parquet file: {error}") from error


def _read_footer(parquet: pq.ParquetFile) -> RunFile:
    found = parquet.metadata.metadata or {}
    text, checksum = found.get(_KEY.encode()), found.get(_CHECKSUM.encode())
    if text is None or checksum is None:
        raise ValueError("its footer has no metadata of ddobench")
    if checksum != b"%08x" % crc32(text):
        raise ValueError("damaged: its footer does not match its checksum")
    footer = parse_json(text)
    schema = footer.get("schema") if isinstance(footer, dict) else None
    if not isinstance(schema, int):
        raise ValueError("its footer must name a schema")
    if schema > SCHEMA:
        raise NewerSchemaError(f"written by a newer ddobench (schema {schema} > {SCHEMA})")
    if schema < SCHEMA or parquet.schema_arrow.remove_metadata() != COLUMNS:
        raise ValueError("damaged: its columns are not those of a run")
    runs, shared = footer.get("runs"), footer.get("shared")
    groups = parquet.metadata.num_row_groups
    if not isinstance(runs, list) or not isinstance(shared, list) or len(runs) != groups:
        raise ValueError("its footer must name a seed for each row group")
    for one in shared:
        check_shared(one)
    places: dict[int, int] = {}
    for group, run in enumerate(runs):
        if not (isinstance(run, list) and len(run) == 2 and all(type(n) is int for n in run)):
            raise ValueError("its footer must name a seed for each row group")
        if run[0] in places or not 0 <= run[1] < len(shared):
            raise ValueError("its footer names a seed twice, or a part that is not there")
        places[run[0]] = group
    return RunFile(parquet, places, [shared[number] for _, number in runs])


def to_bytes(runs: Sequence[StoredRun]) -> bytes:
    """Return a file of runs with different seeds; the same runs always give the same bytes."""
    shared: dict[str, int] = {}
    ordered = sorted(runs, key=lambda run: run.seed)
    numbers = [shared.setdefault(json.dumps(run.shared), len(shared)) for run in ordered]
    footer = json.dumps(
        {
            "schema": SCHEMA,
            "runs": [[run.seed, number] for run, number in zip(ordered, numbers, strict=True)],
            "shared": [json.loads(text) for text in shared],
        },
        separators=(",", ":"),
    )
    sink = pa.BufferOutputStream()
    with pq.ParquetWriter(
        sink,
        COLUMNS,
        compression="zstd",
        compression_level=9,
        use_dictionary=False,
        write_statistics=False,
        use_byte_stream_split=[f"{name}.list.element" for name in ("curves", "arrays")],
        write_page_checksum=True,
        store_schema=False,
    ) as writer:
        for run in ordered:
            columns = {name: [run.cells[name]] for name in COLUMNS.names}
            writer.write_table(pa.table(columns, schema=COLUMNS))
        checksum = f"{crc32(footer.encode()):08x}"
        digest = ordered[0].metadata()["row"]["digest"] if ordered else ""
        seeds = format_seeds(run.seed for run in ordered)
        seal = _SEAL.format(SCHEMA, _NO_CHECKSUM.decode(), digest, seeds)
        writer.add_key_value_metadata({_KEY: footer, _CHECKSUM: checksum, _SEALED: seal})
    content: bytes = sink.getvalue().to_pybytes()
    match = _find_seal(content)
    return content if match is None else _sum_up(content, match).join(_around(content, match))


def read_seal(content: bytes) -> tuple[str, str] | None:
    """Return the digest and the seeds of a file's content, None if no seal says it is whole."""
    match = _find_seal(content)
    if match is None or _sum_up(content, match) != match[1]:
        return None
    return match[2].decode(), match[3].decode()


def _find_seal(content: bytes) -> re.Match[bytes] | None:
    return _SEAL_PATTERN.match(content, max(0, content.rfind(b"<ddobench ")))


def _sum_up(content: bytes, match: re.Match[bytes]) -> bytes:
    """Return the checksum of a content but for the checksum in its seal."""
    before, after = _around(content, match)
    return b"%08x" % crc32(after, crc32(_NO_CHECKSUM, crc32(before)))


def _around(content: bytes, match: re.Match[bytes]) -> tuple[bytes, bytes]:
    return content[: match.start(1)], content[match.end(1) :]


def to_stored(record: Record) -> StoredRun:
    """Return a record as it is stored."""
    given = {name: getattr(record, name) for name in ARRAYS}
    arrays = {name: array for name, array in given.items() if array is not None}
    shared = {
        "names": list(record.row),
        "config": record.config,
        "provenance": record.provenance,
        "curves": list(record.curves),
        "shape": {name: list(array.shape) for name, array in arrays.items()},
        "left_out": list(record.left_out),
    }
    cells = {
        "row": to_json(list(record.row.values())),
        "curves": join(record.curves.values(), np.float64),
        "diagnostics": to_json(record.diagnostics),
        "arrays": join(arrays.values(), np.float32),
    }
    return StoredRun(int(record.row["seed"]), json.loads(to_json(shared)), cells)


def join(arrays: Iterable[NDArray[Any]], kind: type[np.floating[Any]]) -> NDArray[Any]:
    """Return the numbers of arrays one after the other."""
    return np.concatenate([np.zeros(0, kind), *(np.asarray(a, kind).ravel() for a in arrays)])


def _to_cells(table: pa.Table, rows: int) -> list[dict[str, Any]]:
    """Return the rows of a table, lists as arrays."""
    if len(table) != rows:
        raise ValueError(f"it must have one row in each of {rows} row groups, got {len(table)}")
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if column.type == pa.string():
            columns[name] = column.to_pylist()
            continue
        lists: Any = column.combine_chunks()
        ends, numbers = lists.offsets.to_numpy(), lists.values.to_numpy(zero_copy_only=False)
        missing = lists.is_null().to_pylist()
        columns[name] = [
            None if missing[i] else numbers[ends[i] : ends[i + 1]] for i in range(rows)
        ]  # fmt: skip
    return [{name: column[i] for name, column in columns.items()} for i in range(rows)]
