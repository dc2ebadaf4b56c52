"""The line figures: means with intervals over dimension, rows, iterations, settings and shares."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pandas as pd
from matplotlib.colors import to_hex

from ddobench import scores
from ddobench.report.data import ReportData
from ddobench.report.figures.draw import FAINT, INK, MOST_BANDS, Axis, LinePlot
from ddobench.report.figures.figure import Figure
from ddobench.report.figures.series import (
    MOST_SERIES,
    average,
    average_curves,
    describe_lines,
    describe_sample,
    drop_variants,
    lead_styles,
    mark_lacking,
    name_series,
    rank_series,
)
from ddobench.report.tables.formatting import file_stem, name_runs, row_stem
from ddobench.report.tables.select import (
    BY_D,
    BY_N,
    BY_SIZE,
    BY_TASK,
    SERIES,
    common_seeds,
    is_best_visible,
    scored_runs,
    share_of_optimum,
    shares_by_size,
)
from ddobench.report.tables.setting_sweeps import Sweep
from ddobench.report.tables.standings import Lineup, find_lineups
from ddobench.report.tables.styles import DASHES, MARKERS, REFERENCE, USUAL, Style, role_of
from ddobench.stats.samples import share_at_least, share_band
from ddobench.variants import split_variant

_DIMENSION = Axis("dimension $d$", "sizes")
_SHARE = Axis("share of the optimum [%]", "percent")
_VALUE = Axis("value [sd of visible values]")
_SHARE_TEXT = (
    "0 is the mean of the visible values, 100\u00a0% the optimum. An invalid design counts as the "
    "worst visible value."
)
_OWN_CHOICE = "the designs that a method itself ranks highest at its last iteration"


def line_figure(
    data: ReportData, kind: str, name: str, points: pd.DataFrame, plot: LinePlot, text: str, *,
    per: str = "method and d", hidden: int = 0, long: bool = False, task: str | None = None,
    table: str = "scores", about_task: bool = False,
) -> Figure:  # fmt: skip
    """Make a figure from its tidy frame and its plot, and complete its caption."""
    if "best_visible" in points and plot.x.kind != "iterations":
        points = _drop_duplicate_landmark(points)
    parts = [text, describe_lines(len(plot.styles), long=long)]
    if hidden:
        parts.append(f"{hidden} variants of these methods are in the tables only.")
    if "best_visible" in points and points["best_visible"].notna().any():
        parts.append("Dotted: the best visible design.")
    caption = " ".join([*parts, *describe_sample(data, points, plot.styles, per)])
    about = str(points["task"].iloc[0]) if task is None else task
    return Figure(kind, name, plot.title, caption, about, points, data.commands(points), plot,
                  about_task, table)  # fmt: skip


def add_landmarks(data: ReportData, points: pd.DataFrame, measure: str = "value") -> pd.DataFrame:
    """Add the mean of the best visible design and the optimum at each size.

    `measure` is what the points are: a value, a share of the optimum, or regret.
    """
    marks = data.best_visible.rename(columns={f"best_visible_{measure}": "best_visible"})
    marks = marks[[*BY_SIZE, "best_visible", "optimum"]]
    if measure != "value":
        marks = marks.assign(optimum=1.0) if measure == "share" else marks.drop(columns="optimum")
    return points.merge(marks, on=BY_SIZE, how="left")


def headline(data: ReportData) -> Iterator[Figure]:
    """Draw the share of the optimum against dimension, a panel per task with a known optimum.

    Only default methods that use nothing but the visible table are drawn. The number of rows is the
    one with most dimensions.
    """
    runs = data.runs
    plain = (runs["privileges"] == "") & (runs["method_variant"] == "")
    points = share_points(data, scored_runs(runs[plain & (runs["task_variant"] == "")]))
    families = [
        max((own for _, own in task.groupby(BY_N, sort=True)), key=lambda own: (
            own["budget"].iloc[0] == "full", own["d"].nunique(), own["n"].iloc[0],
            own["method"].nunique()))
        for _, task in points.groupby("task", sort=True)
    ]  # fmt: skip
    families = [own for own in families if any(map(_competes, own["method"]))]
    families = [own for own in families if len(set(own["d"])) > 1] or families
    if not families:
        return
    shown = pd.concat(families[:6], ignore_index=True)
    shown = shown.assign(panel=shown["task"], x=shown["d"])
    sizes = shown.groupby([*BY_N, "series"])["d"].transform("nunique")
    lines = shown[2 * sizes >= shown.groupby(BY_N)["d"].transform("nunique")]
    leading = rank_series(lines, BY_SIZE, MOST_SERIES + 1)
    left_out = shown["series"].nunique() - len(leading)
    shown = shown[shown["series"].isin(leading)]
    firsts = shown.drop_duplicates("series").set_index("series")
    styles = {key: data.style(firsts.loc[key]) for key in leading if key in firsts.index}
    firsts = shown.drop_duplicates("task")  # a task may have none of the methods that are drawn
    panels = {str(row["task"]): name_runs(row, "n") for _, row in firsts.iterrows()}
    several = shown["d"].groupby(shown["task"]).nunique().max() > 1
    title = f"Share of the optimum{' against dimension' if several else ''}, by task"
    plot = LinePlot(title, _DIMENSION, replace(_SHARE, limits=(-0.5, 1.1)), styles, panels,
                    free_x=True)  # fmt: skip
    text = (
        f"Value of {_OWN_CHOICE}, as a share of the exact optimum. {_SHARE_TEXT} Shares below "
        "\u221250\u00a0% are drawn there. Methods use nothing but the visible table."
    )
    if left_out:
        text += f" Of all methods {left_out} are left out; the best and the common ones are drawn."
    yield line_figure(data, "headline", "headline", shown, plot, text, task="")


def _competes(method: str) -> bool:
    return not is_best_visible(method) and role_of(method) != REFERENCE


def share_points(data: ReportData, runs: pd.DataFrame) -> pd.DataFrame:
    """Average the shares of the optimum of each size and series, with the landmarks."""
    points = average(runs.assign(share=share_of_optimum(runs)), [*BY_SIZE, *SERIES], "share")
    return mark_lacking(data, add_landmarks(data, points, "share"))


def _drop_duplicate_landmark(points: pd.DataFrame) -> pd.DataFrame:
    """Leave out the best visible design in panels where a method returns it at every x."""
    own = points["method"].map(is_best_visible).astype(bool)
    covered = own.groupby([points["panel"], points["x"]]).transform("any")
    whole = covered.groupby(points["panel"]).transform("all")
    return points.assign(best_visible=points["best_visible"].where(~whole))


def share_by_dimension(data: ReportData) -> Iterator[Figure]:
    """Draw the share of the optimum against dimension, ranked by the method and by an oracle."""
    chosen = {"final": scores.FINAL_MODEL, "best": scores.BEST_ORACLE}
    titles = {"final": "last step, own ranking", "best": "best step, oracle ranks"}
    for family in _climbing(data):
        if family["d"].nunique() < 2 or not (family["optimum"] > 0).any():
            continue
        drawn, hidden = drop_variants(family)
        parts = [
            share_points(data, drawn.assign(**{scores.HEADLINE.name: drawn[score.name]})).assign(
                panel=panel
            )
            for panel, score in chosen.items()
        ]
        points = pd.concat(parts, ignore_index=True)
        points = points.assign(x=points["d"])
        styles = lead_styles(data, points[points["panel"] == "final"])
        name = f"Share of the optimum against dimension: {name_runs(family.iloc[0], 'n')}"
        plot = LinePlot(name, _DIMENSION, _SHARE, styles, titles)
        text = (
            f"Left: {_OWN_CHOICE}. Right: an oracle chooses the iteration and the designs. "
            f"{_SHARE_TEXT}"
        )
        yield line_figure(data, "share", row_stem("share", family.iloc[0], "n"), points, plot, text,
                          hidden=hidden)  # fmt: skip


def share_by_rows(data: ReportData) -> Iterator[Figure]:
    """Draw the share of the optimum against rows per squared dimension, a panel per method."""
    for _, study in scored_runs(data.runs).groupby(BY_TASK, sort=True):
        competing = study["method"].map(_competes).astype(bool)
        points = share_points(data, study[(study["optimum"] > 0) & competing])
        rows = points.groupby(["series", "d"])["n"].transform("nunique")
        several = rows.groupby(points["d"]).transform("max") > 1
        points = points[several & (rows.groupby(points["series"]).transform("max") > 1)]
        points, hidden = drop_variants(points)
        if points.empty or points["n"].nunique() < 3:
            continue
        counts = points.groupby("series").size()
        ranked = rank_series(points, BY_SIZE, len(counts))
        panels = sorted(ranked, key=lambda key: -counts[key])[:9]
        points = points[points["series"].isin(panels)]
        first = points.iloc[0]
        labels = points.drop_duplicates("series").set_index("series")
        titles = {key: data.style(labels.loc[key]).label for key in sorted(panels)}
        sizes = sorted({int(d) for d in points["d"]})
        points = points.assign(panel=points["series"], x=points["n"] / points["d"] ** 2,
                               series=points["d"].map(lambda d: f"d = {d}"))  # fmt: skip
        title = f"Share of the optimum against rows per squared dimension: {name_runs(first)}"
        plot = LinePlot(title, Axis("$n / d^2$", "log"), _SHARE, _shade_sizes(sizes), titles,
                        own_landmarks=True)  # fmt: skip
        text = (
            f"Share of the optimum of {_OWN_CHOICE}, against the number of visible rows n divided "
            "by the squared dimension. Where the lines of different d agree, the number of rows "
            f"that a method needs grows as d\u00b2. {_SHARE_TEXT}"
        )
        yield line_figure(data, "rows", row_stem("rows", first), points, plot, text,
                          per="method, d and n", hidden=hidden)  # fmt: skip


def _shade_sizes(sizes: list[int]) -> dict[str, Style]:
    """Return a style for every dimension; larger ones are darker."""
    shades = mpl.colormaps["viridis_r"](
        np.linspace(0.18 if len(sizes) > 1 else 1.0, 1.0, len(sizes))
    )
    return {
        f"d = {d}": Style(f"d = {d}", to_hex(shade), MARKERS[i % len(MARKERS)],
                          DASHES[i % len(DASHES)], ())
        for i, (d, shade) in enumerate(zip(sizes, shades, strict=True))
    }  # fmt: skip


def regret(data: ReportData) -> Iterator[Figure]:
    """Draw mean regret against dimension, and against visible rows."""
    known = data.scores[data.scores.groupby(BY_SIZE)["regret_mean"].transform("count") > 0]
    for axis, column, fixed, keys, fewest in (
        (_DIMENSION, "d", "n", BY_N, 2),
        (Axis("visible rows $n$", "sizes"), "n", "d", BY_D, 3),
    ):
        for _, family in known.groupby(keys, sort=True):
            if family.groupby(SERIES)[column].nunique().max() >= fewest:
                yield _regret_figure(data, family, axis, column, fixed)


def _regret_figure(
    data: ReportData, family: pd.DataFrame, axis: Axis, column: str, fixed: str
) -> Figure:
    drawn, hidden = drop_variants(family)
    first = drawn.iloc[0]
    renamed = {f"regret_{part}": part for part in ("mean", "low", "high")}
    points = drawn[[*BY_SIZE, *SERIES, "seeds", *renamed]].rename(columns=renamed)
    points = add_landmarks(data, points, "regret").assign(panel="", x=lambda p: p[column])
    points = mark_lacking(data, points)
    styles = lead_styles(data, points, lower_is_better=True)
    unit = {"raw": "raw units", "sd": "sd of the visible values"}.get(str(first["regret_unit"]), "")
    title = f"Regret against {axis.label.split(' $')[0]}: {name_runs(first, fixed)}"
    plot = LinePlot(title, axis, Axis(f"regret [{unit}]"), styles, {"": ""})
    text = "Mean regret: the optimum minus the value of the proposed design. Lower is better."
    return line_figure(data, "regret", row_stem("regret", first, fixed), points, plot, text,
                       hidden=hidden)  # fmt: skip


_COVERAGE = {  # the panels of the figure
    "log10_coverage": "(a) of whole designs",
    "log10_clique_coverage": "(b) of cliques",
    "clique_correlation": "largest correlation",
}
_KNOWLEDGE = {  # its series
    "known": Style("best of the methods with the true graph", "#0072B2", "o", (), ()),
    "wrong": Style("the same methods with another graph", "#CC79A7", "X", (), ()),
    "none": Style("best of the other methods", "#D55E00", "s", (), ()),
    "visible": Style("best visible design", FAINT, "D", (), ()),
}


def regret_by_coverage(data: ReportData) -> Iterator[Figure]:
    """Draw the regret at every size whose coverage is known against the terms of the theorem."""
    runs = scored_runs(data.runs)
    runs = runs.assign(missing=1.0 - share_of_optimum(runs)).dropna(
        subset=["missing", *[*_COVERAGE][:2]]
    )
    runs = runs.assign(known=runs["privileges"].str.contains("graph").astype(bool))
    if len(runs.loc[runs["known"], BY_SIZE].drop_duplicates()) < 3:
        return
    keys = [*BY_SIZE, *SERIES]
    facts = runs.groupby(keys, as_index=False)[[*_COVERAGE, "known"]].mean()
    points = average(runs, keys, "missing").merge(facts.astype({"known": bool}), on=keys)
    points = points[points["method"].map(_competes).astype(bool)].reset_index(drop=True)
    has_known = points.groupby([*BY_SIZE, "method"])["known"].transform("any")
    series = np.select([points["known"], has_known], ["known", "wrong"], "none")
    points = mark_lacking(data, points).assign(series=series)
    first = points.sort_values("mean").drop_duplicates([*BY_SIZE, "series"]).index
    points = points[points.index.isin(first) | (points["series"] == "wrong")]
    tables = runs.assign(missing=1.0 - share_of_optimum(runs, scores.BEST_VISIBLE.name))
    visible = average(tables.drop_duplicates([*BY_SIZE, "seed"]), BY_SIZE, "missing")
    visible = visible.merge(facts.drop_duplicates(BY_SIZE), on=BY_SIZE)
    points = pd.concat([points, visible.assign(series="visible", lacking=False)])
    shown = pd.concat([points.assign(panel=name, x=points[name]) for name in _COVERAGE])
    shown = shown.dropna(subset="x").drop(columns=["known", *_COVERAGE])
    styles = {key: style for key, style in _KNOWLEDGE.items() if key in set(shown["series"])}
    plot = LinePlot("Regret against coverage, by what a method knows",
                    Axis("log10 of coverage; \u03c3"),
                    Axis("regret [% of the optimum]", "percent", limits=(0.0, 1.2)), styles,
                    _COVERAGE, connected=False, free_x=True)  # fmt: skip
    text = (
        "Each point is a task at one size, mean over seeds. Regret is what is missing to the "
        "optimum, in percent of the way to it from the mean of the visible values; above 120 it is "
        "drawn there. Coverage (a) is the largest ratio of a policy around the optimum to the "
        "density of the rows, over whole designs; (b) the same within a clique; \u03c3 is the "
        "largest correlation of two clique functions. The best of several methods is chosen by its "
        f"result. The tasks are {', '.join(sorted(set(shown['task'])))}."
    )
    yield line_figure(data, "coverage", "coverage", shown.reset_index(drop=True), plot, text,
                      task="", per="point")  # fmt: skip


def _climbing(data: ReportData) -> Iterator[pd.DataFrame]:
    """Yield the scored runs of each task, variant, n and budget where any method iterates."""
    steps = data.curves.groupby(BY_N)["iteration"].max()
    climbing = steps[steps > 0].reset_index()[BY_N]
    for _, family in scored_runs(data.runs).merge(climbing, on=BY_N).groupby(BY_N, sort=True):
        yield family


@dataclass(frozen=True)
class _Curve:
    """A figure of one score against iteration."""

    score: str
    kind: str
    title: str
    axis: Axis
    text: str


_CURVES = (
    _Curve(scores.VALUE_MODEL.name, "value", "Value against iteration", _VALUE,
           "True value of the designs that the method itself ranks highest, 128 at full budget. "
           "An invalid design counts as the worst visible value."),
    _Curve(scores.SURVIVORS.name, "survivors", "Value of the best valid designs against iteration",
           _VALUE,
           "The paper's curve: an oracle chooses the valid designs of largest true value, 128 at "
           "full budget. A line ends, with a bar across it, at the last iteration where every seed "
           "has enough valid designs."),
    _Curve(scores.INVALID.name, "invalid", "Invalid designs against iteration",
           Axis("invalid designs [%]", "percent", limits=(0.0, 1.0)),
           "Share of all proposed designs that are outside the domain of the function."),
)  # fmt: skip


def scores_by_iteration(data: ReportData) -> Iterator[Figure]:
    """Draw value, value of the valid designs and invalid designs against iteration."""
    for family in _climbing(data):
        drawn, hidden = drop_variants(family)
        keys = [*BY_SIZE, *SERIES, "seed"]
        curves = data.curves.merge(common_seeds(drawn)[keys], on=keys)
        for curve in _CURVES:
            same = curve.kind == "survivors" and np.allclose(
                curves[curve.score], curves[scores.VALUE_MODEL.name], equal_nan=False
            )
            none = curve.kind == "invalid" and not (curves[curve.score] > 0).any()
            if not (same or none):
                yield _curve_figure(data, family, curves, curve, hidden)


def _curve_figure(
    data: ReportData, family: pd.DataFrame, curves: pd.DataFrame, curve: _Curve, hidden: int
) -> Figure:
    points = _level_lines(mark_lacking(data, average_curves(curves, curve.score)))
    points = points.assign(panel=points["d"].astype(str))
    if curve.kind != "invalid":
        points = add_landmarks(data, points)
    ends = points.dropna(subset="mean").groupby(["panel", "series"]).tail(1)
    order = points.groupby(["panel", "series", "task", *SERIES], as_index=False)["x"].max()
    order = order.merge(ends[["panel", "series", "mean"]], on=["panel", "series"], how="left")
    styles = lead_styles(data, order, within="panel")
    title = f"{curve.title}: {name_runs(family.iloc[0], 'n')}"
    panels = {str(d): f"d = {d}" for d in sorted(points["d"].unique())}
    plot = LinePlot(title, Axis("iteration", "iterations"), curve.axis, styles, panels)
    text = f"{curve.text} Means over the common seeds of a panel."
    return line_figure(data, curve.kind, row_stem(curve.kind, family.iloc[0], "n"), points, plot,
                       text, hidden=hidden, long=True)  # fmt: skip


def _level_lines(points: pd.DataFrame) -> pd.DataFrame:
    """Extend a method that proposes only once to the last iteration of the others."""
    last = max(float(points["x"].max()), 1.0)
    once = points[points.groupby([*BY_SIZE, "series"])["x"].transform("max") == 0]
    return pd.concat([points, once.assign(x=last)], ignore_index=True)


def prediction_and_truth(data: ReportData) -> Iterator[Figure]:
    """Draw the predicted and the true value of a method's designs against iteration."""
    looks = {"predicted": Style("predicted by the method", "#D55E00", "", (3.5, 1.5), ()),
             "true": Style("true value", INK, "", (), ())}  # fmt: skip
    columns = {"predicted": scores.PREDICTED.name, "true": scores.VALUE_MODEL.name}
    for family in _climbing(data):
        drawn, hidden = drop_variants(family[family["d"] == family["d"].max()])
        keys = [*BY_SIZE, *SERIES, "seed"]
        curves = data.curves.merge(drawn[keys], on=keys)
        curves = curves[curves.groupby(SERIES)[scores.PREDICTED.name].transform("count") > 0]
        if curves.empty:
            continue
        parts = [mark_lacking(data, average_curves(curves, column)).assign(shown=shown)
                 for shown, column in columns.items()]  # fmt: skip
        points = pd.concat(parts, ignore_index=True)
        points = add_landmarks(data, points)
        panels = {str(key): data.style(own.iloc[0]).label for key, own in points.groupby("series")}
        points = points.assign(panel=points["series"], series=points["shown"])
        title = f"Prediction and truth: {name_runs(drawn.iloc[0], 'n', 'd')}"
        plot = LinePlot(title, Axis("iteration", "iterations"), Axis("value [sd]", "asinh"), looks,
                        panels, columns=min(len(panels), 4))  # fmt: skip
        text = (
            "The value that a method predicts for the designs it ranks highest, and their true "
            "value. An invalid design counts as the worst visible value. A prediction above the "
            "true value is over-optimistic. If predictions are very large, the vertical axis is "
            "logarithmic beyond 10 sd."
        )
        yield line_figure(data, "optimism", row_stem("optimism", drawn.iloc[0], "n"), points, plot,
                          text, hidden=hidden, long=True)  # fmt: skip


