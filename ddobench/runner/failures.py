"""Where a run went wrong: the line of the user's own code, for a message of one line."""

import sysconfig
import traceback
from pathlib import Path

_PACKAGE = Path(__file__).resolve().parents[1]
_LIBRARIES = tuple(Path(sysconfig.get_path(name)) for name in ("stdlib", "purelib", "platlib"))


def locate(error: BaseException) -> str:
    """Return file and line of the innermost frame that is no library's, and ours only if no other.

    A method's own line tells more than the line of PyTorch or of this package that refused.
    """
    frames = traceback.extract_tb(error.__traceback__)
    places = [(Path(frame.filename), frame.lineno) for frame in frames]
    places = [place for place in places if place[0].is_file()]  # not those of compiled code
    ours = [place for place in places if _lies_in(place[0], _PACKAGE)]
    own = [
        place
        for place in places
        if place not in ours and not any(_lies_in(place[0], folder) for folder in _LIBRARIES)
    ]
    found = own or ours or places
    return "{}:{}".format(*found[-1]) if found else "an unknown place"


def _lies_in(file: Path, folder: Path) -> bool:
    return file.is_relative_to(folder) or file.resolve().is_relative_to(folder)
