"""Write the options of all parts into the table of ARCHITECTURE.md: python -m ddobench.parts.

The questions of that table are written by hand, base classes and options come from the code.
"""

import re
from pathlib import Path

from ddobench.parts.pipeline import PARTS
from ddobench.registry import entries

PAGE = Path("ARCHITECTURE.md")


def write_options(page: str) -> str:
    """Return the page with base class and options in the row of each part."""
    for group, base in PARTS.items():
        file = base.__module__.removeprefix("ddobench.").replace(".", "/")
        options = ", ".join(f"`{entry.name}`" for entry in entries(group))
        row = rf"^(\| `{group}` \| [^|]+ \| ).*$"
        cells = rf"\1`{base.__name__}` in `{file}.py` | {options} |"
        page, rows = re.subn(row, cells, page, flags=re.MULTILINE)
        if rows != 1:
            raise ValueError(f"{PAGE} must have one row for `{group}`, got {rows}")
    return page


if __name__ == "__main__":
    PAGE.write_text(write_options(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
