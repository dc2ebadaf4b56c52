"""What the paper and the reference of COMs state is what runs, so that a default cannot drift."""

from pathlib import Path
from typing import Any

import pytest
import yaml

from ddobench.cli.hooks import specify_points

STATED = yaml.safe_load(Path(__file__).with_name("paper_settings.yaml").read_text())
CASES = [(method, statement) for statement in STATED for method in statement["methods"]]


def find(config: dict[str, Any], key: str) -> object:
    """Return the value of a dotted key."""
    part, _, rest = key.partition(".")
    return find(config[part], rest) if rest else config[part]


@pytest.mark.parametrize(
    ("method", "statement"), CASES, ids=[f"{m}: {s['quote'][:40]}" for m, s in CASES]
)
def test_a_method_has_the_settings_that_its_paper_states(
    method: str, statement: dict[str, Any]
) -> None:
    words = [f"method={method}", "task=chain", "d=21", *statement.get("with", [])]
    (spec,) = specify_points([words])
    found = {**spec.config["method"], "budget": spec.config["budget"]}
    assert {key: find(found, key) for key in statement["holds"]} == statement["holds"]
