"""Many runs of one specification in one file, smaller than apart: its layout, and reading of it.

A pack is a table of contents, then of all runs their rows, their curves, what they tell and their
designs and values, then the table of contents again. Every part of every run has a checksum of its
own, and what the runs share is in the table of contents, which is there twice: so damage in one
place costs one run at most. Floats are stored byte by byte, all first bytes first, which is what
can be compressed of them; texts are compressed with those of another run in mind.
"""

import json
import os
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from itertools import accumulate
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from ddobench.store.record_file import ARRAYS, ITERATION, SCHEMA, Stored
from ddobench.store.records import LEFT_OUT, Record
from ddobench.store.soundness import (
    NewerSchemaError,
    check_columns,
    check_iterations,
    check_metadata,
    check_regular,
    parse_json,
)
from ddobench.store.verified import is_settled, stamp_of

FORMAT = 1
SEEDS = 500  # of which a pack holds those that are stored
KINDS = ("row", "curves", "told", "details")
_NAMES = {"row": "row", "curves": "curves", "told": "diagnostics", "details": "designs and values"}
_TEXTS = ("row", "told")
_SHARED = ("names", "config", "provenance", "layout")
_MAGIC = b"ddobench"
_LEAD = struct.Struct("<8sII")  # before the first table of contents and after the second
_CHECKSUM = struct.Struct("<I")  # before each part of a run
_WORDS = ("<i8", "<f8")  # what curves are made of
_LONGEST_TEXT = 20_000_000  # bytes, decompressed
_BASE = 4096  # characters of what a run tells; more would be mostly numbers, which never recur
_LARGEST = 10**18 - 1  # what a seed, or the length of a part, can be
_REMEMBERED = 16  # tables of contents

Words = NDArray[np.uint64]


@dataclass(frozen=True)
class Entry:
    """Where the parts of a run are, and what it shares with others."""

    names: list[str]  # of its row
    config: dict[str, Any]
    provenance: dict[str, Any]
    layout: dict[str, Any]
    parts: dict[str, tuple[int, int]]  # by kind: where it begins and how long it is


@dataclass(frozen=True)
class Contents:
    """The table of contents of a pack."""

    rows: dict[int, int]  # where in the table a seed is
    table: NDArray[np.int64]  # (runs, numbers): seed, what it shares, how long its parts are
    begins: NDArray[np.int64]  # (runs, kinds)
    shared: list[Any]
    base: bytes  # what texts are compressed with in mind
    end: int  # where its copy begins
    pristine: bool = False  # whether both copies are sound, and the file is as long as they say

    def entry(self, seed: int) -> Entry:
        """Return what there is to know of a run."""
        row = self.rows[seed]
        _, *numbers = self.table[row].tolist()
        shared = (self.shared[number] for number in numbers[: len(_SHARED)])
        places = zip(self.begins[row].tolist(), numbers[len(_SHARED) :], strict=True)
        parts = dict(zip(KINDS, places, strict=True))
        return Entry(**dict(zip(_SHARED, shared, strict=True)), parts=parts)

    def span(self, kind: str) -> tuple[int, int]:
        """Return where the parts of a kind begin and end, those of all runs together."""
        column = KINDS.index(kind)
        lengths = self.table[:, 1 + len(_SHARED) + column]
        begin = int(self.begins[0, column])
        return begin, begin + int(lengths.sum())


