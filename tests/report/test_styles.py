"""Promises of how methods look, in every figure alike."""

import pytest

from ddobench.registry import entries
from ddobench.report.figures.labels import spread
from ddobench.report.tables.looks import look_of_method
from ddobench.report.tables.styles import Style, assign_styles
from tests.support.synthetic_runs import evidence_of, sweep


def test_a_method_looks_the_same_in_every_report() -> None:
    alone = assign_styles(evidence_of(sweep(methods=["fgm"])).runs)
    among = assign_styles(evidence_of(sweep(methods=["a", "b", "fgm", "naive"])).runs)
    assert alone["quadratic", "fgm", ""] == among["quadratic", "fgm", ""]
    assert alone["quadratic", "fgm", ""].color == "#0072b2"


def test_no_two_methods_of_ours_have_the_same_marker_and_line() -> None:
    looks = [look_of_method(entry.name) for entry in entries("method")]
    assert len({(look.marker, look.dashes) for look in looks}) == len(looks)
    assert len({look.color for look in looks}) == len(looks)


def test_a_method_that_is_not_ours_has_a_look_by_its_name_alone() -> None:
    rows = sweep(methods=["a", "b", "c"], seeds=1, color="no colour")
    among = assign_styles(evidence_of(rows + sweep(seeds=1)).runs)
    alone = assign_styles(evidence_of(rows[:1]).runs)
    assert len({style.color for style in among.values()}) == 5
    assert alone["quadratic", "a", ""] == among["quadratic", "a", ""]
    assert among["quadratic", "a", ""].label == "a"


def test_a_stored_colour_stands_in_for_a_card_that_is_not_at_hand() -> None:
    styles = assign_styles(evidence_of(sweep(methods=["mine"], seeds=1, color="#123456")).runs)
    assert styles["quadratic", "mine", ""].color == "#123456"


def variants_of_fgm(*variants: str) -> dict[str, Style]:
    rows = [row for variant in variants
            for row in sweep(methods=["fgm"], seeds=1, method_variant=variant)]  # fmt: skip
    styles = assign_styles(evidence_of(rows).runs)
    return {variant: styles["quadratic", "fgm", variant] for variant in variants}


def test_a_variant_differs_from_its_method_in_marker_and_line_and_looks_so_everywhere() -> None:
    styles = variants_of_fgm("", "ridge=1.0", *(f"ridge={i}" for i in range(2, 9)))
    plain, ridge = styles[""], styles["ridge=1.0"]
    assert plain.marker != ridge.marker
    assert plain.dashes != ridge.dashes
    assert ridge.label == "FGM†, ridge=1.0"
    assert ridge == variants_of_fgm("ridge=1.0")["ridge=1.0"]


def test_no_two_variants_look_the_same() -> None:
    styles = variants_of_fgm("", *(f"ridge={i}" for i in range(60))).values()
    assert len({(style.color, style.marker, style.dashes) for style in styles}) == 61


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