def costs(data: ReportData) -> Iterator[Figure]:
    """Draw the seconds to fit and to propose against dimension."""
    stages = {"seconds_fit": "to fit", "seconds_propose": "to propose"}
    for family in _climbing(data):
        drawn, hidden = drop_variants(family)
        keys = [*BY_SIZE, *SERIES]
        parts = [average(drawn, keys, stage).assign(panel=stage) for stage in stages]
        points = mark_lacking(data, pd.concat(parts, ignore_index=True))
        if points.empty:
            continue
        positive = {end: points[end].clip(lower=1e-6) for end in ("mean", "low")}
        points = points.assign(x=points["d"], lacking=False, **positive)
        title = f"Wall-clock seconds per seed: {name_runs(family.iloc[0], 'n')}"
        plot = LinePlot(title, _DIMENSION, Axis("seconds", "log"), lead_styles(data, points),
                        stages, zero=False)  # fmt: skip
        text = (
            "Mean wall-clock seconds per seed. The seconds of a batch are divided by its seeds. If "
            "methods share a trained latent, its cost counts for the first of them. Machines "
            "differ: compare orders of magnitude."
        )
        yield line_figure(data, "costs", row_stem("costs", family.iloc[0], "n"), points, plot, text,
                          hidden=hidden, table="costs")  # fmt: skip


