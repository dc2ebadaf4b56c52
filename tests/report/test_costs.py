"""Promises of the figure and the table of costs."""

from dataclasses import replace

import numpy as np
import pytest

from ddobench.report.data.report_data import ReportData
from ddobench.report.figures.costs import seconds_by_method
from ddobench.report.tables.costs import cpu_markdown, cpu_table
from ddobench.report.tables.formats import DASH
from tests.support.drawn import only, overflow
from tests.support.synthetic_runs import climb, curve_of, data_with, evidence_of, run_row


def timed(dimensions: tuple[int, ...] = (11, 21)) -> ReportData:
    """Return runs whose fits take longer with each seed and tenfold with each method."""
    rows = [
        climb(method, d, seed, seconds_fit=10.0**place * (1 + seed), seconds_propose=0.1,
              path=f"{method}-{d}-{seed}")
        for place, method in enumerate(("fgm", "ga", "a-method-with-a-name-of-great-length" * 2))
        for d in dimensions
        for seed in range(3)
    ]  # fmt: skip
    return data_with(rows, [curve_of(row) for row in rows])


def test_medians_and_ranges_are_drawn_for_every_method_and_dimension() -> None:
    figure = only(seconds_by_method, timed())
    own = figure.data[(figure.data["method"] == "ga") & (figure.data["d"] == 21)]
    ranges = own[["fit_least", "fit_median", "fit_most", "propose_median"]]
    assert ranges.to_numpy().tolist() == [pytest.approx([10, 20, 30, 0.1])]
    fit, propose = figure.drawing.axes
    marks = {float(np.asarray(line.get_xdata())[0]) for line in fit.get_lines()}
    assert marks == {2.0, 20.0, 200.0}
    assert fit.get_xscale() == "log"
    assert "seconds" in fit.get_xlabel()
    assert "seconds" in propose.get_xlabel()
    assert [text.get_text() for text in fit.get_yticklabels()] == ["$d$ = 11", "$d$ = 21"] * 3
    heads = [text.get_text() for text in fit.texts]
    assert heads[1:] == ["FGM", "ga"]
    assert "\n" in heads[0]  # wrapped, and with room for its lines
    assert overflow(figure) <= 0


def test_the_caption_says_what_the_seconds_are_and_where_they_were_taken() -> None:
    stored = timed()
    machine = {"cpu": "Abacus 3000", "threads": 2, "batch": 5}
    known = dict.fromkeys(stored.runs["path"], machine)
    caption = only(seconds_by_method, replace(stored, provenance=known)).caption
    assert "Timed on Abacus 3000. Threads of PyTorch: 2. Seeds in a batch: 5." in caption
    assert "Machines differ" in caption
    assert "from memory" not in caption
    trained = {"method": {"latent": {"training": {"steps": 9}}}}
    kept = replace(stored, configs=dict.fromkeys(stored.runs["digest"], trained))
    assert "from memory" in only(seconds_by_method, kept).caption
    assert "Timed on" not in only(seconds_by_method, timed()).caption


def test_seconds_that_no_clock_can_tell_from_nothing_are_still_on_the_page() -> None:
    row = climb(seconds_fit=0.0, seconds_propose=0.0)
    figure = only(seconds_by_method, data_with([row], [curve_of(row)]))
    assert figure.data["fit_median"].tolist() == [0.0]
    assert figure.drawing.axes[0].get_xlim()[0] > 0
    assert overflow(figure) <= 0


def test_runs_that_were_not_timed_or_take_no_steps_have_no_costs() -> None:
    untimed = climb()
    assert list(seconds_by_method(data_with([untimed], [curve_of(untimed)]))) == []
    still = run_row(seconds_fit=1.0, seconds_propose=1.0)
    assert list(seconds_by_method(data_with([still], [curve_of(still, 0)]))) == []


def test_cpu_seconds_are_tabled_by_method_and_size_the_cheapest_first() -> None:
    rows = [
        climb(method, d, seed, seconds_cpu=seconds + seed, label=method.upper())
        for method, seconds in (("dear", 30.0), ("cheap", 0.01))
        for d in (11, 21)
        for seed in (0, 1)
        if (method, d) != ("cheap", 21)
    ]
    rows += [climb("untimed", label="UNTIMED")]
    stored = evidence_of(rows)
    table = cpu_table(stored.runs, stored.styles)
    assert table[["method", "d", "mean", "most"]].to_numpy().tolist() == [
        ["cheap", 11, 0.51, 1.01],
        ["dear", 11, 30.5, 31.0],
        ["dear", 21, 30.5, 31.0],
    ]
    lines = [line for line in cpu_markdown(table).splitlines() if line.startswith("|")]
    assert lines[0] == "| method | d = 11, n = 100 | d = 21, n = 100 |"
    assert lines[2:] == [f"| CHEAP | 0.5 | {DASH} |", "| DEAR | 30 | 30 |"]
    assert "UNTIMED" not in cpu_markdown(table)


def test_seconds_too_few_to_be_repeated_are_not_spelled_out() -> None:
    stored = evidence_of([climb(seconds_cpu=0.0123)])
    assert "| &lt; 0.1 |" in cpu_markdown(cpu_table(stored.runs, stored.styles))
