"""One run as one self-describing Parquet file: its layout, and reading as much of it as is needed.

A file has one row per recorded iteration. Its scalar columns are the curves; list columns hold the
values and predictions of every design, and are read only on demand. The flat row of `load`, the
resolved configuration and the provenance are JSON in the file's metadata. Whatever is read is
compared with its checksum first.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
from numpy.typing import NDArray

from ddobench.store import checksums
from ddobench.store.records import Record
from ddobench.store.soundness import check_columns, check_curves, check_metadata, parse_json

SCHEMA = 3
_KEY = b"ddobench"
ITERATION = "iteration"  # the column that numbers the rows
ARRAYS = ("values", "predictions", "designs")
DETAILS = (*ARRAYS, "diagnostics")
_META = {"schema", "row", "config", "provenance", "shape"}


@dataclass(frozen=True)
class Stored:
    """A run as it is stored, to be stored in another form without loss."""

    meta: dict[str, Any]
    curves: dict[str, NDArray[Any]]  # each (T,), of 64 bits a number
    arrays: dict[str, NDArray[np.float32]]  # values, predictions (T, K), designs (K, d)
    told: str | None  # the diagnostics as JSON

    def same(self, other: "Stored") -> bool:
        """Tell whether two hold the same, bit for bit."""
        texts = [json.dumps([one.meta, one.told]) for one in (self, other)]
        return texts[0] == texts[1] and all(
            [(name, a.dtype, a.shape, a.tobytes()) for name, a in mine.items()]
            == [(name, a.dtype, a.shape, a.tobytes()) for name, a in its.items()]
            for mine, its in ((self.curves, other.curves), (self.arrays, other.arrays))
        )


@dataclass(frozen=True)
class RecordFile:
    """An open file whose footer is sound; its columns are read, and checked, on demand."""

    source: pa.NativeFile
    footer: bytes
    parquet: pq.FileMetaData
    meta: dict[str, Any]
    sums: checksums.Checksums

    def check(self) -> None:
        """Raise unless every part is as it was written."""
        self._check_head()
        self._check_body()

    def read_curves(self) -> pa.Table:
        """Return the columns of numbers."""
        self._check_head()
        names = check_columns(self.parquet.schema.to_arrow_schema(), self.parquet.num_rows, DETAILS)
        return check_curves(self._read(names).replace_schema_metadata(None))

    def read_diagnostics(self) -> dict[str, Any]:
        """Return what a method and the harness had to tell."""
        if "diagnostics" not in self.parquet.schema.to_arrow_schema().names:
            return {}
        self._check_body()
        told: dict[str, Any] = parse_json(self._read(["diagnostics"])[0][-1].as_py())
        return told

    def read_record(self) -> Record:
        """Return everything."""
        self.check()
        table = self._read(None)
        detail = {name: table[name] for name in DETAILS if name in table.column_names}
        curves = {
            name: np.asarray(table[name], dtype=np.float64)
            for name in table.column_names
            if name not in DETAILS
        }
        shape = self.meta["shape"]
        return Record(
            row=self.meta["row"],
            config=self.meta["config"],
            provenance=self.meta["provenance"],
            curves=curves,
            values=_matrix(detail.get("values"), shape.get("values")),
            predictions=_matrix(detail.get("predictions"), shape.get("predictions")),
            designs=_matrix(detail.get("designs"), shape.get("designs")),
            diagnostics=parse_json(detail["diagnostics"][-1].as_py()) if detail else {},
        )

    def read_stored(self) -> Stored:
        """Return everything as it is stored; raise if it has parts that no pack can hold."""
        self.check()
        if {*self.meta} != _META:
            raise ValueError(f"its metadata must be {', '.join(sorted(_META))}")
        curves, table = self.read_curves(), self._read(None)
        if [table.schema.field(name) for name in curves.column_names] != [*curves.schema]:
            raise ValueError("its curves must be numbers of 64 bits")
        shape = self.meta["shape"]
        arrays = {
            name: _matrix(table[name], shape.get(name))
            for name in ARRAYS if name in table.column_names
        }  # fmt: skip
        if any(array is None or array.dtype != np.float32 for array in arrays.values()):
            raise ValueError("its designs and their values must be numbers of 32 bits")
        told = table["diagnostics"][-1].as_py() if "diagnostics" in table.column_names else None
        return Stored(
            meta=self.meta,
            curves={name: _plain_numbers(curves[name]) for name in curves.column_names},
            arrays=arrays,
            told=told,
        )

    def _check_head(self) -> None:
        checksums.check_head(self.source, self.sums)

    def _check_body(self) -> None:
        checksums.check_body(self.source, self.sums, self.footer)

    def _read(self, columns: list[str] | None) -> pa.Table:
        self.source.seek(0)
        file = pq.ParquetFile(self.source, metadata=self.parquet, pre_buffer=False)
        return file.read(columns=columns, use_threads=False)  # a few small columns


@contextmanager
def open_record(path: Path) -> Iterator[RecordFile]:
    """Open a stored run, or raise an error that says why it is none."""
    with pa.OSFile(str(path), "rb") as source:  # given a name, Parquet takes `a:b` for an address
        footer = checksums.read_footer(source)
        sums = checksums.check_footer(footer)
        parquet = pq.read_metadata(pa.BufferReader(footer))
        found = parquet.metadata or {}
        if _KEY not in found:
            raise ValueError("no ddobench metadata in it")
        meta: dict[str, Any] = parse_json(found[_KEY])
        check_metadata(meta, SCHEMA)
        if sums is None:
            raise ValueError("damaged: its checksums are missing")
        yield RecordFile(source, footer, parquet, meta, sums)


def to_bytes(record: Record) -> bytes:
    """Lay a record out as a Parquet file with its checksums."""
    table = _to_table(record)
    sink, written = pa.BufferOutputStream(), list[pq.FileMetaData]()
    # Random floats gain nothing from dictionaries and statistics, which double the time.
    pq.write_table(
        table, sink, use_dictionary=False, write_statistics=False, metadata_collector=written
    )
    content = sink.getvalue().to_pybytes()
    return checksums.fill_in(content, _end_of_curves(table.column_names, written[0]))


def _end_of_curves(names: list[str], parquet: pq.FileMetaData) -> int | None:
    """Return where the first column begins that summaries do not read."""
    details = [index for index, name in enumerate(names) if name in DETAILS]
    return parquet.row_group(0).column(details[0]).data_page_offset if details else None


def _to_table(record: Record) -> pa.Table:
    columns: dict[str, Any] = {name: pa.array(curve) for name, curve in record.curves.items()}
    length = len(next(iter(record.curves.values()), ()))
    shape: dict[str, list[int]] = {}
    for name in ("values", "predictions"):
        matrix = getattr(record, name)
        if matrix is not None:
            columns[name] = _lists(matrix)
            shape[name] = list(matrix.shape)
    if length:
        if record.designs is not None:
            columns["designs"] = pa.array(
                [None] * (length - 1) + [record.designs.ravel()], pa.list_(pa.float32())
            )
            shape["designs"] = list(record.designs.shape)
        columns["diagnostics"] = pa.array(
            [None] * (length - 1) + [json.dumps(record.diagnostics, default=_plain)], pa.string()
        )
    meta = {
        "schema": SCHEMA,
        "row": record.row,
        "config": record.config,
        "provenance": record.provenance,
        "shape": shape,
    }
    return pa.table(columns).replace_schema_metadata(
        {_KEY: json.dumps(meta, default=_plain).encode(), checksums.KEY: checksums.EMPTY}
    )


def _plain(value: Any) -> Any:
    """Let JSON hold NumPy and torch numbers and arrays."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return str(value)


def _plain_numbers(column: Any) -> NDArray[Any]:
    if column.null_count:
        raise ValueError("its curves must have no gaps")
    numbers: NDArray[Any] = column.to_numpy()
    return numbers


def _lists(matrix: np.ndarray[Any, np.dtype[np.float32]]) -> Any:
    return pa.FixedSizeListArray.from_arrays(pa.array(matrix.ravel()), matrix.shape[1])


def _matrix(column: Any, shape: list[int] | None) -> Any:
    if column is None or shape is None:
        return None
    flat = np.concatenate([chunk.drop_null().flatten().to_numpy() for chunk in column.chunks])
    return flat.reshape(shape)