def profiles(data: ReportData) -> Iterator[Figure]:
    """Draw the share of runs that reaches each share of the optimum.

    After Agarwal et al., Deep reinforcement learning at the edge of the statistical precipice,
    2021.
    """
    for task, runs in data.runs.groupby("task", sort=True):
        lineups = [lineup for _, study in runs.groupby(BY_TASK, sort=True)
                   if (lineup := _main_lineup(study)) is not None]  # fmt: skip
        if not lineups:
            continue
        lowest = min(float(size.min()) for one in lineups for size in shares_by_size(one.runs))
        thresholds = np.linspace(min(0.0, max(lowest, -1.0)), 1.0, 101)
        points = pd.concat([_profile(one, thresholds) for one in lineups], ignore_index=True)
        points = points.assign(series=name_series(points))
        styles = lead_styles(data, points, within=["panel", "x"])
        panels = {name_runs(one.runs.iloc[0]): name_runs(one.runs.iloc[0]) for one in lineups}
        x = Axis("share of the optimum reached", "percent")
        plot = LinePlot(f"Performance profiles: {task}", x, Axis("runs [%]", "percent"), styles,
                        panels)  # fmt: skip
        text = (
            "The share of runs whose final value, ranked by the method, reaches at least this "
            "share of the optimum. Higher is better. All sizes that these methods share count."
        )
        yield line_figure(data, "profiles", file_stem("profiles", str(task)), points, plot, text,
                          per="method", long=True)  # fmt: skip


