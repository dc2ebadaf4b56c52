"""What a stored file must be like to be used, whoever wrote it; each check raises with the reason.

Nothing in a file is trusted but its shape: what passes here can be put in a table beside others and
be spelled as text, and says nothing about being true.
"""

import json
import re
import stat
from collections.abc import Mapping, Sequence
from dataclasses import fields
from math import isfinite
from pathlib import Path
from typing import Any, get_args

import pyarrow as pa
from numpy.typing import NDArray

from ddobench.scores import stored_names
from ddobench.store.records import Portrait, Status

IDENTITY = ("task", "task_variant", "method", "method_variant", "d", "n", "seed", "budget")
ROW = (*IDENTITY, "digest", "status")  # what every stored row has
_WHOLE = {"d": (1, 10**9), "n": (1, 10**9), "seed": (0, 10**18 - 1)}  # from, to
_LONGEST = 2000  # characters of a text
_IN_FILE_NAMES = ("task", "method", "budget", "digest")
_LENGTHS = {"reason": 100_000, "command": 100_000} | dict.fromkeys(_IN_FILE_NAMES, 200)
_LAST_ITERATION = 10**9
_LONGEST_JSON = 20_000_000  # bytes
_DEEPEST = 50  # levels of lists and mappings
_MOST_COLUMNS, _MOST_ITERATIONS = 1000, 1_000_000
_MOST_DESIGNS, _MOST_COORDINATES = 100_000, 10  # in the picture of a task
_PLAIN = (str, int, float, type(None))  # what a row may hold
_KINDS = {
    stat.S_IFDIR: "a folder",
    stat.S_IFIFO: "a named pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


class NewerSchemaError(ValueError):
    """A file is of a later version of this program, and not for this one to judge."""


def check_regular(path: Path) -> None:
    """Raise unless a path is a plain file: to open a named pipe would wait for its other end."""
    try:
        mode = path.stat().st_mode
    except FileNotFoundError:
        if path.is_symlink():
            raise ValueError("it is a link that leads nowhere") from None
        raise
    if not stat.S_ISREG(mode):
        raise ValueError(f"it is {_KINDS.get(stat.S_IFMT(mode), 'something else')}, not a file")


def read_json(path: Path) -> Any:
    """Read a file of JSON from anyone."""
    if path.stat().st_size > _LONGEST_JSON:
        raise ValueError(f"its JSON is longer than {_LONGEST_JSON:,} bytes")
    return parse_json(path.read_bytes())


def parse_json(text: bytes | str) -> Any:
    """Read JSON from anyone: of some length and depth, every key once, every text Unicode."""
    if len(text) > _LONGEST_JSON:
        raise ValueError(f"its JSON is longer than {_LONGEST_JSON:,} bytes")
    decoded = text if isinstance(text, str) else text.decode()
    try:
        found = json.loads(decoded, object_pairs_hook=_unique_keys, parse_int=_parse_whole)
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


def _parse_whole(digits: str) -> int:
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


def check_metadata(meta: Any, newest: int) -> None:
    """Raise unless what a record says of itself is complete, in a schema we know."""
    _check_mapping("its metadata", meta)
    schema = meta.get("schema")
    if not isinstance(schema, int):
        raise ValueError(f"its schema must be a whole number, got {_quote(schema)}")
    if schema < newest:
        raise ValueError(f"written by an older ddobench (schema {schema} < {newest})")
    if schema > newest:
        raise NewerSchemaError(f"written by a newer ddobench (schema {schema} > {newest})")
    for name in ("row", "config", "provenance", "shape"):
        if name not in meta:
            raise ValueError(f"its metadata lacks {name}")
        _check_mapping(f"its {name}", meta[name])
    for name in ("task", "method", "budget"):
        _check_mapping(f"{name} in its config", meta["config"].get(name) or {})
    told = meta["provenance"]
    _check_mapping("packages in its provenance", told.get("packages") or {})
    if not isinstance(told.get("revision") or "", str):
        raise ValueError(f"its revision must be text, got {_quote(told['revision'])}")


def check_row(row: Any, statuses: Sequence[str] = get_args(Status)) -> None:
    """Raise unless a row has what every row has, each in its type."""
    _check_mapping("its row", row)
    lacking = [name for name in ROW if name not in row]
    if lacking:
        raise ValueError(f"its row lacks {', '.join(lacking)}")
    if len(row) > _MOST_COLUMNS:
        raise ValueError(f"its row has more than {_MOST_COLUMNS} columns")
    for name, limits in _WHOLE.items():
        _check_whole(name, row[name], *limits)
    for name in ROW:
        if name not in _WHOLE and not isinstance(row[name], str):
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


def check_columns(schema: pa.Schema, rows: int, details: Sequence[str]) -> list[str]:
    """Return the names of the curves of a record; raise unless each is there once, of numbers."""
    if rows > _MOST_ITERATIONS:
        raise ValueError(f"it has more than {_MOST_ITERATIONS:,} iterations")
    names = [name for name in schema.names if name not in details]
    if len(names) > _MOST_COLUMNS:
        raise ValueError(f"it has more than {_MOST_COLUMNS} curves")
    if len({*names}) < len(names):
        raise ValueError("it has two curves of the same name")
    for name in names:
        kind = schema.field(name).type
        known = (pa.types.is_integer, pa.types.is_floating, pa.types.is_null)
        if not any(test(kind) for test in known):
            raise ValueError(f"the curve {_quote(name)} must hold numbers, got {kind}")
    if rows and "iteration" not in names:
        raise ValueError("its curves lack iteration")
    return names


def check_curves(table: pa.Table) -> pa.Table:
    """Return curves in types that fit together; raise unless iterations are whole and increase."""
    for place, field in enumerate(table.schema):
        if field.type not in (pa.int64(), pa.float64()):
            table = table.set_column(place, field.name, table[field.name].cast(pa.float64()))
    if len(table):
        check_iterations(table["iteration"].to_numpy())
    return table


def check_iterations(steps: NDArray[Any]) -> None:
    """Raise unless the iterations of a run are whole and increase."""
    within = (steps >= 0).all() and (steps <= _LAST_ITERATION).all() and (steps % 1 == 0).all()
    if not within or not (steps[1:] > steps[:-1]).all():
        raise ValueError("its iterations must be whole numbers that increase")


def check_portrait(found: Any) -> None:
    """Raise unless a picture of a task can be drawn."""
    _check_mapping("a portrait", found)
    names = {field.name for field in fields(Portrait)}
    if names != {*found}:
        odd = sorted(names ^ {*found})
        raise ValueError(f"a portrait must have {', '.join(sorted(names))}; {odd[0]!r} is wrong")
    for name, limits in _WHOLE.items():
        _check_whole(name, found[name], *limits)
    for name in ("task", "task_variant", "title", "formula", "text"):
        text = found[name]
        if not isinstance(text, str) or len(text) > _LONGEST:
            raise ValueError(f"{name} must be text, got {_quote(text)}")
    designs = len(found["y"]) if isinstance(found["y"], list) else 0
    if not 0 < designs <= _MOST_DESIGNS or not all(map(_is_finite, found["y"])):
        raise ValueError("y must be a list of finite numbers")
    for name in ("observed", "hidden"):
        if name == "hidden" and found[name] is None:
            continue
        if not _is_table(found[name], designs):
            raise ValueError(f"{name} must be a table of finite numbers with a row for each y")
    edges = found["edges"]
    if edges is not None and not (isinstance(edges, list) and all(
        _is_pair(edge, found["d"]) for edge in edges
    )):  # fmt: skip
        raise ValueError(f"edges must be pairs of whole numbers below {found['d']}")


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
        and all(isinstance(node, int) and 0 <= node < nodes for node in edge)
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_finite(value: Any) -> bool:
    return _is_number(value) and isfinite(value)


def _check_whole(name: str, value: Any, least: int, most: int) -> None:
    whole = isinstance(value, int) and not isinstance(value, bool)
    if not whole or not least <= value <= most:
        raise ValueError(
            f"{name} must be a whole number from {least} to {most:,}, got {_quote(value)}"
        )


def _check_mapping(name: str, value: Any) -> None:
    if not isinstance(value, Mapping):
        raise ValueError(f"{name} must be a mapping, got {_quote(value)}")


def printable(text: str) -> str:
    """Spell a text on one line, without what a terminal would obey or no file could hold."""
    return text if text.isprintable() else text.encode("unicode_escape").decode()


def _quote(value: Any) -> str:
    """Spell a value from a file for a message, cut short."""
    text = ascii(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
