"""Damage is noticed wherever it is, and what was found whole is not read again for nothing."""

import os
import shutil
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from ddobench.store import checksums, stored_run, verified
from ddobench.store.record_file import SCHEMA, open_record, to_bytes
from ddobench.store.records import Record
from ddobench.store.runs import Place, Store, load, load_curves, read_diagnostics, read_record
from tests.support.records import (
    change_metadata,
    flip_bit,
    record_of,
    row_of,
    same_record,
)

RECORDS, FLIPS = 20, 300


@pytest.fixture
def settle(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Return a function that lets what was written count as written long ago."""
    monkeypatch.setattr(verified, "SETTLED_NS", 2 * 10**7)
    return lambda: time.sleep(0.06)


def test_every_flipped_bit_is_noticed_named_and_its_run_is_missing(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    rng = np.random.default_rng(0)
    for seed in range(RECORDS):
        store.write(place, record_of(seed, length=1 + seed % 5))
    for seed in rng.integers(RECORDS, size=FLIPS).tolist():
        path = place.file(seed)
        bit = int(rng.integers(8 * path.stat().st_size))
        flip_bit(path, bit)
        caplog.clear()
        assert store.missing(place, [seed]) == [seed]
        assert f"{path} is not a readable run and is left out: " in caplog.text
        with pytest.raises(ValueError, match=r"damaged|no whole Parquet file"):
            read_record(path)
        flip_bit(path, bit)
    assert store.missing(place, range(RECORDS)) == []


@pytest.mark.parametrize("record", [record_of(0, length=1), Record(row_of(status="declined"))])
def test_no_bit_of_the_parts_that_say_what_a_file_is_can_turn_unnoticed(
    store: Store, place: Place, record: Record
) -> None:
    path = store.write(place, record)
    content = path.read_bytes()
    slot = content.index(checksums.KEY)
    risky = [*range(4), *range(len(content) - 8, len(content)), *range(slot - 4, slot + 60)]
    risky += range(content.index(b'"schema"'), content.index(b'"schema"') + 14)
    for bit in (8 * byte + i for byte in risky for i in range(8)):
        flip_bit(path, bit)
        assert store.missing(place, [0]) == [0], bit
        flip_bit(path, bit)


@pytest.mark.parametrize(
    ("read", "what"),
    [
        (lambda path: load(path.parent), "footer"),
        (lambda path: load_curves(path.parent), "curves"),
        (read_diagnostics, "designs and their values"),
    ],
)
def test_whoever_reads_a_part_notices_damage_in_it(
    store: Store,
    place: Place,
    caplog: pytest.LogCaptureFixture,
    read: Callable[[Path], object],
    what: str,
) -> None:
    path = store.write(place, record_of(0))
    content = path.read_bytes()
    footer = len(content) - 8 - int.from_bytes(content[-8:-4], "little")
    at = {"footer": footer + 20, "curves": 10, "designs and their values": footer - 10}[what]
    flip_bit(path, 8 * at)
    assert len(read(path)) == 0  # type: ignore[arg-type]
    assert f"damaged: its {what} do" in caplog.text


def test_a_summary_of_sound_parts_does_not_read_the_rest(store: Store, place: Place) -> None:
    path = store.write(place, record_of(0))
    size = path.stat().st_size - 8 - int.from_bytes(path.read_bytes()[-8:-4], "little")
    flip_bit(path, 8 * (size - 10))
    assert load(store.folder)["seed"].tolist() == [0]
    assert len(load_curves(store.folder)) == 3
    assert store.missing(place, [0]) == [0]


def test_a_record_is_a_parquet_file_for_anyone(store: Store, place: Place) -> None:
    record = record_of(0)
    frame = pd.read_parquet(store.write(place, record))
    assert frame["value_model"].tolist() == record.curves["value_model"].tolist()


def test_a_damaged_run_is_replaced_and_then_stored(store: Store, place: Place) -> None:
    path = store.write(place, record_of(0))
    flip_bit(path, 100)
    assert store.missing(place, [0]) == [0]
    store.write(place, record_of(0))
    assert store.missing(place, [0]) == []
    assert same_record(read_record(path), record_of(0))


def test_a_record_of_a_newer_version_is_named_skipped_and_never_overwritten(
    store: Store, place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    path = store.write(place, record_of(0))
    change_metadata(path, schema=SCHEMA + 1)
    content = path.read_bytes()
    assert store.missing(place, [0, 1]) == [1]
    (told,) = caplog.messages
    assert told == (
        f"{path} was written by a newer ddobench (schema {SCHEMA + 1} > {SCHEMA}); it is left as "
        "it is and counts as stored: update ddobench, or choose another results_dir"
    )
    store.write(place, record_of(0))
    assert path.read_bytes() == content
    assert "was written by a newer ddobench meanwhile and is left as it is" in caplog.text
    assert load(store.folder).empty


class Opened:
    """Counts the records that are opened."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.paths: list[str] = []
        original = open_record

        def note(path: Path) -> object:
            self.paths.append(path.name)
            return original(path)

        monkeypatch.setattr(stored_run, "open_record", note)


def test_what_was_found_whole_is_not_read_again_until_it_changes(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch, settle: Callable[[], None]
) -> None:
    for seed in range(3):
        store.write(place, record_of(seed))
    settle()
    opened = Opened(monkeypatch)
    assert store.missing(place, [0, 1, 2]) == []
    assert len(opened.paths) == 3
    assert Store(store.folder).missing(place, [0, 1, 2]) == []
    assert len(opened.paths) == 3
    before = place.file(1).stat()
    flip_bit(place.file(1), 100)
    os.utime(place.file(1), ns=(before.st_atime_ns, before.st_mtime_ns))
    assert Store(store.folder).missing(place, [0, 1, 2]) == [1], "its times tell, even set back"
    assert opened.paths[3:] == ["seed-00001.parquet"]


def test_a_file_written_just_now_is_read_again(
    store: Store, place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.write(place, record_of(0))
    opened = Opened(monkeypatch)
    for _ in range(2):
        assert store.missing(place, [0]) == []
    assert len(opened.paths) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", '{"seed-00000.parquet": 3}', "[" * 100_000])
def test_a_list_of_what_was_verified_that_makes_no_sense_is_no_matter(
    store: Store, place: Place, settle: Callable[[], None], text: str
) -> None:
    store.write(place, record_of(0))
    settle()
    store.missing(place, [0])
    (known,) = store.folder.rglob("verified/*.json")
    known.write_text(text)
    assert store.missing(place, [0]) == []
    truncated = place.file(0).read_bytes()[:-1]
    place.file(0).write_bytes(truncated)
    assert store.missing(place, [0]) == [0]


def test_a_folder_copied_elsewhere_is_verified_anew(
    store: Store, place: Place, tmp_path: Path, settle: Callable[[], None]
) -> None:
    store.write(place, record_of(0))
    settle()
    store.missing(place, [0])
    shutil.copytree(store.folder, tmp_path / "copy")
    copied = Store(tmp_path / "copy")
    there = copied.place("toy", "mine", 3, 10, "abc")
    flip_bit(there.file(0), 80)
    assert copied.missing(there, [0]) == [0]


def test_a_footer_longer_than_most_is_read_whole(store: Store, place: Place) -> None:
    record = record_of(0, command="x" * 100_000)
    assert same_record(read_record(store.write(place, record)), record)
    assert store.missing(place, [0]) == []


def test_the_same_record_is_the_same_bytes() -> None:
    assert to_bytes(record_of(3)) == to_bytes(record_of(3))
