"""Normalised percentiles across tasks, and our numbers beside published ones."""

import math
from typing import Any

import pandas as pd
import pytest

from ddobench import registry
from ddobench.cli.hooks import specify_points
from ddobench.report.readme_tables import PUBLISHED
from ddobench.report.tables.formatting import DASH, markdown_group, to_latex
from ddobench.report.tables.protocol import (
    LABS,
    describe_parity,
    describe_protocol,
    format_spread,
    parity_table,
    percentile_table,
    read_published,
)
from ddobench.report.tables.styles import paper_of
from tests.support.records import needs_published
from tests.support.synthetic_runs import data_of, run_row

VALUES = {"y_mean": 10.0, "y_sd": 2.0, "y_min": 6.0, "optimum": 3.0, "best_visible": 0.5}


def row(method: str, top: float, seed: int = 0, **changes: Any) -> dict[str, Any]:
    """Return a run whose least visible value is -2 sd and whose optimum is 3 sd."""
    percentiles = {"top_p100": top, "top_p80": top - 0.5, "top_p50": top - 1}
    return run_row(method, seed=seed) | VALUES | percentiles | changes


def tables(rows: list[dict[str, Any]]) -> tuple[pd.DataFrame, Any]:
    data = data_of(rows)
    frame = percentile_table(data.runs, data.board, data.styles)
    return frame, describe_protocol(data.scores, frame)


def test_the_least_visible_value_is_0_and_the_optimum_1() -> None:
    frame, _ = tables([row("ga", 3.0), row("ga", 0.5, seed=1), row("naive", 0.5, final_model=0.5)])
    best, ga = frame.set_index("label").loc[["D(best)", "ga"]].to_dict("records")
    assert (best["lowest"], best["highest"]) == (6.0, 16.0)
    assert best["100th_mean"] == best["50th_mean"] == pytest.approx(0.5)
    assert ga["100th_mean"] == pytest.approx((1 + 0.5) / 2)
    assert ga["100th_sd"] == pytest.approx(0.5 / math.sqrt(2))
    assert ga["80th_mean"] == pytest.approx((0.9 + 0.4) / 2)
    assert "naive" not in set(frame["method"])


def test_ranks_are_among_the_methods_that_every_task_has() -> None:
    rows = [row(method, top, task=task)
            for task in ("one", "two", "three")
            for method, top in (("ga", 1.0 if task == "one" else 2.0), ("rwr", 1.5))]  # fmt: skip
    rows += [row("coms", 2.9, task="one"), row("fgm", 3.0, privileges="graph", task="one")]
    _, table = tables(rows)
    best = table.groups[0]
    ranks = {text[0]: text[-2:] for text in best.texts()}
    assert ranks["ga"] == ["1.33", "1.00"]
    assert ranks["rwr"] == ["1.67", "2.00"]
    assert ranks["coms"] == ranks["FGM\u2020"] == ranks["D(best)"] == [DASH, DASH]
    assert [group.title for group in table.groups[:3]] == [
        "100th percentile", "80th percentile", "50th percentile",
    ]  # fmt: skip


def test_the_values_that_become_0_and_1_are_in_the_table_itself() -> None:
    _, table = tables([row("ga", 3.0)])
    latex = to_latex(table.groups[0])
    assert "value at 0 & 6.000" in latex
    assert "value at 1 & 16.000" in latex


def test_a_task_without_an_optimum_and_runs_without_the_percentile_are_left_out() -> None:
    frame, _ = tables([row("ga", 1.0, optimum=float("nan"))])
    assert frame.empty
    _, old = tables([row("ga", 1.0, top_p80=float("nan"))])
    assert [group.title for group in old.groups[:2]] == ["100th percentile", "50th percentile"]


def published_row(name: str) -> dict[str, Any]:
    (task,) = read_published()["tasks"]
    return next(entry for entry in task["rows"] if entry["name"] == name)


