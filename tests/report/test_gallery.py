"""Promises of which runs have their own figures, and which figures lead the page."""

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
from ddobench.report.tables.formatting import name_runs
from ddobench.report.tables.select import BY_N
from tests.support.synthetic_runs import Row, data_of, sweep


def family(n: int, budget: str = "full", methods: tuple[str, ...] = ("ga",), **changes: object
           ) -> list[Row]:  # fmt: skip
    """Return runs at one number of rows and one budget."""
    rows = sweep(methods, [5], seeds=2, n=n, budget=budget, **changes)
    return [row | {"digest": f"{row['method']}{n}{budget}"} for row in rows]


def test_some_families_of_a_task_have_figures_and_the_others_are_listed() -> None:
    rows = [100 * (k + 1) for k in range(MOST_FAMILIES + 2)]
    stored = data_of([row for n in rows for row in family(n)])
    chosen = set(runs_with_own_figures(stored).runs["n"])
    assert chosen == set(rows[-MOST_FAMILIES:])
    assert [name for name, _ in list_omitted(stored)] == [
        f"quadratic, n = {n}" for n in rows if n not in chosen
    ]


def test_a_reduced_budget_has_figures_only_for_methods_without_others() -> None:
    stored = data_of([*family(100, methods=("ga", "naive")), *family(100, "tiny")])
    assert set(runs_with_own_figures(stored).runs["budget"]) == {"full"}
    ((_, command),) = list_omitted(stored)
    assert command == "python -m ddobench.report task=quadratic n=100 budget=tiny"
    other = data_of([*family(100), *family(100, "tiny", ("fgm",))])
    assert runs_with_own_figures(other) is other
    assert list_omitted(other) == []
    alone = data_of(family(100, "tiny"))
    assert runs_with_own_figures(alone) is alone


def test_every_family_has_figures_or_is_listed() -> None:
    rows = [*family(100), *family(200, "tiny"), *family(300, "small", ("fgm",))]
    rows += [row for k in range(6) for row in family(400 + k, task_variant=f"noise={k}")]
    stored = data_of(rows)
    chosen = runs_with_own_figures(stored).runs
    names = {name for name, _ in list_omitted(stored)}
    for row in stored.runs[BY_N].drop_duplicates().to_dict("records"):
        drawn = (chosen[BY_N] == [row[name] for name in BY_N]).all(axis=1).any()
        assert drawn != (name_runs(row, "n") in names)


@pytest.mark.parametrize("latents", [3, 4])
def test_combinations_of_a_large_factorial_have_no_own_figures(latents: int) -> None:
    parts = {"axes": "identity", "graph": "complete", "surrogate": "mlp"}
    stored = data_of([
        row | parts | {"latent": f"l{a}", "search": f"s{b}", "digest": f"{a}{b}",
                       "method_variant": f"latent=l{a} search=s{b}" if a + b else ""}
        for a in range(latents) for b in range(4) for row in sweep(["ga"], [5], seeds=2)
    ])  # fmt: skip
    assert len(stored.factorials) == 1
    chosen = runs_with_own_figures(stored)
    assert (set(chosen.runs["method_variant"]) == {""}) == (latents == 4)
    assert (chosen is stored) == (latents == 3)


def test_variants_sizes_and_budgets_have_unique_names() -> None:
    rows = [*sweep(seeds=2), *sweep(seeds=2, n=300), *sweep(seeds=2, task_variant="signs=random"),
            *sweep(seeds=2, task_variant="signs:random"),
            *sweep(seeds=2, task_variant="signs=other", budget="tiny")]  # fmt: skip
    names = [figure.name for figure in make_figures(data_of(rows)) if figure.kind == "regret"]
    assert sorted(names) == [
        "regret-quadratic-n100", "regret-quadratic-n300", "regret-quadratic-signs-other-n100-tiny",
        "regret-quadratic-signs-random-n100", "regret-quadratic-signs-random-n100-2",
    ]  # fmt: skip


def figure_of(name: str, rows: int = 1, methods: int = 1) -> Figure:
    """Return a figure of the kind that its name begins with."""
    data = pd.DataFrame({"method": [f"m{i % methods}" for i in range(rows)]})
    plot = LinePlot(name, Axis("x"), Axis("y"), {}, {"": ""})
    return Figure(name.split("-")[0], name, name, "c", "t", data, (), plot)


def test_the_headline_leads_and_each_kind_comes_once_before_any_comes_twice() -> None:
    names = [f"value-{i}" for i in range(9)] + ["regret-a", "marginals-a", "share-b", "headline"]
    found = [figure.name for figure in choose_leading([figure_of(name) for name in names])]
    assert found[:4] == ["headline", "share-b", "regret-a", "value-0"]
    assert len(found) == LEADING
    assert "marginals-a" not in found
    assert len(KINDS) == len(set(KINDS))


def test_figures_with_more_methods_then_more_numbers_lead_their_kind() -> None:
    figures = [figure_of("share-a", 2), figure_of("share-b", 5), figure_of("share-c", 3, 3)]
    found = [figure.name for figure in choose_leading(figures, 2)]
    assert found == ["share-c", "share-b"]