def _main_lineup(study: pd.DataFrame) -> Lineup | None:
    """Return the line-up of a task with the most runs whose optimum is known."""
    known = study[~(study["optimum"] <= 0) & (study["optimum"].notna() | (study["status"] != "ok"))]
    found = [one for one in find_lineups(known) if len(one.runs) >= 10 * len(one.methods)]
    return max(found, key=lambda one: len(one.runs), default=None)


def _profile(lineup: Lineup, thresholds: Any) -> pd.DataFrame:
    first = lineup.runs.iloc[0]
    parts = []
    tables = shares_by_size(lineup.runs.drop_duplicates([*BY_SIZE, "seed"]), "best_visible")
    for method in lineup.methods:
        own = lineup.runs[lineup.runs["method"] == method]
        strata = shares_by_size(own)
        few = len(lineup.methods) <= MOST_BANDS  # else no band is drawn
        low, high = share_band(strata, thresholds) if few else (np.nan, np.nan)
        named = {name: first[name] for name in BY_TASK}
        parts.append(pd.DataFrame(named | {
            "panel": name_runs(first), "method": method, "lacking": False,
            "method_variant": own["method_variant"].iloc[0], "seeds": sum(map(len, strata)),
            "x": thresholds, "mean": share_at_least(strata, thresholds), "low": low, "high": high,
            "best_visible": share_at_least(tables, thresholds),
        }))  # fmt: skip
    return pd.concat(parts)