@dataclass(frozen=True)
class Pack:
    """An open pack whose table of contents is sound; runs are read, and checked, on demand."""

    handle: int
    contents: Contents
    _sections: dict[str, tuple[int, bytes]] = field(default_factory=dict)

    @property
    def seeds(self) -> list[int]:
        """The seeds of its runs, sound or not."""
        return list(self.contents.rows)

    def check(self, seed: int) -> None:
        """Raise unless every part of a run is as it was written."""
        self.read_metadata(seed)
        for kind in KINDS:
            self._part(seed, kind)

    def read_ahead(self, *kinds: str) -> None:
        """Read parts of all runs at once, for whoever wants them all."""
        for kind in kinds:
            begin, end = self.contents.span(kind)
            self._sections[kind] = begin, os.pread(self.handle, end - begin, begin)

    def read_metadata(self, seed: int) -> dict[str, Any]:
        """Return what a record says of itself."""
        entry = self.contents.entry(seed)
        values = parse_json(self._text(seed, "row"))
        if not isinstance(values, list) or len(values) != len(entry.names):
            raise ValueError("its row must have a value for each of its names")
        meta = {
            "schema": entry.layout["schema"],
            "row": dict(zip(entry.names, values, strict=True)),
            "config": entry.config,
            "provenance": entry.provenance,
            "shape": entry.layout["shape"],
        }
        if entry.layout[LEFT_OUT]:
            meta[LEFT_OUT] = entry.layout[LEFT_OUT]
        check_metadata(meta, SCHEMA)
        if meta["row"].get("seed") != seed:
            raise ValueError("it holds another run than its table of contents says")
        return meta

    def read_words(self, seed: int) -> Words:  # (C, T)
        """Return the curves of a run as they are stored, their iterations checked."""
        layout = self.contents.entry(seed).layout
        curves, length = layout["curves"], layout["length"]
        planes = np.frombuffer(self._bytes(seed, "curves", 8 * len(curves) * length), np.uint8)
        words: Words = _join(planes, 8).view("<u8").reshape(len(curves), length)
        for (name, kind), numbers in zip(curves, words, strict=True):
            if name == ITERATION:
                check_iterations(numbers.view(kind))
        return words

    def read_diagnostics(self, seed: int) -> dict[str, Any]:
        """Return what a method and the harness had to tell."""
        told: dict[str, Any] = parse_json(self._text(seed, "told") or b"{}")
        return told

    def read_stored(self, seed: int) -> Stored:
        """Return everything, as it was stored."""
        meta = self.read_metadata(seed)
        curves = self.contents.entry(seed).layout["curves"]
        words = self.read_words(seed)
        return Stored(
            meta=meta,
            curves={name: words[i].view(kind) for i, (name, kind) in enumerate(curves)},
            arrays=self._arrays(seed),
            told=self._text(seed, "told").decode() or None,
        )

    def read_record(self, seed: int) -> Record:
        """Return everything."""
        stored = self.read_stored(seed)
        return Record(
            row=stored.meta["row"],
            config=stored.meta["config"],
            provenance=stored.meta["provenance"],
            curves={name: curve.astype(np.float64) for name, curve in stored.curves.items()},
            **stored.arrays,
            diagnostics=parse_json(stored.told) if stored.told else {},
            left_out=tuple(stored.meta.get(LEFT_OUT, ())),
        )

    def _arrays(self, seed: int) -> dict[str, NDArray[np.float32]]:
        shapes = self.contents.entry(seed).layout["arrays"]
        sizes = [4 * rows * columns for rows, columns in shapes.values()]
        content = np.frombuffer(self._bytes(seed, "details", sum(sizes)), np.uint8)
        parts = np.split(content, [*accumulate(sizes)][:-1]) if sizes else []
        return {
            name: np.ascontiguousarray(_join(part, 4).view("<f4").reshape(columns, rows).T)
            for (name, (rows, columns)), part in zip(shapes.items(), parts, strict=True)
        }

    def _text(self, seed: int, kind: str) -> bytes:
        return self._inflate(seed, kind, _LONGEST_TEXT, self.contents.base)

    def _bytes(self, seed: int, kind: str, size: int) -> bytes:
        found = self._inflate(seed, kind, size)
        if len(found) != size:
            raise ValueError(f"its {_NAMES[kind]} must take {size} bytes, got {len(found)}")
        return found

    def _inflate(self, seed: int, kind: str, most: int, base: bytes = b"") -> bytes:
        return _inflate(self._part(seed, kind), most, base)

    def _part(self, seed: int, kind: str) -> bytes:
        """Return one part of a run, compressed, or raise unless it matches its checksum."""
        begin, length = self.contents.entry(seed).parts[kind]
        start, section = self._sections.get(kind, (0, b""))
        if section:
            found = section[begin - start : begin - start + length]
        else:
            found = os.pread(self.handle, length, begin)
        data = found[_CHECKSUM.size :]
        if len(found) < length or _CHECKSUM.pack(crc32(data)) != found[: _CHECKSUM.size]:
            raise ValueError(f"damaged: its {_NAMES[kind]} do not match their checksum")
        return data


