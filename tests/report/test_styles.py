"""Promises of how methods look, in every figure alike."""

import pytest

from ddobench.report.figures.labels import spread
from ddobench.report.tables.styles import assign_styles
from tests.support.synthetic_runs import evidence_of, sweep


def test_a_method_looks_the_same_in_every_report() -> None:
    alone = assign_styles(evidence_of(sweep(methods=["fgm"])).runs)
    among = assign_styles(evidence_of(sweep(methods=["a", "b", "fgm", "naive"])).runs)
    assert alone["quadratic", "fgm", ""] == among["quadratic", "fgm", ""]
    assert alone["quadratic", "fgm", ""].color == "#0072b2"


def test_methods_without_a_usable_colour_get_distinct_ones() -> None:
    rows = sweep(methods=["a", "b", "c"], seeds=1, color="no colour") + sweep(seeds=1)
    styles = assign_styles(evidence_of(rows).runs)
    assert len({style.color for style in styles.values()}) == 5
    assert len({style.marker for style in styles.values()}) == 5
    assert styles["quadratic", "a", ""].label == "a"


def test_variants_of_a_method_share_its_colour_and_differ_in_marker() -> None:
    rows = sweep(methods=["fgm"], seeds=1) + sweep(
        methods=["fgm"], seeds=1, method_variant="ridge=1.0"
    )
    styles = assign_styles(evidence_of(rows).runs)
    plain, ridge = styles["quadratic", "fgm", ""], styles["quadratic", "fgm", "ridge=1.0"]
    assert plain.color == ridge.color
    assert plain.marker != ridge.marker
    assert ridge.label == "FGM†, ridge=1.0"


def test_a_privilege_is_marked_only_on_the_task_where_it_was_used() -> None:
    told = sweep(methods=["fgm"], seeds=1)
    untold = [{**row, "task": "chain", "privileges": ""} for row in told]
    styles = assign_styles(evidence_of(told + untold).runs)
    assert styles["quadratic", "fgm", ""].label == "FGM†"
    assert styles["chain", "fgm", ""].label == "FGM"


def test_two_methods_with_one_label_are_told_apart_by_name() -> None:
    styles = assign_styles(evidence_of(sweep(seeds=1, label="Best")).runs)
    assert {style.label for style in styles.values()} == {"Best (fgm)†", "Best (naive)"}


def test_crowded_labels_are_moved_apart_and_lonely_ones_stay() -> None:
    heights = [0.1, 0.1, 0.1, 0.1]
    places = spread([0.0, 0.01, 0.02, 0.9], heights)
    assert places == pytest.approx([-0.09, 0.01, 0.11, 0.9])
