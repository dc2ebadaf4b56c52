"""A file of runs holds what was written, and damage to it is noticed before it counts."""

import numpy as np
import pandas as pd
import pytest

from ddobench.store.checks import parse_json
from ddobench.store.folding import compact
from ddobench.store.parquet import SCHEMA, open_runs, to_bytes, to_stored
from ddobench.store.records import Record
from ddobench.store.runs import Place, Store, load, load_curves, read_diagnostics, read_record
from tests.support.records import change_run, flip_bit, record_of, row_of, same_record

RECORDS, FLIPS = 6, 300


def test_the_same_runs_are_the_same_bytes() -> None:
    runs = [to_stored(record_of(seed)) for seed in (3, 1)]
    assert to_bytes(runs) == to_bytes(runs[::-1])


def test_numbers_keep_every_bit(store: Store, place: Place) -> None:
    payload = np.array([0x7FF8000000000123, 0x8000000000000000], np.uint64).view(np.float64)
    values = np.array([[0x7FC00123], [0x80000000]], np.uint32).view(np.float32)
    curves = {"iteration": np.arange(2), "odd": payload}
    store.write(place, Record(row_of(), curves=curves, values=values))  # type: ignore[arg-type]
    for _ in range(2):  # as written, then folded
        found = read_record(place.file(0))
        assert found.curves["odd"].tobytes() == payload.tobytes()
        assert vars(found)["values"].tobytes() == values.tobytes()
        assert load_curves(store.folder)["iteration"].dtype == np.int64
        compact(store.folder)


def test_a_record_is_a_parquet_file_for_anyone(store: Store, place: Place) -> None:
    record = record_of(0)
    (row,) = pd.read_parquet(store.write(place, record)).to_dict("records")
    assert row["curves"].tolist() == np.concatenate([*record.curves.values()]).tolist()
    assert parse_json(row["row"]) == list(record.row.values())


@pytest.mark.parametrize("folded", [False, True], ids=["single", "folded"])
def test_a_flipped_bit_changes_nothing_unnoticed(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture, folded: bool
) -> None:
    records = [record_of(seed, length=1 + seed % 3) for seed in range(RECORDS)]
    for record in records:
        store.write(place, record)
    if folded:
        compact(store.folder)
    rng, lost = np.random.default_rng(0), set[int]()
    paths = sorted(place.folder.iterdir())
    for _ in range(FLIPS):
        path = paths[rng.integers(len(paths))]
        content = path.read_bytes()
        footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
        bit = int(rng.integers(8 * len(content)))
        flip_bit(path, bit)
        caplog.clear()
        missing = store.missing(place, range(RECORDS))
        assert bool(missing) == ("is not a readable run and is left out: " in caplog.text)
        if bit < 8 * footer:  # not in the footer, which all runs of a file need
            assert len(missing) <= 1
        lost |= {*missing}
        for seed in {*range(RECORDS)} - {*missing}:
            assert same_record(read_record(place.file(seed)), records[seed])
        flip_bit(path, bit)
    assert lost == {*range(RECORDS)}
    assert store.missing(place, range(RECORDS)) == []


def test_no_bit_of_a_footer_can_turn_unnoticed(store: Store, place: Place) -> None:
    record = record_of(0, length=1)
    path = store.write(place, record)
    content = path.read_bytes()
    length = int.from_bytes(content[-8:-4], "little")
    for byte in range(len(content) - 8 - length, len(content)):
        flip_bit(path, 8 * byte + byte % 8)
        assert store.missing(place, [0]) == [0] or same_record(read_record(path), record), byte
        flip_bit(path, 8 * byte + byte % 8)


@pytest.mark.parametrize("folded", [False, True], ids=["single", "folded"])
def test_a_file_that_is_as_it_was_written_is_not_decoded(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch, folded: bool
) -> None:
    for seed in range(RECORDS):
        store.write(place, record_of(seed))
    if folded:
        compact(store.folder)
    monkeypatch.setattr("ddobench.store.runs.open_runs", None)
    assert store.missing(place, range(RECORDS + 1)) == [RECORDS]


def test_a_file_without_a_seal_is_decoded(store: Store, place: Place) -> None:
    change_run(store.write(place, record_of(0)))
    assert store.missing(place, [0]) == []


def test_a_sealed_file_under_the_name_of_another_run_does_not_count(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.write(place, record_of(0))
    other = store.place("toy", "mine", 3, 10, "abd")
    other.folder.mkdir()
    for copy, where in ((place.file(1), place), (other.file(0), other)):
        copy.write_bytes(path.read_bytes())
        assert store.missing(where, [0, 1])
        assert f"{copy} is not a readable run and is left out: it holds another run" in caplog.text


def test_a_summary_does_not_read_designs_and_their_values(store: Store, place: Place) -> None:
    path = store.write(place, record_of(0))
    with open_runs(path) as file:
        group = file.parquet.metadata.row_group(0)
        last = group.column(group.num_columns - 1)
    flip_bit(path, 8 * (last.data_page_offset + last.total_compressed_size - 5))
    assert load(store.folder)["seed"].tolist() == [0]
    assert len(load_curves(store.folder)) == 3
    assert read_diagnostics(path) == record_of(0).diagnostics
    assert store.missing(place, [0]) == [0]


def test_a_damaged_run_is_replaced_and_then_stored(store: Store, place: Place) -> None:
    path = store.write(place, record_of(0))
    flip_bit(path, 800)
    assert store.missing(place, [0]) == [0]
    store.write(place, record_of(0))
    assert store.missing(place, [0]) == []
    assert same_record(read_record(path), record_of(0))


def test_a_run_of_a_newer_version_is_named_skipped_and_never_overwritten(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.write(place, record_of(0))
    change_run(path, schema=SCHEMA + 1)
    content = path.read_bytes()
    assert store.missing(place, [0, 1]) == [1]
    (message,) = caplog.messages
    assert message == (
        f"{path} was written by a newer ddobench (schema {SCHEMA + 1} > {SCHEMA}); it is left as "
        "it is and counts as stored: update ddobench, or choose another results_dir"
    )
    store.write(place, record_of(0))
    assert path.read_bytes() == content
    assert "was written by a newer ddobench meanwhile and is left as it is" in caplog.text
    assert load(store.folder).empty


def test_a_long_command_is_stored(store: Store, place: Place) -> None:
    record = record_of(0, command="x" * 100_000)
    assert same_record(read_record(store.write(place, record)), record)
    assert store.missing(place, [0]) == []