def binding(method: str, best: float, **changes: Any) -> list[dict[str, Any]]:
    """Return two runs of the published size whose normalised best design is as given."""
    scale = {"y_mean": 0.0, "y_sd": 1.0, "y_min": 0.0, "optimum": 1.0}
    (task,) = read_published()["tasks"]
    size = {"task": task["task"], "n": task["n"], "d": 8, "budget": task["budget"]}
    return [run_row(method, seed=20 + seed) | scale | size | changes
            | {"top_p100": best + 0.01 * (2 * seed - 1), "top_p50": 0.5}
            for seed in (0, 1)]  # fmt: skip


def test_our_mean_stands_beside_every_lab_and_the_difference_is_to_their_mean() -> None:
    (found,) = parity_table(data_of(binding("coms", 0.95)).runs).to_dict("records")
    labs = [published_row("COMs")[lab]["p100"] for lab in LABS]
    assert [found[f"p100_{lab}"] for lab in LABS] == labs
    assert found["p100_mean"] == pytest.approx(0.95)
    assert found["p100_difference"] == pytest.approx(0.95 - sum(labs) / 3)
    assert found["parity"].startswith("best reached")
    assert found["doi"] == paper_of("coms").doi


@pytest.mark.parametrize(("best", "judged"), [(0.99, "above"), (0.85, "not reached")])
def test_a_difference_of_more_than_two_labs_have_is_a_gap(best: float, judged: str) -> None:
    (found,) = parity_table(data_of(binding("coms", best)).runs).to_dict("records")
    assert found["parity"].startswith(f"best {judged}, ")


def test_a_number_of_another_protocol_is_shown_and_does_not_count() -> None:
    frame = parity_table(data_of(binding("ddom", 0.9)).runs)
    entry = published_row("DDOM")
    same = (entry["ram"]["p100"] + entry["root"]["p100"]) / 2
    assert frame["p100_difference"].item() == pytest.approx(0.9 - same)
    (group,) = describe_parity(frame).groups
    assert f"({format_spread(0.957, 0.006)})" in group.texts()[0]
    assert f"]({paper_of('ddom').link}) |" in markdown_group(group)


def test_other_budgets_variants_and_methods_without_a_published_number_have_no_row() -> None:
    rows = [
        *binding("coms", 0.9, budget="full"),
        *binding("coms", 0.9, method_variant="search.rate=1"),
        *binding("linear", 0.9),
    ]
    frame = parity_table(data_of(rows).runs)
    assert frame.empty
    assert describe_parity(frame).groups == []


def test_published_rows_name_methods_and_variants_that_exist_and_sources() -> None:
    for task in read_published()["tasks"]:
        for entry in task["rows"]:
            if registry.missing_dependency(registry.read_choice("method", entry["method"])["card"]):
                continue
            words = [f"task={task['task']}", f"method={entry['method']}"]
            (spec,) = specify_points([[*words, *entry.get("variant", "").split()]])
            assert spec.method_variant == entry.get("variant", "")
            assert spec.n == task["n"]
            assert entry["differs"]
            assert any(lab in entry for lab in LABS)


@needs_published
def test_a_faithful_method_reaches_a_published_best_and_median() -> None:
    parity = pd.read_csv(PUBLISHED / "tables" / "parity.csv", keep_default_na=False)
    reached = parity.loc[parity["method_variant"] == ""].set_index("method")["parity"]
    for entry in registry.entries("method"):
        if entry.fidelity == "faithful":
            assert reached[entry.name] == "best reached, median reached"


def test_papers_have_a_doi() -> None:
    for entry in registry.entries("method"):
        card = registry.read_choice("method", entry.name)["card"]
        assert ("paper" in card) == ("doi" in card)
        paper = paper_of(entry.name)
        assert paper.link == (f"https://doi.org/{card['doi']}" if "doi" in card else "")
        if entry.fidelity in ("faithful", "adaptation"):
            assert paper.title, f"{entry.name} adapts a paper that its card does not name"
