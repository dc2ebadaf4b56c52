"""The cards of tasks."""

import re
from pathlib import Path

import pytest

from ddobench import cards, registry
from ddobench.cards import describe_task, write_cards
from ddobench.registry import Entry


def test_every_task_has_a_card() -> None:
    """If not: make tables."""
    (table,) = cards.PLACE.findall(cards.FILE.read_text(encoding="utf-8"))
    rows = re.findall(r"^\| \[`(\w+)`", table, re.MULTILINE)
    assert rows == [entry.name for entry in registry.entries("task")]


def test_a_card_has_the_landmarks_of_a_task() -> None:
    assert describe_task("tfbind8")[:6] == [
        "8, 32768", "4 categories",
        "0.4393 (0.439)", "0.3262 (0.326)", "1 (1.000)", "0 and 1",
    ]  # fmt: skip


def test_a_task_that_cannot_be_built_here_keeps_its_card(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lacking = [Entry(name, name, "", "", "", "it needs a package") for name in ("new", "old")]
    monkeypatch.setattr(registry, "entries", lambda _: lacking)
    file, row = tmp_path / "tasks.md", "| [`old`](#old) | as it was |"
    file.write_text(f"<!-- written by python -m ddobench.cards -->\n{row}\n<!-- end -->\n")
    write_cards(file)
    new, old, _ = file.read_text().splitlines()[-3:]
    assert new.startswith("| [`new`](#new) | ? |")
    assert old == row
