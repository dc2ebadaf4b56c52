"""What the README says of the methods is what their files say."""

import re
from pathlib import Path

from ddobench import registry

README = Path(__file__).parent.parent / "README.md"


def test_the_table_of_line_ups_is_that_of_the_files() -> None:
    rows = re.findall(r"^\| `(\w+)` \| (.+) \|$", README.read_text(), re.MULTILINE)
    told = {
        method: dict(zip(registry.PARTS, parts.split(" | "), strict=True))
        for method, parts in rows
        if parts.count("|") == len(registry.PARTS) - 1
    }
    lineups = {entry.name: registry.line_up(entry.name) for entry in registry.entries("method")}
    assert told == {name: parts for name, parts in lineups.items() if parts}


def test_every_folder_and_file_that_the_readme_links_to_exists() -> None:
    links = re.findall(r"\]\(([^)#:]+)\)", README.read_text())
    assert links
    assert [link for link in links if not (README.parent / link).exists()] == []
