"""The list of the files a report wrote, by which the next one clears away what it left behind.

A file is cleared only if it is in a folder of the report, on the list, and still has the content
that was written: what somebody else put there or changed stays.
"""

import json
from collections.abc import Mapping
from hashlib import sha256
from pathlib import Path, PurePosixPath

from ddobench.store.atomic import write_whole

NAME = "manifest.json"
FOLDERS = ("figures", "tables")


def clear_stale(report: Path, files: Mapping[Path, bytes]) -> Path:
    """Remove what an earlier report wrote and this one did not, and list the files of this one."""
    written = {
        path.relative_to(report).as_posix(): sha256(content).hexdigest()
        for path, content in files.items()
        if path.parent.name in FOLDERS and path.parent.parent == report
    }
    for name, digest in _read(report / NAME).items():
        if name not in written and _is_ours(name):
            stale = report / name
            if stale.is_file() and sha256(stale.read_bytes()).hexdigest() == digest:
                stale.unlink()
    return write_whole(report / NAME, json.dumps(written, indent=1, sort_keys=True) + "\n")


def _read(path: Path) -> dict[str, str]:
    """Return the list of an earlier report, empty where there is none that can be read."""
    try:
        listed = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return listed if isinstance(listed, dict) else {}


def _is_ours(name: str) -> bool:
    """Tell whether a listed name is a plain file of one of our folders and leads nowhere else."""
    parts = PurePosixPath(name).parts
    return len(parts) == 2 and parts[0] in FOLDERS and parts[1] not in ("", ".", "..")