def landmarks(data: ReportData) -> Iterator[Figure]:
    """Draw the best visible design and the optimum of a task against dimension."""
    looks = {
        "optimum": Style("optimum", INK, "D", (), ()),
        "best visible design": Style("best visible design", "#b8642b", "o", (5, 1.6), ()),
    }
    known = data.runs.dropna(subset=["best_visible", "optimum"])
    for _, family in known.groupby(["task", "task_variant", "n"], sort=True):
        tables = family.sort_values("budget").drop_duplicates(["d", "seed"])
        if tables["d"].nunique() < 2:
            continue
        keys = ["task", "task_variant", "n", "d"]
        parts = [
            average(tables, keys, column).assign(
                series=column.replace("best_visible", "best visible design")
            )
            for column in ("optimum", "best_visible")
        ]
        points = pd.concat(parts, ignore_index=True)
        points = points.assign(panel="", x=points["d"], lacking=False)
        first = {**tables.iloc[0].to_dict(), "budget": ""}
        title = f"Best visible design and optimum against dimension: {name_runs(first, 'n')}"
        plot = LinePlot(title, _DIMENSION, _VALUE, looks, {"": ""})
        text = "The possible gain: the largest visible value and the optimum, means over seeds."
        yield line_figure(data, "landmarks", row_stem("landmarks", first, "n"), points, plot, text,
                          per="d", about_task=True)  # fmt: skip


