"""Promises of the remarks on methods: declared by settings, shown wherever a method is ranked."""

from pathlib import Path
from typing import Any

import pandas as pd
import yaml

from ddobench.report.data.report_data import ReportData
from ddobench.report.output.writer import write_report
from ddobench.report.tables.remarks import find_remarks
from ddobench.report.tables.standings import explain_standings
from ddobench.report.tables.styles import explain_signs
from tests.support.pages import open_page
from tests.support.synthetic_runs import Row, run_row
from tests.support.synthetic_stores import Details, stored_with

ROOT = Path(__file__).parent.parent.parent
DECLARED: list[dict[str, Any]] = [
    {"where": {"surrogate": "units", "surrogate.form": "gaussian"}, "text": "knows the form"},
    {"where": {"candidates.a.surrogate.form": "gaussian"}, "text": "may know the form"},
]
GAUSSIAN = {"method": {"surrogate": {"form": "gaussian"}}}


def fitted(method: str, seed: int = 0, **changes: Any) -> Row:
    """Return a run with a surrogate."""
    row = run_row(method, 10, seed, label=method.capitalize(), privileges="", surrogate="units")
    return row | {"digest": f"{method}-{changes.get('method_variant', '')}"} | changes


def ranked(folder: Path) -> ReportData:
    """Return runs of three methods, one of them in two variants."""
    runs: list[tuple[Row, Details]] = [
        (fitted(method, seed), {}) for method in ("mine", "other", "auto") for seed in (0, 1)
    ]
    runs += [(fitted("mine", seed, method_variant="surrogate.form=network"), {}) for seed in (0, 1)]
    configs: dict[str, Details] = {
        "mine-": GAUSSIAN,
        "mine-surrogate.form=network": {"method": {"surrogate": {"form": "network"}}},
        "auto-": {"method": {"candidates": {"a": {"surrogate": {"form": "gaussian"}}}}},
        "other-": {"method": {"surrogate": {"width": 3}}},
    }
    stored_with(folder, runs, configs)
    return ReportData.read(folder, remarks=DECLARED)


def test_a_remark_follows_the_settings_it_is_about_into_any_method(tmp_path: Path) -> None:
    stored = ranked(tmp_path)
    assert find_remarks(stored.runs, stored.configs, DECLARED) == {
        "mine-": ("knows the form",),
        "auto-": ("may know the form",),
    }
    labels = {style.label for style in stored.styles.values()}
    assert labels == {"Mine¶", "Other", "Auto¶", "Mine, surrogate.form=network"}
    assert explain_signs(stored.styles.values()) == [
        "¶ Auto: may know the form",
        "¶ Mine: knows the form",
    ]


def test_a_part_is_known_by_its_option_and_not_by_a_parameter_of_the_same_name(
    tmp_path: Path,
) -> None:
    stored = stored_with(tmp_path, [(fitted("mine", surrogate="bumps"), {})], {"mine-": GAUSSIAN})
    assert find_remarks(stored.runs, stored.configs, DECLARED) == {}


def test_runs_without_a_configuration_have_no_remarks(tmp_path: Path) -> None:
    stored = stored_with(tmp_path, [(fitted("mine"), {})])
    assert find_remarks(stored.runs, {}, DECLARED) == {}


def test_standings_carry_the_sign_and_the_words(tmp_path: Path) -> None:
    table = ranked(tmp_path).standings
    labels = dict(zip(table["method"], table["label"], strict=True))
    assert labels == {"mine": "Mine¶", "other": "Other", "auto": "Auto¶"}
    assert "¶ Mine: knows the form." in explain_standings(table)


def test_the_page_and_the_tables_say_it_where_methods_are_ranked(tmp_path: Path) -> None:
    ranked(tmp_path / "runs")
    write_report(tmp_path / "runs", tmp_path / "report", method_remarks=DECLARED)
    text = open_page(tmp_path / "report" / "index.html").text
    assert "Mine¶" in text[text.index("Leaderboard") :]
    assert text.count("¶ Mine: knows the form.") >= 2  # below the answers and in the standings
    for name in ("scores.md", "standings.md"):
        assert "¶ Mine: knows the form" in (tmp_path / "report" / "tables" / name).read_text()
    assert "\\P{}" in (tmp_path / "report" / "tables" / "standings-1.tex").read_text()


def test_the_package_remarks_on_units_of_its_tasks_own_form_and_on_who_may_choose_them() -> None:
    declared = yaml.safe_load((ROOT / "conf" / "report.yaml").read_text())["method_remarks"]
    units = {"surrogate": {"form": "gaussian"}}
    auto = {"candidates": {"units": {"surrogate": {"form": "gaussian"}}}}
    bumps = {"bump": "gaussian"}
    configs: dict[str, Details] = {
        "units-": {"method": units, "task": bumps},
        "auto-": {"method": auto, "task": bumps},
        "plain-": {"method": {"surrogate": {"form": "network"}}, "task": bumps},
        "apart-": {"method": units, "task": {"bump": "laplace"}},
        "bits-": {"method": auto, "task": {"q": 2}},
    }
    runs = pd.DataFrame([fitted(name.removesuffix("-")) for name in configs])
    found = find_remarks(runs, configs, declared)
    assert set(found) == {"units-", "auto-"}
    assert "no fair competitor" in found["units-"][0]
