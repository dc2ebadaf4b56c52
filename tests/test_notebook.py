"""The example notebook runs from top to bottom and gives the stored outputs.

Rewrite its outputs with: python -m tests.test_notebook
"""

import re
from pathlib import Path

import pytest

from tests.support.notebooks import (
    code_cells,
    read_notebook,
    run_cells,
    split_text,
    write_outputs,
)

NOTEBOOK = Path(__file__).parent.parent / "examples" / "first_steps.ipynb"


@pytest.mark.slow
def test_every_cell_runs_and_gives_the_stored_outputs() -> None:
    notebook = read_notebook(NOTEBOOK)
    stored = [split_text(cell["outputs"]) for cell in code_cells(notebook)]
    found = [split_text(outputs) for outputs in run_cells(notebook)]
    assert [text for text, _, _ in found] == [text for text, _, _ in stored]
    assert [pictures for *_, pictures in found] == [pictures for *_, pictures in stored]
    for (_, now, _), (_, then, _) in zip(found, stored, strict=True):  # machines round differently
        assert now == pytest.approx(then, rel=0.1, abs=0.1)


def test_the_notebook_has_no_magics_and_its_outputs_are_in_order() -> None:
    cells = code_cells(read_notebook(NOTEBOOK))
    assert [cell["execution_count"] for cell in cells] == list(range(1, len(cells) + 1))
    source = "".join(line for cell in cells for line in cell["source"])
    assert not re.search(r"^\s*[!%]", source, re.MULTILINE)
    assert "/tmp" not in str([cell["outputs"] for cell in cells])


def test_every_page_that_the_notebook_links_to_exists() -> None:
    text = NOTEBOOK.read_text(encoding="utf-8")
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert [link for link in links if not (NOTEBOOK.parent / link).exists()] == []


if __name__ == "__main__":
    write_outputs(NOTEBOOK)