def stack_curves(pack: Pack, found: Mapping[int, Words]) -> Iterator[tuple[list[int], pa.Table]]:
    """Yield tables of curves, each of the runs that have the same, one below the other."""
    groups: dict[int, list[int]] = {}
    for seed, words in found.items():
        if words.size:
            groups.setdefault(id(pack.contents.entry(seed).layout), []).append(seed)
    for seeds in groups.values():
        words = np.stack([found[seed] for seed in seeds], axis=1)  # (C, runs, T)
        curves = pack.contents.entry(seeds[0]).layout["curves"]
        columns = {name: words[i].ravel().view(kind) for i, (name, kind) in enumerate(curves)}
        yield seeds, pa.table(columns)


@contextmanager
def open_pack(path: Path) -> Iterator[Pack]:
    """Open a pack, or raise an error that says why it is none."""
    check_regular(path)
    handle = os.open(path, os.O_RDONLY)
    try:
        yield Pack(handle, _recall_contents(handle))
    finally:
        os.close(handle)


_recent: dict[tuple[int, ...], Contents] = {}  # of files, by what no program changes unnoticed


def _recall_contents(handle: int) -> Contents:
    """Return the table of contents of an open file, read anew unless it was just before."""
    found = os.fstat(handle)
    stamp = (found.st_dev, *stamp_of(found))
    if stamp in _recent:
        return _recent[stamp]
    contents = _read_contents(handle, found.st_size)
    if is_settled(found):
        if len(_recent) >= _REMEMBERED:
            _recent.pop(next(iter(_recent)), None)
        _recent[stamp] = contents
    return contents


def _read_contents(handle: int, size: int) -> Contents:
    first = _read_lead(os.pread(handle, _LEAD.size, 0))
    last = _read_lead(os.pread(handle, _LEAD.size, max(0, size - _LEAD.size)))
    if first is None and last is None:
        raise ValueError("no pack of runs")
    sound = []
    for lead, begin in ((first, _LEAD.size), (last, size - _LEAD.size - (last or (0, 0))[0])):
        head = os.pread(handle, lead[0], max(0, begin)) if lead else b""
        if lead and (len(head), crc32(head)) == lead:
            sound.append(head)
    if not sound:
        raise ValueError("damaged: its table of contents does not match its checksum")
    contents = _parse_contents(sound[0])
    whole = contents.end + len(sound[0]) + _LEAD.size == size
    return replace(contents, pristine=whole and len(sound) == 2)


def _read_lead(content: bytes) -> tuple[int, int] | None:
    """Return length and checksum of a table of contents, None where there is none."""
    if len(content) < _LEAD.size:
        return None
    magic, length, checksum = _LEAD.unpack(content)
    return (length, checksum) if magic == _MAGIC else None


def _parse_contents(head: bytes) -> Contents:
    found = parse_json(_inflate(head, _LONGEST_TEXT))
    if not isinstance(found, dict) or not isinstance(found.get("format"), int):
        raise ValueError("its table of contents must be a mapping with a format")
    if found["format"] > FORMAT:
        raise NewerSchemaError(f"written by a newer ddobench (format {found['format']} > {FORMAT})")
    shared = found["shared"]
    table = np.array(found["runs"])
    if table.dtype != np.int64 or table.shape[1:] != (1 + len(_SHARED) + len(KINDS),):
        raise ValueError("its table of contents must be rows of whole numbers")
    numbers = table[:, 1 : 1 + len(_SHARED)]
    if table.min() < 0 or numbers.max() >= len(shared) or table.max() > _LARGEST:
        raise ValueError("its table of contents names a part that is not there")
    rows = {seed: row for row, seed in enumerate(table[:, 0].tolist())}
    if len(rows) < len(table):
        raise ValueError("its table of contents has a seed twice")
    for layout in {*numbers[:, _SHARED.index("layout")].tolist()}:
        _check_layout(shared[layout])
    for names in {*numbers[:, _SHARED.index("names")].tolist()}:
        _check_names(shared[names])
    lengths = table[:, 1 + len(_SHARED) :].T.ravel()
    ends = np.cumsum(lengths) + _LEAD.size + len(head)
    begins = (ends - lengths).reshape(len(KINDS), -1).T
    return Contents(rows, table, begins, shared, str(found["base"]).encode(), int(ends[-1]))