def score_by_setting(data: ReportData) -> Iterator[Figure]:
    """Draw the scores against every setting of a task or method that varies alone.

    Words are left out if there are many: they are repeats of a task, and their ranks are drawn.
    """
    for sweep in data.sweeps:
        if not sweep.numeric and len(sweep.levels) > _MOST_WORDS:
            continue
        for _, runs in sweep.runs.groupby([*(name for name in BY_SIZE if name != "task_variant"),
                                           "rest"], sort=True):  # fmt: skip
            yield _setting_figure(data, replace(sweep, runs=runs))


def _setting_figure(data: ReportData, sweep: Sweep) -> Figure:
    runs = sweep.runs.assign(share=share_of_optimum(sweep.runs))
    known = runs["share"].notna().all()
    value = "share" if known else scores.HEADLINE.name
    measured = {value: "last step, own ranking"}
    if sweep.owner == "method":
        runs = runs.assign(best=share_of_optimum(runs, scores.BEST_ORACLE.name) if known
                           else runs[scores.BEST_ORACLE.name])  # fmt: skip
        measured["best"] = "best step, oracle ranks"
    if known and (runs[scores.INVALID_FINAL.name] > 0).any():
        measured[scores.INVALID_FINAL.name] = "invalid designs"
    keys = [*BY_SIZE, *SERIES, "rest", "level", "method series"]
    runs = runs.assign(**{"method series": runs["series"]})
    points = pd.concat([average(runs, keys, column).assign(panel=column) for column in measured],
                       ignore_index=True)  # fmt: skip
    points = mark_lacking(data, points).assign(
        series=points["method"] + " " + points["method series"],
        x=points["level"].map({level: i for i, level in enumerate(sweep.levels)}).astype(float),
    )
    points = add_landmarks(data, points, "share" if known else "value")
    if not known:
        points["optimum"] = np.nan
    invalid = points["panel"] == scores.INVALID_FINAL.name
    points.loc[invalid, ["best_visible", "optimum"]] = np.nan
    first = points.iloc[0].to_dict()
    runs_name = name_runs({**first, "task_variant": first["rest"]}, "n", "d")
    styles = {
        key: replace(style, label=_drop_setting(style.label, sweep.setting))
        for key, style in lead_styles(data, points[points["panel"] == value]).items()
    }
    plot = LinePlot(f"Scores against {sweep.setting}: {runs_name}",
                    Axis(_SETTING_LABELS.get(sweep.setting, sweep.setting), "levels", sweep.levels),
                    Axis("share [%]", "percent") if known else _VALUE, styles, measured,
                    connected=sweep.numeric)  # fmt: skip
    text = (
        f"Only {sweep.setting} differs. Share of the optimum (or value, where that is unknown) of "
        f"{_OWN_CHOICE}. {_SHARE_TEXT} Levels are evenly spaced."
    )
    name = row_stem(sweep.setting, {**first, "task_variant": first["rest"]}, "d", "n")
    return line_figure(data, "setting", name, points, plot, text, table="settings",
                       per=f"method and {sweep.setting}")  # fmt: skip


