"""What methods keep of a seed between runs, such as a trained latent that several of them share."""

import hashlib
import json
import logging
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ddobench.store.atomic import write_whole

log = logging.getLogger(__name__)

Arrays = dict[str, NDArray[Any]]


class ArrayCache:
    """Arrays of one task by seed and key, in a folder; without a folder nothing is kept.

    A key holds all that the arrays depend on besides the task and the seed. Files are written whole
    or not at all, and read without pickle; one that cannot be read is as good as none.
    """

    def __init__(self, folder: Path | None = None, task: str = "") -> None:
        self.folder = folder
        self.task = task

    def get(self, kind: str, key: Mapping[str, Any], seed: int) -> Arrays | None:
        """Return what was kept, or None."""
        path = self._path(kind, key, seed)
        if path is None or not path.exists():
            return None
        try:
            with path.open("rb") as file, np.load(file, allow_pickle=False) as kept:
                return {name: kept[name] for name in kept.files}
        except (OSError, ValueError, EOFError, KeyError, zipfile.BadZipFile) as error:
            log.warning("%s cannot be read and is made anew: %s", path, error)
            return None

    def put(self, kind: str, key: Mapping[str, Any], seed: int, arrays: Arrays) -> None:
        """Keep arrays for later runs."""
        path = self._path(kind, key, seed)
        if path is not None:
            write_whole(path, lambda temporary: _save(temporary, arrays))

    def _path(self, kind: str, key: Mapping[str, Any], seed: int) -> Path | None:
        if self.folder is None:
            return None
        text = json.dumps({"task": self.task, "key": key}, sort_keys=True)
        digest = hashlib.blake2b(text.encode(), digest_size=8).hexdigest()
        return self.folder / f"{kind}-{digest}" / f"seed-{seed:05d}.npz"


def _save(path: Path, arrays: Arrays) -> None:
    with path.open("wb") as file:  # given a name, NumPy would add its own ending
        np.savez(file, allow_pickle=False, **arrays)
