"""Stores of synthetic runs, for the tests of the report."""

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np

from ddobench.report.data import ReportData
from ddobench.store.records import Record, TaskSample
from ddobench.store.runs import Place, Store
from tests.support.synthetic_runs import STEPS, Row, curve_of

Details = dict[str, Any]
Fill = Callable[[list[Row]], Path]
PROVENANCE = {"python": "3.11", "packages": {"torch": "2.13.0"}, "revision": "a" * 40}


def place_of(store: Store, row: Row) -> Place:
    """Return the folder of a row's configuration."""
    return store.place(row["task"], row["method"], row["d"], row["n"], row["digest"])


def store_records(folder: Path, records: Iterable[Record]) -> Path:
    """Store runs; a failed one leaves its error only."""
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    for record in records:
        _write(store, place_of(store, record.row), record)
    return folder


def store_rows(folder: Path, rows: list[Row]) -> Path:
    """Write rows into a store, with the provenance of a run each."""
    folder.mkdir(parents=True, exist_ok=True)
    store = Store(folder)
    curves = {"iteration": np.zeros(1), "value_model": np.zeros(1)}
    for row in rows:
        # A task or a method may have a name here that no folder can have.
        place = store.place("task", "method", row["d"], row["n"], row["digest"])
        _write(store, place, Record(row=row, provenance=PROVENANCE, curves=curves))
    return folder


def _write(store: Store, place: Place, record: Record) -> None:
    if record.row["status"] == "failed":
        store.write_failure(place, record.row, "Traceback")
    else:
        store.write(place, record)


def stored_with(
    folder: Path,
    runs: list[tuple[Row, Details]],
    configs: dict[str, Details] | None = None,
    samples: tuple[TaskSample, ...] = (),
    steps: int = STEPS,
) -> ReportData:
    """Write runs that iterate, with their diagnostics, and read them."""
    store = Store(folder)
    for row, details in runs:
        curve = curve_of(row, steps).drop(columns=["digest", "seed"])
        curves = {str(name): curve[name].to_numpy(dtype=float) for name in curve}
        config = (configs or {}).get(row["digest"], {})
        store.write(place_of(store, row), Record(row, config, PROVENANCE, curves,
                                                 diagnostics=details))  # fmt: skip
    for sample in samples:
        store.write_sample(store.sample(sample.task, f"{sample.d}"), sample)
    return ReportData.read(folder)