_MOST_WORDS = 12  # levels that fit below an axis


def _drop_setting(label: str, setting: str) -> str:
    kept = (word for word in label.split() if not word.startswith(f"{setting}="))
    return " ".join(kept).removesuffix(",")


_SETTING_LABELS = {
    "noise": "noise [sd of the values]",
    "graph.alpha": "level \u03b1 of the edge test",
}


def value_by_path(data: ReportData) -> Iterator[Figure]:
    """Draw the value of gradient ascent against path length, rate times steps."""
    climbers = {digest: rate for digest, config in data.configs.items()
                if (rate := _ascent_rate(config)) is not None}  # fmt: skip
    runs = scored_runs(data.runs)
    stepping = set(data.curves.loc[data.curves["iteration"] > 0, "digest"])
    runs = runs[runs["digest"].isin(climbers) & runs["digest"].isin(stepping)]
    plain = runs["method_variant"].map(_is_plain_ascent).astype(bool)
    usual = runs["method"].map(lambda method: role_of(method) == USUAL).astype(bool)
    for _, family in runs[plain & usual & (runs["task_variant"] == "")].groupby(BY_N, sort=True):
        rates = family["digest"].map(climbers)
        if rates.nunique() < 2:
            continue
        sizes = sorted(family["d"].unique())
        sizes = sizes if len(sizes) < 3 else sizes[1::2][-2:]
        drawn = common_seeds(family[family["d"].isin(sizes)])
        keys = [*BY_SIZE, *SERIES, "seed"]
        curves = data.curves.merge(drawn[[*keys, "digest"]], on=[*keys, "digest"])
        points = mark_lacking(data, average_curves(curves, scores.VALUE_MODEL.name))
        rate_of = drawn.assign(rate=drawn["digest"].map(climbers)).groupby(SERIES)["rate"].first()
        points["x"] *= rate_of.reindex(pd.MultiIndex.from_frame(points[SERIES])).to_numpy()
        points = points[points["x"] > 0]
        points = add_landmarks(data, points).assign(panel=points["d"].astype(str).to_numpy())
        title = f"Value against path length: {name_runs(family.iloc[0], 'n')}"
        plot = LinePlot(title, Axis("path length (rate \u00d7 steps)", "log"), _VALUE,
                        lead_styles(data, points.dropna(subset="mean"), within=["panel", "x"]),
                        {str(d): f"d = {d}" for d in sizes})  # fmt: skip
        text = (
            "True value of the designs that the method itself ranks highest, along its ascent. "
            "Path length is the rate times the number of steps, without the factor \u221ad that "
            "all methods share, so that methods with different rates can be compared. The paper's "
            "methods with a VAE stop at 0.25, the others at 2.5."
        )
        yield line_figure(data, "path", row_stem("path", family.iloc[0], "n"), points, plot, text,
                          long=True)  # fmt: skip


def _is_plain_ascent(variant: str) -> bool:
    """Return whether a variant is the default, or changes the rate and at most the training."""
    settings = {*split_variant(variant)}
    changes_rate = "search" in settings and settings <= {"search", "training", "surrogate"}
    return not settings or changes_rate


def _ascent_rate(config: Mapping[str, Any]) -> float | None:
    """Return the rate of a plain gradient ascent, None for any other search."""
    method = config.get("method")
    search = method.get("search") if isinstance(method, Mapping) else None
    if not isinstance(search, Mapping) or search.get("optimiser") != "gradient":
        return None
    rate, target = search.get("rate"), str(search.get("_target_", ""))
    plain = target.endswith(".Ascent") and search.get("prior") == 0
    return float(rate) if plain and isinstance(rate, int | float) else None
