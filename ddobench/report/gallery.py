"""All figures of a report, in the order of the page."""

from dataclasses import replace

from ddobench.report.controls import variant_controls
from ddobench.report.evidence import Evidence
from ddobench.report.figures import Absence, Figure, FigureFunction
from ddobench.report.landmarks import best_visible_and_optimum
from ddobench.report.pictures import designs_in_pairs, marginals, true_graph
from ddobench.report.regret import regret_by_dimension, regret_by_rows
from ddobench.report.shares import optimum_share_by_dimension
from ddobench.report.trajectories import (
    invalid_by_iteration,
    survivors_by_iteration,
    value_by_iteration,
)

FIGURES: tuple[FigureFunction, ...] = (
    true_graph,
    marginals,
    designs_in_pairs,
    best_visible_and_optimum,
    value_by_iteration,
    survivors_by_iteration,
    invalid_by_iteration,
    optimum_share_by_dimension,
    variant_controls,
    regret_by_dimension,
    regret_by_rows,
)


def draw_all(evidence: Evidence) -> list[Figure | Absence]:
    """Return every figure the evidence allows, each under a name of its own."""
    found: list[Figure | Absence] = []
    names: dict[str, int] = {}
    for function in FIGURES:
        for item in function(evidence):
            if isinstance(item, Figure):
                names[item.name] = names.get(item.name, 0) + 1
                again = names[item.name]
                item = replace(item, name=f"{item.name}-{again}") if again > 1 else item
            found.append(item)
    return found
