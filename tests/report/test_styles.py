"""Promises of the labels and looks of methods, and of the remarks on them."""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ddobench.registry import entries
from ddobench.report.data import ReportData
from ddobench.report.figures.draw import split_shared
from ddobench.report.tables.styles import (
    Style,
    assign_styles,
    explain_signs,
    find_remarks,
    look_of_method,
)
from ddobench.report.verdicts import Judgement
from ddobench.report.writer import make_tables
from tests.support.synthetic_runs import Row, data_of, run_row, sweep

ROOT = Path(__file__).parent.parent.parent
DECLARED: list[dict[str, Any]] = [
    {"where": {"surrogate": "units", "surrogate.form": "gaussian"}, "text": "knows the form"},
    {"where": {"candidates.a.surrogate.form": "gaussian"}, "text": "may know the form"},
]


def test_a_method_looks_the_same_in_every_report() -> None:
    alone = assign_styles(data_of(sweep(methods=["fgm"])).runs)
    among = assign_styles(data_of(sweep(methods=["a", "b", "fgm", "naive"])).runs)
    assert alone["quadratic", "fgm", ""] == among["quadratic", "fgm", ""]
    assert alone["quadratic", "fgm", ""].color == "#0072b2"


def test_no_two_packaged_methods_have_the_same_marker_and_line() -> None:
    looks = [look_of_method(entry.name) for entry in entries("method")]
    assert len({(look.marker, look.dashes) for look in looks}) == len(looks)
    assert len({look.color for look in looks}) == len(looks)


def test_an_unknown_method_has_its_stored_colour_or_a_look_derived_from_its_name() -> None:
    rows = sweep(methods=["a", "b", "c"], seeds=1, color="no colour")
    among = assign_styles(data_of(rows + sweep(seeds=1)).runs)
    alone = assign_styles(data_of(rows[:1]).runs)
    assert len({style.color for style in among.values()}) == 5
    assert alone["quadratic", "a", ""] == among["quadratic", "a", ""]
    assert among["quadratic", "a", ""].label == "a"
    stored = assign_styles(data_of(sweep(methods=["mine"], seeds=1, color="#123456")).runs)
    assert stored["quadratic", "mine", ""].color == "#123456"


def variants_of_fgm(*variants: str) -> dict[str, Style]:
    """Return the look of each variant among the others."""
    rows = [row for variant in variants
            for row in sweep(methods=["fgm"], seeds=1, method_variant=variant)]  # fmt: skip
    styles = assign_styles(data_of(rows).runs)
    return {variant: styles["quadratic", "fgm", variant] for variant in variants}


def test_a_variant_differs_from_its_method_in_marker_and_line_in_every_report() -> None:
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
    rows = sweep(methods=["fgm"], seeds=1)
    rows += [{**row, "task": "chain", "privileges": ""} for row in rows]
    styles = assign_styles(data_of(rows).runs)
    assert styles["quadratic", "fgm", ""].label == "FGM†"
    assert styles["chain", "fgm", ""].label == "FGM"


def test_methods_with_the_same_label_show_their_names() -> None:
    styles = assign_styles(data_of(sweep(seeds=1, label="Best")).runs)
    assert {style.label for style in styles.values()} == {"Best (fgm)†", "Best (naive)"}


def fitted(method: str, seed: int = 0, **changes: Any) -> Row:
    """Return a run with a surrogate."""
    row = run_row(method, 10, seed, label=method.capitalize(), privileges="", surrogate="units")
    return row | {"digest": f"{method}-{changes.get('method_variant', '')}"} | changes


CONFIGS: dict[str, dict[str, Any]] = {
    "mine-": {"method": {"surrogate": {"form": "gaussian"}}},
    "mine-surrogate.form=network": {"method": {"surrogate": {"form": "network"}}},
    "auto-": {"method": {"candidates": {"a": {"surrogate": {"form": "gaussian"}}}}},
    "other-": {"method": {"surrogate": {"width": 3}}},
}


def ranked() -> ReportData:
    """Return runs of three methods, one of them in two variants, with remarks."""
    rows = [fitted(method, seed) for method in ("mine", "other", "auto") for seed in (0, 1)]
    rows += [fitted("mine", seed, method_variant="surrogate.form=network") for seed in (0, 1)]
    frame = pd.DataFrame(rows)
    return ReportData.of(frame, remarks=find_remarks(frame, CONFIGS, DECLARED))


def test_a_remark_applies_to_every_method_with_its_settings() -> None:
    stored = ranked()
    assert find_remarks(stored.runs, CONFIGS, DECLARED) == {
        "mine-": ("knows the form",),
        "auto-": ("may know the form",),
    }
    labels = {style.label for style in stored.styles.values()}
    assert labels == {"Mine¶", "Other", "Auto¶", "Mine, surrogate.form=network"}
    assert explain_signs(stored.styles.values()) == [
        "¶ Auto: may know the form",
        "¶ Mine: knows the form",
    ]
    by_files = find_remarks(
        stored.runs, {}, DECLARED
    )  # as published scores, by conf/surrogate/units.yaml
    assert set(by_files) == {"mine-", "other-", "auto-"}
    other = stored.runs.assign(surrogate="bumps")  # a part is known by its option
    assert set(find_remarks(other, CONFIGS, DECLARED)) == {"auto-"}


def test_ranked_tables_show_the_sign_and_the_text_of_remarks() -> None:
    data = ranked()
    tables = make_tables(data, Judgement())
    assert {"Mine¶", "Auto¶"} <= set(data.board["label"])
    labels = dict(zip(data.standings["method"], data.standings["label"], strict=True))
    assert labels == {"mine": "Mine¶", "other": "Other", "auto": "Auto¶"}
    for name in ("scores", "standings"):
        assert "¶ Mine: knows the form" in tables[name].files()[f"{name}.md"]
    assert "\\P{}" in tables["standings"].files()["standings-1.tex"]


def test_the_package_marks_units_that_have_the_form_of_the_task() -> None:
    declared = yaml.safe_load((ROOT / "conf" / "report.yaml").read_text())["method_remarks"]
    units = {"surrogate": {"form": "gaussian"}}
    auto = {"candidates": {"units": {"surrogate": {"form": "gaussian"}}}}
    bumps = {"bump": "gaussian"}
    configs: dict[str, dict[str, Any]] = {
        "units-": {"method": units, "task": bumps},
        "auto-": {"method": auto, "task": bumps},
        "plain-": {"method": {"surrogate": {"form": "network"}}, "task": bumps},
        "apart-": {"method": units, "task": {"bump": "laplace"}},
        "bits-": {"method": auto, "task": {"q": 2}},
    }
    runs = pd.DataFrame([fitted(name.removesuffix("-")) for name in configs])
    found = find_remarks(runs, configs, declared)
    assert set(found) == {"units-", "auto-"}
    assert "not a fair competitor" in found["units-"][0]


def test_settings_that_all_variants_share_are_named_once() -> None:
    labels = ["FGM, graph=empty training=adam", "FGM, graph=online training=adam", "Random"]
    assert split_shared(labels) == (["FGM, graph=empty", "FGM, graph=online", "Random"],
                                     "training=adam")  # fmt: skip
    assert split_shared(labels[1:]) == (labels[1:], ""), "one variant is named whole"
