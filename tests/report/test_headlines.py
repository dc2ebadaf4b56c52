"""Promises of the headline figure: what leads, and what every reader sees first."""

import numpy as np

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.headlines import MOST_LINES, headline
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import Row, climb, evidence_of


def share_rows(methods: list[str], **changes: object) -> list[Row]:
    """Return runs at two sizes, of each method a little better than of the one before."""
    return [
        climb(method, d, seed, final_model=1.0 + place, **changes)
        for place, method in enumerate(methods)
        for d in (11, 21)
        for seed in range(3)
    ]


def stored_of(*rows: list[Row]) -> ReportData:
    return evidence_of([row for part in rows for row in part])


def test_the_best_the_usual_and_doing_nothing_lead_and_the_caption_counts_the_rest() -> None:
    others = [f"m{i}" for i in range(MOST_LINES + 1)]
    figure = only(headline, stored_of(share_rows(["naive", "ga", *others])))
    labels = [text.get_text() for text in figure.drawing.legends[0].get_texts()]
    assert len(labels) == MOST_LINES
    assert {"Naive (doing nothing)", "ga", *others[-4:]} <= set(labels)
    assert "3 methods are left out" in figure.caption
    assert set(figure.data["method"]) == {"naive", "ga", *others}  # its numbers have all


def test_a_method_with_one_of_many_sizes_does_not_lead() -> None:
    whole = [climb(f"m{i}", d, final_model=1.0) for i in range(MOST_LINES) for d in (11, 21, 31)]
    once = [climb("once", 31, final_model=9.0)]
    figure = only(headline, stored_of(share_rows(["naive"]), whole, once))
    labels = [text.get_text() for text in figure.drawing.legends[0].get_texts()]
    assert len(labels) == MOST_LINES
    assert "once" not in labels


def test_a_method_that_was_told_the_graph_is_not_drawn() -> None:
    told = share_rows(["fgm"], privileges="graph")
    figure = only(headline, stored_of(share_rows(["naive", "ga"]), told))
    assert set(figure.data["method"]) == {"naive", "ga"}


def test_each_task_has_a_panel_with_the_optimum_and_doing_nothing() -> None:
    figure = only(headline, stored_of(share_rows(["ga"]), share_rows(["coms"], task="rbf")))
    panels = [axes for axes in figure.drawing.axes if axes.get_visible()]
    assert [axes.get_title(loc="left") for axes in panels] == ["chain, n = 100", "rbf, n = 100"]
    for axes in panels:
        heights = [np.round(np.asarray(line.get_ydata(), float), 9) for line in axes.get_lines()]
        assert any((line == 1.0).all() for line in heights)
        assert any(
            (line == 0.4).all() for line in heights
        )  # the best visible design, as naive is not stored
    assert "doing nothing" in figure.caption
    assert overflow(figure) <= 0


def test_where_only_doing_nothing_is_stored_there_is_no_headline() -> None:
    assert list(headline(stored_of(share_rows(["naive"])))) == []