def _is_count(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_names(names: Any) -> None:
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ValueError("the names of a row must be a list of texts")
    if len({*names}) < len(names):
        raise ValueError("its row has two columns of the same name")


def _check_layout(layout: Any) -> None:
    """Raise unless a layout says what curves and arrays there are, of which sizes."""
    curves, length = layout["curves"], layout["length"]
    if not _is_count(length) or not all(kind in _WORDS for _, kind in curves):
        raise ValueError("its curves must hold numbers")
    kinds = {"<i8": pa.int64(), "<f8": pa.float64()}
    schema = pa.schema([pa.field(name, kinds[kind]) for name, kind in curves])
    check_columns(schema, length, ())
    for name, shape in layout["arrays"].items():
        if name not in ARRAYS or len(shape) != 2 or not all(_is_count(n) for n in shape):
            raise ValueError(f"its arrays must be tables named {', '.join(ARRAYS)}")
    if not all(isinstance(name, str) for name in layout[LEFT_OUT]):
        raise ValueError("what was left out must be a list of texts")


def pack_runs(runs: Sequence[Stored]) -> bytes:
    """Lay runs of different seeds out as a pack; the same runs always give the same bytes."""
    ordered = sorted(runs, key=lambda run: int(run.meta["row"]["seed"]))
    last = ordered[-1]
    base = (last.told or "")[:_BASE] + json.dumps([*last.meta["row"].values()])
    shared: dict[str, int] = {}
    entries, parts = [], []
    for run in ordered:
        sealed = [_seal(part, base.encode() if kind in _TEXTS else b"")
                  for kind, part in _parts_of(run).items()]  # fmt: skip
        parts.append(sealed)
        entries.append([
            run.meta["row"]["seed"],
            *(shared.setdefault(json.dumps(one), len(shared)) for one in _shared_of(run)),
            *map(len, sealed),
        ])  # fmt: skip
    told = {"format": FORMAT, "runs": entries, "base": base}
    told["shared"] = [json.loads(text) for text in shared]
    head = _deflate(json.dumps(told, separators=(",", ":")).encode())
    lead = _LEAD.pack(_MAGIC, len(head), crc32(head))
    body = [part for kind in zip(*parts, strict=True) for part in kind]
    return b"".join([lead, head, *body, head, lead])


def _shared_of(run: Stored) -> tuple[Any, ...]:
    """Return what runs have in common, in the order of `_SHARED`."""
    layout = {
        "schema": run.meta["schema"],
        "shape": run.meta["shape"],
        "curves": [(name, curve.dtype.str) for name, curve in run.curves.items()],
        "length": len(next(iter(run.curves.values()), ())),
        "arrays": {name: array.shape for name, array in run.arrays.items()},
        LEFT_OUT: list(run.meta.get(LEFT_OUT, ())),
    }
    return [*run.meta["row"]], run.meta["config"], run.meta["provenance"], layout


def _parts_of(run: Stored) -> dict[str, bytes]:
    """Return the parts of a run by kind."""
    curves = b"".join(curve.tobytes() for curve in run.curves.values())
    return {
        "row": json.dumps([*run.meta["row"].values()]).encode(),
        "curves": _split(np.frombuffer(curves, "<u8")),
        "told": (run.told or "").encode(),
        "details": b"".join(_split(array.T) for array in run.arrays.values()),
    }


def _split(array: NDArray[Any]) -> bytes:
    """Return the first byte of every number, then every second, and so on."""
    plain = np.ascontiguousarray(array).reshape(-1)
    return plain.view(np.uint8).reshape(-1, plain.itemsize).T.tobytes()


def _join(planes: NDArray[np.uint8], size: int) -> NDArray[np.uint8]:
    """Return the bytes of numbers, each together."""
    return np.ascontiguousarray(planes.reshape(size, -1).T).reshape(-1)


def _seal(data: bytes, base: bytes) -> bytes:
    """Compress a part of a run and put its checksum before it."""
    packed = _deflate(data, base)
    return _CHECKSUM.pack(crc32(packed)) + packed


def _deflate(data: bytes, base: bytes = b"") -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, -zlib.MAX_WBITS, 9, zdict=base)
    return packer.compress(data) + packer.flush()


def _inflate(data: bytes, most: int, base: bytes = b"") -> bytes:
    """Decompress what anyone may have written, if it is no more than so many bytes."""
    unpacker = zlib.decompressobj(-zlib.MAX_WBITS, zdict=base)
    found = unpacker.decompress(data, most + 1)
    if len(found) > most or not unpacker.eof:
        raise ValueError(f"it holds more than {most:,} bytes, or less than it says")
    return found
