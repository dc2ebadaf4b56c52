"""A pack from a stranger runs no code and stops nothing: it, or the run in it, is named."""

import json
import os
import pickle
import zlib
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pytest

from ddobench.store import pack_file
from ddobench.store.pack_file import _LEAD, _MAGIC, _deflate, _inflate, pack_runs
from ddobench.store.record_file import SCHEMA, Stored
from ddobench.store.runs import Place, Store, load, load_curves, read_diagnostics, survey
from tests.support.records import record_of, row_of

SEEDS = range(3)
Change = Callable[[dict[str, Any]], object]


def stored_of(seed: int) -> Stored:
    """Return a run as a pack holds it."""
    record = record_of(seed)
    shape = {"values": [3, 4], "predictions": [3, 4], "designs": [4, 3]}
    meta = {"schema": SCHEMA, "row": record.row, "config": record.config,
            "provenance": record.provenance, "shape": shape}  # fmt: skip
    arrays = {name: vars(record)[name] for name in shape}
    return Stored(meta, record.curves, arrays, json.dumps(record.diagnostics))


def forge(change: Change, base: bytes | None = None) -> bytes:
    """Return a pack whose table of contents is changed, with checksums that are right."""
    content = base or pack_runs([stored_of(seed) for seed in SEEDS])
    _, length, _ = _LEAD.unpack(content[: _LEAD.size])
    told = json.loads(_inflate(content[_LEAD.size : _LEAD.size + length], 10**6))
    head = _deflate(json.dumps(change(told) or told).encode())
    body = content[_LEAD.size + length : -_LEAD.size - length]
    lead = _LEAD.pack(_MAGIC, len(head), crc32(head))
    return b"".join([lead, head, body, head, lead])


def shared(told: dict[str, Any], name: str) -> dict[str, Any]:
    """Return what the first run shares with others."""
    found: dict[str, Any] = told["shared"][told["runs"][0][1 + pack_file._SHARED.index(name)]]
    return found


def set_shared(name: str, value: Any) -> Change:
    """Return what puts something else in the place of what runs share."""

    def change(told: dict[str, Any]) -> None:
        told["shared"][told["runs"][0][1 + pack_file._SHARED.index(name)]] = value

    return change


def set_layout(**values: Any) -> Change:
    """Return what changes the layout of runs."""
    return lambda told: shared(told, "layout").update(values)


def set_entry(place: int, value: Any) -> Change:
    """Return what changes an entry of the first run."""
    return lambda told: told["runs"][0].__setitem__(place, value)


TABLES: dict[str, Change] = {
    "a list": lambda _: [1, 2],
    "no format": lambda told: told.pop("format"),
    "a newer format": lambda told: told.update(format=2),
    "a format of text": lambda told: told.update(format="1"),
    "no runs": lambda told: told.pop("runs"),
    "runs of text": lambda told: told.update(runs="abc"),
    "entries of text": lambda told: told.update(runs=["abc", "def"]),
    "an entry that is short": lambda told: told["runs"][0].pop(),
    "a seed twice": lambda told: told["runs"].append(told["runs"][0]),
    "a negative seed": set_entry(0, -1),
    "a seed of text": set_entry(0, "0"),
    "a seed of truth": set_entry(0, True),
    "a part that is not there": set_entry(1, 99),
    "a part from the end": set_entry(1, -1),
    "no shared parts": lambda told: told.update(shared=[]),
    "names that are none": set_shared("names", 5),
    "names of numbers": set_shared("names", [1, 2]),
    "names twice": set_shared("names", ["a", "a"]),
    "a layout that is none": set_shared("layout", [1]),
    "curves of objects": set_layout(curves=[["iteration", "|O"]]),
    "curves of text": set_layout(curves=["a", "b"]),
    "two curves of a name": set_layout(curves=[["iteration", "<i8"]] * 2),
    "too many iterations": set_layout(length=10**12),
    "fewer iterations than none": set_layout(length=-1),
    "arrays of other names": set_layout(arrays={"__class__": [1, 1]}),
    "arrays of three axes": set_layout(arrays={"values": [1, 1, 1]}),
    "arrays of negative size": set_layout(arrays={"values": [-1, 4]}),
    "left out is a number": set_layout(left_out=5),
    "left out are numbers": set_layout(left_out=[5]),
}
RUNS: dict[str, Change] = {
    "a length beyond the end": set_entry(5, 10**15),
    "a length of nothing": set_entry(5, 0),
    "a seed of another": set_entry(0, 7),
    "a config that is none": set_shared("config", [1]),
    "a provenance of text": set_shared("provenance", "x"),
    "a schema of text": set_layout(schema="3"),
    "a shape that is none": set_layout(shape=None),
    "fewer names than values": set_shared("names", ["seed"]),
}


