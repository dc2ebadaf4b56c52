"""Promises of which runs have figures of their own, which figures lead, and that all is listed."""

import pandas as pd
import pytest

from ddobench.report.figures.draw import Axis, LinePlot
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.gallery import (
    KINDS,
    LEADING,
    MOST_FAMILIES,
    choose_leading,
    list_omitted,
    make_figures,
    runs_with_own_figures,
)
from ddobench.report.tables.select import BY_N
from ddobench.report.tables.table import name_runs
from tests.support.synthetic_runs import Row, evidence_of, sweep


def family(n: int, budget: str = "full", methods: tuple[str, ...] = ("ga",), **changes: object
           ) -> list[Row]:  # fmt: skip
    """Return runs at one number of rows and one budget."""
    rows = sweep(methods, [5], seeds=2, n=n, budget=budget, **changes)
    return [row | {"digest": f"{row['method']}{n}{budget}"} for row in rows]


def test_some_families_of_a_task_have_figures_and_the_others_are_listed() -> None:
    rows = [100 * (k + 1) for k in range(MOST_FAMILIES + 2)]
    stored = evidence_of([row for n in rows for row in family(n)])
    close = set(runs_with_own_figures(stored).runs["n"])
    assert close == set(rows[-MOST_FAMILIES:])
    assert [name for name, _ in list_omitted(stored)] == [
        f"quadratic, n = {n}" for n in rows if n not in close
    ]


def test_a_reduced_budget_is_looked_at_only_for_methods_that_no_other_family_has() -> None:
    stored = evidence_of([*family(100, methods=("ga", "naive")), *family(100, "tiny")])
    assert set(runs_with_own_figures(stored).runs["budget"]) == {"full"}
    ((_, command),) = list_omitted(stored)
    assert command == "python -m ddobench.report task=quadratic n=100 budget=tiny"
    other = evidence_of([*family(100), *family(100, "tiny", ("fgm",))])
    assert runs_with_own_figures(other) is other
    assert list_omitted(other) == []
    alone = evidence_of(family(100, "tiny"))
    assert runs_with_own_figures(alone) is alone


def test_every_family_is_either_looked_at_closely_or_listed() -> None:
    rows = [*family(100), *family(200, "tiny"), *family(300, "small", ("fgm",))]
    rows += [row for k in range(6) for row in family(400 + k, task_variant=f"noise={k}")]
    stored = evidence_of(rows)
    close = runs_with_own_figures(stored).runs
    names = {name for name, _ in list_omitted(stored)}
    for row in stored.runs[BY_N].drop_duplicates().to_dict("records"):
        drawn = (close[BY_N] == [row[name] for name in BY_N]).all(axis=1).any()
        assert drawn != (name_runs(row, "n") in names)


@pytest.mark.parametrize("latents", [3, 4])
def test_the_combinations_of_a_large_factorial_are_left_to_its_own_figure(latents: int) -> None:
    parts = {"axes": "identity", "graph": "complete", "surrogate": "mlp"}
    stored = evidence_of([
        row | parts | {"latent": f"l{a}", "search": f"s{b}", "digest": f"{a}{b}",
                       "method_variant": f"latent=l{a} search=s{b}" if a + b else ""}
        for a in range(latents) for b in range(4) for row in sweep(["ga"], [5], seeds=2)
    ])  # fmt: skip
    assert len(stored.factorials) == 1
    close = runs_with_own_figures(stored)
    assert (set(close.runs["method_variant"]) == {""}) == (latents == 4)
    assert (close is stored) == (latents == 3)


def test_variants_sizes_and_budgets_have_names_of_their_own() -> None:
    rows = [*sweep(seeds=2), *sweep(seeds=2, n=300), *sweep(seeds=2, task_variant="signs=random"),
            *sweep(seeds=2, task_variant="signs:random"),
            *sweep(seeds=2, task_variant="signs=other", budget="tiny")]  # fmt: skip
    names = [figure.name for figure in make_figures(evidence_of(rows)) if figure.kind == "regret"]
    assert sorted(names) == [
        "regret-quadratic-n100", "regret-quadratic-n300", "regret-quadratic-signs-other-n100-tiny",
        "regret-quadratic-signs-random-n100", "regret-quadratic-signs-random-n100-2",
    ]  # fmt: skip


def figure_of(name: str, rows: int = 1, methods: int = 1) -> Figure:
    """Return a figure of the kind that its name begins with."""
    data = pd.DataFrame({"method": [f"m{i % methods}" for i in range(rows)]})
    plot = LinePlot(name, Axis("x"), Axis("y"), {}, {"": ""})
    return Figure(name.split("-")[0], name, name, "c", "t", data, (), plot)


def test_the_headline_leads_and_every_kind_has_its_turn_before_one_has_its_second() -> None:
    names = [f"value-{i}" for i in range(9)] + ["regret-a", "marginals-a", "share-b", "headline"]
    found = [figure.name for figure in choose_leading([figure_of(name) for name in names])]
    assert found[:4] == ["headline", "share-b", "regret-a", "value-0"]
    assert len(found) == LEADING
    assert "marginals-a" not in found
    assert len(KINDS) == len(set(KINDS))


def test_of_one_kind_the_figure_with_more_methods_leads_then_that_with_more_numbers() -> None:
    figures = [figure_of("share-a", 2), figure_of("share-b", 5), figure_of("share-c", 3, 3)]
    found = [figure.name for figure in choose_leading(figures, 2)]
    assert found == ["share-c", "share-b"]
