"""All figures of a report, in the order of the page."""

from collections.abc import Iterator, Mapping
from dataclasses import replace

from ddobench.progress import track
from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.close_ups import look_closer, tell_left_out
from ddobench.report.figures.codes import codes_beside_designs
from ddobench.report.figures.confidence import scores_by_confidence
from ddobench.report.figures.controls import variant_controls
from ddobench.report.figures.costs import seconds_by_method
from ddobench.report.figures.crosses import variance_by_part
from ddobench.report.figures.discovered import discovered_graph
from ddobench.report.figures.figure import Absence, Figure, FigureFunction
from ddobench.report.figures.headlines import headline
from ddobench.report.figures.knobs import shares_by_setting
from ddobench.report.figures.landmarks import best_visible_and_optimum
from ddobench.report.figures.overestimation import prediction_and_truth
from ddobench.report.figures.pictures import designs_in_pairs, marginals, true_graph
from ddobench.report.figures.profiles import performance_profiles
from ddobench.report.figures.rank_diagrams import mean_rank_diagrams
from ddobench.report.figures.regret import regret_by_dimension, regret_by_rows
from ddobench.report.figures.row_shares import optimum_share_by_rows
from ddobench.report.figures.rules import losses_by_rule
from ddobench.report.figures.shares import optimum_share_by_dimension
from ddobench.report.figures.trajectories import (
    invalid_by_iteration,
    survivors_by_iteration,
    value_by_iteration,
)
from ddobench.report.figures.unit_graphs import graph_of_units

WHOLE, CLOSE_UP = False, True  # of all runs, or of those that get figures of their own
FIGURES: Mapping[FigureFunction, bool] = {
    headline: WHOLE,
    true_graph: WHOLE,
    marginals: WHOLE,
    designs_in_pairs: WHOLE,
    best_visible_and_optimum: CLOSE_UP,
    value_by_iteration: CLOSE_UP,
    survivors_by_iteration: CLOSE_UP,
    invalid_by_iteration: CLOSE_UP,
    prediction_and_truth: CLOSE_UP,
    optimum_share_by_dimension: CLOSE_UP,
    optimum_share_by_rows: WHOLE,
    shares_by_setting: WHOLE,
    variant_controls: CLOSE_UP,
    discovered_graph: CLOSE_UP,
    graph_of_units: CLOSE_UP,
    scores_by_confidence: WHOLE,
    codes_beside_designs: CLOSE_UP,
    seconds_by_method: CLOSE_UP,
    regret_by_dimension: CLOSE_UP,
    regret_by_rows: WHOLE,
    performance_profiles: WHOLE,
    mean_rank_diagrams: WHOLE,
    variance_by_part: WHOLE,
    losses_by_rule: WHOLE,
}


def draw_all(stored: ReportData) -> list[Figure | Absence]:
    """Return every figure that the stored runs allow, each under a name of its own."""
    return list(draw_each(stored))


def draw_each(stored: ReportData) -> Iterator[Figure | Absence]:
    """Draw one figure after the other, each under a name of its own."""
    names: dict[str, int] = {}
    near = look_closer(stored)
    for function, closely in track(FIGURES.items(), "drawing figures"):
        for item in function(near if closely else stored):
            if isinstance(item, Figure):
                names[item.name] = names.get(item.name, 0) + 1
                again = names[item.name]
                item = replace(item, name=f"{item.name}-{again}") if again > 1 else item
            yield item
    yield from tell_left_out(stored)