def changed(**changes: Any) -> bytes:
    """Return a pack whose first run has an odd row."""
    first = stored_of(0)
    meta = first.meta | {"row": {**row_of(0), **changes}}
    return pack_runs([replace(first, meta=meta), stored_of(1), stored_of(2)])


def told(text: str) -> bytes:
    """Return a pack whose first run tells something odd."""
    return pack_runs([replace(stored_of(0), told=text), stored_of(1), stored_of(2)])


CONTENTS: dict[str, bytes] = {
    "another digest": changed(digest="xyz"),
    "another status": changed(status="failed"),
    "a row of odd types": changed(d="three", final_model=[1]),
}
FILES: dict[str, bytes] = {
    "nothing": b"",
    "noise": np.random.default_rng(0).bytes(5000),
    "a pickle": pickle.dumps({"a": 1}),
    "a lead alone": _LEAD.pack(_MAGIC, 0, 0),
    "a lead to nowhere": _LEAD.pack(_MAGIC, 2**32 - 1, 0),
    "a bomb": b"".join([
        _LEAD.pack(_MAGIC, len(bomb := _deflate(bytes(30_000_000))), crc32(bomb)), bomb,
    ]),
    "deep JSON": forge(lambda _: json.loads("[" * 60 + "]" * 60)),
}  # fmt: skip


@pytest.fixture
def there(store: Store, place: Place) -> Store:
    """Return a store with a good run in another folder, and a folder for odd packs."""
    other = store.place("toy", "good", 3, 10, "good")
    store.write(other, record_of(0, digest="good"))
    place.folder.mkdir()
    return store


def look_everywhere(store: Store, place: Place) -> list[tuple[str, int]]:
    """Return the runs that all readers of a folder find, and let each look at it."""
    assert place.seeds() is not None
    read_diagnostics(place.file(0))
    drawn = load_curves(store.folder)
    assert set(drawn["digest"]) >= {"good"}
    found = survey(store.folder)
    rows = load(store.folder)
    assert set(found.runs["seed"]) <= set(rows["seed"])
    return [*zip(rows["digest"], rows["seed"].tolist(), strict=True)]


@pytest.mark.parametrize("content", [*map(forge, TABLES.values()), *FILES.values()],
                         ids=[*TABLES, *FILES])  # fmt: skip
def test_a_pack_that_is_none_is_named_and_left_out(
    there: Store, place: Place, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    place.pack(0).write_bytes(content)
    assert look_everywhere(there, place) == [("good", 0)]
    caplog.clear()
    assert there.missing(place, SEEDS) == [*SEEDS]
    assert f"{place.pack(0)} is not a readable run and is left out: " in caplog.text


@pytest.mark.parametrize(
    "content", [*map(forge, RUNS.values()), *CONTENTS.values()], ids=[*RUNS, *CONTENTS]
)
def test_a_run_in_a_pack_that_is_none_is_named_and_left_out(
    there: Store, place: Place, content: bytes, caplog: pytest.LogCaptureFixture
) -> None:
    place.pack(0).write_bytes(content)
    assert ("abc", 0) not in look_everywhere(there, place)
    caplog.clear()
    assert 0 in there.missing(place, SEEDS)
    assert "is not a readable run and is left out: " in caplog.text or 0 not in place.seeds()


@pytest.mark.parametrize(
    "text", ["[" * 99 + "]" * 99, '{"a": 1, "a": 2}', "no JSON", "[1]", '"\\ud800"', "9" * 99]
)
def test_odd_things_that_a_run_in_a_pack_tells_are_left_out(
    there: Store, place: Place, text: str
) -> None:
    place.pack(0).write_bytes(told(text))
    assert len(look_everywhere(there, place)) == 4


def test_a_text_that_grows_beyond_all_measure_is_not_read(
    place: Place, caplog: pytest.LogCaptureFixture
) -> None:
    place.folder.mkdir(parents=True)
    place.pack(0).write_bytes(told(" " * 21_000_000))
    assert read_diagnostics(place.file(0)) == {}
    assert "it holds more than 20,000,000 bytes" in caplog.text


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
def test_what_is_named_like_a_pack_and_is_no_file_is_left_out(
    there: Store, place: Place, make: Callable[[Path], object]
) -> None:
    make(place.pack(0))
    assert look_everywhere(there, place) == [("good", 0)]
    assert there.missing(place, SEEDS) == [*SEEDS]


def test_no_pack_is_decompressed_further_than_it_says() -> None:
    with pytest.raises(ValueError, match="it holds more than 10 bytes, or less than it says"):
        _inflate(zlib.compress(bytes(100), wbits=-zlib.MAX_WBITS), 10)
