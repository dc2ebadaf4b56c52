"""Words that make readers stumble stay out of the source."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
FOLDERS = ("ddobench", "tasks", "baselines", "conf", "tests", "benchmarks", "examples")
WORDS = (
    r"lest|whoever|painters?|portraits?|fates?|deeds?|for people|as good as none|spell(ed|s|ing)?"
)
PATTERN = re.compile(
    rf"\b({WORDS})\b|\bspell_|(?<!\.)\btold\b(?! *[:=] *(true|false|True|False|bool))", re.I
)
ALLOWED = ("cliqueformer", "test_words")  # `told` is a setting of Cliqueformer, stored in its runs


@pytest.mark.parametrize("folder", FOLDERS)
def test_odd_words_stay_out(folder: str) -> None:
    found = [
        f"{path.relative_to(ROOT)}:{number}: {line.strip()}"
        for ending in ("*.py", "*.yaml", "*.md", "*.html")
        for path in sorted((ROOT / folder).rglob(ending))
        if not any(word in path.name for word in ALLOWED)
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), start=1)
        if PATTERN.search(line)
    ]
    assert found == []
