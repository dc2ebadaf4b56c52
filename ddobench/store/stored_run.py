"""One stored run: what it is called, and reading it from a file of its own or from a pack.

A run in a pack is still named by the file that it was. What cannot be read is named in a warning
and left out, as files may come from strangers.
"""

import contextlib
import logging
import os
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Literal, TypeVar

import numpy as np
import pyarrow as pa

from ddobench.store.pack_file import SEEDS, Pack, Words, open_pack
from ddobench.store.record_file import RecordFile, open_record
from ddobench.store.records import Portrait
from ddobench.store.soundness import (
    NewerSchemaError,
    check_portrait,
    check_regular,
    check_row,
    printable,
    read_json,
)

log = logging.getLogger(__name__)

RESULT = ".parquet"
PACK = ".runs"
ERROR = ".error.json"
PORTRAIT = ".portrait.json"
Result = TypeVar("Result")


def file_name(seed: int) -> str:
    """Return the name of the file of a run in its folder."""
    return f"seed-{seed:05d}{RESULT}"


def seed_of(name: str) -> int | None:
    """Return the seed of the run that a file is named after, if it is."""
    match = re.fullmatch(rf"seed-(\d+){re.escape(RESULT)}", name)
    return int(match[1]) if match else None


def pack_name(seed: int) -> str:
    return f"seeds-{seed // SEEDS * SEEDS:05d}{PACK}"


def guarded(
    path: Path, read: Callable[[Path], Result], left_out: dict[Path, str] | None = None
) -> Result | None:
    """Read a file, or name it in a warning and return None; nothing is wrong if it went away."""

    def read_regular() -> Result:
        check_regular(path)
        return read(path)

    return attempt(path, read_regular, left_out)


def attempt(
    path: Path, read: Callable[[], Result], left_out: dict[Path, str] | None = None
) -> Result | None:
    """Read what a path names, or name it in a warning and return None."""
    try:
        return read()
    except FileNotFoundError:  # a sweep that goes on removes the traces of a failed run
        return None
    except Exception as error:  # a file from a stranger may break a reader in any way
        reason = printable(str(error).splitlines()[0]) if str(error) else type(error).__name__
        leave_out(path, reason, left_out)
        return None


def leave_out(path: Path, reason: str, left_out: dict[Path, str] | None) -> None:
    log.warning("%s is not a readable run and is left out: %s", printable(str(path)), reason)
    if left_out is not None:
        left_out[path] = reason


@contextlib.contextmanager
def open_run(path: Path) -> Iterator[RecordFile]:
    """Open a run that is complete and stored under its own name."""
    with open_record(path) as file:
        _check_row(path, file.meta["row"], RESULT)
        yield file


def _check_row(path: Path, row: dict[str, Any], ending: str) -> None:
    """Raise unless a row can be used and is stored under its own name."""
    check_row(row, ["failed"] if ending == ERROR else ["ok", "declined"])
    named = path.name == f"seed-{row['seed']:05d}{ending}"
    if not named or not path.parent.name.endswith(f"-{row['digest']}"):
        raise ValueError("it holds another run than its name says")


def read_metadata(path: Path) -> dict[str, Any]:
    with open_run(path) as file:
        return file.meta


def read_parts(path: Path) -> tuple[dict[str, Any], pa.Table]:
    """Return the metadata of a run and its curves."""
    with open_run(path) as file:
        return file.meta, file.read_curves()


def read_file_diagnostics(path: Path) -> dict[str, Any]:
    with open_run(path) as file:
        return file.read_diagnostics()


def read_packed_diagnostics(path: Path) -> dict[str, Any]:
    """Return what a run in a pack has to tell, nothing if it is in none."""
    seed = seed_of(path.name)
    if seed is None:
        return {}
    with open_pack(path.with_name(pack_name(seed))) as pack:
        return pack.read_diagnostics(seed) if seed in pack.contents.rows else {}


def read_packed(
    pack: Pack, file: Path, seed: int, with_curves: bool
) -> tuple[dict[str, Any], Words]:
    meta = pack.read_metadata(seed)
    _check_row(file, meta["row"], RESULT)
    return meta, pack.read_words(seed) if with_curves else np.zeros((0, 0), np.uint64)


def sample_packed(path: Path, seed: int) -> tuple[dict[str, Any], float] | None:
    with open_pack(path.with_name(pack_name(seed))) as pack:
        if seed not in pack.contents.rows:
            return None
        meta, _ = read_packed(pack, path, seed, False)
        return meta, os.fstat(pack.handle).st_size / len(pack.seeds)


def examine(path: Path) -> Literal["whole", "newer"]:
    """Read all of a file and say what it is, or raise if it is no sound run."""
    try:
        with open_run(path) as file:
            file.check()
            return "whole"
    except NewerSchemaError as error:
        return _say_newer(path, error)


def examine_packed(pack: Pack, path: Path, seed: int) -> Literal["whole", "newer"]:
    """Read all of a run in a pack and say what it is, or raise if it is no sound run."""
    file = path.with_name(file_name(seed))
    try:
        _check_row(file, pack.read_metadata(seed)["row"], RESULT)
        pack.check(seed)
        return "whole"
    except NewerSchemaError as error:
        return _say_newer(file, error)


def _say_newer(path: Path, error: NewerSchemaError) -> Literal["newer"]:
    log.warning(
        "%s was %s; it is left as it is and counts as stored: update ddobench, or choose "
        "another results_dir", path, error,
    )  # fmt: skip
    return "newer"


def are_whole(pack: Pack, seeds: Iterable[int]) -> bool:
    try:
        for seed in seeds:
            pack.check(seed)
    except Exception:  # whoever wants these runs is told the reason
        return False
    return True


def is_newer(path: Path) -> bool:
    try:
        with open_record(path):
            return False
    except NewerSchemaError:
        return True
    except Exception:  # of no version at all
        return False


def list_packed(path: Path) -> list[int]:
    with open_pack(path) as pack:
        return pack.seeds


def read_failure(path: Path) -> dict[str, Any]:
    row: dict[str, Any] = read_json(path)["row"]
    _check_row(path, row, ERROR)
    return row


def read_portrait(path: Path) -> Portrait:
    found = read_json(path)
    check_portrait(found)
    return Portrait(**found)
