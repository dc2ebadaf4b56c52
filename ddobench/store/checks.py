"""What a stored file must look like to be used; each check raises an error with the reason.

Files may come from strangers. What passes here can be put in a table beside others and printed as
text. It need not be true.
"""

import json
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ddobench.scores import stored_names
from ddobench.store.records import ARRAYS, TaskSample

IDENTITY = ("task", "task_variant", "method", "method_variant", "d", "n", "seed", "budget")
ROW = (*IDENTITY, "digest", "status")  # what every stored row has
ITERATION = "iteration"  # the curve that numbers the others
_INTEGERS = {"d": (1, 10**9), "n": (1, 10**9), "seed": (0, 10**18 - 1)}  # from, to
_LONGEST = 2000  # characters of a text
_IN_FILE_NAMES = ("task", "method", "budget", "digest")
_LENGTHS = {"reason": 100_000, "command": 100_000} | dict.fromkeys(_IN_FILE_NAMES, 200)
_MOST_ITERATIONS, _LAST_ITERATION = 1_000_000, 10**9
LONGEST_JSON = 20_000_000  # bytes
_DEEPEST = 50  # levels of lists and mappings
_MOST_COLUMNS = 1000
_MOST_DESIGNS, _MOST_COORDINATES = 100_000, 10  # in the sample of a task
_PLAIN = (str, int, float, type(None))  # what a row may hold
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def check_regular(path: Path) -> None:
    """Raise unless a path is a regular file: opening a named pipe would wait for its other end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise ValueError("it is a link that leads nowhere") from None
        raise
    if not stat.S_ISREG(mode):
        raise ValueError(f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")


def read_json(path: Path) -> Any:
    """Read a JSON file."""
    check_regular(path)
    if path.stat().st_size > LONGEST_JSON:
        raise ValueError(f"its JSON is longer than {LONGEST_JSON:,} bytes")
    return parse_json(path.read_bytes())


def parse_json(text: bytes | str) -> Any:
    """Parse JSON of limited length and depth, with unique keys and valid Unicode."""
    if len(text) > LONGEST_JSON:
        raise ValueError(f"its JSON is longer than {LONGEST_JSON:,} bytes")
    decoded = text if isinstance(text, str) else text.decode()
    try:
        found = json.loads(decoded, object_pairs_hook=_unique_keys, parse_int=_parse_integer)
        _check_depth(found)
    except RecursionError:
        raise ValueError(f"its JSON is nested deeper than {_DEEPEST} levels") from None
    if re.search(r"\\u[dD][89a-fA-F]", decoded):
        try:
            json.dumps(found, ensure_ascii=False).encode()
        except UnicodeEncodeError:
            raise ValueError("its JSON has half a character, which no text can hold") from None
    return found


def _unique_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"its JSON has the key {_quote(twice)} twice")
    return found


def _parse_integer(digits: str) -> int:
    if len(digits) > 18:  # what fits into 64 bits
        raise ValueError(f"its JSON has a whole number of {len(digits)} digits")
    return int(digits)


def _check_depth(value: Any, level: int = 0) -> None:
    if level > _DEEPEST:
        raise RecursionError
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    for item in inner:
        if isinstance(item, dict | list):
            _check_depth(item, level + 1)


def check_shared(shared: Any) -> None:
    """Raise unless the part of a footer that runs share is complete."""
    _check_mapping("what its runs share", shared)
    for name in ("config", "provenance", "shape"):
        _check_mapping(f"its {name}", shared.get(name))
    for name in ("task", "method", "budget"):
        _check_mapping(f"{name} in its config", shared["config"].get(name) or {})
    provenance = shared["provenance"]
    _check_mapping("packages in its provenance", provenance.get("packages") or {})
    if not isinstance(provenance.get("revision") or "", str):
        raise ValueError(f"its revision must be text, got {_quote(provenance['revision'])}")
    for name in ("names", "curves", "left_out"):
        texts = shared.get(name)
        if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
            raise ValueError(f"its {name} must be a list of texts, got {_quote(texts)}")
        if len({*texts}) < len(texts) or len(texts) > _MOST_COLUMNS:
            raise ValueError(f"its {name} must differ and be at most {_MOST_COLUMNS}")
    for name, shape in shared["shape"].items():
        whole = isinstance(shape, list) and len(shape) == 2 and all(map(_is_count, shape))
        if name not in ARRAYS or not whole:
            raise ValueError(f"its arrays must be {', '.join(ARRAYS)}, each with two lengths")


def check_row(row: dict[str, Any], statuses: Sequence[str]) -> None:
    """Raise unless a flat row has the columns that every row has, each in its type."""
    missing = [name for name in ROW if name not in row]
    if missing:
        raise ValueError(f"its row lacks {', '.join(missing)}")
    for name, (least, most) in _INTEGERS.items():
        if not _is_count(row[name]) or not least <= row[name] <= most:
            raise ValueError(
                f"{name} must be a whole number from {least} to {most:,}, got {_quote(row[name])}"
            )
    for name in ROW:
        if name not in _INTEGERS and not isinstance(row[name], str):
            raise ValueError(f"{name} must be text, got {_quote(row[name])}")
    for name in stored_names():
        if row.get(name) is not None and not _is_number(row[name]):
            raise ValueError(f"{name} must be a number, got {_quote(row[name])}")
    for name, value in row.items():
        if not isinstance(value, _PLAIN):
            raise ValueError(f"{_quote(name)} must be a text or a number, got {_quote(value)}")
        longest = _LENGTHS.get(name, _LONGEST)
        if isinstance(value, str) and len(value) > longest:
            raise ValueError(f"{_quote(name)} is a text of more than {longest:,} characters")
    if row["status"] not in statuses:
        raise ValueError(f"status must be {' or '.join(statuses)}, got {_quote(row['status'])}")


def check_iterations(steps: NDArray[np.float64] | None) -> None:
    """Raise unless the iterations of a run are whole numbers that increase."""
    if steps is None:
        raise ValueError(f"its curves lack {ITERATION}")
    if len(steps) > _MOST_ITERATIONS:
        raise ValueError(f"it has more than {_MOST_ITERATIONS:,} iterations")
    within = (steps >= 0).all() and (steps <= _LAST_ITERATION).all() and (steps % 1 == 0).all()
    if not within or not (steps[1:] > steps[:-1]).all():
        raise ValueError("its iterations must be whole numbers that increase")


def seal_sample(sample: Mapping[str, Any]) -> str:
    """Return the sample of a task as JSON with a checksum."""
    text = json.dumps(sample)
    return json.dumps({"crc32": crc32(text.encode()), "sample": sample})


def read_sample(path: Path) -> TaskSample:
    """Read the sample of a task, or raise unless it can be drawn."""
    found = read_json(path)
    _check_mapping("the file", found)
    sample = found.get("sample")
    _check_mapping("a sample", sample)
    if found.get("crc32") != crc32(json.dumps(sample).encode()):
        raise ValueError("damaged: its sample does not match its checksum")
    names = {field.name for field in fields(TaskSample)}
    if names != {*sample}:
        raise ValueError(f"a sample must have {', '.join(sorted(names))}")
    for name, (least, most) in _INTEGERS.items():
        if not _is_count(sample[name]) or not least <= sample[name] <= most:
            raise ValueError(f"{name} must be a whole number, got {_quote(sample[name])}")
    for name in ("task", "task_variant", "title", "formula", "text"):
        if not isinstance(sample[name], str) or len(sample[name]) > _LONGEST:
            raise ValueError(f"{name} must be text, got {_quote(sample[name])}")
    y = sample["y"]
    if not isinstance(y, list) or not 0 < len(y) <= _MOST_DESIGNS or not all(map(_is_finite, y)):
        raise ValueError("y must be a list of finite numbers")
    for name in ("observed", "hidden"):
        if not (name == "hidden" and sample[name] is None) and not _is_table(sample[name], len(y)):
            raise ValueError(f"{name} must be a table of finite numbers with a row for each y")
    edges = sample["edges"]
    if edges is not None and not (
        isinstance(edges, list) and all(_is_pair(edge, sample["d"]) for edge in edges)
    ):
        raise ValueError(f"edges must be pairs of whole numbers below {sample['d']}")
    return TaskSample(**sample)


def _is_table(rows: Any, length: int) -> bool:
    if not isinstance(rows, list) or len(rows) != length:
        return False
    widths = {len(row) if isinstance(row, list) else 0 for row in rows}
    return (
        len(widths) == 1
        and 0 < widths.pop() <= _MOST_COORDINATES
        and all(_is_finite(number) for row in rows for number in row)
    )


def _is_pair(edge: Any, nodes: int) -> bool:
    return (
        isinstance(edge, list)
        and len(edge) == 2
        and all(_is_count(node) and node < nodes for node in edge)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and isfinite(value)


def _is_count(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, got {_quote(value)}")


def printable(text: str) -> str:
    """Return a text on one line, without control characters and invalid Unicode."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _quote(value: Any) -> str:
    """Return a value for a message, cut short."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
