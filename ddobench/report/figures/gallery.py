"""All figures of a report, in the order of the page, and which of them come first."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from math import prod

import pandas as pd

from ddobench.progress import track
from ddobench.report.data import ReportData
from ddobench.report.figures import (
    design_figures,
    graph_figures,
    line_figures,
    matrix_figures,
    row_figures,
)
from ddobench.report.figures.figure import Figure, FigureFunction
from ddobench.report.tables.formatting import name_runs
from ddobench.report.tables.select import BY_N

LEADING = 10  # figures at the top of the page
MOST_FAMILIES = (
    4  # of a task that have their own figures; a family is a task, variant, n and budget
)
# The kinds of leading figures, most important first.
KINDS = (
    *("suite", "headline", "path", "share", "rows", "controls", "setting", "regret", "invalid"),
    *("units", "coverage", "plane", "ranks", "factorial", "value"),
)
WHOLE: tuple[FigureFunction, ...] = (  # of all runs
    matrix_figures.suite_figures,
    line_figures.headline,
    graph_figures.true_graphs,
    design_figures.marginals,
    design_figures.designs_in_pairs,
    line_figures.landmarks,
    line_figures.regret,
    line_figures.regret_by_coverage,
    design_figures.proposals_in_planes,
    line_figures.share_by_rows,
    line_figures.score_by_setting,
    line_figures.profiles,
    row_figures.mean_ranks,
    row_figures.variance_by_part,
)
BY_FAMILY: tuple[FigureFunction, ...] = (  # of the families with their own figures
    line_figures.share_by_dimension,
    line_figures.scores_by_iteration,
    line_figures.value_by_path,
    line_figures.prediction_and_truth,
    row_figures.controls,
    graph_figures.discovered_graphs,
    graph_figures.graphs_of_units,
    design_figures.codes_beside_designs,
    line_figures.costs,
)


def make_figures(data: ReportData) -> Iterator[Figure]:
    """Yield every figure of the stored runs, each with a unique name."""
    names: dict[str, int] = {}
    chosen = runs_with_own_figures(data)
    for function in track([*WHOLE, *BY_FAMILY], "preparing figures"):
        for figure in function(chosen if function in BY_FAMILY else data):
            again = names[figure.name] = names.get(figure.name, 0) + 1
            yield replace(figure, name=f"{figure.name}-{again}") if again > 1 else figure


def runs_with_own_figures(data: ReportData) -> ReportData:
    """Keep the runs of the families that have their own figures.

    These are the families of each task with most methods and sizes, and every family with a method
    that these lack. Combinations of a large factorial are left to the figure of factorials. Tables
    that were computed already are kept.
    """
    runs = data.runs[~_is_of_large_factorial(data)]
    chosen = pd.concat([runs.head(0)[BY_N], *(pd.DataFrame(_choose_families(task), columns=BY_N)
                                              for _, task in runs.groupby("task"))])  # fmt: skip
    kept = runs.merge(chosen, on=BY_N)
    if len(kept) == len(data.runs):
        return data
    keys = ["digest", "seed"]
    chosen_data = replace(data, runs=kept, curves=data.curves.merge(kept[keys], on=keys))
    for name in ("scores", "best_visible"):
        chosen_data.__dict__[name] = getattr(data, name)
    sizes = kept[[*BY_N, "d", "method", "method_variant"]].drop_duplicates()
    chosen_data.__dict__["controls"] = data.controls.merge(sizes)
    return chosen_data


def _choose_families(task: pd.DataFrame) -> list[tuple[object, ...]]:
    families = []
    for key, own in task.groupby(BY_N, sort=True):
        pairs = len(own[["method", "d"]].drop_duplicates())
        reduced = own["budget"].iloc[0] != "full"
        families.append((reduced, -pairs, -own["n"].iloc[0], key, set(own["method"])))
    families.sort(key=lambda family: family[:3])
    chosen: list[tuple[object, ...]] = []
    seen: set[str] = set()
    for reduced, _, _, key, methods in families:
        if (len(chosen) < MOST_FAMILIES and not reduced) or not methods <= seen or not chosen:
            chosen.append(key)
            seen |= methods
    return chosen


def _is_of_large_factorial(data: ReportData) -> "pd.Series[bool]":
    found = pd.Series(False, data.runs.index)
    for one in data.factorials:
        if prod(map(len, one.levels.values())) > 12:
            found |= (data.runs[[*one.place]] == [*one.place.values()]).all(axis=1)
    return found & (data.runs["method_variant"] != "")


def list_omitted(data: ReportData) -> list[tuple[str, str]]:
    """Return the families without their own figures, each with the command that draws them."""
    close = runs_with_own_figures(data).runs[BY_N].drop_duplicates()
    families = data.runs[BY_N].drop_duplicates().merge(close, on=BY_N, how="left", indicator=True)
    rest = families[families["_merge"] == "left_only"].sort_values(BY_N)
    return [
        (name_runs(row, "n"),
         f"python -m ddobench.report task={row['task']} n={row['n']} budget={row['budget']}")
        for row in rest.to_dict("records")
    ]  # fmt: skip


def choose_leading(figures: Sequence[Figure], most: int = LEADING) -> list[Figure]:
    """Return the figures at the top of the page, the headline first.

    Each kind comes once before any comes twice. Within a kind, figures with more levels of a
    setting come first, then those with more methods, then those with more numbers.
    """
    turns: list[tuple[int, int, Figure]] = []
    for place, kind in enumerate(KINDS):
        own = sorted((figure for figure in figures if figure.kind == kind), key=_sort_key)
        turns += [(turn, place, figure) for turn, figure in enumerate(own)]
    turns.sort(key=lambda item: item[:2])
    return [figure for _, _, figure in turns[:most]]


def _sort_key(figure: Figure) -> tuple[int, int, int, str]:
    levels, methods = (
        figure.data[name].nunique() if name in figure.data else 0 for name in ("level", "method")
    )
    return -levels, -methods, -len(figure.data), figure.name
