"""Arrays that runs share, such as a trained latent of one seed."""

import hashlib
import io
import json
import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from ddobench.store.atomic import write_whole

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]
Shapes = Mapping[str, tuple[int, ...] | None]  # None: any

_LABEL = "__label__"  # beside the arrays: what they are of, and their checksum


class ArrayCache:
    """Arrays of one task by seed and key, in a folder; without a folder nothing is kept.

    A key holds all that the arrays depend on besides the task and the seed. Files are written whole
    or not at all, and read without pickle. Each has a label; one that cannot be read, is of
    something else or does not fit is named and ignored.
    """

    def __init__(self, folder: Path | None = None, task: str = "") -> None:
        self.folder = folder
        self.task = task

    def get(
        self, kind: str, key: Mapping[str, Any], seed: int, shapes: Shapes | None = None
    ) -> Arrays | None:
        """Return what was kept, or None; `shapes` are those it must have to be of use."""
        path = self._path(kind, key, seed)
        if path is None or not path.is_file():
            return None
        try:
            arrays = _unpack(path.read_bytes(), self._label(kind, key, seed))
            _check_shapes(arrays, shapes)
        except Exception as error:  # a damaged archive may be wrong in any way
            log.warning("%s cannot be used and is made anew: %s", path, error)
            return None
        return arrays

    def put(self, kind: str, key: Mapping[str, Any], seed: int, arrays: Arrays) -> None:
        """Store arrays for later runs."""
        path = self._path(kind, key, seed)
        if path is not None:
            write_whole(path, _pack(arrays, self._label(kind, key, seed)))

    def _path(self, kind: str, key: Mapping[str, Any], seed: int) -> Path | None:
        if self.folder is None:
            return None
        text = json.dumps({"task": self.task, "key": key}, sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return self.folder / f"{kind}-{digest}" / f"seed-{seed:05d}.npz"

    def _label(self, kind: str, key: Mapping[str, Any], seed: int) -> dict[str, Any]:
        return {"kind": kind, "task": self.task, "key": dict(key), "seed": seed}


def _pack(arrays: Arrays, label: dict[str, Any]) -> bytes:
    text = json.dumps({**label, "checksum": _sum_up(arrays)})
    file = io.BytesIO()
    np.savez(file, allow_pickle=False, **arrays, **{_LABEL: np.asarray(text)})
    return file.getvalue()


def _unpack(content: bytes, label: dict[str, Any]) -> Arrays:
    """Return the arrays of an archive, or raise unless they are what the label says."""
    with np.load(io.BytesIO(content), allow_pickle=False) as kept:
        arrays = {name: kept[name] for name in kept.files}
    if _LABEL not in arrays:
        raise ValueError("it has no label")
    found = json.loads(str(arrays.pop(_LABEL)))
    checksum = found.pop("checksum")
    if found != json.loads(json.dumps(label)):
        raise ValueError(f"it is of {found}")
    if checksum != _sum_up(arrays):
        raise ValueError("damaged: its arrays do not match their checksum")
    return arrays


def _check_shapes(arrays: Arrays, shapes: Shapes | None) -> None:
    found = {name: array.shape for name, array in arrays.items()}
    for name, shape in (shapes or {}).items():
        if name not in found:
            raise ValueError(f"it has no {name}")
        if shape not in (None, found[name]):
            raise ValueError(f"its {name} must have the shape {shape}, got {found[name]}")


def _sum_up(arrays: Arrays) -> int:
    """Return one checksum of all names, kinds, shapes and numbers."""
    total = 0
    for name, array in sorted(arrays.items()):
        total = crc32(f"{name} {array.dtype.str} {array.shape}".encode(), total)
        total = crc32(np.ascontiguousarray(array).tobytes(), total)
    return total
