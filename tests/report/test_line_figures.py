"""Promises of the line figures: the numbers in their frames."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from ddobench.report.data import ReportData
from ddobench.report.figures import line_figures
from ddobench.report.figures.series import MOST_SERIES
from ddobench.stats.samples import mean_interval, t_interval
from tests.support.drawn import only
from tests.support.synthetic_runs import STEPS, Row, climb, curve_of, data_of, data_with, sweep
from tests.support.synthetic_sweeps import configured, run_with, sizes, sweep_setting

ESTIMATE = ["mean", "low", "high"]


def climbing(rows: list[Row], **curve: Callable[[pd.DataFrame], Any]) -> ReportData:
    """Return runs with a curve each, of which some columns may be other ones."""
    return data_with(rows, [curve_of(row, 0 if row["method"] == "naive" else STEPS).assign(**curve)
                            for row in rows])  # fmt: skip


def study(methods: tuple[str, ...] = ("fgm", "ga", "naive"), d: tuple[int, ...] = (11, 21),
          seeds: int = 3, **curve: Callable[[pd.DataFrame], Any]) -> ReportData:  # fmt: skip
    """Return methods that climb, and one that proposes once."""
    return climbing([climb(m, size, s) for m in methods for size in d for s in range(seeds)],
                    **curve)  # fmt: skip


def curves_of(data: ReportData, kind: str) -> pd.DataFrame:
    """Return the frame of the only figure of a kind along the iterations."""
    (figure,) = [one for one in line_figures.scores_by_iteration(data) if one.kind == kind]
    return figure.data


def test_regret_is_that_of_the_score_table() -> None:
    stored = data_of(sweep())
    points = only(line_figures.regret, stored).data.set_index(["method", "d"])[ESTIMATE]
    expected = stored.scores.set_index(["method", "d"])[[f"regret_{x}" for x in ESTIMATE]]
    np.testing.assert_array_equal(points.sort_index(), expected.sort_index())


def test_without_a_run_that_returns_it_the_best_visible_design_is_a_landmark() -> None:
    points = only(line_figures.regret, data_of(sweep(["fgm"], y_sd=2.0))).data
    assert points["best_visible"].tolist() == [4.0] * 3  # (optimum 4 - best 2) sd of 2 raw units


def test_the_best_visible_design_is_drawn_once_in_every_task() -> None:
    rows = [climb(m, d, task=task) for task, m in (("a", "ga"), ("a", "naive"), ("b", "ga"))
            for d in (11, 21)]  # fmt: skip
    points = only(line_figures.headline, data_of(rows)).data
    assert points.loc[points["task"] == "a", "best_visible"].isna().all()
    assert points.loc[points["task"] == "b", "best_visible"].tolist() == [0.4, 0.4]


def test_regret_against_rows_has_a_series_for_each_variant_and_needs_three_numbers() -> None:
    rows = [row | {"method_variant": variant, "digest": f"{n}{variant}", "regret_final": regret}
            for variant in ("", "ridge=1.0")
            for n, regret in ((150, 2.0), (200, 40.0 if not variant else 1.0), (250, 0.0))
            for row in sweep(["fgm"], [100], seeds=2, n=n)]  # fmt: skip
    points = only(line_figures.regret, data_of(rows)).data
    assert points["x"].tolist() == points["n"].tolist()
    assert points.groupby("method_variant")["mean"].apply(list).to_dict() == {
        "": [2.0, 40.0, 0.0], "ridge=1.0": [2.0, 1.0, 0.0],
    }  # fmt: skip
    assert list(line_figures.regret(data_of(rows[:4]))) == []


def test_of_too_many_variants_only_the_defaults_are_drawn() -> None:
    variants = ["", *(f"ridge={i}" for i in range(MOST_SERIES))]
    rows = [climb("fgm", d, method_variant=v) for d in (11, 21) for v in variants]
    rows += [climb("ga", d, method_variant="steps=200") for d in (11, 21)]
    for function in (line_figures.regret, line_figures.share_by_dimension):
        figure = only(function, climbing(rows))
        drawn = set(zip(figure.data["method"], figure.data["method_variant"], strict=True))
        assert drawn == {("fgm", ""), ("ga", "steps=200")}
        assert f"{MOST_SERIES} variants" in figure.caption


def test_the_share_is_averaged_for_the_methods_and_the_oracles_ranking() -> None:
    rows = [climb(m, d, s, final_model=float(s), best_oracle=s + 1.0, optimum=10.0 * (s + 1))
            for m in ("fgm", "ga") for d in (11, 21) for s in range(3)]  # fmt: skip
    points = only(line_figures.share_by_dimension, climbing(rows)).data
    final, best = (points[points["panel"] == panel].iloc[0] for panel in ("final", "best"))
    interval = mean_interval([0.0, 1 / 20, 2 / 30])
    expected = [np.mean([0.0, 1 / 20, 2 / 30]), interval.low, interval.high]
    assert final[ESTIMATE].tolist() == pytest.approx(expected)
    assert best["mean"] == pytest.approx(0.1)
    assert final["best_visible"] == pytest.approx(np.mean([4 / 10, 4 / 20, 4 / 30]))


def test_a_share_needs_two_dimensions_and_a_known_optimum() -> None:
    assert list(line_figures.share_by_dimension(study(d=(11,)))) == []
    unknown = climbing([climb(d=d, optimum=np.nan) for d in (11, 21)])
    assert list(line_figures.share_by_dimension(unknown)) == []
    assert curves_of(unknown, "value")["mean"].notna().all()


def test_rows_are_per_squared_dimension_in_a_panel_per_method() -> None:
    points = only(line_figures.share_by_rows, sizes((11, 21), (500, 1000, 5000))).data
    assert set(points["panel"]) == {"mine ", "other "}  # without the best visible design
    own = points[(points["method"] == "mine") & (points["d"] == 11)]
    assert own["x"].tolist() == pytest.approx([500 / 121, 1000 / 121, 5000 / 121])
    assert own["mean"].iloc[-1] == pytest.approx((9.0 * np.tanh(5000 / 121 / 4) + 0.05) / 10)
    assert set(points["series"]) == {"d = 11", "d = 21"}
    assert list(line_figures.share_by_rows(sizes((11, 21), (500,)))) == []


@pytest.mark.parametrize("column", ["d", "method"])
def test_a_dimension_or_a_method_with_one_number_of_rows_is_left_out(column: str) -> None:
    stored = sizes((11, 21), (500, 1000, 5000), methods=["mine", "other"])
    kept = {"d": 11, "method": "mine"}[column]
    runs = stored.runs[(stored.runs[column] == kept) | (stored.runs["n"] == 500)]
    assert set(only(line_figures.share_by_rows, replace(stored, runs=runs)).data[column]) == {kept}


def test_a_value_is_the_mean_of_all_seeds_with_students_interval_and_its_landmarks() -> None:
    points = curves_of(study(("fgm", "ga")), "value")
    own = points[(points["method"] == "fgm") & (points["d"] == 11)]
    assert own["mean"].tolist() == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    interval = t_interval([0.0, 1.0, 2.0])
    assert own[["low", "high"]].iloc[0].tolist() == pytest.approx([interval.low, interval.high])
    assert set(zip(points["best_visible"], points["optimum"], strict=True)) == {(4.0, 10.0)}


def test_methods_are_drawn_on_common_seeds() -> None:
    seeds = {"auto": 5, "units": 10}
    rows = [climb(method, seed=seed) for method, count in seeds.items() for seed in range(count)]
    points = curves_of(climbing(rows), "value")
    assert points.groupby("method")["seeds"].first().to_dict() == {"auto": 5, "units": 5}
    first = points[points["x"] == 0].set_index("method")["mean"]
    assert first.to_dict() == {"auto": 2.0, "units": 2.0}  # the mean of seeds 0 to 4


def test_a_line_ends_where_a_seed_lacks_valid_designs() -> None:
    rows = [climb(seed=s) for s in range(3)]
    curves = [curve_of(row, stops=stop) for row, stop in zip(rows, (3, 5, None), strict=True)]
    assert curves_of(data_with(rows, curves), "survivors")["mean"].tolist() == pytest.approx(
        [2.0, 3.0, 4.0, np.nan, np.nan, np.nan], nan_ok=True
    )


def test_a_method_that_proposes_once_is_a_level_line_and_needs_company() -> None:
    points = curves_of(study(), "value")
    level = points[(points["method"] == "naive") & (points["d"] == 11)]
    assert level[["x", "mean"]].to_numpy().tolist() == [[0.0, 1.0], [STEPS, 1.0]]
    assert list(line_figures.scores_by_iteration(study(("naive",)))) == []


def test_where_nothing_is_invalid_only_the_value_is_drawn() -> None:
    clean = study(invalid=lambda _: 0.0, survivors=lambda curve: curve["value_model"])
    assert [one.kind for one in line_figures.scores_by_iteration(clean)] == ["value"]


def test_a_mean_that_lacks_seeds_is_marked() -> None:
    rows = [climb(m, seed=s) for m in ("fgm", "ga", "rwr") for s in range(3)]
    rows[0] |= {"status": "failed"}
    del rows[5]  # the last seed of ga
    lacking = curves_of(climbing(rows), "value").groupby("method")["lacking"].first()
    assert lacking.to_dict() == {"fgm": True, "ga": True, "rwr": False}


def test_predictions_and_true_values_are_drawn_at_the_largest_size() -> None:
    stored = study(predicted=lambda curve: curve["value_model"] + 4 * curve["iteration"])
    points = only(line_figures.prediction_and_truth, stored).data
    own = points[points["method"] == "ga"].groupby("series")["mean"].apply(list)
    assert own["true"] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]
    assert own["predicted"] == [1.0, 6.0, 11.0, 16.0, 21.0, 26.0]
    assert set(points["d"]) == {21}


def test_a_method_without_predictions_has_no_panel() -> None:
    rows = [climb(m) for m in ("fgm", "ga")]
    curves = [curve_of(rows[0]).assign(predicted=1.0), curve_of(rows[1])]
    points = only(line_figures.prediction_and_truth, data_with(rows, curves)).data
    assert set(points["method"]) == {"fgm"}
    assert list(line_figures.prediction_and_truth(study())) == []


def test_seconds_are_means_of_both_stages_and_need_to_be_recorded() -> None:
    rows = [climb("ga", d, s, seconds_fit=10.0 * (1 + s), seconds_propose=0.0)
            for d in (11, 21) for s in range(3)]  # fmt: skip
    figure = only(line_figures.costs, climbing(rows))
    means = figure.data.groupby("panel")["mean"].apply(list)
    assert means["seconds_fit"] == [20.0, 20.0]
    assert 0 < max(means["seconds_propose"]) < 1e-3  # on a logarithmic axis
    assert figure.render("svg")
    assert list(line_figures.costs(study())) == []


def test_a_profile_is_the_share_of_runs_that_reach_a_share_of_the_optimum() -> None:
    reached = {"ga": [2.0, 5.0], "naive": [1.0, 1.0]}
    rows = [climb(method, d, seed, final_model=reached[method][seed % 2])
            for method in reached for d in (11, 21) for seed in range(10)]  # fmt: skip
    points = only(line_figures.profiles, data_of(rows)).data
    own = points[points["method"] == "ga"]
    profile = dict(zip(own["x"].round(2), own["mean"], strict=True))
    assert [profile[x] for x in (0.0, 0.2, 0.21, 0.5, 0.51)] == [1.0, 1.0, 0.5, 0.5, 0.0]
    assert list(line_figures.profiles(data_of(rows[:19]))) == []  # one method


@pytest.mark.parametrize(("setting", "usual", "other"), [("noise", 0.0, 1.0), ("bump", "a", "b")])
def test_scores_are_drawn_at_each_level_of_a_setting(setting: str, usual: Any, other: Any) -> None:
    stored = sweep_setting(setting, [usual, other], loss=(0.0, 2.0))
    points = only(line_figures.score_by_setting, stored).data
    own = points[(points["method"] == "mine") & (points["panel"] == "share")]
    assert own["x"].tolist() == [0, 1]
    assert own["mean"].tolist() == pytest.approx([0.91, 0.71])
    assert list(line_figures.score_by_setting(sweep_setting(setting, [usual]))) == []


def test_many_words_are_not_drawn_as_levels() -> None:
    words = [f"factor {place:02}" for place in range(13)]
    assert list(line_figures.score_by_setting(sweep_setting("factor", words))) == []
    assert list(line_figures.score_by_setting(sweep_setting("factor", words[:12])))


def test_a_setting_of_a_method_has_panels_for_the_methods_and_the_oracles_ranking() -> None:
    levels = {0.05: "", 0.001: "graph.alpha=0.001", 0.5: "graph.alpha=0.5"}
    found = []
    for alpha, variant in levels.items():
        row, _ = run_with("noise", 0.0, 0.0, method_variant=variant, final_model=10 * (1 - alpha))
        found.append((row, {"task": {}, "method": {"graph": {"alpha": alpha}}}))
    points = only(line_figures.score_by_setting, configured(found)).data
    share = points[points["panel"] == "share"].sort_values("x")
    assert share["level"].tolist() == ["0.001", "0.05", "0.5"]
    assert share["mean"].tolist() == pytest.approx([0.999, 0.95, 0.5])
    assert set(points["panel"]) == {"share", "best"}
    assert points["best_visible"].tolist() == pytest.approx([0.4] * 6)


def ascent(rate: float, **changes: Any) -> dict[str, Any]:
    """Return the configuration of a gradient ascent."""
    search = {"_target_": "a.Ascent", "optimiser": "gradient", "prior": 0, "rate": rate}
    return {"method": {"search": search | changes}}


def test_the_length_of_a_path_is_its_rate_times_its_steps() -> None:
    rows = [climb(m, seed=s) for m in ("ga", "fgm", "rwr") for s in range(2)]
    configs = {"ga-11-": ascent(0.05), "fgm-11-": ascent(0.005),
               "rwr-11-": ascent(0.05, optimiser="adam")}  # fmt: skip
    stored = replace(climbing(rows), configs=configs)
    points = only(line_figures.value_by_path, stored).data
    assert points.groupby("method")["x"].max().to_dict() == pytest.approx(
        {"ga": 0.05 * STEPS, "fgm": 0.005 * STEPS}
    )
    assert points.loc[points["method"] == "ga", "mean"].tolist() == [1.5, 2.5, 3.5, 4.5, 5.5]
    alike = dict.fromkeys(configs, ascent(0.05))
    assert list(line_figures.value_by_path(replace(stored, configs=alike))) == []


def test_landmarks_of_a_task_count_every_seed_once() -> None:
    rows = [row | {"best_visible": float(row["seed"]), "optimum": 10.0 + row["d"]}
            for row in sweep(["fgm", "mine"], [10, 20], seeds=4)]  # fmt: skip
    del rows[1]  # fgm lacks a seed that the other has
    points = only(line_figures.landmarks, data_of(rows)).data
    assert points["seeds"].tolist() == [4] * 4
    assert points["mean"].tolist() == [20.0, 30.0, 1.5, 1.5]
    assert list(line_figures.landmarks(data_of(sweep(dimensions=[10])))) == []


def headline_of(*parts: list[Row]) -> pd.DataFrame:
    """Return the frame of the headline figure of some runs."""
    return only(line_figures.headline, data_of([row for part in parts for row in part])).data


def ranked(methods: list[str], **changes: Any) -> list[Row]:
    """Return runs at two sizes, of each method a little better than of the one before."""
    return [climb(method, d, s, final_model=1.0 + i, **changes)
            for i, method in enumerate(methods) for d in (11, 21) for s in range(3)]  # fmt: skip


def test_the_headline_has_the_best_and_common_methods_and_no_privileged_ones() -> None:
    others = [f"m{i}" for i in range(MOST_SERIES + 1)]
    knowing = ranked(["knowing"], privileges="graph")
    drawn = set(headline_of(ranked(["naive", "ga", *others]), knowing)["method"])
    assert len(drawn) == MOST_SERIES + 1
    assert {"naive", "ga", *others[-4:]} < drawn
    assert "knowing" not in drawn


def test_the_headline_needs_methods_with_several_sizes() -> None:
    whole = [climb(f"m{i}", d, final_model=1.0) for i in range(9) for d in (11, 21, 31)]
    points = headline_of(ranked(["naive"]), whole, [climb("once", 31, final_model=9.0)])
    assert "once" not in set(points["method"])
    assert list(line_figures.headline(data_of(ranked(["naive"])))) == []
